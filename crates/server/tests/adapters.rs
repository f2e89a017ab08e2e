//! Models with adapters: how they are listed, and which adapter a request runs with.

use std::sync::Arc;

use calls::{AdapterChoice, Agent, ModelInfo, Scripted};
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host};
use test_support::double::Double;

/// A model with two adapters; the researcher runs with the first.
struct Adapted;

impl ModelInfo for Adapted {
    fn model(&self, agent: Agent) -> &str {
        if agent == Agent::Researcher { "small:q4_1:plans" } else { "small:q4_1" }
    }

    fn base_model(&self, _: Agent) -> &'static str {
        "small:q4_1"
    }

    fn adapters(&self, _: Agent) -> Vec<String> {
        vec!["plans".into(), "facts".into()]
    }
}

fn host() -> (Host, Arc<Scripted>) {
    let script = Scripted::new(CONTEXT_TOKENS).answer("chat", "Yes.").answer("completion", "Yes.");
    let script = script.answer("response", "Yes.").answer("ollama", "Yes.");
    let script = Arc::new(script);
    (Host::new(Double::new(Arc::clone(&script)).with_models(Adapted)), script)
}

#[test]
fn adapters_are_listed_as_models_with_their_base() {
    let (host, _) = host();
    let list = host.get("/v1/models").json();
    let of = |field: &str| -> Vec<Value> {
        list["data"].as_array().expect("a list").iter().map(|model| model[field].clone()).collect()
    };
    let names = ["small:q4_1", "small:q4_1:plans", "small:q4_1:facts", "small:q4_1:none"];
    assert_eq!(of("id")[..4], names.map(Value::from));
    assert_eq!(of("parent")[..4], [Value::Null, "small:q4_1".into(), "small:q4_1".into(), "small:q4_1".into()]);
    let shown = host.get("/v1/models/small:facts").json();
    assert_eq!((&shown["id"], &shown["max_model_len"]), (&json!("small:q4_1:facts"), &json!(CONTEXT_TOKENS)));
    assert_eq!(host.get("/v1/models/small:none-such").status, 404);
}

#[test]
fn a_request_runs_with_the_adapter_that_its_model_names() {
    let (host, script) = host();
    let named = |name: &str| AdapterChoice::Named(Arc::from(name));
    let cases = [
        ("small", "small:q4_1", AdapterChoice::OfAgent),
        ("small:q4_1", "small:q4_1", AdapterChoice::OfAgent),
        ("small:facts", "small:q4_1:facts", named("facts")),
        ("small:q4_1:facts", "small:q4_1:facts", named("facts")),
        ("small:none", "small:q4_1", AdapterChoice::Base),
    ];
    for (asked, answered, adapter) in cases {
        let message = json!([{ "role": "user", "content": "Is it?" }]);
        let chat = json!({ "model": asked, "messages": message });
        let ollama = json!({ "model": asked, "messages": message, "stream": false });
        let all = [
            ("/v1/chat/completions", chat),
            ("/v1/completions", json!({ "model": asked, "prompt": "Is it?" })),
            ("/v1/responses", json!({ "model": asked, "input": "Is it?" })),
            ("/api/chat", ollama),
        ];
        for (path, body) in all {
            let answer = host.post(path, &body);
            assert_eq!((answer.status, &answer.json()["model"]), (200, &json!(answered)), "{path} {asked}");
            let seen = script.seen().pop().expect("a call");
            assert_eq!((seen.agent, &seen.adapter), (Agent::Responder, &adapter), "{path} {asked}");
        }
    }
    // The name of a role's model with its adapter is that adapter.
    let body = json!({ "model": "small:q4_1:plans", "messages": [{ "role": "user", "content": "Is it?" }] });
    assert_eq!(host.post("/v1/chat/completions", &body).json()["model"], "small:q4_1:plans");
    for unknown in ["small:none-such", "other:facts", "facts"] {
        let body = json!({ "model": unknown, "messages": [{ "role": "user", "content": "Is it?" }] });
        assert_eq!(host.post("/v1/chat/completions", &body).status, 404, "{unknown}");
    }
}
