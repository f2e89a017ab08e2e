//! Negations, by the clause that they are in.
//!
//! "Jim, who had no money, sold his watch." states that Jim sold his watch, although it holds a negation. So the words of a
//! sentence are compared with those of a claim clause by clause. Clauses end at punctuation, at relative pronouns and at
//! conjunctions, which is a rough rule: where it and the whole sentence disagree, neither is trusted.

use std::collections::HashSet;

use super::words::Word;

/// The words of a text by clauses, with its negations.
#[derive(Debug, Clone)]
pub(super) struct Clauses {
    /// The clause of each word, from 0.
    of_word: Vec<usize>,
    /// Whether each word negates.
    negates: Vec<bool>,
    /// Whether no word shows that the text is English.
    is_foreign: bool,
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
        for (at, word) in words.iter().enumerate() {
            let follows_mark = at > 0 && gap(at - 1).contains(MARKS);
            if at > 0 && (follows_mark || CONJUNCTIONS.contains(&word.lower.as_str())) {
                clause += 1;
            }
            of_word.push(clause);
            negates.push(negates_at(words, at, gap(at), is_foreign));
        }
        Clauses { of_word, negates, is_foreign }
    }

    /// Whether the text has a negation.
    pub fn any(&self) -> bool {
        self.negates.contains(&true)
    }

    pub fn negates(&self, at: usize) -> bool {
        self.negates[at]
    }

    fn count(&self) -> usize {
        self.of_word.last().map_or(0, |last| last + 1)
    }

    /// Whether the words at these places negate as a whole: two negations of English cancel each other, those of other languages
    /// come in pairs that negate once.
    fn is_negative(&self, is_in: impl Fn(usize) -> bool) -> bool {
        let negations = (0..self.negates.len()).filter(|at| self.negates[*at] && is_in(*at)).count();
        if self.is_foreign { negations > 0 } else { negations % 2 == 1 }
    }
}

/// How the negations of the words of a sentence relate to those of the words of a claim.
pub(super) fn polarity(claim: (&[Word], &Clauses), shown: (&[Word], &Clauses)) -> Polarity {
    let ((said, said_clauses), (given, given_clauses)) = (claim, shown);
    if let Some(run) = run_of(said, given) {
        let clause = given_clauses.of_word[run];
        let reports = (0..run).any(|at| given_clauses.of_word[at] == clause && given_clauses.negates[at]);
        // "Jim sold nothing." does not say that Jim sold.
        let end = run + said.len();
        let denies = given.get(end).is_some_and(|next| given_clauses.negates[end] && next.lower != "without");
        return if reports || denies { Polarity::Unclear } else { Polarity::Same };
    }
    let whole = said_clauses.is_negative(|_| true) != given_clauses.is_negative(|_| true);
    let by_clause = (0..said_clauses.count()).any(|clause| {
        let is_own = |at: usize| said_clauses.of_word[at] == clause;
        let own: HashSet<&String> =
            said.iter().enumerate().filter(|(at, _)| is_own(*at)).filter_map(|(_, word)| word.stem.as_ref()).collect();
        let negative = said_clauses.is_negative(is_own);
        differs(&own, negative, given, given_clauses)
    });
    match (whole, by_clause) {
        (false, false) => Polarity::Same,
        (true, true) => Polarity::Opposite,
        _ => Polarity::Unclear,
    }
}

/// Whether all clauses that share most stems with a clause of a claim are negative where it is not, or the other way round.
fn differs(own: &HashSet<&String>, negative: bool, given: &[Word], clauses: &Clauses) -> bool {
    let shared = |clause: usize| {
        let words = given.iter().enumerate().filter(|(at, _)| clauses.of_word[*at] == clause);
        words.filter_map(|(_, word)| word.stem.as_ref()).filter(|stem| own.contains(stem)).collect::<HashSet<_>>().len()
    };
    let most = (0..clauses.count()).map(shared).max().unwrap_or(0);
    let mut best = (0..clauses.count()).filter(|clause| most > 0 && shared(*clause) == most);
    most > 0 && best.all(|clause| clauses.is_negative(|at| clauses.of_word[at] == clause) != negative)
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
        "no" => next.is_none_or(|next| !next.number) && !gap.contains([',', ';', ':', '.', '!', '"', '”', '\u{201c}']),
        "not" => next.is_none_or(|next| next.lower != "only"),
        _ if NEGATIONS.contains(&lower) || lower.ends_with("n't") => true,
        _ => FOREIGN.contains(&lower) || is_foreign && AMBIGUOUS.contains(&lower),
    }
}

const NEGATIONS: [&str; 13] = [
    "not", "no", "never", "none", "neither", "nor", "without", "nobody", "nothing", "cannot", "hardly", "unable",
    "failed",
];

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
            ("Jim not only sold his watch but left.", Polarity::Same),
        ] {
            assert_eq!(of("Jim sold his watch.", shown), want, "{shown}");
        }
        assert_eq!(of("Jim did not sell his watch.", "Jim sold his watch."), Polarity::Opposite);
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
