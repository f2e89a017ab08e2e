//! Words of a text with their byte ranges, stems and surface classes, and SQuAD's normalisation of an answer.

use std::ops::Range;

use calls::number_words;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// Bytes in the text, with a currency sign before and a percent sign after a number.
    pub range: Range<usize>,
    pub lower: String,
    /// What the word is matched by: the stem, irregular verb forms folded to the base form. `None` for function words.
    pub stem: Option<String>,
    /// Begins with an upper-case letter.
    pub capital: bool,
    /// At least two letters and no lower-case one: "US", "U.S".
    pub acronym: bool,
    /// Holds a digit or is a number word.
    pub number: bool,
}

impl Word {
    /// True for function words.
    pub fn is_function(&self) -> bool {
        self.stem.is_none() && is_function(&self.lower)
    }
}

/// Words by Unicode's rules (UAX 29).
pub(super) fn words(text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = text
        .unicode_word_indices()
        .map(|(start, word)| {
            let lower = word.nfc().collect::<String>().to_lowercase().replace('\u{2019}', "'");
            let digits = word.chars().any(char::is_numeric);
            let mut range = start..start + word.len();
            if digits {
                if let Some(sign) = text[..start].chars().next_back().filter(|c| CURRENCIES.contains(c)) {
                    range.start -= sign.len_utf8();
                }
                if text[range.end..].starts_with('%') {
                    range.end += 1;
                }
            }
            let stem = (!is_function(&lower)).then(|| stem(&lower)).flatten();
            let capital = word.starts_with(char::is_uppercase);
            let letters = word.chars().filter(|c| c.is_alphabetic()).count();
            let acronym = letters >= 2 && !word.chars().any(char::is_lowercase);
            Word { range, number: digits || is_number_word(&lower), lower, stem, capital, acronym }
        })
        .collect();
    // The month, not the verb.
    for at in 0..words.len() {
        let dated = |at: Option<usize>| at.and_then(|at| words.get(at)).is_some_and(|word| word.number);
        if words[at].lower == "may" && words[at].capital && (dated(Some(at + 1)) || dated(at.checked_sub(1))) {
            words[at].stem = Some("may".to_owned());
        }
    }
    words
}

/// A lower-case word without the ending of the possessive.
pub(super) fn bare(lower: &str) -> &str {
    lower.strip_suffix("'s").unwrap_or(lower)
}

/// The stem of one lower-case word; `None` for stop words of the index.
pub(super) fn stem(lower: &str) -> Option<String> {
    let bare = bare(lower);
    let base = IRREGULAR.iter().find(|(forms, _)| forms.split(' ').any(|form| form == bare)).map_or(bare, |(_, b)| *b);
    store::analyze(base).pop()
}

/// True for forms of irregular verbs that a stemmer does not join with the base form.
fn is_irregular_verb(lower: &str) -> bool {
    IRREGULAR.iter().any(|(forms, _)| forms.split(' ').any(|form| form == lower))
}

/// True for words that look like the past form of a verb.
pub(super) fn is_past(lower: &str) -> bool {
    lower.len() > 4 && lower.ends_with("ed") || is_irregular_verb(lower)
}

/// The words of an answer as SQuAD compares them: lower case, no ASCII punctuation, no articles.
pub fn normal_form(text: &str) -> String {
    let bare: String = text.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let words: Vec<&str> = bare.split_whitespace().filter(|word| !matches!(*word, "a" | "an" | "the")).collect();
    words.join(" ")
}

pub(crate) fn is_function(lower: &str) -> bool {
    FUNCTION_WORDS.split_ascii_whitespace().any(|word| word == lower)
}

/// Whether a lower-case word names a number or a scale of numbers.
pub(super) fn is_number_word(lower: &str) -> bool {
    number_words::value(lower).is_some() || matches!(lower, "dozen" | "hundred" | "thousand" | "million" | "billion")
}

/// Whether a lower-case word is a function word and a verb in one: "they're", "he'd".
pub(super) fn is_contraction(lower: &str) -> bool {
    let parts = lower.split_once('\'');
    parts.is_some_and(|(word, verb)| is_function(word) && matches!(verb, "re" | "ve" | "ll" | "d" | "s" | "m"))
}

