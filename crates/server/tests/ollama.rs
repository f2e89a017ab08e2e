//! Ollama's API.

use std::collections::HashSet;
use std::sync::Arc;

use calls::{Agent, Caller, ModelDetails, ModelInfo, OutputFormat, Scripted};
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host};
use test_support::double::Double;

/// The template of the model of these tests, which fills in the middle of a text.
const TEMPLATE: &str = "{{- if .Suffix }}<|fim_prefix|>{{ .Prompt }}<|fim_suffix|>{{ .Suffix }}<|fim_middle|>{{- else }}\
                        {{ messages }}{{- end }}";

fn script() -> Scripted {
    Scripted::new(CONTEXT_TOKENS).thought("ollama", "It is morning.", "Good day.")
}

/// A model that is known in full.
struct Described;

impl ModelInfo for Described {
    fn model(&self, _: Agent) -> &'static str {
        "small:q4_1"
    }

    fn details(&self, _: Agent) -> Option<ModelDetails> {
        Some(ModelDetails {
            bytes: 1234,
            modified_seconds: 951_782_400,
            format: "gguf".into(),
            family: "llama".into(),
            parameters: 134_515_008,
            quantisation: "Q4_1".into(),
            template: "{{ messages }}".into(),
            thinks: true,
            infills: true,
            on_gpu: false,
        })
    }

    fn digest(&self, _: Agent) -> Option<String> {
        Some("ab".repeat(32))
    }
}

fn described() -> Double {
    Double::new(script()).with_models(Described)
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
    let times = ["load_duration", "prompt_eval_duration", "eval_duration", "total_duration"];
    let [Some(load), Some(prompt), Some(answer), Some(total)] = times.map(|name| whole[name].as_u64()) else {
        panic!("{whole}")
    };
    assert_eq!(load + prompt + answer, total);
    let generated = lines(&host.post("/api/generate", &json!({ "model": "scripted", "prompt": "Hello?" })).text);
    assert_eq!((&generated[0]["response"], &generated[1]["response"]), (&json!("Good day."), &json!("")));
}

#[test]
fn options_reach_the_call() {
    let caller = Arc::new(script());
    let host = Host::with(caller.clone(), |_| {});
    let options = json!({ "temperature": 0.0, "seed": 4, "num_predict": 7, "num_ctx": 99, "top_k": -1, "min_p": 0.5,
        "frequency_penalty": 0.5, "presence_penalty": -0.25, "repeat_penalty": 1.5, "num_thread": 4, "stop": null });
    let body = json!({ "model": "scripted:latest", "prompt": "Hello?", "raw": true, "stream": false, "format": "json", "options": options, "keep_alive": 5 });
    let answer = host.post("/api/generate", &body);
    assert_eq!((answer.json()["response"].as_str(), answer.header("warning")), (Some("Good day."), None));
    let call = caller.seen().remove(0);
    let sampling = call.sampling;
    assert_eq!((sampling.temperature, sampling.seed, sampling.top_k, sampling.min_p), (0.0, 4, 0, 0.5));
    let penalties = (sampling.frequency_penalty, sampling.presence_penalty, sampling.repetition_penalty);
    assert_eq!(penalties, (0.5, -0.25, 1.5));
    assert_eq!((call.limits.max_output_tokens, call.prompt.as_bare()), (7, Some("Hello?")));
    assert_eq!(call.output_format, OutputFormat::Json(json!({ "type": "object" })));
    let stopped = json!({ "model": "scripted", "prompt": "a", "stream": false, "options": { "stop": ["."] } });
    assert_eq!(host.post("/api/generate", &stopped).json()["response"], "Good day");
    let plain = json!({ "model": "scripted", "prompt": "a", "stream": false, "options": null, "format": "", "suffix": "",
        "system": "", "images": [] });
    assert_eq!(host.post("/api/generate", &plain).status, 200);
    let call = caller.seen().pop().expect("a call");
    assert_eq!((call.sampling.temperature, call.sampling.top_k), (0.8, 40), "Ollama's defaults");
    assert_eq!(call.prompt.messages().len(), 1, "an empty system prompt is none");
}

#[test]
fn a_suffix_is_what_is_behind_the_place_to_fill() {
    let caller = Arc::new(script());
    let host = Host::with(Arc::clone(&caller) as Arc<dyn Caller>, |_| {});
    let body = json!({ "model": "scripted", "prompt": "fn add(", "suffix": ") {}", "stream": false,
        "options": { "num_predict": 5 } });
    assert_eq!(host.post("/api/generate", &body).json()["response"], "Good day.");
    let call = caller.seen().pop().expect("a call");
    assert_eq!((call.prompt.as_bare(), call.prompt.suffix()), (Some("fn add("), Some(") {}")));
    let mut thinks = body;
    thinks["think"] = json!(true);
    assert!(host.post("/api/generate", &thinks).refused_plainly(400).contains("omit `think` or `suffix`"));
}

