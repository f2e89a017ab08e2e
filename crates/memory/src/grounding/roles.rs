//! Whether two texts give the same names the same roles.

use std::ops::Range;

use super::claims::PREPOSITIONS;
use super::negation::Clauses;
use super::opposites::comparisons;
use super::values::Values;
use super::words::{Word, bare, is_past};

/// A text as words with the names in it.
pub(super) struct Named<'a> {
    pub words: &'a [Word],
    pub values: &'a Values,
    pub clauses: &'a Clauses,
}

/// Two names in one order in the claim and only in the other in the span, both in the active or both in the passive voice,
/// with a word between them in both: "A beat B" does not support "B beat A", but "The capital of B is A" supports "A is the
/// capital of B". Where both texts say what something of one of the names is, the owners are compared instead of the order.
pub(super) fn turned(claim: &Named<'_>, shown: &Named<'_>) -> bool {
    let passive = |words: &[Word]| words.iter().any(|word| word.lower == "by");
    let heads: Vec<&str> = claim.values.names.iter().filter_map(|name| name.last()).map(String::as_str).collect();
    let both_equate = equates(claim.words) && equates(shown.words);
    passive(claim.words) == passive(shown.words)
        && heads.windows(2).filter(|pair| pair[0] != pair[1]).any(|pair| {
            let owners = [claim, shown].map(|text| [pair[0], pair[1]].map(|name| owns(text.words, name)));
            match owners {
                [said, given] if both_equate && said.contains(&true) && given.contains(&true) => said != given,
                _ => is_other_way(claim.words, shown.words, pair[0], pair[1]),
            }
        })
        || passive(claim.words) == passive(shown.words) && !both_equate && is_reversed(claim, shown)
}

/// Whether three content words of a clause around a verb are in the span in the other order only: "the dog bit the man".
fn is_reversed(claim: &Named<'_>, shown: &Named<'_>) -> bool {
    let triples = |named: &Named<'_>| -> Vec<[String; 3]> {
        let content: Vec<usize> = (0..named.words.len()).filter(|at| named.words[*at].stem.is_some()).collect();
        let is_of_clause = |run: &&[usize]| named.clauses.clause(run[0]) == named.clauses.clause(run[2]);
        let is_verb = |run: &&[usize]| is_past(&named.words[run[1]].lower) || named.words[run[1]].lower.ends_with('s');
        let stem = |at: usize| named.words[at].stem.clone().unwrap_or_default();
        let runs = content.windows(3).filter(is_of_clause).filter(is_verb);
        runs.map(|run| [stem(run[0]), stem(run[1]), stem(run[2])]).filter(|[a, _, c]| a != c).collect()
    };
    let (said, given) = (triples(claim), triples(shown));
    said.iter().any(|[a, b, c]| given.contains(&[c.clone(), b.clone(), a.clone()]))
        && !said.iter().any(|triple| given.contains(triple))
}

/// Whether a form of "be" is the only verb.
fn equates(words: &[Word]) -> bool {
    words.iter().any(is_be) && !words.iter().any(|word| !is_be(word) && is_past(&word.lower))
}

/// Whether a name has a possessive ending or follows "of".
fn owns(words: &[Word], name: &str) -> bool {
    let before = |at: usize, back: usize| at.checked_sub(back).map_or("", |at| words[at].lower.as_str());
    let is_owner = |at: usize| {
        words[at].lower.ends_with("'s") || before(at, 1) == "of" || before(at, 1) == "the" && before(at, 2) == "of"
    };
    (0..words.len()).any(|at| bare(&words[at].lower) == name && is_owner(at))
}

/// Whether a name is before another in the claim and only behind it in the span, and the same content word or comparison is
/// between them in both.
fn is_other_way(said: &[Word], given: &[Word], first: &str, second: &str) -> bool {
    let find = |words: &[Word], name: &str| words.iter().position(|word| bare(&word.lower) == name);
    let rfind = |words: &[Word], name: &str| words.iter().rposition(|word| bare(&word.lower) == name);
    let (Some(from), Some(to)) = (find(said, first), rfind(said, second)) else { return false };
    let (Some(before), Some(after)) = (find(given, first), rfind(given, second)) else { return false };
    let between = |words: &[Word], from: usize, to: usize| -> Vec<String> {
        let between: Vec<&Word> = words.get(from + 1..to).unwrap_or_default().iter().collect();
        // "from Brno to Vienna"
        let is_direction = |word: &Word| DIRECTIONS.contains(&word.lower.as_str());
        let is_alone = between.iter().all(|word| word.capital || is_direction(word));
        let compares = |word: &Word| !comparisons(&word.lower).is_empty();
        let meaning = |word: &&Word| {
            let counts = compares(word) || is_alone && is_direction(word);
            word.stem.clone().or_else(|| counts.then(|| word.lower.clone()))
        };
        between.iter().filter_map(meaning).collect()
    };
    let (said, given) = (between(said, from, to), between(given, after, before));
    before > after && said.iter().any(|stem| given.contains(stem))
}

