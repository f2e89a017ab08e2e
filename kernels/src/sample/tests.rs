//! Tests of sampling: distributions against the exact softmax, every ISA, masks and penalties.

use std::collections::HashMap;

use super::reference::distribution;
use super::*;
use crate::cpu::active_isa;

const PLAIN: Draw<'static> = Draw { temperature: 1.0, ..Draw::GREEDY };

/// Logits without order, some of them equal; the largest is not the first.
fn logits(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + 13) % 97) as f32 / 12.0 - if i % 11 == 0 { 3.0 } else { 0.0 }).collect()
}

fn draw(isa: Isa, logits: &[f32], request: Draw<'_>) -> Drawn {
    draw_rows(isa, &mut logits.to_vec(), logits.len(), &[(0, request)])[0]
}

const MASK: &[u32] =
    &[0xffff_0f0f, 0, 0x1234_5678, u32::MAX, 1, 0xff00, 0, 0, 0xffff, 0, 0, 7, u32::MAX, u32::MAX, 0, 0, 0x0f0f_0f0f];

fn adjustments(width: u32) -> Vec<Adjustment> {
    let of = |i: u32| Adjustment {
        token: i * 7 % width,
        count: i % 4,
        seen: !i.is_multiple_of(4) || i.is_multiple_of(5),
        bias: (i % 3) as f32,
    };
    let mut all: Vec<Adjustment> = (0..width / 10).map(of).collect();
    all.sort_by_key(|adjustment| adjustment.token);
    all.dedup_by_key(|adjustment| adjustment.token);
    all
}

/// Every option alone, and combinations.
fn requests(adjustments: &[Adjustment]) -> Vec<Draw<'_>> {
    let options = [
        (1.0, 0, 1.0, 0.0),
        (0.3, 0, 1.0, 0.0),
        (0.8, 0, 0.95, 0.0),
        (2.0, 0, 0.5, 0.0),
        (2.0, 0, 0.07, 0.0),
        (1.0, 1, 1.0, 0.0),
        (1.0, 21, 1.0, 0.0),
        (1.5, 100, 0.9, 0.0),
        (1.0, 0, 1.0, 0.21),
        (1.0, 0, 0.8, 0.03),
        (0.7, 50, 0.8, 0.05),
    ];
    let penalties = Penalties { frequency: 0.4, presence: 0.3, repetition: 1.2 };
    let mut all = Vec::new();
    for (index, (temperature, top_k, top_p, min_p)) in options.into_iter().enumerate() {
        let plain = Draw { temperature, top_k, top_p, min_p, seed: index as u64, ..PLAIN };
        for mask in [None, Some(MASK)] {
            all.push(Draw { mask, ..plain });
            all.push(Draw { mask, adjustments, penalties, ..plain });
        }
    }
    all
}

#[test]
fn frequencies_pass_a_chi_squared_test_against_the_exact_distribution() {
    const DRAWS: u64 = 20_000;
    let (logits, adjustments) = (logits(531), adjustments(531));
    for request in requests(&adjustments) {
        let exact = distribution(&logits, &request);
        let mut counts = HashMap::new();
        for position in 0..DRAWS {
            match draw(active_isa(), &logits, Draw { position, ..request }) {
                Drawn::Token(id) => *counts.entry(id).or_insert(0u32) += 1,
                other => panic!("{other:?} from {request:?}"),
            }
        }
        // Tokens expected less than 5 times count together.
        let (mut chi_squared, mut cells, mut rare) = (0.0, 0.0, (0.0, 0.0));
        for (id, probability) in exact {
            let (expected, found) = (probability * DRAWS as f64, f64::from(counts.remove(&id).unwrap_or(0)));
            if expected < 5.0 {
                rare = (rare.0 + expected, rare.1 + found);
            } else {
                chi_squared += (found - expected).powi(2) / expected;
                cells += 1.0;
            }
        }
        if rare.0 > 0.0 {
            chi_squared += (rare.1 - rare.0).powi(2) / rare.0;
            cells += 1.0;
        }
        assert!(counts.is_empty(), "drawn although cut off: {counts:?} from {request:?}");
        // Mean and deviation of chi-squared with one degree of freedom less than cells.
        let freedom = cells - 1.0;
        let allowed = freedom + 4.0 * f64::sqrt(2.0 * freedom).max(1.0);
        assert!(chi_squared <= allowed, "{chi_squared} at {freedom} degrees of freedom from {request:?}");
    }
}