#[test]
fn what_is_ignored_is_named_in_a_warning() {
    let host = Host::new(script());
    let generate = |more: Value| {
        let mut body = json!({ "model": "scripted", "prompt": "a", "stream": false });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        let answer = host.post("/api/generate", &body);
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.warning().to_owned()
    };
    assert_eq!(
        generate(json!({ "debug": true, "options": { "mirostat": 2 } })),
        "ignored fields: debug, options.mirostat"
    );
    let beyond = generate(json!({ "options": { "num_ctx": 131_072 } }));
    assert_eq!(beyond, "num_ctx 131072: the context of scripted has 8192 tokens");
    assert_eq!(
        generate(json!({ "prompt": "", "keep_alive": "0s" })),
        "models that the server was started with stay loaded"
    );
    let message = json!({ "role": "user", "content": "?", "sent": 5 });
    let chat = host.post("/api/chat", &json!({ "model": "scripted", "messages": [message], "stream": false }));
    assert_eq!((chat.status, chat.warning()), (200, "ignored fields: messages[0].sent"));
}

#[test]
fn a_request_without_a_prompt_loads_or_unloads() {
    let host = Host::new(script());
    let reason = |path: &str, body: Value| host.post(path, &body).json()["done_reason"].take();
    assert_eq!(reason("/api/generate", json!({ "model": "scripted" })), "load");
    assert_eq!(reason("/api/generate", json!({ "model": "scripted", "keep_alive": -1 })), "load");
    assert_eq!(reason("/api/generate", json!({ "model": "scripted", "keep_alive": 0 })), "unload");
    assert_eq!(reason("/api/chat", json!({ "model": "scripted", "messages": [] })), "load");
    assert_eq!(reason("/api/chat", json!({ "model": "scripted", "keep_alive": 0 })), "unload");
    host.post("/api/generate", &json!({ "model": "none" })).refused_plainly(404);
}

#[test]
fn thoughts_are_apart_and_only_of_models_that_think() {
    let host = Host::new(described());
    let message = json!([{ "role": "user", "content": "Hello?" }]);
    let chat = |think: Value, stream: bool| {
        host.post("/api/chat", &json!({ "model": "small", "messages": message, "stream": stream, "think": think }))
    };
    let whole = chat(json!(true), false).json();
    assert_eq!(whole["message"], json!({ "role": "assistant", "content": "Good day.", "thinking": "It is morning." }));
    let streamed = lines(&chat(json!("low"), true).text);
    assert_eq!(
        (&streamed[0]["message"]["thinking"], streamed[2]["message"].get("thinking")),
        (&json!("It is morning."), None)
    );
    assert!(chat(json!(false), false).json()["message"].get("thinking").is_none());
    let generated = json!({ "model": "small", "prompt": "Hello?", "stream": false, "think": "high" });
    assert_eq!(host.post("/api/generate", &generated).json()["thinking"], "It is morning.");
    assert!(chat(json!("much"), false).refused_plainly(400).contains("\"high\""));
    let body = json!({ "model": "scripted", "messages": message, "think": true });
    let unable = Host::new(script()).post("/api/chat", &body).refused_plainly(400);
    assert_eq!(unable, "\"scripted\" does not support thinking");
}

#[test]
fn log_probabilities_are_of_the_top_level() {
    let host = Host::new(script());
    let mut body = json!({ "model": "scripted", "prompt": "a", "stream": false, "logprobs": true, "top_logprobs": 1 });
    let entry = json!({ "token": "Good", "logprob": 0.0, "bytes": [71, 111, 111, 100] });
    let mut first = entry.clone();
    first["top_logprobs"] = json!([entry]);
    let whole = host.post("/api/generate", &body).json();
    assert_eq!((&whole["logprobs"][0], whole["logprobs"].as_array().map(Vec::len)), (&first, Some(3)));
    body["stream"] = true.into();
    let streamed = lines(&host.post("/api/generate", &body).text);
    assert_eq!((&streamed[0]["logprobs"], streamed[1].get("logprobs")), (&whole["logprobs"], None), "with their text");
    body["logprobs"] = false.into();
    host.post("/api/generate", &body).refused_plainly(400);
}

