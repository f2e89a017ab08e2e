//! Whether one sentence can state the answer to a question by itself.

use std::collections::HashSet;
use std::ops::Range;

use super::asserted::is_open_answer;
use super::dates::Date;
use super::hedges::is_question;
use super::naming::has_name;
use super::numbers::{Number, is_equal, is_measure, is_value};
use super::question::{AUXILIARIES, Kind, Question};
use super::speech::{FIRST, SECOND, Speaker, is_third, speaker};
use super::subject::{is_behind_object, is_circumstance, is_in_brackets_behind_name};
use super::turn::{is_vocative, turn};
use super::typed::{AnswerType, asks_for_score, asks_when, has_share, is_attribute_year, is_score, is_time};
use super::values::Values;
use super::words::{Word, bare, words};
use crate::core::cite::sentences;

/// An answer in the evidence.
#[derive(Debug, Clone)]
pub struct Stating<'a> {
    /// A text of the evidence.
    pub text: &'a str,
    /// What the text is headed by.
    pub heading: &'a str,
    /// Bytes of the sentence, or of the turn of a conversation, that the answer is in.
    pub quote: Range<usize>,
    /// Bytes of the answer.
    pub answer: Range<usize>,
}

/// Whether a quote can state the answer to a question by itself. It cannot
///
/// * for a question that compares options, which takes more than one sentence;
/// * if the question has a name, a number or a date that is neither in the quote nor in the sentences beside it;
/// * if the answer is not of the type that the question requires (a number or a date alone is no person), or repeats
///   its words;
/// * if the sentence of the answer gives it another part than the question asks for, or has only a noun for what is done;
/// * if a speaker speaks of himself and the question is about another person;
/// * if the sentence of the answer is itself a question, or holds the answer without asserting it.
pub fn can_state(question: &str, stating: &Stating<'_>) -> bool {
    let words = words(&stating.text[stating.answer.clone()]);
    let is_open = |range| is_open_answer(question, &stating.text[stating.answer.clone()], &stating.text[range]);
    Question::parse(question).echo(&words) < MOST_ECHO
        && can_answer(question, stating)
        && !sentence_of(stating).is_some_and(is_open)
}

/// The same of an answer that may repeat words of the question: "gas welding" for "Which welding was shown in 1901?".
pub(super) fn can_answer(question: &str, stating: &Stating<'_>) -> bool {
    let parsed = Question::parse(question);
    parsed.options.is_empty()
        && answers(&parsed, stating)
        && (!asks_when(&parsed, question) || is_time(&stating.text[stating.answer.clone()]))
        && values_are_near(question, stating)
        && is_of_the_person(&subject_name(question).unwrap_or_else(|| named(question)), stating)
        && sentence_of(stating).is_none_or(|sentence| can_be_of(question, &parsed, stating, sentence))
}

/// The bytes of the sentence that the answer begins in.
pub(super) fn sentence_of(Stating { text, answer, .. }: &Stating<'_>) -> Option<Range<usize>> {
    sentences(text).into_iter().find(|range| range.start <= answer.start && answer.start < range.end)
}

/// Whether a sentence can state the answer that it holds: it is no question, and the answer has the part in it that is asked for.
fn can_be_of(question: &str, parsed: &Question, stating: &Stating<'_>, range: Range<usize>) -> bool {
    let sentence = &stating.text[range.clone()];
    let answer = offset(&(stating.answer.start..stating.answer.end.min(range.end)), range.start);
    !is_question(sentence)
        && !has_noun_for_verb(question, sentence)
        && !is_behind_object(question, sentence, &answer)
        && !is_circumstance(question, parsed, sentence, &answer)
        && !is_in_brackets_behind_name(question, sentence, &answer)
        && (!asks_when(parsed, question) || !is_attribute_year(sentence, &answer))
        && (!asks_for_score(parsed) || is_score(&sentence[answer], sentence))
}

/// The ends of nouns that are made of verbs.
const NOUNS_OF_VERBS: [&str; 8] = ["ion", "ions", "ment", "ments", "ance", "ances", "ence", "ences"];

