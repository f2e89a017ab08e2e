//! From a packed panel to what the dot products read: bytes, and `f32` scales.
//!
//! Unpacking costs about as much as the product with one row of activations and is shared by all rows of a pass.

use super::pack::{self, BLOCK, GROUPS};
use super::{Format, PANEL};
use crate::cpu::per_body;

/// One panel, unpacked: the columns of 16 weight rows.
#[derive(Debug, Default)]
pub(super) struct Panel {
    /// `[K / 4, 16, 4] u8`
    pub q: Vec<u8>,
    /// `[K / group, 16]`
    pub d: Vec<f32>,
    /// `[K / group, 16]`; empty if the format has none.
    pub m: Vec<f32>,
    /// `[K, 16]`; dense formats only.
    pub dense: Vec<f32>,
}

per_body! {
    /// Fills `panel` from the packed bytes of a panel with `cols` columns.
    pub(super) fn unpack(body, format: Format, packed: &[u8], cols: usize, panel: &mut Panel) = unpack_panel;
}

#[inline(always)]
fn unpack_panel(format: Format, packed: &[u8], cols: usize, panel: &mut Panel) {
    match format {
        Format::F32 => unpack_dense(packed, cols, panel, f32::from_le_bytes),
        Format::F16 => unpack_dense(packed, cols, panel, f16_to_f32),
        Format::Bf16 => {
            unpack_dense(packed, cols, panel, |b: [u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(b)) << 16))
        }
        _ => unpack_quantised(format, packed, cols, panel),
    }
}

#[inline(always)]
fn unpack_dense<const W: usize>(packed: &[u8], cols: usize, panel: &mut Panel, value: impl Fn([u8; W]) -> f32) {
    panel.dense.resize(cols * PANEL, 0.0);
    let (packed, _) = packed.as_chunks::<W>();
    panel.dense.iter_mut().zip(packed).for_each(|(out, bytes)| *out = value(*bytes));
}

#[inline(always)]
fn unpack_quantised(format: Format, packed: &[u8], cols: usize, panel: &mut Panel) {
    let groups = cols / format.group_len();
    panel.q.resize(cols * PANEL, 0);
    panel.d.resize(groups * PANEL, 0.0);
    panel.m.resize(if format.has_min() { groups * PANEL } else { 0 }, 0.0);
    let mut rest = packed;
    let (mut super_d, mut super_m) = ([0f32; PANEL], [0f32; PANEL]);
    for (block, q) in panel.q.as_chunks_mut::<{ BLOCK * PANEL }>().0.iter_mut().enumerate() {
        if block % 8 == 0 && pack::super_bytes(format) > 0 {
            let (scales, after) = rest.split_at(pack::super_bytes(format));
            super_d = halves(scales);
            if format.has_min() {
                super_m = halves(&scales[2 * PANEL..]);
            }
            rest = after;
        }
        let (scales, after) = rest.split_at(pack::scale_bytes(format));
        let (high, after) = after.split_at(pack::high_bytes(format));
        let (low, after) = after.split_at(pack::block_bytes(format) - scales.len() - high.len());
        rest = after;
        unpack_bits(low, high, q);
        match format {
            Format::Q4K | Format::Q5K => {
                let out = (&mut panel.d[block * PANEL..][..PANEL], &mut panel.m[block * PANEL..][..PANEL]);
                for r in 0..PANEL {
                    out.0[r] = super_d[r] * f32::from(scales[r]);
                    out.1[r] = -(super_m[r] * f32::from(scales[PANEL + r]));
                }
            }
            Format::Q6K => {
                let out = &mut panel.d[2 * block * PANEL..][..2 * PANEL];
                for (i, out) in out.iter_mut().enumerate() {
                    *out = super_d[i % PANEL] * f32::from(scales[i].cast_signed());
                }
            }
            _ => {
                panel.d[block * PANEL..][..PANEL].copy_from_slice(&halves(scales));
                if format.has_min() {
                    panel.m[block * PANEL..][..PANEL].copy_from_slice(&halves(&scales[2 * PANEL..]));
                }
            }
        }
    }
}

/// Joins the low and high bits of 8 groups of 64 weights.
#[inline(always)]
fn unpack_bits(low: &[u8], high: &[u8], q: &mut [u8; BLOCK * PANEL]) {
    if low.len() == q.len() {
        q.copy_from_slice(low);
        return;
    }
    let (low, _) = low.as_chunks::<64>();
    let (high, _) = high.as_chunks::<64>();
    let (q, _) = q.as_chunks_mut::<64>();
    for group in 0..GROUPS {
        for byte in 0..64 {
            let four = low[group / 2][byte] >> (4 * (group % 2)) & 15;
            q[group][byte] = four
                | match high.len() {
                    1 => (high[0][byte] >> group & 1) << 4,
                    2 => (high[group / 4][byte] >> (2 * (group % 4)) & 3) << 4,
                    _ => 0,
                };
        }
    }
}

#[inline(always)]
fn halves(bytes: &[u8]) -> [f32; PANEL] {
    std::array::from_fn(|r| f16_to_f32([bytes[2 * r], bytes[2 * r + 1]]))
}

/// Exact for every finite half, denormals included, and without a branch, so that it vectorises.
#[inline(always)]
fn f16_to_f32(bytes: [u8; 2]) -> f32 {
    let half = u32::from(u16::from_le_bytes(bytes));
    let magnitude = f32::from_bits((half & 0x7fff) << 13) * f32::from_bits(0x7780_0000); // 2^112
    f32::from_bits(magnitude.to_bits() | (half & 0x8000) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finite_half_converts_exactly() {
        for bits in 0..=u16::MAX {
            let want = half::f16::from_bits(bits);
            if want.is_finite() {
                assert_eq!(f16_to_f32(bits.to_le_bytes()).to_bits(), want.to_f32().to_bits(), "{bits:#x}");
            }
        }
    }
}
