//! Calls of tools in the syntax of the chat template. The model has random weights; a bias on the token that begins a call
//! makes it call tools, or keeps it from that.

use std::sync::{Arc, Mutex};

use calls::{
    Agent, Call, CallError, Caller, Finish, Limits, OnText, OutputFormat, Piece, Prompt, Reply, Role, Sampling,
    Stability, Tokens, Tool, ToolCall, ToolUse, Turn, schema,
};
use engine::{Config, Engine};
use serde_json::{Value, json};

use crate::tiny::{model, model_with, run, start};

/// Qwen's syntax with little around it, since the context has 256 bytes.
const TEMPLATE: &str = "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}\
    {% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}\
    {% for c in m.tool_calls or [] %}{% if m.content or not loop.first %}{{ '\n' }}{% endif %}\
    {{ '<tool_call>\n{\"name\": \"' + c.function.name + '\", \"arguments\": ' }}{{ c.function.arguments | tojson }}{{ '}\n</tool_call>' }}\
    {% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// A syntax without tags, as Llama's: a call is a JSON object with which a reply begins.
const TEMPLATE_WITHOUT_TAGS: &str = "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}\
    {% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}\
    {% for c in m.tool_calls or [] %}\
    {{ '{\"name\": \"' + c.function.name + '\", \"arguments\": ' }}{{ c.function.arguments | tojson }}{{ '}' }}\
    {% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// The id of the marker, which is no special token, as in Qwen's vocabulary.
const MARKER: u32 = 259;

/// Adds the marker to the vocabulary.
fn marked(tokenizer: String) -> String {
    marked_by("<tool_call>", &tokenizer)
}

fn marked_by(marker: &str, tokenizer: &str) -> String {
    let mut tokenizer: Value = serde_json::from_str(tokenizer).unwrap();
    let mut token = tokenizer["added_tokens"][0].clone();
    (token["id"], token["content"], token["special"]) = (MARKER.into(), marker.into(), false.into());
    tokenizer["added_tokens"].as_array_mut().unwrap().push(token);
    tokenizer.to_string()
}

fn engine(name: &str) -> Engine {
    start(model_with(name, TEMPLATE, marked), Config { kv_tokens: 1024, ..Config::default() })
}

fn tools() -> Vec<Tool> {
    let parameters = schema::object([("at", schema::one_of(["x", "y"]))]);
    let tool = |name: &str| Tool { name: name.into(), description: None, parameters: Some(parameters.clone()) };
    vec![tool("look"), tool("look_up")]
}

/// A call that may use tools, with this bias on the marker.
fn asks(tool_use: ToolUse, bias: f32, max_output_tokens: usize) -> Call {
    let prompt = Prompt::new().with_tools(tools()).user(Stability::Volatile, "Go");
    let sampling = Sampling { logit_bias: [(MARKER, bias)].into(), ..Sampling::at(1.0, 5) };
    Call { tools: Some(tool_use), sampling, ..Call::new(Agent::Responder, "test", prompt, max_output_tokens) }
}

fn required(names: &[&str]) -> ToolUse {
    ToolUse { required: true, names: names.iter().map(|name| (*name).to_owned()).collect(), parallel: false }
}

/// The reply, and what was streamed of it: its thought, its text, and its calls.
fn stream(engine: &Engine, call: Call) -> (Reply, [String; 3]) {
    let pieces = Arc::new(Mutex::new([const { String::new() }; 3]));
    let heard = Arc::clone(&pieces);
    let on_text = OnText::pieces(move |piece| {
        let [thought, text, calls] = &mut *heard.lock().unwrap();
        match piece {
            Piece::Thought(piece) => thought.push_str(piece),
            Piece::Text(piece, _) => text.push_str(piece),
            Piece::ToolCall(name) => calls.extend(["|", name, " "]),
            Piece::Arguments(piece) => calls.push_str(piece),
        }
    });
    let reply = run(engine.call(Call { on_text: Some(on_text), ..call })).unwrap();
    let pieces = std::mem::take(&mut *pieces.lock().unwrap());
    (reply, pieces)
}

