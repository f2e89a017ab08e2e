//! The scorers against values computed by hand.

use eval::score::{Found, ndcg_at, recall_at};

/// Equally wanted passages at these ranks; 0 means not found.
fn found(ranks: &[usize]) -> Vec<Found> {
    ranks.iter().map(|rank| Found { grade: 1, rank: Some(*rank).filter(|rank| *rank > 0) }).collect()
}

#[test]
fn recall_is_the_part_that_was_found() {
    fn check(k: usize, ranks: &[usize], expect: f64) {
        assert_eq!(recall_at(k, &found(ranks)), expect, "{ranks:?} at {k}");
    }
    check(10, &[1], 1.0);
    check(10, &[10], 1.0);
    check(10, &[11], 0.0);
    check(10, &[0], 0.0);
    check(5, &[1, 5, 6, 0], 0.5);
    check(6, &[1, 5, 6, 0], 0.75);
    check(2, &[3, 1, 2], 2.0 / 3.0);
    check(0, &[1], 0.0);
    check(10, &[], 1.0);
}

#[test]
fn ndcg_counts_a_rank_by_its_logarithm() {
    fn check(k: usize, ranks: &[usize], expect: f64) {
        let score = ndcg_at(k, &found(ranks));
        assert!((score - expect).abs() < 1e-4, "{ranks:?} at {k}: {score} instead of {expect}");
        assert!(score.is_sign_positive(), "{ranks:?} at {k}: -0");
    }
    check(10, &[1], 1.0);
    check(10, &[2], 0.6309); // 1 / log2 3
    check(10, &[3], 0.5); // 1 / log2 4
    check(10, &[10], 0.2891); // 1 / log2 11
    check(10, &[11], 0.0);
    check(10, &[0], 0.0);
    check(10, &[1, 2], 1.0);
    check(10, &[2, 1], 1.0);
    check(10, &[1, 3], 0.9197); // (1 + 0.5) / (1 + 0.6309)
    check(10, &[2, 0], 0.3869); // 0.6309 / 1.6309
    // Three are wanted but only two places count, both in the best ranking and in this one.
    check(2, &[1, 2, 3], 1.0);
    check(2, &[1, 3, 4], 0.6131); // 1 / 1.6309
    check(10, &[], 1.0);
}

#[test]
fn a_page_with_several_wanted_passages_counts_once() {
    fn check(k: usize, ranks: &[usize], expect: f64) {
        let score = ndcg_at(k, &found(ranks));
        assert!((score - expect).abs() < 1e-4, "{ranks:?} at {k}: {score} instead of {expect}");
    }
    check(1, &[1, 1], 1.0);
    check(10, &[1, 1, 1], 1.0);
    check(10, &[2, 2], 0.6309); // one page, at the second place
    check(10, &[1, 1, 2], 1.0);
    check(10, &[1, 1, 0], 0.6131); // 1 / 1.6309: a passage that was not found is a page of its own
    check(1, &[1, 1, 0, 0], 1.0);
    // Graded passages on one page: the highest grade counts.
    let graded = [(1, 1), (3, 1), (2, 2)].map(|(grade, rank)| Found { grade, rank: Some(rank) });
    assert!((ndcg_at(10, &graded) - 1.0).abs() < 1e-9);
    // No ranking of up to four passages at up to four places, or none, is above 1.
    for number in 0..5usize.pow(4) {
        let ranks: Vec<usize> = (0..4).map(|place| number / 5usize.pow(place) % 5).collect();
        for k in 1..=4 {
            assert!(ndcg_at(k, &found(&ranks)) <= 1.0 + 1e-12, "{ranks:?} at {k}");
        }
    }
}

#[test]
fn ndcg_weighs_grades() {
    fn check(graded: &[(u32, usize)], expect: f64) {
        let found: Vec<Found> = graded.iter().map(|(grade, rank)| Found { grade: *grade, rank: Some(*rank) }).collect();
        let score = ndcg_at(10, &found);
        assert!((score - expect).abs() < 1e-4, "{graded:?}: {score} instead of {expect}");
    }
    check(&[(2, 1), (1, 2)], 1.0);
    check(&[(1, 1), (2, 2)], 0.8597); // (1 + 2 · 0.6309) / (2 + 0.6309)
    check(&[(3, 2), (1, 12)], 0.5212); // 3 · 0.6309 / (3 + 0.6309)
}
