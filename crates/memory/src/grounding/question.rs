//! What a question asks for, read off its words.

use std::collections::{BTreeSet, HashSet};

use super::words::{Word, bare, is_past, words};

/// The kind of answer that the question words ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Person,
    Place,
    Time,
    Count,
    Amount,
    Share,
    Group,
    Thing,
    Which,
    Manner,
    Reason,
    Polar,
}

pub(super) const KINDS: usize = 12;

/// A question, taken apart.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub kind: Kind,
    /// Stems of the content words in their order, without those of the question phrase.
    pub terms: Vec<String>,
    /// The noun that names what is asked for: `team` in "Which team won?".
    pub focus: Option<String>,
    /// The main verb, as far as word order tells: "won" in "Who won ...?", "sell" in "What did the old man sell ...?".
    pub verb: Option<String>,
    /// The question phrase is not the subject: "do", "does" or "did" follows it.
    pub asks_object: bool,
    /// The answers that the question offers: "older, A or B?".
    pub options: Vec<String>,
    /// More than one answer may be asked for.
    pub is_list: bool,
    /// Stems of the content words of a model's reply that are not in the question; empty without a reply.
    pub replied: BTreeSet<String>,
}

impl Question {
    pub fn parse(text: &str) -> Question {
        let words = words(text);
        let ask = words.iter().position(|word| ASKING.contains(&bare(&word.lower)));
        let polar = words.first().is_some_and(|word| AUXILIARIES.contains(&word.lower.as_str()));
        let options = options(text);
        let (kind, focus_at) = match ask {
            _ if polar && options.is_empty() => (Kind::Polar, None),
            Some(at) if !polar => kind(&words, at),
            _ => (Kind::Which, None),
        };
        let after_phrase = focus_at.or(ask).map_or(0, |at| at + 1);
        let rest = &words[after_phrase.min(words.len())..];
        let asks_object = rest.first().is_some_and(|word| matches!(word.lower.as_str(), "do" | "does" | "did"));
        let verb = match asks_object {
            true => verb_after_subject(&rest[1..]),
            false => rest.iter().find_map(|word| word.stem.clone()),
        };
        let names_one = matches!(kind, Kind::Person | Kind::Place | Kind::Group | Kind::Which | Kind::Thing);
        let is_list = names_one && focus_at.is_some_and(|at| is_plural(&words[at].lower));
        // "old" of "how old": the text has the age, not the adjective.
        let measure = ask.filter(|at| kind == Kind::Amount && words[*at].lower == "how").map(|at| at + 1);
        let is_term = |at: usize| Some(at) != focus_at && Some(at) != measure;
        let term = |(at, word): (usize, &Word)| word.stem.clone().filter(|_| is_term(at));
        Question {
            kind,
            terms: words.iter().enumerate().filter_map(term).collect(),
            focus: focus_at.and_then(|at| words[at].stem.clone()),
            verb,
            asks_object,
            options,
            is_list,
            replied: BTreeSet::new(),
        }
    }

    /// The question with a model's reply to it.
    pub fn with_reply(mut self, reply: &str) -> Question {
        let is_new = |stem: &String| !self.terms.contains(stem) && self.focus.as_ref() != Some(stem);
        self.replied = words(reply).into_iter().filter_map(|word| word.stem).filter(is_new).collect();
        self
    }

    /// F1 of the content words of a span and the new words of the reply; words of the question do not count.
    pub fn agreement(&self, span: &[Word]) -> f32 {
        let is_new = |stem: &&String| !self.terms.contains(stem) && self.focus.as_ref() != Some(stem);
        let stems: HashSet<&String> = span.iter().filter_map(|word| word.stem.as_ref()).filter(is_new).collect();
        let shared = stems.iter().filter(|stem| self.replied.contains(**stem)).count();
        2.0 * shared as f32 / (stems.len() + self.replied.len()).max(1) as f32
    }

    /// The share of the content words of an answer that are words of the question.
    pub fn echo(&self, answer: &[Word]) -> f64 {
        let stems: Vec<&String> = answer.iter().filter_map(|word| word.stem.as_ref()).collect();
        let asked = |stem: &&&String| self.terms.contains(**stem) || self.focus.as_ref() == Some(**stem);
        stems.iter().filter(asked).count() as f64 / stems.len().max(1) as f64
    }
}

