//! Attention over paged keys and values (decoder) or over the batch itself (encoder).
//!
//! # Contract
//! For every query row and head: `out = Σ_j softmax_j(q·k_j / √D) v_j` over the keys that the row may see: those up to
//! its own position (decoder) or all of its sequence (encoder). `A` query heads share `K` key/value heads, `A / K`
//! neighbours each.
//!
//! # Numerics
//! `f32` throughout, except with pages in bf16, for which `pairs` says what is rounded, and `in_tiles` on AMX. There an encoder with
//! bf16 weights computes likewise ([`Precision`]). Other pages keep keys and values as f16,
//! as `f32`, or in 8 bits with a scale for 32 dimensions, which are widened to `f32` a tile at a time. Keys are taken in tiles of
//! 32 counted from the start of the sequence, with a running maximum and sum (online softmax), so a row's bits depend neither on
//! how the prompt was cut into chunks nor on its neighbours. The query is scaled before the product. [`mod@reference`] does the
//! same in plain loops and gives the same bits; against a softmax in `f64` the error is below 1e-5 of the largest value (not in
//! bf16).
//!
//! # Cost
//! In `f32` a task holds one tile of queries of one key/value head: every key tile is converted to `f32` once for all of its
//! rows, `4 D` operations per row and key follow. Few rows, as in decoding, convert it in registers while the next tile is
//! fetched from memory.

mod heads;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_variables, reason = "its loops are tested everywhere"))]
mod in_tiles;
mod pages;
mod pairs;
mod placed;
mod product;
mod quantised;
mod ragged;
pub mod reference;
mod tile;

pub use heads::{Heads, KEYS, PageShape};
pub use pages::{PagedSequence, Pages, PagesMut, paged};
pub use pairs::in_bf16;
pub use placed::{Placed, Texts};
pub use quantised::rounded;
pub use ragged::{Precision, ragged};
