//! `memlocal-bench qa` killed at random moments and resumed: no finished call is lost or made again, and the answers are
//! those of an undisturbed run. `MEMLOCAL_KILLS=n MEMLOCAL_SEED=s` is the long form (`cargo xtask crash`).

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::home::Home;

use crate::home;
use crate::qa::{TALK, keys};

const KILLS: usize = 3;
const SEED: usize = 27;

fn number(name: &str, usual: usize) -> usize {
    env::var(name).map_or(usual, |value| value.parse().expect("a number"))
}

fn words(out: &str) -> Vec<&str> {
    let what = ["qa", "--suite", "locomo", "--data", "locomo.json", "--method", "gam,rag", "--limit", "2"];
    [&what[..], &["--max-iterations", "1", "--temperature", "0", "--width", "1", "--resume", "--out", out]].concat()
}

/// Question, method and answer of each result.
fn answers(home: &Home, out: &str) -> BTreeSet<[String; 3]> {
    let results = fs::read_to_string(home.path(out).join("qa-locomo/results.jsonl")).unwrap();
    let lines = results.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answered = lines.filter(|line| line["what"] == "answered");
    answered.map(|result| ["id", "method", "answer"].map(|field| result[field].to_string())).collect()
}

#[test]
fn a_bench_that_is_killed_again_and_again_loses_no_call_and_gives_the_same_answers() {
    let (kills, seed) = (number("MEMLOCAL_KILLS", KILLS), number("MEMLOCAL_SEED", SEED));
    let Some(home) = home("bench-killed") else { return };
    home.write("locomo.json", TALK);
    let begun = Instant::now();
    home.get(&words("whole"));
    let (lasts, expected) = (begun.elapsed(), answers(&home, "whole"));
    assert_eq!(expected.len(), 4, "{expected:?}");
    let mut state = seed as u64;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit.max(1)
    };
    let (mut killed, mut runs, mut among) = (0, 0, 0);
    while killed < kills {
        let out = format!("run-{runs}");
        runs += 1;
        let transcript = home.path(&out).join("qa-locomo/transcript.jsonl");
        loop {
            let before = keys(&transcript);
            let mut child = home.command(&words(&out)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let (started, after) = (Instant::now(), below(u64::try_from(lasts.as_micros()).unwrap() * 5 / 4));
            let ended = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break Some(status);
                }
                if started.elapsed() >= Duration::from_micros(after) {
                    child.kill().unwrap();
                    // It may have ended at this moment.
                    break Some(child.wait().unwrap()).filter(std::process::ExitStatus::success);
                }
                sleep(Duration::from_micros(500));
            };
            let now = keys(&transcript);
            assert!(now.starts_with(&before), "calls are lost: {before:?} {now:?}");
            assert_eq!(now.iter().collect::<BTreeSet<_>>().len(), now.len(), "no call twice");
            if let Some(status) = ended {
                assert!(status.success(), "it failed by itself: {status}");
                break;
            }
            killed += 1;
            among += usize::from(!now.is_empty());
        }
        assert_eq!(answers(&home, &out), expected, "run {runs}");
        assert_eq!(home.get(&["replay", &format!("{out}/qa-locomo")]), "4 of 4 answers are the same\n");
    }
    println!("killed {killed} times in {runs} runs, {among} times after the first call had ended, seed {seed}");
}
