//! How near each kernel comes to what the processor could do: `cargo bench -p kernels --bench limits [-- PART OF A NAME]`.
//!
//! One line of CSV a case: what was measured, its rate, the limit that binds it, and the share of it that was reached;
//! the medians of several rounds, with the limits measured again for every case, since machines drift.

use std::alloc::{GlobalAlloc, Layout, System};
use std::time::Instant;

use kernels::attention::{self, Heads, KEYS, PagedSequence, Pages, Precision};
use kernels::cpu::{Isa, active_isa};
use kernels::limits;
use kernels::matmul::{Format, Matrix};
use kernels::memory::{LargePages, retain_blocks};
use kernels::sample::{Adjustment, Draw, Penalties, draw_rows};

#[global_allocator]
static MEMORY: LargePages = LargePages;

const ROUNDS: usize = 7;

/// Steps of sampling in a round.
const PASSES: usize = 20;

/// Rows with which a step of decoding reads weights from memory.
const FEW: usize = 8;

/// Bytes of weights that a product of few rows reads before it returns to the first.
const BEYOND_CACHES: usize = 256 << 20;

fn main() {
    retain_blocks();
    // `cargo test` runs benches too, with this flag or none; measuring is for `cargo bench`.
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let part = arguments.into_iter().find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let wanted = |case: &str| case.contains(&part);
    let isa = active_isa();
    println!("case,unit,rate,limit,share");
    let memory = vec![1f32; BEYOND_CACHES / 4];
    if wanted("read") {
        let small = in_small_pages();
        let (small, large) = (limits::read_bytes(isa, small), limits::read_bytes(isa, &memory));
        print("read, pages of 4 KiB", "GB/s", small, large);
    }
    let all_limits = || (limits::byte_operations(isa), limits::float_operations(isa), limits::read_bytes(isa, &memory));
    for format in Format::ALL {
        let (rows, cols) = (8960, 1536);
        let cases = [1, 8, 512].map(|m| (m, format!("{format:?} {m}x{cols}x{rows}")));
        let cases: Vec<_> = cases.into_iter().filter(|(_, case)| wanted(case)).collect();
        if cases.is_empty() {
            continue;
        }
        let bytes = zeros(format, rows, cols);
        let matrices: Vec<Matrix> = (0..BEYOND_CACHES.div_ceil(bytes.len()))
            .map(|_| Matrix::pack(format, rows, cols, &bytes).expect("a whole number of blocks"))
            .collect();
        for (m, case) in cases {
            let x: Vec<f32> = (0..m * cols).map(|i| (i % 13) as f32 - 6.0).collect();
            let mut out = vec![0f32; m * rows];
            let used = if m <= FEW { matrices.len() } else { 1 };
            let seconds = median(|| {
                let started = Instant::now();
                matrices[..used].iter().for_each(|matrix| matrix.multiply(isa, &x, &mut out));
                started.elapsed().as_secs_f64() / used as f64
            });
            let (int8, float, read) = all_limits();
            let operations = (2 * m * rows * cols) as f64 / seconds;
            match (m, format.is_dense(), limits::bf16_operations(isa)) {
                (1, ..) => print(&case, "GB/s", matrices[0].bytes() as f64 / seconds, read),
                (_, _, Some(bf16)) if format == Format::Bf16 => {
                    print(&case, "Gflop/s", operations, bf16);
                }
                (_, true, _) => print(&case, "Gflop/s", operations, float),
                (_, false, _) => print(&case, "Gop/s", operations, int8),
            }
        }
    }
    for (queries, keys, dim) in [(12, 2, 128), (14, 2, 64), (9, 3, 64)] {
        attend(isa, Heads { queries, keys, dim }, &all_limits, &wanted);
    }
    for (queries, dim, tokens) in [(16, 64, 512), (16, 64, 64), (12, 32, 256), (12, 32, 32)] {
        attend_texts(isa, Heads { queries, keys: queries, dim }, tokens, &wanted);
    }
    sample(isa, &memory, &wanted);
}

/// Sampling from logits of the vocabulary of Qwen2.5, which are normally distributed: most tokens have weight, as after a
/// flat distribution. Rates count each logit once.
fn sample(isa: Isa, memory: &[f32], wanted: &dyn Fn(&str) -> bool) {
    let width = 151_936;
    let adjustments: Vec<Adjustment> =
        (0..500).map(|i| Adjustment { token: i * 300, count: 1, seen: true, bias: 0.0 }).collect();
    let penalties = Penalties { frequency: 0.1, presence: 0.1, repetition: 1.1 };
    let warm = Draw { temperature: 0.3, ..Draw::GREEDY };
    let nucleus = Draw { temperature: 0.8, top_p: 0.95, ..Draw::GREEDY };
    let cases = [
        ("greedy", Draw::GREEDY),
        ("T 0.3", warm),
        ("T 0.8 top_p 0.95", nucleus),
        ("T 0.8 top_p 0.95 top_k 40", Draw { top_k: 40, ..nucleus }),
        ("T 0.8 top_p 0.95 penalties", Draw { adjustments: &adjustments, penalties, ..nucleus }),
    ];
    for rows in [1, 8, 32] {
        for (name, draw) in cases {
            let case = format!("sample {rows} of {width} {name}");
            if !wanted(&case) {
                continue;
            }
            let mut state = 1u64;
            let mut uniform = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f32 / (1u64 << 24) as f32
            };
            // The sum of twelve uniform numbers has the variance 1.
            let mut logits: Vec<f32> =
                (0..rows * width).map(|_| (0..12).map(|_| uniform()).sum::<f32>() * 3.0).collect();
            let mut position = 0;
            let seconds = median(|| {
                let started = Instant::now();
                for _ in 0..PASSES {
                    position += 1;
                    let request = |row: usize| (row, Draw { seed: row as u64, position, ..draw });
                    let requests: Vec<_> = (0..rows).map(request).collect();
                    let drawn = draw_rows(isa, &mut logits, width, &requests);
                    assert_eq!(drawn.len(), rows);
                }
                started.elapsed().as_secs_f64() / PASSES as f64
            });
            print(&case, "GB/s", (rows * width * 4) as f64 / seconds, limits::read_bytes(isa, memory));
        }
    }
}

