//! What is launched for each operation: which kernel, on how many threads, with which arguments. The `.cu` files say why.
//!
//! Pointers are addresses on whatever runs the kernel; tensors have fewer than 2^32 values ([`super::device`] checks).

use candle_core::DType;

use super::plan::{Plan, Tasks};
use crate::attention::Heads;
use crate::sample::{Adjustment, Draw, Drawn, Penalties};

/// A file of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Module {
    Activation,
    Draw,
    Embedding,
    Norm,
    Paged,
    /// Products with weights of the format of this name ([`super::blocks::Layout`]).
    Quantised(&'static str),
    Ragged,
    Rope,
    Rows,
}

/// An argument of a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Argument {
    Pointer(u64),
    U32(u32),
    F32(f32),
}

/// One launch of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Launch {
    pub module: Module,
    pub kernel: String,
    /// Blocks.
    pub grid: (u32, u32),
    /// Threads of a block.
    pub block: u32,
    pub arguments: Vec<Argument>,
}

/// Where values lie and of which type they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Typed {
    pub at: u64,
    pub dtype: DType,
}

impl From<u64> for Argument {
    fn from(pointer: u64) -> Self {
        Argument::Pointer(pointer)
    }
}

impl From<Typed> for Argument {
    fn from(values: Typed) -> Self {
        Argument::Pointer(values.at)
    }
}

impl From<usize> for Argument {
    fn from(n: usize) -> Self {
        Argument::U32(n as u32)
    }
}

impl From<f32> for Argument {
    fn from(x: f32) -> Self {
        Argument::F32(x)
    }
}

macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { vec![$(Argument::from($argument)),*] };
}

const THREADS: usize = 256;
/// Warps of a block of [`THREADS`].
const WARPS: usize = THREADS / 32;

fn launch(module: Module, kernel: String, grid: (usize, usize), block: usize, arguments: Vec<Argument>) -> Launch {
    Launch { module, kernel, grid: (grid.0 as u32, grid.1 as u32), block: block as u32, arguments }
}

fn name(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F16 => "f16",
        DType::BF16 => "bf16",
        DType::U8 => "q8",
        // No kernel has this name, so a launch fails with that error.
        _ => "unknown",
    }
}

/// `x: [rows, width]`.
pub(crate) fn rms_norm(x: u64, weight: u64, epsilon: f32, out: Typed, rows: usize, width: usize) -> Launch {
    let arguments = arguments![x, weight, epsilon, out, width];
    launch(Module::Norm, format!("rms_norm_{}", name(out.dtype)), (rows, 1), THREADS, arguments)
}

/// `sum = x + delta` and its norm.
#[allow(clippy::too_many_arguments)]
pub(crate) fn add_rms_norm(
    x: u64,
    delta: u64,
    weight: u64,
    epsilon: f32,
    sum: u64,
    out: Typed,
    rows: usize,
    width: usize,
) -> Launch {
    let arguments = arguments![x, delta, weight, epsilon, sum, out, width];
    launch(Module::Norm, format!("add_rms_norm_{}", name(out.dtype)), (rows, 1), THREADS, arguments)
}

/// Of `x`, or of `x + delta` where `delta` is not 0.
#[allow(clippy::too_many_arguments)]
pub(crate) fn layer_norm(
    x: u64,
    delta: u64,
    weight: u64,
    bias: u64,
    epsilon: f32,
    out: u64,
    rows: usize,
    width: usize,
) -> Launch {
    let arguments = arguments![x, delta, weight, bias, epsilon, out, width];
    launch(Module::Norm, "layer_norm".into(), (rows, 1), THREADS, arguments)
}

pub(crate) fn norm_heads(
    qkv: u64,
    q_norm: u64,
    k_norm: u64,
    epsilon: f32,
    out: u64,
    heads: Heads,
    rows: usize,
) -> Launch {
    let grid = (rows * (heads.queries + 2 * heads.keys)).div_ceil(WARPS);
    let arguments = arguments![qkv, q_norm, k_norm, epsilon, out, heads.queries, heads.keys, heads.dim, rows];
    launch(Module::Norm, "norm_heads".into(), (grid, 1), THREADS, arguments)
}