/// The last content word before the first function word behind a subject; articles and "of" are part of the subject.
fn verb_after_subject(words: &[Word]) -> Option<String> {
    let subject = |word: &&Word| {
        word.stem.is_some() || matches!(word.lower.as_str(), "the" | "a" | "an" | "of" | "his" | "her" | "their")
    };
    words.iter().take_while(subject).filter_map(|word| word.stem.clone()).last()
}

/// The kind that the question word at a place and what follows it ask for, and the place of the focus noun.
pub(super) fn kind(words: &[Word], at: usize) -> (Kind, Option<usize>) {
    let next = words.get(at + 1).map_or("", |word| word.lower.as_str());
    match bare(&words[at].lower) {
        "who" | "whom" | "whose" => (Kind::Person, None),
        "where" => (Kind::Place, None),
        "when" => (Kind::Time, None),
        "why" => (Kind::Reason, None),
        "how" => match next {
            "many" => (Kind::Count, Some(at + 2).filter(|focus| *focus < words.len())),
            "much" | "long" | "far" | "old" | "tall" | "high" | "large" | "big" | "fast" | "deep" | "wide"
            | "heavy" => (Kind::Amount, None),
            "often" => (Kind::Time, None),
            _ => (Kind::Manner, None),
        },
        asked => {
            let focus = focus(words, at);
            let named = focus.map_or(String::new(), |focus| singular(&words[focus].lower));
            let has = |list: &str| list.split_ascii_whitespace().any(|noun| noun == named);
            let kind = match () {
                () if has(PERSONS) => Kind::Person,
                () if has(PLACES) => Kind::Place,
                () if has(TIMES) => Kind::Time,
                () if has(COUNTS) => Kind::Count,
                () if has(AMOUNTS) => Kind::Amount,
                () if has(SHARES) => Kind::Share,
                () if has(GROUPS) => Kind::Group,
                () if asked == "which" => Kind::Which,
                () => Kind::Thing,
            };
            (kind, focus)
        }
    }
}

/// The focus noun of "what" or "which": the last word before the first function word or verb form, or the noun after
/// "is the" ("What is the name of ...", "What was the capital of ...").
fn focus(words: &[Word], at: usize) -> Option<usize> {
    let mut from = at + 1;
    let is_contracted = words[at].lower.ends_with("'s");
    if is_contracted || words.get(from).is_some_and(|word| FORMS_OF_BE.contains(&word.lower.as_str())) {
        from += usize::from(!is_contracted);
        if !words.get(from).is_some_and(|word| matches!(word.lower.as_str(), "the" | "a" | "an" | "one")) {
            return None;
        }
        from += 1;
        let of = words[from..].iter().position(|word| word.lower == "of" || word.lower == "for");
        let end = of.map_or_else(|| words.len().min(from + 2), |of| from + of);
        if of.is_some() && end > from && matches!(words[end - 1].lower.as_str(), "name" | "type" | "kind") {
            let inner = end + 1 + usize::from(words.get(end + 1).is_some_and(|word| word.lower == "the"));
            return (inner < words.len() && words[inner].stem.is_some()).then_some(inner);
        }
        return (end > from && end - from <= 4 && words[end - 1].stem.is_some()).then_some(end - 1);
    }
    if words.get(from).is_some_and(|word| matches!(word.lower.as_str(), "kind" | "type" | "kinds" | "types" | "sort")) {
        from += 2;
    }
    let run = words.get(from..)?.iter().take_while(|word| word.stem.is_some() && !is_past(&word.lower)).count();
    (1..=4).contains(&run).then(|| from + run - 1)
}

pub(super) fn is_plural(lower: &str) -> bool {
    lower.len() > 3 && lower.ends_with('s') && !lower.ends_with("ss") && !lower.ends_with("us") && lower != "series"
}

fn singular(lower: &str) -> String {
    match lower.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None if is_plural(lower) => lower.trim_end_matches('s').to_owned(),
        None => lower.to_owned(),
    }
}

/// The last two phrases around " or ", if the question ends with a choice: after a comma, a colon or the verb.
fn options(text: &str) -> Vec<String> {
    let text = text.trim().trim_end_matches(['?', '.', ' ']);
    let Some(or) = text.rfind(" or ") else { return Vec::new() };
    let (before, after) = (&text[..or], &text[or + 4..]);
    let before = before.trim_end_matches(',');
    let listed = before.rfind([',', ':', ';']).map(|at| &before[at + 1..]);
    // Without a comma: the capitalised run that ends before "or".
    let run = || {
        let words = words(before);
        let start = words.iter().rposition(|word| !word.capital && !matches!(word.lower.as_str(), "of" | "the"))?;
        words.get(start + 1).map(|word| &before[word.range.start..])
    };
    let Some(first) = listed.or_else(run) else { return Vec::new() };
    [first, after].map(|option| option.trim().to_owned()).into_iter().filter(|option| !option.is_empty()).collect()
}

