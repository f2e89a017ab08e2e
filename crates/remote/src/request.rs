//! Converts a call to a request body: OpenAI's chat completions, or completions for a bare prompt.

use calls::{Call, CallError, Message, Sampling, Tool};
use serde_json::{Map, Value, json};

use crate::form::response_format;

/// The body to post, and its resource.
#[derive(Debug)]
pub(crate) struct Request {
    pub resource: &'static str,
    pub body: String,
}

impl Request {
    /// # Errors
    /// [`CallError::Unsupported`] for options that such endpoints do not have.
    pub fn of(call: &Call, model: &str) -> Result<Request, CallError> {
        let unsupported = |what: &str| CallError::Unsupported { step: call.step, what: what.to_owned() };
        if call.limits.min_output_tokens > 0 {
            return Err(unsupported("answers of a least length"));
        }
        if call.logprobs.is_some() {
            return Err(unsupported("log-probabilities"));
        }
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("model", model.into());
        let bare = call.prompt.as_bare();
        match (bare, response_format(call)) {
            (Some(_), Some(_)) => return Err(unsupported("a form for a prompt without a chat")),
            (Some(text), None) => {
                put("prompt", text.into());
                if let Some(suffix) = call.prompt.suffix() {
                    put("suffix", suffix.into());
                }
            }
            (None, format) => {
                let mut messages: Vec<Value> = call.prompt.messages().iter().map(Message::for_openai).collect();
                let mut variables = call.prompt.variables().clone();
                let start = call.prompt.reply_start();
                if !start.is_empty() {
                    if format.is_some() || call.limits.thinking_tokens > 0 {
                        return Err(unsupported("a form or a thought for a reply that continues a text"));
                    }
                    messages.push(json!({ "role": "assistant", "content": start }));
                    // vLLM and SGLang need the first two fields; llama-server continues the last message without them,
                    // but only if the model does not think.
                    put("continue_final_message", true.into());
                    put("add_generation_prompt", false.into());
                    variables.entry("enable_thinking").or_insert(false.into());
                }
                put("messages", messages.into());
                if !variables.is_empty() {
                    put("chat_template_kwargs", variables.into());
                }
                use_tools(call, &mut put);
                if let Some(format) = format {
                    put("response_format", format);
                }
            }
        }
        put("max_tokens", call.limits.reply_tokens().into());
        put("stream", true.into());
        put("stream_options", json!({ "include_usage": true }));
        if !call.stop.is_empty() {
            put("stop", json!(call.stop));
        }
        let Sampling { temperature, top_p, top_k, min_p, seed, .. } = call.sampling;
        put("temperature", json!(temperature));
        adjust(&call.sampling, &mut put);
        if temperature > 0.0 {
            put("top_p", json!(top_p));
            // All endpoints accept seeds of 63 bits.
            put("seed", (seed & i64::MAX.cast_unsigned()).into());
            // These two are extensions, so they are sent only where they have an effect.
            if top_k > 0 {
                put("top_k", top_k.into());
            }
            if min_p > 0.0 {
                put("min_p", json!(min_p));
            }
        }
        let resource = if bare.is_some() { "completions" } else { "chat/completions" };
        Ok(Request { resource, body: Value::Object(body).to_string() })
    }
}

/// Puts the tools of the prompt and how they may be used. Tools that must not be called are not described: few endpoints
/// accept a list of allowed ones.
fn use_tools(call: &Call, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
    let tools = call.prompt.tools();
    if tools.is_empty() {
        return;
    }
    let Some(tool_use) = &call.tools else {
        put("tools", tools.iter().map(Tool::definition).collect());
        put("tool_choice", "none".into());
        return;
    };
    let allowed: Vec<&Tool> = tools.iter().filter(|tool| tool_use.allows(tool)).collect();
    put("tools", allowed.iter().map(|tool| tool.definition()).collect());
    put("parallel_tool_calls", tool_use.parallel.into());
    let choice = match (&allowed[..], tool_use.required) {
        (_, false) => "auto".into(),
        ([one], true) => json!({ "type": "function", "function": { "name": one.name } }),
        (_, true) => "required".into(),
    };
    put("tool_choice", choice);
}

