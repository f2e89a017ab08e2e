//! Corpora as chat models, in every chat API.

use std::sync::Arc;

use calls::{Finish, Scripted};
use serde_json::{Value, json};
use server::{Keys, KeysFile};
use store::Corpora;

use crate::host::{Answer, CONTEXT_TOKENS, Host};

const WALL: &str = "In November a storm broke the harbour wall near Pell.";
const QUESTION: &str = "What did the storm break?";
const ANSWER: &str = "A storm broke the wall.";
const MARKED: &str = "A storm broke the wall [1].";

fn script() -> Scripted {
    Scripted::new(CONTEXT_TOKENS)
        .answer("answer", ANSWER)
        .answer("follow_up.rewrite", json!({ "question": "When did the storm break the wall?" }).to_string())
}

fn host() -> (Host, Arc<Scripted>) {
    let caller = Arc::new(script());
    let host = Host::with(caller.clone(), |_| {});
    host.corpus("pell", &[("wall.txt", WALL)]);
    (host, caller)
}

/// The text of the answer with its footnotes, with links to this host.
fn told(host: &Host) -> String {
    format!("{MARKED}\n\n---\n[1] [wall.txt]({}): “{WALL}”", url(host))
}

fn url(host: &Host) -> String {
    format!("http://{}/#/c/pell/sources/1/0-{}", host.address, WALL.len())
}

fn asks(model: &str, more: Value) -> Value {
    let mut body = json!({ "model": model, "messages": [{ "role": "user", "content": QUESTION }] });
    more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
    body
}

fn chat(host: &Host, model: &str, more: Value) -> Answer {
    host.post("/v1/chat/completions", &asks(model, more))
}

fn lines(answer: &Answer) -> Vec<Value> {
    answer.text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// The calls of a step, as prompts.
fn prompts(caller: &Scripted, step: &str) -> Vec<String> {
    let calls = caller.seen().into_iter().filter(|call| call.step == step);
    calls.map(|call| call.prompt.messages().iter().map(|message| message.content.clone()).collect()).collect()
}

#[test]
fn every_corpus_is_listed_with_its_depths() {
    let (host, _) = host();
    assert_eq!(host.post("/v1/corpora", &json!({ "name": "uber-pell", "title": "Über Pell" })).status, 201);
    let models = host.get("/v1/models").json();
    let fields = |list: &Value, name: &str| -> Vec<String> {
        let all = list.as_array().expect("a list").iter();
        all.map(|model| model[name].as_str().unwrap_or_default().to_owned()).collect()
    };
    let deep = |name: &str, end: &str| {
        ["", ":quick", ":thorough", ":whole"]
            .map(|depth| if depth.is_empty() { format!("{name}{end}") } else { format!("{name}{depth}") })
    };
    let ids = fields(&models["data"], "id");
    assert_eq!(
        ids,
        [vec!["scripted".to_owned(), "letters".to_owned()], deep("pell", "").to_vec(), deep("uber-pell", "").to_vec()]
            .concat()
    );
    assert_eq!(fields(&models["data"], "display_name")[6..8], ["Über Pell", "Über Pell (Quick)"]);
    assert_eq!((&models["first_id"], &models["last_id"]), (&json!("scripted"), &json!("uber-pell:whole")));
    let one = host.get("/v1/models/uber-pell:quick").json();
    assert_eq!((&one["name"], &one["max_model_len"]), (&json!("Über Pell (Quick)"), &json!(CONTEXT_TOKENS)));
    assert_eq!((&one["corpus"], models["data"][0].get("corpus")), (&json!("uber-pell"), None));
    host.get("/v1/models/pell:deep").refused(404, "model_not_found");

    let tags = host.get("/api/tags").json();
    assert_eq!(fields(&tags["models"], "model")[2..6], deep("pell", ":latest"));
    let tag = &tags["models"][2];
    assert_eq!((&tag["details"]["family"], tag["digest"].as_str().map(str::len)), (&json!("memlocal"), Some(64)));
    assert_ne!(tag["digest"], tags["models"][3]["digest"]);
    let shown = host.post("/api/show", &json!({ "model": "pell:latest" })).json();
    assert_eq!(shown["model_info"]["memlocal.context_length"], CONTEXT_TOKENS);
    assert_eq!(shown["capabilities"], json!(["completion", "thinking"]));
    assert_eq!(host.get("/api/ps").json()["models"].as_array().map(Vec::len), Some(2), "a corpus is not in memory");

    assert_eq!(host.delete("/v1/corpora/pell").status, 204);
    assert!(!host.get("/v1/models").text.contains("\"pell\""));
}

#[test]
fn a_corpus_does_not_shadow_a_model() {
    let host = Host::new(script().answer("chat", "I am the model."));
    // As the command line makes it, which does not know the models of a server.
    drop(Corpora::new(host.folder.path()).create("scripted").expect("it is new"));
    let text = json!({ "name": "wall.txt", "text": WALL, "method": "rag" });
    assert_eq!(host.ended(&host.post("/v1/corpora/scripted/documents", &text).json())["status"], "done");
    let ids = host.get("/v1/models").json();
    let same = ids["data"].as_array().expect("data").iter().filter(|model| model["id"] == "scripted").count();
    assert_eq!(same, 1);
    let answer = chat(&host, "scripted", json!({})).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "I am the model.");
    let answer = chat(&host, "scripted:quick", json!({})).json();
    assert!(answer["choices"][0]["message"]["content"].as_str().is_some_and(|text| text.starts_with(MARKED)));
}

