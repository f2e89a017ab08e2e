//! Replies that call tools, in the syntax of the model's own chat template.
//!
//! [`ToolSyntax`] is read off the template: how it writes a call shows how the model was trained to write one. A reply is
//! generated in steps, each of which continues what is written: text until the marker of a call, a name among the allowed
//! ones, arguments under the tool's schema. So a call always parses and validates. A template without tools gets their
//! definitions, calls and results in words of our own.

use std::borrow::Cow;
use std::ops::Range;

use calls::{
    Call, CallError, Finish, OnText, OutputFormat, Piece, Prompt, Reply, Role, Segment, Tool, ToolCall, ToolUse,
};
use models::{ChatOptions, ChatTemplate, Tokenizer};
use serde_json::{Value, json};

use crate::handle::{Engine, Front};
use crate::thought::CLOSE;

/// How a model writes calls of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolSyntax {
    /// The template renders tools; otherwise we do.
    is_native: bool,
    /// What free text never contains: the beginning of a call.
    marker: String,
    /// The marker belongs to calls only. Without tags it is the beginning of a JSON object, which is a call only where a
    /// reply begins with it.
    is_tag: bool,
    /// Before the name, between name and arguments, after the arguments.
    open: String,
    middle: String,
    close: String,
    /// Between two calls; `None` if a turn has one at most.
    between: Option<String>,
}

/// What is written of a reply.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub text: String,
    /// What the model wrote freely: names of special tokens are plain text in it.
    plain: Vec<Range<usize>>,
    /// It began with a thought.
    pub thinks: bool,
}

impl Written {
    fn syntax(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn said(&mut self, text: &str) {
        self.plain.push(self.text.len()..self.text.len() + text.len());
        self.text.push_str(text);
    }

    /// The plain ranges if this follows a prompt of so many bytes.
    pub fn plain_after(&self, bytes: usize) -> impl Iterator<Item = Range<usize>> {
        self.plain.iter().map(move |range| range.start + bytes..range.end + bytes)
    }
}

/// The tools with which the syntax is read off a template. Some templates demand ids of nine characters.
const PROBES: [(&str, &str); 2] = [("probe_one", "probe0001"), ("probe_two", "probe0002")];
const ARGUMENTS: &str = r#"{"key": "value"}"#;

impl ToolSyntax {
    /// The syntax of a template; ours if the template has no tools, or writes calls in a way that cannot be enforced.
    pub fn of(template: &ChatTemplate, tokenizer: &Tokenizer) -> ToolSyntax {
        let is_text = |syntax: &ToolSyntax| {
            let marker = tokenizer.encode_prompt(&syntax.marker, &[]).unwrap_or_default();
            !marker.is_empty() && !tokenizer.specials().any(|special| marker.contains(&special))
        };
        ToolSyntax::native(template).filter(is_text).unwrap_or_else(ToolSyntax::ours)
    }

    fn native(template: &ChatTemplate) -> Option<ToolSyntax> {
        let user = json!({ "role": "user", "content": "Call it." });
        let tools: Value = PROBES
            .iter()
            .map(|(name, _)| {
                json!({ "type": "function", "function": { "name": name,
            "description": "", "parameters": { "type": "object", "properties": {} } } })
            })
            .collect();
        let options = ChatOptions { tools: Some(&tools), thinks: Some(false), ..ChatOptions::default() };
        let asked = template.render_chat(&[&user], ChatOptions { opens_turn: true, ..options }).ok()?;
        let answered = |answer: Value| template.render_chat(&[&user, &answer], options).ok();
        let call = |(name, id): &(&str, &str)| {
            let arguments: Value = serde_json::from_str(ARGUMENTS).unwrap_or_default();
            json!({ "type": "function", "id": id, "function": { "name": name, "arguments": arguments } })
        };
        let calls = |probes: &[(&str, &str)]| {
            let calls: Vec<Value> = probes.iter().map(call).collect();
            answered(json!({ "role": "assistant", "content": "", "tool_calls": calls }))
        };
        let ((first, id), (second, _)) = (PROBES[0], PROBES[1]);
        if !asked.contains(first) {
            return None;
        }
        let said = answered(json!({ "role": "assistant", "content": "Said." }))?;
        let (_, end) = said.rsplit_once("Said.")?;
        let one = calls(&PROBES[..1])?;
        let (open, rest) = one.strip_prefix(&asked)?.split_once(first)?;
        let (middle, rest) = rest.split_once(ARGUMENTS)?;
        let close = rest.strip_suffix(end)?;
        if [open, middle, close].iter().any(|part| part.contains(id)) {
            return None;
        }
        let begun = [&asked, open, first, middle, ARGUMENTS, close].concat();
        let between = calls(&PROBES).and_then(|two| {
            let (gap, _) = two.strip_prefix(&begun)?.split_once(second)?;
            gap.strip_suffix(open).map(str::to_owned)
        });
        let tag = open.split('{').next().unwrap_or_default().trim();
        let (marker, is_tag) = if tag.is_empty() { (open.trim_start(), false) } else { (tag, true) };
        Some(ToolSyntax {
            is_native: true,
            marker: marker.to_owned(),
            is_tag,
            open: open.to_owned(),
            middle: middle.to_owned(),
            close: close.to_owned(),
            between,
        })
    }