/// Whether a sentence has only a noun for what is done in a question: "She provided a translation" does not tell what she
/// translated.
fn has_noun_for_verb(question: &str, sentence: &str) -> bool {
    let (asked, given) = (words(question), words(sentence));
    let is_noun = |word: &Word| NOUNS_OF_VERBS.iter().any(|end| word.lower.ends_with(end));
    let behind_auxiliary = asked.iter().skip_while(|word| !matches!(word.lower.as_str(), "do" | "does" | "did"));
    let mut verbs = behind_auxiliary.filter(|word| word.stem.is_some() && !word.capital && !is_noun(word));
    verbs.any(|verb| {
        let mut same = given.iter().filter(|word| word.stem == verb.stem).peekable();
        same.peek().is_some() && same.all(is_noun)
    })
}

/// Whether the words of an answer can be one: of the type that is required, and not all of them those of the question.
fn answers(question: &Question, stating: &Stating<'_>) -> bool {
    let answer = &stating.text[stating.answer.clone()];
    let words = words(answer);
    let is_of_type = match AnswerType::parsed(question) {
        Some(_) if question.kind == Kind::Share => has_share(answer),
        Some(required) if required.is_required() => required.is_in(answer),
        _ => true,
    };
    let is_word = |word: &Word| word.number || word.lower.chars().nth(1).is_some();
    is_of_type
        && words.iter().any(is_word)
        && !(question.kind == Kind::Count && words.len() > 1 && Values::read(answer, &|_| false).numbers.is_empty())
        && !(question.kind == Kind::Person && is_value_alone(answer, &words))
        && question.echo(&words) < 1.0
        && !is_in_another_unit(question, stating)
}

/// Whether a question asks for a person and an answer is none: a number, with or without a unit of measurement, or a date.
pub fn is_value_for_person(question: &str, answer: &str) -> bool {
    Question::parse(question).kind == Kind::Person && is_value_alone(answer, &words(answer))
}

/// Whether an answer is a number with or without a unit of measurement, or a date, and no more, which is no person.
fn is_value_alone(answer: &str, words: &[Word]) -> bool {
    let Values { dated, numbers, .. } = Values::read(answer, &|_| false);
    let is_measured = |number: &Number| number.is_of_sign() || number.unit.as_deref().is_some_and(is_measure);
    let is_unit = |at: usize| numbers.iter().any(|number| number.unit_at.contains(&at) && is_measured(number));
    let is_value = |at: usize| dated[at] || is_unit(at) || !words[at].lower.contains(char::is_alphabetic);
    let mut content = (0..words.len()).filter(|at| words[*at].stem.is_some()).peekable();
    content.peek().is_some() && content.all(is_value)
}

/// "4" of "4 kg" does not answer "how many pounds?".
fn is_in_another_unit(question: &Question, stating: &Stating<'_>) -> bool {
    let Some(asked) = question.focus.as_deref().filter(|focus| is_measure(focus)) else { return false };
    let quote = &stating.text[stating.quote.clone()];
    let words = words(quote);
    let at = offset(&stating.answer, stating.quote.start);
    let is_here = |number: &Number| words[number.at.clone()].iter().any(|word| at.contains(&word.range.start));
    let numbers = Values::read(quote, &|_| false).numbers;
    let mut units = numbers.iter().filter(|number| is_here(number)).filter_map(|number| number.unit.as_deref());
    units.any(|unit| is_measure(unit) && unit != asked)
}

/// Whether all names, numbers and dates of a question are in the quote, beside it or in the heading.
fn values_are_near(question: &str, stating: &Stating<'_>) -> bool {
    let around = sentences(stating.text);
    let first = around.iter().position(|range| range.end > stating.quote.start).unwrap_or(0);
    let last = around.iter().rposition(|range| range.start < stating.quote.end).unwrap_or(first);
    let start = around.get(first.saturating_sub(BEFORE)).map_or(0, |range| range.start);
    let end = around.get(last + AFTER).or(around.last()).map_or(stating.text.len(), |range| range.end);
    let near = format!("{}\n{}", stating.heading, &stating.text[start..end.max(start)]);
    let (asked, given) = (Values::read(question, &|_| false), Values::read(&near, &|_| true));
    let near_words = words(&near);
    let has_name = |name: &Vec<String>| {
        has_name(name, &near_words)
            || name.last().is_some_and(|last| near_words.iter().any(|word| bare(&word.lower) == last))
    };
    let has_number = |number: &Number| given.numbers.iter().any(|other| is_equal(number.value, other.value));
    let has_date = |date: &Date| given.dates.iter().any(|(other, _)| other.bears_out(date));
    // "5K" and "B52" are no numbers.
    let is_mixed = |word: &Word| {
        let has = |kind: fn(&char) -> bool| word.lower.chars().any(|c| kind(&c));
        has(char::is_ascii_digit) && has(|c| c.is_alphabetic()) && !is_value(&word.lower)
    };
    let mut mixed = words(question).into_iter().filter(is_mixed);
    asked.names.iter().all(has_name)
        && asked.numbers.iter().all(has_number)
        && asked.dates.iter().all(|(date, _)| has_date(date))
        && mixed.all(|asked| near_words.iter().any(|word| word.lower == asked.lower))
}