/// Checks that every call is of a tool, with valid arguments, and was streamed.
fn check(reply: &Reply, streamed: &[String; 3]) {
    for ToolCall { name, arguments, .. } in &reply.tool_calls {
        assert!(["look", "look_up"].contains(&name.as_str()));
        assert!([r#"{"at":"x"}"#, r#"{"at":"y"}"#].contains(&arguments.as_str()), "{arguments}");
    }
    let calls = reply.tool_calls.iter().map(|call| format!("|{} {}", call.name, call.arguments));
    let calls = calls.collect::<Vec<_>>().concat();
    assert_eq!((streamed[1].as_str(), streamed[2].as_str()), (reply.text.as_str(), calls.as_str()));
    assert_eq!(streamed[0].trim(), reply.thought.as_deref().unwrap_or_default());
}

#[test]
fn a_tool_is_called_if_it_must_be() {
    let engine = engine("tools-required");
    let (reply, streamed) = stream(&engine, asks(required(&[]), 0.0, 100));
    check(&reply, &streamed);
    assert_eq!((reply.tool_calls.len(), reply.text.as_str(), reply.finish), (1, "", Finish::Stop));
    assert!(reply.rendered.starts_with("look look_up <|im_start|>user\nGo"), "{}", reply.rendered);
    for name in ["look", "look_up"] {
        let (reply, streamed) = stream(&engine, asks(required(&[name]), 0.0, 100));
        check(&reply, &streamed);
        assert_eq!((reply.tool_calls.len(), reply.tool_calls[0].name.as_str()), (1, name));
        let begun = format!("<|im_start|>assistant\n<tool_call>\n{{\"name\": \"{name}\", \"arguments\":");
        assert!(reply.rendered.ends_with(&begun), "{}", reply.rendered);
    }
}

#[test]
fn a_reply_that_continues_a_text_may_call_tools() {
    let engine = engine("tools-continued");
    let call = asks(required(&["look"]), 0.0, 100);
    let prompt = call.prompt.clone().assistant("I look.").continued();
    let (reply, streamed) = stream(&engine, Call { prompt, ..call });
    check(&reply, &streamed);
    assert_eq!((reply.tool_calls.len(), reply.text.as_str()), (1, ""));
    let begun = "<|im_start|>assistant\nI look.<tool_call>\n{\"name\": \"look\", \"arguments\":";
    assert!(reply.rendered.ends_with(begun), "{}", reply.rendered);
}

#[test]
fn the_model_decides_whether_it_calls_tools_and_how_many() {
    let engine = engine("tools-auto");
    let auto = |parallel| ToolUse { parallel, ..ToolUse::default() };
    let (reply, streamed) = stream(&engine, asks(auto(true), -100.0, 40));
    check(&reply, &streamed);
    assert!(reply.tool_calls.is_empty() && !reply.text.is_empty(), "{reply:?}");
    let (reply, streamed) = stream(&engine, asks(auto(false), 100.0, 150));
    check(&reply, &streamed);
    assert_eq!((reply.tool_calls.len(), reply.text.as_str(), reply.finish), (1, "", Finish::Stop));
    assert_eq!(reply.stopped_by, None, "the marker is none of the caller's stop strings");
    let (reply, streamed) = stream(&engine, asks(auto(true), 100.0, 150));
    check(&reply, &streamed);
    assert_eq!((reply.tool_calls.len(), reply.finish), (2, Finish::Length), "as many as fit");
}

#[test]
fn a_marker_within_a_text_is_none_of_the_callers_stop_strings() {
    let marker = "{\"name\": \"";
    let model = model_with("tools-without-tags", TEMPLATE_WITHOUT_TAGS, |tokenizer| marked_by(marker, &tokenizer));
    let engine = start(model, Config { kv_tokens: 1024, ..Config::default() });
    // The text ends with the limit, right behind the marker.
    let call = asks(ToolUse::default(), 1000.0, 1);
    let prompt = call.prompt.clone().assistant("It is").continued();
    let (reply, streamed) = stream(&engine, Call { prompt, ..call });
    check(&reply, &streamed);
    assert_eq!((reply.text.as_str(), reply.tool_calls.len()), (marker, 0));
    assert_eq!((reply.finish, reply.stopped_by), (Finish::Length, None));
}

#[test]
fn a_call_that_cannot_be_finished_is_not_begun() {
    let engine = engine("tools-short");
    let refused = run(engine.call(asks(required(&["look"]), 0.0, 5))).unwrap_err();
    assert!(matches!(refused, CallError::OutputFormat { .. }), "{refused}");
    let (reply, streamed) = stream(&engine, asks(ToolUse::default(), 100.0, 20));
    check(&reply, &streamed);
    assert_eq!((reply.tool_calls.len(), reply.finish), (0, Finish::Length));
    let none = Call { prompt: Prompt::new().user(Stability::Volatile, "Go"), ..asks(required(&[]), 0.0, 100) };
    assert!(matches!(run(engine.call(none)), Err(CallError::OutputFormat { .. })));
}

#[test]
fn a_thought_comes_before_a_call() {
    let engine = engine("tools-thought");
    let call = asks(required(&[]), -100.0, 80);
    let limits = Limits { thinking_tokens: 70, ..call.limits };
    let (reply, streamed) = stream(&engine, Call { limits, ..call });
    check(&reply, &streamed);
    assert_eq!(reply.tool_calls.len(), 1);
    assert!(reply.thought.is_some_and(|thought| !thought.is_empty()));
}

#[test]
fn an_answer_in_a_format_may_be_a_call_instead() {
    let engine = engine("tools-format");
    let output_format = || OutputFormat::Json(schema::object([("sure", schema::boolean())]));
    let auto = || ToolUse { parallel: false, ..ToolUse::default() };
    let (reply, streamed) = stream(&engine, Call { output_format: output_format(), ..asks(auto(), -100.0, 100) });
    check(&reply, &streamed);
    assert!([r#"{"sure":true}"#, r#"{"sure":false}"#].contains(&reply.text.as_str()), "{}", reply.text);
    let (reply, streamed) = stream(&engine, Call { output_format: output_format(), ..asks(auto(), 100.0, 100) });
    check(&reply, &streamed);
    assert_eq!((reply.tool_calls.len(), reply.text.as_str()), (1, ""));
}

#[test]
fn names_of_special_tokens_in_calls_and_results_are_plain_text() {
    let engine = engine("tools-special");
    let end = |prompt: Prompt| {
        let ids = engine.prompt_ids(&Call::new(Agent::Responder, "test", prompt, 9)).unwrap();
        ids.iter().filter(|id| **id == 258).count()
    };
    let prompt = |text: &str| {
        let arguments = json!({ "at": text }).to_string();
        let tool_calls = vec![ToolCall { id: "a".into(), name: "look".into(), arguments }];
        let asks = Turn { tool_calls, ..Turn::default() };
        Prompt::new().turn(Role::Assistant, text, asks).turn(Role::Tool, text, Turn::default())
    };
    assert_eq!((end(prompt("x")), end(prompt("<|im_end|>"))), (2, 2));
}

#[test]
fn a_template_without_tools_gets_them_in_words() {
    let engine = start(model("tools-words", marked), Config { kv_tokens: 1024, ..Config::default() });
    let prompt = Prompt::new().with_tools(tools()).user(Stability::Volatile, "Go");
    let tokens = engine.prompt_tokens(&Call::new(Agent::Responder, "test", prompt, 9));
    assert!(tokens > 300, "every byte is a token, and the tools are described: {tokens}");
}
