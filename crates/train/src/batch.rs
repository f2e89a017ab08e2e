//! Selects the examples of each step and arranges them into passes.

use std::ops::Range;
use std::sync::Arc;

use portable::Sequence;
use random::Random;

use crate::examples::{Example, common};

/// Sequences that go through the network together, end to end, without padding.
#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    pub tokens: Vec<u32>,
    /// A sequence for each group of examples, with a branch for each example if there are several.
    pub sequences: Arc<[Sequence]>,
    /// Rows whose hidden states predict a token on which the loss is computed, ascending.
    pub rows: Vec<u32>,
    /// Those tokens.
    pub targets: Vec<u32>,
    /// For each example its part of `rows`.
    pub answers: Vec<Range<usize>>,
    /// For each example its weight.
    pub weights: Vec<f32>,
}

/// The groups of a step, counted from 0: every epoch is a permutation of its own, and the steps go through one epoch after
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

/// Tokens that a group takes in a pass.
pub fn tokens_of(group: &[Example]) -> usize {
    let shared = common(&group.iter().collect::<Vec<_>>());
    shared + group.iter().map(|example| example.tokens.len() - shared).sum::<usize>()
}

/// Arranges groups into passes of at most `most` tokens; groups of similar length share a pass. A longer group has a pass
/// of its own.
pub fn passes(groups: &[&[Example]], most: usize) -> Vec<Pass> {
    let mut order: Vec<(usize, &[Example])> = groups.iter().map(|group| (tokens_of(group), *group)).collect();
    order.sort_by_key(|(tokens, _)| std::cmp::Reverse(*tokens));
    let mut together: Vec<(usize, Vec<&[Example]>)> = Vec::new();
    for (len, group) in order {
        match together.iter_mut().find(|(tokens, _)| tokens + len <= most) {
            Some((tokens, groups)) => {
                *tokens += len;
                groups.push(group);
            }
            None => together.push((len, vec![group])),
        }
    }
    together.iter().map(|(_, groups)| Pass::new(groups)).collect()
}

impl Pass {
    /// Concatenates groups.
    pub fn new(groups: &[&[Example]]) -> Pass {
        let (mut tokens, mut sequences, mut rows, mut targets) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut answers, mut weights) = (Vec::new(), Vec::new());
        for group in groups {
            let start = tokens.len();
            let shared = match group {
                [_] => 0,
                _ => common(&group.iter().collect::<Vec<_>>()),
            };
            tokens.extend_from_slice(&group[0].tokens[..shared]);
            let mut branches = Vec::new();
            for example in *group {
                let (first_row, branch) = (rows.len(), tokens.len());
                branches.push(branch - start);
                tokens.extend_from_slice(&example.tokens[shared..]);
                rows.extend(example.learned().map(|at| (branch + at - shared - 1) as u32));
                targets.extend(example.learned().map(|at| example.tokens[at]));
                answers.push(first_row..rows.len());
                weights.push(example.weight);
            }
            if group.len() == 1 {
                branches.clear();
            }
            sequences.push(Sequence { rows: start..tokens.len(), branches });
        }
        Pass { tokens, sequences: sequences.into(), rows, targets, answers, weights }
    }

    /// The weight of each row.
    pub fn row_weights(&self) -> Vec<f32> {
        let of_answer = |(answer, weight): (&Range<usize>, &f32)| std::iter::repeat_n(*weight, answer.len());
        self.answers.iter().zip(&self.weights).flat_map(of_answer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::groups;

    fn example(len: usize) -> Example {
        Example { tokens: (0..len as u32).collect(), answer: len - 2..len, forced: Vec::new(), weight: 1.0 }
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
        let groups: Vec<&[Example]> = examples.chunks(1).collect();
        let passes = passes(&groups, 40);
        assert_eq!(passes.iter().map(|pass| pass.tokens.len()).sum::<usize>(), 108);
        assert!(passes.iter().all(|pass| pass.tokens.len() <= 40 || pass.sequences.len() == 1));
        for pass in &passes {
            for (sequence, answer) in pass.sequences.iter().zip(&pass.answers) {
                assert_eq!(answer.len(), 2);
                let row = pass.rows[answer.start] as usize;
                assert_eq!(row, sequence.rows.end - 3, "the row before the first token of the answer");
                assert_eq!(pass.targets[answer.start], pass.tokens[row + 1]);
            }
        }
    }

    #[test]
    fn examples_with_the_same_beginning_share_its_rows() {
        let of = |tail: &[u32], answer| Example {
            tokens: [&[1, 2, 3, 4, 5], tail].concat(),
            answer,
            forced: Vec::new(),
            weight: 0.5,
        };
        let examples = [of(&[6, 7, 8], 6..8), of(&[6, 9], 6..7), of(&[9, 9, 9], 7..8), example(20)];
        let groups = groups(&examples);
        assert_eq!(groups, [0..3, 3..4]);
        let pass = Pass::new(&[&examples[..3], &examples[3..]]);
        assert_eq!(pass.tokens[..13], [1, 2, 3, 4, 5, 6, 7, 8, 6, 9, 9, 9, 9]);
        assert_eq!(*pass.sequences, [Sequence { rows: 0..13, branches: vec![5, 8, 10] }, (13..33).into()]);
        assert_eq!(pass.rows, [5, 6, 8, 11, 30, 31]);
        assert_eq!(pass.targets, [7, 8, 9, 9, 18, 19]);
        assert_eq!(tokens_of(&examples[..3]), 13);
        assert_eq!(pass.row_weights(), [0.5, 0.5, 0.5, 0.5, 1.0, 1.0]);
        // The row before an answer is never shared.
        let same = [of(&[7], 5..6), of(&[8], 5..6)];
        assert_eq!(*Pass::new(&[&same[..]]).sequences, [Sequence { rows: 0..8, branches: vec![4, 6] }]);
        // Replies to a prompt of one token share no row, and do not see each other either.
        let short = [[1, 5], [1, 6]].map(|tokens| Example {
            tokens: tokens.to_vec(),
            answer: 1..2,
            forced: Vec::new(),
            weight: 1.0,
        });
        assert_eq!(*Pass::new(&[&short[..]]).sequences, [Sequence { rows: 0..4, branches: vec![0, 2] }]);
    }

    #[test]
    fn forced_tokens_are_read_and_not_predicted() {
        let of = |last: u32, forced: &[usize]| Example {
            tokens: vec![1, 2, 3, 4, last],
            answer: 2..5,
            forced: forced.to_vec(),
            weight: 1.0,
        };
        let examples = [of(5, &[2, 4]), of(6, &[3]), of(7, &[2, 3, 4])];
        let pass = Pass::new(&[&examples[..]]);
        assert_eq!(pass.tokens, [1, 2, 3, 4, 5, 2, 3, 4, 6, 2, 3, 4, 7]);
        assert_eq!((pass.rows, pass.targets), (vec![2, 5, 7], vec![4, 3, 6]));
        assert_eq!(pass.answers, [0..1, 1..3, 3..3]);
    }
}
