//! Completions that satisfy a condition which no grammar expresses.
//!
//! The shortest completion is tried first, then what remains of an earlier one, then deviations: a completion is left
//! at some position with another byte, or with a value that the schema mentions, and closed by the shortest way from
//! there. Those with the fewest violations and deviations together are deviated from next, so that the search leaves a
//! completion whose violations no further deviation mends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schema_check::Violations;

use super::{Closer, ParseState};

/// How far a search may go.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    /// Maximum number of completions that are judged. One whose validation is much work counts as several.
    pub tries: usize,
}

/// The condition of a search.
pub(crate) struct Condition<'a> {
    /// How far a completion is from satisfying it; none if it does.
    pub violations: &'a dyn Fn(&[u8]) -> Violations,
    /// Texts that are tried besides single bytes.
    pub literals: &'a [String],
}

impl Condition<'_> {
    /// How far a completion is from satisfying it. What its validation is more than one try is added to `tries`.
    fn violations(&self, completion: &[u8], tries: &mut usize) -> usize {
        let found = (self.violations)(completion);
        *tries += found.visits / VISITS_A_TRY;
        found.count
    }
}

/// Applications of subschemas to parts of a completion from which on it counts as a further try.
const VISITS_A_TRY: usize = 1_000;

/// A completion that violates the condition, ordered by what is deviated from first. What is violated first must be mended
/// first, so early deviations are continued first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// Violations and deviations together.
    cost: usize,
    violations: usize,
    /// The position after the last deviation.
    from: usize,
    length: usize,
    number: usize,
    text: Vec<u8>,
}

impl Closer {
    /// A short completion that satisfies the condition, or none if none was found. `earlier` satisfied it in an earlier
    /// state.
    pub fn valid_completion(
        &self,
        state: &mut ParseState,
        condition: &Condition<'_>,
        earlier: &[u8],
        effort: Effort,
    ) -> Option<Vec<u8>> {
        let shortest = self.completion(state)?;
        let mut tries = 0;
        let violations = condition.violations(&shortest, &mut tries);
        if violations == 0 {
            return Some(shortest);
        }
        if let Some(found) = self.spliced(state, condition, &shortest, earlier, effort, &mut tries) {
            return Some(found);
        }
        let mut number = 0;
        let length = shortest.len();
        let first = Candidate { cost: violations, violations, from: 0, length, number: 0, text: shortest };
        let mut queue = BinaryHeap::from([Reverse(first)]);
        while let Some(Reverse(Candidate { cost, violations, from, text, .. })) = queue.pop() {
            let deviations = cost - violations + 1;
            let mut best: Option<Vec<u8>> = None;
            let start = state.mark();
            for at in 0..=text.len() {
                if at >= from {
                    for other in self.deviations(condition, text.get(at)) {
                        if tries > effort.tries {
                            break;
                        }
                        let Some(found) = self.deviate(state, &text[..at], &other) else { continue };
                        tries += 1;
                        number += 1;
                        let violations = condition.violations(&found, &mut tries);
                        if violations == 0 && best.as_ref().is_none_or(|best| found.len() < best.len()) {
                            best = Some(found);
                        } else if violations != 0 && best.is_none() {
                            queue.push(Reverse(Candidate {
                                cost: violations + deviations,
                                violations,
                                from: at + other.len(),
                                length: found.len(),
                                number,
                                text: found,
                            }));
                        }
                    }
                }
                if text.get(at).is_some_and(|byte| !self.read(state, &[*byte])) || tries > effort.tries {
                    break;
                }
            }
            state.restore(start);
            if best.is_some() || tries > effort.tries {
                return best;
            }
        }
        None
    }

