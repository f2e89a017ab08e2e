//! What a turn names: its question, and its answer if that is a name or a short phrase.

use std::ops::Range;

use super::mentions::{MAX_NOUNS, Mention, Role, head, name_end, nature_of_name, of_question};
use super::nouns::{CALENDAR, IN_NAMES, Nature, Number, PERSONS, THINGS, TITLES, gender, is_plural, number};
use super::words::{DETERMINERS, Words, is_among, is_preposition};
use crate::grounding::{Kind, kind};

/// Words of an answer that is a name or a short phrase.
const MAX_ANSWER_WORDS: usize = 8;

/// What a turn names. The phrase that asks for the answer, as in "Who was the founder?", is the answer itself, and of "A and B"
/// the pair is not meant if one of them is.
pub(super) fn of_turn(question: &str, answer: &str) -> Vec<Mention> {
    let words = Words::of(question);
    let mut all = of_question(&words);
    let Some(answer) = of_answer(&words, answer) else { return all };
    if answer.text.is_some() {
        let ends = |mention: &Mention| {
            let next = words.lower(mention.at.end);
            next.is_empty() || is_preposition(next)
        };
        let is_asked = |mention: &Mention| mention.role == Role::Subject && mention.is_phrase(&words) && ends(mention);
        let is_pair = |mention: &Mention| mention.text.as_ref().is_some_and(|text| text.contains(" and "));
        let is_copular = words.is_copular();
        all.retain(|mention| !(is_copular && is_asked(mention) || is_pair(mention) && mention.is_same(&answer)));
    }
    all.push(answer);
    all
}

/// What an answer names. It has no text if it is not clear, but a pronoun may refer to it.
fn of_answer(question: &Words<'_>, answer: &str) -> Option<Mention> {
    let kind = kind(question.text);
    if !matches!(kind, Kind::Person | Kind::Place | Kind::Group | Kind::Thing | Kind::Which) {
        return None;
    }
    let asking = question.asking()?;
    let words = Words::of(answer.trim().trim_end_matches(['.', '!', ' ']));
    let found = short_answer(&words).or_else(|| only_new_name(question, &words).filter(|_| kind == Kind::Person));
    let Some((at, text)) = found else { return unclear(kind, question, &words) };
    let noun = asked_noun(question, asking);
    let is_thing = nature_of_name(&words, at.clone()) == Nature::Thing;
    let has_article = text.starts_with("the ");
    let has_name = words.is_capital(at.start) && !is_among(words.lower(at.start), TITLES);
    let is_list = at.clone().any(|at| words.lower(at) == "and" || at > 0 && words.gap(at).contains(','));
    let is_one_name = at.clone().any(|at| is_among(words.lower(at), THINGS));
    let number = match () {
        () if is_list && !is_one_name => Number::Several,
        () if kind == Kind::Group => Number::Either,
        () if has_article => number(head(&words, at.clone())),
        () => Number::One,
    };
    let nature = match kind {
        Kind::Person if is_thing || has_article && has_name => Nature::Thing,
        Kind::Person => Nature::Person,
        Kind::Place | Kind::Group => Nature::Thing,
        _ if is_among(&noun, PERSONS) || gender(&noun).is_some() => Nature::Person,
        _ if has_article => Nature::Thing,
        _ => nature_of_name(&words, at.clone()),
    };
    let is_beside = question.bare(asking) == "where" || is_preposition(question.before(asking));
    Some(Mention {
        text: Some(text),
        nature,
        gender: gender(words.lower(at.start)).or(gender(&noun)),
        number,
        is_place: kind == Kind::Place,
        role: if is_beside { Role::Beside } else { Role::Answer },
        noun,
        at,
    })
}

