//! Prompts as ordered segments, so that the machine can see which part of a text will be asked about again.

use serde_json::{Map, Value, json};

use crate::{ResultOf, Tool, ToolCall};

/// Who speaks a segment in the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
    /// A tool, with the result of a call.
    Tool,
}

impl Role {
    /// The name that chat templates use.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// How long a segment stays the same; it steers where KV pages are kept, never what is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stability {
    /// Instructions: the same in every call of this step.
    Static,
    /// The same for every question about one corpus.
    Corpus,
    /// Only ever grows at its end.
    AppendOnly,
    /// New in every call.
    Volatile,
}

/// A run of text with one role and one stability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub role: Role,
    pub stability: Stability,
    pub text: String,
    /// The turn that it begins; without one it continues the turn of the segment before it.
    pub turn: Option<Turn>,
}

/// What a turn has besides its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Turn {
    /// Calls of tools that the assistant made after its text.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool's turn answers.
    pub result_of: Option<ResultOf>,
    /// What the assistant thought before its text.
    pub thought: Option<String>,
}

/// One turn of a chat.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_of: Option<ResultOf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
}

impl Message {
    /// The message as chat templates take it: arguments of calls are values, and a thought is `reasoning_content`.
    pub fn for_template(&self) -> Value {
        let mut message = self.fields(&self.content, ToolCall::for_template);
        if let Some(thought) = &self.thought {
            message["reasoning_content"] = thought.as_str().into();
        }
        message
    }

    /// The message as OpenAI's chat completions take it: arguments of calls are text. Thoughts are left out.
    pub fn for_openai(&self) -> Value {
        let mut message = self.fields(&self.content, ToolCall::for_openai);
        if !self.tool_calls.is_empty() && self.content.is_empty() {
            message["content"] = Value::Null;
        }
        message
    }

    fn fields(&self, content: &str, call: impl Fn(&ToolCall) -> Value) -> Value {
        let mut message = json!({ "role": self.role.as_str(), "content": content });
        if !self.tool_calls.is_empty() {
            message["tool_calls"] = self.tool_calls.iter().map(call).collect();
        }
        if let Some(ResultOf { id, name }) = &self.result_of {
            message["tool_call_id"] = id.as_str().into();
            if let Some(name) = name {
                message["name"] = name.as_str().into();
            }
        }
        message
    }
}

/// A chat built from segments, in the order in which the model reads them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    segments: Vec<Segment>,
    /// Used verbatim, without a chat template.
    bare: bool,
    /// The text behind the place that a bare prompt is to be continued to.
    suffix: Option<String>,
    /// Described to the model; [`crate::Call::tools`] says how they may be used.
    tools: Vec<Tool>,
    /// Variables of the chat template.
    variables: Map<String, Value>,
    /// The beginning of the reply, which is given; empty if the reply begins by itself.
    reply_start: String,
}

impl Prompt {
    /// An empty prompt.
    pub fn new() -> Self {
        Self::default()
    }

    /// A text that the model continues, without a chat template.
    pub fn bare(text: impl Into<String>) -> Self {
        Prompt { bare: true, ..Self::new().user(Stability::Volatile, text) }
    }

    /// The text of a bare prompt.
    pub fn as_bare(&self) -> Option<&str> {
        self.segments.first().filter(|_| self.bare).map(|segment| segment.text.as_str())
    }

    /// A text with a place in its middle that the model fills in, without any chat around it.
    pub fn infill(before: impl Into<String>, behind: impl Into<String>) -> Self {
        Prompt { suffix: Some(behind.into()), ..Self::bare(before) }
    }

    /// The text behind the place to fill in.
    pub fn suffix(&self) -> Option<&str> {
        self.suffix.as_deref()
    }

    /// Appends instructions to the system turn.
    #[must_use]
    pub fn system(self, text: impl Into<String>) -> Self {
        self.push(Role::System, Stability::Static, text)
    }

    /// Begins with this system turn, unless the text is empty or the prompt begins with a system turn of its own.
    #[must_use]
    pub fn or_system(mut self, text: &str) -> Self {
        let has_own = self.bare || self.segments.first().is_some_and(|first| first.role == Role::System);
        if !has_own && !text.is_empty() {
            let (role, stability, turn) = (Role::System, Stability::Static, Some(Turn::default()));
            self.segments.insert(0, Segment { role, stability, text: text.to_owned(), turn });
        }
        self
    }

    /// Appends text to the user turn.
    #[must_use]
    pub fn user(self, stability: Stability, text: impl Into<String>) -> Self {
        self.push(Role::User, stability, text)
    }

    /// Appends text spoken by the model itself.
    #[must_use]
    pub fn assistant(self, text: impl Into<String>) -> Self {
        self.push(Role::Assistant, Stability::AppendOnly, text)
    }

    /// Appends a turn of its own, even if the turn before it has the same role.
    #[must_use]
    pub fn turn(mut self, role: Role, text: impl Into<String>, turn: Turn) -> Self {
        let stability = if role == Role::System { Stability::Static } else { Stability::AppendOnly };
        self.segments.push(Segment { role, stability, text: text.into(), turn: Some(turn) });
        self
    }

    /// Describes tools to the model.
    #[must_use]
    pub fn with_tools(self, tools: Vec<Tool>) -> Self {
        Prompt { tools, ..self }
    }

