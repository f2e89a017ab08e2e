//! Prompts as ordered segments, so that the machine can see which part of a text will be asked about again.

/// Who speaks a segment in the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    System,
    User,
    Assistant,
}

impl Speaker {
    /// The name that chat templates use.
    pub fn as_str(self) -> &'static str {
        match self {
            Speaker::System => "system",
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
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

/// A run of text with one speaker and one stability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub speaker: Speaker,
    pub stability: Stability,
    pub text: String,
}

/// One turn of a chat, as templates want it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Message {
    #[serde(rename = "role")]
    pub speaker: Speaker,
    pub content: String,
}

/// A chat built from segments, in the order in which the model reads them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    segments: Vec<Segment>,
    /// Used verbatim, without a chat template.
    bare: bool,
}

impl Prompt {
    /// An empty prompt.
    pub fn new() -> Self {
        Self::default()
    }

    /// A text that the model goes on with, without any chat around it.
    pub fn bare(text: impl Into<String>) -> Self {
        Prompt { bare: true, ..Self::new().user(Stability::Volatile, text) }
    }

    /// The text of a bare prompt.
    pub fn as_bare(&self) -> Option<&str> {
        self.segments.first().filter(|_| self.bare).map(|segment| segment.text.as_str())
    }

    /// Appends instructions to the system turn.
    #[must_use]
    pub fn system(self, text: impl Into<String>) -> Self {
        self.push(Speaker::System, Stability::Static, text)
    }

    /// Appends text to the user turn.
    #[must_use]
    pub fn user(self, stability: Stability, text: impl Into<String>) -> Self {
        self.push(Speaker::User, stability, text)
    }

    /// Appends text spoken by the model itself.
    #[must_use]
    pub fn assistant(self, text: impl Into<String>) -> Self {
        self.push(Speaker::Assistant, Stability::AppendOnly, text)
    }

    fn push(mut self, speaker: Speaker, stability: Stability, text: impl Into<String>) -> Self {
        self.segments.push(Segment { speaker, stability, text: text.into() });
        self
    }

    /// The segments in reading order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The chat turns: neighbouring segments of one speaker are one turn.
    pub fn messages(&self) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::new();
        for segment in &self.segments {
            match messages.last_mut() {
                Some(last) if last.speaker == segment.speaker => last.content.push_str(&segment.text),
                _ => messages.push(Message { speaker: segment.speaker, content: segment.text.clone() }),
            }
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_segments_of_one_speaker_are_one_turn() {
        let prompt =
            Prompt::new().system("rules").user(Stability::Corpus, "memo ").user(Stability::Volatile, "question");
        let messages = prompt.messages();
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[1].content, "memo question");
    }
}