/// Attention of an encoder over texts of 2,048 tokens together, with the heads of BGE-M3 or MiniLM.
fn attend_texts(isa: Isa, heads: Heads, tokens: usize, wanted: &dyn Fn(&str) -> bool) {
    let (rows, width) = (2048, heads.query_width());
    let texts: Vec<_> = (0..rows).step_by(tokens).map(|start| start..start + tokens).collect();
    let qkv: Vec<f32> = (0..3 * rows * width).map(|i| (i % 13) as f32 / 6.0 - 1.0).collect();
    let mut out = vec![0f32; rows * width];
    for (name, precision) in [("f32", Precision::Float), ("bf16", Precision::Bf16Weights)] {
        let case = format!("attention of texts of {tokens}, {} heads of {}, {name}", heads.queries, heads.dim);
        if !wanted(&case) {
            continue;
        }
        let seconds = median(|| {
            let started = Instant::now();
            attention::ragged(isa, heads, precision, &qkv, &texts, &mut out);
            started.elapsed().as_secs_f64()
        });
        print(&case, "Gflop/s", (4 * rows * tokens * width) as f64 / seconds, limits::float_operations(isa));
    }
}

/// A decode step, one of eight siblings that share those tokens, and a chunk of a prompt, over 2,048 tokens, and a chunk over 7,168,
/// with the heads of Qwen2.5-1.5B, Qwen2.5-0.5B or SmolLM2-135M.
fn attend(isa: Isa, heads: Heads, limits: &dyn Fn() -> (f64, f64, f64), wanted: &dyn Fn(&str) -> bool) {
    let Heads { queries, keys, dim } = heads;
    for (siblings, tokens, past, layers) in
        [(1usize, 1usize, 2048usize, 28), (8, 1, 2048, 28), (1, 256, 2048, 28), (1, 256, 7168, 4)]
    {
        let who = if siblings > 1 { format!("{siblings} siblings") } else { tokens.to_string() };
        let case = |pages: &str| format!("attention of {who} after {past}, {queries}/{keys} heads of {dim}, {pages}");
        let own = tokens.div_ceil(KEYS);
        let pages = past / KEYS + siblings * own;
        let page_list = |layer: usize, sibling: usize| {
            let own = past / KEYS + sibling * own..past / KEYS + (sibling + 1) * own;
            (0..past / KEYS).chain(own).map(|page| (layer * pages + page) as u32).collect()
        };
        let page_lists: Vec<Vec<Vec<u32>>> =
            (0..layers).map(|layer| (0..siblings).map(|sibling| page_list(layer, sibling)).collect()).collect();
        let len = layers * pages * heads.page().len();
        let (halves, pairs) = (vec![half::f16::ONE; len], vec![half::bf16::ONE; len]);
        let rows = siblings * tokens;
        let q = vec![0.5f32; rows * heads.query_width()];
        let mut out = vec![0f32; q.len()];
        for (name, pages) in [("f16", Pages::F16(&halves)), ("bf16", Pages::Bf16(&pairs))] {
            if !wanted(&case(name)) {
                continue;
            }
            let seconds = median(|| {
                let started = Instant::now();
                for lists in &page_lists {
                    let sequence = |(i, pages)| PagedSequence { rows: i * tokens..(i + 1) * tokens, past, pages };
                    let sequences: Vec<PagedSequence<'_>> =
                        lists.iter().map(Vec::as_slice).enumerate().map(sequence).collect();
                    attention::paged(isa, heads, None, &q, pages, &sequences, &mut out);
                }
                started.elapsed().as_secs_f64() / layers as f64
            });
            let (_, float, read) = limits();
            let seen = past + tokens.div_ceil(2);
            if rows == 1 {
                print(&case(name), "GB/s", (2 * 2 * seen * heads.key_width()) as f64 / seconds, read);
            } else {
                print(&case(name), "Gflop/s", (4 * rows * seen * heads.query_width()) as f64 / seconds, float);
            }
        }
    }
}

/// Bytes from the system allocator without huge pages.
fn in_small_pages() -> &'static [f32] {
    let layout = Layout::array::<f32>(BEYOND_CACHES / 4).expect("a size");
    // SAFETY: zeros are numbers, and the memory is never given back.
    unsafe {
        let start = System.alloc_zeroed(layout).cast::<f32>();
        assert!(!start.is_null(), "no memory");
        start.write_bytes(1, BEYOND_CACHES / 4);
        std::slice::from_raw_parts(start, BEYOND_CACHES / 4)
    }
}

/// Rows whose weights are all zero: speed does not depend on values.
fn zeros(format: Format, rows: usize, cols: usize) -> Vec<u8> {
    vec![0; rows * format.row_bytes(cols).expect("a whole number of blocks")]
}

fn median(mut measure: impl FnMut() -> f64) -> f64 {
    measure();
    let mut seconds: Vec<f64> = (0..ROUNDS).map(|_| measure()).collect();
    seconds.sort_by(f64::total_cmp);
    seconds[ROUNDS / 2]
}

fn print(case: &str, unit: &str, rate: f64, limit: f64) {
    println!("\"{case}\",{unit},{:.1},{:.1},{:.2}", rate / 1e9, limit / 1e9, rate / limit);
}
