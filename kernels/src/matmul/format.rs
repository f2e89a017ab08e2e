//! Weight formats of GGUF and safetensors files and their block layouts.

use half::{bf16, f16};

/// How the weights of a matrix are stored. The quantised ones are ggml's block formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    F32,
    F16,
    Bf16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
}

/// Sixteen weights that share a scale: a weight is `d·(q - zero) + m`, with the format's `zero`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    pub q: [u8; 16],
    pub d: f32,
    pub m: f32,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 11] = [
        Format::F32,
        Format::F16,
        Format::Bf16,
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q5_1,
        Format::Q8_0,
        Format::Q4K,
        Format::Q5K,
        Format::Q6K,
    ];

    /// Values per block in a file; 1 for dense formats.
    pub fn block_len(self) -> usize {
        match self {
            Format::F32 | Format::F16 | Format::Bf16 => 1,
            Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 | Format::Q8_0 => 32,
            Format::Q4K | Format::Q5K | Format::Q6K => 256,
        }
    }

    /// Bytes per block in a file.
    pub fn block_bytes(self) -> usize {
        match self {
            Format::F32 => 4,
            Format::F16 | Format::Bf16 => 2,
            Format::Q4_0 => 18,
            Format::Q4_1 => 20,
            Format::Q5_0 => 22,
            Format::Q5_1 => 24,
            Format::Q8_0 => 34,
            Format::Q4K => 144,
            Format::Q5K => 176,
            Format::Q6K => 210,
        }
    }

    /// True if weights are stored as they are, one by one.
    pub fn is_dense(self) -> bool {
        self.block_len() == 1
    }

    /// Bytes of a row of `cols` weights, or `None` if `cols` is not a multiple of the block length.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        cols.is_multiple_of(self.block_len()).then(|| cols / self.block_len() * self.block_bytes())
    }

    /// The `q` that represents zero.
    pub(super) fn zero(self) -> i32 {
        match self {
            Format::Q4_0 => 8,
            Format::Q5_0 => 16,
            Format::Q6K => 32,
            Format::Q8_0 => 128,
            _ => 0,
        }
    }

    /// The largest magnitude of a quantised weight, as it is multiplied.
    pub(super) fn largest(self) -> i32 {
        match self {
            Format::Q5_0 | Format::Q5_1 | Format::Q5K => 31,
            Format::Q6K => 63,
            Format::Q8_0 => 128,
            _ => 15,
        }
    }

    /// True if groups have an `m`.
    pub(super) fn has_min(self) -> bool {
        matches!(self, Format::Q4_1 | Format::Q5_1 | Format::Q4K | Format::Q5K)
    }

    /// Weights that share one `(d, m)`: 32, or 16 for Q6_K.
    pub(super) fn group_len(self) -> usize {
        if self == Format::Q6K { 16 } else { 32 }
    }

    /// The 16 weights `16·index ..` of a quantised row.
    pub(super) fn group(self, row: &[u8], index: usize) -> Group {
        let per_block = self.block_len() / 16;
        let block = &row[index / per_block * self.block_bytes()..][..self.block_bytes()];
        let part = index % per_block;
        match self {
            Format::Q4_0 => small(block, part, None, |j| nibble(&block[2..], j)),
            Format::Q4_1 => small(block, part, Some(2), |j| nibble(&block[4..], j)),
            Format::Q5_0 => small(block, part, None, |j| nibble(&block[6..], j) | fifth(&block[2..], j)),
            Format::Q5_1 => small(block, part, Some(2), |j| nibble(&block[8..], j) | fifth(&block[4..], j)),
            Format::Q8_0 => small(block, part, None, |j| block[2 + j].wrapping_add(128)),
            Format::Q4K => four_or_five(block, part, &block[16..144], None),
            Format::Q5K => four_or_five(block, part, &block[48..176], Some(&block[16..48])),
            Format::Q6K => six(block, part),
            Format::F32 | Format::F16 | Format::Bf16 => unreachable!("dense formats have no groups"),
        }
    }

    /// Writes the weights of one row as `f32`.
    pub fn dequantise(self, row: &[u8], out: &mut [f32]) {
        match self {
            Format::F32 => out.iter_mut().zip(row.chunks_exact(4)).for_each(|(o, b)| *o = f32_at(b)),
            Format::F16 => out.iter_mut().zip(row.chunks_exact(2)).for_each(|(o, b)| *o = f16_at(b)),
            Format::Bf16 => {
                out.iter_mut()
                    .zip(row.chunks_exact(2))
                    .for_each(|(o, b)| *o = bf16::from_le_bytes([b[0], b[1]]).to_f32());
            }
            _ => {
                for (index, out) in out.chunks_exact_mut(16).enumerate() {
                    let Group { q, d, m } = self.group(row, index);
                    let zero = self.zero();
                    out.iter_mut().zip(q).for_each(|(o, q)| *o = d.mul_add((i32::from(q) - zero) as f32, m));
                }
            }
        }
    }
}