#[test]
fn tools_are_called_and_their_results_read() {
    let caller =
        Arc::new(Scripted::new(CONTEXT_TOKENS).tools("ollama", "I look.", &[("look", r#"{"at":1}"#), ("hear", "{}")]));
    let host = Host::with(caller.clone(), |_| {});
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name, "description": "", "parameters": { "type": "object" } } });
    let call = |name: &str| json!({ "function": { "index": 0, "name": name, "arguments": { "at": 1 } } });
    let messages = json!([
        { "role": "user", "content": "Look." },
        { "role": "assistant", "content": "", "tool_calls": [call("look"), call("hear")] },
        { "role": "tool", "content": "a sound", "tool_name": "hear" },
        { "role": "tool", "content": "a wall" },
    ]);
    let ask = |stream: bool| {
        let tools = [tool("look"), tool("hear")];
        host.post("/api/chat", &json!({ "model": "scripted", "messages": messages, "tools": tools, "stream": stream }))
    };
    let whole = ask(false).json()["message"].take();
    let functions = [
        json!({ "index": 0, "name": "look", "arguments": { "at": 1 } }),
        json!({ "index": 1, "name": "hear", "arguments": {} }),
    ];
    assert_eq!(whole["content"], "I look.");
    assert_eq!([0usize, 1].map(|at| whole["tool_calls"][at]["function"].clone()), functions);
    let streamed = lines(&ask(true).text);
    let [text, one, other, end] = &streamed[..] else { panic!("{streamed:?}") };
    assert_eq!((&text["message"]["content"], &end["done_reason"]), (&json!("I look."), &json!("stop")));
    let sent = [one, other].map(|line| line["message"]["tool_calls"].as_array().expect("calls").clone());
    assert_eq!(sent.each_ref().map(Vec::len), [1, 1], "clients read one call of an object");
    assert_eq!(sent.each_ref().map(|calls| calls[0]["function"].clone()), functions);
    let calls = [&whole["tool_calls"][0], &whole["tool_calls"][1], &sent[0][0], &sent[1][0]];
    let ids: HashSet<&str> = calls.map(|call| call["id"].as_str().expect("an id")).into();
    assert_eq!(ids.len(), 4, "also in another reply");

    let prompt = &caller.seen()[0].prompt;
    assert_eq!(prompt.tools().len(), 2);
    let results: Vec<(String, Option<String>)> = prompt.messages()[2..]
        .iter()
        .map(|turn| turn.result_of.clone().map_or_else(Default::default, |call| (call.id, call.name)))
        .collect();
    assert_eq!(
        results,
        [("call-1".to_owned(), Some("hear".to_owned())), ("call-0".to_owned(), Some("look".to_owned()))]
    );
}

#[test]
fn a_last_message_of_the_assistant_is_continued() {
    let caller = Arc::new(Scripted::new(CONTEXT_TOKENS).answer("ollama", " one."));
    let host = Host::with(caller.clone(), |_| {});
    let chat = |messages: Value, more: Value| {
        let mut body = json!({ "model": "scripted", "messages": messages, "stream": false });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        host.post("/api/chat", &body)
    };
    let user = json!({ "role": "user", "content": "Which?" });
    let said = |content: &str| json!({ "role": "assistant", "content": content });
    let check = |messages: Value, want: (&str, usize)| {
        let answer = chat(messages, json!({ "format": "", "think": false })).json();
        assert_eq!(answer["message"]["content"], " one.", "it is not repeated");
        let prompt = caller.seen().pop().expect("a call").prompt;
        assert_eq!((prompt.reply_start(), prompt.messages().len()), want);
    };
    check(json!([user, said("The red")]), ("The red", 1));
    check(json!([said("The red"), user]), ("", 2));
    check(json!([user, said("")]), ("", 1));
    check(json!([said("")]), ("", 1));
    let thought = json!({ "role": "assistant", "content": "The red", "thinking": "Hm." });
    check(json!([user, thought]), ("", 2));
    for (more, field) in [(json!({ "format": "json" }), "`format`"), (json!({ "think": true }), "`think`")] {
        let refused = chat(json!([user, said("The red")]), more).refused_plainly(400);
        assert!(refused.contains("continues the last message") && refused.contains(field), "{refused}");
    }
    assert_eq!(chat(json!([user, said("")]), json!({ "format": "json" })).status, 200, "nothing is continued");
}

#[test]
fn parameters_of_several_types_are_read_as_the_python_client_writes_them() {
    let caller = Arc::new(script());
    let host = Host::with(caller.clone(), |_| {});
    let properties = json!({ "at": { "type": "integer, string", "description": "" }, "how": { "type": "string" } });
    let parameters = json!({ "type": "object", "required": ["at"], "properties": properties });
    let tool = json!({ "type": "function", "function": { "name": "look", "parameters": parameters } });
    let message = json!({ "role": "user", "content": "Look." });
    let body = json!({ "model": "scripted", "messages": [message], "tools": [tool], "stream": false });
    assert_eq!(host.post("/api/chat", &body).status, 200);
    let read = caller.seen()[0].prompt.tools()[0].schema()["properties"].take();
    assert_eq!((&read["at"]["type"], &read["how"]["type"]), (&json!(["integer", "string"]), &json!("string")));
}

#[test]
fn errors_are_plain_texts() {
    let host = Host::new(script());
    let generate = |more: Value, status: u16| {
        let mut body = json!({ "model": "scripted", "prompt": "a", "stream": false });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        host.post("/api/generate", &body).refused_plainly(status)
    };
    assert_eq!(generate(json!({ "model": "none" }), 404), "model 'none' not found");
    assert!(generate(json!({ "images": ["iVBORw0K"] }), 400).contains("scripted reads text only"));
    assert!(generate(json!({ "context": [1, 2] }), 400).contains("`context` is not supported"));
    assert!(generate(json!({ "format": 5 }), 400).contains("`format` is `json` or a JSON schema"));
    assert!(
        generate(json!({ "format": "json", "options": { "stop": "." } }), 400).contains("`stop` ends free text only")
    );
    assert!(generate(json!({ "options": { "stop": vec!["a"; 65] } }), 400).contains("`options.stop` has 65 strings"));
    assert!(generate(json!({ "options": { "repeat_penalty": 0 } }), 400).contains("options.repeat_penalty"));
    assert!(generate(json!({ "options": { "num_predict": 9000 } }), 400).contains("9000"));
    let chat = |message: Value, tools: Value| {
        let body = json!({ "model": "scripted", "messages": [message], "stream": false, "tools": tools });
        host.post("/api/chat", &body)
    };
    let tool = json!({ "type": "function", "function": { "name": "no name", "parameters": {} } });
    let refused = chat(json!({ "role": "user", "content": "Hello?" }), json!([tool])).refused_plainly(400);
    assert!(refused.contains("`no name` cannot name a tool"), "{refused}");
    chat(json!({ "role": "user", "images": ["iVBORw0K"] }), json!([])).refused_plainly(400);
    assert_eq!(chat(json!({ "role": "user", "content": "?", "images": [] }), Value::Null).status, 200);
    assert_eq!(chat(json!({ "role": "assistant", "content": null, "tool_calls": null }), Value::Null).status, 200);
    let call = json!({ "function": { "name": "look", "arguments": null } });
    assert_eq!(chat(json!({ "role": "assistant", "tool_calls": [call] }), Value::Null).status, 200);
    host.get("/api/none").refused_plainly(404);
    host.get("/api/chat").refused_plainly(405);
    host.send("POST", "/api/chat", &[("content-type", "application/json")], "{").refused_plainly(400);
    host.post("/v1/completions", &json!({ "model": "none", "prompt": "a" })).refused(404, "model_not_found");
}

#[test]
fn vectors_are_truncated_and_shortened_as_by_ollama() {
    let host = Host::new(script());
    let embed = |more: Value| {
        let mut body = json!({ "model": "letters" });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        host.post("/api/embed", &body)
    };
    let sizes = |answer: &Value| -> Vec<usize> {
        let vectors = answer["embeddings"].as_array().expect("vectors");
        vectors.iter().map(|vector| vector.as_array().map_or(0, Vec::len)).collect()
    };
    assert_eq!(sizes(&embed(json!({ "input": ["a", "b"] })).json()), [26, 26]);
    assert_eq!(sizes(&embed(json!({ "input": "a", "dimensions": 3, "model": "letters:latest" })).json()), [3]);
    assert_eq!(sizes(&embed(json!({ "input": "" })).json()), [0; 0]);
    assert_eq!(sizes(&embed(json!({ "input": [] })).json()), [0; 0]);
    embed(json!({ "input": vec!["a"; 2049] })).refused_plainly(400);
    let long = "b ".repeat(70);
    let cut = embed(json!({ "input": [long, "a"], "options": { "num_ctx": 9 }, "keep_alive": "5m" }));
    assert_eq!(cut.json()["prompt_eval_count"], 69);
    assert_eq!(cut.warning(), "1 of 2 texts were truncated to 64 tokens");
    // The scripted embedder refuses nothing; a real one does.
    let whole = embed(json!({ "input": long, "truncate": false }));
    assert_eq!((&whole.json()["prompt_eval_count"], whole.header("warning")), (&json!(72), None));
    assert!(embed(json!({ "input": "a", "dimensions": 27 })).refused_plainly(400).contains("26 dimensions"));
    embed(json!({ "model": "scripted", "input": "a" })).refused_plainly(404);
    let one = |prompt: &str| {
        let answer = host.post("/api/embeddings", &json!({ "model": "letters", "prompt": prompt })).json();
        answer["embedding"].as_array().map(Vec::len)
    };
    assert_eq!((one("abba"), one("")), (Some(26), Some(0)));
}

#[test]
fn models_are_listed_and_shown() {
    let host = Host::new(described());
    let details = json!({ "parent_model": "", "format": "gguf", "family": "llama", "families": ["llama"],
        "parameter_size": "134.52M", "quantization_level": "Q4_1" });
    let mut model = json!({ "name": "small:q4_1", "model": "small:q4_1", "modified_at": "2000-02-29T00:00:00Z",
        "size": 1234, "digest": "ab".repeat(32), "details": details, "capabilities": ["completion", "tools", "insert", "thinking"] });
    let tags = host.get("/api/tags").json();
    assert_eq!(tags["models"][0], model);
    assert_eq!(
        (&tags["models"][1]["name"], &tags["models"][1]["capabilities"]),
        (&json!("letters:latest"), &json!(["embedding"]))
    );
    model["expires_at"] = "9999-12-31T23:59:59Z".into();
    (model["size_vram"], model["context_length"]) = (0.into(), CONTEXT_TOKENS.into());
    assert_eq!(host.get("/api/ps").json()["models"][0], model);
    for body in [json!({ "model": "small" }), json!({ "name": "small:q4_1", "model": "", "verbose": true })] {
        let shown = host.post("/api/show", &body).json();
        assert_eq!((&shown["details"], &shown["template"]), (&details, &json!(TEMPLATE)));
        assert_eq!(shown["capabilities"], json!(["completion", "tools", "insert", "thinking"]));
        assert_eq!(
            (&shown["model_info"]["llama.context_length"], &shown["parameters"]),
            (&json!(8192), &json!("num_ctx 8192"))
        );
    }
    let embedder = host.post("/api/show", &json!({ "model": "letters" })).json();
    assert_eq!(
        (&embedder["model_info"]["unknown.embedding_length"], &embedder["capabilities"]),
        (&json!(26), &json!(["embedding"]))
    );
    assert_eq!(host.post("/api/show", &json!({ "model": "none" })).refused_plainly(404), "model 'none' not found");
    host.post("/api/show", &json!({})).refused_plainly(400);
    assert!(host.get("/api/version").json()["version"].is_string());
}

#[test]
fn a_loaded_model_is_pulled_and_without_a_shelf_no_other() {
    let host = Host::new(described());
    let pulled = host.post("/api/pull", &json!({ "model": "small" }));
    assert_eq!(pulled.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(Value::from(lines(&pulled.text)), json!([{ "status": "pulling manifest" }, { "status": "success" }]));
    assert_eq!(
        host.post("/api/pull", &json!({ "name": "small", "stream": false })).json(),
        json!({ "status": "success" })
    );
    host.post("/api/pull", &json!({ "model": "large", "stream": false })).refused_plainly(404);
    host.post("/api/create", &json!({ "model": "mine", "from": "small" })).refused_plainly(404);
    host.post("/api/copy", &json!({ "source": "small", "destination": "mine" })).refused_plainly(404);
}

#[test]
fn programs_read_that_ollama_runs_and_browsers_get_the_page() {
    let host = Host::new(script());
    let root = |accept: &str| host.send("GET", "/", &[("accept", accept)], "");
    assert_eq!((root("*/*").status, root("*/*").text.as_str()), (200, "Ollama is running"));
    assert_eq!(host.get("/").text, "Ollama is running");
    let head = host.send("HEAD", "/", &[], "");
    assert_eq!((head.status, head.text.as_str()), (200, ""));
    let page = root("text/html,application/xhtml+xml,*/*;q=0.8");
    assert!(page.text.contains("<title>memlocal</title>"));
    assert_eq!((page.header("vary"), root("*/*").header("vary")), (Some("accept"), Some("accept")));
}
