//! Negations, by the clause that they are in.
//!
//! "Jim, who had no money, sold his watch." states that Jim sold his watch, although it holds a negation. So the words of a
//! sentence are compared with those of a claim clause by clause. Clauses end at punctuation, at relative pronouns and at
//! conjunctions, which is a rough rule: where it and the whole sentence disagree, neither is trusted.

use std::collections::HashSet;

use super::claims::PREPOSITIONS;
use super::words::Word;

/// The words of a text by clauses, with its negations.
#[derive(Debug, Clone)]
pub(super) struct Clauses {
    /// The clause of each word, from 0.
    of_word: Vec<usize>,
    /// The part of the text of each word, from 0: parts end at semicolons and at conjunctions behind a comma.
    segments: Vec<usize>,
    /// Whether a mark is directly before each word.
    marked: Vec<bool>,
    /// Whether each word negates.
    negates: Vec<bool>,
    /// Whether no word shows that the text is English.
    is_foreign: bool,
    /// Whether the text has direct speech.
    has_speech: bool,
}

/// How the negations of a sentence relate to those of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Polarity {
    Same,
    Opposite,
    /// The clause and the whole sentence differ, or the sentence may only report the claim.
    Unclear,
}

impl Clauses {
    pub fn read(words: &[Word], text: &str) -> Clauses {
        let gap = |at: usize| words.get(at + 1).map_or("", |next| &text[words[at].range.end..next.range.start]);
        let is_foreign = !words.iter().any(|word| ENGLISH.contains(&word.lower.as_str()));
        let (mut of_word, mut negates, mut clause) = (Vec::new(), Vec::new(), 0);
        let (mut segments, mut marked, mut segment) = (Vec::new(), Vec::new(), 0);
        for (at, word) in words.iter().enumerate() {
            let follows_mark = at > 0 && gap(at - 1).contains(MARKS);
            let begins = CONJUNCTIONS.contains(&word.lower.as_str()) || begins_exception(words, at);
            if at > 0 && (follows_mark || begins) {
                clause += 1;
            }
            let is_joined = || gap(at - 1).contains(',') && JOINING.contains(&word.lower.as_str());
            if at > 0 && (gap(at - 1).contains(';') || is_joined()) {
                segment += 1;
            }
            of_word.push(clause);
            segments.push(segment);
            marked.push(follows_mark);
            negates.push(negates_at(words, at, gap(at), is_foreign));
        }
        let has_speech = text.contains(QUOTES) || [",'", ",’"].iter().any(|end| text.contains(*end));
        Clauses { of_word, segments, marked, negates, is_foreign, has_speech }
    }

    /// Whether the text has a negation.
    pub fn any(&self) -> bool {
        self.negates.contains(&true)
    }

    pub fn negates(&self, at: usize) -> bool {
        self.negates[at]
    }

    /// The clause of a word.
    pub fn clause(&self, at: usize) -> usize {
        self.of_word[at]
    }

    /// The part of the text that a word is in.
    pub fn segment(&self, at: usize) -> usize {
        self.segments[at]
    }

    /// Whether a mark is directly before a word.
    pub fn follows_mark(&self, at: usize) -> bool {
        self.marked[at]
    }

    /// Whether the text has direct speech.
    pub fn has_speech(&self) -> bool {
        self.has_speech
    }

    /// The number of clauses.
    pub fn count(&self) -> usize {
        self.of_word.last().map_or(0, |last| last + 1)
    }

