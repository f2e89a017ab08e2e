//! An answer as claims: its sentences, cut where they join two statements.

use std::ops::Range;

use super::asking::is_english;
use super::asserted::is_main_clause;
use super::negation::{Clauses, JOINING, run_of};
use super::question::{Question, is_plural};
use super::speech::is_third;
use super::words::{Word, is_past, words};
use crate::core::cite::{sentences, without_number};

/// A statement of an answer that can be right or wrong by itself.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct Claim {
    /// As the answer has it.
    pub text: String,
    /// Bytes of the answer.
    pub start: usize,
    pub end: usize,
    /// Which sentence of the answer, from 0.
    pub sentence: usize,
}

/// The claims of an answer in their order, without the numbers of the items of a list.
pub fn claims(answer: &str) -> Vec<Claim> {
    let mut claims = Vec::new();
    let all = sentences(answer);
    let behind_number = |range: &Range<usize>| range.end - without_number(&answer[range.clone()]).len();
    // "3.1 Millionen" alone is a number.
    let is_list = all.iter().filter(|range| behind_number(range) > range.start).count() > 1;
    for (sentence, range) in all.into_iter().enumerate() {
        let from = if is_list { behind_number(&range) } else { range.start };
        for part in parts(&answer[from..range.end]) {
            let (start, end) = (from + part.start, from + part.end);
            claims.push(Claim { text: answer[start..end].to_owned(), start, end, sentence });
        }
    }
    claims
}

/// Ranges between semicolons, and between a comma with "and" or "but" if what follows has a subject and a verb of its own.
fn parts(sentence: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, _) in sentence.match_indices([';', ',']) {
        let after = &sentence[at + 1..];
        let joint = [" and ", " but "].iter().find(|joint| after.starts_with(**joint));
        let skip = match (&sentence[at..=at], joint) {
            (";", _) => 1,
            (",", Some(joint)) if is_clause(&after[joint.len()..]) && is_clause(&sentence[from..at]) => joint.len() + 1,
            _ => continue,
        };
        parts.push(trim(sentence, from..at));
        from = at + skip;
    }
    parts.push(trim(sentence, from..sentence.len()));
    parts.retain(|part| !part.is_empty());
    parts
}

fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let piece = &text[range.clone()];
    let start = range.start + (piece.len() - piece.trim_start().len());
    start..start + piece.trim().len()
}

/// Begins with a subject (a pronoun, "the" or a capitalised word) and has a second word that can be its verb.
fn is_clause(text: &str) -> bool {
    let words = words(text);
    let Some(first) = words.first() else { return false };
    let pronoun = SUBJECTS.contains(&first.lower.as_str());
    let has_verb = || (1..words.len()).any(|at| is_verb_form(&words[at].lower) || is_verb(&words, at, &|_| true));
    words.len() >= 3 && (pronoun || (first.capital || first.lower == "the") && has_verb())
}

/// A few words that state nothing by themselves, because no verb follows a subject: "a used car", "moved to Rome". Verbs are
/// known by their forms in the past of English only; see [`is_stated_by`] and [`is_told_by`] for others. Three words or more
/// that begin with a pronoun as subject are no fragment. `is_name` tells whether a word in lower case that begins the text is a
/// name.
pub(super) fn is_fragment(text: &str, is_name: &dyn Fn(&str) -> bool) -> bool {
    let words = words(text);
    let has_subject = words.len() >= 3 && words.first().is_some_and(|word| SUBJECTS.contains(&word.lower.as_str()));
    !has_subject && words.len() <= 8 && !has_verb(&words, is_name)
}

