//! Byte matrix products on a matrix unit, one or a few instructions per tile.
//!
//! Loops over tiles are generic over [`MatrixUnit`]. Sums of byte products are integers, so every implementation gives the
//! same result.

#[cfg(target_arch = "aarch64")]
mod i8mm;
#[cfg(test)]
mod plain;

#[cfg(target_arch = "aarch64")]
pub(crate) use i8mm::I8mm;
#[cfg(test)]
pub(crate) use plain::Plain;

/// Rows of a tile, and columns of its sums.
pub(crate) const ROWS: usize = 16;

/// Independent products per call, so that their latencies overlap.
pub(crate) const AT_ONCE: usize = 4;

/// Sixteen rows of 32 bytes.
pub(crate) type Left = [[i8; 32]; ROWS];

/// Sixteen columns of 32 bytes: byte `4n + c` of group `g` is byte `4g + c` of column `n`.
pub(crate) type Right = [[i8; 64]; 8];

/// `[row][column]`, on cache lines of their own.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Sums(pub [[i32; 16]; ROWS]);

/// A matrix unit, on the thread that created it.
pub(crate) trait MatrixUnit {
    /// Operations of one round of [`MatrixUnit::busy`].
    const BUSY_OPERATIONS: usize;

    /// Configures the unit; dropping the value releases it.
    fn new() -> Self;

    /// `sums[i][m][n] = Σ_k a[i][m][k] · b[i][n][k]`
    fn multiply(&self, a: [&Left; AT_ONCE], b: [&Right; AT_ONCE], sums: &mut [Sums; AT_ONCE]);

    /// Multiplies register contents at the peak rate, for measurements.
    fn busy(rounds: usize);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Isa;

    /// Every byte value on both sides, the extremes among them.
    fn operands(seed: usize) -> (Left, Right) {
        let byte = |i: usize| ((i * 167 + seed * 59) % 256) as u8 as i8;
        let left = std::array::from_fn(|m| std::array::from_fn(|k| byte(32 * m + k)));
        let right =
            std::array::from_fn(|g| std::array::from_fn(|i| if seed == 3 { -128 } else { byte(7 * g + 3 * i) }));
        (left, right)
    }

    fn check<T: MatrixUnit>() {
        let operands: [_; AT_ONCE] = std::array::from_fn(operands);
        let mut sums = [Sums([[-1; 16]; ROWS]); AT_ONCE];
        T::busy(2);
        T::new().multiply(operands.each_ref().map(|(a, _)| a), operands.each_ref().map(|(_, b)| b), &mut sums);
        for ((a, b), sums) in operands.iter().zip(&sums) {
            for (m, (row, sums)) in a.iter().zip(&sums.0).enumerate() {
                for (n, sum) in sums.iter().enumerate() {
                    let products = (0..32).map(|k| i32::from(row[k]) * i32::from(b[k / 4][4 * n + k % 4]));
                    assert_eq!(*sum, products.sum::<i32>(), "row {m}, column {n}");
                }
            }
        }
    }

    #[test]
    fn tiles_are_multiplied_exactly() {
        check::<Plain>();
        for isa in Isa::available() {
            match isa {
                #[cfg(target_arch = "aarch64")]
                Isa::I8mm => check::<I8mm>(),
                _ => {}
            }
        }
    }
}
