//! Where the segments of a prompt end among its tokens: what it may share with other prompts, and what was not cached.

use std::ops::Range;

use calls::{Divergence, Message, Prompt, Stability};
use models::Tokenizer;

/// The ends of a prompt's segments, in tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segments(Vec<(usize, Divergence)>);

impl Segments {
    /// Finds the segments of a prompt among its `tokens`; `contents` is where its turns stand in what they were made of.
    /// Where a tokenizer normalises characters, an end may be a token off.
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
            if index > 0 && prompt.segments()[index - 1].speaker != segment.speaker {
                (turn, within) = (turn + 1, 0);
            }
            within += segment.text.len();
            // A turn that the template has changed is taken to end where the one before it did.
            let end = contents[turn].as_ref().map_or(0, |content| in_rendered(within, &turns[turn], content));
            let divergence = Divergence { segment: index, speaker: segment.speaker, stability: segment.stability };
            ends.push((token_ends.partition_point(|token_end| *token_end <= end), divergence));
        }
        Segments(ends)
    }

    /// Tokens from the start that other prompts are expected to begin with: all before the first volatile segment.
    pub fn stable_tokens(&self) -> usize {
        let stable = self.0.iter().take_while(|(_, at)| at.stability != Stability::Volatile);
        stable.last().map_or(0, |(end, _)| *end)
    }

    /// The segment in which a prompt left what was cached of it.
    pub fn divergence(&self, cached_tokens: usize) -> Option<Divergence> {
        self.0.iter().find(|(end, _)| cached_tokens < *end).map(|(_, at)| *at)
    }
}

/// Where the first `bytes` bytes of a turn end in the rendered prompt; templates trim turns.
fn in_rendered(bytes: usize, turn: &Message, content: &Range<usize>) -> usize {
    let trimmed = turn.content.len() - turn.content.trim_start().len();
    (content.start + bytes.saturating_sub(trimmed)).min(content.end)
}
