//! The parse state of a reply: an Earley chart over lexemes, with the remaining cost of each open rule.
//!
//! llguidance has a chart of its own, but its items are private. This one has the same rows: a lexeme ends where none
//! of the allowed ones can continue (J. Earley, An efficient context-free parsing algorithm, 1970).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use llguidance::derivre::StateID;
use llguidance::earley::lexerspec::LexemeIdx;

use super::lexemes::{Lexemes, Step};
use super::rules::{Cfg, ENDLESS, index};

/// The rows so far, and the bytes of the current lexeme.
#[derive(Clone)]
pub(crate) struct ParseState {
    rows: Vec<Arc<Row>>,
    begun: Vec<u8>,
    /// The state of the automaton after these bytes, with its epoch.
    state: StateID,
    epoch: u64,
}

/// A saved state to return to.
#[derive(Clone)]
pub(crate) struct Mark {
    rows: usize,
    begun: Vec<u8>,
    state: StateID,
    epoch: u64,
}

/// The items that are open before a lexeme.
struct Row {
    items: Vec<Item>,
    awaited: Awaited,
    lexemes: Ends,
    is_end: bool,
}

/// For each symbol expected in a row, the least cost of what follows it, and the item that expects it; none at the end
/// of the text.
type Awaited = HashMap<u32, (u32, Option<usize>)>;
/// The same for lexemes.
type Ends = HashMap<LexemeIdx, (u32, usize)>;

/// A rule parsed up to a position, started in a row.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Item {
    rule: u32,
    dot: u32,
    from: u32,
}

impl ParseState {
    /// Before the first byte.
    pub(super) fn new(rules: &Cfg, lexemes: &mut Lexemes) -> ParseState {
        let start = &rules.symbols[rules.start as usize];
        let items = start.rules.iter().map(|rule| Item { rule: *rule, dot: 0, from: 0 }).collect();
        let mut progress =
            ParseState { rows: Vec::new(), begun: Vec::new(), state: StateID::DEAD, epoch: lexemes.epoch };
        progress.push_row(items, rules, lexemes);
        progress
    }

    pub fn mark(&self) -> Mark {
        Mark { rows: self.rows.len(), begun: self.begun.clone(), state: self.state, epoch: self.epoch }
    }

    /// Returns to a saved state.
    pub fn restore(&mut self, mark: Mark) {
        self.rows.truncate(mark.rows);
        (self.begun, self.state, self.epoch) = (mark.begun, mark.state, mark.epoch);
    }

    /// Consumes bytes up to the first that the grammar does not allow; returns how many it allows.
    pub(super) fn read(&mut self, bytes: &[u8], rules: &Cfg, lexemes: &mut Lexemes) -> usize {
        self.renew(lexemes);
        bytes.iter().take_while(|byte| self.read_byte(**byte, rules, lexemes)).count()
    }

    fn read_byte(&mut self, byte: u8, rules: &Cfg, lexemes: &mut Lexemes) -> bool {
        match lexemes.step(self.state, byte, !self.begun.is_empty()) {
            Step::Within(next) => {
                self.state = next;
                self.begun.push(byte);
                true
            }
            Step::Ended(ends) => self.scan(&ends, rules, lexemes),
            Step::EndedBefore(ends) => {
                self.scan(&ends, rules, lexemes)
                    && match lexemes.step(self.state, byte, false) {
                        Step::Within(next) => {
                            self.state = next;
                            self.begun.push(byte);
                            true
                        }
                        Step::Ended(ends) => self.scan(&ends, rules, lexemes),
                        Step::EndedBefore(_) | Step::Dead => false,
                    }
            }
            Step::Dead => false,
        }
    }

    /// Recomputes the state if the automaton has been rebuilt.
    fn renew(&mut self, lexemes: &mut Lexemes) {
        lexemes.tidy();
        if self.epoch != lexemes.epoch {
            let initial = lexemes.initial(self.last().lexemes.keys().copied());
            self.state = self.begun.iter().fold(initial, |state, byte| match lexemes.step(state, *byte, false) {
                Step::Within(next) => next,
                _ => StateID::DEAD,
            });
            self.epoch = lexemes.epoch;
        }
    }

    fn last(&self) -> &Row {
        &self.rows[self.rows.len() - 1]
    }

    /// Ends the current lexeme, which was one of these.
    fn scan(&mut self, ends: &[LexemeIdx], rules: &Cfg, lexemes: &mut Lexemes) -> bool {
        let awaits = |item: &&Item| {
            let symbol = rules.rules[item.rule as usize].right.get(item.dot as usize);
            symbol
                .and_then(|symbol| rules.symbols[*symbol as usize].lexeme)
                .is_some_and(|lexeme| ends.contains(&lexeme))
        };
        let items: Vec<Item> =
            self.last().items.iter().filter(awaits).map(|item| Item { dot: item.dot + 1, ..*item }).collect();
        !items.is_empty() && {
            self.push_row(items, rules, lexemes);
            true
        }
    }

