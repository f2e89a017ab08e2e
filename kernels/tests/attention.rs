//! Paged and ragged attention give the bits of the reference for any chunking and any page order.

use half::{bf16, f16};
use kernels::attention::{
    Heads, PagedSequence, Pages, PagesMut, Precision, in_bf16, paged, ragged, reference, rounded,
};
use kernels::cpu::Isa;
use kernels::rope::{Placement, RopeTable, rotate_queries, store_keys_values};

fn noise(seed: usize) -> f32 {
    let x = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x >> 40) as f32 / (1 << 23) as f32 - 1.0
}

/// What pages keep of a head.
type Stored<'a> = &'a dyn Fn(&[f32]) -> Vec<f32>;

/// Attention of one query in plain loops.
type Attend = fn(&[f32], &[Vec<f32>], &[Vec<f32>], usize) -> Vec<f32>;

/// The reference for pages in bf16.
fn in_bf16_on(isa: Isa, heads: Heads) -> Attend {
    match isa {
        Isa::Amx if heads.dim.is_multiple_of(32) => reference::attend_in_tiles,
        _ => reference::attend_in_bf16,
    }
}

fn check(heads: Heads, lengths: [usize; 2], past: [usize; 2]) {
    check_window(heads, lengths, past, None);
}

fn check_window(heads: Heads, lengths: [usize; 2], past: [usize; 2], window: Option<usize>) {
    check_rows(heads, lengths, past, window, false);
}

/// Pages for two sequences, filled through `store_keys_values` with an identity rotation. If the last token of each is not finite, its
/// rows are not compared.
fn check_rows(heads: Heads, lengths: [usize; 2], past: [usize; 2], window: Option<usize>, last_is_infinite: bool) {
    let table = RopeTable::new(&vec![0.0; heads.dim / 2], 1, 1.0);
    let width = heads.query_width() + 2 * heads.key_width();
    let page_lists = [vec![5u32, 0, 3, 8, 14, 9, 11], vec![1u32, 7, 2, 6, 10, 13, 12]];
    let mut halves = vec![f16::from_f32(7.0); 15 * heads.page().len()];
    let mut floats = vec![7f32; 15 * heads.page().len()];
    let mut pairs = vec![bf16::INFINITY; 15 * heads.page().len()];
    let in_blocks = heads.dim.is_multiple_of(32);
    let mut bytes = vec![7u8; if in_blocks { 15 * heads.page().quantised_len() } else { 0 }];
    let mut qkvs = Vec::new();
    for (s, list) in page_lists.iter().enumerate() {
        let total = past[s] + lengths[s];
        let mut qkv: Vec<f32> = (0..total * width).map(|i| 3.0 * noise(i + 1_000_003 * s)).collect();
        if last_is_infinite {
            qkv[(total - 1) * width + heads.query_width()..].fill(f32::INFINITY);
        }
        let slots: Vec<u32> = (0..total as u32).map(|t| list[t as usize / 32] * 32 + t % 32).collect();
        let positions = vec![0u32; total];
        let at = Placement { positions: &positions, slots: &slots };
        store_keys_values(heads, &qkv, &table, at, PagesMut::F16(&mut halves));
        store_keys_values(heads, &qkv, &table, at, PagesMut::F32(&mut floats));
        store_keys_values(heads, &qkv, &table, at, PagesMut::Bf16(&mut pairs));
        if in_blocks {
            store_keys_values(heads, &qkv, &table, at, PagesMut::Q8(&mut bytes));
        }
        qkvs.push(qkv);
    }
    let rows: Vec<usize> = (0..2).flat_map(|s| past[s]..past[s] + lengths[s]).collect();
    let of = |row: usize| usize::from(row >= lengths[0]);
    let q: Vec<f32> =
        (0..rows.len()).flat_map(|row| qkvs[of(row)][rows[row] * width..][..heads.query_width()].to_vec()).collect();
    let sequences = [
        PagedSequence { rows: 0..lengths[0], past: past[0], pages: &page_lists[0] },
        PagedSequence { rows: lengths[0]..rows.len(), past: past[1], pages: &page_lists[1] },
    ];
    let in_bytes = |head: &[f32]| rounded(Isa::Scalar, head);
    let in_halves = |head: &[f32]| head.iter().map(|x| f16::from_f32(*x).to_f32()).collect();
    let in_pairs = |head: &[f32]| head.iter().map(|x| in_bf16(*x).to_f32()).collect();
    let kinds: [(Pages<'_>, Stored<'_>); 4] = [
        (Pages::F16(&halves), &in_halves),
        (Pages::F32(&floats), &<[f32]>::to_vec),
        (Pages::Bf16(&pairs), &in_pairs),
        (Pages::Q8(&bytes), &in_bytes),
    ];
    let kinds = &kinds[..if in_blocks { 4 } else { 3 }];
    for (isa, (pages, stored)) in Isa::available().flat_map(|isa| kinds.iter().map(move |kind| (isa, *kind))) {
        let attend = if matches!(pages, Pages::Bf16(_)) { in_bf16_on(isa, heads) } else { reference::attend };
        let mut out = vec![f32::NAN; q.len()];
        paged(isa, heads, window, &q, pages, &sequences, &mut out);
        let is_compared = |row: &usize| !last_is_infinite || rows[*row] + 1 < past[of(*row)] + lengths[of(*row)];
        for row in (0..rows.len()).filter(is_compared) {
            for head in 0..heads.queries {
                let part = |t: usize, start: usize| {
                    let at = t * width + start + head / heads.group() * heads.dim;
                    stored(&qkvs[of(row)][at..][..heads.dim])
                };
                let keys: Vec<_> = (0..=rows[row]).map(|t| part(t, heads.query_width())).collect();
                let values: Vec<_> =
                    (0..=rows[row]).map(|t| part(t, heads.query_width() + heads.key_width())).collect();
                let at = row * heads.query_width() + head * heads.dim;
                let first = window.map_or(0, |window| (rows[row] + 1).saturating_sub(window));
                let want = attend(&q[at..][..heads.dim], &keys, &values, first);
                assert_eq!(out[at..][..heads.dim], want, "{isa} row {row} head {head}");
            }
        }
    }
}

