//! The part of a reply that is written already, where a reply is generated in steps.

use std::ops::Range;

/// What is written of a reply.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub text: String,
    /// What the model wrote freely: names of special tokens are plain text in it.
    plain: Vec<Range<usize>>,
    /// It began with a thought.
    pub thinks: bool,
    /// Bytes of that thought and its closing.
    thought_bytes: usize,
}

impl Written {
    /// Adds what the template writes around texts of the model.
    pub fn syntax(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds what the model wrote freely.
    pub fn said(&mut self, text: &str) {
        self.plain.push(self.text.len()..self.text.len() + text.len());
        self.text.push_str(text);
    }

    /// The plain ranges if this follows a prompt of `bytes` bytes.
    pub fn plain_after(&self, bytes: usize) -> impl Iterator<Item = Range<usize>> {
        self.plain.iter().map(move |range| range.start + bytes..range.end + bytes)
    }

    /// Puts a thought and its closing before everything else.
    pub fn think(&mut self, thought: &str, closing: &str) {
        let bytes = thought.len() + closing.len();
        self.text.insert_str(0, &[thought, closing].concat());
        self.plain.iter_mut().for_each(|range| *range = range.start + bytes..range.end + bytes);
        self.plain.insert(0, 0..thought.len());
        self.thinks = true;
        self.thought_bytes += bytes;
    }

    /// What is written behind the thought.
    pub fn answer(&self) -> &str {
        &self.text[self.thought_bytes..]
    }

    /// True if nothing is written.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && !self.thinks
    }
}

#[cfg(test)]
mod tests {
    use super::Written;

    #[test]
    fn the_answer_is_what_is_behind_the_thought() {
        let mut written = Written::default();
        written.said("It is");
        assert_eq!(written.answer(), "It is");
        written.think("Let me see.", "\n</think>\n\n");
        written.syntax("<tool_call>");
        assert_eq!(written.answer(), "It is<tool_call>");
        assert_eq!(written.text, "Let me see.\n</think>\n\nIt is<tool_call>");
        let plain: Vec<&str> = written.plain_after(0).map(|range| &written.text[range]).collect();
        assert_eq!(plain, ["Let me see.", "It is"], "not the markers");
    }
}