    /// The syntax that we teach.
    fn ours() -> ToolSyntax {
        ToolSyntax {
            is_native: false,
            marker: "<tool_call>".into(),
            is_tag: true,
            open: "<tool_call>\n{\"name\": \"".into(),
            middle: "\", \"arguments\": ".into(),
            close: "}\n</tool_call>".into(),
            between: Some("\n".into()),
        }
    }

    /// The prompt that the template renders: if it has no tools, they become words.
    pub fn prompt<'a>(&self, prompt: &'a Prompt) -> Cow<'a, Prompt> {
        if self.is_native || !prompt.uses_tools() {
            return Cow::Borrowed(prompt);
        }
        Cow::Owned(self.in_words(prompt))
    }

    fn in_words(&self, prompt: &Prompt) -> Prompt {
        let mut words = Prompt::new().with_variables(prompt.variables().clone());
        if !prompt.tools().is_empty() {
            let lines: Vec<String> =
                prompt.tools().iter().map(|tool| tool.definition()["function"].to_string()).collect();
            words = words.system(format!(
                "You can call tools. Each line describes one:\n{}\n\nTo call one, write its name and its arguments as JSON, and \
                 nothing after it:\n{}NAME{}ARGUMENTS{}\nYou are then given its result.",
                lines.join("\n"),
                self.open,
                self.middle,
                self.close
            ));
        }
        for Segment { role, stability, text, turn } in prompt.segments() {
            let calls = turn.iter().flat_map(|turn| &turn.tool_calls);
            let calls = calls.map(|ToolCall { name, arguments, .. }| {
                [&*self.open, name, &self.middle, arguments, &self.close].concat()
            });
            let text = match role {
                Role::Tool => format!("<tool_response>\n{text}\n</tool_response>"),
                _ => [text.clone()]
                    .into_iter()
                    .filter(|text| !text.is_empty())
                    .chain(calls)
                    .collect::<Vec<_>>()
                    .join("\n"),
            };
            let role = if *role == Role::Tool { Role::User } else { *role };
            // Templates without tools may demand that the roles alternate.
            let follows = turn.is_some() && words.segments().last().is_some_and(|last| last.role == role);
            let text = if follows { format!("\n\n{text}") } else { text };
            words = match role {
                Role::System => words.system(text),
                Role::Assistant => words.assistant(text),
                Role::User | Role::Tool => words.user(*stability, text),
            };
        }
        words
    }

    /// How a call of this tool begins, up to its arguments.
    fn head(&self, tool: &Tool) -> String {
        [self.open.trim_start(), &tool.name, self.middle.trim_end()].concat()
    }

    /// What ends the text before a call: the marker, with the line breaks before it.
    fn stops(&self) -> impl Iterator<Item = String> {
        ["\n\n", "\n", ""].into_iter().map(|before| format!("{before}{}", self.marker))
    }
}

