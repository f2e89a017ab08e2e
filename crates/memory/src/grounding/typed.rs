//! What the type of a question requires of its answer.

use std::ops::Range;

use super::claims::DETERMINERS;
use super::dates::dates;
use super::features::MONTHS;
use super::numbers::{is_duration, is_rank};
use super::question::{Kind, Question};
use super::values::weekday;
use super::words::{CURRENCIES, Word, stem, words};

/// What answers to a question have in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerType {
    /// A number that is of no day or month. "A few" is an answer too, but a rare one.
    Number,
    /// A sum of money.
    Money,
    /// Often a number. "After the war" is an answer too.
    Time,
}

impl AnswerType {
    /// `None` if any words can be the answer.
    pub fn of(question: &str) -> Option<AnswerType> {
        AnswerType::parsed(&Question::parse(question))
    }

    pub(super) fn parsed(question: &Question) -> Option<AnswerType> {
        match question.kind {
            Kind::Amount if question.terms.iter().any(|term| is_among(term, &MONEY)) => Some(AnswerType::Money),
            Kind::Amount | Kind::Count | Kind::Share => Some(AnswerType::Number),
            Kind::Time => Some(AnswerType::Time),
            _ => None,
        }
    }

    /// Whether hardly any answer lacks it.
    pub fn is_required(self) -> bool {
        self != AnswerType::Time
    }

    /// Whether a text has something of the type.
    pub fn is_in(self, text: &str) -> bool {
        let words = words(text);
        match self {
            AnswerType::Number => {
                let dates = dates(&words, text);
                let is_dated =
                    |at: usize| dates.iter().any(|(date, places)| date.month.is_some() && places.contains(&at));
                words.iter().enumerate().any(|(at, word)| word.number && !is_dated(at))
            }
            AnswerType::Time => words.iter().any(|word| word.number),
            AnswerType::Money => {
                let mut stems = words.iter().filter_map(|word| word.stem.as_ref());
                text.contains(CURRENCIES) || stems.any(|stem| is_among(stem, &CURRENCY_NAMES))
            }
        }
    }
}

/// Words that make "how much" ask for money.
const MONEY: [&str; 10] = ["money", "cost", "pay", "price", "earn", "spend", "sell", "buy", "worth", "charge"];

const CURRENCY_NAMES: [&str; 10] =
    ["dollar", "cent", "euro", "pound", "shilling", "pence", "crown", "franc", "yen", "rupee"];

/// Whether a text has a percentage or a word for a share.
pub(super) fn has_share(text: &str) -> bool {
    text.contains('%') || words(text).iter().any(|word| SHARES.iter().any(|share| word.lower.starts_with(share)))
}

/// Whether a question asks when something was, and not for a period by its name.
pub(super) fn asks_when(question: &Question, text: &str) -> bool {
    let is_dated = |focus: &str| is_among(focus, &["year", "decade", "century"]);
    question.kind == Kind::Time
        && (question.focus.as_deref().is_some_and(is_dated) || words(text).iter().any(|word| word.lower == "when"))
}

/// Whether an answer can tell when something was: it has a number or the name of a time, or begins as "after the war" does.
pub(super) fn is_time(answer: &str) -> bool {
    let words = words(answer);
    let names_time = |word: &Word| {
        let lower = word.lower.as_str();
        word.number
            || is_rank(lower)
            || MONTHS.contains(&lower)
            || weekday(lower).is_some()
            || word.stem.as_deref().is_some_and(is_duration)
            || TIMES.split_ascii_whitespace().any(|time| time == lower)
    };
    words.iter().any(names_time)
        || words.first().is_some_and(|first| BEFORE_TIME.split_ascii_whitespace().any(|word| word == first.lower))
}

