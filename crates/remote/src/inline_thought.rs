//! Thoughts within the text of an answer: `<think>...</think>` at its beginning, from endpoints that do not separate them.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Thought(&'a str),
    Text(&'a str),
}

/// Divides a streamed text.
#[derive(Debug, Default)]
pub(crate) struct InlineThought {
    place: Place,
    /// What cannot be assigned to a part yet.
    pending: String,
}

/// The place in the text that was read last.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Beginning,
    /// Behind [`OPEN`], before the first word.
    Opened,
    Thought,
    /// Behind [`CLOSE`], before the first word.
    Closed,
    Text,
}

impl InlineThought {
    /// Divides the next piece.
    pub fn split(&mut self, piece: &str, each: &mut dyn FnMut(Part<'_>)) {
        if self.place == Place::Text {
            each(Part::Text(piece));
            return;
        }
        self.pending.push_str(piece);
        while let Some((place, used)) = self.next(each) {
            self.place = place;
            self.pending.drain(..used);
        }
    }

    /// The place behind the pending text that is assigned now, and its bytes; none if more of the text must be known.
    fn next(&self, each: &mut dyn FnMut(Part<'_>)) -> Option<(Place, usize)> {
        let pending = self.pending.as_str();
        let begun = pending.trim_start();
        let blank = pending.len() - begun.len();
        match self.place {
            Place::Beginning if begun.starts_with(OPEN) => Some((Place::Opened, blank + OPEN.len())),
            Place::Beginning if OPEN.starts_with(begun) => None,
            Place::Opened | Place::Closed if begun.is_empty() => None,
            Place::Opened => Some((Place::Thought, blank)),
            Place::Closed => Some((Place::Text, blank)),
            Place::Thought => {
                let close = pending.find(CLOSE);
                let end = close.unwrap_or_else(|| pending.len() - begun_close(pending));
                // White space before the end is not part of the thought.
                let thought = pending[..end].trim_end();
                if !thought.is_empty() {
                    each(Part::Thought(thought));
                }
                match close {
                    Some(close) => Some((Place::Closed, close + CLOSE.len())),
                    None => (!thought.is_empty()).then_some((Place::Thought, thought.len())),
                }
            }
            Place::Beginning | Place::Text => {
                if !pending.is_empty() {
                    each(Part::Text(pending));
                }
                (!pending.is_empty()).then_some((Place::Text, pending.len()))
            }
        }
    }

    /// Assigns what is pending at the end; true if the text ends within a thought.
    pub fn end(&mut self, each: &mut dyn FnMut(Part<'_>)) -> bool {
        let is_thought = matches!(self.place, Place::Opened | Place::Thought);
        let pending = std::mem::take(&mut self.pending);
        match self.place {
            Place::Closed => (),
            _ if is_thought => each(Part::Thought(&pending)),
            _ => each(Part::Text(&pending)),
        }
        is_thought
    }
}

/// Bytes at the end of a text with which [`CLOSE`] may begin.
fn begun_close(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|bytes| text.ends_with(&CLOSE[..*bytes])).unwrap_or(0)
}
