//! Pronouns that may refer to something in their own question: "Why did the king sell his crown?".

use super::mentions::{Mention, Role};
use super::words::{Words, is_among, is_preposition};
use super::{Class, Form, Pronoun};

/// Whether a pronoun may refer to something that its own question names or asks for. `own` are the mentions of the question.
pub(super) fn is_bound(pronoun: &Pronoun, words: &Words<'_>, own: &[Mention]) -> bool {
    // "that company" refers to no other noun.
    if pronoun.class == Class::That {
        return false;
    }
    let (at, class) = (pronoun.at.start, pronoun.class);
    let fitting = || own.iter().filter(move |mention| class.fits(mention));
    let has_comma = |mention: &Mention| (at + 1..=mention.at.start).any(|at| words.gap(at).contains(','));
    fitting().any(|mention| mention.at.end <= at && is_bound_by(mention, pronoun, words))
        || fitting().any(|mention| mention.at.start > at && has_comma(mention))
        || is_bound_by_asked(pronoun, words)
}

/// Whether a pronoun may refer to a mention before it.
fn is_bound_by(mention: &Mention, pronoun: &Pronoun, words: &Words<'_>) -> bool {
    let (end, at) = (mention.at.end, pronoun.at.start);
    // "How many games did they win?"
    let is_asked = is_among(words.before(mention.at.start), "many which what");
    if is_asked && (words.is_auxiliary(at - 1) || has_do(words, end, at)) {
        return false;
    }
    // "Who was the father of her child?"
    let is_inside =
        end + 1 == at && is_preposition(words.lower(end)) && (mention.role != Role::Subject || words.is_copular());
    // "When did the team win it?"
    let is_object = pronoun.form == Form::Object && !(end..at).any(|at| words.is_boundary(at));
    !is_inside && !is_object
}

/// Whether a pronoun may refer to what the question asks for: "Which player broke his arm?".
fn is_bound_by_asked(pronoun: &Pronoun, words: &Words<'_>) -> bool {
    let at = pronoun.at.start;
    let Some(asked) = words.asking().filter(|asked| *asked < at) else { return false };
    let noun = asked + 1 + usize::from(words.bare(asked) == "how");
    let is_phrase = match words.bare(asked) {
        "which" | "whose" => !is_preposition(words.lower(noun)),
        "what" => noun < at && !words.is_auxiliary(noun) && words.is_noun(noun) && !words.lower(noun).ends_with("ed"),
        "how" => matches!(words.lower(asked + 1), "many" | "much") && !is_preposition(words.lower(noun)),
        _ => false,
    };
    let is_person = matches!(words.bare(asked), "who" | "whom");
    let may_be = match pronoun.class {
        Class::He | Class::She | Class::They => is_phrase || is_person,
        Class::It => is_phrase,
        Class::There | Class::That => false,
    };
    let is_object = pronoun.form == Form::Object && !(asked + 1..at).any(|at| words.is_boundary(at));
    let is_subject = has_do(words, asked, at) || words.is_auxiliary(at - 1);
    // "Who was the father of her child?", "What share of its budget was spent?"
    let is_inside =
        is_preposition(words.before(at)) && (words.is_copular() || (noun..at - 1).all(|at| words.is_noun(at)));
    may_be && !is_object && !is_subject && !is_inside
}

/// Whether "do" is between two words, so that another word than the question word is the subject.
fn has_do(words: &Words<'_>, from: usize, to: usize) -> bool {
    (from..to).any(|at| matches!(words.lower(at), "do" | "does" | "did" | "didn't"))
}