/// Whether a year of a sentence only describes a noun, "the 1981 act", and there is another date, which can be the time of the verb.
/// `answer` is its bytes.
pub(super) fn is_attribute_year(sentence: &str, answer: &Range<usize>) -> bool {
    let words = words(sentence);
    let is_of_answer = |at: &usize| answer.start <= words[*at].range.start && words[*at].range.end <= answer.end;
    let of_answer: Vec<usize> = (0..words.len()).filter(is_of_answer).collect();
    let (Some(first), Some(last)) = (of_answer.first(), of_answer.last()) else { return false };
    let is_year = |at: &usize| words[*at].lower.parse::<u32>().is_ok();
    let is_owner = |word: &Word| DETERMINERS.contains(&word.lower.as_str()) || word.lower.ends_with("'s");
    let next = words[last + 1..].iter().find(|word| !word.number);
    let is_other = |(_, places): &(_, Range<usize>)| !places.contains(first) && !places.contains(last);
    of_answer.iter().all(is_year)
        && first.checked_sub(1).is_some_and(|before| is_owner(&words[before]))
        && next.is_some_and(|next| {
            next.stem.is_some() && !sentence[words[*last].range.end..next.range.start].contains(',')
        })
        && dates(&words, sentence).iter().any(is_other)
}

/// Names of times beside those of units and of the calendar.
const TIMES: &str = "today tonight tomorrow yesterday now morning noon afternoon evening midnight dawn dusk weekend spring summer \
autumn fall winter christmas easter";

/// Words that a time can begin with.
const BEFORE_TIME: &str =
    "after around as at before by during early from in late later on once shortly since soon until upon when while";

/// Whether a question asks for the score of a match: "What was the final score?".
pub(super) fn asks_for_score(question: &Question) -> bool {
    question.focus.as_deref() == Some("score") && !question.is_list
}

/// Whether an answer can be a score: it has two numbers, or its sentence speaks of a score and has none with two.
pub(super) fn is_score(answer: &str, sentence: &str) -> bool {
    let numbers = words(answer).iter().filter(|word| word.number).count();
    let is_named = || words(sentence).iter().any(|word| matches!(word.lower.as_str(), "score" | "scores"));
    numbers > 1 || has_pair(answer) || numbers == 1 && is_named() && !has_pair(sentence)
}

/// Whether a text has two numbers that belong together: "23–16" or "24 to 10".
fn has_pair(text: &str) -> bool {
    let is_between = |separator: &str| {
        text.match_indices(separator).any(|(at, _)| {
            let (before, behind) = (&text[..at], &text[at + separator.len()..]);
            before.ends_with(|c: char| c.is_ascii_digit()) && behind.starts_with(|c: char| c.is_ascii_digit())
        })
    };
    ["-", "–", "—", ":", " to ", " – ", " - "].into_iter().any(is_between)
}

/// The beginnings of words for a share.
const SHARES: [&str; 10] =
    ["percent", "half", "halves", "third", "quarter", "fifth", "tenth", "hundredth", "majority", "most"];

/// Whether a stem is that of one of these words.
fn is_among(found: &str, words: &[&str]) -> bool {
    words.iter().any(|word| stem(word).is_some_and(|stem| stem == found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_tells_what_its_answer_has_in_it() {
        let of = AnswerType::of;
        assert_eq!(of("How much money did Della get?"), Some(AnswerType::Money));
        assert_eq!(of("How much did she pay for the chain?"), Some(AnswerType::Money));
        assert_eq!(of("How much snow fell?"), Some(AnswerType::Number));
        assert_eq!(of("How many combs were there?"), Some(AnswerType::Number));
        assert_eq!(of("When did it rain?"), Some(AnswerType::Time));
        assert_eq!((of("Who sold it?"), of("How did he sell it?")), (None, None));
    }

    #[test]
    fn sums_have_a_sign_or_the_name_of_a_currency() {
        for sum in ["$1.87", "twenty dollars", "Ten Shillings", "a few cents"] {
            assert!(AnswerType::Money.is_in(sum), "{sum}");
        }
        assert!(!AnswerType::Money.is_in("87 combs") && AnswerType::Number.is_in("87 combs"));
        assert!(!AnswerType::Number.is_in("a sight at the looks of it"));
    }

    #[test]
    fn a_day_is_no_number_of_things() {
        for date in ["21 August, 2023", "on 9 June 2023", "2023-06-09", "May of 1987"] {
            assert!(!AnswerType::Number.is_in(date) && AnswerType::Time.is_in(date), "{date}");
        }
        for number in ["3 years", "since 2016", "3 weeks before 21 August 2023", "twelve"] {
            assert!(AnswerType::Number.is_in(number), "{number}");
        }
    }
}
