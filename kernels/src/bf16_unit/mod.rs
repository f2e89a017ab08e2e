//! Products of bf16 tiles that add up in `f32` over all columns of a product.
//!
//! # Contract
//! One step multiplies 32 columns. For each row and output two chains of fused multiply-adds start from zero, one over the
//! even columns and one over the odd ones; the sum of both is added to the running sum. Subnormal operands and results
//! count as zero. This is what Intel's `tdpbf16ps` computes (Intel SDM volume 2, TDPBF16PS), so every implementation gives
//! the same bits.

#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod emulated;
#[cfg(any(test, target_arch = "x86_64"))]
mod plain;
mod tile;

#[cfg(target_arch = "x86_64")]
pub(crate) use amx::Amx;
#[cfg(any(test, target_arch = "x86_64"))]
pub(crate) use plain::Plain;
#[cfg(any(test, target_arch = "x86_64"))]
pub(crate) use tile::Left;
pub(crate) use tile::{Bf16Unit, Line, ROWS, Right, STEP, Strided, Sums};

/// Whether the processor has the unit and it gives the bits of the contract, on one example.
#[cfg(target_arch = "x86_64")]
pub(crate) fn amx_is_exact() -> bool {
    static EXACT: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *EXACT.get_or_init(|| Amx::is_available() && example::<Amx>() == example::<Plain>())
}

/// The bits of a number of a self-test: of several magnitudes and both signs; products of the smallest are below `f32`'s normal
/// range.
#[cfg(target_arch = "x86_64")]
pub(crate) fn example_number(at: usize) -> u16 {
    let mixed = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let exponent = if at.is_multiple_of(7) { 40 } else { 118 + mixed % 16 };
    ((mixed & 0x807f) | (exponent << 7)) as u16
}

/// Sums over two steps of such numbers.
#[cfg(target_arch = "x86_64")]
fn example<U: Bf16Unit>() -> [u32; ROWS * 16] {
    let line = |from: usize| Line(std::array::from_fn(|i| example_number(STEP * from + i)));
    let mut unit = U::new(ROWS);
    unit.clear();
    for step in 0..2 {
        let left: [Line; ROWS] = std::array::from_fn(|i| line(32 * step + i));
        let right: Right = std::array::from_fn(|i| line(32 * step + 16 + i));
        unit.add([Some(&left), None], [Some((&right).into()), None]);
    }
    let mut sums = Sums::ZERO;
    unit.store(0, 0, &mut sums);
    std::array::from_fn(|i| sums.0[i / 16][i % 16].to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of many magnitudes, the smallest of which are flushed.
    fn lines<const N: usize>(seed: u64, smallest: u64) -> [Line; N] {
        let mut state = seed;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        std::array::from_fn(|_| {
            Line(std::array::from_fn(|_| ((random() & 0x807f) | ((smallest + random() % 20) << 7)) as u16))
        })
    }

    fn sums<U: Bf16Unit>(rows: usize, smallest: u64) -> Vec<u32> {
        let mut unit = U::new(rows);
        for step in 0..5 {
            // The second time there are sums to clear.
            if step < 2 {
                unit.clear();
            }
            let left: [[Line; ROWS]; 2] = [lines(step, smallest), lines(step + 10, smallest)];
            let right: [Right; 2] = [lines(step + 20, smallest), lines(step + 30, smallest)];
            let [a, b] = left.each_ref().map(|left| Some(&left[..rows]));
            let [x, y] = right.each_ref().map(|right| Some(Strided::from(right)));
            unit.add([a, b], [x, y]);
            unit.add([b, None], [x, None]);
            unit.add([a, None], [y, x]);
            unit.add([a, b], [y, None]);
            let numbers: Vec<u16> = right.as_flattened().iter().flat_map(|line| line.0).collect();
            unit.add([b, a], [Some(Strided::new(&numbers[1..], 62)), Some(Strided::new(&numbers, 39))]);
        }
        let mut bits = Vec::new();
        for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let mut sums = Sums::ZERO;
            unit.store(i, j, &mut sums);
            bits.extend(sums.0[..rows].as_flattened().iter().map(|x| x.to_bits()));
        }
        bits
    }

    #[test]
    fn a_step_adds_two_chains() {
        let one = |columns: &[(usize, f32)]| {
            let mut line = Line::ZERO;
            columns.iter().for_each(|(at, x)| line.0[*at] = (x.to_bits() >> 16) as u16);
            line
        };
        let left = [one(&[(0, 2.0), (1, 3.0), (31, -1.0)])];
        let mut right = [Line::ZERO; STEP / 2];
        (right[0], right[15]) = (one(&[(0, 5.0), (1, 7.0), (3, 1.0)]), one(&[(1, 4.0)]));
        let mut unit = Plain::new(1);
        unit.clear();
        unit.add([Some(&left), None], [Some((&right).into()), None]);
        unit.add([Some(&left), None], [Some((&right).into()), None]);
        let mut sums = Sums::ZERO;
        unit.store(0, 0, &mut sums);
        assert_eq!(sums.0[0][..3], [2.0 * (10.0 + 21.0 - 4.0), 2.0 * 3.0, 0.0]);
    }

    /// On AMX where the processor has it, else on its instructions emulated.
    #[test]
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    fn the_unit_gives_the_bits_of_the_contract() {
        emulated::emulate_where_missing();
        assert_eq!(example::<Amx>(), example::<Plain>());
        Plain::busy(1);
        Amx::busy(2);
        for (rows, smallest) in [(16, 120), (16, 30), (1, 60), (7, 120), (16, 1)] {
            let want = sums::<Plain>(rows, smallest);
            assert!(want.iter().any(|bits| *bits << 1 != 0) || smallest < 40);
            assert_eq!(sums::<Amx>(rows, smallest), want, "{rows} rows from 2^{smallest}");
        }
    }
}
