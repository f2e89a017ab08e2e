//! Product of `f32` rows with a weight matrix that stays in its file's precision.
//!
//! # Contract
//! `out[m][n] = Σ_k x[m][k] · w[n][k]`, `x: [M, K] f32`, `w: [N, K]` in any [`Format`], `out: [M, N] f32`.
//!
//! Quantised weights: every row of `x` is first quantised to int8 in blocks of 32 with one `f32` scale each
//! ([`Activations`]); a weight is `d·(q - zero) + m` with unsigned `q` and one `(d, m)` per group of 32 (16 for Q2_K, Q3_K and
//! Q6_K; `m` only where the format has one); in the IQ4 formats a table of int8 is in the place of `q - zero`. Then, with groups in ascending order and every `+` a fused multiply-add in `f32`,
//! `out = Σ_g (d_g·a_g)·dot_g + m_g·(a_g·sum_g)`, where `dot_g` and `sum_g` are exact integers.
//! Dense weights: one chain of fused multiply-adds over ascending `k`.
//!
//! # Numerics
//! All ISAs equal [`mod@reference`] bit for bit, and a row of `out` does not depend on the other rows. With bf16 weights on AMX
//! and by AVX512-BF16 they equal [`reference::dot_bf16`]. Against exact
//! arithmetic the int8 activations cost a relative error of about 0.4 % of the row's norm.
//!
//! # Cost
//! Weights are packed once into panels of 16 rows, in about their file's size (`pack`); one product reads every weight
//! byte once per [`ROWS_PER_PASS`] rows of `x`, so one row is bound by memory, many rows by the dot product.

mod activations;
#[cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, unused_imports, unused_variables, reason = "no unit of other processors is supported")
)]
mod bf16;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports, reason = "its loops are tested everywhere"))]
mod bf16_pairs;
mod format;
mod low_rank;
mod matrix;
mod output;
mod pack;
mod panel;
pub mod reference;
#[cfg_attr(
    not(target_arch = "aarch64"),
    allow(dead_code, unused_variables, reason = "its loops are tested everywhere")
)]
mod tiled;

pub use activations::Activations;
pub(crate) use bf16::rounded;
#[cfg(target_arch = "x86_64")]
pub(crate) use bf16_pairs::is_exact as pairs_are_exact;
pub use format::{Format, Group};
pub use low_rank::{LowRank, LowRankPart, add_low_rank};
pub use matrix::{Matrix, MatrixError};
pub use output::RowEpilogue;

/// Weight rows that are packed together: one 512-bit register of `f32` sums.
pub const PANEL: usize = 16;

/// Which layout the packed weights have. It goes up whenever a packed byte means something else, so that weights which
/// were packed and kept by another version are not taken for today's.
pub const LAYOUT: u32 = 1;

/// Rows of `x` that a task multiplies with one panel while that is in the nearest cache.
pub const ROWS_PER_PASS: usize = 256;
