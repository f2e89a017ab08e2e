//! The pronouns of an English question, replaced by what the turns before it name: "When was he born?" after "Who founded
//! Acme?" and "Ada Example." becomes "When was Ada Example born?". Small models, which rewrite badly, then read a question that
//! names its subject.
//!
//! Rules over words and closed lists, which need no model. A pronoun stays as it is if several names of the same standing
//! fit it, if none fits in number, gender and as a person or a thing, or if it may refer to something in its own question.

mod answers;
mod bound;
mod mentions;
mod nouns;
#[cfg(test)]
mod tests;
mod words;

use std::ops::Range;

use answers::of_turn;
use bound::is_bound;
use mentions::{Mention, Role, of_question};
use nouns::{Gender, Nature, Number, is_verb_form};
use words::{Words, is_among, is_preposition};

/// What pronouns refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    He,
    She,
    It,
    They,
    /// A place.
    There,
    /// "That" or "this" with a noun.
    That,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Subject,
    Object,
    Possessive,
}

/// A pronoun of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pronoun {
    /// Its words.
    at: Range<usize>,
    class: Class,
    form: Form,
}

/// An earlier turn.
struct Earlier {
    mentions: Vec<Mention>,
    /// Its question refers to the turns before it.
    goes_on: bool,
}

/// Lower-case texts, each with the pronoun that referred to it.
type Known = Vec<(String, Class)>;

/// A question with its pronouns replaced; `None` if none is. `turns` are the questions and answers before it, in order.
pub(crate) fn resolved(question: &str, turns: &[(&str, &str)]) -> Option<String> {
    let (mut before, mut known) = (Vec::<Earlier>::new(), Known::new());
    for (asked, answer) in turns {
        let understood = replaced(asked, &before, &mut known);
        let mentions = of_turn(understood.as_deref().unwrap_or(asked), answer);
        let words = Words::of(asked);
        let goes_on = words.count() <= MAX_WORDS_OF_ELLIPSIS || !pronouns(&words).is_empty();
        before.push(Earlier { mentions, goes_on });
    }
    replaced(question, &before, &mut known)
}

/// A question of so few words ("For whom?") continues the one before it.
const MAX_WORDS_OF_ELLIPSIS: usize = 2;

fn replaced(question: &str, before: &[Earlier], known: &mut Known) -> Option<String> {
    let words = Words::of(question);
    if before.is_empty() || !is_english(&words) {
        return None;
    }
    let own = of_question(&words);
    let all = pronouns(&words);
    let mut edits: Vec<(&Pronoun, String)> = Vec::new();
    for class in Class::ALL {
        let of_class = || all.iter().filter(move |pronoun| pronoun.class == class);
        let has = |form: Form| of_class().any(|pronoun| pronoun.form == form);
        // Later ones refer to the first, unless one is the subject and another the object of a verb.
        let Some(first) = of_class().next() else { continue };
        if has(Form::Subject) && has(Form::Object) || is_bound(first, &words, &own) {
            continue;
        }
        let Some(referent) = referent(first, &words, before, known) else { continue };
        if is_named(&referent, first, &words) {
            continue;
        }
        // What "he" refers to is not what "she" or "it" refers to.
        if class != Class::There && edits.iter().any(|(_, text)| *text == referent) {
            edits.retain(|(_, text)| class == Class::It || *text != referent);
            continue;
        }
        edits.push((first, referent));
    }
    known.extend(edits.iter().map(|(pronoun, text)| (text.to_lowercase(), pronoun.class)));
    edits.sort_by_key(|(pronoun, _)| pronoun.at.start);
    let mut text = question.to_owned();
    for (pronoun, referent) in edits.iter().rev() {
        text.replace_range(words.bytes(pronoun.at.clone()), &written(referent, pronoun, &words));
    }
    (!edits.is_empty()).then_some(text)
}

/// Whether a question is English: it has a question word, or begins as "Was he" does.
fn is_english(words: &Words<'_>) -> bool {
    let is_polar = words.is_auxiliary(0) && is_among(words.lower(1), "he she it they his her its their that this");
    words.asking().is_some() || is_polar
}

