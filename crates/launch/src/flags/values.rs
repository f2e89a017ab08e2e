//! Parsers of the values of flags.

use std::num::NonZeroUsize;

use memory::MIN_EVIDENCE_TOKENS;

use super::AdapterFlag;

/// More threads than any machine has cores; far more would not start.
const MAX_THREADS: usize = 1024;

/// Parses a number of threads.
pub(super) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let threads = at_least_one(text)?;
    let in_range = NonZeroUsize::new(threads).filter(|_| threads <= MAX_THREADS);
    in_range.ok_or_else(|| format!("it must be 1 to {MAX_THREADS}"))
}

/// Parses a whole number from 1.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it must be 1 or more".into()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

/// Parses a number of tokens that a passage fits into.
pub fn evidence_tokens(text: &str) -> Result<usize, String> {
    let tokens = at_least_one(text)?;
    let is_enough = tokens >= MIN_EVIDENCE_TOKENS;
    is_enough.then_some(tokens).ok_or_else(|| format!("it must be {MIN_EVIDENCE_TOKENS} or more: a passage needs them"))
}

/// Parses a whole number of bytes with its unit: 12GiB, 16 GB, 800MiB.
pub fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("GB", 1_000_000_000), ("MB", 1_000_000)];
    let split = |(unit, factor): &(&str, u64)| text.strip_suffix(unit).map(|number| (number.trim(), *factor));
    let bytes =
        UNITS.iter().find_map(split).and_then(|(number, factor)| number.parse::<u64>().ok()?.checked_mul(factor));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "it must be a whole number of GiB, GB, MiB or MB".into())
}

/// Parses an adapter that a bundle takes.
pub fn bundled_adapter(text: &str) -> Result<AdapterFlag, String> {
    const PRIVATE: &str = "a bundle does not take the adapter of a corpus, which has learned from private documents; to \
                           add it all the same: --adapter reader=PATH";
    match text.parse()? {
        AdapterFlag::Corpus(_) => Err(PRIVATE.into()),
        adapter => Ok(adapter),
    }
}

/// The highest sampling temperature, as in the APIs of the server.
const MAX_TEMPERATURE: f32 = 2.0;

/// Parses a sampling temperature.
pub fn temperature(text: &str) -> Result<f32, String> {
    let number: f32 = text.parse().map_err(|error| format!("{error}"))?;
    let is_in_range = (0.0..=MAX_TEMPERATURE).contains(&number);
    is_in_range.then_some(number).ok_or_else(|| format!("it must be 0 to {MAX_TEMPERATURE}"))
}

/// The largest factor by which YaRN extends a context.
const MAX_EXTENSION: f32 = 64.0;

/// Parses the factor by which YaRN extends a context.
pub fn extension(text: &str) -> Result<f32, String> {
    let factor: f32 = text.parse().map_err(|error| format!("{error}"))?;
    let extends = factor > 1.0 && factor <= MAX_EXTENSION;
    extends.then_some(factor).ok_or_else(|| format!("it must be more than 1 and at most {MAX_EXTENSION}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_has_room_for_a_passage() {
        assert_eq!(evidence_tokens("64"), Ok(64));
        for wrong in ["63", "0", "-1", "many"] {
            assert!(evidence_tokens(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_temperature_has_the_range_of_the_apis() {
        assert_eq!((temperature("0"), temperature("0.7"), temperature("2")), (Ok(0.0), Ok(0.7), Ok(2.0)));
        for wrong in ["-0.1", "2.1", "inf", "NaN", "warm"] {
            assert!(temperature(wrong).is_err(), "{wrong}");
        }
        assert_eq!(temperature("3"), Err("it must be 0 to 2".into()));
    }

    #[test]
    fn a_size_has_a_unit() {
        assert_eq!(bytes("12GiB"), Ok(12 << 30));
        assert_eq!(
            (bytes("16 GB"), bytes("800MiB"), bytes("64MB")),
            (Ok(16_000_000_000), Ok(800 << 20), Ok(64_000_000))
        );
        for wrong in ["12", "GiB", "-1GB", "0GiB", "twelve GiB", "1.5GB", "99999999999GiB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_factor_extends_the_context() {
        assert_eq!((extension("1.5"), extension("4"), extension("64")), (Ok(1.5), Ok(4.0), Ok(64.0)));
        for wrong in ["1", "0.5", "64.5", "-2", "inf", "NaN"] {
            assert_eq!(extension(wrong), Err("it must be more than 1 and at most 64".into()), "{wrong}");
        }
        assert!(extension("far").is_err());
    }
}