/// Whether a sentence gives the role of a claim to other names only: "Ann Lee is the deputy director; its director is Tom Roe" does not
/// support "Tom Roe is the deputy director". A name has the role that it is joined with by a form of "be" or a mark.
pub(super) fn is_role_of_another(claim: &Named<'_>, shown: &Named<'_>) -> bool {
    let (said, given) = (claim.words, shown.words);
    let has_role = |pair: &[Word]| is_be(&pair[0]) && is_article(&pair[1]);
    let Some(be) = said.windows(2).position(has_role) else { return false };
    let is_name = |word: &&Word| word.capital && word.stem.is_some();
    let name: Vec<&str> = said[..be].iter().filter(is_name).map(|word| bare(&word.lower)).collect();
    let role: Vec<&String> = said[be + 2..].iter().map_while(|word| word.stem.as_ref()).collect();
    let is_role = |at: &usize| {
        let run = given.get(*at..at + role.len()).unwrap_or_default();
        !role.is_empty() && run.iter().filter_map(|word| word.stem.as_ref()).eq(role.iter().copied())
    };
    let owners = |at: usize| -> Vec<&str> {
        let skipped = given[..at].iter().rev().take_while(|word| is_be(word) || is_article(word)).count();
        let (before, behind) = (&given[..at - skipped], &given[at + role.len()..]);
        let is_joined = |word: &Word, other: usize| {
            let clause = |at: usize| shown.clauses.clause(at);
            !word.lower.ends_with("'s") && (given[before.len()..at].iter().any(is_be) || clause(other) != clause(at))
        };
        // "In Rome, the current king" is not the role of Rome.
        let first = before.len() - before.iter().rev().take_while(is_name).count();
        let is_inside = first.checked_sub(1).is_some_and(|at| PREPOSITIONS.contains(&before[at].lower.as_str()));
        let is_before = !is_inside && before.last().is_some_and(|last| is_joined(last, before.len() - 1));
        let before = before[first..].iter().filter(|_| is_before);
        // "The king of Spain, Felipe"
        let from = match behind {
            [of, owner, ..] if of.lower == "of" && is_name(&owner) => {
                let place = at + role.len() + 1;
                let is_of_owner =
                    |at: &usize| is_name(&&given[*at]) && shown.clauses.clause(*at) == shown.clauses.clause(place);
                1 + (place..given.len()).take_while(is_of_owner).count()
            }
            _ => 0,
        };
        let behind = behind[from..].iter().skip_while(|word| is_be(word)).take_while(is_name);
        before.chain(behind).map(|word| bare(&word.lower)).collect()
    };
    let is_of_other = |at: usize| {
        let owners = owners(at);
        !owners.is_empty() && !owners.iter().any(|owner| name.contains(owner))
    };
    let mut places = (0..given.len()).filter(is_role).peekable();
    let is_known = |part: &&str| given.iter().any(|word| bare(&word.lower) == *part);
    !name.is_empty() && name.iter().all(is_known) && places.peek().is_some() && places.all(is_of_other)
}

fn is_be(word: &Word) -> bool {
    matches!(word.lower.as_str(), "is" | "are" | "was" | "were")
}

fn is_article(word: &Word) -> bool {
    matches!(word.lower.as_str(), "a" | "an" | "the")
}

/// Words that give the name behind them another role than the one before them.
const DIRECTIONS: [&str; 5] = ["by", "for", "from", "than", "to"];

/// The places of names in the span that the claim does not have, between the same two words between which the claim has this one:
/// "a French party left" does not support "a British party left", even if the sentence before speaks of the British.
pub(super) fn replacing(name: &[String], claim: &[Word], words: &[Word]) -> Vec<usize> {
    let is_here = |run: &[Word]| name.iter().zip(run).all(|(part, word)| part == bare(&word.lower));
    let Some(at) = claim.windows(name.len().max(1)).position(is_here) else { return Vec::new() };
    let is_known = |word: &Word| claim.iter().any(|own| own.lower == word.lower);
    let is_other = |word: &Word| word.capital && !word.is_function() && !is_known(word);
    let others = |run: &[Word]| run.iter().take_while(|word| is_other(word)).count();
    others_at(claim, at..at + name.len(), words, others)
}

/// Whether the span has another content word in the place of one of the claim that it lacks: "his gold watch" does not support
/// "his silver watch". Units and two comparisons are compared by themselves.
pub(super) fn is_exchanged(claim: &Named<'_>, shown: &Named<'_>) -> bool {
    let (said, given) = (claim.words, shown.words);
    let compares = |word: &Word| !comparisons(&word.lower).is_empty();
    let is_plain = |word: &Word| word.stem.is_some() && !word.capital && !word.number;
    let is_unit = |at: usize| claim.values.numbers.iter().any(|number| number.unit_at.contains(&at));
    let lacks = |word: &Word| is_plain(word) && !given.iter().any(|other| other.stem == word.stem);
    let is_other = |word: &Word| is_plain(word) && !said.iter().any(|own| own.stem == word.stem);
    (0..said.len()).filter(|at| lacks(&said[*at]) && !is_unit(*at)).any(|at| {
        let is_last = at + 1 == said.len();
        let is_rival = |other: &Word| is_other(other) && !(compares(other) && compares(&said[at]));
        let is_here = |run: &[Word]| run.first().is_some_and(is_rival) && (!is_last || run.len() == 1);
        !others_at(said, at..at + 1, given, |run| usize::from(is_here(run))).is_empty()
    })
}

/// The places of a text where others are between the words between which a run of the claim is. `others` counts those that a
/// stretch of the text begins with; behind the end of the claim may be anything.
fn others_at(claim: &[Word], run: Range<usize>, words: &[Word], others: impl Fn(&[Word]) -> usize) -> Vec<usize> {
    let before = run.start.checked_sub(1).map(|at| &claim[at].lower);
    let after = claim.get(run.end).map(|word| &word.lower);
    // The others begin behind the same word or with the sentence.
    let begins = |from: &usize| match before {
        Some(before) => *from > 0 && words[*from - 1].lower == *before,
        None => *from == 0,
    };
    let has_others = |from: &usize| {
        let length = others(&words[*from..]);
        length > 0 && after.is_none_or(|after| words.get(from + length).is_some_and(|word| word.lower == *after))
    };
    (0..words.len()).filter(begins).filter(has_others).collect()
}
