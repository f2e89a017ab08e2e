//! What an English question names: names, and noun phrases with a determiner or an owner.

use std::ops::Range;

use super::nouns::{
    ABSTRACT, CALENDAR, Gender, IN_NAMES, KIN, Nature, Number, PERSONS, THINGS, TITLES, gender, is_adjective,
    is_plural, is_verb_form, number,
};
use super::words::{DETERMINERS, Words, is_among, is_preposition};

/// What a mention is in its question, the least likely antecedent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// Behind a preposition, or what a question asks for beside its subject.
    Beside,
    Other,
    /// The answer to the question.
    Answer,
    Subject,
}

/// Something that a pronoun may refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    /// Its words in the question or the answer.
    pub at: Range<usize>,
    /// How it is written in another question; `None` if its end is unclear or it is not definite.
    pub text: Option<String>,
    pub nature: Nature,
    pub gender: Option<Gender>,
    pub number: Number,
    /// The noun that tells what it is, in lower case; may be empty.
    pub noun: String,
    /// Whether something is in it: "in Warsaw".
    pub is_place: bool,
    pub role: Role,
}

impl Mention {
    /// Whether it is a noun phrase, and no name.
    pub fn is_phrase(&self, words: &Words<'_>) -> bool {
        let start = self.at.start;
        is_among(words.lower(start), DETERMINERS) || words.is_possessive(start) && self.at.len() > 1
    }

    /// Whether the text of one has the words of the other: "Reed" and "Tom Reed".
    pub fn is_same(&self, other: &Mention) -> bool {
        let (Some(one), Some(other)) = (&self.text, &other.text) else { return false };
        let words = |text: &str| -> Vec<String> {
            text.split(' ').filter(|word| *word != "the").map(str::to_lowercase).collect()
        };
        let (one, other) = (words(one), words(other));
        let is_in = |some: &[String], all: &[String]| some.iter().all(|word| all.contains(word));
        is_in(&one, &other) || is_in(&other, &one)
    }
}

/// Nouns that a phrase without a name has in another question.
pub(super) const MAX_NOUNS: usize = 3;

/// What a question names, and last the pairs that "and" joins.
pub(super) fn of_question(words: &Words<'_>) -> Vec<Mention> {
    let (mut found, mut at) = (Vec::<Mention>::new(), 0);
    while at < words.count() {
        let mention = name(words, at).or_else(|| phrase(words, at, None)).or_else(|| plural(words, at));
        let Some(mention) = mention else {
            at += 1;
            continue;
        };
        at = mention.at.end;
        let owned = words.is_possessive(at - 1).then(|| phrase(words, at - 1, Some(&mention))).flatten();
        at = owned.as_ref().map_or(at, |owned| owned.at.end);
        found.push(mention);
        found.extend(owned);
    }
    let pairs: Vec<Mention> = found.windows(2).filter_map(|two| joined(words, &two[0], &two[1])).collect();
    // No name of a pair is a better antecedent than the other.
    for name in &mut found {
        if let Some(pair) = pairs.iter().find(|pair| pair.at.contains(&name.at.start)) {
            name.role = pair.role;
        }
    }
    found.extend(pairs);
    found
}

/// The name that begins at a word.
fn name(words: &Words<'_>, at: usize) -> Option<Mention> {
    let is_first_word = || {
        let is_name = words.is_capital(1) || words.is_auxiliary(1) || is_verb_form(words.lower(1));
        words.is_possessive(0) || is_name && !is_among(words.lower(0), REQUESTS)
    };
    let mut end = name_end(words, at).filter(|_| at > 0 || is_first_word())?;
    let has_article = words.before(at) == "the" && words.is_next(at);
    let first = at - usize::from(has_article);
    let before = words.before(first);
    let is_owner = words.is_possessive(end - 1);
    // "the British army", "which NFL team".
    let has_noun = !is_owner && words.is_noun(end);
    if has_noun && (matches!(before, "which" | "what") || end == at + 1 && is_adjective(words.bare(at))) {
        return None;
    }
    let is_beside = is_preposition(before) || before == "between";
    if has_article && !is_owner && is_beside {
        end = with_nouns(words, end);
    }
    let is_subject = !is_owner && (first == 0 || words.is_auxiliary(first - 1) || before == "many");
    let is_many = is_among(before, "many are were have do") || is_among(words.lower(end), "are were have");
    let noun = head(words, at..end);
    let is_person = is_subject && is_person(words, end) || is_owner && is_among(words.lower(end), KIN);
    let nature = match nature_of_name(words, at..end) {
        Nature::Unknown if is_person => Nature::Person,
        Nature::Unknown if has_article || is_among(before, BEFORE_PLACES) => Nature::Thing,
        nature => nature,
    };
    // One capital at the beginning of a question shows no name.
    let is_clear = at > 0 || end > 1 || is_owner || nature == Nature::Thing;
    let text = words.span(at..end);
    Some(Mention {
        at: at..end,
        text: is_clear.then(|| if has_article { format!("the {text}") } else { text.to_owned() }),
        nature,
        gender: gender(words.lower(at)),
        number: match number(noun) {
            Number::Either if has_article => Number::Either,
            Number::Several if has_article || is_many => Number::Several,
            _ => Number::One,
        },
        noun: noun.to_owned(),
        is_place: nature != Nature::Person && is_among(before, "in at to from near into across through within"),
        role: match () {
            () if is_subject => Role::Subject,
            () if is_beside => Role::Beside,
            () => Role::Other,
        },
    })
}

