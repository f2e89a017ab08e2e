//! Detects an answer that repeats itself without end.
//!
//! Small models fall into loops: the same few tokens again and again until the limit. Natural text repeats too (a plan
//! copies its question, a list has the same keys in every item), but not many times in a row without a token in between.
//! A loop of period p is p tokens repeated at least r = max(3, ceil(32 / p)) times in direct succession, for p up to
//! [`MAX_PERIOD`]. The first p tokens cannot match anything, so that m = (r - 1) p matching tokens are counted.
//!
//! The detector only sees numbers: an engine gives it token ids, a caller without a tokenizer the ids of words.

/// Longest period that is looked for, in tokens.
pub const MAX_PERIOD: usize = 128;

/// A loop has at least this many tokens, and at least [`LEAST_REPETITIONS`] repetitions.
const LEAST_TOKENS: usize = 32;

/// A loop repeats its period at least this often.
const LEAST_REPETITIONS: usize = 3;

/// Repetitions of a period of `period` tokens that make a loop.
pub const fn repetitions(period: usize) -> usize {
    let needed = LEAST_TOKENS.div_ceil(period);
    if needed > LEAST_REPETITIONS { needed } else { LEAST_REPETITIONS }
}

/// Counts for every period how many of the last tokens equal the one a period before. 128 comparisons a token.
#[derive(Debug, Clone)]
pub struct LoopDetector {
    /// Ring buffer of the last tokens.
    recent: [u32; MAX_PERIOD],
    /// Tokens since the last reset.
    seen: usize,
    /// `matches[p - 1]`: length of the current run of tokens that equal the one `p` tokens before.
    matches: [usize; MAX_PERIOD],
}

impl Default for LoopDetector {
    fn default() -> Self {
        LoopDetector { recent: [0; MAX_PERIOD], seen: 0, matches: [0; MAX_PERIOD] }
    }
}

impl LoopDetector {
    /// Adds a token; the shortest period in which the text loops now, if it does.
    pub fn push(&mut self, token: u32) -> Option<usize> {
        let mut found = None;
        for period in 1..=self.seen.min(MAX_PERIOD) {
            let before = self.recent[(self.seen - period) % MAX_PERIOD];
            let matches = &mut self.matches[period - 1];
            *matches = if before == token { *matches + 1 } else { 0 };
            if found.is_none() && *matches >= (repetitions(period) - 1) * period {
                found = Some(period);
            }
        }
        self.recent[self.seen % MAX_PERIOD] = token;
        self.seen += 1;
        found
    }

    /// Forgets every token so far.
    pub fn reset(&mut self) {
        self.seen = 0;
        self.matches = [0; MAX_PERIOD];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of the token at which a loop is found, from 1, and its period.
    fn first_loop(tokens: impl IntoIterator<Item = u32>) -> Option<(usize, usize)> {
        let mut detector = LoopDetector::default();
        (1..).zip(tokens).find_map(|(place, token)| Some((place, detector.push(token)?)))
    }

    /// Tokens without any repetition.
    fn distinct(count: usize) -> impl Iterator<Item = u32> + Clone {
        (1_000..).take(count)
    }

    #[test]
    fn a_loop_of_every_period_is_found_with_its_last_needed_token_and_not_before() {
        for period in 1..=MAX_PERIOD {
            for lead in [0, 1, 31, 300] {
                let body = 0..u32::try_from(period).unwrap();
                let looping = distinct(lead).chain(body.cycle());
                let needed = period * repetitions(period);
                assert_eq!(first_loop(looping.clone().take(lead + needed - 1)), None, "period {period} after {lead}");
                assert_eq!(first_loop(looping.take(lead + needed)), Some((lead + needed, period)), "after {lead}");
            }
        }
    }

    #[test]
    fn a_loop_is_at_least_three_repetitions_and_32_tokens() {
        assert_eq!([1, 2, 10, 11, 16, 128].map(repetitions), [32, 16, 4, 3, 3, 3]);
    }

    #[test]
    fn one_other_token_begins_the_count_anew() {
        for period in [1usize, 3, 16, 40] {
            let body: Vec<u32> = (0..u32::try_from(period).unwrap()).collect();
            let almost = body.repeat(repetitions(period) - 1);
            let interrupted: Vec<u32> = (7_000..7_020).flat_map(|stop| [almost.clone(), vec![stop]].concat()).collect();
            // For short periods the interrupted runs are too short to be a period of their own.
            let looped = first_loop(interrupted.into_iter().take(3 * almost.len()));
            assert_eq!(looped, None, "period {period}");
        }
    }

    #[test]
    fn repeating_once_or_twice_is_no_loop() {
        let sentence: Vec<u32> = distinct(60).collect();
        assert_eq!(first_loop(sentence.repeat(2)), None);
        assert_eq!(first_loop([&sentence[..], &[1], &sentence, &[2], &sentence, &[3], &sentence].concat()), None);
    }

    #[test]
    fn periods_beyond_the_longest_are_not_looked_for() {
        let body: Vec<u32> = distinct(MAX_PERIOD + 1).collect();
        assert_eq!(first_loop(body.repeat(6)), None);
    }

    #[test]
    fn a_reset_forgets_what_came_before() {
        let mut detector = LoopDetector::default();
        for _ in 0..10 {
            assert!((0..31).all(|_| detector.push(5).is_none()));
            detector.reset();
        }
        assert!((0..31).all(|_| detector.push(5).is_none()));
        assert_eq!(detector.push(5), Some(1));
    }
}
