//! Token positions of a prompt's segments: which part it may share with other prompts, and which part was not cached.

use std::ops::Range;

use calls::{Divergence, Message, Prompt, Stability};
use models::Tokenizer;

/// The ends of a prompt's segments, in tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Segments(Vec<(usize, Divergence)>);

impl Segments {
    /// Locates the segments of a prompt among its `tokens`; `contents` are the byte ranges of its messages in the
    /// rendered text. If a tokenizer normalises characters, an end may be off by a token.
    pub fn find(prompt: &Prompt, contents: &[Option<Range<usize>>], tokens: &[u32], tokenizer: &Tokenizer) -> Segments {
        let token_ends: Vec<usize> = tokens
            .iter()
            .scan(0, |end, token| {
                *end += tokenizer.bytes(*token).len();
                Some(*end)
            })
            .collect();
        let mut ends = Vec::new();
        let mut turn = 0;
        let mut within = 0;
        let turns = prompt.messages();
        for (index, segment) in prompt.segments().iter().enumerate() {
            if index > 0 && segment.turn.is_some() {
                (turn, within) = (turn + 1, 0);
            }
            within += segment.text.len();
            // A message that the template has changed is assumed to end where the previous one does.
            let end = contents[turn].as_ref().map_or(0, |content| in_rendered(within, &turns[turn], content));
            let divergence = Divergence { segment: index, role: segment.role, stability: segment.stability };
            ends.push((token_ends.partition_point(|token_end| *token_end <= end), divergence));
        }
        Segments(ends)
    }

    /// Number of leading tokens that other prompts are expected to share: all before the first volatile segment.
    pub fn stable_tokens(&self) -> usize {
        let stable = self.0.iter().take_while(|(_, at)| at.stability != Stability::Volatile);
        let end = stable.last().map_or(0, |(end, _)| *end);
        // A template may write a volatile segment before a stable one.
        let is_later = |(own, at): &(usize, Divergence)| at.stability != Stability::Volatile || *own >= end;
        if self.0.iter().all(is_later) { end } else { 0 }
    }

    /// The segment in which the cached part of a prompt ends.
    pub fn divergence(&self, cached_tokens: usize) -> Option<Divergence> {
        self.0.iter().find(|(end, _)| cached_tokens < *end).map(|(_, at)| *at)
    }
}

/// The end of the first `bytes` bytes of a message in the rendered prompt; templates trim messages.
fn in_rendered(bytes: usize, turn: &Message, content: &Range<usize>) -> usize {
    let trimmed = turn.content.len() - turn.content.trim_start().len();
    (content.start + bytes.saturating_sub(trimmed)).min(content.end)
}
