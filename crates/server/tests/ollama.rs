//! Ollama's API.

use std::sync::Arc;

use calls::{Scripted, Shape};
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host};

fn script() -> Scripted {
    Scripted::new(CONTEXT_TOKENS).answer("ollama", "Good day.")
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

#[test]
fn replies_are_streamed_as_lines_by_default() {
    let host = Host::new(script());
    let chat = |stream: Value| {
        host.post(
            "/api/chat",
            &json!({ "model": "scripted", "messages": [{ "role": "user", "content": "Hello?" }], "stream": stream }),
        )
    };
    let streamed = chat(Value::Null);
    assert_eq!(streamed.header("content-type"), Some("application/x-ndjson"));
    let streamed = lines(&streamed.text);
    assert_eq!(streamed.len(), 2);
    assert_eq!(
        (&streamed[0]["message"], &streamed[0]["done"]),
        (&json!({ "role": "assistant", "content": "Good day." }), &json!(false))
    );
    assert_eq!(
        (&streamed[1]["done"], &streamed[1]["done_reason"], &streamed[1]["eval_count"]),
        (&json!(true), &json!("stop"), &json!(3))
    );
    let whole = chat(json!(false)).json();
    assert_eq!(
        (&whole["message"]["content"], &whole["done"], &whole["prompt_eval_count"]),
        (&json!("Good day."), &json!(true), &json!(5))
    );
    let generated = lines(&host.post("/api/generate", &json!({ "model": "scripted", "prompt": "Hello?" })).text);
    assert_eq!((&generated[0]["response"], &generated[1]["response"]), (&json!("Good day."), &json!("")));
}

#[test]
fn options_reach_the_call() {
    let caller = Arc::new(script());
    let host = Host::with(caller.clone(), |_| {});
    let options = json!({ "temperature": 0.0, "seed": 4, "num_predict": 7, "num_ctx": 99,
        "frequency_penalty": 0.5, "presence_penalty": -0.25, "repeat_penalty": 1.5 });
    let body = json!({ "model": "scripted", "prompt": "Hello?", "raw": true, "stream": false, "format": "json", "options": options, "keep_alive": 5 });
    assert_eq!(host.post("/api/generate", &body).json()["response"], "Good day.");
    let call = caller.seen().remove(0);
    assert_eq!((call.sampling.temperature, call.sampling.seed, call.sampling.top_k), (0.0, 4, 40));
    let sampling = call.sampling;
    let penalties = (sampling.frequency_penalty, sampling.presence_penalty, sampling.repetition_penalty);
    assert_eq!(penalties, (0.5, -0.25, 1.5));
    assert_eq!((call.limits.max_output_tokens, call.prompt.as_bare()), (7, Some("Hello?")));
    assert_eq!(call.shape, Shape::Json(json!({ "type": "object" })));
    let stopped = json!({ "model": "scripted", "prompt": "a", "stream": false, "options": { "stop": ["."] } });
    assert_eq!(host.post("/api/generate", &stopped).json()["response"], "Good day");
    host.post("/api/generate", &json!({ "model": "scripted", "prompt": "a", "format": 5 }))
        .refused(400, "invalid_value");
    let penalty = json!({ "model": "scripted", "prompt": "a", "options": { "repeat_penalty": 0 } });
    let refused = host.post("/api/generate", &penalty).refused(400, "invalid_value");
    assert!(refused.contains("options.repeat_penalty"), "{refused}");
    host.post("/api/generate", &json!({ "model": "none", "prompt": "a" })).refused(404, "model_not_found");
    host.post("/api/chat", &json!({ "model": "scripted" })).refused(400, "invalid_value");
}

#[test]
fn ignored_fields_are_refused() {
    let host = Host::new(script());
    let refused = |path: &str, body: Value, param: &str| {
        let answer = host.post(path, &body);
        answer.refused(400, "invalid_value");
        assert_eq!(answer.json()["error"]["param"], param, "{body}");
    };
    let say = |more: Value| {
        let mut message = json!({ "role": "user", "content": "Hello?" });
        more.as_object().expect("fields").iter().for_each(|(name, value)| message[name] = value.clone());
        json!({ "model": "scripted", "messages": [message], "stream": false })
    };
    let mut tools = say(json!({}));
    tools["tools"] = json!([{ "type": "function", "function": { "name": "look", "parameters": {} } }]);
    refused("/api/chat", tools, "tools");
    refused("/api/chat", say(json!({ "images": ["iVBORw0K"] })), "images");
    assert_eq!(host.post("/api/chat", &say(json!({ "images": [] }))).status, 200);
    let generate = json!({ "model": "scripted", "prompt": "a" });
    let mut images = generate.clone();
    images["images"] = json!(["iVBORw0K"]);
    refused("/api/generate", images, "images");
    let mut stopped = generate;
    (stopped["format"], stopped["options"]) = (json!("json"), json!({ "stop": "." }));
    refused("/api/generate", stopped, "options.stop");
}

#[test]
fn vectors_tags_and_version() {
    let host = Host::new(script());
    let vectors =
        host.post("/api/embed", &json!({ "model": "letters", "input": ["a", "b"] })).json()["embeddings"].take();
    assert_eq!((vectors.as_array().map(Vec::len), vectors[0].as_array().map(Vec::len)), (Some(2), Some(26)));
    host.post("/api/embed", &json!({ "model": "scripted", "input": "a" })).refused(404, "model_not_found");
    assert_eq!(host.get("/api/tags").json()["models"][0]["name"], "scripted");
    assert!(host.get("/api/version").json()["version"].is_string());
}