/// `gate_up: [rows, 2 · width]`.
pub(crate) fn swiglu(gate_up: u64, out: Typed, rows: usize, width: usize) -> Launch {
    gated("swiglu", gate_up, out, rows, width)
}

/// `gate_up: [rows, 2 · width]`.
pub(crate) fn geglu(gate_up: u64, out: Typed, rows: usize, width: usize) -> Launch {
    gated("geglu", gate_up, out, rows, width)
}

fn gated(kernel: &str, gate_up: u64, out: Typed, rows: usize, width: usize) -> Launch {
    let arguments = arguments![gate_up, out, width];
    let kernel = format!("{kernel}_{}", name(out.dtype));
    launch(Module::Activation, kernel, (width.div_ceil(THREADS), rows), THREADS, arguments)
}

pub(crate) fn gelu(x: u64, out: Typed, count: usize) -> Launch {
    let kernel = format!("gelu_{}", name(out.dtype));
    launch(Module::Activation, kernel, (count.div_ceil(THREADS), 1), THREADS, arguments![x, out, count])
}

/// `y` repeats every `period` values.
pub(crate) fn add(x: u64, y: u64, out: u64, count: usize, period: usize) -> Launch {
    let arguments = arguments![x, y, out, count, period];
    launch(Module::Activation, "add".into(), (count.div_ceil(THREADS), 1), THREADS, arguments)
}

pub(crate) fn to_bf16(x: u64, out: u64, count: usize) -> Launch {
    launch(Module::Activation, "to_bf16".into(), (count.div_ceil(THREADS), 1), THREADS, arguments![x, out, count])
}

/// Where the angles of all positions lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Angles {
    pub cos: u64,
    pub sin: u64,
}

pub(crate) fn rotate_and_store(
    qkv: u64,
    angles: Angles,
    plan: &Plan,
    words: u64,
    q: u64,
    pages: Typed,
    heads: Heads,
) -> Launch {
    let rows = plan.rows;
    let grid = (rows * (heads.queries + 2 * heads.keys)).div_ceil(WARPS);
    let kernel = format!("rotate_and_store_{}", name(pages.dtype));
    let (positions, slots) = (words + plan.positions(), words + plan.slots());
    let arguments =
        arguments![qkv, angles.cos, angles.sin, positions, slots, q, pages, heads.queries, heads.keys, heads.dim, rows];
    launch(Module::Rope, kernel, (grid, 1), THREADS, arguments)
}

/// Rows of `table` as `f32`.
pub(crate) fn lookup(table: Typed, ids: u64, out: u64, rows: usize, width: usize) -> Launch {
    let kernel = format!("lookup_{}", name(table.dtype));
    launch(Module::Rows, kernel, (rows, width.div_ceil(THREADS)), THREADS, arguments![table, ids, out, width])
}

/// `[rows, k]` by `[n, k]`, both bf16, for 1 to 4 rows and `k` a multiple of 8.
pub(crate) fn few_rows(x: u64, weights: u64, out: u64, rows: usize, n: usize, k: usize) -> Launch {
    launch(Module::Rows, format!("few_rows_{rows}"), (n.div_ceil(8), 1), 128, arguments![x, weights, out, n, k])
}

/// Quantised weights on a GPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blocks {
    /// The format's name in kernels.
    pub format: &'static str,
    pub bodies: u64,
    pub heads: u64,
    /// N, both halves of gated ones.
    pub rows: usize,
    /// K
    pub cols: usize,
}

/// What a product with quantised weights does with its sums: adds a bias and a residual where these are not 0, or gates them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct After {
    pub bias: u64,
    pub residual: u64,
    /// SwiGLU, to bf16; without it the output is `f32`.
    pub gated: bool,
    /// Values of a row of the output.
    pub width: usize,
}

/// Rows of x that one product with quantised weights takes at most.
pub(crate) const PRODUCT_ROWS: usize = 64;