/// One after the last word of the name that begins at a word; `None` if none does.
pub(super) fn name_end(words: &Words<'_>, at: usize) -> Option<usize> {
    if !words.is_capital(at) || !words.is_content(at) {
        return None;
    }
    let is_part = |at: usize| words.is_capital(at) && words.lower(at) != "i" || words.is_number(at);
    let mut end = at + 1;
    while !words.is_possessive(end - 1) {
        let is_abbreviated = words.lower(end - 1).chars().count() <= 2 || is_among(words.lower(end - 1), TITLES);
        let gap = words.gap(end);
        let touches = words.is_next(end) || gap.trim() == "&" || gap == ". " && is_abbreviated;
        if touches && is_part(end) {
            end += 1;
            continue;
        }
        let is_thing = (at..end).any(|at| is_among(words.lower(at), THINGS));
        let joins = is_among(words.lower(end), IN_NAMES) || is_thing && is_among(words.lower(end), "on for");
        let next = end + 1 + usize::from(words.lower(end + 1) == "the");
        let is_joined = joins && (end..=next).all(|at| words.is_next(at)) && words.is_capital(next);
        if !is_joined {
            break;
        }
        end = next + 1;
    }
    let is_date = (at..end).all(|at| is_among(words.bare(at), CALENDAR) || words.is_number(at));
    (!is_date).then_some(end)
}

/// The word of a name that tells what it is: "university" of "University of Warsaw", else the last one.
pub(super) fn head<'a>(words: &'a Words<'_>, at: Range<usize>) -> &'a str {
    let joins = |at: &usize| is_among(words.lower(*at), "of on for");
    words.bare((at.start + 1..at.end).find(joins).unwrap_or(at.end) - 1)
}

/// The end of a name with the nouns behind it, if a function word or nothing follows them: "the Amazon rainforest".
fn with_nouns(words: &Words<'_>, end: usize) -> usize {
    let is_own = |at: &usize| words.is_noun(*at) && !is_verb_form(words.lower(*at)) && !words.is_possessive(*at);
    let behind = end + (end..words.count()).take_while(is_own).count();
    let is_followed = words.is_noun(behind) || words.is_next(behind) && words.is_capital(behind);
    if behind - end > MAX_NOUNS || is_followed { end } else { behind }
}

/// Whether a question is about a person: "Who was Ann Lee?", "When was Ann Lee born?". `end` is the end of its subject.
fn is_person(words: &Words<'_>, end: usize) -> bool {
    let is_all = words.bare(0) == "who" && words.is_copular() && end == words.count();
    is_all || (end..words.count()).any(|at| is_among(words.lower(at), "born marry married widowed"))
}

pub(super) fn nature_of_name(words: &Words<'_>, at: Range<usize>) -> Nature {
    let is_acronym = |word: &str| {
        let letters = || word.chars().filter(|c| c.is_alphabetic());
        letters().count() > 1 && letters().all(char::is_uppercase) && !letters().all(|c| "IVX".contains(c))
    };
    let is_thing = |at: usize| {
        let word = words.span(at..at + 1);
        is_among(words.bare(at), THINGS) || word.contains(|c: char| c.is_ascii_digit() || c == '&') || is_acronym(word)
    };
    match () {
        () if at.clone().any(is_thing) => Nature::Thing,
        () if at.len() > 1 && is_among(words.lower(at.start), TITLES) => Nature::Person,
        () => Nature::Unknown,
    }
}

