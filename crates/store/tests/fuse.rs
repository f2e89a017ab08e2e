//! Fusion of lists of hits, as tables of cases.

use store::{Hit, PassageId, fuse};

fn hits(list: &[(i64, f32)]) -> Vec<Hit> {
    list.iter().map(|(id, score)| Hit { passage: PassageId(*id), score: *score }).collect()
}

#[track_caller]
fn check(found: &[Hit], expected: &[(i64, f32)]) {
    assert_eq!(
        found.iter().map(|hit| hit.passage.0).collect::<Vec<_>>(),
        expected.iter().map(|hit| hit.0).collect::<Vec<_>>()
    );
    for (hit, (id, score)) in found.iter().zip(expected) {
        assert!((hit.score - score).abs() < 1e-6, "{id} scores {} instead of {score}", hit.score);
    }
}

#[test]
fn scores_are_summed() {
    check(&fuse::sum_scores(&[]), &[]);
    check(
        &fuse::sum_scores(&[hits(&[(3, 0.5), (1, 0.25)]), hits(&[(1, 0.5), (2, 0.5)])]),
        &[(1, 0.75), (2, 0.5), (3, 0.5)],
    );
    check(&fuse::sum_scores(&[hits(&[(1, -0.5)]), hits(&[(1, 0.25), (2, -0.5)])]), &[(1, -0.25), (2, -0.5)]);
}

#[test]
fn the_best_score_is_kept() {
    check(
        &fuse::max_score(&[hits(&[(3, 7.0), (1, 0.25)]), hits(&[(1, 0.5), (3, 0.9)]), vec![]]),
        &[(3, 7.0), (1, 0.5)],
    );
    check(&fuse::max_score(&[hits(&[(2, -3.0)]), hits(&[(2, -4.0), (1, -3.0)])]), &[(1, -3.0), (2, -3.0)]);
}

#[test]
fn ranks_are_fused_reciprocally() {
    let lists = [hits(&[(5, 9.0), (4, 8.0)]), hits(&[(4, 0.1), (6, 0.0)])];
    check(&fuse::rrf(&lists, fuse::RRF_K), &[(4, 1.0 / 62.0 + 1.0 / 61.0), (5, 1.0 / 61.0), (6, 1.0 / 62.0)]);
    check(&fuse::rrf(&[hits(&[(2, 1.0)]), hits(&[(1, 1.0)])], 0.0), &[(1, 1.0), (2, 1.0)]);
}

#[test]
fn scores_of_two_tools_are_combined() {
    let fused = |lexical: &[(i64, f32)], dense: &[(i64, f32)]| {
        let dense = hits(dense);
        fuse::by_score(&hits(lexical), &dense, &dense)
    };
    check(&fused(&[(1, 8.0), (2, 4.0)], &[(2, 0.5), (3, 0.25), (1, 0.1)]), &[(2, 0.725), (1, 0.64), (3, 0.225)]);
    // Cosines that hardly differ hardly count, and ones that do not differ do not count.
    check(&fused(&[(1, 2.0)], &[(2, 0.5), (1, 0.45)]), &[(1, 0.775 + 0.9 * 0.225), (2, 0.225)]);
    check(&fused(&[(3, 2.0)], &[(2, 0.5), (3, 0.5)]), &[(3, 1.0), (2, 0.0)]);
    // Without one tool the other orders the passages.
    check(&fused(&[], &[(2, 0.5), (3, 0.25)]), &[(2, 0.45), (3, 0.225)]);
    check(&fused(&[(2, 5.0), (3, 1.0)], &[]), &[(2, 1.0), (3, 0.2)]);
    check(&fused(&[(2, 5.0)], &[(3, -0.5)]), &[(2, 1.0), (3, 0.0)]);
    check(&fused(&[], &[]), &[]);
}

#[test]
fn scores_are_scaled_to_one() {
    check(&fuse::min_max(&[]), &[]);
    check(&fuse::min_max(&hits(&[(1, 4.0), (2, 2.0), (3, 3.0)])), &[(1, 1.0), (3, 0.5), (2, 0.0)]);
    check(&fuse::min_max(&hits(&[(2, 0.3), (1, 0.3)])), &[(1, 1.0), (2, 1.0)]);
}
