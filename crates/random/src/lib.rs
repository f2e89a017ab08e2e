//! A seeded pseudo-random generator: splitmix64 (Steele, Lea and Flood 2014). Trees, clusters, samples and weights made with
//! it are reproducible.
//!
//! Not here: keys and ids (`getrandom`), sampling of tokens (`kernels::sample`).
//!
//! ```
//! let mut random = random::Random::named(7, "cards");
//! assert!(random.below(6) < 6);
//! ```

/// A pseudo-random generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A generator seeded with a number and a name, so that the samples of one name do not depend on those of others.
    pub fn named(seed: u64, name: &str) -> Random {
        let mut random = Random(seed);
        for byte in name.bytes() {
            random.0 = random.bits() ^ u64::from(byte);
        }
        random
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A uniform number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `n`, which must not be 0. For `n` up to 2^32 the bias is at most 2^-32.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// One element of a non-empty slice.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Shuffles a slice (Fisher-Yates).
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_splitmix64() {
        // The first outputs of the reference implementation for seed 1234567.
        let mut random = Random::new(1_234_567);
        let expect = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431];
        assert_eq!(expect.map(|_| random.bits()), expect);
        assert!((0..1000).map(|_| random.unit()).all(|number| (0.0..1.0).contains(&number)));
        let mut order: Vec<usize> = (0..20).collect();
        Random::named(7, "cards").shuffle(&mut order);
        let mut again: Vec<usize> = (0..20).collect();
        Random::named(7, "cards").shuffle(&mut again);
        assert_eq!(order, again);
        assert_ne!(order, (0..20).collect::<Vec<_>>());
    }
}