/// The noun phrase whose determiner is a word, or the last word of an owner; `None` if a name follows: "the builder Tom Reed".
fn phrase(words: &Words<'_>, at: usize, owner: Option<&Mention>) -> Option<Mention> {
    if owner.is_none() && !is_among(words.lower(at), DETERMINERS) {
        return None;
    }
    let is_part = |at: usize| {
        let is_modifier =
            is_among(words.lower(at), "most least") || is_adjective(words.bare(at)) && words.is_noun(at + 1);
        words.is_noun(at) || words.is_next(at) && is_modifier
    };
    let mut end = at + 1;
    while is_part(end) && (end == at + 1 || !words.is_possessive(end - 1)) {
        end += 1;
    }
    let nouns = end - at - 1;
    let is_owner = nouns > 0 && words.is_possessive(end - 1);
    let first = owner.map_or(at, |owner| owner.at.start - usize::from(words.before(owner.at.start) == "the"));
    let before = words.before(first);
    // "has the biggest garden": the verb is "has".
    let is_verb = is_among(before, "has have had") && !is_verb_form(words.lower(end - 1));
    let is_subject = first > 0 && words.is_auxiliary(first - 1) && !is_verb;
    // "did the old man sell": the last word is the verb.
    let is_inverted = is_subject && !words.is_be(first - 1) && !is_owner;
    let is_named = !is_owner && words.is_next(end) && words.is_capital(end);
    if nouns == 0 || is_named && (!is_inverted || nouns == 1) {
        return None;
    }
    let (end, is_clear) = if is_inverted {
        (at + 2, nouns <= 2)
    } else {
        let is_progressive = is_subject && nouns > 1 && words.lower(end - 1).ends_with("ing");
        let verb = (at + 2..end).find(|at| is_verb_form(words.lower(*at)));
        (verb.unwrap_or(end), nouns <= MAX_NOUNS && !is_progressive)
    };
    let noun = words.bare(end - 1);
    if is_among(noun, ABSTRACT) {
        return None;
    }
    let number = number(noun);
    let begins = match owner {
        Some(owner) => owner.text.as_ref().map(|text| format!("{text}'s")),
        None => (words.lower(at) == "the").then(|| "the".to_owned()),
    };
    let begins = begins.filter(|_| is_clear && words.lower(end) != "of");
    Some(Mention {
        at: at..end,
        text: begins.map(|begins| format!("{begins} {}", words.span(at + 1..end))),
        nature: match number {
            Number::Several => Nature::Unknown,
            Number::One if is_among(noun, PERSONS) => Nature::Person,
            Number::One if ["er", "or", "ist", "ian"].iter().any(|end| noun.ends_with(end)) => Nature::Unknown,
            Number::One | Number::Either => Nature::Thing,
        },
        gender: gender(noun),
        number,
        noun: noun.to_owned(),
        is_place: false,
        role: match () {
            () if is_subject && !is_owner => Role::Subject,
            () if is_preposition(before) => Role::Beside,
            () => Role::Other,
        },
    })
}

/// A plural without a determiner, which "they" may refer to.
fn plural(words: &Words<'_>, at: usize) -> Option<Mention> {
    let before = words.before(at);
    if !(words.is_noun(at) && is_plural(words.lower(at)) && is_among(before, BEFORE_PLURALS)) {
        return None;
    }
    Some(Mention {
        at: at..at + 1,
        text: None,
        nature: Nature::Unknown,
        gender: None,
        number: Number::Several,
        noun: words.lower(at).to_owned(),
        is_place: false,
        role: match () {
            () if is_among(before, "many which what") || is_preposition(before) => Role::Beside,
            () if words.is_auxiliary(at - 1) => Role::Subject,
            () => Role::Other,
        },
    })
}

/// Two names with "and" between them.
fn joined(words: &Words<'_>, one: &Mention, other: &Mention) -> Option<Mention> {
    let and = one.at.end;
    let next = and + 1 + usize::from(words.lower(and + 1) == "the");
    let is_pair = words.lower(and) == "and" && next == other.at.start && (and..=next).all(|at| words.is_next(at));
    let (first, second) = (one.text.as_ref()?, other.text.as_ref()?);
    (is_pair && !one.is_phrase(words) && !other.is_phrase(words)).then(|| Mention {
        at: one.at.start..other.at.end,
        text: Some(format!("{first} and {second}")),
        number: Number::Several,
        noun: String::new(),
        is_place: false,
        ..one.clone()
    })
}

/// Words of a request that begin it.
const REQUESTS: &str = "name list tell give find describe explain show say";

const BEFORE_PLACES: &str = "in at near into across through within";

const BEFORE_PLURALS: &str =
    "do did are were have can could will would many which what of by for in with from about some all most how and";