pub(super) const FORMS_OF_BE: [&str; 4] = ["is", "was", "are", "were"];

pub(super) const ASKING: [&str; 9] = ["who", "whom", "whose", "what", "which", "when", "where", "why", "how"];

pub(super) const AUXILIARIES: [&str; 17] = [
    "is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "will", "would", "should",
    "must", "may",
];

const PERSONS: &str = "person man woman actor actress author writer singer musician artist player president king queen \
emperor leader scientist physicist mathematician director producer composer engineer general governor inventor explorer \
philosopher poet quarterback coach founder architect character father mother brother sister son daughter husband wife";
const PLACES: &str = "place city country state town village island river county region continent area location province \
district mountain lake street nation venue capital sea stadium territory birthplace nationality";
const TIMES: &str = "year date day month decade century time era period season age years century";
const COUNTS: &str = "number population count amount";
const AMOUNTS: &str = "height length width weight size distance speed temperature cost price area depth";
const SHARES: &str = "percentage percent proportion fraction share portion rate";
const GROUPS: &str = "company organization organisation team band university school college agency group network party \
newspaper studio institution church league club magazine army";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_words_and_nouns_give_the_kind() {
        let kind = |text| Question::parse(text).kind;
        assert_eq!(kind("Who sold the watch?"), Kind::Person);
        assert_eq!(kind("In what year did it begin?"), Kind::Time);
        assert_eq!(kind("How many points did they give up?"), Kind::Count);
        assert_eq!(kind("How much did it cost?"), Kind::Amount);
        assert_eq!(kind("What percentage of people left?"), Kind::Share);
        assert_eq!(kind("Which NFL team won?"), Kind::Group);
        assert_eq!(kind("What is the capital of France?"), Kind::Place);
        assert_eq!(kind("Did Jim sell the watch?"), Kind::Polar);
        assert_eq!(kind("Why did she cry?"), Kind::Reason);
        assert_eq!(
            (kind("What's the capital of France?"), kind("Who\u{2019}s the king?")),
            (Kind::Place, Kind::Person)
        );
    }

    #[test]
    fn the_main_verb_is_found_behind_the_subject() {
        let verb = |text: &str| Question::parse(text).verb;
        assert_eq!(verb("What did the old man sell to the king?"), Some("sell".to_owned()));
        assert_eq!(verb("Who won the game?"), verb("Who wins the game?"));
        assert!(Question::parse("What did Jim buy?").asks_object && !Question::parse("Who bought it?").asks_object);
    }

    #[test]
    fn options_of_a_choice_are_read_off_the_question() {
        let options = |text| Question::parse(text).options;
        assert_eq!(options("Who is older, Annie Morton or Terry Richardson?"), ["Annie Morton", "Terry Richardson"]);
        assert_eq!(options("Is it red or blue?"), Vec::<String>::new(), "no list and no names");
        assert_eq!(options("Who was born first Ann Lee or Bo Derek?"), ["Ann Lee", "Bo Derek"]);
        assert!(options("Who won?").is_empty());
    }

    #[test]
    fn the_adjective_of_how_old_is_not_looked_for() {
        assert_eq!(Question::parse("How old was Jim?").terms, ["jim"]);
        assert!(Question::parse("Who wore the old hat?").terms.contains(&"old".to_owned()));
    }

    #[test]
    fn a_span_agrees_with_the_new_words_of_a_reply() {
        let question = Question::parse("What did Jim sell?").with_reply("Jim sold a gold watch.");
        let agreement = |span: &str| question.agreement(&words(span));
        assert_eq!((agreement("the gold watch"), agreement("Jim"), agreement("a hat")), (1.0, 0.0, 0.0));
        assert!((0.6..0.7).contains(&agreement("the watch")));
        assert_eq!(Question::parse("What did Jim sell?").agreement(&words("the watch")), 0.0, "without a reply");
    }

    #[test]
    fn plural_focus_nouns_ask_for_lists() {
        assert!(Question::parse("Which cities hosted the games?").is_list);
        assert!(!Question::parse("Which city hosted the games?").is_list);
        assert!(!Question::parse("How many cities hosted the games?").is_list);
    }
}