    /// The current lexeme's shortest end, and then what remains of an earlier completion. In a long list of similar items most
    /// remains are read to their end, so the bytes that are read are bounded by the effort.
    fn spliced(
        &self,
        state: &mut ParseState,
        condition: &Condition<'_>,
        shortest: &[u8],
        earlier: &[u8],
        effort: Effort,
        tries: &mut usize,
    ) -> Option<Vec<u8>> {
        let start = state.mark();
        let mut left_bytes = effort.tries.saturating_mul(SPLICED_BYTES_A_TRY);
        let mut found = None;
        'ends: for end in 0..=shortest.len().min(MAX_SPLICED) {
            for from in 0..earlier.len() {
                if *tries > effort.tries || left_bytes == 0 {
                    break 'ends;
                }
                let text = [&shortest[..end], &earlier[from..]].concat();
                let allowed = self.read_allowed(state, &text);
                let fits = allowed == text.len() && self.completion(state).is_some_and(|rest| rest.is_empty());
                state.restore(start.clone());
                left_bytes = left_bytes.saturating_sub(allowed + 1);
                if fits && condition.violations(&text, tries) == 0 {
                    found = Some(text);
                    break 'ends;
                }
            }
        }
        found
    }

    /// What may be written in place of a byte.
    fn deviations(&self, condition: &Condition<'_>, byte: Option<&u8>) -> Vec<Vec<u8>> {
        let mut bytes: Vec<u8> = self.bytes().into_iter().filter(|other| Some(other) != byte).collect();
        bytes.sort_by_key(|byte| !byte.is_ascii_alphanumeric());
        let literals = condition.literals.iter().flat_map(|literal| {
            let following = literal.starts_with('"').then(|| format!(",{literal}"));
            std::iter::once(literal.clone()).chain(following).map(String::into_bytes)
        });
        bytes.into_iter().map(|byte| vec![byte]).chain(literals).collect()
    }

    /// The completion that begins with `text`, which has been read, and continues with `other`.
    fn deviate(&self, state: &mut ParseState, text: &[u8], other: &[u8]) -> Option<Vec<u8>> {
        let before = state.mark();
        let rest = if self.read(state, other) { self.completion(state) } else { None };
        state.restore(before);
        rest.map(|rest| [text, other, &rest].concat())
    }
}

/// Maximum bytes of the shortest completion after which an earlier one is continued.
const MAX_SPLICED: usize = 24;

/// Bytes of continuations of an earlier completion that are read for each try of a search's effort.
const SPLICED_BYTES_A_TRY: usize = 200;

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;
    use std::sync::Arc;

    use llguidance::ParserFactory;
    use llguidance::api::TopLevelGrammar;
    use models::Tokenizer;
    use serde_json::json;
    use toktrie::TokEnv;

    use super::*;
    use crate::token_env::TokenEnv;

    #[test]
    fn the_continuations_of_a_long_earlier_completion_are_bounded_by_the_effort() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama/tokenizer.json");
        let tokenizer = Arc::new(Tokenizer::from_file(&golden).unwrap());
        let vocabulary = tokenizer.len();
        let env: TokEnv = Arc::new(TokenEnv::new(tokenizer, vocabulary, &[258]).unwrap());
        let mut factory = ParserFactory::new_simple(&env).unwrap();
        factory.quiet();
        let schema = json!({ "type": "array", "items": { "type": "integer" },
            "x-guidance": { "whitespace_flexible": false } });
        let parser = factory.create_parser(TopLevelGrammar::from_json_schema(schema)).unwrap();
        let closer = Closer::new(parser.parser.grammar()).unwrap();
        let mut state = closer.begin();
        assert!(closer.read(&mut state, b"[1"));
        let judged = Cell::new(0);
        let violations = |_: &[u8]| {
            judged.set(judged.get() + 1);
            Violations { count: 1, visits: 1 }
        };
        let condition = Condition { violations: &violations, literals: &[] };
        // It may be continued from each of its bytes.
        let earlier = format!("{}0]", "0,".repeat(1_000));
        let found = closer.valid_completion(&mut state, &condition, earlier.as_bytes(), Effort { tries: 10 });
        assert_eq!(found, None);
        assert!(judged.get() < 50, "{} completions were judged", judged.get());
    }
}
