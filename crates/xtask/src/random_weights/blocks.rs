//! Random weights in the blocks of ggml's formats.

use random::Random;

/// The formats that the checkpoints need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    F32,
    Bf16,
    Q5_0,
    Q8_0,
    Q4K,
    Q6K,
}

/// The approximate standard deviation of a weight.
const SPREAD: f32 = 0.02;

impl Format {
    /// ggml's number of the type.
    pub fn ggml(self) -> u32 {
        match self {
            Format::F32 => 0,
            Format::Q5_0 => 6,
            Format::Q8_0 => 8,
            Format::Q4K => 12,
            Format::Q6K => 14,
            Format::Bf16 => 30,
        }
    }

    /// Values and bytes of a block.
    fn block(self) -> (usize, usize) {
        match self {
            Format::F32 => (1, 4),
            Format::Bf16 => (1, 2),
            Format::Q5_0 => (32, 22),
            Format::Q8_0 => (32, 34),
            Format::Q4K => (256, 144),
            Format::Q6K => (256, 210),
        }
    }

    /// Bytes of this many values.
    pub fn bytes(self, values: usize) -> usize {
        let (len, bytes) = self.block();
        values / len * bytes
    }

    /// This many random values, uniform around zero.
    pub fn random(self, values: usize, random: &mut Random) -> Vec<u8> {
        let mut out = vec![0u8; self.bytes(values)];
        fill(&mut out, random);
        for block in out.chunks_exact_mut(self.block().1) {
            self.tame(block);
        }
        out
    }

    /// Sets the scales of a block of random bits so that its values have the standard deviation.
    fn tame(self, block: &mut [u8]) {
        match self {
            Format::F32 => {
                let bits = u32::from_le_bytes([block[0], block[1], block[2], block[3]]);
                block.copy_from_slice(&even(bits).to_le_bytes());
            }
            Format::Bf16 => {
                let bits = u32::from(u16::from_le_bytes([block[0], block[1]])) << 16;
                block.copy_from_slice(&even(bits).to_le_bytes()[2..]);
            }
            // 32 even steps around zero have a standard deviation of 9.2 steps, 256 one of 74.
            Format::Q5_0 => block[..2].copy_from_slice(&half(SPREAD / 9.2)),
            Format::Q8_0 => block[..2].copy_from_slice(&half(SPREAD / 74.0)),
            // All scales and minima of the eight groups 32; 16 even steps have a standard deviation of 4.6.
            Format::Q4K => {
                let d = SPREAD / (32.0 * 4.6);
                block[..2].copy_from_slice(&half(d));
                block[2..4].copy_from_slice(&half(7.5 * d));
                block[4..12].fill(0xa0);
                block[12..16].fill(0);
            }
            // All scales 8; 64 even steps have a standard deviation of 18.5.
            Format::Q6K => {
                block[192..208].fill(8);
                block[208..].copy_from_slice(&half(SPREAD / (8.0 * 18.5)));
            }
        }
    }
}

/// A number within 1.7 spreads of zero, from random bits.
fn even(bits: u32) -> f32 {
    (f64::from(bits) / f64::from(u32::MAX) - 0.5) as f32 * 3.4 * SPREAD
}

/// The half-precision number nearest to a small one above 6.2e-5, where it is normal.
fn half(x: f32) -> [u8; 2] {
    let rounded = x.to_bits() + (1 << 12);
    // Both exponents count from their own bias: 127 and 15.
    let exponent = (rounded >> 23).checked_sub(127 - 15).filter(|exponent| (1..31).contains(exponent));
    let Some(exponent) = exponent else { panic!("{x} is no normal half") };
    let [low, high, ..] = (exponent << 10 | rounded >> 13 & 0x3ff).to_le_bytes();
    [low, high]
}

/// Random bits.
fn fill(out: &mut [u8], random: &mut Random) {
    for bytes in out.chunks_mut(8) {
        bytes.copy_from_slice(&random.bits().to_le_bytes()[..bytes.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_halves() {
        for (x, bits) in [(1.0, 0x3c00), (0.002_173_913, 0x1874), (0.000_135_135_14, 0x086e), (0.5, 0x3800)] {
            assert_eq!(u16::from_le_bytes(half(x)), bits, "{x}");
        }
    }

    #[test]
    fn blocks_have_the_bytes_that_their_values_take() {
        for (format, bytes) in [(Format::Q4K, 288), (Format::Q6K, 420), (Format::Q5_0, 352), (Format::Bf16, 1024)] {
            assert_eq!(format.random(512, &mut Random::new(1)).len(), bytes, "{format:?}");
        }
    }
}
