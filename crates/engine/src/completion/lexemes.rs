//! The lexemes of a grammar as one automaton, and shortest paths through it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use llguidance::api::ParserLimits;
use llguidance::derivre::{NextByte, StateID};
use llguidance::earley::lexerspec::{LexemeIdx, LexerSpec};
use llguidance::earley::regexvec::{LexemeSet, RegexVec};

use super::rules::ENDLESS;

/// The order in which bytes are tried among equally short paths: bytes that end a text come first.
const ORDER: &[u8] = b"\"]}:,{[0123456789 -.ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_/\\";

/// Extra cost of a `t` where the lexeme may be `true`: a reply closed early should claim less, so `false` is preferred.
const TRUE_COST: u32 = 2;

/// Maximum transitions of the search for the shortest text of a whole lexeme; beyond it any text is taken.
const LEXEME_TRANSITIONS: usize = 40_000;
/// The same for the rest of a started lexeme.
const REST_TRANSITIONS: usize = 4_000;
/// Maximum transitions until any text must have been found.
const MAX_TRANSITIONS: usize = 400_000;
/// Maximum regular-expression work of one search, in llguidance's units (about 0.1 us).
const SEARCH_FUEL: u64 = 1_000_000;
/// The same for all lexemes of a format together.
const COMPILE_FUEL: u64 = 10_000_000;
/// Number of states at which the automaton is rebuilt, which bounds its size.
const MAX_STATES: usize = 30_000;

/// The automaton of the lexemes; states are created when they are reached.
pub(super) struct Lexemes {
    fresh: RegexVec,
    automaton: RegexVec,
    count: usize,
    /// How often the automaton has been rebuilt; a state belongs to one epoch.
    pub epoch: u64,
    /// One byte of each equivalence class, in the order in which they are tried.
    bytes: Vec<u8>,
    /// The shortest text of each lexeme.
    texts: Vec<Option<Text>>,
}

#[derive(Clone)]
pub(super) struct Text {
    pub bytes: Vec<u8>,
    pub cost: u32,
}

/// The effect of a byte on the state.
pub(super) enum Step {
    /// The lexeme continues.
    Within(StateID),
    /// The byte is the last of any of these lexemes.
    Ended(Vec<LexemeIdx>),
    /// One of these lexemes has ended before the byte.
    EndedBefore(Vec<LexemeIdx>),
    /// No lexeme continues with this byte.
    Dead,
}

/// The search exceeded its number of transitions.
struct OutOfBudget;

impl Lexemes {
    /// The automaton of a grammar's lexemes, with the shortest text of each.
    ///
    /// # Errors
    /// If their regular expressions are too complex.
    pub fn new(spec: &LexerSpec) -> Result<Lexemes, String> {
        let fresh = spec.to_regex_vec(&mut ParserLimits::default()).map_err(|error| error.to_string())?;
        let rest = (0..=u8::MAX).filter(|byte| !ORDER.contains(byte));
        let mut classes = HashSet::new();
        let is_new = |byte: &u8| classes.insert(fresh.alpha().map(*byte));
        let bytes = ORDER.iter().copied().chain(rest).filter(is_new).collect();
        let (automaton, count) = (fresh.clone(), spec.lexemes.len());
        let mut lexemes = Lexemes { fresh, automaton, count, epoch: 0, bytes, texts: Vec::new() };
        lexemes.automaton.set_fuel(COMPILE_FUEL);
        for at in 0..count {
            let text = lexemes.find_text(LexemeIdx::new(at));
            lexemes.texts.push(text);
        }
        if lexemes.automaton.has_error() {
            return Err("its regular expressions are too complex".into());
        }
        Ok(lexemes)
    }

    /// One byte of each equivalence class, in the order in which they are tried.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Rebuilds the automaton if it has grown too large or run out of fuel; earlier states then belong to an earlier
    /// epoch.
    pub fn tidy(&mut self) {
        if self.automaton.has_error() || self.automaton.stats().num_states > MAX_STATES {
            self.automaton = self.fresh.clone();
            self.epoch += 1;
        }
        self.automaton.set_fuel(SEARCH_FUEL);
    }

    /// The state in which any of these lexemes may start.
    pub fn initial(&mut self, allowed: impl Iterator<Item = LexemeIdx>) -> StateID {
        let mut set = LexemeSet::new(self.count);
        allowed.for_each(|lexeme| set.add(lexeme));
        self.automaton.initial_state(&set)
    }

