//! Which of two options has more, by the numbers that the evidence gives for both: "Which genus has more species, A or B?". A small
//! model compares no numbers.

use std::ops::Range;

use super::candidates::Place;
use super::choose::ShortAnswer;
use super::defined::{is_name_of, stems_of_name, subject};
use super::numbers::{Bound, Number, is_equal};
use super::offered::{Offered, offered};
use super::question::{FORMS_OF_BE, Question, is_plural};
use super::values::Values;
use super::words::{Word, stem, words};
use crate::core::cite::sentences;

/// The probability that such an answer is right, chosen by hand: a prototype in Python decided 4 of 990 questions, most of HotpotQA and
/// 2WikiMultihopQA, all rightly, one of them by the height of another mountain; its rules were made with these questions.
const PROBABILITY: f64 = 0.9;

/// Sentences from the first about an option in which its number is looked for.
const SENTENCES: usize = 4;

/// Words between "population" and its number.
const NEAR: usize = 4;

/// The option of a question for the one of two that has more or less of something countable, is higher or has the larger population;
/// `None` for any other question, and if a number of the same unit is not in the evidence for both.
pub fn counted_option(question: &str, evidence: &[(&str, &str)]) -> Option<ShortAnswer> {
    let Offered { first, second, asking } = offered(question, &Question::parse(question))?;
    let (measure, asks_more) = Measure::of(&asking)?;
    let (own, own_place) = found(&first, &measure, evidence)?;
    let (other, other_place) = found(&second, &measure, evidence)?;
    if is_equal(own, other) {
        return None;
    }
    let (text, place) = if (own > other) == asks_more { (first, own_place) } else { (second, other_place) };
    let text = text.trim_matches(['"', '“', '”', ' ']).to_owned();
    Some(ShortAnswer { text, places: vec![place], score: 0.0, probability: PROBABILITY })
}

/// What is compared.
#[derive(Debug, PartialEq)]
enum Measure {
    /// In metres.
    Height,
    Population,
    /// The number of what has this stem.
    Count(String),
}

const LARGER: &str = "bigger biggest greater greatest higher highest larger largest";
const SMALLER: &str = "lower lowest smaller smallest";
const HIGHER: &str = "higher highest taller tallest";
const LOWER: &str = "lower lowest shorter shortest";
const MORE: &str = "more most";
const FEWER: &str = "fewer fewest less";

/// Words for those that a population consists of.
const PEOPLE: &str = "inhabitants people residents";

/// Units of length with their metres.
const LENGTHS: [(&str, f64); 4] = [("metre", 1.0), ("kilometre", 1000.0), ("foot", 0.3048), ("mile", 1609.344)];

impl Measure {
    /// What the words of a question beside its options compare, and whether they ask for the option that has more of it.
    fn of(asking: &[Word]) -> Option<(Measure, bool)> {
        let is_about_another = |word: &Word| matches!(word.lower.as_str(), "who" | "whose" | "whom" | "than");
        if asking.iter().skip(1).any(is_about_another) {
            return None;
        }
        // The place of the only word of two lists, and whether it is of the first.
        let order = |more: &str, less: &str| {
            let place = |(at, word): (usize, &Word)| match () {
                () if is_among(&word.lower, more) => Some((at, true)),
                () if is_among(&word.lower, less) => Some((at, false)),
                () => None,
            };
            let mut places = asking.iter().enumerate().filter_map(place);
            places.next().filter(|_| places.next().is_none())
        };
        if asking.iter().any(|word| word.lower == "population") {
            return order(LARGER, SMALLER).map(|(_, asks_more)| (Measure::Population, asks_more));
        }
        if let Some((at, asks_more)) = order(MORE, FEWER) {
            // "More species", but not "more tennis titles" nor "more recently".
            let counted = asking.get(at + 1).filter(|word| is_plural(&word.lower) || is_among(&word.lower, PEOPLE))?;
            let is_last = at + 2 == asking.len();
            let is_people = is_among(&counted.lower, PEOPLE);
            let measure = if is_people { Measure::Population } else { Measure::Count(counted.stem.clone()?) };
            return is_last.then_some((measure, asks_more));
        }
        let (at, asks_more) = order(HIGHER, LOWER)?;
        (at + 1 == asking.len()).then_some((Measure::Height, asks_more))
    }

    /// The first number of it in a sentence.
    fn value(&self, sentence: &str) -> Option<f64> {
        let words = words(sentence);
        let numbers = Values::read(sentence, &|_| false).numbers;
        let mut exact = numbers.iter().filter(|number| !number.ordinal && number.bound != Some(Bound::Below));
        exact.find_map(|number| self.of_number(number, &words))
    }