#[test]
fn chat_completions_cite_the_documents() {
    let (host, _) = host();
    let answer = chat(&host, "pell:quick", json!({})).json();
    let choice = &answer["choices"][0];
    assert_eq!((&answer["model"], &choice["finish_reason"]), (&json!("pell:quick"), &json!("stop")));
    assert_eq!(choice["message"]["content"], told(&host));
    let citation = json!({ "start_index": 23, "end_index": 26, "url": url(&host), "title": "wall.txt" });
    assert_eq!(choice["message"]["annotations"], json!([{ "type": "url_citation", "url_citation": citation }]));
    let steps = choice["message"]["reasoning_content"].as_str().expect("steps");
    assert!(steps.contains("Searched ") && steps.contains("Wrote the answer"), "{steps}");
    assert!(answer["usage"]["prompt_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{answer}");

    let plain = chat(&host, "pell:quick", json!({ "footnotes": false })).json();
    assert_eq!(plain["choices"][0]["message"]["content"], MARKED);
    let stored = host.get("/v1/corpora/pell/threads").json();
    assert_eq!(stored["threads"], json!([]), "a chat is kept by its client");
}

#[test]
fn a_streamed_chat_has_its_steps_as_reasoning() {
    let (host, _) = host();
    let options = json!({ "stream": true, "stream_options": { "include_usage": true } });
    let answer = chat(&host, "pell:quick", options);
    assert!(answer.text.ends_with("data: [DONE]\n\n"), "{}", answer.text);
    let events: Vec<Value> = answer.events().into_iter().map(|(_, event)| event).collect();
    let deltas = |name: &str| -> Vec<&Value> {
        let all = events.iter().map(|event| &event["choices"][0]["delta"]);
        all.filter_map(|delta| delta.get(name)).collect()
    };
    assert!(deltas("reasoning_content").len() > 1, "{events:?}");
    assert_eq!(deltas("content"), [&json!(told(&host))]);
    assert_eq!(deltas("role"), [&json!("assistant")], "clients join the texts of deltas");
    assert!(events[0]["choices"][0]["delta"].get("role").is_some(), "{}", events[0]);
    assert_eq!(deltas("annotations")[0][0]["url_citation"]["title"], "wall.txt");
    let [.., end, usage] = &events[..] else { panic!("{events:?}") };
    assert_eq!(end["choices"][0]["finish_reason"], "stop");
    assert!(usage["choices"] == json!([]) && usage["usage"]["total_tokens"].is_u64(), "{usage}");
}

#[test]
fn follow_ups_are_understood_with_the_turns_before_them() {
    let (host, caller) = host();
    let messages = json!([
        { "role": "system", "content": "You are a pirate." },
        { "role": "user", "content": QUESTION },
        { "role": "assistant", "content": told(&host) },
        { "role": "user", "content": "When?" },
    ]);
    let answer = chat(&host, "pell:quick", json!({ "messages": messages })).json();
    let steps = answer["choices"][0]["message"]["reasoning_content"].as_str().expect("steps");
    assert!(steps.contains("Understood as: When did the storm break the wall?"), "{steps}");
    let rewrite = prompts(&caller, "follow_up.rewrite").remove(0);
    assert!(rewrite.contains(&format!("Q: {QUESTION}\nA: {ANSWER}")), "marks and footnotes are left out: {rewrite}");
    assert!(!rewrite.contains("pirate"), "{rewrite}");
    assert!(prompts(&caller, "answer")[0].contains("When did the storm break the wall?"));
}

#[test]
fn questions_about_the_chat_are_not_asked_of_the_corpus() {
    let host = Host::new(script().answer("chat", "A storm"));
    host.corpus("pell", &[("wall.txt", WALL)]);
    let task = json!([{ "role": "user", "content": "### Task:\nGenerate a title of the chat." }]);
    let answer = chat(&host, "pell", json!({ "messages": task })).json();
    let message = &answer["choices"][0]["message"];
    assert_eq!((&message["content"], &message["annotations"]), (&json!("A storm"), &json!([])));
}

#[test]
fn a_reply_about_the_chat_has_the_limit_and_the_end_of_the_model() {
    let caller = Arc::new((0..6).fold(script(), |script, _| script.ended("chat", "A", Finish::Length)));
    let host = Host::with(caller.clone(), |_| {});
    host.corpus("pell", &[("wall.txt", WALL)]);
    let task =
        json!([{ "role": "user", "content": "Your task is to reflect the speaker's likely facial expression." }]);
    let whole = chat(&host, "pell", json!({ "messages": task, "max_tokens": 4 }));
    assert_eq!((&whole.json()["choices"][0]["finish_reason"], whole.header("warning")), (&json!("length"), None));
    let streamed = chat(&host, "pell", json!({ "messages": task, "max_tokens": 5, "stream": true })).text;
    assert!(streamed.contains(r#""finish_reason":"length""#), "{streamed}");
    let body = json!({ "model": "pell", "messages": task, "stream": false, "options": { "num_predict": 6 } });
    assert_eq!(host.post("/api/chat", &body).json()["done_reason"], "length");
    let body = json!({ "model": "pell", "messages": task, "max_tokens": 7 });
    assert_eq!(host.post("/v1/messages", &body).json()["stop_reason"], "max_tokens");
    let respond = |most: usize, stream: bool| {
        let body = json!({ "model": "pell", "input": task, "max_output_tokens": most, "stream": stream });
        host.post("/v1/responses", &body)
    };
    let is_cut = |response: &Value| {
        assert_eq!(
            (&response["status"], &response["output"][0]["status"]),
            (&json!("incomplete"), &json!("incomplete"))
        );
        assert_eq!(response["incomplete_details"], json!({ "reason": "max_output_tokens" }));
    };
    let whole = respond(8, false);
    is_cut(&whole.json());
    assert_eq!(whole.header("warning"), None);
    let (name, last) = respond(9, true).events().pop().expect("an event");
    assert_eq!(name, "response.incomplete");
    is_cut(&last["response"]);
    let limits: Vec<usize> = caller.seen().iter().map(|call| call.limits.max_output_tokens).collect();
    assert_eq!(limits, [4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_question_behind_attached_texts_is_asked_of_the_corpus() {
    let (host, caller) = host();
    let attached = "### Task:\nRespond to the user query using the provided context.\n\n<context>\n\
                    <source id=\"1\" name=\"cheese.txt\">Cheddar.</source>\n</context>\n\n";
    let messages = json!([{ "role": "user", "content": format!("{attached}{QUESTION}") }]);
    let message = chat(&host, "pell:quick", json!({ "messages": messages })).json()["choices"][0]["message"].take();
    assert_eq!(message["content"], told(&host));
    let steps = message["reasoning_content"].as_str().expect("steps");
    assert!(steps.starts_with("Left out: the texts that were attached to the question\n"), "{steps}");
    assert!(prompts(&caller, "answer").iter().all(|prompt| !prompt.contains("Cheddar")));
}

#[test]
fn fields_that_answers_from_a_corpus_cannot_honour_are_refused_or_named() {
    let (host, _) = host();
    let refused = |more: Value, param: &str| {
        let answer = chat(&host, "pell", more);
        answer.refused(400, "invalid_value");
        assert_eq!(answer.json()["error"]["param"], param);
    };
    refused(json!({ "n": 2 }), "n");
    refused(json!({ "stop": ["."] }), "stop");
    refused(json!({ "logprobs": true }), "logprobs");
    refused(json!({ "response_format": { "type": "json_object" } }), "response_format");
    refused(json!({ "tool_choice": "required" }), "tool_choice");
    refused(json!({ "messages": [{ "role": "system", "content": "Hello." }] }), "messages");
    refused(json!({ "temperature": 3 }), "temperature");
    let tool = json!({ "type": "function", "function": { "name": "look" } });
    let unused = json!({ "tools": [tool], "max_tokens": 9, "top_p": 0.5, "frequency_penalty": 0, "temperature": 0.5 });
    let warning = "no effect on answers from a corpus: tools, max_tokens, top_p";
    assert_eq!(chat(&host, "pell:quick", unused).warning(), warning);
    let thinking = json!({ "reasoning_effort": "low", "chat_template_kwargs": { "enable_thinking": true } });
    let warning = "no effect on answers from a corpus: reasoning_effort, chat_template_kwargs";
    assert_eq!(chat(&host, "pell:quick", thinking).warning(), warning);
    assert_eq!(chat(&host, "pell:quick", json!({ "reasoning_effort": "none" })).header("warning"), None);
    let stored = chat(&host, "pell:quick", json!({ "store": true }));
    assert_eq!(stored.warning(), "`store` has no effect: chat completions are not kept");
    let respond = |more: Value| {
        let body = json!({ "model": "pell:quick", "input": QUESTION, "reasoning": more });
        host.post("/v1/responses", &body)
    };
    let warning = "no effect on answers from a corpus: reasoning";
    assert_eq!(respond(json!({ "effort": "high" })).warning(), warning);
    assert_eq!(respond(json!({ "effort": "none" })).header("warning"), None);
    let empty = host.post("/v1/corpora", &json!({ "name": "empty" }));
    assert_eq!(empty.status, 201);
    for stream in [false, true] {
        chat(&host, "empty", json!({ "stream": stream })).refused(409, "not_ready");
    }
    chat(&host, "none", json!({})).refused(404, "model_not_found");
    chat(&host, "pell:deep", json!({})).refused(404, "model_not_found");
    chat(&host, "../pell", json!({})).refused(404, "model_not_found");
}

#[test]
fn responses_have_both_kinds_of_citation() {
    let (host, _) = host();
    let body = json!({ "model": "pell:quick", "input": QUESTION });
    let answer = host.post("/v1/responses", &body).json();
    let [reasoning, message] = &answer["output"].as_array().expect("items")[..] else { panic!("{answer}") };
    assert_eq!((&reasoning["type"], &message["type"]), (&json!("reasoning"), &json!("message")));
    assert!(reasoning["summary"][0]["text"].as_str().is_some_and(|steps| steps.contains("Searched ")), "{reasoning}");
    let text = &message["content"][0];
    let annotations = json!([
        { "type": "url_citation", "start_index": 23, "end_index": 26, "url": url(&host), "title": "wall.txt" },
        { "type": "file_citation", "index": 23, "file_id": "pell/1", "filename": "wall.txt" },
    ]);
    assert_eq!((&text["text"], &text["annotations"]), (&json!(told(&host)), &annotations));

    let mut streamed = body;
    streamed["stream"] = true.into();
    let events = host.post("/v1/responses", &streamed).events();
    let of = |name: &str| -> Vec<&Value> {
        events.iter().filter(|(known, _)| known == &format!("response.{name}")).map(|(_, event)| event).collect()
    };
    assert!(of("reasoning_summary_text.delta").len() > 1, "{events:?}");
    assert_eq!(of("output_text.delta")[0]["delta"], told(&host));
    let added: Vec<&Value> = of("output_text.annotation.added").iter().map(|event| &event["annotation"]).collect();
    assert_eq!(added, [&annotations[0], &annotations[1]]);
    let last = &of("completed")[0]["response"];
    assert_eq!(last["output"][1]["content"][0]["annotations"], annotations);
    host.post(
        "/v1/responses",
        &json!({ "model": "pell", "input": "a", "text": { "format": { "type": "json_object" } } }),
    )
    .refused(400, "invalid_value");
}

#[test]
fn a_response_about_a_corpus_is_continued() {
    let (host, caller) = host();
    let first = host.post("/v1/responses", &json!({ "model": "pell:quick", "input": QUESTION })).json();
    let next = json!({ "model": "pell:quick", "input": "When?", "previous_response_id": first["id"] });
    assert_eq!(host.post("/v1/responses", &next).status, 200);
    let rewrite = prompts(&caller, "follow_up.rewrite").remove(0);
    assert!(rewrite.contains(&format!("Q: {QUESTION}\nA: {ANSWER}")), "{rewrite}");
}

#[test]
fn stored_responses_go_with_what_they_quote() {
    let (host, _) = host();
    let plain = script().answer("response", "Yes.");
    let folder = Arc::clone(&host.folder);
    drop(host);
    let host = Host::on(folder, Arc::new(plain), |_| {});
    let ask = |model: &str, previous: Option<&Value>| {
        let body = json!({ "model": model, "input": QUESTION, "previous_response_id": previous });
        let answer = host.post("/v1/responses", &body).json();
        answer["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let status = |id: &str| host.get(&format!("/v1/responses/{id}")).status;
    let other = ask("scripted", None);
    let quoting = ask("pell:quick", None);
    let continuing = ask("scripted", Some(&json!(quoting)));
    assert_eq!([&other, &quoting, &continuing].map(|id| status(id)), [200, 200, 200]);
    assert_eq!(host.delete("/v1/corpora/pell/documents/1").status, 204);
    assert_eq!([&other, &quoting, &continuing].map(|id| status(id)), [200, 404, 404]);

    host.corpus("cats", &[("cat.txt", "The storm broke the cat flap.")]);
    let quoting = ask("cats:quick", None);
    assert_eq!((host.delete("/v1/corpora/cats").status, status(&quoting), status(&other)), (204, 404, 200));
}

#[test]
fn ollamas_clients_get_footnotes_and_thoughts() {
    let (host, _) = host();
    let whole = host.post("/api/chat", &asks("pell:quick", json!({ "stream": false }))).json();
    assert_eq!((&whole["model"], &whole["done_reason"]), (&json!("pell:quick"), &json!("stop")));
    assert_eq!(whole["message"]["content"], told(&host));
    assert!(whole["message"]["thinking"].as_str().is_some_and(|steps| steps.contains("Searched ")), "{whole}");
    let quiet = host.post("/api/chat", &asks("pell:quick", json!({ "stream": false, "think": false }))).json();
    assert!(quiet["message"].get("thinking").is_none(), "{quiet}");

    let streamed = lines(&host.post("/api/chat", &asks("pell:quick", json!({}))));
    assert!(streamed[0]["message"]["thinking"].is_string(), "{streamed:?}");
    let text: String = streamed.iter().filter_map(|line| line["message"]["content"].as_str()).collect();
    assert_eq!((text, &streamed[streamed.len() - 1]["done"]), (told(&host), &json!(true)));

    let generated = json!({ "model": "pell:latest", "prompt": QUESTION, "stream": false, "options": { "num_predict": 3, "num_gpu": 1 } });
    let generated = host.post("/api/generate", &generated);
    assert_eq!(generated.json()["response"], told(&host));
    assert_eq!(generated.warning(), "no effect on answers from a corpus: options.num_predict");
    let load = host.post("/api/generate", &json!({ "model": "pell" })).json();
    assert_eq!((&load["model"], &load["done_reason"]), (&json!("pell"), &json!("load")));
    host.post("/api/chat", &asks("pell", json!({ "format": "json" }))).refused_plainly(400);
    host.post("/api/chat", &asks("pell", json!({ "options": { "stop": ["."] } }))).refused_plainly(400);
}

#[test]
fn anthropics_clients_get_citations_and_thoughts() {
    let (host, _) = host();
    let ask = |more: Value| {
        let mut body = asks("pell:quick", json!({ "max_tokens": 100 }));
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        host.post("/v1/messages", &body)
    };
    let citation = json!({ "type": "char_location", "cited_text": WALL, "document_index": 0, "document_title": "wall.txt",
        "start_char_index": 0, "end_char_index": WALL.len(), "file_id": "pell/1" });
    let whole = ask(json!({})).json();
    assert_eq!(whole["content"], json!([{ "type": "text", "text": told(&host), "citations": [citation] }]));
    assert_eq!(whole["stop_reason"], "end_turn");
    let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": 50 } });
    let thought = ask(thinking.clone()).json();
    assert_eq!((&thought["content"][0]["type"], &thought["content"][1]), (&json!("thinking"), &whole["content"][0]));

    let mut streamed = thinking;
    streamed["stream"] = true.into();
    let events = ask(streamed).events();
    let deltas: Vec<&Value> =
        events.iter().filter(|(name, _)| name == "content_block_delta").map(|(_, event)| &event["delta"]).collect();
    let [.., text, cited] = &deltas[..] else { panic!("{events:?}") };
    assert_eq!(deltas[0]["type"], "thinking_delta");
    assert_eq!(
        (&text["text"], *cited),
        (&json!(told(&host)), &json!({ "type": "citations_delta", "citation": citation }))
    );
    assert_eq!(events.last().map(|(name, _)| name.as_str()), Some("message_stop"));
    let counted = host.post("/v1/messages/count_tokens", &asks("pell", json!({}))).json();
    assert!(counted["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{counted}");
    let input = json!({ "model": "pell", "input": "Did the wall break?" });
    let counted = host.post("/v1/responses/input_tokens", &input).json();
    assert!(counted["input_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{counted}");
    let begun =
        json!({ "messages": [{ "role": "user", "content": "Did it?" }, { "role": "assistant", "content": "It" }] });
    assert!(ask(begun).text.contains("must not be the assistant's"));
    let refused = ask(json!({ "tools": [{ "name": "look" }], "tool_choice": { "type": "any" } }));
    assert_eq!((refused.status, &refused.json()["error"]["type"]), (400, &json!("invalid_request_error")));
}

#[test]
fn fields_of_messages_that_have_no_effect_on_answers_from_a_corpus_are_named() {
    let (host, _) = host();
    let ask = |more: Value| {
        let mut body = asks("pell:quick", json!({ "max_tokens": 100 }));
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        host.post("/v1/messages", &body)
    };
    let warning = "no effect on answers from a corpus: tools, top_p, top_k, output_config.effort";
    for stream in [false, true] {
        let unused = json!({ "stream": stream, "tools": [{ "name": "look" }], "top_p": 0.5, "top_k": 3,
            "output_config": { "effort": "high" } });
        let answer = ask(unused);
        assert_eq!((answer.status, answer.warning()), (200, warning), "{}", answer.text);
    }
    let without_effect =
        json!({ "temperature": 0.5, "tools": [], "top_p": 1, "top_k": 0, "metadata": { "user_id": "ann" } });
    assert_eq!(ask(without_effect).header("warning"), None);
}

#[test]
fn a_key_sees_its_own_corpora_only() {
    let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
    let file = folder.path().join("keys");
    let [ann, bob] = ["ann", "bob"].map(|name| format!("Bearer {}", Keys::add(&file, name).expect("a name")));
    let keys = KeysFile::open(&file).expect("it reads back");
    let host = Host::with(Arc::new(script().answer("response", "Yes.")), |config| config.keys = Some(keys));
    let send = |method: &str, path: &str, key: &str, body: Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        host.send(method, path, &[("authorization", key), ("content-type", "application/json")], &body)
    };
    assert_eq!(send("POST", "/v1/corpora", &ann, json!({ "name": "diary" })).status, 201);
    let lists =
        |key: &str| ["/v1/models", "/api/tags"].map(|path| send("GET", path, key, Value::Null).text.contains("diary"));
    assert_eq!((lists(&ann), lists(&bob)), ([true, true], [false, false]));
    let body = asks("diary", json!({ "max_tokens": 9 }));
    for path in ["/v1/chat/completions", "/api/chat", "/v1/messages"] {
        assert_eq!([&ann, &bob].map(|key| send("POST", path, key, body.clone()).status), [409, 404], "{path}");
    }
    let body = json!({ "model": "diary", "input": "a" });
    assert_eq!(send("POST", "/v1/responses", &bob, body).status, 404);
    assert_eq!(send("POST", "/api/show", &bob, json!({ "model": "diary" })).status, 404);

    let kept = send("POST", "/v1/responses", &ann, json!({ "model": "scripted", "input": "a" })).json();
    let path = format!("/v1/responses/{}", kept["id"].as_str().expect("an id"));
    assert_eq!([&ann, &bob].map(|key| send("GET", &path, key, Value::Null).status), [200, 404]);
    let next = json!({ "model": "scripted", "input": "b", "previous_response_id": kept["id"] });
    assert_eq!([&ann, &bob].map(|key| send("POST", "/v1/responses", key, next.clone()).status), [200, 400]);
    let item = json!({ "type": "item_reference", "id": kept["output"][0]["id"] });
    let refers = json!({ "model": "scripted", "input": [item, { "role": "user", "content": "b" }] });
    let count = |key: &String| send("POST", "/v1/responses/input_tokens", key, refers.clone()).status;
    assert_eq!([&ann, &bob].map(count), [200, 404]);
    assert_eq!([&bob, &ann].map(|key| send("DELETE", &path, key, Value::Null).status), [404, 200]);
}
