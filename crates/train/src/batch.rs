//! Selects the examples of each step and arranges them into passes.

use std::ops::Range;
use std::sync::Arc;

use crate::examples::Example;
use crate::random::Random;

/// Sequences that go through the network together, end to end, without padding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    pub tokens: Vec<u32>,
    pub sequences: Arc<[Range<usize>]>,
    /// Rows whose hidden states predict a token of an answer, ascending.
    pub rows: Vec<u32>,
    /// Those tokens.
    pub targets: Vec<u32>,
    /// For each sequence its part of `rows`.
    pub answers: Vec<Range<usize>>,
}

/// The examples of a step, counted from 0: every epoch is a permutation of its own, and the steps go through one epoch after
/// the other.
pub fn chosen(step: usize, per_step: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut permutation: (usize, Vec<usize>) = (usize::MAX, Vec::new());
    (step * per_step..(step + 1) * per_step)
        .map(|at| {
            let epoch = at / count;
            if permutation.0 != epoch {
                let mut order: Vec<usize> = (0..count).collect();
                Random::named(seed, &format!("epoch {epoch}")).shuffle(&mut order);
                permutation = (epoch, order);
            }
            permutation.1[at % count]
        })
        .collect()
}

/// Arranges examples into passes of at most `most` tokens; examples of similar length share a pass. A longer example
/// has a pass of its own.
pub fn passes(examples: &[&Example], most: usize) -> Vec<Pass> {
    let mut order: Vec<&Example> = examples.to_vec();
    order.sort_by_key(|example| std::cmp::Reverse(example.tokens.len()));
    let mut groups: Vec<(usize, Vec<&Example>)> = Vec::new();
    for example in order {
        let len = example.tokens.len();
        match groups.iter_mut().find(|(tokens, _)| tokens + len <= most) {
            Some((tokens, group)) => {
                *tokens += len;
                group.push(example);
            }
            None => groups.push((len, vec![example])),
        }
    }
    groups.iter().map(|(_, group)| Pass::new(group)).collect()
}

impl Pass {
    /// Concatenates examples.
    pub fn new(examples: &[&Example]) -> Pass {
        let (mut tokens, mut sequences, mut rows, mut targets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut answers = Vec::new();
        for example in examples {
            let start = tokens.len();
            let first_row = rows.len();
            tokens.extend_from_slice(&example.tokens);
            sequences.push(start..tokens.len());
            rows.extend(example.answer.clone().map(|at| (start + at - 1) as u32));
            targets.extend_from_slice(&example.tokens[example.answer.clone()]);
            answers.push(first_row..rows.len());
        }
        Pass { tokens, sequences: sequences.into(), rows, targets, answers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(len: usize) -> Example {
        Example { tokens: (0..len as u32).collect(), answer: len - 2..len }
    }

    #[test]
    fn every_epoch_takes_every_example_once_in_another_order() {
        let drawn: Vec<usize> = (0..20).flat_map(|step| chosen(step, 3, 10, 7)).collect();
        let epochs: Vec<&[usize]> = drawn.chunks(10).collect();
        for epoch in &epochs {
            let mut sorted = epoch.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
        }
        assert_ne!(epochs[0], epochs[1]);
        assert_eq!(chosen(5, 3, 10, 7), drawn[15..18]);
    }

    #[test]
    fn passes_hold_all_tokens_and_no_more_than_allowed() {
        let examples: Vec<Example> = [5, 30, 12, 8, 50, 3].map(example).into();
        let passes = passes(&examples.iter().collect::<Vec<_>>(), 40);
        assert_eq!(passes.iter().map(|pass| pass.tokens.len()).sum::<usize>(), 108);
        assert!(passes.iter().all(|pass| pass.tokens.len() <= 40 || pass.sequences.len() == 1));
        for pass in &passes {
            for (sequence, answer) in pass.sequences.iter().zip(&pass.answers) {
                assert_eq!(answer.len(), 2);
                let row = pass.rows[answer.start] as usize;
                assert_eq!(row, sequence.end - 3, "the row before the first token of the answer");
                assert_eq!(pass.targets[answer.start], pass.tokens[row + 1]);
            }
        }
    }
}
