//! GET /v1/engine, the same numbers in the metrics, and the reports of benchmark runs.

use std::fs;
use std::sync::Arc;

use calls::{ModelState, Scripted, Status};
use serde_json::json;

use crate::host::{CONTEXT_TOKENS, Host, says};
use test_support::double::Double;

/// An engine that is busy.
struct Busy;

impl Status for Busy {
    fn state(&self) -> Vec<ModelState> {
        let state = ModelState { model: "bu\"sy".into(), total_pages: 512, used_pages: 7, ..ModelState::default() };
        vec![ModelState { read_tokens_per_second: 3e-59, written_tokens_per_second: 12.5, ..state }]
    }

    fn is_alive(&self) -> bool {
        true
    }
}

#[test]
fn the_engine_reports_its_state() {
    let host = Host::new(Double::new(Scripted::new(CONTEXT_TOKENS)).with_status(Busy));
    let model = host.get("/v1/engine").json()["models"][0].take();
    assert_eq!(
        (&model["model"], &model["total_pages"], &model["used_pages"]),
        (&json!("bu\"sy"), &json!(512), &json!(7))
    );
    assert_eq!((&model["running"], &model["written_tokens_per_second"]), (&json!(0), &json!(12.5)));
    let metrics = host.get("/metrics").text;
    for line in [
        "# TYPE memlocal_kv_pages gauge",
        "memlocal_kv_pages{model=\"bu\\\"sy\"} 512",
        "memlocal_kv_pages_used{model=\"bu\\\"sy\"} 7",
        "memlocal_engine_read_tokens_per_second{model=\"bu\\\"sy\"} 0",
        "memlocal_engine_written_tokens_per_second{model=\"bu\\\"sy\"} 12.5",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} in {metrics}");
    }
    assert_eq!(Host::new(says("")).get("/v1/engine").json(), json!({ "models": [] }), "the state is not reported");
}

#[test]
fn reports_of_runs_can_be_read_and_nothing_else() {
    assert_eq!(Host::new(says("")).get("/v1/bench/runs").json(), json!({ "runs": [] }));
    let data = tempfile::tempdir().expect("the system has a folder for temporary files");
    let write = |name: &str, text: &str| {
        let path = data.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    };
    write("secret.json", "{}");
    write("runs/a/report.json", r#"{"suite":"locomo"}"#);
    write("runs/a/summary.json", "{}");
    write("runs/b/c/summary.json", r#"{"suite":"speed"}"#);
    write("runs/b/notes.json", "{}");
    let runs = data.path().join("runs");
    let host = Host::with(Arc::new(says("")), |config| config.bench_runs = Some(runs));
    assert_eq!(host.get("/v1/bench/runs").json(), json!({ "runs": ["a", "b/c"] }));
    let check = |run: &str, suite: &str| {
        assert_eq!(host.get(&format!("/v1/bench/report?run={run}")).json()["suite"], suite);
    };
    check("a", "locomo");
    check("b%2Fc", "speed");
    for run in ["..", "../secret.json", "b", "a/report.json", ""] {
        host.get(&format!("/v1/bench/report?run={run}")).refused(404, "not_found");
    }
    host.get("/v1/bench/report").refused(400, "invalid_value");
}