/// Whether a quote can be about the person of these names, which are in lower case.
fn is_of_the_person(named: &[String], stating: &Stating<'_>) -> bool {
    let Stating { text, quote, answer, .. } = stating;
    let is_named = |name: &[String]| name.iter().any(|part| named.contains(part));
    if named.is_empty() {
        return true;
    }
    if let Some((speaker, said)) = turn(&text[quote.clone()]) {
        return is_named(&names(speaker)) || is_of_listener(said, offset(answer, quote.end - said.len()), named);
    }
    words(&text[quote.clone()]).iter().any(|word| named.iter().any(|name| name == bare(&word.lower)))
        || match speaker(text, quote.clone()) {
            Some(Speaker::Named(name)) => is_named(&name),
            Some(Speaker::Unknown) => false,
            None => true,
        }
}

/// Whether a question names speakers of a conversation and the answer is what another one says, not about them.
pub(crate) fn is_of_another(question: &str, stating: &Stating<'_>, speakers: &HashSet<String>) -> bool {
    let named = named(question);
    let names_speaker = named.iter().any(|name| speakers.contains(name));
    names_speaker && turn(&stating.text[stating.quote.clone()]).is_some() && !is_of_the_person(&named, stating)
}

/// The names of all who speak in texts, in lower case.
pub(crate) fn speakers(texts: &[&str]) -> HashSet<String> {
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.filter_map(turn).flat_map(|(speaker, _)| names(speaker)).collect()
}

fn names(speaker: &str) -> Vec<String> {
    words(speaker).into_iter().map(|word| word.lower).collect()
}

/// The names in a question. Its first word is capitalised whatever it is.
fn named(question: &str) -> Vec<String> {
    let named = words(question).into_iter().skip(1).filter(|word| word.capital && !word.is_function() && !word.number);
    named.map(|word| bare(&word.lower).to_owned()).collect()
}

/// The name that is the subject of a question, in lower case: "Julia" in "When did Julia go to Rome?". "I went to Rome" is not about her.
fn subject_name(question: &str) -> Option<Vec<String>> {
    let words = words(question);
    let auxiliary = words.iter().position(|word| AUXILIARIES.contains(&word.lower.as_str()))?;
    let is_of_name = |word: &&Word| word.capital && !word.is_function() && !word.number;
    let name = words[auxiliary + 1..].iter().take_while(is_of_name).map(|word| bare(&word.lower).to_owned());
    Some(name.collect::<Vec<String>>()).filter(|name| !name.is_empty())
}

/// The share of an answer's words from which it only repeats the question.
const MOST_ECHO: f64 = 0.5;

/// Sentences before and after a quote that may have the names that it refers to.
const BEFORE: usize = 2;
const AFTER: usize = 1;

/// Whether the sentence of a turn that holds an answer is about one of the named, of whom none is the speaker: it names or
/// addresses them, or has a pronoun for a name of the turn.
fn is_of_listener(said: &str, answer: Range<usize>, named: &[String]) -> bool {
    let holds = |range: &Range<usize>| range.start < answer.end && answer.start < range.end;
    let Some(sentence) = sentences(said).into_iter().find(holds) else { return false };
    let sentence = &said[sentence];
    let words_of = words(sentence);
    let has = |list: &[&str]| words_of.iter().any(|word| list.contains(&word.lower.as_str()));
    let mentions = |text: &str| {
        let words = words(text);
        (0..words.len())
            .any(|at| named.iter().any(|name| name == bare(&words[at].lower)) && !is_vocative(text, &words, at))
    };
    mentions(sentence)
        || words_of.iter().any(|word| is_third(&word.lower)) && mentions(said)
        || has(&SECOND) && !has(&FIRST)
}