/// Over the vocabulary of Qwen2.5. Tokens of successive ranks count together, in cells that are expected 20 times at least.
#[test]
fn frequencies_over_a_large_vocabulary_pass_a_chi_squared_test() {
    const DRAWS: u64 = 1000;
    const LEAST: f64 = 20.0;
    let (logits, adjustments) = (logits(151_936), adjustments(151_936));
    let mask: Vec<u32> = (0..4748u32).map(|word| word.wrapping_mul(0x9e37_79b9) | 1).collect();
    // A third of the combinations, with every option among them.
    for (index, request) in requests(&adjustments).into_iter().enumerate().step_by(3) {
        let request = Draw { mask: request.mask.and(Some(&mask)), ..request };
        let (mut cell_of, mut expected, mut left) = (HashMap::new(), vec![0.0], DRAWS as f64);
        for (id, probability) in distribution(&logits, &request) {
            if left >= LEAST && expected.last().is_some_and(|cell| *cell >= LEAST) {
                expected.push(0.0);
            }
            cell_of.insert(id, expected.len() - 1);
            *expected.last_mut().unwrap() += probability * DRAWS as f64;
            left -= probability * DRAWS as f64;
        }
        let mut found = vec![0.0; expected.len()];
        for position in 0..DRAWS {
            match draw(active_isa(), &logits, Draw { position, ..request }) {
                Drawn::Token(id) if cell_of.contains_key(&id) => found[cell_of[&id]] += 1.0,
                other => panic!("{other:?} from request {index}"),
            }
        }
        let chi_squared: f64 = expected.iter().zip(&found).map(|(cell, found)| (found - cell).powi(2) / cell).sum();
        // As above; five deviations, since the number of cells is small.
        let freedom = expected.len() as f64 - 1.0;
        let allowed = freedom + 5.0 * f64::sqrt(2.0 * freedom).max(1.0);
        assert!(chi_squared <= allowed, "{chi_squared} at {freedom} degrees of freedom from request {index}");
    }
}

#[test]
fn every_isa_draws_the_same_tokens() {
    let (logits, adjustments) = (logits(40_001), adjustments(40_001));
    let mask: Vec<u32> = (0..1251u32).map(|word| word.wrapping_mul(0x9e37_79b9) | 1).collect();
    for request in requests(&adjustments) {
        for position in 0..8 {
            let request = Draw { position, mask: request.mask.and(Some(&mask)), ..request };
            let want = draw(Isa::Scalar, &logits, request);
            assert!(matches!(want, Drawn::Token(_)), "{request:?}");
            for isa in Isa::available() {
                assert_eq!(draw(isa, &logits, request), want, "{isa}, {request:?}");
            }
        }
    }
}

#[test]
fn a_row_is_drawn_alike_alone_and_beside_others() {
    let row = logits(1000);
    for rows in [2, 7, 40] {
        let request = |index: usize| Draw { top_p: 0.9, position: index as u64, ..PLAIN };
        let alone: Vec<Drawn> = (0..rows).map(|index| draw(active_isa(), &row, request(index))).collect();
        // Every other row of the step is drawn from.
        let requests: Vec<_> = (0..rows).map(|index| (2 * index, request(index))).collect();
        let mut logits = row.repeat(2 * rows);
        assert_eq!(draw_rows(active_isa(), &mut logits, row.len(), &requests), alone);
    }
}

