//! The outcome of a question (right, wrong, abstained), and the verdicts and confidence that an answer carries.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::case::Question;
use crate::score::{contains_answer, f1_squad, mc_letter, squad_words};

/// The outcome of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The words of a gold answer occur in the answer as one run, or F1 with one is at least 0.5. `yes` and `no` must be the
    /// first word.
    Right,
    /// Any other answer, and a method that failed.
    Wrong,
    /// The answer says that the documents do not hold one.
    Abstained,
}

/// The verdicts and confidence of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Grounding {
    /// Whether it abstains, if the method decides that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abstained: Option<bool>,
    /// How sure it is: higher is surer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// The probability that it is right, if the method states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Its statements by verdict.
    #[serde(default)]
    pub supported: usize,
    #[serde(default)]
    pub contradicted: usize,
    #[serde(default)]
    pub unsupported: usize,
    /// Words of the documents that may not answer the question.
    #[serde(default)]
    pub quoted: usize,
}

/// The least F1 of a right answer.
const MIN_F1: f64 = 0.5;

/// Phrases of answers that abstain, without articles and punctuation.
const ABSTENTIONS: [&str; 32] = [
    "not in documents",
    "not in document",
    "not in text",
    "not in context",
    "not there",
    "not mentioned",
    "not stated",
    "not specified",
    "not provided",
    "not given",
    "not said",
    "not mention",
    "not state",
    "not specify",
    "not provide",
    "not found in",
    "doesnt mention",
    "doesnt say",
    "doesnt specify",
    "dont mention",
    "cannot be determined",
    "not available",
    "not contain",
    "no information",
    "no answer",
    "no mention",
    "does not say",
    "do not say",
    "do not know",
    "dont know",
    "cannot be answered",
    "unanswerable",
];

/// The outcome of a question with this answer; `abstained` is the method's own decision, if it makes one.
pub fn outcome(question: &Question, answer: &str, abstained: Option<bool>) -> Outcome {
    let Question { golds, options, .. } = question;
    if abstained.unwrap_or_else(|| abstains(answer)) {
        return Outcome::Abstained;
    }
    let is_right = if options.is_empty() {
        golds.iter().any(|gold| says(answer, gold)) || f1_squad(answer, golds) >= MIN_F1
    } else {
        golds.first().is_some_and(|gold| mc_letter(answer, gold, options) > 0.0)
    };
    if is_right { Outcome::Right } else { Outcome::Wrong }
}

fn says(answer: &str, gold: &str) -> bool {
    let (words, gold_words) = (squad_words(answer), squad_words(gold));
    match &gold_words[..] {
        [word] if word == "yes" || word == "no" => words.first() == Some(word),
        _ => contains_answer(&words, gold),
    }
}

/// Whether an answer says that the documents do not hold one.
pub fn abstains(answer: &str) -> bool {
    let words = squad_words(answer);
    words.is_empty() || words == ["unknown"] || ABSTENTIONS.iter().any(|phrase| contains_answer(&words, phrase))
}

impl Grounding {
    /// Reads an answer's JSON: `abstained`, `answerable` or else `confidence` (a number, or high, medium or low), and every
    /// object with a `verdict`. `None` if it has none of them.
    pub fn of(answer: &Value) -> Option<Grounding> {
        let mut found = Grounding {
            abstained: answer["abstained"].as_bool(),
            confidence: answer["answerable"].as_f64().or_else(|| confidence(&answer["confidence"])),
            probability: answer["probability"].as_f64(),
            ..Grounding::default()
        };
        found.count(answer);
        (found != Grounding::default()).then_some(found)
    }

    fn count(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                match fields.get("verdict").and_then(Value::as_str) {
                    Some("supported") => self.supported += 1,
                    Some("contradicted") => self.contradicted += 1,
                    Some("unsupported") => self.unsupported += 1,
                    Some("quoted") => self.quoted += 1,
                    _ => {}
                }
                fields.values().for_each(|field| self.count(field));
            }
            Value::Array(values) => values.iter().for_each(|value| self.count(value)),
            _ => {}
        }
    }
}

fn confidence(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("high") => Some(1.0),
        Some("medium") => Some(0.5),
        Some("low") => Some(0.0),
        _ => value.as_f64().filter(|number| number.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(golds: &[&str]) -> Question {
        Question { golds: golds.iter().map(ToString::to_string).collect(), ..Question::default() }
    }

    #[test]
    fn an_answer_is_right_wrong_or_abstains() {
        let check = |golds: &[&str], answer: &str, want: Outcome| {
            assert_eq!(outcome(&question(golds), answer, None), want, "{golds:?}: {answer}");
        };
        check(&["the watch", "his gold watch"], "Jim sold his watch.", Outcome::Right);
        check(&["the watch"], "Jim sold a pizza.", Outcome::Wrong);
        check(&["the watch"], "", Outcome::Abstained);
        check(&["the watch"], "It is not mentioned in the text.", Outcome::Abstained);
        check(&["the watch"], "Not in the documents.", Outcome::Abstained);
        check(&["the watch"], "Unknown", Outcome::Abstained);
        check(&["the watch"], "The context doesn't mention what he sold.", Outcome::Abstained);
        check(&["guilty"], "He was not found guilty.", Outcome::Right);
        check(&["the actor in the black cloak"], "The actor wearing a black cloak", Outcome::Right);
        check(&["no"], "No, he was younger.", Outcome::Right);
        check(&["no"], "Yes, there is no doubt.", Outcome::Wrong);
        check(&["22"], "He was 122 years old.", Outcome::Wrong);
        check(&[], "A pizza.", Outcome::Wrong);
        assert_eq!(outcome(&question(&["22"]), "22", Some(true)), Outcome::Abstained, "the method's own word counts");
    }

    #[test]
    fn verdicts_and_confidence_are_read_from_the_answers_json() {
        assert_eq!(Grounding::of(&json!({ "answer": "A watch." })), None);
        let answer = json!({ "confidence": 0.25, "sentences": [
            { "text": "a", "verdict": "supported" }, { "text": "b", "verdict": "unsupported" },
            { "text": "c", "check": { "verdict": "supported" } }] });
        let found = Grounding::of(&answer).unwrap();
        assert_eq!((found.supported, found.contradicted, found.unsupported), (2, 0, 1));
        assert_eq!(found.confidence, Some(0.25));
        let scored = Grounding::of(&json!({ "answerable": 0.75, "confidence": "low" }));
        assert_eq!(scored.and_then(|found| found.confidence), Some(0.75));
        let words = |word: &str| Grounding::of(&json!({ "confidence": word })).and_then(|found| found.confidence);
        assert!(words("high") > words("medium") && words("medium") > words("low"));
    }
}