/// A range as an offset from a place.
fn offset(range: &Range<usize>, from: usize) -> Range<usize> {
    range.start.saturating_sub(from)..range.end.saturating_sub(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(question: &str, quote: &str, answer: &str) -> bool {
        states_beside(question, "", quote, answer)
    }

    fn states_beside(question: &str, before: &str, quote: &str, answer: &str) -> bool {
        let text = format!("{before} {quote}");
        let start = before.len() + 1;
        let at = start + quote.find(answer).unwrap();
        let (quote, answer) = (start..text.len(), at..at + answer.len());
        can_state(question, &Stating { text: &text, heading: "notes of 3 May 2023", quote, answer })
    }

    #[test]
    fn what_one_speaker_says_of_himself_is_not_about_another() {
        let quote = "Tim (D21:13): I've been playing for about four months now.";
        assert!(!states("How long has John been playing the piano?", quote, "four months"));
        assert!(states("How long has Tim been playing the piano?", quote, "four months"));
        assert!(states("How long did it take?", quote, "four months"));
        assert!(states("How old is John's son?", "Tim: John's son is four.", "four"));
        let piano = "He has been playing: for four months.";
        assert!(states_beside("How long has John been playing?", "John was tired.", piano, "four months"));
        let speakers = speakers(&["Hi.\n", &format!("John: Hey.\n{quote}")]);
        let of_another = |question: &str| {
            let at = quote.find("four months").unwrap();
            let (unit, answer) = (0..quote.len(), at..at + "four months".len());
            is_of_another(question, &Stating { text: quote, heading: "", quote: unit, answer }, &speakers)
        };
        assert!(of_another("How long has John been playing?"));
        assert!(!of_another("How long has Tim been playing?") && !of_another("How long did it take?"));
        assert!(!of_another("How long did the lessons in Paris take?"), "no speaker has that name");
    }

    #[test]
    fn the_name_of_a_place_does_not_make_the_narrator_the_person() {
        let start = "I start at the clinic in Rome on 2 January.";
        assert!(!states_beside("When does Julia start at the clinic in Rome?", "Hi Julia!", start, "2 January"));
        assert!(!states("When does Julia start at the clinic in Rome?", &format!("Tim: {start}"), "2 January"));
        assert!(states("When does Julia start at the clinic in Rome?", &format!("Julia: {start}"), "2 January"));
        let she = "She starts at the clinic in Rome on 2 January.";
        assert!(states_beside("When does Julia start at the clinic in Rome?", "Julia moves.", she, "2 January"));
        let met = "I met Julia in Rome on 2 January.";
        assert!(states("When was Julia in Rome?", met, "2 January"));
    }

    #[test]
    fn the_name_of_the_listener_is_not_enough() {
        let (question, before) = ("Where did Ann go camping?", "Ann: I am back.");
        let camp = |said: &str| states_beside(question, before, &format!("Tim: {said}"), "the beach");
        assert!(!camp("Hey Ann! Good to see you. We went camping at the beach."));
        assert!(!camp("Ann, I went to the beach."));
        assert!(!camp("Ann is so kind. We loved camping at the beach."));
        assert!(camp("I went to the beach with Ann."));
        assert!(camp("Ann was here. She went camping at the beach."));
        assert!(camp("Wow, you went to the beach!"));
    }

    #[test]
    fn the_speaker_of_direct_speech_is_not_another_person() {
        let story = "Instead of obeying, Jim tumbled down on the couch and smiled, his hands under his head.\n\n\
            \"Dell,\" said he, \"I sold the watch to buy your combs.\"";
        let at = story.find("\"Dell").unwrap();
        let watch = story.find("the watch").unwrap();
        let (quote, answer) = (at..story.len(), watch..watch + 9);
        let stating = Stating { text: story, heading: "", quote, answer };
        let jim = |question: &str| can_state(question, &stating);
        assert!(jim("What did Jim sell?") && jim("What was sold?"));
        assert!(!jim("What did Della sell?"));
        let saw = |quote: &str| states_beside("What did Ann see?", "Ann came.", quote, "a hat");
        assert!(!saw("I saw a hat."), "a narrator without a name");
        assert!(saw("She saw a hat.") && saw("Ann saw a hat. I saw none."));
    }

    #[test]
    fn a_question_states_nothing() {
        let states = |quote: &str| states("What does Ann want to study?", quote, "law");
        assert!(!states("Tim: Good. Does Ann want to study law?") && !states("\"Will Ann study law?\""));
        assert!(states("Tim: Ann wants to study law. Do you?"));
    }

    #[test]
    fn an_answer_has_the_part_in_its_sentence_that_is_asked_for() {
        let named = "She named the farm Sunnybrook, as Ann had wished.";
        assert!(!states("Who named the farm?", named, "Sunnybrook"));
        assert!(states("What did she name the farm?", named, "Sunnybrook"));
        let film = "They meet Sal (Tom Reed), a mobster.";
        assert!(!states("Who is the mobster?", film, "Tom Reed") && states("Who is the mobster?", film, "Sal"));
        let game = "Turku won by 11 points, and the home team lost 24 to 10.";
        assert!(!states("What was the final score?", game, "11 points"));
        assert!(states("What was the final score?", game, "24 to 10"));
        let round = "They won the divisional round, finishing with a score of 23–16 by scoring 11 points in the end.";
        assert!(!states("What was the final score of the round?", round, "11 points"));
        assert!(states("What was the final score of the round?", round, "23–16"));
        assert!(states("What was the highest score?", "The highest score was 98 points.", "98 points"));
        let signs = "Ida gave a sign language translation of the hymn.";
        assert!(!states("What did Ida translate?", signs, "sign language"));
        assert!(states("What kind of translation did Ida give?", signs, "sign language"));
        assert!(states("What did Ida translate?", "Ida translated the hymn in her translation.", "the hymn"));
        let ring = "Ann bought a ring in Rome.";
        assert!(!states("What did Ann buy?", ring, "Rome") && states("What did Ann buy?", ring, "a ring"));
    }

    #[test]
    fn a_comparison_takes_more_than_one_sentence() {
        assert!(!states("Which is larger, Porto or Lisbon?", "Lisbon is the largest city.", "Lisbon"));
        assert!(states("Which city is the largest?", "Lisbon is the largest city.", "Lisbon"));
    }

    #[test]
    fn what_the_question_names_is_near() {
        let (question, nina) = ("In what year did Lima open the port?", "It opened the port in 1970.");
        assert!(states_beside(question, "Lima grew.", nina, "1970"));
        assert!(!states_beside(question, "Quito grew.", nina, "1970"));
        assert!(
            !states("Who won in 1866?", "Ann Lee won.", "Ann Lee")
                && states("Who won in 2023?", "Ann Lee won.", "Ann Lee")
        );
        assert!(!states("Which of the 12 men won?", "Ann Lee won.", "Ann Lee"));
        assert!(!states("Who won the 5K run?", "Ann Lee won the run.", "Ann Lee"));
        assert!(states("Who won the 5K run?", "Ann Lee won the 5k run.", "Ann Lee"));
    }

    #[test]
    fn an_answer_has_what_is_asked_for_and_new_words() {
        let quote = "The forest has over half of all trees, 390 billion of 16,000 kinds, and takes 4 kg of salt.";
        assert!(!states("What percentage of all trees does the forest have?", quote, "390 billion"));
        assert!(states("What percentage of all trees does the forest have?", quote, "over half"));
        assert!(!states("How many pounds of salt does it take?", quote, "4"));
        assert!(states("How many kilograms of salt does it take?", quote, "4"));
        assert!(states("How many kinds has the forest?", quote, "16,000"));
        assert!(!states("What has the forest of all trees?", quote, "The forest"));
        assert!(!states("What is the sign of the epoch?", "The epoch (P) ended.", "P"));
        let clinic = "The clinic was founded in 1950 by Ida Holm of the 49ers.";
        assert!(!states("Who founded the clinic?", clinic, "1950") && !states("Who ran it?", clinic, "in 1950"));
        assert!(states("Who founded the clinic?", clinic, "Ida Holm") && states("Who won?", clinic, "the 49ers"));
        for value in ["140 euros", "1950", "3 May 2023", "5 km"] {
            assert!(is_value_for_person("Who charged Ann?", value), "{value}");
            assert!(!is_value_for_person("What did Ann pay?", value), "{value}");
        }
        for person in ["Mr. Lee", "the 49ers", "12 men", "Louis 14"] {
            assert!(!is_value_for_person("Who charged Ann?", person), "{person}");
        }
    }
}
