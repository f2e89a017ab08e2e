//! Whether one sentence can state the answer to a question by itself.

use std::collections::HashSet;
use std::ops::Range;

use super::asserted::is_open_answer;
use super::cells::Cell;
use super::dates::Date;
use super::days::covers;
use super::dimension::names_another_dimension;
use super::hedges::is_question;
use super::mail::message_at;
use super::naming::has_name;
use super::numbers::{Number, is_equal, is_measure, is_value};
use super::question::{AUXILIARIES, Kind, Question};
use super::speech::{FIRST, SECOND, Speaker, is_third, speaker};
use super::subject::{
    is_before_preposition, is_behind_object, is_behind_pronoun, is_circumstance, is_in_brackets_behind_name,
};
use super::superseded::is_superseded;
use super::things::is_of_another_thing;
use super::turn::{is_vocative, turn};
use super::typed::{AnswerType, asks_for_score, asks_when, has_share, is_attribute_year, is_score, is_time};
use super::unnamed::{has_no_effect, is_called_of_unnamed, is_of_unnamed};
use super::values::{Values, is_title};
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
/// * if the question has a name, a number, a date or a day of the week that is neither in the quote nor in the sentences beside it,
///   nor the name of the sender of a message of mail in which the quote speaks in the first person;
/// * if the answer is not of the type that the question requires (a number or a date alone is no person), or repeats
///   its words;
/// * if the sentence of the answer gives it another part than the question asks for, or has only a noun for what is done;
/// * if that sentence tells it of another thing or another dimension, or it is in another row or column of a table;
/// * if that sentence tells it of "it", which is not what "how much" asks for, or a later sentence corrects it;
/// * if that sentence lacks what the question asks the name of, or has no word for an effect that is asked for;
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
    let said = format!("{question} {}", &sentence[answer.clone()]);
    !is_question(sentence)
        && !is_superseded(&words(&said), &Values::read(&said, &|_| false), &stating.text[range.end..])
        && !is_of_unnamed(question, stating.text, &range)
        && !is_called_of_unnamed(question, stating.text, &range)
        && !has_no_effect(question, sentence)
        && !has_noun_for_verb(question, sentence)
        && !is_behind_object(question, sentence, &answer)
        && !is_before_preposition(question, sentence, &answer)
        && !is_circumstance(question, parsed, sentence, &answer)
        && !is_in_brackets_behind_name(question, sentence, &answer)
        && !is_of_another_thing(question, sentence, &answer)
        && !subject_name(question).is_some_and(|name| is_behind_pronoun(&name, &words(sentence)))
        && !names_another_dimension(&words(question), &words(sentence), &answer)
        && !Cell::at(stating.text, &stating.answer).is_some_and(|cell| cell.is_another(question))
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

/// Whether all names, numbers, dates and days of the week of a question are in the quote, beside it or in the heading.
fn values_are_near(question: &str, stating: &Stating<'_>) -> bool {
    let around = sentences(stating.text);
    let first = around.iter().position(|range| range.end > stating.quote.start).unwrap_or(0);
    let last = around.iter().rposition(|range| range.start < stating.quote.end).unwrap_or(first);
    let start = around.get(first.saturating_sub(BEFORE)).map_or(0, |range| range.start);
    let end = around.get(last + AFTER).or(around.last()).map_or(stating.text.len(), |range| range.end);
    let beside = [Some(stating.heading), sender(stating), column(stating)].into_iter().flatten();
    let near: Vec<&str> = beside.chain([&stating.text[start..end.max(start)]]).collect();
    let near = near.join("\n");
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
        && asked.weekdays.iter().all(|day| covers(&near, day))
        && mixed.all(|asked| near_words.iter().any(|word| word.lower == asked.lower))
}

/// Whether a quote can be about the person of these names, which are in lower case.
fn is_of_the_person(named: &[String], stating: &Stating<'_>) -> bool {
    let Stating { text, quote, answer, .. } = stating;
    let is_named = |name: &[String]| name.iter().any(|part| named.contains(part)) && !is_namesake(named, name);
    if named.is_empty() {
        return true;
    }
    if let Some((speaker, said)) = turn(&text[quote.clone()]) {
        return is_named(&names(speaker)) || is_of_listener(said, offset(answer, quote.end - said.len()), named);
    }
    let (said, given) = (&text[quote.clone()], words(&text[quote.clone()]));
    let is_message = message_at(text, answer.start).is_some();
    let mentions = |at: usize| {
        let is_addressed = || is_message && is_vocative(said, &given, at);
        named.iter().any(|name| name == bare(&given[at].lower)) && !is_addressed()
    };
    (0..given.len()).any(mentions)
        || match speaker(text, quote.clone()) {
            Some(Speaker::Named(name)) => is_named(&name),
            Some(Speaker::Unknown) => false,
            None => true,
        }
}

/// Whether names of a question are those of another person with the same last name: "Eva Lee" for "Ann Lee", but not "Annie Lee".
fn is_namesake(named: &[String], name: &[String]) -> bool {
    let [first @ .., last] = name else { return false };
    let is_short = |a: &String, b: &String| a.starts_with(b.as_str()) || b.starts_with(a.as_str());
    let is_asked = |part: &String| named.iter().any(|other| other != last && is_short(part, other));
    let has_first = named.windows(2).any(|pair| pair[1] == *last && !is_title(&pair[0]));
    has_first && !first.is_empty() && !first.iter().any(is_asked)
}

/// The sender of the message of mail in which the quote speaks in the first person.
fn sender<'a>(stating: &Stating<'a>) -> Option<&'a str> {
    let quote = &stating.text[stating.quote.clone()];
    let first = words(quote).into_iter().find(|word| FIRST.contains(&word.lower.as_str()))?;
    message_at(stating.text, stating.quote.start + first.range.start).map(|message| message.sender)
}

/// The name of the column of a table that the answer is in.
fn column<'a>(stating: &Stating<'a>) -> Option<&'a str> {
    Cell::at(stating.text, &stating.answer).map(|cell| cell.column())
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
