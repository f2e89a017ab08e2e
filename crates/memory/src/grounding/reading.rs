//! How likely is it that a model's reading is the right answer? Logistic regression over a few signals of it.

use super::abstain::logistic;
use super::weights;

/// Signals of a reading, in the order of the weights.
pub const READING_SIGNALS: [&str; 10] =
    ["logprob", "found", "agreement", "context", "answerable", "surface", "length", "rank", "joint", "echo"];

/// Log-probabilities and log-odds beyond this tell nothing more.
const LARGE: f64 = 8.0;

/// What is known of a reading besides its text.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Signals {
    /// The log-probability of the reply.
    pub logprob: f64,
    /// The log-odds that the model found an answer in what it read.
    pub found: f64,
    /// The share of the other readings that gave the same answer.
    pub agreement: f64,
    /// How well the answer's sentence and those beside it match the question, from 0 to 1 or a little more.
    pub context: f64,
    /// The log-odds that the evidence holds an answer, by surface features.
    pub answerable: f64,
    /// The logarithm of its share among the spans that surface features rank ([`super::Draft::share`]).
    pub surface: f64,
    /// The logarithm of its number of words.
    pub length: f64,
    /// How well what was read matches the question, by BM25, as a share of the best.
    pub rank: f64,
    /// 1 if several texts were read together, else 0.
    pub joint: f64,
    /// The share of its content words that are words of the question.
    #[serde(default)]
    pub echo: f64,
    /// True if a speaker says it of himself where the question is about another person.
    #[serde(default)]
    pub is_of_another: bool,
}

/// An answer that a model read.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Reading {
    pub text: String,
    pub signals: Signals,
}

impl Signals {
    /// In the order of [`READING_SIGNALS`].
    pub fn values(&self) -> [f64; READING_SIGNALS.len()] {
        let limited = |x: f64| x.clamp(-LARGE, LARGE);
        let Signals { logprob, found, agreement, context, answerable, surface, length, rank, joint, echo, .. } = *self;
        let [logprob, found, answerable, surface] = [logprob, found, answerable, surface].map(limited);
        [logprob, found, agreement, context, answerable, surface, length, rank, joint, echo]
    }

    /// The probability that the reading is right.
    pub fn right(&self) -> f64 {
        let [bias, weights @ ..] = &weights::RIGHT;
        logistic(bias + self.values().iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sure_readings_that_agree_are_more_probable() {
        let sure = Signals {
            logprob: -0.1,
            found: 6.0,
            agreement: 1.0,
            context: 0.9,
            answerable: 3.0,
            surface: -1.0,
            length: 0.7,
            rank: 1.0,
            joint: 0.0,
            echo: 0.0,
            is_of_another: false,
        };
        let alone = Signals { agreement: 0.0, ..sure };
        let unsure = Signals { logprob: -4.0, ..alone };
        let elsewhere = Signals { surface: -6.0, ..unsure };
        let all = [sure, alone, unsure, elsewhere].map(|signals| signals.right());
        assert!(all.is_sorted_by(|a, b| a > b), "{all:?}");
        assert!(Signals { logprob: f64::NEG_INFINITY, ..sure }.right() > 0.0);
    }
}