    /// Predicts and completes from the items of a new row.
    fn push_row(&mut self, mut items: Vec<Item>, rules: &Cfg, lexemes: &mut Lexemes) {
        let here = index(self.rows.len());
        let mut seen: HashSet<Item> = items.iter().copied().collect();
        let mut is_end = here == 0 && rules.symbols[rules.start as usize].nullable;
        let mut at = 0;
        while let Some(item) = items.get(at).copied() {
            at += 1;
            let rule = &rules.rules[item.rule as usize];
            let mut add = |item: Item| {
                if seen.insert(item) {
                    items.push(item);
                }
            };
            if let Some(next) = rule.right.get(item.dot as usize) {
                let symbol = &rules.symbols[*next as usize];
                symbol.rules.iter().for_each(|rule| add(Item { rule: *rule, dot: 0, from: here }));
                if symbol.nullable {
                    add(Item { dot: item.dot + 1, ..item });
                }
                continue;
            }
            is_end |= rule.left == rules.start && item.from == 0;
            // Symbols that derive the empty text were skipped when they were predicted.
            if item.from < here {
                let waiting = &self.rows[item.from as usize];
                let awaits =
                    |item: &&Item| rules.rules[item.rule as usize].right.get(item.dot as usize) == Some(&rule.left);
                waiting.items.iter().filter(awaits).for_each(|item| add(Item { dot: item.dot + 1, ..*item }));
            }
        }
        let (awaited, ends) = self.costs(&items, here, rules);
        self.state = lexemes.initial(ends.keys().copied());
        self.begun.clear();
        self.rows.push(Arc::new(Row { items, awaited, lexemes: ends, is_end }));
    }

    /// The least cost of what follows each expected symbol and lexeme.
    fn costs(&self, items: &[Item], here: u32, rules: &Cfg) -> (Awaited, Ends) {
        let mut awaited = Awaited::new();
        if here == 0 {
            awaited.insert(rules.start, (0, None));
        }
        let after = |item: &Item, awaited: &Awaited| {
            let rule = &rules.rules[item.rule as usize];
            let above = if item.from == here { awaited } else { &self.rows[item.from as usize].awaited };
            let above = above.get(&rule.left).map_or(ENDLESS, |(cost, _)| *cost);
            rule.rest[item.dot as usize + 1].saturating_add(above)
        };
        let next = |item: &Item| rules.rules[item.rule as usize].right.get(item.dot as usize).copied();
        // A rule is predicted after the items that expect it, so this rarely takes more than two rounds.
        loop {
            let mut changed = false;
            for (number, item) in items.iter().enumerate() {
                let Some(symbol) = next(item).filter(|symbol| rules.symbols[*symbol as usize].lexeme.is_none()) else {
                    continue;
                };
                let cost = after(item, &awaited);
                if cost < awaited.get(&symbol).map_or(ENDLESS, |(known, _)| *known) {
                    awaited.insert(symbol, (cost, Some(number)));
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let mut ends = Ends::new();
        for (number, item) in items.iter().enumerate() {
            let Some(lexeme) = next(item).and_then(|symbol| rules.symbols[symbol as usize].lexeme) else { continue };
            let cost = after(item, &awaited);
            let known = ends.entry(lexeme).or_insert((cost, number));
            if cost < known.0 {
                *known = (cost, number);
            }
        }
        (awaited, ends)
    }

    /// Number of bytes to the nearest end, or slightly more to avoid `true`; none if no end has been found.
    pub(super) fn distance(&mut self, lexemes: &mut Lexemes) -> Option<u32> {
        self.nearest(lexemes).map(|(cost, ..)| cost)
    }

    /// The text to the nearest end; none if no end has been found.
    pub(super) fn completion(&mut self, rules: &Cfg, lexemes: &mut Lexemes) -> Option<Vec<u8>> {
        let (_, mut bytes, lexeme) = self.nearest(lexemes)?;
        let Some(lexeme) = lexeme else { return Some(bytes) };
        let mut row = self.last();
        let mut waiting = Some(row.lexemes.get(&lexeme)?.1);
        let mut rest = Vec::new();
        while let Some(number) = waiting {
            let item = row.items[number];
            let rule = &rules.rules[item.rule as usize];
            rules.derive(&rule.right[item.dot as usize + 1..], &mut rest);
            row = &self.rows[item.from as usize];
            waiting = row.awaited.get(&rule.left)?.1;
        }
        for lexeme in rest {
            bytes.extend_from_slice(&lexemes.text(lexeme)?.bytes);
        }
        Some(bytes)
    }

    /// The cost of the nearest end, the rest of the current lexeme on the way to it, and that lexeme; none at the end
    /// itself.
    fn nearest(&mut self, lexemes: &mut Lexemes) -> Option<(u32, Vec<u8>, Option<LexemeIdx>)> {
        self.renew(lexemes);
        let row = self.last();
        if !self.begun.is_empty() {
            let after = |lexeme| row.lexemes.get(&lexeme).map_or(ENDLESS, |(cost, _)| *cost);
            let (text, lexeme) = lexemes.rest(self.state, &after)?;
            return Some((text.cost.checked_add(after(lexeme))?, text.bytes, Some(lexeme)));
        }
        if row.is_end {
            return Some((0, Vec::new(), None));
        }
        let mut best: Option<(u32, LexemeIdx, usize)> = None;
        for (lexeme, (after, number)) in &row.lexemes {
            let Some(text) = lexemes.text(*lexeme) else { continue };
            let cost = text.cost.saturating_add(*after);
            if cost != ENDLESS && best.is_none_or(|(known, _, first)| (cost, *number) < (known, first)) {
                best = Some((cost, *lexeme, *number));
            }
        }
        let (cost, lexeme, _) = best?;
        Some((cost, lexemes.text(lexeme)?.bytes.clone(), Some(lexeme)))
    }
}