/// Whether a few words that begin with the subject of the question are a statement of a sentence: "Anna lives in Rome" as an
/// answer to "Where does Anna reside?". The word behind the subject must have the form of a verb, and in the sentence its clause
/// has no other one: "Apple stores in Europe" is only a part of "Apple stores in Europe closed". The form is the present of
/// English, or in a question of another language a word in lower case of at least four letters, since most prepositions and
/// conjunctions are shorter. In an English sentence no content word may follow, which can be the verb.
pub(super) fn is_stated_by(asked: &str, text: &str, sentence: &str) -> bool {
    let (question, said, given) = (words(asked), words(text), words(sentence));
    let focus = Question::parse(asked).focus;
    // "Eva speaks Polish" may answer "Which languages does she speak?".
    let has_pronoun = question.iter().any(|word| is_third(&word.lower));
    let is_asked = |word: &&Word| {
        let is_subject =
            word.stem.is_some() && word.stem != focus && question.iter().any(|own| own.lower == word.lower)
                || word.capital && word.stem.is_some() && has_pronoun;
        is_subject || DETERMINERS.contains(&word.lower.as_str())
    };
    let subject = said.iter().take_while(is_asked).count();
    let is_form = |word: &Word| match is_english(&question) {
        true => is_present(&word.lower),
        false => word.lower.chars().nth(3).is_some() && said[..subject].iter().any(|word| word.capital),
    };
    let Some(verb) = said.get(subject).filter(|word| word.stem.is_some() && !word.capital && !word.number) else {
        return false;
    };
    let Some(place) = given.iter().position(|word| word.lower == verb.lower) else { return false };
    let clauses = Clauses::read(&given, sentence);
    said[..subject].iter().any(|word| word.stem.is_some())
        && subject + 1 < said.len()
        && is_form(verb)
        && !(is_english(&question) && is_followed(&said, &given, &clauses))
        && !has_other_verb(&said, &given, &clauses, place)
}

/// Whether a few words are a statement of a sentence in the present of English, which has the same verb with the same subject or
/// a pronoun at the beginning of a clause without another verb: "Maya takes the tram" of "Maya: I take the tram to work".
pub(super) fn is_told_by(text: &str, sentence: &str) -> bool {
    let (said, given) = (words(text), words(sentence));
    let Some(verb) = present_verb(&said) else { return false };
    let clauses = Clauses::read(&given, sentence);
    let is_same = |other: &Word| {
        let is_present = || !is_past(&other.lower) && !other.lower.ends_with("ing");
        other.stem.is_some() && other.stem == said[verb].stem && is_present()
    };
    let acts = |at: &usize| is_same(&given[*at]) && has_subject(&said[..verb], &given, &clauses, *at);
    let place = (1..given.len()).find(acts);
    !is_followed(&said, &given, &clauses) && place.is_some_and(|place| !has_other_verb(&said, &given, &clauses, place))
}

/// Whether a few words are a statement by their form alone: a verb in the present is between its subject and an article.
pub(super) fn is_statement(text: &str) -> bool {
    let words = words(text);
    present_verb(&words).is_some_and(|verb| DETERMINERS.contains(&words[verb + 1].lower.as_str()))
}

/// The place of what can be a verb in the present: behind a name or a noun in the singular, in a text that begins with a name or
/// an article, and not at its end.
fn present_verb(words: &[Word]) -> Option<usize> {
    let is_content = |word: &Word| word.stem.is_some() && !word.number;
    let is_noun = |word: &Word| is_content(word) && (word.capital || !is_plural(&word.lower));
    let is_form = |word: &Word| is_content(word) && !word.capital && is_present(&word.lower);
    let first = words.first()?;
    let has_subject = first.capital && is_content(first) || DETERMINERS.contains(&first.lower.as_str());
    (1..words.len() - 1).find(|at| has_subject && is_form(&words[*at]) && is_noun(&words[at - 1]))
}

/// Whether a clause begins with a pronoun, or with a name or a noun of a subject, and the word at a place is behind it.
fn has_subject(subject: &[Word], given: &[Word], clauses: &Clauses, at: usize) -> bool {
    let own = (0..at).filter(|other| clauses.clause(*other) == clauses.clause(at)).map(|other| &given[other]);
    let before: Vec<&Word> = own.skip_while(|word| JOINING.contains(&word.lower.as_str())).collect();
    let is_said = |word: &Word| subject.iter().any(|own| own.lower == word.lower);
    let is_of_name = |word: &Word| word.capital && word.stem.is_some();
    let is_article = |word: &Word| DETERMINERS.contains(&word.lower.as_str());
    match &before[..] {
        [pronoun] if SUBJECTS.contains(&pronoun.lower.as_str()) => true,
        [.., last] => is_said(last) && before.iter().all(|word| is_said(word) || is_of_name(word) || is_article(word)),
        [] => false,
    }
}