/// An answer whose words are not those of a name: a person, or a thing if it has a determiner.
fn unclear(kind: Kind, question: &Words<'_>, words: &Words<'_>) -> Option<Mention> {
    let is_phrase = || is_among(words.lower(0), DETERMINERS) && !is_plural(words.before(words.count()));
    let nature = match kind {
        Kind::Person => Nature::Person,
        Kind::Thing | Kind::Which if !question.is_copular() && is_phrase() => Nature::Thing,
        _ => return None,
    };
    Some(Mention {
        at: 0..0,
        text: None,
        nature,
        gender: None,
        number: Number::One,
        noun: String::new(),
        is_place: false,
        role: Role::Answer,
    })
}

/// The words of an answer that is a name or a phrase with an article, and its text.
fn short_answer(words: &Words<'_>) -> Option<(Range<usize>, String)> {
    let count = words.count();
    let first = usize::from(is_among(words.lower(0), "in at on near to from"));
    let has_article = is_among(words.lower(first), "the a an");
    let start = first + usize::from(has_article);
    if start >= count || count > MAX_ANSWER_WORDS || !words.is_content(start) {
        return None;
    }
    let is_in_name = |at: usize| {
        let is_joining = is_among(words.lower(at), IN_NAMES) || is_among(words.lower(at), "the and on for");
        words.is_capital(at) || words.is_number(at) || is_joining
    };
    let is_date = (start..count).all(|at| is_among(words.lower(at), CALENDAR) || words.is_number(at));
    let is_name = words.is_capital(start) && (start..count).all(is_in_name) && !is_date;
    let is_phrase = has_article && count - start <= MAX_NOUNS && (start..count).all(|at| words.is_content(at));
    let text = words.span(start..count);
    let text = if has_article { format!("the {text}") } else { text.to_owned() };
    (is_name || is_phrase).then_some((start..count, text))
}

/// The one name of a sentence that the question does not have, if it may be that of a person.
fn only_new_name(question: &Words<'_>, words: &Words<'_>) -> Option<(Range<usize>, String)> {
    let (mut names, mut at) = (Vec::<Range<usize>>::new(), 0);
    while at < words.count() {
        let end = name_end(words, at);
        let is_known = |at: usize| (0..question.count()).any(|known| question.bare(known) == words.bare(at));
        names.extend(end.map(|end| at..end).filter(|name| !name.clone().any(is_known)));
        at = end.unwrap_or(at + 1);
    }
    let [only] = &names[..] else { return None };
    let is_thing = nature_of_name(words, only.clone()) == Nature::Thing || words.before(only.start) == "the";
    (!is_thing).then(|| (only.clone(), words.span(only.clone()).to_owned()))
}

/// What a question asks for: "company" in "Which company built it?", "wife" in "Who was Tom Reed's wife?"; may be empty.
fn asked_noun(words: &Words<'_>, asking: usize) -> String {
    let nouns_from = |start: usize| (start..words.count()).take_while(|at| words.is_noun(*at)).count();
    if matches!(words.lower(asking), "which" | "what") && !words.is_auxiliary(asking + 1) {
        let (start, count) = (asking + 1, nouns_from(asking + 1));
        // Without an auxiliary behind it the last word is the verb.
        let nouns = if words.is_auxiliary(start + count) { count } else { count.max(1) - 1 };
        return if nouns == 0 { String::new() } else { words.lower(start + nouns - 1).to_owned() };
    }
    if !words.is_copular() {
        return String::new();
    }
    let is_owner = |at: &usize| words.is_possessive(*at) || is_among(words.lower(*at), DETERMINERS);
    let Some(owner) = (asking + 1..words.count()).take(MAX_ANSWER_WORDS).find(is_owner) else { return String::new() };
    let nouns = nouns_from(owner + 1);
    let noun = if nouns == 0 { "" } else { words.lower(owner + nouns) };
    if noun == "name" && words.lower(owner + 2) == "of" {
        let is_person = |noun: &&str| gender(noun).is_some() || is_among(noun, PERSONS);
        return (owner + 3..words.count()).rev().map(|at| words.bare(at)).find(is_person).unwrap_or("").to_owned();
    }
    noun.to_owned()
}