/// Puts penalties and biases that have an effect; `repetition_penalty` is an extension of OpenAI's API.
fn adjust(sampling: &Sampling, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
    let Sampling { frequency_penalty, presence_penalty, repetition_penalty, ref logit_bias, .. } = *sampling;
    let penalties = [
        ("frequency_penalty", frequency_penalty, 0.0),
        ("presence_penalty", presence_penalty, 0.0),
        ("repetition_penalty", repetition_penalty, 1.0),
    ];
    for (name, penalty, none) in penalties {
        if penalty != none {
            put(name, json!(penalty));
        }
    }
    if !logit_bias.is_empty() {
        put("logit_bias", json!(logit_bias));
    }
}

/// The prompt as far as it is known here: the endpoint applies the template.
pub(crate) fn rendered(call: &Call) -> String {
    if let Some(text) = call.prompt.as_bare() {
        return text.to_owned() + call.prompt.suffix().unwrap_or_default();
    }
    let turn = |message: Message| {
        let calls = message.tool_calls.iter().map(|call| format!("{} {}\n", call.name, call.arguments));
        format!("<{}>\n{}\n{}", message.role.as_str(), message.content, calls.collect::<String>())
    };
    let tools = call.prompt.tools().iter().map(|tool| format!("{}\n", tool.definition()));
    let start = call.prompt.reply_start();
    let start = (!start.is_empty()).then(|| format!("<assistant>\n{start}"));
    tools.chain(call.prompt.messages().into_iter().map(turn)).chain(start).collect()
}

#[cfg(test)]
mod tests {
    use calls::{Agent, Limits, OutputFormat, Prompt, ResultOf, Role, Stability, ToolCall, ToolUse, Turn};

    use super::*;

    fn asked() -> Call {
        Call::new(Agent::Judge, "a.b", Prompt::new().system("Be short.").user(Stability::Volatile, "Why?"), 20)
    }

    #[test]
    fn calls_become_requests() {
        let check = |call: Call, resource: &str, want: Value| {
            let request = Request::of(&call, "m").expect("it can be asked for");
            let body: Value = serde_json::from_str(&request.body).expect("a body is JSON");
            assert_eq!((request.resource, body), (resource, want));
        };
        let messages = json!([{ "role": "system", "content": "Be short." }, { "role": "user", "content": "Why?" }]);
        let options = json!({ "include_usage": true });
        let greedy = json!({ "model": "m", "messages": messages, "max_tokens": 20, "stream": true,
            "stream_options": options, "temperature": 0.0 });
        check(asked(), "chat/completions", greedy);
        let sampling = Sampling { top_k: 5, ..Sampling::at(0.5, u64::MAX) };
        let drawn = json!({ "model": "m", "messages": messages, "max_tokens": 20, "stream": true,
            "stream_options": options, "stop": ["."], "temperature": 0.5, "top_p": 1.0, "seed": i64::MAX, "top_k": 5 });
        check(Call { sampling, stop: vec![".".into()], ..asked() }, "chat/completions", drawn);
        let sampling = Sampling {
            frequency_penalty: 0.5,
            presence_penalty: -0.5,
            repetition_penalty: 1.5,
            logit_bias: [(7, -100.0)].into(),
            ..Sampling::GREEDY
        };
        let adjusted = json!({ "model": "m", "messages": messages, "max_tokens": 20, "stream": true,
            "stream_options": options, "temperature": 0.0, "frequency_penalty": 0.5, "presence_penalty": -0.5,
            "repetition_penalty": 1.5, "logit_bias": { "7": -100.0 } });
        check(Call { sampling, ..asked() }, "chat/completions", adjusted);
        let bare = json!({ "model": "m", "prompt": "One,", "max_tokens": 20, "stream": true,
            "stream_options": options, "temperature": 0.0 });
        check(Call { prompt: Prompt::bare("One,"), ..asked() }, "completions", bare);
        let thinking = json!({ "model": "m", "messages": messages, "max_tokens": 52, "stream": true,
            "stream_options": options, "temperature": 0.0 });
        let limits = Limits { thinking_tokens: 32, ..asked().limits };
        check(Call { limits, ..asked() }, "chat/completions", thinking);
        let choice = Call { output_format: OutputFormat::Choice(vec!["yes".into()]), ..asked() };
        let body: Value = serde_json::from_str(&Request::of(&choice, "m").expect("a choice").body).expect("JSON");
        let schema = json!({ "type": "string", "enum": ["yes"] });
        let format =
            json!({ "type": "json_schema", "json_schema": { "name": "a_b", "strict": true, "schema": schema } });
        assert_eq!(body["response_format"], format);
    }