/// The definitions of a prompt's tools, as templates take them.
pub(crate) fn definitions(prompt: &Prompt) -> Option<Value> {
    let tools = prompt.tools();
    (!tools.is_empty()).then(|| tools.iter().map(Tool::definition).collect())
}

/// The quoted strings of tools and calls in a rendered prompt that contain names of special tokens: they are plain text.
pub(crate) fn quoted_specials(prompt: &Prompt, rendered: &str, tokenizer: &Tokenizer) -> Vec<Range<usize>> {
    if !prompt.uses_tools() {
        return Vec::new();
    }
    let names: Vec<&[u8]> = tokenizer.specials().map(|special| tokenizer.bytes(special)).collect();
    let is_special = |text: &&String| {
        names.iter().any(|name| !name.is_empty() && text.as_bytes().windows(name.len()).any(|part| part == *name))
    };
    let mut texts = Vec::new();
    prompt.tools().iter().for_each(|tool| strings(&tool.definition(), &mut texts));
    for message in prompt.messages() {
        message.for_template()["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(|call| strings(call, &mut texts));
    }
    let quoted = texts.iter().filter(is_special).map(|text| Value::from(text.as_str()).to_string());
    quoted
        .flat_map(|text| rendered.match_indices(&text).map(|(at, text)| at..at + text.len()).collect::<Vec<_>>())
        .collect()
}

/// All strings of a value, keys included.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            found.push(key.clone());
            strings(value, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A reply in steps.
struct Steps<'a> {
    engine: &'a Engine,
    model: usize,
    front: &'a Front,
    /// The call, whose limits are those of the whole reply.
    call: Call,
    written: Written,
    /// The reply so far; none before the first step.
    reply: Option<Reply>,
}

impl Engine {
    /// The reply to a call that may use tools.
    pub(crate) async fn call_tools(
        &self,
        model: usize,
        front: &Front,
        call: Call,
        tools: &ToolUse,
    ) -> Result<Reply, CallError> {
        let allowed: Vec<Tool> = call.prompt.tools().iter().filter(|tool| tools.allows(tool)).cloned().collect();
        if allowed.is_empty() || call.prompt.as_bare().is_some() {
            let reason = "a tool is to be called, but there is none".to_owned();
            return Err(CallError::OutputFormat { step: call.step, reason });
        }
        let mut steps = Steps { engine: self, model, front, call, written: Written::default(), reply: None };
        let mut begun = if tools.required { Some(String::new()) } else { steps.text().await? };
        while let Some(marker) = begun {
            let is_whole = steps.tool(&allowed, &marker).await?;
            begun = if is_whole && tools.parallel { steps.another().await? } else { None };
        }
        steps.reply.ok_or(CallError::Closed)
    }
}

impl Steps<'_> {
    /// Writes text until a call of a tool begins; returns its marker, or `None` if the reply ends without one.
    async fn text(&mut self) -> Result<Option<String>, CallError> {
        if self.call.output_format != OutputFormat::Text {
            return self.json().await;
        }
        let syntax = &self.front.tool_syntax;
        let mut watches = true;
        loop {
            let Some(call) = self.step(OutputFormat::Text)? else { return Ok(None) };
            let stop = call.stop.iter().cloned().chain(syntax.stops().filter(|_| watches)).collect();
            let (on_text, logprobs) = (self.call.on_text.clone(), self.call.logprobs);
            let reply = self.run(Call { stop, on_text, logprobs, ..call }).await?;
            self.written.said(&reply.text);
            let begun = reply.stopped_by.clone().filter(|stop| watches && syntax.stops().any(|marker| marker == *stop));
            let is_first = self.written.text.trim().is_empty() || syntax.is_tag;
            self.add(reply);
            let Some(begun) = begun else { return Ok(None) };
            self.written.syntax(&begun);
            if is_first {
                if let Some(reply) = &mut self.reply {
                    reply.stopped_by = None;
                }
                return Ok(Some(begun.trim_start().to_owned()));
            }
            // A JSON object in the middle of a text is text.
            if let Some(reply) = &mut self.reply {
                reply.text.push_str(&begun);
            }
            if let Some(on_text) = &self.call.on_text {
                on_text.send(&begun);
            }
            watches = false;
        }
    }

    /// Writes a reply in an output format, unless a call of a tool begins; returns the marker of that call.
    async fn json(&mut self) -> Result<Option<String>, CallError> {
        let syntax = &self.front.tool_syntax;
        if !syntax.is_tag {
            let reason = "calls of this model's tools cannot be told from answers in JSON: ask for tools or a format";
            return Err(CallError::OutputFormat { step: self.call.step, reason: reason.to_owned() });
        }
        let starts = "{[\"-0123456789tfn".chars().map(String::from);
        let starts = starts.chain([syntax.marker.clone()]).collect();
        let Some(call) = self.step(OutputFormat::Choice(starts))? else { return Ok(None) };
        let reply = self.run(Call { on_text: self.thought_only(), ..call }).await?;
        let calls = reply.text == syntax.marker;
        self.add(Reply { text: String::new(), ..reply });
        if calls {
            self.written.syntax(&syntax.marker);
            return Ok(Some(syntax.marker.clone()));
        }
        let Some(call) = self.step(self.call.output_format.clone())? else { return Ok(None) };
        let (on_text, logprobs) = (self.call.on_text.clone(), self.call.logprobs);
        let reply = self.run(Call { on_text, logprobs, ..call }).await?;
        self.add(reply);
        Ok(None)
    }

    /// Writes a call of one of these tools whose first characters are written; false if the limit is reached.
    async fn tool(&mut self, allowed: &[Tool], begun: &str) -> Result<bool, CallError> {
        let syntax = &self.front.tool_syntax;
        let rest = |tool: &Tool| syntax.head(tool).strip_prefix(begun).unwrap_or_default().to_owned();
        let known = [rest(&allowed[0])];
        let thinks = self.reply.is_none() && self.call.limits.thinking_tokens > 0;
        let head = if allowed.len() == 1 && !thinks {
            known[0].clone()
        } else {
            let Some(call) = self.step(OutputFormat::Choice(allowed.iter().map(rest).collect()))? else {
                return Ok(false);
            };
            let reply = self.run(Call { on_text: self.thought_only(), ..call }).await?;
            let head = reply.text.clone();
            self.add(Reply { text: String::new(), ..reply });
            head
        };
        self.written.syntax(&head);
        let Some(tool) = allowed.iter().find(|tool| rest(tool) == head) else { return Ok(false) };
        let Some(call) = self.step(OutputFormat::Json(tool.schema()))? else { return Ok(false) };
        let on_text = self.call.on_text.clone();
        if let Some(on_text) = &on_text {
            on_text.send_piece(Piece::ToolCall(&tool.name));
        }
        let on_text = on_text.map(|on_text| {
            OnText::pieces(move |piece| {
                if let Piece::Text(text, _) = piece {
                    on_text.send_piece(Piece::Arguments(text));
                }
            })
        });
        let reply = self.run(Call { on_text, ..call }).await?;
        let blank = &syntax.middle[syntax.middle.trim_end().len()..];
        self.written.syntax(blank);
        self.written.said(&reply.text);
        self.written.syntax(&syntax.close);
        let (arguments, is_cut) = (reply.text.clone(), reply.finish.is_cut());
        self.add(Reply { text: String::new(), ..reply });
        if let Some(reply) = &mut self.reply {
            let id = format!("call-{}", reply.tool_calls.len());
            reply.tool_calls.push(ToolCall { id, name: tool.name.clone(), arguments });
        }
        Ok(!is_cut)
    }

    /// The marker of another call, if one follows. A reply ends with its calls: if no call follows, what the model would
    /// write is not part of it.
    async fn another(&mut self) -> Result<Option<String>, CallError> {
        let syntax = &self.front.tool_syntax;
        let Some(between) = &syntax.between else { return Ok(None) };
        let next = format!("{between}{}", syntax.marker);
        let tokens = self.tokens(&next)?;
        if self.left()? < tokens {
            return Ok(None);
        }
        let Some(mut call) = self.step(OutputFormat::Text)? else { return Ok(None) };
        call.limits.max_output_tokens = tokens;
        let reply = self.run(Call { stop: syntax.stops().collect(), ..call }).await?;
        let follows = reply.stopped_by.is_some() && reply.text.trim().is_empty();
        self.add(Reply { text: String::new(), finish: Finish::Stop, stopped_by: None, ..reply });
        if !follows {
            return Ok(None);
        }
        self.written.syntax(&next);
        Ok(Some(syntax.marker.clone()))
    }

    fn tokens(&self, text: &str) -> Result<usize, CallError> {
        let step = self.call.step;
        let failed = |error: models::ModelError| CallError::Failed { step, reason: error.to_string() };
        Ok(self.front.tokenizer.encode_prompt(text, &[]).map_err(failed)?.len())
    }

    /// The tokens that may still be written.
    fn left(&self) -> Result<usize, CallError> {
        let limits = self.call.limits;
        let left = limits.reply_tokens().saturating_sub(self.tokens(&self.written.text)?);
        Ok(left.min(limits.max_output_tokens))
    }

    /// The call of the next step in this output format; `None`, which ends the reply, if the format does not fit into
    /// what is left of the limit.
    ///
    /// # Errors
    /// [`CallError::OutputFormat`] if it would not fit into the whole limit.
    fn step(&mut self, output_format: OutputFormat) -> Result<Option<Call>, CallError> {
        let (step, left) = (self.call.step, self.left()?);
        let grammar = self.front.grammars.grammar(self.call.tenant, &output_format);
        let grammar = grammar.map_err(|reason| CallError::OutputFormat { step, reason })?;
        let least = grammar.map_or(1, |grammar| grammar.shortest());
        if least > left
            && let Some(reply) = &mut self.reply
        {
            reply.finish = Finish::Length;
            return Ok(None);
        }
        let mut call = Call { output_format, logprobs: None, on_text: None, ..self.call.clone() };
        call.limits.max_output_tokens = left;
        if self.reply.is_some() {
            call.limits.thinking_tokens = 0;
        }
        Ok(Some(call))
    }

    async fn run(&self, call: Call) -> Result<Reply, CallError> {
        self.engine.submit(self.model, self.front, call, &self.written).await
    }

    /// Passes the thought on, and nothing of the step's text.
    fn thought_only(&self) -> Option<OnText> {
        self.call.on_text.clone().map(|on_text| {
            OnText::pieces(move |piece| {
                if let Piece::Thought(_) = piece {
                    on_text.send_piece(piece);
                }
            })
        })
    }

    /// Adds the reply of a step. The prompt counts once: what later steps read of the reply was counted when it was
    /// written.
    fn add(&mut self, next: Reply) {
        let Some(reply) = &mut self.reply else {
            if let Some(thought) = &next.thought {
                let thought = format!("{thought}\n{CLOSE}\n\n");
                self.written.text.insert_str(0, &thought);
                self.written
                    .plain
                    .iter_mut()
                    .for_each(|range| *range = range.start + thought.len()..range.end + thought.len());
                self.written.thinks = true;
            }
            self.reply = Some(next);
            return;
        };
        reply.text.push_str(&next.text);
        reply.logprobs.extend(next.logprobs);
        (reply.finish, reply.stopped_by) = (next.finish, next.stopped_by);
        reply.usage.calls += next.usage.calls;
        reply.usage.output_tokens += next.usage.output_tokens;
        reply.usage.seconds += next.usage.seconds;
    }
}

