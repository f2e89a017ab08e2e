//! Counter-based random numbers: a function of seed, position and attempt, without state.

/// Increment of SplitMix64.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number in `[0, 1)` with 53 random bits.
pub fn uniform(seed: u64, position: u64, attempt: u64) -> f64 {
    let word = [position, attempt].iter().fold(mix(seed.wrapping_add(GAMMA)), |state, counter| {
        mix(state.wrapping_add(counter.wrapping_add(1).wrapping_mul(GAMMA)))
    });
    (word >> 11) as f64 / (1u64 << 53) as f64
}

/// The finaliser of SplitMix64.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_uniform_along_each_counter() {
        const CELLS: usize = 256;
        const DRAWS: u64 = 1 << 18;
        let counters: [fn(u64) -> f64; 3] =
            [|i| uniform(i, 3, 0), |i| uniform(7, i, 0), |i| uniform(7, i / 16, i % 16)];
        for number in counters {
            let mut counts = [0f64; CELLS];
            (0..DRAWS).for_each(|i| counts[(number(i) * CELLS as f64) as usize] += 1.0);
            let expected = DRAWS as f64 / CELLS as f64;
            let chi_squared: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
            // 255 degrees of freedom: standard deviation 22.6.
            assert!((chi_squared - 255.0).abs() < 4.0 * 22.6, "{chi_squared}");
        }
    }
}