    fn of_number(&self, number: &Number, words: &[Word]) -> Option<f64> {
        let unit = number.unit.as_deref();
        match self {
            Measure::Height => {
                let length = LENGTHS.iter().find(|(name, _)| unit.is_some() && stem(name).as_deref() == unit);
                length.map(|(_, metres)| number.value * metres)
            }
            Measure::Population => {
                let before = &words[number.at.start.saturating_sub(NEAR)..number.at.start];
                let is_of_people =
                    unit.is_some_and(|unit| PEOPLE.split(' ').any(|word| stem(word).as_deref() == Some(unit)));
                let is_population =
                    unit.is_none_or(|unit| unit != "%") && before.iter().any(|word| word.lower == "population");
                (is_of_people || is_population).then_some(number.value)
            }
            // "65 species", "65 known species"
            Measure::Count(counted) => {
                let next = words.get(number.unit_at.end).filter(|_| unit.is_some());
                let is_counted = |found: Option<&str>| found == Some(counted.as_str());
                (is_counted(unit) || is_counted(next.and_then(|word| word.stem.as_deref()))).then_some(number.value)
            }
        }
    }
}

fn is_among(lower: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|word| word == lower)
}

/// The number of an option in the first sentences about it that have one, and the place from the first of them to that which has it.
fn found(option: &str, measure: &Measure, evidence: &[(&str, &str)]) -> Option<(f64, Place)> {
    let name = stems_of_name(option)?;
    let mut texts = evidence.iter().enumerate();
    texts.find_map(|(text, (heading, whole))| {
        let all = sentences(whole);
        let is_about = |at: usize| {
            let sentence = &whole[all[at].clone()];
            at == 0 && is_name_of(&name, heading) || subject(&name, &words(sentence), sentence).is_some()
        };
        let from = |at: usize| {
            let in_sentence = |range: &Range<usize>| Some((measure.value(&whole[range.clone()])?, range.end));
            let (value, end) = of_one(whole, &all[at..]).iter().find_map(in_sentence)?;
            Some((value, Place { text, start: all[at].start, end }))
        };
        (0..all.len()).filter(|at| is_about(*at)).find_map(from)
    })
}

/// A sentence and those behind it in its paragraph up to one about another name, "Musa is ...", at most [`SENTENCES`].
fn of_one<'a>(whole: &str, all: &'a [Range<usize>]) -> &'a [Range<usize>] {
    let continues = |pair: &[Range<usize>]| {
        let words = words(&whole[pair[1].clone()]);
        let name = words.iter().take_while(|word| word.capital && word.stem.is_some()).count();
        let is_about_another =
            name > 0 && words.get(name).is_some_and(|word| FORMS_OF_BE.contains(&word.lower.as_str()));
        !is_about_another && whole[pair[0].end..pair[1].start].matches('\n').count() < 2
    };
    let behind = all.windows(2).take(SENTENCES - 1).take_while(|pair| continues(pair)).count();
    &all[..=behind]
}

#[cfg(test)]
mod tests {
    use super::counted_option;

    const PLANTS: &str = "Marsilea is a genus of approximately 65 species of ferns. Eucryphia is a genus of trees. There are seven \
        species, two of them in Chile.\n\nRosa is a genus of shrubs.\n\nIt has 300 species. Ajax is a club of 11 members.";
    const PLACES: &str = "Nanda is the 23rd highest mountain, at 7816 m above the sea. Broad Peak is a mountain. Its summit is 26,414 feet \
        high. Low Hill is a hill. High Hill is 90 m high. Pell had a population of 2,400 in 2011. Harwick is a town of 30,000 inhabitants.";

    fn chosen(question: &str) -> Option<String> {
        counted_option(question, &[("", PLANTS), ("", PLACES)]).map(|answer| answer.text)
    }

    #[test]
    fn numbers_of_one_unit_decide_which_option_has_more() {
        for (question, want) in [
            ("Which genus has more species, Eucryphia or Marsilea?", "Marsilea"),
            ("Which genus has fewer species, Eucryphia or Marsilea?", "Eucryphia"),
            ("Does Eucryphia or Marsilea have more species?", "Marsilea"),
            ("Which mountain is higher, Nanda or Broad Peak?", "Broad Peak"),
            ("Which has the larger population, Pell or Harwick?", "Harwick"),
            ("Which town has more inhabitants, Pell or Harwick?", "Harwick"),
        ] {
            assert_eq!(chosen(question).as_deref(), Some(want), "{question}");
        }
        let answer = counted_option("Which mountain is higher, Nanda or Broad Peak?", &[("", PLACES)]);
        let place = answer.expect("both have a height").places[0];
        assert_eq!(&PLACES[place.start..place.end], "Broad Peak is a mountain. Its summit is 26,414 feet high.");
    }

    #[test]
    fn options_without_a_number_of_the_unit_are_left_to_the_model() {
        for question in [
            "Which genus has more species, Rosa or Marsilea?",
            "Which genus has more species of trees in Chile, Eucryphia or Marsilea?",
            "Which has more members, Ajax or Marsilea?",
            "Which mountain is higher, Nanda or Musa?",
            "Which mountain is higher, Nanda or Low Hill?",
            "Which mountain has a higher summit, Nanda or Broad Peak?",
            "Which was found more recently, Nanda or Broad Peak?",
            "Which town has the mayor who is taller, Pell or Harwick?",
            "Which has more species?",
        ] {
            assert_eq!(chosen(question), None, "{question}");
        }
        assert_eq!(counted_option("Which has more species, Eucryphia or Marsilea?", &[]), None);
    }
}