pub(super) const CURRENCIES: [char; 5] = ['$', '€', '£', '¥', '₹'];

const FUNCTION_WORDS: &str = "a about after all also although am an and another any are as at be because been before \
being between both but by can could did do does doing done during each either else ever few for from get gets getting \
got had has have having he her here hers herself him himself his how however i if in into is it its itself just let \
may me might mine more most much must my myself neither no nor not of off on once only onto or other our ours \
ourselves out over own same shall she should since so some such than that the their theirs them themselves then there \
these they this those though through thus to too under until up upon us very was we were what when where whether which \
while who whom whose why will with within without would yet you your yours yourself don't didn't doesn't isn't wasn't \
weren't can't couldn't wouldn't won't i'm i've i'd i'll it's he's she's that's";

/// Forms of irregular verbs that a stemmer does not join, with the base form.
const IRREGULAR: [(&str, &str); 74] = [
    ("ate eaten", "eat"),
    ("became", "become"),
    ("began begun", "begin"),
    ("bitten bit", "bite"),
    ("blew blown", "blow"),
    ("bore borne born", "bear"),
    ("bought", "buy"),
    ("bound", "bind"),
    ("broke broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("came", "come"),
    ("caught", "catch"),
    ("chose chosen", "choose"),
    ("dealt", "deal"),
    ("drank drunk", "drink"),
    ("drew drawn", "draw"),
    ("drove driven", "drive"),
    ("dug", "dig"),
    ("died dying", "die"),
    ("fallen fell", "fall"),
    ("fed", "feed"),
    ("felt", "feel"),
    ("flew flown", "fly"),
    ("fought", "fight"),
    ("forgot forgotten", "forget"),
    ("froze frozen", "freeze"),
    ("gave given", "give"),
    ("gone went", "go"),
    ("grew grown", "grow"),
    ("heard", "hear"),
    ("held", "hold"),
    ("hid hidden", "hide"),
    ("hung", "hang"),
    ("kept", "keep"),
    ("knew known", "know"),
    ("led", "lead"),
    ("lent", "lend"),
    ("lost", "lose"),
    ("made", "make"),
    ("meant", "mean"),
    ("met", "meet"),
    ("paid", "pay"),
    ("ran", "run"),
    ("rang rung", "ring"),
    ("rode ridden", "ride"),
    ("risen rose", "rise"),
    ("said", "say"),
    ("sang sung", "sing"),
    ("sank sunk", "sink"),
    ("sat", "sit"),
    ("seen saw", "see"),
    ("sent", "send"),
    ("shook shaken", "shake"),
    ("shot", "shoot"),
    ("showed shown", "show"),
    ("slept", "sleep"),
    ("sold", "sell"),
    ("sought", "seek"),
    ("spent", "spend"),
    ("spoke spoken", "speak"),
    ("stole stolen", "steal"),
    ("stood", "stand"),
    ("struck", "strike"),
    ("swam swum", "swim"),
    ("swore sworn", "swear"),
    ("taken took", "take"),
    ("taught", "teach"),
    ("threw thrown", "throw"),
    ("thought", "think"),
    ("told", "tell"),
    ("won", "win"),
    ("wore worn", "wear"),
    ("written wrote", "write"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_bytes_signs_and_stems() {
        let text = "Della’s hair sold for $1.87, or 20% of it.";
        let words = words(text);
        let shown: Vec<&str> = words.iter().map(|word| &text[word.range.clone()]).collect();
        assert_eq!(shown, ["Della’s", "hair", "sold", "for", "$1.87", "or", "20%", "of", "it"]);
        assert_eq!(words[0].stem, stem("della"));
        assert_eq!(words[2].stem, stem("sell"));
        assert!(words[3].stem.is_none() && words[4].number);
    }

    #[test]
    fn answers_are_compared_as_squad_compares_them() {
        assert_eq!(normal_form("The U.S. Navy!"), "us navy");
        assert_eq!(normal_form("a  platinum fob-chain"), "platinum fobchain");
    }
}
