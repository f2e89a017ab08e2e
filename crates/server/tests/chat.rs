//! POST /v1/chat/completions and the models that serve it.

use std::sync::Arc;

use calls::{CallError, OutputFormat, Scripted};
use serde_json::{Value, json};

use crate::host::{CONTEXT_TOKENS, Host, says};

fn hello() -> Value {
    json!({ "model": "scripted", "messages": [{ "role": "user", "content": "Hello?" }] })
}

/// `hello` with more fields.
fn with(more: Value) -> Value {
    let mut body = hello();
    more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
    body
}

#[test]
fn an_answer_has_every_field_that_clients_read() {
    let host = Host::new(says("Good day."));
    let answer = host.post("/v1/chat/completions", &hello());
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let answer = answer.json();
    assert_eq!(answer["object"], "chat.completion");
    assert!(answer["id"].as_str().is_some_and(|id| id.starts_with("chatcmpl-")) && answer["created"].is_u64());
    assert_eq!(answer["model"], "scripted");
    let message = json!({ "role": "assistant", "content": "Good day.", "refusal": null });
    assert_eq!(
        answer["choices"],
        json!([{ "index": 0, "message": message, "logprobs": null, "finish_reason": "stop" }])
    );
    // <user> Hello? as words of the script; three output tokens.
    let usage = json!({ "prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8, "prompt_tokens_details": { "cached_tokens": 0 } });
    assert_eq!(answer["usage"], usage);
}

#[test]
fn messages_become_turns() {
    let caller = Arc::new(says("Yes."));
    let host = Host::with(caller.clone(), |_| {});
    let messages = json!([
        { "role": "developer", "content": "Be brief." },
        { "role": "user", "content": [{ "type": "text", "text": "One" }, { "type": "text", "text": "two" }], "name": "ann" },
        { "role": "assistant", "content": null, "refusal": null, "annotations": [], "audio": null, "function_call": null,
          "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{}" } }] },
        { "role": "tool", "content": "Three.", "tool_call_id": "c1" },
        { "role": "user", "content": "Is it?" },
    ]);
    assert_eq!(host.post("/v1/chat/completions", &with(json!({ "messages": messages }))).status, 200);
    let turns: Vec<(String, String)> = caller.seen()[0]
        .prompt
        .messages()
        .into_iter()
        .map(|turn| (turn.role.as_str().to_owned(), turn.content))
        .collect();
    let want =
        [("system", "Be brief."), ("user", "One\ntwo"), ("assistant", ""), ("tool", "Three."), ("user", "Is it?")];
    assert_eq!(turns, want.map(|(role, text)| (role.to_owned(), text.to_owned())));
}

#[test]
fn no_part_of_a_message_is_dropped_silently() {
    let caller = Arc::new(says("Yes."));
    let host = Host::with(caller.clone(), |_| {});
    let ask = |message: Value| {
        let messages = json!([message, { "role": "user", "content": "Is it?" }]);
        host.post("/v1/chat/completions", &with(json!({ "messages": messages })))
    };
    let call = json!({ "name": "look", "arguments": "{}" });
    for (field, value) in [("function_call", call), ("audio", json!({ "id": "a" }))] {
        let mut message = json!({ "role": "assistant", "content": null });
        message[field] = value;
        let refused = ask(message).refused(400, "invalid_value");
        assert_eq!(refused, format!("`messages[0].{field}` is not supported here"));
    }
    assert_eq!(ask(json!({ "role": "assistant", "content": null, "refusal": "I do not." })).status, 200);
    assert_eq!(caller.seen().pop().expect("a call").prompt.messages()[0].content, "I do not.");
    let options = json!({ "stream": true, "stream_options": { "include_usage": null } });
    assert_eq!(host.post("/v1/chat/completions", &with(options)).status, 200, "null is an absent field");
    let stored = host.post("/v1/chat/completions", &with(json!({ "store": true })));
    assert_eq!((stored.status, stored.warning()), (200, "`store` has no effect: chat completions are not kept"));
}