#[cfg(test)]
mod tests {
    use calls::{Stability, Turn};

    use super::*;

    /// Templates of the three families, shortened: their tools, calls and results are written as theirs are.
    const HERMES: &str = "{% if tools %}<|im_start|>system\n# Tools\n<tools>{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n</tools><|im_end|>\n{% endif %}\
        {% for m in messages %}{% if m.role == 'tool' %}<|im_start|>user\n<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n\
        {% elif m.tool_calls %}<|im_start|>assistant{% if m.content %}{{ '\n' + m.content }}{% endif %}\
        {% for c in m.tool_calls %}{{ '\n<tool_call>\n{\"name\": \"' + c.function.name + '\", \"arguments\": ' }}{{ c.function.arguments | tojson }}{{ '}\n</tool_call>' }}{% endfor %}<|im_end|>\n\
        {% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}\
        {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    const LLAMA: &str = "{% for t in tools or [] %}{{ t | tojson(indent=4) }}\n\n{% endfor %}{% for m in messages %}{% if 'tool_calls' in m %}\
        {% if m.tool_calls | length != 1 %}{{ raise_exception('one call at a time') }}{% endif %}<|start|>assistant<|end|>\n\n\
        {{ '{\"name\": \"' + m.tool_calls[0].function.name + '\", ' }}{{ '\"parameters\": ' }}{{ m.tool_calls[0].function.arguments | tojson }}{{ '}' }}<|eot|>\
        {% else %}<|start|>{{ m.role }}<|end|>\n\n{{ m.content | trim }}<|eot|>{% endif %}{% endfor %}\
        {% if add_generation_prompt %}<|start|>assistant<|end|>\n\n{% endif %}";
    const PLAIN: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}";

    fn native(template: &str) -> Option<ToolSyntax> {
        ToolSyntax::native(&ChatTemplate::new(template).unwrap())
    }

    #[test]
    fn the_syntax_of_calls_is_read_off_the_template() {
        assert_eq!(native(HERMES), Some(ToolSyntax { is_native: true, ..ToolSyntax::ours() }));
        let thinks = HERMES.replace(
            "<|im_start|>assistant\n{% endif %}",
            "<|im_start|>assistant\n{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}",
        );
        let written = thinks.replace(
            "<|im_start|>assistant{% if m.content",
            "<|im_start|>assistant\n<think>\n\n</think>\n{% if m.content",
        );
        assert_eq!(native(&written), native(HERMES), "an empty thought is part of the opened turn");
        let llama = native(LLAMA).unwrap();
        assert_eq!((llama.marker.as_str(), llama.is_tag, &llama.between), ("{\"name\": \"", false, &None));
        assert_eq!((llama.middle.as_str(), llama.close.as_str()), ("\", \"parameters\": ", "}"));
        assert_eq!(native(PLAIN), None);
        let with_ids = HERMES.replace("{{ '}\n</tool_call>' }}", "{{ ', \"id\": ' + c.id }}{{ '}\n</tool_call>' }}");
        assert_eq!(native(&with_ids), None, "an id after the arguments cannot be known");
    }

    #[test]
    fn without_a_template_for_them_tools_become_words() {
        let tool = Tool { name: "look".into(), description: Some("Looks.".into()), parameters: None };
        let call = |id: &str| ToolCall { id: id.into(), name: "look".into(), arguments: "{\"at\":1}".into() };
        let asks = Turn { tool_calls: vec![call("a"), call("b")], ..Turn::default() };
        let prompt = Prompt::new()
            .with_tools(vec![tool])
            .user(Stability::AppendOnly, "Well?")
            .turn(Role::Assistant, "I look.", asks)
            .turn(Role::Tool, "One", Turn::default())
            .turn(Role::Tool, "Two", Turn::default());
        let ours = ToolSyntax::ours();
        let words = ours.prompt(&prompt).into_owned().messages();
        let turns: Vec<(&str, &str)> = words.iter().map(|turn| (turn.role.as_str(), turn.content.as_str())).collect();
        let one = "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\":1}}\n</tool_call>";
        let results = "<tool_response>\nOne\n</tool_response>\n\n<tool_response>\nTwo\n</tool_response>";
        assert!(turns[0].1.contains(r#"{"name":"look","description":"Looks."}"#), "{}", turns[0].1);
        assert!(turns[0].1.contains("{\"name\": \"NAME\", \"arguments\": ARGUMENTS}"), "{}", turns[0].1);
        assert_eq!(
            turns[1..],
            [("user", "Well?"), ("assistant", &*format!("I look.\n{one}\n{one}")), ("user", results)]
        );
        assert!(matches!(ours.prompt(&Prompt::new().system("Hi.")), Cow::Borrowed(_)), "other prompts are left alone");
    }
}