#[test]
fn paged_attention_gives_the_bits_of_the_reference() {
    check(Heads { queries: 9, keys: 3, dim: 64 }, [40, 1], [0, 70]);
    check(Heads { queries: 4, keys: 1, dim: 128 }, [33, 17], [31, 64]);
    check(Heads { queries: 2, keys: 2, dim: 8 }, [1, 100], [0, 0]);
    check(Heads { queries: 6, keys: 2, dim: 80 }, [5, 6], [60, 0]);
    check(Heads { queries: 3, keys: 1, dim: 96 }, [3, 20], [40, 5]);
    check(Heads { queries: 14, keys: 2, dim: 64 }, [20, 3], [120, 190]);
}

#[test]
fn a_row_does_not_depend_on_a_later_key_that_is_infinite() {
    check_rows(Heads { queries: 9, keys: 3, dim: 64 }, [40, 17], [0, 120], None, true);
    check_rows(Heads { queries: 2, keys: 2, dim: 32 }, [20, 5], [120, 180], Some(33), true);
}

#[test]
fn a_window_hides_what_is_before_it() {
    let heads = Heads { queries: 4, keys: 2, dim: 64 };
    for window in [1, 5, 31, 32, 33, 64, 1000] {
        check_window(heads, [40, 1], [0, 70], Some(window));
        check_window(heads, [33, 17], [31, 64], Some(window));
        check_window(heads, [7, 20], [180, 120], Some(window));
    }
}

#[test]
fn siblings_that_share_pages_get_the_bits_of_each_alone() {
    for heads in [Heads { queries: 9, keys: 3, dim: 64 }, Heads { queries: 4, keys: 4, dim: 16 }] {
        let floats: Vec<f32> = (0..24 * heads.page().len()).map(noise).collect();
        let halves: Vec<f16> = floats.iter().map(|x| f16::from_f32(*x)).collect();
        let pairs: Vec<bf16> = floats.iter().map(|x| in_bf16(*x)).collect();
        // Pages, tokens before, tokens: three common pages, two continuations of them, unrelated sequences, a prompt.
        let sequences: [(&[u32], usize, usize); 9] = [
            (&[4, 9, 2, 11], 96, 1),
            (&[4, 9, 2, 12, 13], 120, 3),
            (&[4, 9, 2, 12, 14, 15], 191, 1),
            (&[4, 9, 2], 95, 1),
            (&[4, 9, 16, 17], 127, 1),
            (&[7], 0, 1),
            (&[8, 3], 30, 4),
            (&[4, 9, 2, 18], 96, 17),
            (&[4, 9, 2, 19], 97, 2),
        ];
        let width = heads.query_width();
        let total: usize = sequences.iter().map(|(_, _, tokens)| tokens).sum();
        let q: Vec<f32> = (0..total * width).map(|i| 3.0 * noise(i + 77)).collect();
        let mut start = 0;
        let batch = sequences.map(|(pages, past, tokens)| {
            start += tokens;
            PagedSequence { rows: start - tokens..start, past, pages }
        });
        for isa in Isa::available() {
            for (pages, window) in [
                (Pages::F16(&halves), None),
                (Pages::F32(&floats), None),
                (Pages::Bf16(&pairs), None),
                (Pages::F16(&halves), Some(50)),
                (Pages::Bf16(&pairs), Some(50)),
            ] {
                let mut together = vec![f32::NAN; q.len()];
                paged(isa, heads, window, &q, pages, &batch, &mut together);
                for sequence in &batch {
                    let values = sequence.rows.start * width..sequence.rows.end * width;
                    let mut alone = vec![f32::NAN; values.len()];
                    let by_itself = PagedSequence { rows: 0..sequence.rows.len(), ..sequence.clone() };
                    paged(isa, heads, window, &q[values.clone()], pages, &[by_itself], &mut alone);
                    assert_eq!(together[values], alone, "{isa} {sequence:?} {window:?}");
                }
            }
        }
    }
}