    /// The stems of the words of a clause.
    pub fn stems_of<'a>(&self, clause: usize, words: &'a [Word]) -> HashSet<&'a String> {
        let own = words.iter().enumerate().filter(|(at, _)| self.of_word[*at] == clause);
        own.filter_map(|(_, word)| word.stem.as_ref()).collect()
    }

    /// The clauses with most of these stems; none if no clause has one.
    pub fn best_for(&self, stems: &HashSet<&String>, words: &[Word]) -> Vec<usize> {
        let shared = |clause: usize| self.stems_of(clause, words).intersection(stems).count();
        let most = (0..self.count()).map(shared).max().unwrap_or(0);
        (0..self.count()).filter(|clause| most > 0 && shared(*clause) == most).collect()
    }

    /// Whether the first word of a clause is this one, in lower case.
    pub fn begins_with(&self, clause: usize, words: &[Word], lower: &str) -> bool {
        self.of_word.iter().position(|of| *of == clause).is_some_and(|first| words[first].lower == lower)
    }

    /// Whether the words at these places negate as a whole: two negations of English cancel each other, those of other languages
    /// come in pairs that negate once.
    fn is_negative(&self, is_in: impl Fn(usize) -> bool) -> bool {
        let negations = (0..self.negates.len()).filter(|at| self.negates[*at] && is_in(*at)).count();
        if self.is_foreign { negations > 0 } else { negations % 2 == 1 }
    }

    /// Whether a "not" behind a mark names what something is not beside what it is: "It is on Tuesday, not Monday", but not "allowed (not
    /// on Sundays)".
    fn begins_contrast(&self, words: &[Word], at: usize) -> bool {
        let leads = |next: &Word| PREPOSITIONS.contains(&next.lower.as_str());
        self.marked[at] && words[at].lower == "not" && words.get(at + 1).is_some_and(|next| !leads(next))
    }
}

/// How the negations of the words of a sentence relate to those of the words of a claim.
pub(super) fn polarity(claim: (&[Word], &Clauses), shown: (&[Word], &Clauses)) -> Polarity {
    let ((said, said_clauses), (given, given_clauses)) = (claim, shown);
    let same = if lacks_exception(claim, shown) { Polarity::Unclear } else { Polarity::Same };
    if let Some(run) = run_of(said, given) {
        let clause = given_clauses.of_word[run];
        // "It is not true | that Jim sold his watch."
        let is_reported = clause > 0 && given_clauses.begins_with(clause, given, "that");
        let first = clause - usize::from(is_reported);
        let reports = (0..run).any(|at| given_clauses.of_word[at] >= first && given_clauses.negates[at]);
        // "Jim sold nothing." does not say that Jim sold.
        let end = run + said.len();
        let is_denial = |at: usize| given_clauses.negates[at] && !given_clauses.begins_contrast(given, at);
        let denies = end < given.len() && is_denial(end) && !begins_exception(given, end);
        return if reports || denies { Polarity::Unclear } else { same };
    }
    let stems: HashSet<&String> = said.iter().filter_map(|word| word.stem.as_ref()).collect();
    let names: HashSet<&String> =
        said.iter().filter(|word| word.capital).filter_map(|word| word.stem.as_ref()).collect();
    // "The team won without injuries." is no denial of a claim that does not speak of injuries.
    let is_apart = |at: usize| {
        let clause = given_clauses.of_word[at];
        let first = given_clauses.of_word.iter().position(|of| *of == clause).unwrap_or(at);
        let is_contrast = given_clauses.begins_contrast(given, first);
        (begins_exception(given, first) || is_contrast) && given_clauses.stems_of(clause, given).is_disjoint(&stems)
    };
    let whole = said_clauses.is_negative(|_| true) != given_clauses.is_negative(|at| !is_apart(at));
    let by_clause = (0..said_clauses.count()).any(|clause| {
        let negative = said_clauses.is_negative(|at| said_clauses.of_word[at] == clause);
        let mut best = given_clauses.best_for(&said_clauses.stems_of(clause, said), given);
        // "Neither Ann nor Bob passed, while Cleo did."
        let is_named = |clause: &usize| given_clauses.stems_of(*clause, given).iter().any(|stem| names.contains(*stem));
        if said_clauses.count() == 1 && best.iter().any(is_named) {
            best.retain(is_named);
        }
        let differs = |clause: usize| given_clauses.is_negative(|at| given_clauses.of_word[at] == clause) != negative;
        !best.is_empty() && best.into_iter().all(differs)
    });
    match (whole, by_clause) {
        (false, false) => same,
        (true, true) if !is_limited(&stems, given, given_clauses) => Polarity::Opposite,
        _ => Polarity::Unclear,
    }
}

