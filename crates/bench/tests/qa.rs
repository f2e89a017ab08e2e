//! The program `memlocal-bench qa`: killed, resumed, scored again, replayed, compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::home;

pub const TALK: &str = r#"[{"sample_id": "c1", "conversation": {"speaker_a": "Ann", "speaker_b": "Bo",
   "session_1_date_time": "1 May 2023", "session_1": [
     {"speaker": "Ann", "dia_id": "D1:1", "text": "I went to the beach with my dog Rex."},
     {"speaker": "Bo", "dia_id": "D1:2", "text": "How nice! I stayed at home and baked bread."}],
   "session_2_date_time": "9 May 2023", "session_2": [
     {"speaker": "Bo", "dia_id": "D2:1", "text": "I bought a blue car from my uncle in Pell."}]},
  "qa": [{"question": "Where did Ann go?", "answer": "the beach", "evidence": ["D1:1"], "category": 4},
         {"question": "What did Bo buy?", "answer": "a blue car", "evidence": ["D2:1"], "category": 4},
         {"question": "Who is Rex?", "answer": "a dog", "evidence": ["D1:1"], "category": 1}]}]"#;

const BENCH: [&str; 14] = [
    "qa",
    "--suite",
    "locomo",
    "--data",
    "locomo.json",
    "--method",
    "gam,rag",
    "--limit",
    "2",
    "--max-iterations",
    "1",
    "--out",
    "runs",
    "--resume",
];
const RUN: &str = "runs/qa-locomo";

/// The keys of the calls in a transcript, as far as its lines are complete.
pub fn keys(transcript: &Path) -> Vec<String> {
    let file = fs::read_to_string(transcript).unwrap_or_default();
    let whole = &file[..file.rfind('\n').map_or(0, |end| end + 1)];
    let key = |line: &str| serde_json::from_str::<Value>(line).unwrap()["key"].as_str().unwrap().to_owned();
    whole.lines().map(key).collect()
}

#[test]
fn a_killed_bench_resumes_and_its_run_can_be_used_without_models() {
    let Some(home) = home("bench") else { return };
    home.write("locomo.json", TALK);
    let transcript = home.path(RUN).join("transcript.jsonl");
    let mut child = home.command(&BENCH).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while keys(&transcript).len() < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was killed");
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = keys(&transcript);

    let report = home.get(&BENCH);
    let after = keys(&transcript);
    assert!(after.starts_with(&before) && after.len() > before.len(), "{before:?} {after:?}");
    assert_eq!(after.iter().collect::<BTreeSet<_>>().len(), after.len(), "no call twice");
    assert!(report.starts_with("# Questions: locomo\n\n2 questions."), "{report}");
    assert!(report.contains("| here | smollm2-135m-instruct | gam |"), "{report}");
    let manifest: Value = serde_json::from_slice(&fs::read(home.path(RUN).join("manifest.json")).unwrap()).unwrap();
    assert_eq!(
        (&manifest["models"][0]["name"], &manifest["data"][0]["name"]),
        (&"smollm2-135m-instruct:q4_1".into(), &"locomo.json".into())
    );

    // The models are not needed here.
    let bare = home.path("no-models").display().to_string();
    let without = |words: &[&str]| home.get(&[&["--data-dir", bare.as_str()], words].concat());
    assert_eq!(without(&["rescore", RUN]), report);
    assert_eq!(fs::read_to_string(home.path(RUN).join("report.md")).unwrap(), report);
    assert_eq!(without(&["replay", RUN]), "4 of 4 answers are the same\n");
    let compared = without(&["compare", RUN, RUN]);
    assert_eq!(compared.lines().count(), 3, "{compared}");
    assert!(compared.lines().all(|line| line.ends_with(": too few to say")), "{compared}");

    home.run(&BENCH[..13]).is_error(&[
        "error: runs/qa-locomo holds the results of another run",
        "hint: name another folder: --out FOLDER; --resume resumes runs of qa and forms",
    ]);
    home.write("locomo.json", TALK.replace("Where did", "When did"));
    home.run(&["replay", RUN]).is_error(&[
        "error: ~/work/locomo.json has changed since the run",
        "hint: put the files of the run's manifest there",
    ]);
    home.write("locomo.json", "[{\"sample_id\": \"c1\"}]");
    let wrong = home.run(&BENCH);
    assert!(wrong.code == 1 && wrong.err.contains("locomo.json: line 1"), "{wrong:?}");
}
