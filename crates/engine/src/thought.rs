//! The thought before an answer: free text within a token budget, ended by a closing marker.
//!
//! The prompt ends with the opening marker, so any model is inside its thought from the first token. The thought ends
//! with `</think>`: as one token anywhere if the vocabulary has it, otherwise as characters on a line of their own. If
//! the budget is exhausted first, or the thought loops, a closing sentence and the marker are inserted as known tokens.
//! The answer follows the marker; its grammar, stop strings and limits start there.

use std::sync::Arc;

use calls::loops::LoopDetector;
use models::Tokenizer;

use crate::text::TextStream;

/// The end of a prompt if the model is to think.
pub(crate) const OPEN: &str = "<think>\n";

/// The marker that ends a thought.
pub(crate) const CLOSE: &str = "</think>";

/// The text inserted if the model does not end its thought.
const CUT: &str = "\nThat must do; now the answer.\n</think>\n\n";

/// The text between the marker and the answer.
const GAP: &str = "\n\n";

/// The marker as tokens of a tokenizer.
#[derive(Debug)]
pub(crate) struct Markers {
    /// The closing marker, if it is a single token.
    pub close: Option<u32>,
    cut: Vec<u32>,
    gap: Vec<u32>,
}

impl Markers {
    /// # Errors
    /// If the tokenizer fails.
    pub fn new(tokenizer: &Tokenizer) -> models::Result<Markers> {
        // Names of special tokens are encoded as those tokens.
        let encode = |text| tokenizer.encode_within(text);
        let close = encode(CLOSE)?;
        let close = if let [token] = close[..] { Some(token) } else { None };
        Ok(Markers { close, cut: encode(CUT)?, gap: encode(GAP)? })
    }

    /// The minimum budget of a thought: one token and its closing.
    pub fn least_tokens(&self) -> usize {
        self.cut.len().max(self.gap.len()) + 1
    }
}

/// A thought in progress.
#[derive(Debug)]
pub(crate) struct Thought {
    markers: Arc<Markers>,
    /// Tokens left to sample.
    left: usize,
    written: usize,
    text: TextStream,
    /// Bytes of the text that were handed out.
    shown: usize,
    detector: Option<LoopDetector>,
    state: State,
}

#[derive(Debug)]
enum State {
    Open,
    /// The known tokens that come next, last token first; never empty.
    Closing(Vec<u32>),
    Closed,
}

impl Thought {
    /// A thought of at most `budget` tokens including its closing, and at least [`Markers::least_tokens`].
    pub fn new(markers: Arc<Markers>, budget: usize, stop_loops: bool) -> Thought {
        let left = budget.saturating_sub(markers.least_tokens() - 1);
        let detector = stop_loops.then(LoopDetector::default);
        Thought { markers, left, written: 0, text: TextStream::default(), shown: 0, detector, state: State::Open }
    }

    /// True until the answer begins.
    pub fn is_under_way(&self) -> bool {
        !matches!(self.state, State::Closed)
    }

    /// The known tokens that come next, last token first; `None` while the model thinks.
    pub fn known(&self) -> Option<&[u32]> {
        match &self.state {
            State::Closing(tokens) => Some(tokens),
            State::Open | State::Closed => None,
        }
    }

    /// Tokens so far.
    pub fn written_tokens(&self) -> usize {
        self.written
    }

    /// Appends the next token, known or sampled. True if it changes the state, so that draft tokens after it are
    /// discarded.
    pub fn push(&mut self, token: u32, bytes: &[u8]) -> bool {
        self.written += 1;
        match &mut self.state {
            State::Closed => false,
            State::Closing(rest) => {
                rest.pop();
                let done = rest.is_empty();
                if done {
                    self.state = State::Closed;
                }
                done
            }
            State::Open => {
                self.left = self.left.saturating_sub(1);
                let Some(closing) = self.closing(token, bytes) else { return false };
                self.text.complete();
                self.state = closing;
                true
            }
        }
    }