/// Whether a content word that can be the verb is behind the last word of a text in a sentence: "sell" of "Apple stores in Europe
/// also sell phones", but not "every".
fn is_followed(said: &[Word], given: &[Word], clauses: &Clauses) -> bool {
    let is_adverb = |word: &Word| {
        let begins_phrase = || [&PREPOSITIONS[..], &DETERMINERS].concat().contains(&word.lower.as_str());
        word.lower.ends_with("ly") || word.is_function() && !begins_phrase()
    };
    let ends = said.last().and_then(|last| given.iter().rposition(|word| word.lower == last.lower));
    ends.is_some_and(|at| {
        let behind = (at + 1..given.len()).take_while(|other| clauses.clause(*other) == clauses.clause(at));
        let next = behind.map(|other| &given[other]).find(|word| !is_adverb(word));
        next.is_some_and(|next| next.stem.is_some() && !next.capital && !next.number && next.lower != "every")
    })
}

/// Whether the clause of a place has a verb that a text lacks.
fn has_other_verb(said: &[Word], given: &[Word], clauses: &Clauses, place: usize) -> bool {
    let is_other = |at: usize| {
        clauses.clause(at) == clauses.clause(place)
            && is_verb(given, at, &|_| true)
            && !said.iter().any(|word| word.lower == given[at].lower)
    };
    (0..given.len()).any(is_other)
}

/// Whether words are one after the other in a sentence as a part of a clause whose verb is another: "a house built in 1920" of "Bob sold
/// a house built in 1920".
pub(super) fn is_part_of_clause(text: &str, span: &str) -> bool {
    let said = words(text);
    sentences(span).into_iter().any(|range| {
        let given = words(&span[range.clone()]);
        let clauses = Clauses::read(&given, &span[range]);
        let Some(start) = run_of(&said, &given).filter(|_| !said.is_empty()) else { return false };
        let run = start..start + said.len();
        let (first, last) = (clauses.clause(start), clauses.clause(run.end - 1));
        let is_verb = |at: &usize| is_verb(&given, *at, &|_| true);
        let behind = (run.end..given.len()).take_while(|at| !begins_other_verb(&given, *at));
        (0..start).any(|at| clauses.clause(at) == first && is_verb(&at))
            || behind.filter(|at| clauses.clause(*at) == last).any(|at| is_verb(&at))
    })
}

/// Whether a word behind a statement begins what has a verb of its own: "Anna left Paris to be cured", "Anna sold the
/// house she had built", "Anna left before her mother died". "Before the war closed" can be the end of "Stores built
/// before the war closed".
fn begins_other_verb(given: &[Word], at: usize) -> bool {
    let is_person = |next: &Word| {
        let lower = next.lower.as_str();
        let is_owner = DETERMINERS.contains(&lower) && !matches!(lower, "a" | "an" | "the");
        is_owner || PRONOUNS.contains(&lower) || next.capital && next.stem.is_some() && !next.number
    };
    match given[at].lower.as_str() {
        "to" => true,
        "after" | "before" => given.get(at + 1).is_some_and(is_person),
        lower => PRONOUNS.contains(&lower),
    }
}

/// Whether words are a main clause of a sentence with a verb in the present behind a name: "Maria speaks Finnish" of "Unlike Paul, Maria
/// speaks Finnish".
pub(super) fn is_clause_of(text: &str, sentence: &str) -> bool {
    let (said, given) = (words(text), words(sentence));
    let is_name = |word: &Word| word.capital && word.stem.is_some();
    let acts = |pair: &[Word]| is_name(&pair[0]) && !pair[1].capital && !pair[1].number && is_present(&pair[1].lower);
    said.len() > 2 && said.windows(2).any(acts) && is_main_clause(&said, &given, &Clauses::read(&given, sentence))
}