    /// The effect of a byte in `state`; `begun` if the lexeme has a byte already.
    pub fn step(&mut self, state: StateID, byte: u8, begun: bool) -> Step {
        let next = self.transition(state, byte);
        if next.is_dead() {
            return match self.ends(state) {
                ends if begun && !ends.is_empty() => Step::EndedBefore(ends),
                _ => Step::Dead,
            };
        }
        if next.has_lowest_match() { Step::Ended(self.ends(next)) } else { Step::Within(next) }
    }

    /// The lexemes that may end in `state`.
    pub fn ends(&self, state: StateID) -> Vec<LexemeIdx> {
        if self.automaton.has_error() {
            return Vec::new();
        }
        let state = self.automaton.state_desc(state);
        let (greedy, lazy) = (state.greedy_accepting.as_slice(), state.lazy_accepting.as_slice());
        if greedy.is_empty() { lazy.to_vec() } else { greedy.to_vec() }
    }

    /// The shortest text of a lexeme; none if there is none or the search is too expensive.
    pub fn text(&self, lexeme: LexemeIdx) -> Option<&Text> {
        self.texts[lexeme.as_usize()].as_ref()
    }

    fn find_text(&mut self, lexeme: LexemeIdx) -> Option<Text> {
        let state = self.initial(std::iter::once(lexeme));
        let found = self.shortest(state, false, LEXEME_TRANSITIONS, &|end| if end == lexeme { 0 } else { ENDLESS });
        found.map(|(text, _)| text)
    }

    /// The shortest rest of a lexeme in `state`, with the lexeme that it ends; `after` is the cost that follows the end
    /// of each lexeme.
    pub fn rest(&mut self, state: StateID, after: &dyn Fn(LexemeIdx) -> u32) -> Option<(Text, LexemeIdx)> {
        self.shortest(state, true, REST_TRANSITIONS, after)
    }

    fn transition(&mut self, state: StateID, byte: u8) -> StateID {
        if self.automaton.has_error() { StateID::DEAD } else { self.automaton.transition(state, byte) }
    }

    fn shortest(
        &mut self,
        from: StateID,
        begun: bool,
        transitions: usize,
        after: &dyn Fn(LexemeIdx) -> u32,
    ) -> Option<(Text, LexemeIdx)> {
        self.breadth_first(from, begun, transitions, after)
            .unwrap_or_else(|OutOfBudget| self.depth_first(from, begun, after))
    }

    /// The cheapest end in `state`.
    fn cheapest_end(&self, state: StateID, after: &dyn Fn(LexemeIdx) -> u32) -> Option<(u32, LexemeIdx)> {
        let ends = self.ends(state).into_iter().map(|lexeme| (after(lexeme), lexeme));
        ends.filter(|(cost, _)| *cost != ENDLESS).min_by_key(|(cost, _)| *cost)
    }

    /// The least cost that follows any lexeme which may end after `state`.
    fn least_after(&self, state: StateID, after: &dyn Fn(LexemeIdx) -> u32) -> u32 {
        if self.automaton.has_error() {
            return 0;
        }
        self.automaton.state_desc(state).possible.iter().map(after).min().unwrap_or(ENDLESS)
    }

    /// The bytes worth trying in `state`.
    fn candidates(&mut self, state: StateID) -> Vec<u8> {
        if self.automaton.has_error() || state.has_lowest_match() {
            return Vec::new();
        }
        match self.automaton.next_byte(state) {
            NextByte::ForcedByte(byte) => vec![byte],
            NextByte::ForcedEOI | NextByte::Dead => Vec::new(),
            _ => self.bytes.clone(),
        }
    }