/// Two blocks for each multiprocessor of a large GPU.
const MANY_BLOCKS: usize = 256;

/// bf16 `x: [rows, K]` by quantised weights.
pub(crate) fn quantised_product(x: u64, rows: usize, weights: Blocks, after: After, out: u64) -> Launch {
    // Blocks of several tiles read x less often, and are for products with enough blocks.
    let tiles = if rows > 8 && weights.rows.div_ceil(4 * 16) >= MANY_BLOCKS { 4 } else { 1 };
    product_in_tiles(tiles, x, rows, weights, after, out)
}

/// As product.cuh instantiates it: in blocks of 1 tile of 16 weight rows, or of 4 for more than 8 rows of x.
pub(crate) fn product_in_tiles(tiles: usize, x: u64, rows: usize, weights: Blocks, after: After, out: u64) -> Launch {
    let Blocks { format, bodies, heads, rows: extent, cols } = weights;
    let blocks = extent.div_ceil(tiles * 16);
    let most = rows.next_power_of_two().clamp(8, PRODUCT_ROWS);
    let gated = usize::from(after.gated);
    let arguments =
        arguments![bodies, heads, x, rows, after.bias, after.residual, out, extent, cols, after.width, gated];
    // The warps of a tile take units of 256 columns in turn: where seven have less to wait for each other than eight, seven.
    let units = cols.div_ceil(256);
    let waits = |warps: usize| units.div_ceil(warps) * warps - units;
    let warps = if tiles == 1 && waits(7) < waits(8) { 7 } else { 8 };
    launch(Module::Quantised(format), format!("product_{format}_{most}_{tiles}"), (blocks, 1), 32 * warps, arguments)
}

/// Rows `first..first + rows` of quantised weights as bf16.
pub(crate) fn expand(weights: Blocks, first: usize, rows: usize, out: u64) -> Launch {
    let Blocks { format, bodies, heads, cols, .. } = weights;
    let parts = rows * cols / 16;
    let arguments = arguments![bodies, heads, first, parts, cols, out];
    launch(Module::Quantised(format), format!("expand_{format}"), (parts.div_ceil(THREADS), 1), THREADS, arguments)
}

/// Where partial sums of attention go: `[parts, A, D]` and `[parts, A, 2]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    pub sums: u64,
    pub marks: u64,
}

/// The launches of one layer's attention: wide tasks, narrow tasks, and what puts their parts together.
pub(crate) fn paged(
    q: u64,
    pages: Typed,
    plan: &Plan,
    words: u64,
    heads: Heads,
    out: Typed,
    parts: Parts,
) -> Vec<Launch> {
    let kinds = format!("{}_{}_{}", name(pages.dtype), name(out.dtype), heads.dim);
    let tasks = |kernel: &str, tasks: Tasks, warps: usize| {
        let arguments = arguments![
            q,
            pages,
            words + tasks.at,
            words + plan.entries(),
            words + plan.lists(),
            heads.queries,
            heads.keys,
            out,
            parts.sums,
            parts.marks
        ];
        let kernel = format!("{kernel}_{kinds}");
        (tasks.count > 0).then(|| launch(Module::Paged, kernel, (tasks.count, heads.keys), 32 * warps, arguments))
    };
    let merges = plan.merges();
    let merge = (merges.count > 0).then(|| {
        let arguments = arguments![words + merges.at, parts.sums, parts.marks, heads.queries, out];
        let grid = (merges.count, heads.queries);
        launch(Module::Paged, format!("merge_{}", name(out.dtype)), grid, heads.dim, arguments)
    });
    let wide = tasks("paged_wide", plan.wide(), 4);
    let narrow = tasks("paged_narrow", plan.narrow(), 2);
    wide.into_iter().chain(narrow).chain(merge).collect()
}

/// `strips` come from [`super::plan::strips`].
pub(crate) fn ragged(qkv: u64, strips: u64, count: usize, heads: Heads, out: Typed) -> Launch {
    let kernel = format!("ragged_{}_{}", name(out.dtype), heads.dim);
    launch(Module::Ragged, kernel, (count, heads.queries), 128, arguments![qkv, strips, heads.queries, out])
}