/// The pronouns of a question, without those that refer to nothing ("Is it true ...?", "Is there ...?").
fn pronouns(words: &Words<'_>) -> Vec<Pronoun> {
    let pronoun = |at: usize| {
        let is_word = words.span(at..at + 1).chars().skip(1).all(char::is_lowercase);
        if !is_word || at > 0 && words.is_capital(at) {
            return None;
        }
        let owns = || {
            let is_noun = words.is_content(at + 1) || is_among(words.lower(at + 1), "own most more other");
            words.is_next(at + 1) && is_noun
        };
        let is_alone =
            |noun: usize| words.is_noun(noun) && (!words.is_noun(noun + 1) || is_verb_form(words.lower(noun + 1)));
        let is_behind_auxiliary = at == 0 || words.is_auxiliary(at - 1);
        let (class, form) = match words.lower(at) {
            "he" => (Class::He, Form::Subject),
            "she" => (Class::She, Form::Subject),
            "they" => (Class::They, Form::Subject),
            "him" => (Class::He, Form::Object),
            "them" => (Class::They, Form::Object),
            "his" if owns() => (Class::He, Form::Possessive),
            "its" if owns() => (Class::It, Form::Possessive),
            "their" if owns() => (Class::They, Form::Possessive),
            "her" if owns() && !words.lower(at + 1).ends_with("ly") => (Class::She, Form::Possessive),
            "her" => (Class::She, Form::Object),
            "it" if is_empty_subject(words, at) => return None,
            "it" if is_behind_auxiliary => (Class::It, Form::Subject),
            "it" => (Class::It, Form::Object),
            "there" if !is_behind_auxiliary && !words.is_be(at + 1) => (Class::There, Form::Object),
            "that" | "this" if is_alone(at + 1) => (Class::That, Form::Object),
            _ => return None,
        };
        let end = at + 1 + usize::from(class == Class::That);
        Some(Pronoun { at: at..end, class, form })
    };
    (0..words.count()).filter_map(pronoun).collect()
}

/// Whether "it" refers to nothing: "Did it rain?", "Is it true that ...?", "What time is it?".
fn is_empty_subject(words: &Words<'_>, at: usize) -> bool {
    let is_time = at >= 2 && words.is_be(at - 1) && is_among(words.lower(at - 2), "time day date year month");
    is_time && !words.is_content(at + 1)
        || words.is_next(at + 1) && is_among(words.lower(at + 1), BEHIND_EMPTY_SUBJECTS)
}

const BEHIND_EMPTY_SUBJECTS: &str = "rain raining snow snowing take took taken true that possible impossible necessary likely \
unlikely important legal illegal safe";

/// What a pronoun refers to, as it is written in a question.
fn referent(pronoun: &Pronoun, words: &Words<'_>, before: &[Earlier], known: &[(String, Class)]) -> Option<String> {
    let class = pronoun.class;
    let fits = |mention: &Mention| match class {
        Class::That => is_that(mention, words.lower(pronoun.at.start + 1)),
        class => class.fits(mention),
    };
    let fitting = |turn: &Earlier| -> Vec<Mention> {
        turn.mentions.iter().map(|mention| with_known(mention, known)).filter(fits).collect()
    };
    let mut turns = before.iter().rev();
    let found = loop {
        let turn = turns.next()?;
        let found = fitting(turn);
        if !found.is_empty() {
            break chosen(found, class)?;
        }
        if !turn.goes_on {
            return None;
        }
    };
    // A name that may be that of a thing does not replace a person of an earlier turn.
    let is_surer = |mention: &Mention| class.is_certain(mention) && !mention.is_same(&found);
    let is_person = matches!(class, Class::He | Class::She);
    if is_person && !class.is_certain(&found) && turns.any(|turn| fitting(turn).iter().any(is_surer)) {
        return None;
    }
    found.text
}

/// Whether a mention with a name is what "that" with this noun means.
fn is_that(mention: &Mention, noun: &str) -> bool {
    let is_name = mention.text.as_ref().is_some_and(|text| text.contains(char::is_uppercase));
    is_name && mention.noun == noun && mention.number != Number::Several
}

/// A mention with what a pronoun of an earlier question showed about it.
fn with_known(mention: &Mention, known: &[(String, Class)]) -> Mention {
    let text = mention.text.as_ref().map(|text| text.to_lowercase());
    let shown = known
        .iter()
        .rev()
        .find(|(known, class)| text.as_ref() == Some(known) && matches!(class, Class::He | Class::She | Class::It));
    let Some((_, class)) = shown else { return mention.clone() };
    let nature = if *class == Class::It { Nature::Thing } else { Nature::Person };
    Mention { nature, gender: class.gender(), ..mention.clone() }
}

