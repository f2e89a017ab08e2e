//! `--engine`: calls answered by an endpoint, which is our own `memlocal serve` over loopback.

use std::fs;

use serde_json::Value;
use test_support::home::Home;
use test_support::serving::Serving;

#[test]
fn a_bench_records_the_endpoint_and_model_that_answered() {
    let Some(home) = Home::new("elsewhere-bench") else { return };
    let serving = Serving::start(&home, &[]);
    let url = format!("http://{}/v1", serving.address);
    home.write(
        "locomo.json",
        r#"[{"sample_id": "c1", "conversation": {"speaker_a": "Ann", "speaker_b": "Bo",
           "session_1_date_time": "1 May 2023", "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I went to the beach."}]},
           "qa": [{"question": "Where did Ann go?", "answer": "the beach", "evidence": ["D1:1"], "category": 4}]}]"#,
    );
    let bench = ["qa", "--suite", "locomo", "--data", "locomo.json", "--method", "rag", "--engine", &url];
    let home = home.running("memlocal-bench");
    home.get(&bench);
    let manifest = fs::read(home.path("qa-locomo/manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["models"][0]["name"], url);
    assert_eq!(manifest["models"][1]["name"], "all-minilm-l6-v2:f32");
}
