//! How long tests with random input run: `MEMLOCAL_FUZZ_ROUNDS=n` sets the number of rounds, `MEMLOCAL_FUZZ_SECONDS=s` lets each
//! test go on for s seconds instead, and `MEMLOCAL_FUZZ_FROM=n` is the number of the first round, to continue an earlier run.

use std::env;
use std::time::{Duration, Instant};

/// The numbers of the rounds of a test, which are the seeds of its random input.
pub struct Rounds {
    next: u64,
    step: u64,
    done: u64,
    end: Option<u64>,
    until: Option<Instant>,
}

/// The rounds of a test that usually has this many.
///
/// # Panics
/// If a variable is no number.
pub fn rounds(usual: u64) -> Rounds {
    part_of_rounds(usual, 0, 1)
}

/// The rounds of one of several threads that share them.
///
/// # Panics
/// If a variable is no number.
pub fn part_of_rounds(usual: u64, part: u64, threads: u64) -> Rounds {
    let number = |name| env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let until = number("MEMLOCAL_FUZZ_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let from = number("MEMLOCAL_FUZZ_FROM").unwrap_or(0);
    let end = if until.is_some() { None } else { Some(from + number("MEMLOCAL_FUZZ_ROUNDS").unwrap_or(usual)) };
    Rounds { next: from + part, step: threads, done: 0, end, until }
}

impl Rounds {
    /// The number of rounds so far.
    pub fn done(&self) -> u64 {
        self.done
    }
}

impl Iterator for Rounds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let is_over =
            self.end.is_some_and(|end| self.next >= end) || self.until.is_some_and(|until| Instant::now() >= until);
        if is_over {
            return None;
        }
        let round = self.next;
        self.next += self.step;
        self.done += 1;
        Some(round)
    }
}