/// Whether a claim lacks the exception that follows in the sentence from what it forbids, permits or says of all: "Subletting is
/// prohibited without consent" does not say that it always is. "Without" is an exception only from what is denied.
fn lacks_exception(claim: (&[Word], &Clauses), shown: (&[Word], &Clauses)) -> bool {
    let ((said, said_clauses), (given, given_clauses)) = (claim, shown);
    let has = |list: &[&str]| said.iter().any(|word| list.contains(&word.lower.as_str()));
    let is_denial = said_clauses.any() || has(&PROHIBITIONS);
    let is_rule = is_denial || has(&RULES);
    let is_exception = |words: &[Word], at: usize| match words[at].lower.as_str() {
        "without" => is_denial,
        "except" | "excluding" | "unless" => is_rule,
        "other" => is_rule && words.get(at + 1).is_some_and(|next| next.lower == "than"),
        _ => false,
    };
    let best = given_clauses.best_for(&said.iter().filter_map(|word| word.stem.as_ref()).collect(), given);
    let follows = |at: usize| best.contains(&given_clauses.clause(at - 1));
    !(0..said.len()).any(|at| is_exception(said, at))
        && (1..given.len()).any(|at| is_exception(given, at) && follows(at))
}

/// Whether words of a claim are only in a clause that limits a negation: "not until 1905", "nothing but his watch".
fn is_limited(stems: &HashSet<&String>, given: &[Word], clauses: &Clauses) -> bool {
    let limits = |clause: &usize| LIMITS.iter().any(|word| clauses.begins_with(*clause, given, word));
    let shared = |clause: usize| -> Vec<&String> {
        clauses.stems_of(clause, given).into_iter().filter(|stem| stems.contains(*stem)).collect()
    };
    let elsewhere: HashSet<&String> = (0..clauses.count()).filter(|clause| !limits(clause)).flat_map(shared).collect();
    (0..clauses.count()).filter(limits).flat_map(shared).any(|stem| !elsewhere.contains(stem))
}

/// Where the words of a claim are in a sentence, one after the other.
pub(super) fn run_of(said: &[Word], given: &[Word]) -> Option<usize> {
    let is_here = |run: &[Word]| run.iter().zip(said).all(|(a, b)| a.lower == b.lower);
    given.windows(said.len().max(1)).position(is_here)
}

/// Whether a word negates. "No" before a mark only answers, before a number it is "number", and "not only" does not negate.
fn negates_at(words: &[Word], at: usize, gap: &str, is_foreign: bool) -> bool {
    let next = words.get(at + 1);
    let lower = words[at].lower.as_str();
    match lower {
        "no" => {
            next.is_none_or(|next| !next.number || next.lower == "one")
                && !gap.contains([',', ';', ':', '.', '!', '"', '”', '\u{201c}'])
        }
        // "Neither" and "nor" negate once.
        "nor" => !words[..at].iter().any(|word| word.lower == "neither"),
        "not" => next.is_none_or(|next| next.lower != "only"),
        _ if NEGATIONS.contains(&lower) || lower.ends_with("n't") || begins_exception(words, at) => true,
        _ if REFUSALS.contains(&lower) => next.is_some_and(|next| next.lower == "to"),
        _ => FOREIGN.contains(&lower) || is_foreign && AMBIGUOUS.contains(&lower),
    }
}

/// Whether a word begins a clause that excludes what it names: "without a word", "instead of the watch".
fn begins_exception(words: &[Word], at: usize) -> bool {
    let next = words.get(at + 1).map_or("", |next| next.lower.as_str());
    match words[at].lower.as_str() {
        "without" | "except" | "excluding" => true,
        "instead" => next == "of",
        "rather" => next == "than",
        _ => false,
    }
}

