//! The rules of a compiled grammar and the cheapest derivation of each symbol.
//!
//! The cheapest derivations are a fixed point found in order of cost (D. E. Knuth, A generalization of Dijkstra's
//! algorithm, 1977): recursion is allowed, and a symbol that derives no finite text gets no cost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use llguidance::earley::CGrammar;
use llguidance::earley::lexerspec::LexemeIdx;

/// The cost of a symbol that derives no finite text.
pub(super) const ENDLESS: u32 = u32::MAX;

/// A context-free grammar over lexemes; symbols and rules are indices.
pub(super) struct Cfg {
    pub start: u32,
    pub symbols: Vec<Symbol>,
    pub rules: Vec<Rule>,
}

#[derive(Clone, Default)]
pub(super) struct Symbol {
    /// The lexeme of a terminal.
    pub lexeme: Option<LexemeIdx>,
    pub nullable: bool,
    pub rules: Vec<u32>,
    /// Cost of the cheapest text.
    pub cost: u32,
    /// The rule of that text; none for a terminal and for the empty text.
    pub cheapest: Option<u32>,
}

pub(super) struct Rule {
    pub left: u32,
    pub right: Box<[u32]>,
    /// Cost of what follows each position of the right-hand side, its end included.
    pub rest: Box<[u32]>,
}

impl Cfg {
    /// The rules reachable from the start symbol; `lexeme_cost` is the cost of a lexeme's cheapest text.
    ///
    /// # Errors
    /// If the grammar has parameters; the supported formats have none.
    pub fn new(grammar: &CGrammar, lexeme_cost: impl Fn(LexemeIdx) -> u32) -> Result<Cfg, String> {
        if grammar.parametric() {
            return Err("a grammar with parameters cannot be closed".into());
        }
        let start = index(grammar.start().as_index());
        let mut found = Cfg { start, symbols: Vec::new(), rules: Vec::new() };
        let mut pending = vec![grammar.start()];
        let mut seen = vec![false; grammar.start().as_index() + 1];
        seen[grammar.start().as_index()] = true;
        while let Some(symbol) = pending.pop() {
            let (data, at) = (grammar.sym_data(symbol), symbol.as_index());
            let mut rules = Vec::new();
            for rule in grammar.rules_of(symbol) {
                let (right, ..) = grammar.rule_rhs(*rule);
                for part in right {
                    if seen.len() <= part.as_index() {
                        seen.resize(part.as_index() + 1, false);
                    }
                    if !std::mem::replace(&mut seen[part.as_index()], true) {
                        pending.push(*part);
                    }
                }
                rules.push(index(found.rules.len()));
                let right = right.iter().map(|part| index(part.as_index())).collect();
                found.rules.push(Rule { left: index(at), right, rest: Box::default() });
            }
            if found.symbols.len() <= at {
                found.symbols.resize(at + 1, Symbol::default());
            }
            let cost = data.lexeme.map_or(ENDLESS, &lexeme_cost);
            found.symbols[at] = Symbol { lexeme: data.lexeme, nullable: data.is_nullable, rules, cost, cheapest: None };
        }
        found.find_costs();
        Ok(found)
    }

    /// Cost of the cheapest text of the whole grammar.
    pub fn cost(&self) -> u32 {
        self.symbols[self.start as usize].cost
    }

    fn find_costs(&mut self) {
        let mut uses = vec![Vec::new(); self.symbols.len()];
        let mut open: Vec<(usize, u32)> = Vec::with_capacity(self.rules.len());
        for (number, rule) in self.rules.iter().enumerate() {
            open.push((rule.right.len(), 0));
            rule.right.iter().for_each(|part| uses[*part as usize].push(index(number)));
        }
        // Cost, rule (none first), symbol: ties are broken in the order of the grammar.
        let mut queue = BinaryHeap::new();
        for (at, symbol) in self.symbols.iter_mut().enumerate() {
            if symbol.nullable {
                symbol.cost = ENDLESS;
                queue.push(Reverse((0, None, index(at))));
            } else if symbol.cost != ENDLESS {
                let cost = std::mem::replace(&mut symbol.cost, ENDLESS);
                queue.push(Reverse((cost, None, index(at))));
            }
        }
        while let Some(Reverse((cost, rule, at))) = queue.pop() {
            let symbol = &mut self.symbols[at as usize];
            if symbol.cost != ENDLESS {
                continue;
            }
            (symbol.cost, symbol.cheapest) = (cost, rule);
            for number in &uses[at as usize] {
                let (missing, sum) = &mut open[*number as usize];
                (*missing, *sum) = (*missing - 1, sum.saturating_add(cost));
                if *missing == 0 && *sum != ENDLESS {
                    queue.push(Reverse((*sum, Some(*number), self.rules[*number as usize].left)));
                }
            }
        }
        for rule in &mut self.rules {
            let mut rest = vec![0; rule.right.len() + 1];
            for (position, part) in rule.right.iter().enumerate().rev() {
                rest[position] = self.symbols[*part as usize].cost.saturating_add(rest[position + 1]);
            }
            rule.rest = rest.into();
        }
    }

    /// The lexemes of the cheapest text of `symbols`, in order.
    pub fn derive(&self, symbols: &[u32], lexemes: &mut Vec<LexemeIdx>) {
        let mut pending: Vec<u32> = symbols.iter().rev().copied().collect();
        while let Some(at) = pending.pop() {
            let symbol = &self.symbols[at as usize];
            if let Some(lexeme) = symbol.lexeme {
                lexemes.push(lexeme);
            } else if let Some(rule) = symbol.cheapest {
                pending.extend(self.rules[rule as usize].right.iter().rev());
            }
        }
    }
}

/// llguidance numbers its symbols and rules with at most 32 bits.
pub(super) fn index(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
