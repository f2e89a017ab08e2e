//! The layout in which weights are multiplied: panels of 16 rows, so that one register holds the same four columns of
//! all 16 and one panel is read front to back.
//!
//! A quantised panel is a run of *blocks* of 32 columns (for K-quants in *superblocks* of 256, led by their scales).
//! Within a block the `q` of row `r`, column `4g + c` belongs to byte `4r + c` of group `g` (8 groups of 64 bytes):
//! that is the operand order of the 4-way dot product instructions and of AMX tiles alike. The low four bits of groups
//! `2i` and `2i + 1` share 64 bytes; fifth bits (third ones of Q3_K) are planes of 64 bytes with bit `g` for group `g`; pairs of
//! bits, the upper ones of Q6_K and the lower ones of Q2_K and Q3_K, are two planes of four groups each.
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
//! | Q2_K | d f16, m f16 | two scales and minima u4, pairs | 2.625 |
//! | Q3_K | d f16 | two scales i8, third bits, pairs | 3.5625 |
//! | IQ4_NL | | d f16, nibbles | 4.5 |
//! | IQ4_XS | d f16 | scale i8, nibbles | 4.3125 |
//!
//! A dense panel is `[K, 16]` in the file's type.

use super::format::{six_bit_pair, table_scale, three_scale};
use super::{Format, PANEL};

/// Columns of a block.
pub(super) const BLOCK: usize = 32;

/// Groups of four columns in a block.
pub(super) const GROUPS: usize = 8;

/// Bytes that the scales in front of a superblock take.
pub(super) fn super_bytes(format: Format) -> usize {
    match format {
        Format::Q2K | Format::Q4K | Format::Q5K => 4 * PANEL,
        Format::Q3K | Format::Q6K | Format::Iq4Xs => 2 * PANEL,
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
        Format::F32 | Format::F16 | Format::Bf16 => 0,
        Format::Iq4Xs => PANEL,
        Format::Q4_1 | Format::Q5_1 => 4 * PANEL,
        _ => 2 * PANEL,
    }
}

/// Bytes of the bits above those of [`low_bytes`].
pub(super) fn high_bytes(format: Format) -> usize {
    match format {
        Format::Q3K | Format::Q5_0 | Format::Q5_1 | Format::Q5K => 64,
        Format::Q6K => 128,
        _ => 0,
    }
}

/// Bytes of the low two or four bits, or of all eight.
pub(super) fn low_bytes(format: Format) -> usize {
    low_bits(format) * 8 * GROUPS
}

/// How many bits of a weight are together.
pub(super) fn low_bits(format: Format) -> usize {
    match format {
        Format::Q2K | Format::Q3K => 2,
        Format::Q8_0 => 8,
        _ => 4,
    }
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
        let at = match format {
            Format::Q2K => 80,
            Format::Q3K => 108,
            Format::Q6K => 208,
            _ => 0,
        };
        out[2 * r..2 * r + 2].copy_from_slice(&block[at..at + 2]);
        if format.has_min() {
            out[2 * (PANEL + r)..2 * (PANEL + r) + 2].copy_from_slice(&block[at + 2..at + 4]);
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
                let bits = low_bits(format);
                let together = 8 / bits;
                let lowest = q & (0xff_u8 >> (8 - bits));
                low[64 * (group / together) + byte] |= lowest << (bits * (group % together));
                match high.len() {
                    64 => high[byte] |= (q >> bits) << group,
                    128 => high[64 * (group / 4) + byte] |= (q >> bits) << (2 * (group % 4)),
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
        Format::Q2K => {
            let pairs = &raw[2 * (block % 8)..];
            (out[r], out[PANEL + r]) = (pairs[0], pairs[1]);
        }
        Format::Q3K => {
            let scale = |half| three_scale(raw, 2 * (block % 8) + half).cast_unsigned();
            (out[r], out[PANEL + r]) = (scale(0), scale(1));
        }
        Format::Iq4Xs => out[r] = table_scale(raw, block % 8).cast_unsigned(),
        _ => {
            out[2 * r..2 * r + 2].copy_from_slice(&raw[0..2]);
            if format.has_min() {
                out[2 * (PANEL + r)..2 * (PANEL + r) + 2].copy_from_slice(&raw[2..4]);
            }
        }
    }
}