/// A block of 32 with `d` in front and `m`, if any, at `min`.
fn small(block: &[u8], part: usize, min: Option<usize>, q: impl Fn(usize) -> u8) -> Group {
    let m = min.map_or(0.0, |min| f16_at(&block[min..]));
    Group { q: std::array::from_fn(|j| q(16 * part + j)), d: f16_at(block), m }
}

/// The 4 low bits of weight `j` of 32: the first 16 weights are in the low halves of 16 bytes.
fn nibble(bytes: &[u8], j: usize) -> u8 {
    if j < 16 { bytes[j] & 15 } else { bytes[j - 16] >> 4 }
}

/// The fifth bit of weight `j` of 32, in its place.
fn fifth(bytes: &[u8], j: usize) -> u8 {
    (bytes[j / 8] >> (j % 8) & 1) << 4
}

/// Q4_K and Q5_K: eight sub-blocks of 32 with 6-bit scales and minima.
fn four_or_five(block: &[u8], part: usize, low: &[u8], high: Option<&[u8]>) -> Group {
    let sub = part / 2;
    let (scale, min) = six_bit_pair(block, sub);
    let d = f16_at(block) * f32::from(scale);
    let m = -(f16_at(&block[2..]) * f32::from(min));
    let q = std::array::from_fn(|j| {
        let j = 16 * (part % 2) + j;
        let byte = low[32 * (sub / 2) + j];
        let four = if sub.is_multiple_of(2) { byte & 15 } else { byte >> 4 };
        four | high.map_or(0, |high| (high[j] >> sub & 1) << 4)
    });
    Group { q, d, m }
}

/// Scale and minimum of sub-block `sub` of a Q4_K or Q5_K block: 8 pairs of 6 bits in 12 bytes.
pub(super) fn six_bit_pair(block: &[u8], sub: usize) -> (u8, u8) {
    let bytes = &block[4..16];
    if sub < 4 {
        (bytes[sub] & 63, bytes[sub + 4] & 63)
    } else {
        let (low, scale_top, min_top) = (bytes[sub + 4], bytes[sub - 4] >> 6, bytes[sub] >> 6);
        (low & 15 | scale_top << 4, low >> 4 | min_top << 4)
    }
}

/// Q6_K: sixteen sub-blocks of 16 with int8 scales.
fn six(block: &[u8], part: usize) -> Group {
    let (half, quarter, offset) = (part / 8, part % 8 / 2, 16 * (part % 2));
    let low = &block[64 * half + 32 * (quarter % 2) + offset..];
    let high = &block[128 + 32 * half + offset..];
    let d = f16_at(&block[208..]) * f32::from(block[192 + part].cast_signed());
    let q = std::array::from_fn(|j| {
        let four = if quarter < 2 { low[j] & 15 } else { low[j] >> 4 };
        four | (high[j] >> (2 * quarter) & 3) << 4
    });
    Group { q, d, m: 0.0 }
}

pub(super) fn f16_at(bytes: &[u8]) -> f32 {
    f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
}

fn f32_at(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