const NEGATIONS: [&str; 10] =
    ["not", "no", "never", "none", "neither", "nobody", "nothing", "cannot", "hardly", "unable"];

/// Verbs that deny what "to" follows.
const REFUSALS: [&str; 9] =
    ["decline", "declined", "declines", "fail", "failed", "fails", "refuse", "refused", "refuses"];

/// Words that forbid.
const PROHIBITIONS: [&str; 9] =
    ["ban", "banned", "bans", "forbid", "forbidden", "forbids", "prohibit", "prohibited", "prohibits"];

/// Words of a rule or of a statement about all.
const RULES: [&str; 12] =
    ["all", "allowed", "always", "any", "anyone", "can", "every", "everyone", "everything", "may", "must", "permitted"];

/// Words that begin a clause in which a negation does not hold.
const LIMITS: [&str; 2] = ["but", "until"];

/// Negations of Arabic, Chinese, Dutch, French, German, Greek, Hindi, Italian, Polish, Portuguese, Romanian, Russian, Spanish,
/// Swedish, Turkish and Vietnamese that are no words of English.
const FOREIGN: [&str; 77] = [
    "لا",
    "لم",
    "لن",
    "ليس",
    "ليست",
    "بدون",
    "不",
    "没",
    "沒",
    "无",
    "無",
    "未",
    "niet",
    "geen",
    "nooit",
    "jamais",
    "aucun",
    "aucune",
    "rien",
    "nicht",
    "nie",
    "kein",
    "keine",
    "keinen",
    "keinem",
    "keiner",
    "keines",
    "niemals",
    "nichts",
    "niemand",
    "ohne",
    "δεν",
    "δε",
    "μην",
    "ποτέ",
    "χωρίς",
    "नहीं",
    "बिना",
    "mai",
    "nessun",
    "nessuno",
    "nessuna",
    "niente",
    "senza",
    "nigdy",
    "bez",
    "não",
    "nunca",
    "ninguém",
    "nenhum",
    "nenhuma",
    "sem",
    "niciodată",
    "niciun",
    "fără",
    "не",
    "нет",
    "никогда",
    "никто",
    "ничего",
    "без",
    "jamás",
    "nadie",
    "ningún",
    "ninguno",
    "ninguna",
    "tampoco",
    "inte",
    "aldrig",
    "ingen",
    "inga",
    "değil",
    "yok",
    "hiçbir",
    "không",
    "chưa",
    "chẳng",
];

/// Negations of other languages that are words of English too, or parts of them.
const AMBIGUOUS: [&str; 8] = ["sin", "non", "pas", "sans", "ni", "nu", "nada", "nulla"];

/// Words of English that texts in languages with [`AMBIGUOUS`] negations do not have.
const ENGLISH: [&str; 16] =
    ["the", "and", "to", "with", "of", "she", "they", "that", "which", "is", "was", "are", "were", "his", "her", "did"];

/// Marks between clauses.
const MARKS: [char; 12] = [',', ';', ':', '(', ')', '—', '–', '"', '“', '”', '，', '،'];

/// Marks around direct speech.
const QUOTES: [char; 6] = ['"', '“', '”', '„', '«', '»'];

/// Conjunctions that begin another statement behind a comma.
pub(super) const JOINING: [&str; 6] = ["and", "but", "so", "while", "whereas", "yet"];

/// Words that begin a clause.
const CONJUNCTIONS: [&str; 19] = [
    "and", "but", "because", "although", "though", "while", "whereas", "if", "unless", "when", "until", "since",
    "that", "who", "whom", "whose", "which", "where", "so",
];

#[cfg(test)]
mod tests {
    use super::super::words::words;
    use super::*;

    fn of(claim: &str, shown: &str) -> Polarity {
        let (said, given) = (words(claim), words(shown));
        polarity((&said, &Clauses::read(&said, claim)), (&given, &Clauses::read(&given, shown)))
    }

