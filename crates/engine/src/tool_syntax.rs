//! How a model writes calls of tools, read off its own chat template.
//!
//! How the template writes a call shows how the model was trained to write one. A template without tools gets their
//! definitions, calls and results in words of our own.

use std::borrow::Cow;
use std::ops::Range;

use calls::{Prompt, Role, Segment, Tool, ToolCall};
use models::{ChatOptions, ChatTemplate, Tokenizer};
use serde_json::{Value, json};

/// How a model writes calls of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolSyntax {
    /// The template renders tools; otherwise we do.
    is_native: bool,
    /// What free text never contains: the beginning of a call.
    pub marker: String,
    /// The marker belongs to calls only. Without tags it is the beginning of a JSON object, which is a call only where a
    /// reply begins with it.
    pub is_tag: bool,
    /// Before the name, between name and arguments, after the arguments.
    open: String,
    pub middle: String,
    pub close: String,
    /// Between two calls; `None` if a turn has one at most.
    pub between: Option<String>,
}

/// The tools with which the syntax is read off a template. Some templates demand ids of nine characters.
const PROBES: [(&str, &str); 2] = [("probe_one", "probe0001"), ("probe_two", "probe0002")];
const ARGUMENTS: &str = r#"{"key": "value"}"#;

impl ToolSyntax {
    /// The syntax of a template; ours if the template has no tools, or writes calls in a way that cannot be enforced.
    pub fn of(template: &ChatTemplate, tokenizer: &Tokenizer) -> ToolSyntax {
        let is_text = |syntax: &ToolSyntax| {
            let marker = tokenizer.encode_within(&syntax.marker).unwrap_or_default();
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
    pub fn head(&self, tool: &Tool) -> String {
        [self.open.trim_start(), &tool.name, self.middle.trim_end()].concat()
    }

    /// What ends the text before a call: the marker, with the line breaks before it.
    pub fn stops(&self) -> impl Iterator<Item = String> {
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
