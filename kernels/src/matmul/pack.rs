//! The layout in which weights are multiplied: panels of 16 rows, so that one register holds the same four columns of
//! all 16 and one panel is read front to back.
//!
//! A quantised panel is a run of *blocks* of 32 columns (for K-quants in *superblocks* of 256, led by their scales).
//! Within a block the `q` of row `r`, column `4g + c` belongs to byte `4r + c` of group `g` (8 groups of 64 bytes):
//! that is the operand order of the 4-way dot product instructions and of AMX tiles alike. The low four bits of groups
//! `2i` and `2i + 1` share 64 bytes; fifth bits are planes of 64 bytes with bit `g` for group `g`; the upper two bits of
//! Q6_K are two planes with two bits per group.
//!
//! | format | per superblock | per block | bits per weight |
//! |---|---|---|---|
//! | Q4_0 | | d f16, nibbles | 4.5 |
//! | Q4_1 | | d f16, m f16, nibbles | 5 |
//! | Q5_0 | | d f16, fifth bits, nibbles | 5.5 |
//! | Q5_1 | | d f16, m f16, fifth bits, nibbles | 6 |
//! | Q8_0 | | d f16, bytes | 8.5 |
//! | Q4_K | d f16, m f16 | scale u8, min u8, nibbles | 4.625 |
//! | Q5_K | d f16, m f16 | scale u8, min u8, fifth bits, nibbles | 5.625 |
//! | Q6_K | d f16 | two scales i8, upper bits, nibbles | 6.5625 |
//!
//! A dense panel is `[K, 16]` in the file's type.

use super::format::six_bit_pair;
use super::{Format, PANEL};

/// Columns of a block.
pub(super) const BLOCK: usize = 32;

/// Groups of four columns in a block.
pub(super) const GROUPS: usize = 8;

/// Bytes that the scales in front of a superblock take.
pub(super) fn super_bytes(format: Format) -> usize {
    match format {
        Format::Q4K | Format::Q5K => 4 * PANEL,
        Format::Q6K => 2 * PANEL,
        _ => 0,
    }
}

/// Bytes of one packed block of 32 columns, without the superblock's scales.
pub(super) fn block_bytes(format: Format) -> usize {
    scale_bytes(format) + high_bytes(format) + low_bytes(format)
}

/// Bytes of the scales in front of a block.
pub(super) fn scale_bytes(format: Format) -> usize {
    match format {
        Format::Q4_0 | Format::Q5_0 | Format::Q8_0 | Format::Q4K | Format::Q5K | Format::Q6K => 2 * PANEL,
        Format::Q4_1 | Format::Q5_1 => 4 * PANEL,
        Format::F32 | Format::F16 | Format::Bf16 => 0,
    }
}

/// Bytes of the bits above the fourth.
pub(super) fn high_bytes(format: Format) -> usize {
    match format {
        Format::Q5_0 | Format::Q5_1 | Format::Q5K => 64,
        Format::Q6K => 128,
        _ => 0,
    }
}

/// Bytes of the low four bits, or of all eight.
pub(super) fn low_bytes(format: Format) -> usize {
    if format == Format::Q8_0 { 64 * GROUPS } else { 32 * GROUPS }
}

/// Bytes of one packed panel of 16 rows and `cols` columns.
pub(super) fn panel_bytes(format: Format, cols: usize) -> usize {
    if format.is_dense() {
        return PANEL * cols * format.block_bytes();
    }
    let superblocks = if super_bytes(format) > 0 { cols / 256 } else { 0 };
    superblocks * super_bytes(format) + cols / BLOCK * block_bytes(format)
}

/// Packs up to 16 rows, each as its file holds it; missing rows are zeros.
pub(super) fn pack_panel(format: Format, rows: &[&[u8]], cols: usize, panel: &mut [u8]) {
    panel.fill(0);
    if format.is_dense() {
        let bytes = format.block_bytes();
        for (r, row) in rows.iter().enumerate() {
            for (k, value) in row.chunks_exact(bytes).enumerate() {
                panel[(k * PANEL + r) * bytes..][..bytes].copy_from_slice(value);
            }
        }
        return;
    }
    let mut rest = panel;
    for block in 0..cols / BLOCK {
        if block % 8 == 0 && super_bytes(format) > 0 {
            let (scales, after) = rest.split_at_mut(super_bytes(format));
            pack_super_scales(format, rows, block / 8, scales);
            rest = after;
        }
        let (packed, after) = rest.split_at_mut(block_bytes(format));
        pack_block(format, rows, block, packed);
        rest = after;
    }
}

/// The f16 scales of a superblock: `[16] d`, then `[16] m` where there is one.
fn pack_super_scales(format: Format, rows: &[&[u8]], superblock: usize, out: &mut [u8]) {
    for (r, row) in rows.iter().enumerate() {
        let block = &row[superblock * format.block_bytes()..];
        if format == Format::Q6K {
            out[2 * r..2 * r + 2].copy_from_slice(&block[208..210]);
        } else {
            out[2 * r..2 * r + 2].copy_from_slice(&block[0..2]);
            out[2 * (PANEL + r)..2 * (PANEL + r) + 2].copy_from_slice(&block[2..4]);
        }
    }
}

fn pack_block(format: Format, rows: &[&[u8]], block: usize, out: &mut [u8]) {
    let (scales, bits) = out.split_at_mut(scale_bytes(format));
    let (high, low) = bits.split_at_mut(high_bytes(format));
    for (r, row) in rows.iter().enumerate() {
        pack_scales(format, row, block, r, scales);
        for half in 0..2 {
            let q = format.group(row, 2 * block + half).q;
            for (j, q) in q.into_iter().enumerate() {
                let (group, byte) = ((16 * half + j) / 4, 4 * r + j % 4);
                if format == Format::Q8_0 {
                    low[64 * group + byte] = q;
                    continue;
                }
                low[64 * (group / 2) + byte] |= (q & 15) << (4 * (group % 2));
                match high.len() {
                    64 => high[byte] |= (q >> 4) << group,
                    128 => high[64 * (group / 4) + byte] |= (q >> 4) << (2 * (group % 4)),
                    _ => {}
                }
            }
        }
    }
}

fn pack_scales(format: Format, row: &[u8], block: usize, r: usize, out: &mut [u8]) {
    let raw = &row[block * BLOCK / format.block_len() * format.block_bytes()..];
    match format {
        Format::Q4K | Format::Q5K => {
            let (scale, min) = six_bit_pair(raw, block % 8);
            (out[r], out[PANEL + r]) = (scale, min);
        }
        Format::Q6K => {
            let scales = &raw[192 + 2 * (block % 8)..];
            (out[r], out[PANEL + r]) = (scales[0], scales[1]);
        }
        _ => {
            out[2 * r..2 * r + 2].copy_from_slice(&raw[0..2]);
            if format.has_min() {
                out[2 * (PANEL + r)..2 * (PANEL + r) + 2].copy_from_slice(&raw[2..4]);
            }
        }
    }
}