/// Whether a word has the form of the third person.
fn is_present(lower: &str) -> bool {
    lower.len() > 3 && lower.ends_with('s') && !lower.ends_with("ss")
}

fn is_verb_form(lower: &str) -> bool {
    VERBS.contains(&lower) || is_past(lower) || PAST.contains(&lower)
}

/// Whether the first verb of a text has words before it, which can be its subject.
fn has_verb(words: &[Word], is_name: &dyn Fn(&str) -> bool) -> bool {
    let is_auxiliary = |lower: &str| matches!(lower, "cannot" | "do") || lower.ends_with("n't");
    let first = (0..words.len()).find(|at| is_auxiliary(&words[*at].lower) || is_verb(words, *at, is_name));
    first.is_some_and(|first| first > 0)
}

/// Whether a word can be the verb of a statement by its form and the words beside it. Capitalised words are names ("United",
/// "Alfred") or begin a text, where they have no subject. In doubt it is no verb, for a fragment is checked more strictly.
pub(super) fn is_verb(words: &[Word], at: usize, is_name: &dyn Fn(&str) -> bool) -> bool {
    let word = &words[at];
    let lower = word.lower.as_str();
    let (before, after) = (at.checked_sub(1).map(|at| &words[at]), words.get(at + 1));
    if VERBS.contains(&lower) {
        return before.is_none_or(|before| !word.capital && !DETERMINERS.contains(&before.lower.as_str()));
    }
    if word.capital || word.number || NO_VERBS.contains(&lower) {
        return false;
    }
    if AMBIGUOUS.contains(&lower) {
        // "Rent rose to 450 euros"
        let changes = |after: &Word| matches!(after.lower.as_str(), "by" | "from" | "to");
        if after.is_some_and(changes) && words.get(at + 2).is_some_and(|next| next.number) {
            return before.is_some_and(|before| before.stem.is_some());
        }
        return before.is_some_and(|before| is_object(before, after) || PRONOUNS.contains(&before.lower.as_str()));
    }
    // Every first word has a capital: "Old abandoned house".
    let is_named = |before: &Word| before.capital && (at > 1 || is_name(&before.lower));
    is_verb_form(lower) && !before.is_some_and(|before| is_attribute(before, is_named(before), after))
}

/// Whether the word behind a form is its object: "the guests left the house", "Anna left Paris", but not "the upper left corner".
fn is_object(before: &Word, after: Option<&Word>) -> bool {
    let has = |word: &Word, list: &[&str]| list.contains(&word.lower.as_str());
    let follows = |after: &Word| has(after, &DETERMINERS) || before.capital && after.capital && !after.is_function();
    before.stem.is_some() && after.is_some_and(follows)
}

/// Whether the words beside a past form make it an attribute or a noun: "a used car", "two used cars", "of the accused". A noun
/// may be its object too; behind a name or a pronoun it is.
fn is_attribute(before: &Word, is_named: bool, after: Option<&Word>) -> bool {
    let has = |list: &[&str]| list.contains(&before.lower.as_str());
    let is_subject = is_named && !before.number || has(&PRONOUNS);
    let is_noun = |after: &Word| after.stem.is_some() && !after.capital && !after.number;
    has(&DETERMINERS) || has(&PREPOSITIONS) || !is_subject && after.is_some_and(is_noun)
}

/// Pronouns that begin a clause as its subject.
pub(super) const SUBJECTS: [&str; 9] = ["he", "she", "it", "they", "we", "i", "you", "there", "this"];

/// Those of them that are always followed by a verb.
const PRONOUNS: [&str; 5] = ["he", "she", "they", "we", "i"];

const VERBS: [&str; 19] = [
    "is", "are", "was", "were", "has", "have", "had", "does", "did", "gets", "can", "could", "will", "would", "may",
    "might", "must", "shall", "should",
];