#[test]
fn a_softmax_in_f64_agrees() {
    let (dim, count) = (64, 77);
    let vector = |seed: usize| (0..dim).map(|i| 2.0 * noise(seed * 977 + i)).collect::<Vec<f32>>();
    let q = vector(1);
    let keys: Vec<_> = (0..count).map(|j| vector(10 + j)).collect();
    let values: Vec<_> = (0..count).map(|j| vector(1000 + j)).collect();
    let scores: Vec<f64> = keys
        .iter()
        .map(|k| q.iter().zip(k).map(|(q, k)| f64::from(*q) * f64::from(*k)).sum::<f64>() / (dim as f64).sqrt())
        .collect();
    let max = scores.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
    let total: f64 = weights.iter().sum();
    let got = reference::attend(&q, &keys, &values, 0);
    let in_bf16 = |heads: &[Vec<f32>]| -> Vec<Vec<f32>> {
        heads.iter().map(|head| head.iter().map(|x| in_bf16(*x).to_f32()).collect()).collect()
    };
    let in_tiles = reference::attend_in_tiles(&q, &in_bf16(&keys), &in_bf16(&values), 0);
    for d in 0..dim {
        let want: f64 = weights.iter().zip(&values).map(|(w, v)| w * f64::from(v[d])).sum::<f64>() / total;
        assert!((f64::from(got[d]) - want).abs() < 1e-5, "{} for {want}", got[d]);
        assert!((f64::from(in_tiles[d]) - want).abs() < 0.02, "{} for {want} in tiles", in_tiles[d]);
    }
}

#[test]
fn ragged_attention_sees_the_whole_sequence_and_nothing_else() {
    for dim in [32, 16] {
        check_ragged(Heads { queries: 3, keys: 3, dim }, Precision::Float);
        check_ragged(Heads { queries: 3, keys: 3, dim }, Precision::Bf16Weights);
    }
}

fn check_ragged(heads: Heads, precision: Precision) {
    let sequences = [0..5, 5..69, 69..70, 70..213];
    let width = heads.query_width();
    let qkv: Vec<f32> = (0..213 * 3 * width).map(|i| 2.0 * noise(i)).collect();
    let as_they_are = |head: &[f32]| head.to_vec();
    let rounded = |head: &[f32]| head.iter().map(|x| in_bf16(*x).to_f32()).collect();
    for isa in Isa::available() {
        let in_tiles = precision == Precision::Bf16Weights && isa == Isa::Amx && heads.dim.is_multiple_of(32);
        let (kept, attend): (Stored<'_>, Attend) =
            if in_tiles { (&rounded, reference::attend_in_tiles) } else { (&as_they_are, reference::attend) };
        let mut out = vec![f32::NAN; 213 * width];
        ragged(isa, heads, precision, &qkv, &sequences, &mut out);
        for sequence in &sequences {
            for row in sequence.clone() {
                for head in 0..heads.queries {
                    let part = |t: usize, which: usize| &qkv[(t * 3 + which) * width + head * heads.dim..][..heads.dim];
                    let keys: Vec<_> = sequence.clone().map(|t| kept(part(t, 1))).collect();
                    let values: Vec<_> = sequence.clone().map(|t| kept(part(t, 2))).collect();
                    let want = attend(part(row, 0), &keys, &values, 0);
                    assert_eq!(out[row * width + head * heads.dim..][..heads.dim], want, "{isa} row {row} head {head}");
                }
            }
        }
    }
}

#[test]
fn rotation_keeps_lengths_and_turns_by_the_position() {
    let heads = Heads { queries: 1, keys: 1, dim: 4 };
    let table = RopeTable::new(&[1.0, 0.01], 8, 1.0);
    let qkv: Vec<f32> = (0..2).flat_map(|_| [1.0, 2.0, 3.0, 4.0].repeat(3)).collect();
    let mut q = vec![0f32; 8];
    rotate_queries(heads, &qkv, &table, &[0, 3], &mut q);
    assert_eq!(q[..4], [1.0, 2.0, 3.0, 4.0]);
    let (c, s) = (3f32.cos(), 3f32.sin());
    assert!((q[4] - (c - 3.0 * s)).abs() < 1e-6 && (q[6] - (3.0 * c + s)).abs() < 1e-6);
    let norm: f32 = q[4..].iter().map(|x| x * x).sum();
    assert!((norm - 30.0).abs() < 1e-4);
}