    #[test]
    fn tools_are_sent_as_openai_messages() {
        let tool =
            |name: &str| Tool { name: name.into(), description: None, parameters: Some(json!({ "type": "object" })) };
        let look = ToolCall { id: "c1".into(), name: "look".into(), arguments: "{\"at\":1}".into() };
        let result_of = Some(ResultOf { id: "c1".into(), name: None });
        let prompt = Prompt::new()
            .with_tools(vec![tool("look"), tool("paint")])
            .user(Stability::Volatile, "Why?")
            .turn(Role::Assistant, "", Turn { tool_calls: vec![look], ..Turn::default() })
            .turn(Role::Tool, "Red.", Turn { result_of, ..Turn::default() });
        let body = |tools: Option<ToolUse>| -> Value {
            let call = Call { prompt: prompt.clone(), tools, ..asked() };
            serde_json::from_str(&Request::of(&call, "m").expect("it can be asked for").body).expect("JSON")
        };
        let sent = body(Some(ToolUse { required: false, names: Vec::new(), parallel: true }));
        let function = json!({ "name": "look", "arguments": "{\"at\":1}" });
        let calls = json!([{ "id": "c1", "type": "function", "function": function }]);
        assert_eq!(sent["messages"][1], json!({ "role": "assistant", "content": null, "tool_calls": calls }));
        assert_eq!(sent["messages"][2], json!({ "role": "tool", "content": "Red.", "tool_call_id": "c1" }));
        assert_eq!(
            (sent["tools"].as_array().map(Vec::len), &sent["tools"][1]["function"]["name"]),
            (Some(2), &json!("paint"))
        );
        assert_eq!((&sent["tool_choice"], &sent["parallel_tool_calls"]), (&json!("auto"), &json!(true)));
        let sent = body(Some(ToolUse { required: true, names: vec!["paint".into()], parallel: false }));
        assert_eq!(sent["tool_choice"], json!({ "type": "function", "function": { "name": "paint" } }));
        assert_eq!(sent["tools"].as_array().map(Vec::len), Some(1));
        assert_eq!(body(None)["tool_choice"], "none");
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused() {
        let check = |call: Call| {
            let refused = Request::of(&call, "m").expect_err("it is refused");
            assert!(matches!(refused, CallError::Unsupported { step: "a.b", .. }), "{refused}");
        };
        check(Call { logprobs: Some(2), ..asked() });
        check(Call { limits: Limits { min_output_tokens: 5, ..asked().limits }, ..asked() });
        check(Call { prompt: Prompt::bare("One,"), output_format: OutputFormat::Json(json!({})), ..asked() });
        let continued = Call { prompt: asked().prompt.assistant("Because").continued(), ..asked() };
        check(Call { output_format: OutputFormat::Json(json!({})), ..continued.clone() });
        check(Call { limits: Limits { thinking_tokens: 32, ..asked().limits }, ..continued });
    }

    #[test]
    fn the_beginning_of_a_reply_is_the_last_message() {
        let call = Call { prompt: asked().prompt.assistant("Because").continued(), ..asked() };
        let body: Value =
            serde_json::from_str(&Request::of(&call, "m").expect("it can be asked for").body).expect("JSON");
        assert_eq!(body["messages"][2], json!({ "role": "assistant", "content": "Because" }));
        let fields =
            ["continue_final_message", "add_generation_prompt", "chat_template_kwargs"].map(|name| &body[name]);
        assert_eq!(fields, [&json!(true), &json!(false), &json!({ "enable_thinking": false })]);
        assert!(rendered(&call).ends_with("Why?\n<assistant>\nBecause"), "{}", rendered(&call));
    }
}