/// `texts: [count, 2]`, first row and rows of each.
pub(crate) fn pool_unit(hidden: u64, texts: u64, count: usize, mean: bool, out: u64, width: usize) -> Launch {
    let arguments = arguments![hidden, texts, usize::from(mean), out, width];
    launch(Module::Embedding, "pool_unit".into(), (count, 1), THREADS, arguments)
}

pub(crate) fn unit_rows(x: u64, out: u64, rows: usize, width: usize) -> Launch {
    let grid = (rows.div_ceil(WARPS), 1);
    launch(Module::Embedding, "unit_rows".into(), grid, THREADS, arguments![x, out, width, rows])
}

/// `longest` is the largest number of rows of a text.
pub(crate) fn sparse_max(weights: u64, ids: u64, texts: u64, count: usize, longest: usize, out: u64) -> Launch {
    let grid = (longest.div_ceil(THREADS), count);
    launch(Module::Embedding, "sparse_max".into(), grid, THREADS, arguments![weights, ids, texts, out])
}

/// Tokens that a vocabulary may have to be drawn from: draw.cu's groups.
#[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "only a GPU has other rows"))]
pub(crate) const DRAW_TOKENS: usize = 1024 * 512;

/// Where draws are described: masks, and what [`draw_words`] gives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draws {
    pub masks: u64,
    pub requests: u64,
    pub adjustments: u64,
}

/// `out: [count]`: a token for each request, or one of draw.cu's marks.
pub(crate) fn draw(logits: u64, draws: Draws, count: usize, vocabulary: usize, out: u64) -> Launch {
    let arguments = arguments![logits, draws.masks, draws.requests, draws.adjustments, vocabulary, out];
    launch(Module::Draw, "draw".into(), (count, 1), 1024, arguments)
}

/// Requests, adjustments and masks as draw.cu reads them. Rows with the same mask share it.
#[derive(Debug, Default)]
pub(crate) struct DrawWords {
    pub requests: Vec<u32>,
    pub adjustments: Vec<u32>,
    pub masks: Vec<u32>,
}

pub(crate) fn draw_words(requests: &[(usize, Draw<'_>)], vocabulary: usize) -> DrawWords {
    let mut words = DrawWords::default();
    let per_mask = vocabulary.div_ceil(32);
    let mut known: Vec<(&[u32], u32)> = Vec::new();
    for (row, draw) in requests {
        let mask = draw.mask.map_or(u32::MAX, |mask| {
            let found = known.iter().find(|(other, _)| std::ptr::eq(*other, mask)).map(|(_, index)| *index);
            found.unwrap_or_else(|| {
                let index = (words.masks.len() / per_mask) as u32;
                words.masks.extend(mask.iter().copied().chain(std::iter::repeat(0)).take(per_mask));
                known.push((mask, index));
                index
            })
        });
        let first = (words.adjustments.len() / 4) as u32;
        for adjustment in draw.adjustments {
            let Adjustment { token, count, seen, bias } = *adjustment;
            words.adjustments.extend([token, count, u32::from(seen), bias.to_bits()]);
        }
        let Penalties { frequency, presence, repetition } = draw.penalties;
        let halves = |x: u64| [x as u32, (x >> 32) as u32];
        words.requests.extend([*row as u32, mask, draw.top_k.min(vocabulary) as u32, first]);
        words.requests.push(draw.adjustments.len() as u32);
        let floats = [draw.temperature, draw.top_p, draw.min_p, frequency, presence, repetition];
        words.requests.extend(floats.map(f32::to_bits));
        words.requests.extend([halves(draw.seed), halves(draw.position)].concat());
        words.requests.push(0);
    }
    words
}

/// What draw.cu has written.
pub(crate) fn drawn(word: u32) -> Drawn {
    match word {
        u32::MAX => Drawn::NotFinite,
        0xffff_fffe => Drawn::Nothing,
        token => Drawn::Token(token),
    }
}
