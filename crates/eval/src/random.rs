//! A small generator of numbers that are the same every time: splitmix64 (Steele, Lea and Flood 2014).

/// Numbers that follow from a seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Begins at a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Begins at a seed and a name, so that what is drawn for one name does not depend on what was drawn for others.
    pub fn named(seed: u64, name: &str) -> Random {
        let mut random = Random(seed);
        for byte in name.bytes() {
            random.0 = random.next() ^ u64::from(byte);
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`, which is not 0. For `n` up to 2^32 no number is likelier than another by more than 2^-32.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// One of some things; there is at least one.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Puts things into any order.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(last + 1));
        }
    }

    /// A random identifier in the form of version 4.
    pub fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        let digits = format!("{a:016x}{b:016x}");
        [
            &digits[..8],
            &digits[8..12],
            &format!("4{}", &digits[13..16]),
            &format!("a{}", &digits[17..20]),
            &digits[20..],
        ]
        .join("-")
    }
}