    #[test]
    fn a_negation_of_another_clause_does_not_negate() {
        for (shown, want) in [
            ("Jim sold his watch.", Polarity::Same),
            ("Jim, who had no money, sold his watch.", Polarity::Unclear),
            ("Without a word Jim left; then Jim sold his watch.", Polarity::Same),
            ("Jim did not sell his watch.", Polarity::Opposite),
            ("Jim, who was not poor, did not sell his watch.", Polarity::Unclear),
            ("He could not say whether Jim sold his watch.", Polarity::Unclear),
            ("\"No,\" said Ann, \"Jim has sold his watch.\"", Polarity::Same),
            ("Jim sold his watch without a word.", Polarity::Same),
            ("Jim sold his watch never.", Polarity::Unclear),
            ("No one sold his watch.", Polarity::Opposite),
            ("Jim not only sold his watch but left.", Polarity::Same),
            ("It is not true that Jim sold his watch.", Polarity::Unclear),
            ("Jim sold his old watch without a word.", Polarity::Same),
            ("Jim sold a chain instead of his watch.", Polarity::Unclear),
            ("All except Jim sold his watch.", Polarity::Unclear),
            ("Jim refused to sell his watch.", Polarity::Opposite),
            ("The failed coup ruined Jim, and he sold his watch.", Polarity::Same),
            ("Jim sold his watch, not the chain.", Polarity::Same),
            ("Jim sold his old watch, not the chain.", Polarity::Same),
            ("Ann, not Jim, sold his watch.", Polarity::Unclear),
            ("Jim sold his watch (not in May).", Polarity::Unclear),
        ] {
            assert_eq!(of("Jim sold his watch.", shown), want, "{shown}");
        }
        assert_eq!(of("Jim did not sell his watch.", "Jim sold his watch."), Polarity::Opposite);
        let later = "Jim did not sell his watch until 1905.";
        assert_eq!(of("Jim sold his watch in 1905.", later), Polarity::Unclear);
        assert_eq!(of("Jim sold his watch.", later), Polarity::Opposite);
        assert_eq!(of("Jim sold his watch.", "Jim sold nothing but his old watch."), Polarity::Unclear);
    }

    #[test]
    fn a_rule_without_its_exception_is_unclear() {
        for (claim, shown) in [
            ("Subletting is prohibited.", "Subletting is prohibited without consent."),
            ("Parking is forbidden.", "Parking is forbidden except on Mondays."),
            ("Parking is forbidden.", "Parking in the yard is forbidden except on Mondays."),
            ("Cars may enter.", "Cars other than taxis may enter."),
            ("Everyone left.", "Everyone left except Ann."),
            ("No one may enter.", "No one may enter without a helmet."),
        ] {
            assert_eq!(of(claim, shown), Polarity::Unclear, "{claim} {shown}");
            assert_eq!(of(shown, shown), Polarity::Same, "{shown}");
        }
        for (claim, shown) in [
            ("Guests may enter.", "Guests may enter without a ticket."),
            ("The club is open.", "The club is open except on Mondays."),
            ("Parking is forbidden.", "Parking is forbidden, and guests pay except on Mondays."),
        ] {
            assert_eq!(of(claim, shown), Polarity::Same, "{claim} {shown}");
        }
    }

    #[test]
    fn negations_are_known_in_other_languages() {
        for (shown, claim) in [
            ("Ana no vendió su reloj.", "Ana vendió su reloj."),
            ("Ana salió sin dinero.", "Ana salió con dinero."),
            ("Anna hat ihre Uhr nicht verkauft.", "Anna hat ihre Uhr verkauft."),
            ("Анна не продала часы.", "Анна продала часы."),
            ("安娜没有卖掉手表。", "安娜卖掉了手表。"),
        ] {
            assert_eq!(of(claim, shown), Polarity::Opposite, "{shown}");
        }
        // Two negations of French or Spanish negate once.
        assert_eq!(of("Ana no vendió nada.", "Ana nunca vendió nada."), Polarity::Same);
        let sin = "The sin of Ann is great, and she knows it.";
        assert!(!Clauses::read(&words(sin), sin).any());
    }
}