#[test]
fn greedy_takes_the_first_of_the_largest_that_are_allowed() {
    let logits = [1.0, 3.0, f32::NEG_INFINITY, 3.0, 2.0];
    let check = |logits: &[f32], mask: Option<&[u32]>, want: Drawn| {
        for isa in Isa::available() {
            assert_eq!(draw(isa, logits, Draw { mask, ..Draw::GREEDY }), want);
            if !matches!(want, Drawn::Token(_)) {
                assert_eq!(draw(isa, logits, Draw { mask, ..PLAIN }), want);
            }
        }
    };
    check(&logits, None, Drawn::Token(1));
    check(&logits, Some(&[0b11001]), Drawn::Token(3));
    check(&logits, Some(&[0b10001]), Drawn::Token(4));
    check(&logits, Some(&[0b100]), Drawn::Nothing);
    check(&logits, Some(&[]), Drawn::Nothing);
    check(&[f32::NEG_INFINITY; 40], None, Drawn::Nothing);
    check(&[], None, Drawn::Nothing);
    check(&[0.0, f32::NAN], Some(&[1]), Drawn::NotFinite);
    check(&[0.0, f32::INFINITY], None, Drawn::NotFinite);
    check(&[0.0; 64], Some(&[0]), Drawn::Nothing);
    check(&[0.0; 64], Some(&[0, 6]), Drawn::Token(33));
}

#[test]
fn penalties_and_bias_change_the_greedy_token() {
    let logits = [3.0, 2.0, -1.0];
    let check = |adjustments: &[Adjustment], penalties: Penalties, want: u32| {
        let request = Draw { adjustments, penalties, ..Draw::GREEDY };
        assert_eq!(draw(active_isa(), &logits, request), Drawn::Token(want), "{request:?}");
    };
    let plain = Adjustment { token: 0, count: 0, seen: false, bias: 0.0 };
    check(&[plain], Penalties { frequency: 2.0, presence: 2.0, repetition: 2.0 }, 0);
    check(&[Adjustment { bias: -1.5, ..plain }], Penalties::NONE, 1);
    check(&[Adjustment { token: 2, bias: 100.0, ..plain }], Penalties::NONE, 2);
    check(&[Adjustment { seen: true, ..plain }], Penalties { repetition: 1.4, ..Penalties::NONE }, 0);
    check(&[Adjustment { seen: true, ..plain }], Penalties { repetition: 1.6, ..Penalties::NONE }, 1);
    let twice = Adjustment { count: 2, seen: true, ..plain };
    check(&[twice], Penalties { frequency: 0.4, ..Penalties::NONE }, 0);
    check(&[twice], Penalties { frequency: 0.6, ..Penalties::NONE }, 1);
    check(&[twice], Penalties { presence: 0.9, ..Penalties::NONE }, 0);
    check(&[twice], Penalties { presence: 1.1, ..Penalties::NONE }, 1);
    // A negative logit is multiplied: it becomes less likely as well.
    let all = [(0, 0.0), (1, 0.0), (2, 3.5)].map(|(token, bias)| Adjustment { token, bias, seen: true, ..plain });
    check(&all[..2], Penalties { repetition: 0.5, ..Penalties::NONE }, 0);
    assert_eq!(Penalties { repetition: 2.0, ..Penalties::NONE }.adjusted(-1.0, twice), -2.0);
}

#[test]
fn tokens_too_far_from_the_heaviest_are_never_drawn() {
    let row = [0.0, 100.0, 50.0, 99.0];
    for position in 0..100 {
        assert!(matches!(draw(active_isa(), &row, Draw { position, ..PLAIN }), Drawn::Token(1 | 3)));
        for temperature in [1e-6, f32::MIN_POSITIVE, 1e-45] {
            let cold = Draw { temperature, position, ..PLAIN };
            assert_eq!(draw(active_isa(), &row, cold), Drawn::Token(1), "{temperature}");
        }
    }
}

#[test]
fn limits_beyond_their_range_keep_one_token_or_all() {
    let row = logits(600);
    let most = draw(active_isa(), &row, Draw::GREEDY);
    for position in 0..50 {
        let request = Draw { position, ..PLAIN };
        assert_eq!(draw(active_isa(), &row, Draw { top_p: 0.0, ..request }), most);
        let all = draw(active_isa(), &row, request);
        assert_eq!(draw(active_isa(), &row, Draw { top_k: 600, ..request }), all);
        assert_eq!(draw(active_isa(), &row, Draw { top_k: usize::MAX, top_p: 2.0, ..request }), all);
    }
}