    /// The state after a sampled token that ends the thought, if it does.
    fn closing(&mut self, token: u32, bytes: &[u8]) -> Option<State> {
        let write = |tokens: &[u32]| State::Closing(tokens.iter().rev().copied().collect());
        if self.markers.close == Some(token) {
            return Some(write(&self.markers.gap));
        }
        self.text.push(bytes);
        let text = self.text.so_far();
        if self.markers.close.is_none() && text.trim_end().lines().next_back().is_some_and(|line| line.trim() == CLOSE)
        {
            let at_line_end = text.ends_with('\n');
            return Some(if at_line_end { State::Closed } else { write(&self.markers.gap) });
        }
        let loops = self.detector.as_mut().is_some_and(|detector| detector.push(token).is_some());
        (loops || self.left == 0).then(|| write(&self.markers.cut))
    }

    /// The text that has surely become part of the thought since the last time.
    pub fn piece(&mut self) -> &str {
        let text = self.text.so_far();
        let end = match (self.markers.close, &self.state) {
            (Some(_), _) => text.len(),
            // The last line may become the marker.
            (None, State::Open) => text.rfind('\n').unwrap_or(0),
            (None, _) => {
                let text = text.trim_end();
                text.strip_suffix(CLOSE).unwrap_or(text).trim_end().len()
            }
        };
        let start = self.shown;
        self.shown = end.max(start);
        &text[start..self.shown]
    }

    /// The thought's text without its marker.
    pub fn finish(self) -> String {
        let text = self.text.finish();
        let text = text.trim();
        let without = text.strip_suffix(CLOSE).filter(|_| self.markers.close.is_none());
        without.unwrap_or(text).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The golden tokenizer, in which every byte is a token and `</think>` is eight.
    fn bytes() -> Tokenizer {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama/tokenizer.json");
        Tokenizer::from_file(&golden).unwrap()
    }

    /// Feeds a text as the model would write it while the thought is open; then the known tokens. Returns the number of
    /// bytes taken, and the thought.
    fn think(text: &str, budget: usize) -> (usize, usize, String) {
        let tokenizer = bytes();
        let markers = Arc::new(Markers::new(&tokenizer).unwrap());
        assert_eq!(markers.close, None);
        let mut thought = Thought::new(markers, budget, true);
        let (mut taken, mut pieces) = (0, String::new());
        for token in tokenizer.encode(text).unwrap() {
            if thought.known().is_some() || !thought.is_under_way() {
                break;
            }
            thought.push(token, tokenizer.bytes(token));
            pieces.push_str(thought.piece());
            taken += 1;
        }
        while let Some(known) = thought.known() {
            let token = known[known.len() - 1];
            thought.push(token, tokenizer.bytes(token));
        }
        assert!(!thought.is_under_way());
        let (written, finished) = (thought.written_tokens(), thought.finish());
        assert_eq!(pieces.trim(), finished, "what is streamed is the thought");
        (taken, written, finished)
    }

    #[test]
    fn a_marker_alone_on_a_line_closes_the_thought() {
        let check = |text: &str, taken: usize, thought: &str| {
            let found = think(text, 400);
            assert_eq!((found.0, found.2.as_str()), (taken, thought), "{text:?}");
        };
        check("Two ships.\n</think>\n\n{\"a\":1}", "Two ships.\n</think>".len(), "Two ships.");
        check("</think>{", "</think>".len(), "");
        check("a\n  </think>\n", "a\n  </think>".len(), "a");
        // Inside a line it is an ordinary word.
        let within = "I close with </think> later.\nNow.";
        check(&format!("{within}\n</think>x"), within.len() + 9, within);
    }

    #[test]
    fn at_the_end_of_its_budget_a_thought_is_closed() {
        for budget in [60, 100, 333] {
            let text = (0..200).map(|number| format!("{number} ships, ")).collect::<Vec<_>>().concat();
            let (taken, written, thought) = think(&text, budget);
            assert_eq!(written, budget, "the closing is part of the budget");
            assert_eq!(taken, budget - CUT.len());
            assert_eq!(thought, text[..taken].trim());
        }
    }

    #[test]
    fn a_character_that_the_budget_cuts_is_streamed_as_it_is_replied() {
        let text: String = ('À'..='ÿ').collect();
        let least = CUT.len() + 1;
        assert_eq!(think(&text, least + 3).2, "ÀÁ");
        assert_eq!(think(&text, least + 4).2, "ÀÁ\u{fffd}");
    }

    #[test]
    fn a_thought_that_repeats_itself_is_closed() {
        let (taken, written, _) = think(&"la ".repeat(1000), 2000);
        assert!(taken < 60 && written < 110, "{taken} {written}");
    }
}