/// The one of several mentions that a pronoun refers to: the only one, or the only one in the first of these places that are
/// taken: subject of the question or answer to it, elsewhere, behind a preposition. None if another is more certain to fit.
fn chosen(fitting: Vec<Mention>, class: Class) -> Option<Mention> {
    let mut distinct: Vec<Mention> = Vec::new();
    for mention in fitting {
        match distinct.iter_mut().find(|other| other.is_same(&mention)) {
            Some(same) => *same = merged(same, &mention, class),
            None => distinct.push(mention),
        }
    }
    if distinct.len() == 1 {
        return distinct.pop();
    }
    let has_chief = distinct.iter().any(|mention| mention.role >= Role::Answer);
    let least = if has_chief { Role::Answer } else { Role::Other };
    let (mut best, others): (Vec<Mention>, Vec<Mention>) =
        distinct.into_iter().partition(|mention| mention.role >= least);
    let only = best.pop().filter(|_| best.is_empty())?;
    let rivals = |other: &Mention| class.is_certain(other) && !(other.role == Role::Beside && class.is_certain(&only));
    let is_gender = only.gender.is_some() && others.iter().all(|other| other.gender.is_none());
    (is_gender || !others.iter().any(rivals)).then_some(only)
}

/// Two mentions of the same: the longer text, in the better place.
fn merged(one: &Mention, other: &Mention, class: Class) -> Mention {
    let is_longer = other.text.as_ref().map(String::len) > one.text.as_ref().map(String::len);
    let text = if is_longer { &other.text } else { &one.text };
    let is_surer = !class.is_certain(one) && class.is_certain(other);
    let known = if is_longer || is_surer { other } else { one };
    Mention { text: text.clone(), role: one.role.max(other.role), ..known.clone() }
}

/// Whether a question has a content word of a referent beside the pronoun.
fn is_named(referent: &str, pronoun: &Pronoun, words: &Words<'_>) -> bool {
    let named = Words::of(referent);
    let is_there =
        |name: usize| (0..words.count()).any(|at| !pronoun.at.contains(&at) && words.bare(at) == named.bare(name));
    (0..named.count()).any(|name| named.is_content(name) && is_there(name))
}

/// A referent in the form and with the first letter of a pronoun.
fn written(referent: &str, pronoun: &Pronoun, words: &Words<'_>) -> String {
    let at = pronoun.at.start;
    let text = match (pronoun.form, pronoun.class) {
        (Form::Possessive, Class::They) if referent.ends_with('s') => format!("{referent}'"),
        (Form::Possessive, _) => format!("{referent}'s"),
        (_, Class::There) if !is_preposition(words.before(at)) => format!("in {referent}"),
        _ => referent.to_owned(),
    };
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if words.is_capital(at) => first.to_uppercase().chain(letters).collect(),
        _ => text,
    }
}

impl Class {
    const ALL: [Class; 6] = [Class::He, Class::She, Class::It, Class::They, Class::There, Class::That];

    fn gender(self) -> Option<Gender> {
        match self {
            Class::He => Some(Gender::Male),
            Class::She => Some(Gender::Female),
            _ => None,
        }
    }

    /// Whether a pronoun may refer to a mention.
    fn fits(self, mention: &Mention) -> bool {
        let is_one = mention.number != Number::Several;
        match self {
            Class::He | Class::She => {
                let is_gender = mention.gender.is_none_or(|gender| self.gender() == Some(gender));
                is_one && mention.nature != Nature::Thing && is_gender
            }
            Class::It => is_one && mention.nature != Nature::Person && mention.gender.is_none(),
            Class::They => mention.number != Number::One,
            Class::There => mention.is_place,
            Class::That => false,
        }
    }

    /// Whether it is known that a mention is what such pronouns refer to.
    fn is_certain(self, mention: &Mention) -> bool {
        match self {
            Class::He | Class::She => mention.nature == Nature::Person,
            Class::It => mention.nature == Nature::Thing,
            Class::They | Class::There | Class::That => true,
        }
    }
}
