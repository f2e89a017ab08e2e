//! Limits of requests that several APIs share, and the checks of fields against them.

use std::ops::RangeInclusive;

use crate::error::{Result, ServerError};

pub(crate) const TEMPERATURE: RangeInclusive<f32> = 0.0..=2.0;
/// `top_p` and `min_p`.
pub(crate) const SHARE: RangeInclusive<f32> = 0.0..=1.0;
/// `frequency_penalty` and `presence_penalty`.
pub(crate) const PENALTY: RangeInclusive<f32> = -2.0..=2.0;
/// As in vLLM, where penalties are above 0; larger ones would have no further effect.
pub(crate) const REPETITION_PENALTY: RangeInclusive<f32> = 0.01..=100.0;

/// Of a request for completions: its choices, and its prompts. OpenAI's limit.
pub(crate) const MAX_CHOICES: usize = 128;
/// Of the most likely tokens at each place of a chat. OpenAI's and Ollama's limit.
pub(crate) const MAX_TOP_LOGPROBS: usize = 20;
/// Of pages that a search finds; no method needs more.
pub(crate) const MAX_PAGES: usize = 1000;
/// Of stop strings: the engine looks for each of them in every piece of a reply. OpenAI allows 4, and clients such as
/// Continue send other servers more.
const MAX_STOPS: usize = 64;

/// A number within its range, or its default.
pub(crate) fn in_range(value: Option<f32>, default: f32, range: RangeInclusive<f32>, param: &str) -> Result<f32> {
    let value = value.unwrap_or(default);
    if range.contains(&value) {
        return Ok(value);
    }
    Err(ServerError::invalid(format!("`{param}` must be {} to {}", range.start(), range.end()), param))
}

/// A count from 1 to this many.
pub(crate) fn count(value: usize, most: usize, param: &str) -> Result<usize> {
    if (1..=most).contains(&value) {
        return Ok(value);
    }
    Err(ServerError::invalid(format!("`{param}` must be 1 to {most}"), param))
}

/// Checks how many of the most likely tokens a request wants to see at each place.
pub(crate) fn check_top(top: Option<usize>, most: usize, param: &str) -> Result<()> {
    if top.is_none_or(|top| top <= most) {
        return Ok(());
    }
    Err(ServerError::invalid(format!("`{param}` must be 0 to {most}"), param))
}

/// Checks the number of stop strings.
pub(crate) fn check_stops(stops: usize, param: &str) -> Result<()> {
    if stops <= MAX_STOPS {
        return Ok(());
    }
    let message = format!("`{param}` has {stops} strings; at most {MAX_STOPS} are allowed");
    Err(ServerError::invalid(message, param))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_range_are_allowed_and_a_refusal_names_them() {
        for allowed in [0.0, 2.0] {
            assert_eq!(in_range(Some(allowed), 1.0, TEMPERATURE, "temperature").ok(), Some(allowed));
        }
        assert_eq!(in_range(None, 0.7, TEMPERATURE, "temperature").ok(), Some(0.7));
        for refused in [-0.1, 2.1, f32::NAN] {
            let error = in_range(Some(refused), 1.0, TEMPERATURE, "options.temperature").expect_err("it is outside");
            assert_eq!(error.to_string(), "`options.temperature` must be 0 to 2");
        }
    }

    #[test]
    fn a_count_is_at_least_one() {
        let check = |value: usize| count(value, 3, "n").map_err(|error| error.to_string());
        assert_eq!((check(1), check(3)), (Ok(1), Ok(3)));
        for outside in [0, 4] {
            assert_eq!(check(outside), Err("`n` must be 1 to 3".to_owned()));
        }
    }
}
