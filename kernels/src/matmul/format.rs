//! Weight formats of GGUF and safetensors files and their block layouts.

#[cfg(feature = "candle")]
use candle_core::quantized::GgmlDType;
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
    Q2K,
    Q3K,
    Iq4Nl,
    Iq4Xs,
}

/// The values of the IQ4 formats, by their four bits (ggml's `kvalues_iq4nl`).
const IQ4_VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Sixteen weights that share a scale: a weight is `d·w(q) + m`, with the format's whole number `w(q)`: `q - zero`, or an entry
/// of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    pub q: [u8; 16],
    pub d: f32,
    pub m: f32,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 15] = [
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
        Format::Q2K,
        Format::Q3K,
        Format::Iq4Nl,
        Format::Iq4Xs,
    ];

    /// Values per block in a file; 1 for dense formats.
    pub fn block_len(self) -> usize {
        match self {
            Format::F32 | Format::F16 | Format::Bf16 => 1,
            Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 | Format::Q8_0 | Format::Iq4Nl => 32,
            Format::Q2K | Format::Q3K | Format::Q4K | Format::Q5K | Format::Q6K | Format::Iq4Xs => 256,
        }
    }

    /// Bytes per block in a file.
    pub fn block_bytes(self) -> usize {
        match self {
            Format::F32 => 4,
            Format::F16 | Format::Bf16 => 2,
            Format::Q4_0 | Format::Iq4Nl => 18,
            Format::Q4_1 => 20,
            Format::Q5_0 => 22,
            Format::Q5_1 => 24,
            Format::Q8_0 => 34,
            Format::Q4K => 144,
            Format::Q5K => 176,
            Format::Q6K => 210,
            Format::Q2K => 84,
            Format::Q3K => 110,
            Format::Iq4Xs => 136,
        }
    }

    /// candle's type of the same blocks; `None` for the IQ4 formats, which candle lacks ([`Format::as_q8_0`]).
    #[cfg(feature = "candle")]
    pub fn candle_type(self) -> Option<GgmlDType> {
        Some(match self {
            Format::F32 => GgmlDType::F32,
            Format::F16 => GgmlDType::F16,
            Format::Bf16 => GgmlDType::BF16,
            Format::Q4_0 => GgmlDType::Q4_0,
            Format::Q4_1 => GgmlDType::Q4_1,
            Format::Q5_0 => GgmlDType::Q5_0,
            Format::Q5_1 => GgmlDType::Q5_1,
            Format::Q8_0 => GgmlDType::Q8_0,
            Format::Q4K => GgmlDType::Q4K,
            Format::Q5K => GgmlDType::Q5K,
            Format::Q6K => GgmlDType::Q6K,
            Format::Q2K => GgmlDType::Q2K,
            Format::Q3K => GgmlDType::Q3K,
            Format::Iq4Nl | Format::Iq4Xs => return None,
        })
    }

    /// True if weights are stored as they are, one by one.
    pub fn is_dense(self) -> bool {
        self.block_len() == 1
    }

    /// Bytes of a row of `cols` weights, or `None` if `cols` is not a multiple of the block length.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        cols.is_multiple_of(self.block_len()).then(|| cols / self.block_len() * self.block_bytes())
    }

    /// What represents zero, as weights are multiplied.
    pub(super) fn zero(self) -> i32 {
        match self {
            Format::Q3K => 4,
            Format::Q4_0 => 8,
            Format::Q5_0 => 16,
            Format::Q6K => 32,
            Format::Q8_0 | Format::Iq4Nl | Format::Iq4Xs => 128,
            _ => 0,
        }
    }

    /// The largest magnitude of a quantised weight, as it is multiplied.
    pub(super) fn largest(self) -> i32 {
        match self {
            Format::Q5_0 | Format::Q5_1 | Format::Q5K => 31,
            Format::Q6K => 63,
            Format::Q2K => 3,
            Format::Q3K => 7,
            Format::Q8_0 | Format::Iq4Nl | Format::Iq4Xs => 128,
            _ => 15,
        }
    }

    /// True if groups have an `m`.
    pub(super) fn has_min(self) -> bool {
        matches!(self, Format::Q4_1 | Format::Q5_1 | Format::Q2K | Format::Q4K | Format::Q5K)
    }

    /// True if weights are multiplied as whole bytes with the zero 128.
    pub(super) fn is_bytes(self) -> bool {
        matches!(self, Format::Q8_0 | Format::Iq4Nl | Format::Iq4Xs)
    }

    /// True if the four bits of a weight are the index of a table.
    pub(super) fn has_table(self) -> bool {
        matches!(self, Format::Iq4Nl | Format::Iq4Xs)
    }

    /// The bytes that are multiplied for the four bits of a format with a table.
    pub(super) const TABLE: [u8; 16] = {
        let mut table = [0; 16];
        let mut i = 0;
        while i < 16 {
            table[i] = IQ4_VALUES[i].cast_unsigned().wrapping_add(128);
            i += 1;
        }
        table
    };

    /// The whole number that is scaled for a stored `q`.
    pub(super) fn whole(self, q: u8) -> i32 {
        if self.has_table() { i32::from(IQ4_VALUES[usize::from(q)]) } else { i32::from(q) - self.zero() }
    }

    /// Weights that share one `(d, m)`: 32, or 16 for Q2_K, Q3_K and Q6_K.
    pub(super) fn group_len(self) -> usize {
        if matches!(self, Format::Q2K | Format::Q3K | Format::Q6K) { 16 } else { 32 }
    }

    /// The 16 weights `16·index ..` of a quantised row.
    pub(super) fn group(self, row: &[u8], index: usize) -> Group {
        let per_block = self.block_len() / 16;
        let block = &row[index / per_block * self.block_bytes()..][..self.block_bytes()];
        let part = index % per_block;
        match self {
            Format::Q4_0 | Format::Iq4Nl => small(block, part, None, |j| nibble(&block[2..], j)),
            Format::Q4_1 => small(block, part, Some(2), |j| nibble(&block[4..], j)),
            Format::Q5_0 => small(block, part, None, |j| nibble(&block[6..], j) | fifth(&block[2..], j)),
            Format::Q5_1 => small(block, part, Some(2), |j| nibble(&block[8..], j) | fifth(&block[4..], j)),
            Format::Q8_0 => small(block, part, None, |j| block[2 + j].wrapping_add(128)),
            Format::Q4K => four_or_five(block, part, &block[16..144], None),
            Format::Q5K => four_or_five(block, part, &block[48..176], Some(&block[16..48])),
            Format::Q6K => six(block, part),
            Format::Q2K => two(block, part),
            Format::Q3K => three(block, part),
            Format::Iq4Xs => four_of_table(block, part),
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
                    out.iter_mut().zip(q).for_each(|(o, q)| *o = d.mul_add(self.whole(q) as f32, m));
                }
            }
        }
    }

    /// Blocks of the IQ4 formats as blocks of Q8_0, for devices without a product of their own; `None` for other formats. Q8_0's
    /// scale is an f16: that of IQ4_NL is the same, that of 32 weights of IQ4_XS is rounded to it, by 2^-11 of itself at most (by
    /// 2^-25 below 2^-14).
    pub fn as_q8_0(self, blocks: &[u8]) -> Option<Vec<u8>> {
        if !self.has_table() {
            return None;
        }
        let mut out = Vec::with_capacity(blocks.len() * 2);
        for block in blocks.chunks_exact(self.block_bytes()) {
            for part in (0..self.block_len() / 16).step_by(2) {
                let [first, second] = [self.group(block, part), self.group(block, part + 1)];
                out.extend(f16::from_f32(first.d).to_le_bytes());
                out.extend(first.q.iter().chain(&second.q).map(|q| IQ4_VALUES[usize::from(*q)].cast_unsigned()));
            }
        }
        Some(out)
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

/// Q2_K: sixteen sub-blocks of 16 with a scale and a minimum of 4 bits.
fn two(block: &[u8], part: usize) -> Group {
    let d = f16_at(&block[80..]) * f32::from(block[part] & 15);
    let m = -(f16_at(&block[82..]) * f32::from(block[part] >> 4));
    Group { q: two_bits(&block[16..80], part), d, m }
}

/// Q3_K: sixteen sub-blocks of 16 with scales of 6 bits; the third bits are apart.
fn three(block: &[u8], part: usize) -> Group {
    let (sub, offset) = (part / 2, 16 * (part % 2));
    let mut q = two_bits(&block[32..96], part);
    for (q, third) in q.iter_mut().zip(&block[offset..]) {
        *q |= (third >> sub & 1) << 2;
    }
    Group { q, d: f16_at(&block[108..]) * f32::from(three_scale(block, part)), m: 0.0 }
}

/// The low two bits of the 16 weights of a part of 256.
fn two_bits(bytes: &[u8], part: usize) -> [u8; 16] {
    let (half, quarter, offset) = (part / 8, part % 8 / 2, 16 * (part % 2));
    std::array::from_fn(|j| bytes[32 * half + offset + j] >> (2 * quarter) & 3)
}

/// The scale of a part of a Q3_K block: 16 of 6 bits in 12 bytes, with the zero 32.
pub(super) fn three_scale(block: &[u8], part: usize) -> i8 {
    let bytes = &block[96..108];
    let low = bytes[part % 8] >> (4 * (part / 8)) & 15;
    let high = bytes[8 + part % 4] >> (2 * (part / 4)) & 3;
    (low | high << 4).cast_signed() - 32
}

/// IQ4_XS: eight sub-blocks of 32 with scales of 6 bits.
fn four_of_table(block: &[u8], part: usize) -> Group {
    let low = &block[8 + 16 * (part / 2)..];
    let q = std::array::from_fn(|j| nibble(low, 16 * (part % 2) + j));
    Group { q, d: f16_at(block) * f32::from(table_scale(block, part / 2)), m: 0.0 }
}

/// The scale of a sub-block of an IQ4_XS block: the upper two bits of all eight in front of the lower four, with the zero 32.
pub(super) fn table_scale(block: &[u8], sub: usize) -> i8 {
    let high = u16::from_le_bytes([block[2], block[3]]) >> (2 * sub) & 3;
    let low = block[4 + sub / 2] >> (4 * (sub % 2)) & 15;
    (low | (high as u8) << 4).cast_signed() - 32
}

pub(super) fn f16_at(bytes: &[u8]) -> f32 {
    f16::from_le_bytes([bytes[0], bytes[1]]).to_f32()
}

fn f32_at(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