#[test]
fn every_field_reaches_the_call() {
    let caller = Arc::new(says("{}"));
    let host = Host::with(caller.clone(), |_| {});
    let body = with(json!({ "temperature": 0.5, "top_p": 0.9, "top_k": 7, "min_p": 0.1, "seed": -1, "max_tokens": 9,
        "frequency_penalty": 0.5, "presence_penalty": -1, "repetition_penalty": 1.25, "logit_bias": { "5": -100, "77": 2.5 },
        "response_format": { "type": "json_object" }, "user": "ann", "metadata": {}, "store": false, "n": null }));
    assert_eq!(host.post("/v1/chat/completions", &body).status, 200);
    let call = caller.seen().remove(0);
    let sampling = call.sampling;
    let penalties = (sampling.frequency_penalty, sampling.presence_penalty, sampling.repetition_penalty);
    assert_eq!((penalties, sampling.logit_bias), ((0.5, -1.0, 1.25), [(5, -100.0), (77, 2.5)].into()));
    assert_eq!(
        (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p, sampling.seed),
        (0.5, 0.9, 7, 0.1, u64::MAX)
    );
    assert_eq!(
        (call.limits.max_output_tokens, call.output_format),
        (9, OutputFormat::Json(json!({ "type": "object" })))
    );

    let schema = json!({ "type": "object", "properties": { "a": { "type": "boolean" } } });
    let named = json!({ "type": "json_schema", "json_schema": { "name": "a", "strict": true, "schema": schema } });
    for (number, format) in [named, json!({ "type": "json_object", "schema": schema })].into_iter().enumerate() {
        let body = with(json!({ "response_format": format, "max_completion_tokens": 5 }));
        assert_eq!(host.post("/v1/chat/completions", &body).status, 200);
        let call = caller.seen().remove(1 + number);
        assert_eq!(
            (call.output_format, call.limits.max_output_tokens, call.sampling.temperature),
            (OutputFormat::Json(schema.clone()), 5, 1.0)
        );
    }
}

/// Without a limit in the request, a reply may fill the context up to the server's default.
#[test]
fn the_default_output_limit_is_what_the_context_leaves() {
    let check = |context_tokens: usize, want: usize| {
        let caller = Arc::new(Scripted::new(context_tokens).answer("chat", "Yes."));
        let host = Host::with(caller.clone(), |_| {});
        assert_eq!(host.post("/v1/chat/completions", &hello()).status, 200);
        assert_eq!(caller.seen()[0].limits.max_output_tokens, want, "{context_tokens}");
    };
    check(100, 95);
    check(CONTEXT_TOKENS, 1024);
}

#[test]
fn choices_have_their_own_seeds_and_share_one_prompt() {
    let caller =
        Arc::new(Scripted::new(CONTEXT_TOKENS).answer("chat", "One.").answer("chat", "Two.").answer("chat", "Three."));
    let host = Host::with(caller.clone(), |_| {});
    let answer = host.post("/v1/chat/completions", &with(json!({ "n": 3, "seed": 5 }))).json();
    let texts: Vec<&Value> =
        answer["choices"].as_array().expect("choices").iter().map(|choice| &choice["message"]["content"]).collect();
    assert_eq!(texts, ["One.", "Two.", "Three."]);
    assert_eq!(caller.seen().iter().map(|call| call.sampling.seed).collect::<Vec<_>>(), [5, 6, 7]);
    assert_eq!((&answer["usage"]["prompt_tokens"], &answer["usage"]["completion_tokens"]), (&json!(5), &json!(6)));
}