    /// Sets variables of the chat template.
    #[must_use]
    pub fn with_variables(self, variables: Map<String, Value>) -> Self {
        Prompt { variables, ..self }
    }

    /// Whether the reply can continue the last turn: it is the assistant's and has nothing but text.
    pub fn can_be_continued(&self) -> bool {
        self.last_turn_of_text().is_some()
    }

    /// The same prompt whose reply continues the text of the last turn, which is not part of the reply. The reply is
    /// free text without a thought. A prompt that cannot be continued stays as it is.
    #[must_use]
    pub fn continued(mut self) -> Self {
        if let Some(start) = self.last_turn_of_text() {
            self.reply_start = self.segments.drain(start..).map(|segment| segment.text).collect();
        }
        self
    }

    /// The text that the reply continues.
    pub fn reply_start(&self) -> &str {
        &self.reply_start
    }

    /// The first segment of the last turn, if that is the assistant's and has nothing but text.
    fn last_turn_of_text(&self) -> Option<usize> {
        let start = self.segments.iter().rposition(|segment| segment.turn.is_some())?;
        let first = &self.segments[start];
        (first.role == Role::Assistant && first.turn == Some(Turn::default())).then_some(start)
    }

    fn push(mut self, role: Role, stability: Stability, text: impl Into<String>) -> Self {
        let continues = self.segments.last().is_some_and(|last| last.role == role);
        let turn = (!continues).then(Turn::default);
        self.segments.push(Segment { role, stability, text: text.into(), turn });
        self
    }

    /// The tools that are described to the model.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The variables of the chat template.
    pub fn variables(&self) -> &Map<String, Value> {
        &self.variables
    }

    /// True if the chat has tools, calls of them, or their results.
    pub fn uses_tools(&self) -> bool {
        let is_result = |segment: &Segment| segment.role == Role::Tool;
        let calls = |segment: &Segment| segment.turn.as_ref().is_some_and(|turn| !turn.tool_calls.is_empty());
        !self.tools.is_empty() || self.segments.iter().any(|segment| is_result(segment) || calls(segment))
    }

    /// The segments in reading order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The chat turns: segments that begin no turn continue the one before them.
    pub fn messages(&self) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        for Segment { role, text, turn, .. } in &self.segments {
            match (messages.last_mut(), turn) {
                (Some(last), None) => last.content.push_str(text),
                (_, turn) => {
                    let Turn { tool_calls, result_of, thought } = turn.clone().unwrap_or_default();
                    messages.push(Message { role: *role, content: text.clone(), tool_calls, result_of, thought });
                }
            }
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_segments_of_one_role_are_one_turn() {
        let prompt =
            Prompt::new().system("rules").user(Stability::Corpus, "memo ").user(Stability::Volatile, "question");
        let messages = prompt.messages();
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[1].content, "memo question");
    }

    #[test]
    fn the_text_of_the_last_turn_begins_the_reply() {
        let asked = Prompt::new().user(Stability::Volatile, "Which?");
        let continued = asked.clone().assistant("The ").assistant("red").continued();
        assert_eq!((continued.reply_start(), continued.messages()), ("The red", asked.messages()));
        let call = ToolCall { id: "c1".into(), name: "look".into(), arguments: "{}".into() };
        let calls = Turn { tool_calls: vec![call], ..Turn::default() };
        let thinks = Turn { thought: Some("Hm.".into()), ..Turn::default() };
        for other in [
            asked.clone(),
            asked.clone().turn(Role::Assistant, "The red", calls),
            asked.turn(Role::Assistant, "The red", thinks),
            Prompt::new(),
            Prompt::bare("The red"),
        ] {
            assert!(!other.can_be_continued());
            assert_eq!(other.clone().continued(), other);
        }
    }

    #[test]
    fn turns_of_one_role_stay_apart() {
        let of = |id: &str| Turn { result_of: Some(ResultOf { id: id.into(), name: None }), ..Turn::default() };
        let prompt = Prompt::new().turn(Role::Tool, "one", of("a")).turn(Role::Tool, "two", of("b"));
        let messages: Vec<Value> = prompt.messages().iter().map(Message::for_openai).collect();
        let want = [("one", "a"), ("two", "b")];
        let want = want.map(|(text, id)| json!({ "role": "tool", "content": text, "tool_call_id": id }));
        assert_eq!(messages, want);
        assert!(prompt.uses_tools() && !Prompt::new().user(Stability::Volatile, "one").uses_tools());
    }

    #[test]
    fn arguments_are_values_for_templates_and_text_for_endpoints() {
        let call = ToolCall { id: "c1".into(), name: "look".into(), arguments: r#"{"b":1, "a":[2]}"#.into() };
        let turn = Turn { tool_calls: vec![call], thought: Some("Hm.".into()), ..Turn::default() };
        let message = Prompt::new().turn(Role::Assistant, "", turn).messages().remove(0);
        let (template, openai) = (message.for_template(), message.for_openai());
        assert_eq!(template["tool_calls"][0]["function"].to_string(), r#"{"name":"look","arguments":{"b":1,"a":[2]}}"#);
        assert_eq!((&template["content"], &template["reasoning_content"]), (&json!(""), &json!("Hm.")));
        assert_eq!(openai["tool_calls"][0]["function"]["arguments"], r#"{"b":1, "a":[2]}"#);
        assert_eq!((&openai["content"], openai.get("reasoning_content")), (&Value::Null, None));
    }
}