/// Past forms of irregular verbs beside those that stems are folded by; they have no other use.
const PAST: [&str; 66] = [
    "arose",
    "awoke",
    "bade",
    "befell",
    "beheld",
    "bled",
    "burnt",
    "clung",
    "crept",
    "dreamt",
    "dwelt",
    "fled",
    "flung",
    "forbade",
    "foresaw",
    "foretold",
    "forgave",
    "forsook",
    "found",
    "got",
    "knelt",
    "laid",
    "leant",
    "leapt",
    "learnt",
    "misled",
    "mistook",
    "outdid",
    "overcame",
    "overheard",
    "overran",
    "oversaw",
    "overslept",
    "overthrew",
    "overtook",
    "rebuilt",
    "redid",
    "remade",
    "resold",
    "retold",
    "rewrote",
    "shone",
    "shrank",
    "slew",
    "slid",
    "sprang",
    "spun",
    "stank",
    "strode",
    "strove",
    "strung",
    "stung",
    "swept",
    "swung",
    "tore",
    "understood",
    "undertook",
    "undid",
    "unwound",
    "upheld",
    "wept",
    "withdrew",
    "withheld",
    "withstood",
    "woke",
    "wove",
];

/// Past forms that are nouns or adjectives as often, so that the words beside them decide.
const AMBIGUOUS: [&str; 30] = [
    "beat", "bent", "bit", "bore", "bound", "bred", "burst", "cast", "cost", "cut", "felt", "hit", "hurt", "lay",
    "left", "let", "lit", "put", "quit", "read", "rose", "saw", "set", "shot", "shut", "split", "spoke", "spread",
    "stuck", "thought",
];

/// Words that look like past forms and are none.
const NO_VERBS: [&str; 11] =
    ["breed", "creed", "greed", "hatred", "indeed", "infrared", "kindred", "naked", "sacred", "speed", "wicked"];

pub(super) const DETERMINERS: [&str; 10] = ["a", "an", "the", "his", "her", "its", "their", "my", "our", "your"];