#[test]
fn stop_strings_and_logprobs() {
    let host = Host::new(says("One two. END three"));
    // As many as Continue sends.
    let stop = json!(["\n\n", "/src/", "```", "<|endoftext|>", "<|fim_prefix|>", "END"]);
    let body = with(json!({ "stop": stop, "logprobs": true, "top_logprobs": 2 }));
    let choice = host.post("/v1/chat/completions", &body).json()["choices"][0].take();
    assert_eq!((&choice["message"]["content"], &choice["finish_reason"]), (&json!("One two. "), &json!("stop")));
    let first = json!({ "token": "One", "logprob": 0.0, "bytes": [79, 110, 101], "top_logprobs": [{ "token": "One", "logprob": 0.0, "bytes": [79, 110, 101] }] });
    assert_eq!(choice["logprobs"]["content"][0], first);
    assert_eq!(choice["logprobs"]["content"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_model_thinks_if_it_is_asked_to() {
    let check = |more: Value, thinking_tokens: usize, output_tokens: usize| {
        let caller = Arc::new(Scripted::new(CONTEXT_TOKENS).thought("chat", "Hm.", "Yes."));
        let host = Host::with(caller.clone(), |_| {});
        let message = host.post("/v1/chat/completions", &with(more.clone())).json()["choices"][0]["message"].take();
        assert_eq!(message["content"], "Yes.", "{more}");
        let thought = if thinking_tokens > 0 { json!("Hm.") } else { Value::Null };
        assert_eq!(message["reasoning_content"], thought, "{more}");
        let call = caller.seen().remove(0);
        let limits = (call.limits.thinking_tokens, call.limits.max_output_tokens);
        assert_eq!(limits, (thinking_tokens, output_tokens), "{more}");
    };
    check(json!({}), 0, 1024);
    check(json!({ "reasoning_effort": "none" }), 0, 1024);
    check(json!({ "reasoning_effort": "minimal" }), 512, 1024);
    check(json!({ "reasoning_effort": "high" }), (CONTEXT_TOKENS - 5) / 2, 1024);
    check(json!({ "reasoning_effort": "low", "max_tokens": 100 }), 50, 50);
    check(json!({ "chat_template_kwargs": { "enable_thinking": true }, "max_tokens": 60 }), 30, 30);
    let off = json!({ "enable_thinking": false });
    check(json!({ "chat_template_kwargs": off, "reasoning_effort": "low", "max_tokens": 60 }), 0, 60);
}

#[test]
fn variables_reach_the_template() {
    let caller = Arc::new(says("Yes."));
    let host = Host::with(caller.clone(), |_| {});
    let body = with(json!({ "chat_template_kwargs": { "date_string": "1 May 2026" } }));
    assert_eq!(host.post("/v1/chat/completions", &body).status, 200);
    assert_eq!(caller.seen()[0].prompt.variables()["date_string"], "1 May 2026");
}

#[test]
fn unknown_fields_of_messages_and_tools_are_named_in_a_warning() {
    let caller = Arc::new(says("Yes."));
    let host = Host::with(caller.clone(), |_| {});
    let mark = json!({ "type": "ephemeral" });
    let messages = json!([
        { "role": "user", "content": [{ "type": "text", "text": "One?", "cache_control": mark }] },
        { "role": "assistant", "content": "One.", "provider_specific_fields": null, "thinking_blocks": [mark] },
        { "role": "user", "content": "Two?" },
    ]);
    let tools = json!([{ "type": "function", "function": { "name": "look", "eager": true }, "cache_control": mark }]);
    let answer = host.post("/v1/chat/completions", &with(json!({ "messages": messages, "tools": tools })));
    assert_eq!(
        (answer.status, answer.warning()),
        (
            200,
            "ignored fields: tools[0].cache_control, tools[0].function.eager, messages[0].content[0].cache_control, \
             messages[1].thinking_blocks"
        )
    );
    let prompt = caller.seen().remove(0).prompt;
    assert_eq!((prompt.messages()[0].content.as_str(), prompt.tools()[0].name.as_str()), ("One?", "look"));
    let begun = json!([{ "role": "user", "content": "One?" }, { "role": "assistant", "content": "O", "prefix": true }]);
    let refused = host.post("/v1/chat/completions", &with(json!({ "messages": begun })));
    assert_eq!(refused.refused(400, "invalid_value"), "`messages[1].prefix` is not supported here");
}

#[test]
fn a_last_message_of_the_assistant_is_continued_on_request() {
    let messages = json!([{ "role": "user", "content": "Which?" }, { "role": "assistant", "content": "The red" }]);
    let body = |mut more: Value| {
        more["messages"] = messages.clone();
        with(more)
    };
    let check = |more: Value, want: (&str, usize)| {
        let caller = Arc::new(says(" one."));
        let host = Host::with(caller.clone(), |_| {});
        let answer = host.post("/v1/chat/completions", &body(more.clone())).json();
        assert_eq!(answer["choices"][0]["message"]["content"], " one.", "it is not repeated");
        let prompt = caller.seen().remove(0).prompt;
        assert_eq!((prompt.reply_start(), prompt.messages().len()), want, "{more}");
    };
    for more in [
        json!({ "continue_final_message": true }),
        json!({ "add_generation_prompt": false }),
        json!({ "continue_final_message": true, "add_generation_prompt": false }),
    ] {
        check(more, ("The red", 1));
    }
    for more in [
        json!({}),
        json!({ "continue_final_message": false }),
        json!({ "add_generation_prompt": true }),
        json!({ "continue_final_message": false, "add_generation_prompt": true }),
    ] {
        check(more, ("", 2));
    }
    let host = Host::new(says("{}"));
    let refused = |body: Value, says: &str| {
        let answer = host.post("/v1/chat/completions", &body);
        let message = answer.refused(400, "invalid_value");
        assert!(message.contains(says), "{message}");
        assert_eq!(answer.json()["error"]["param"], "continue_final_message");
    };
    refused(with(json!({ "continue_final_message": true })), "needs a last message of the assistant");
    refused(body(json!({ "continue_final_message": true, "add_generation_prompt": true })), "must not be equal");
    let in_json = json!({ "response_format": { "type": "json_object" } });
    for mut more in [in_json.clone(), json!({ "reasoning_effort": "low" })] {
        more["continue_final_message"] = true.into();
        refused(body(more), "is free text without a thought");
    }
    assert_eq!(host.post("/v1/chat/completions", &body(in_json)).status, 200);
}

#[test]
fn unsupported_fields_are_refused() {
    let host = Host::new(says("Yes."));
    let check = |more: Value, param: &str, says: &str| {
        let answer = host.post("/v1/chat/completions", &with(more.clone()));
        let message = answer.refused(400, "invalid_value");
        assert!(message.contains(says), "{more}: {message}");
        assert_eq!(
            answer.json()["error"]["param"],
            if param.is_empty() { Value::Null } else { param.into() },
            "{more}"
        );
    };
    check(json!({ "temperature": 3 }), "temperature", "0 to 2");
    check(json!({ "temperature": "hot" }), "temperature", "expected a number");
    check(json!({ "top_p": -1 }), "top_p", "0 to 1");
    check(json!({ "n": 0 }), "n", "1 to 128");
    check(json!({ "max_tokens": 0 }), "max_tokens", "at least 1");
    check(json!({ "stop": vec!["a"; 65] }), "stop", "at most 64");
    check(json!({ "stop": ["a", ""] }), "stop", "must not be empty");
    check(json!({ "stop": 5 }), "stop", "a string or an array of strings");
    check(json!({ "stop": "a", "response_format": { "type": "json_object" } }), "stop", "free text only");
    check(json!({ "reasoning_effort": "vast" }), "reasoning_effort", "unknown variant `vast`");
    check(json!({ "chat_template_kwargs": { "tools": [] } }), "chat_template_kwargs", "cannot set `tools`");
    check(json!({ "chat_template_kwargs": { "enable_thinking": 1 } }), "chat_template_kwargs", "true or false");
    check(json!({ "presence_penalty": 2.5 }), "presence_penalty", "-2 to 2");
    check(json!({ "frequency_penalty": -3 }), "frequency_penalty", "-2 to 2");
    check(json!({ "repetition_penalty": 0 }), "repetition_penalty", "0.01 to 100");
    check(json!({ "logit_bias": { "sea": 1 } }), "logit_bias", "`sea` is not an id");
    check(json!({ "logit_bias": { "5": 101 } }), "logit_bias", "token 5 must be -100 to 100");
    check(json!({ "logit_bias": { "5": "1" } }), "logit_bias", "token 5 must be -100 to 100");
    let biases: serde_json::Map<_, _> = (0..1025).map(|token| (token.to_string(), json!(1))).collect();
    check(json!({ "logit_bias": biases }), "logit_bias", "has 1025 tokens; at most 1024");
    check(json!({ "top_logprobs": 2 }), "top_logprobs", "needs `logprobs`");
    check(json!({ "stream_options": { "include_usage": true } }), "stream_options", "needs `stream`");
    check(json!({ "messages": [] }), "messages", "needs messages");
    check(json!({ "messages": [{ "role": "king", "content": "" }] }), "messages[0].role", "unknown variant `king`");
    check(
        json!({ "messages": [{ "role": "user", "content": [{ "type": "image_url", "image_url": {} }] }] }),
        "messages[0]",
        "expected a string or an array",
    );
    check(json!({ "response_format": { "type": "xml" } }), "response_format.type", "unknown variant `xml`");
    check(json!({ "guided_regex": "a+" }), "guided_regex", "`guided_regex` is not supported here");
}

#[test]
fn over_long_input_is_refused_with_both_numbers() {
    let host = Host::new(Scripted::new(100).answer("chat", "Yes."));
    for stream in [false, true] {
        let message = json!([{ "role": "user", "content": "word ".repeat(200) }]);
        let answer = host
            .post("/v1/chat/completions", &with(json!({ "messages": message, "max_tokens": 10, "stream": stream })));
        let message = answer.refused(400, "context_length_exceeded");
        let numbers: Vec<usize> =
            message.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
        assert_eq!(numbers, [203, 10, 100], "{message}");
    }
}

#[test]
fn failures_of_the_server_have_their_status() {
    let check = |error: CallError, status: u16, code: &str| {
        let host = Host::new(Scripted::new(CONTEXT_TOKENS).fail("chat", error));
        for stream in [false, true] {
            let answer = host.post("/v1/chat/completions", &with(json!({ "stream": stream })));
            answer.refused(status, code);
            assert_eq!(answer.header("retry-after").is_some(), matches!(status, 429 | 503));
        }
    };
    check(CallError::Overloaded { queued: 9 }, 429, "overloaded");
    check(CallError::Closed, 503, "stopping");
    check(CallError::OutputFormat { step: "chat", reason: "no".into() }, 400, "invalid_schema");
    let template = CallError::Template { step: "chat", model: "m".into(), reason: "roles must alternate".into() };
    check(template, 400, "invalid_messages");
    check(CallError::Failed { step: "chat", reason: "no".into() }, 500, "internal");
}

#[test]
fn models_are_listed_and_others_are_unknown() {
    let host = Host::new(says("Yes."));
    let list = host.get("/v1/models").json();
    let ids: Vec<&Value> = list["data"].as_array().expect("data").iter().map(|model| &model["id"]).collect();
    assert_eq!((ids, &list["object"]), (vec![&json!("scripted"), &json!("letters")], &json!("list")));
    assert_eq!(host.get("/v1/models/scripted").json()["object"], "model");
    host.get("/v1/models/gpt-9").refused(404, "model_not_found");
    let message = host.post("/v1/chat/completions", &with(json!({ "model": "gpt-9" }))).refused(404, "model_not_found");
    assert!(message.contains("`gpt-9`"), "{message}");
    host.post("/v1/chat/completions", &with(json!({ "model": "letters" }))).refused(404, "model_not_found");
}

#[test]
fn log_probabilities_have_a_range_and_each_model_its_work() {
    let host = Host::new(says("Yes."));
    let messages = json!([{ "role": "user", "content": "?" }]);
    let chat = |model: &str, top: usize| {
        let body = json!({ "model": model, "messages": messages, "logprobs": true, "top_logprobs": top });
        host.post("/v1/chat/completions", &body)
    };
    assert_eq!(chat("scripted", 21).refused(400, "invalid_value"), "`top_logprobs` must be 0 to 20");
    let refused = chat("letters", 1).refused(404, "model_not_found");
    assert_eq!(refused, "the model `letters` embeds texts and writes none");
    let completion = json!({ "model": "scripted", "prompt": "?", "logprobs": 6 });
    let refused = host.post("/v1/completions", &completion).refused(400, "invalid_value");
    assert_eq!(refused, "`logprobs` must be 0 to 5");
    let embedding = host.post("/v1/embeddings", &json!({ "model": "scripted", "input": "a" }));
    let refused = embedding.refused(404, "model_not_found");
    assert_eq!(refused, "the model `scripted` writes texts and embeds none; `letters` does");
}