    /// Dijkstra's algorithm; `None` if there is no end.
    fn breadth_first(
        &mut self,
        from: StateID,
        begun: bool,
        transitions: usize,
        after: &dyn Fn(LexemeIdx) -> u32,
    ) -> Result<Option<(Text, LexemeIdx)>, OutOfBudget> {
        let true_cost = if begun { 0 } else { self.true_cost(from) };
        let least_after = self.least_after(from, after);
        let mut queue = BinaryHeap::from([Reverse((0_u32, 0_usize))]);
        // State, previous step, byte between them.
        let mut steps: Vec<(StateID, usize, u8)> = vec![(from, 0, 0)];
        let mut done = HashSet::new();
        let (mut best, mut taken) = (None::<(u32, u32, usize, LexemeIdx)>, 0);
        while let Some(Reverse((cost, at))) = queue.pop() {
            let state = steps[at].0;
            if !done.insert(state) {
                continue;
            }
            if (begun || at != 0)
                && let Some((end, lexeme)) = self.cheapest_end(state, after)
                && best.is_none_or(|(total, ..)| cost + end < total)
            {
                best = Some((cost + end, cost, at, lexeme));
            }
            if best.is_some_and(|(total, ..)| total <= cost.saturating_add(least_after)) {
                break;
            }
            for byte in self.candidates(state) {
                taken += 1;
                let next = self.transition(state, byte);
                if !next.is_dead() && !done.contains(&next) {
                    let extra = if at == 0 && byte == b't' { true_cost } else { 0 };
                    queue.push(Reverse((cost + 1 + extra, steps.len())));
                    steps.push((next, at, byte));
                }
            }
            if taken > transitions && !queue.is_empty() {
                return Err(OutOfBudget);
            }
        }
        let found = best.map(|(_, cost, mut at, lexeme)| {
            let mut bytes = Vec::new();
            while at != 0 {
                bytes.push(steps[at].2);
                at = steps[at].1;
            }
            bytes.reverse();
            (Text { bytes, cost }, lexeme)
        });
        Ok(found)
    }

    /// The first end found by a depth-first search.
    fn depth_first(
        &mut self,
        from: StateID,
        begun: bool,
        after: &dyn Fn(LexemeIdx) -> u32,
    ) -> Option<(Text, LexemeIdx)> {
        let mut seen = HashSet::from([from]);
        let mut path: Vec<(StateID, std::vec::IntoIter<u8>)> = vec![(from, self.candidates(from).into_iter())];
        let mut bytes = Vec::new();
        let mut taken = 0;
        if begun && let Some((_, lexeme)) = self.cheapest_end(from, after) {
            return Some((Text { bytes, cost: 0 }, lexeme));
        }
        while let Some((state, left)) = path.last_mut() {
            let (state, byte) = (*state, left.next());
            let Some(byte) = byte else {
                path.pop();
                bytes.pop();
                continue;
            };
            taken += 1;
            let next = self.transition(state, byte);
            if taken > MAX_TRANSITIONS || self.automaton.has_error() {
                return None;
            }
            if next.is_dead() || !seen.insert(next) {
                continue;
            }
            bytes.push(byte);
            if let Some((_, lexeme)) = self.cheapest_end(next, after) {
                let cost = u32::try_from(bytes.len()).ok()?;
                return Some((Text { bytes, cost }, lexeme));
            }
            path.push((next, self.candidates(next).into_iter()));
        }
        None
    }

    /// Extra cost of a first `t`.
    fn true_cost(&mut self, from: StateID) -> u32 {
        let end = b"true".iter().fold(from, |state, byte| self.transition(state, *byte));
        if end.is_dead() || self.ends(end).is_empty() { 0 } else { TRUE_COST }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use llguidance::ParserFactory;
    use llguidance::api::TopLevelGrammar;
    use models::Tokenizer;
    use serde_json::json;
    use toktrie::TokEnv;

    use crate::completion::Closer;
    use crate::token_env::TokenEnv;

    #[test]
    fn the_end_of_a_string_is_found_at_once_however_long_it_may_be_and_whatever_follows() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama/tokenizer.json");
        let tokenizer = Arc::new(Tokenizer::from_file(&golden).unwrap());
        let (vocabulary, follows) = (tokenizer.len(), "word ".repeat(12));
        let env: TokEnv = Arc::new(TokenEnv::new(tokenizer, vocabulary, &[258]).unwrap());
        let mut factory = ParserFactory::new_simple(&env).unwrap();
        factory.quiet();
        let properties = json!({ "a": { "type": "string", "maxLength": 500 }, "b": { "const": follows } });
        let schema = json!({ "type": "object", "properties": properties, "required": ["a", "b"],
            "additionalProperties": false, "x-guidance": { "whitespace_flexible": false } });
        let parser = factory.create_parser(TopLevelGrammar::from_json_schema(schema)).unwrap();
        let closer = Closer::new(parser.parser.grammar()).unwrap();
        let mut state = closer.begin();
        assert!(closer.read(&mut state, b"{\"a\":\"It"));
        let states = || closer.lexemes().automaton.stats().num_states;
        let before = states();
        assert_eq!(closer.distance(&mut state), Some(format!("\",\"b\":\"{follows}\"}}").len()));
        assert!(states() - before < 40, "{} states were created", states() - before);
    }
}
