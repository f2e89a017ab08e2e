//! The common prefix of calls is computed once.

use std::path::Path;

use candle_core::Device;
use models::{LanguageModel, Tokenizer};
use serde_json::{Value, json};

use test_support::home::{Home, LANGUAGE_MODEL, calls};
use test_support::serving::Serving;
use test_support::story::{PAGE_TOKENS, STORY, memorised};
use test_support::weights;

#[test]
fn cached_tokens_are_the_longest_prefix_shared_with_an_earlier_call() {
    let (Some(home), Some(weights)) = (memorised(), weights(LANGUAGE_MODEL)) else { return };
    let tokenizer = tokenizer(&weights);
    let trace = home.trace("memorised.jsonl");
    let mut calls = calls(&trace, "gam.memorize");
    // A reply that was cut is requested once more with the same prompt.
    calls.dedup_by_key(|call| &call["prompt"]);
    assert!(calls.len() >= 3, "the memo grows for a while");
    let prompts: Vec<Vec<u32>> = calls.iter().map(|call| tokens(call, &tokenizer)).collect();
    for (i, call) in calls.iter().enumerate() {
        let shared = prompts[..i].iter().map(|earlier| common_prefix(earlier, &prompts[i])).max().unwrap_or(0);
        assert_eq!(call["prompt_tokens"], prompts[i].len(), "call {i}");
        assert_eq!(call["cached_tokens"], shared, "call {i}");
    }
    let shared = |i: usize| calls[i]["cached_tokens"].as_u64().unwrap();
    assert!(
        shared(0) == 0 && shared(1) > 0 && shared(2) > shared(1),
        "the memo so far is shared, not only instructions"
    );
}

#[test]
fn kept_prefixes_are_there_in_the_next_run_and_a_damaged_file_costs_time_alone() {
    let Some(home) = Home::new("prefixes") else { return };
    home.write("story.txt", STORY);
    home.get(&["ingest", "story.txt", "--corpus", "story", "--page-tokens", PAGE_TOKENS, "--method", "gam"]);
    let ask = |trace: &str| {
        let asked = [
            "ask",
            "Who kept the café?",
            "--corpus",
            "story",
            "--method",
            "gam",
            "--max-iterations",
            "1",
            "--trace",
            trace,
        ];
        let said = home.run(&[&asked[..], &["--keep-prefixes", "--explain-cache"]].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        let plan = calls(&home.trace(trace), "gam.plan")[0].clone();
        let line = said.err.lines().find(|line| line.starts_with("gam.plan")).unwrap();
        let shown = format!("{} {}", plan["prompt_tokens"], plan["cached_tokens"]);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[1..3].join(" "), shown, "{line}");
        (said, plan)
    };
    let (cold, plan) = ask("cold.jsonl");
    assert_eq!((&plan["cached_tokens"], &plan["diverged"]["stability"]), (&json!(0), &json!("static")));
    let (warm, plan) = ask("warm.jsonl");
    assert!(warm.err.contains("tokens restored from a snapshot"), "{}", warm.err);
    let of = |name: &str| plan[name].as_u64().unwrap();
    assert!(of("cached_tokens") > 300, "instructions and memo were there: {plan}");
    assert_eq!(warm.out, cold.out);

    let folder = home.data().join("corpora/story/cache/prefixes/gam");
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let (damaged, plan) = ask("damaged.jsonl");
    assert!(damaged.err.contains("is damaged: its digest does not match"), "{}", damaged.err);
    assert_eq!((&plan["cached_tokens"], damaged.out), (&json!(0), cold.out));
    assert!(ask("mended.jsonl").0.err.contains("tokens restored from a snapshot"), "the file was written anew");
}

#[test]
fn a_server_begins_where_the_one_before_it_ended() {
    let Some(home) = Home::new("prefixes-served") else { return };
    home.write("story.txt", STORY);
    home.get(&["ingest", "story.txt", "--corpus", "story", "--page-tokens", PAGE_TOKENS, "--method", "gam"]);
    let ask = |serving: &Serving, question: &str| {
        let asked = json!({ "question": question, "method": "gam", "max_iterations": 1 });
        let answer = serving.post("/v1/corpora/story/ask", &asked);
        let trace = serving.get(&format!("/v1/traces/{}", answer["trace"].as_str().unwrap()), "");
        let (_, content) = trace.split_once("\r\n\r\n").unwrap();
        let trace: Value = serde_json::from_str(content).unwrap();
        let events = trace["events"].as_array().unwrap();
        let cached = calls(events, "gam.plan")[0]["cached_tokens"].as_u64().unwrap();
        let prefixes = events.iter().find(|event| event["event"] == "prefixes");
        (answer["answer"].clone(), cached, prefixes.map_or(Value::Null, |event| event["step"].clone()))
    };
    let first = Serving::start(&home, &["--keep-prefixes"]);
    let (answer, cached, step) = ask(&first, "Who kept the café?");
    assert_eq!((cached, step), (0, json!("prefixes.keep")));
    // Another question may take a step that the first did not.
    let (_, warm, _) = ask(&first, "Who paid in stories?");
    let (_, _, step) = ask(&first, "Who kept the café?");
    assert_eq!(step, Value::Null, "all prefixes are there, and kept");
    assert_eq!(first.stop().0, 0);

    let second = Serving::start(&home, &["--keep-prefixes"]);
    let (again, cached, step) = ask(&second, "Who kept the café?");
    assert_eq!((again, step), (answer, json!("prefixes.bring")));
    // Whole pages of the workflow's prefix are saved. Two questions also share the heading before them and their first
    // word, which may fill one page more.
    assert!(cached > 300 && (warm / 32).abs_diff(cached / 32) <= 1, "{cached} tokens, {warm} within one process");
}

fn tokenizer(weights: &Path) -> Tokenizer {
    LanguageModel::load(weights, &Device::Cpu).unwrap().tokenizer
}

fn tokens(call: &Value, tokenizer: &Tokenizer) -> Vec<u32> {
    tokenizer.encode_prompt(call["prompt"].as_str().unwrap(), &[]).unwrap()
}

fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