pub(super) const PREPOSITIONS: [&str; 11] = ["of", "in", "with", "from", "by", "for", "at", "on", "to", "into", "as"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_words_are_a_statement_only_if_a_verb_follows_a_subject() {
        for statement in [
            "Jim sold his watch",
            "Ada kept bees",
            "The fund raised 7 million",
            "Anna left Paris",
            "The guests left the house",
            "Yesterday he left",
            "The thieves fled at night",
            "Alfred Nobel was rich",
            "The firm misled the board",
            "The clerk put the lamp out",
            "Pensioners don't pay the fee",
            "Frost cannot start until April",
            "Maya gets up at six",
            "Many died of cold",
            "They left",
            "He is in Rome",
        ] {
            assert!(!is_fragment(statement, &|_| true), "{statement}");
        }
        for fragment in [
            "left Paris in 1921",
            "moved to Rome",
            "Moved to Rome",
            "was born in Rome",
            "Manchester United",
            "Alfred",
            "Will Smith",
            "George Will",
            "the will of Anna",
            "two hundred",
            "top speed",
            "a used car",
            "of the accused",
            "some used cars",
            "the old abandoned house",
            "the left hand",
            "upper left corner",
            "Upper left",
            "a red rose",
            "a second thought",
            "a burnt house",
            "the let rooms",
            "Anna verließ Paris",
            "巴黎",
        ] {
            assert!(is_fragment(fragment, &|_| true), "{fragment}");
        }
        assert!(is_fragment("Old abandoned house", &|lower| lower != "old"));
    }

    #[test]
    fn words_behind_the_subject_of_the_question_are_a_statement_where_their_clause_has_no_other_verb() {
        for (question, answer, sentence) in [
            ("Where does Anna reside", "Anna lives in Rome", "Anna lives in Rome, where she was born."),
            ("Which way does the river run", "The river flows north", "The river flows north."),
            ("Wo lebt Anna", "Anna wohnt in Rom", "Anna wohnt in Rom."),
            ("Où réside Anna", "Anna habite à Rome", "Anna habite à Rome avec son chat."),
        ] {
            assert!(is_stated_by(question, answer, sentence), "{answer}");
        }
        for (question, answer, sentence) in [
            ("What fell at Apple", "Apple stores in Europe", "Apple stores in Europe closed in 1984."),
            ("What fell at Apple", "Apple stores in Europe", "Apple stores in Europe sell phones."),
            ("Where does Anna reside", "in Rome", "Anna lives in Rome."),
            ("Which river flows north", "river banks of Rome", "The river banks of Rome are green."),
            ("Who came with Anna", "Anna and Tom", "Anna and Tom slept."),
            ("Wer kam mit Anna", "Anna und Tom", "Anna und Tom schliefen."),
            ("What did Ann buy", "two used cars", "Bob sold two used cars."),
        ] {
            assert!(!is_stated_by(question, answer, sentence), "{answer}");
        }
    }

    #[test]
    fn a_verb_in_the_present_with_its_own_subject_makes_a_statement_of_a_sentence() {
        for (answer, sentence) in [
            ("The vendor recommends a lamp", "The vendor recommends a lamp with 60 watts."),
            ("Cedar belongs to Sato", "Cedar belongs to Sato, the chemist."),
            ("The choir leaves the hall at 9", "In May, the choir leaves the hall at 9 every Monday."),
            ("Maya takes the tram", "Maya: I take the tram to work."),
            ("Ana Duarte plans a bridge", "It was cold, but Duarte plans a bridge for the port."),
            ("The boss wants a lamp", "The old boss of mine left; the boss wants a lamp."),
        ] {
            assert!(is_told_by(answer, sentence), "{answer}");
        }
        for (answer, sentence) in [
            ("Apple stores in Europe", "Apple stores in Europe also sell phones."),
            ("London parks in summer", "Children like London parks in summer."),
            ("Ellen wants to leave", "The board wants Ellen to leave."),
            ("The river banks of Rome", "The river banks of Rome are green."),
            ("Paul speaks Finnish", "Unlike Paul, Maria speaks Finnish."),
            ("The old sports club", "Ann joined the old sports club."),
            ("Anna lives in Rome", "Anna lived in Rome until 1990."),
            ("two used cars", "Bob sold two used cars."),
        ] {
            assert!(!is_told_by(answer, sentence), "{answer}");
        }
    }

    #[test]
    fn a_verb_in_the_present_before_an_article_makes_a_statement_by_itself() {
        for statement in [
            "The vendor recommends a lamp",
            "Maya takes the tram",
            "The boss wants his lamp",
            "Paris keeps the prize",
            "The new manager of the firm sells the boat",
        ] {
            assert!(is_statement(statement), "{statement}");
        }
        for fragment in [
            "Apple stores in Europe",
            "The sports cars the firm sold",
            "stores the guests liked",
            "The price this year",
            "the river banks",
            "Two sons",
        ] {
            assert!(!is_statement(fragment), "{fragment}");
        }
    }

    fn texts(answer: &str) -> Vec<String> {
        claims(answer).into_iter().map(|claim| claim.text).collect()
    }

    #[test]
    fn an_answer_is_cut_into_statements() {
        let answer =
            "Jim sold his watch; he was poor. Della sold her hair, and she bought a chain. It was red, white and blue.";
        let want = [
            "Jim sold his watch",
            "he was poor.",
            "Della sold her hair",
            "she bought a chain.",
            "It was red, white and blue.",
        ];
        assert_eq!(texts(answer), want);
        assert!(claims(answer).iter().all(|claim| answer[claim.start..claim.end] == claim.text));
        assert_eq!(claims(answer)[4].sentence, 2);
        assert!(claims("  ").is_empty());
        let list = "1. Jim sold the watch.\n2. Della wept.";
        assert_eq!(texts(list), ["Jim sold the watch.", "Della wept."]);
        assert_eq!(list.get(claims(list)[1].start..), Some("Della wept."));
        assert_eq!([texts("3. April 2024"), texts("3.")], [["3. April 2024"], ["3."]]);
        assert_eq!(texts("3. April 2024\n5. Mai 2024"), ["3. April 2024", "5. Mai 2024"]);
        assert_eq!(texts("The thieves fled, and Anna left Paris."), ["The thieves fled", "Anna left Paris."]);
        assert_eq!(texts("The thieves fled, and the guests slept."), ["The thieves fled", "the guests slept."]);
        assert_eq!(texts("Anna painted the door, and the old walls too.").len(), 1);
    }
}
