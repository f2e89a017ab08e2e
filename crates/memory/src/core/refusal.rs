//! Refusals: replies that state in words that the text holds no answer.
//!
//! A reply is a refusal if each of its sentences is, and a sentence is one by its form: its subject is the text ("The
//! passage does not mention it."), or it has no other subject ("Not specified.", "No information"). So "He does not
//! mention his brother" is an answer. English forms are here, those of eight other languages in [`languages`].

mod languages;

use std::sync::LazyLock;

use regex::Regex;

use crate::core::cite::sentences;

/// Words of a refusal; a longer reply has content of its own.
const MAX_WORDS: usize = 20;

/// English words with which a reply goes beyond the refusal.
const CONTRASTS: [&str; 10] =
    ["but", "however", "although", "though", "except", "probably", "likely", "suggests", "implies", "implied"];

/// Whether a reply states no more than that there is no answer, or nothing at all.
pub(crate) fn is_refusal(text: &str) -> bool {
    let sentences: Vec<String> = sentences(text).into_iter().map(|range| plain(&text[range])).collect();
    let words = || sentences.iter().flat_map(|sentence| sentence.split_whitespace());
    let is_english = || {
        !words().any(|word| CONTRASTS.contains(&word))
            && sentences.iter().all(|sentence| sentence.is_empty() || REFUSAL.is_match(sentence))
    };
    words().count() <= MAX_WORDS && (is_english() || languages::is_refusal(text))
}

/// Words that models write into a list or a field which has nothing to say.
const NOTHING: [&str; 4] = ["none", "nothing", "n a", "null"];

/// Whether an item of a list means that there is none: it is blank or a word for nothing.
pub(crate) fn is_nothing(text: &str) -> bool {
    let plain = plain(text);
    plain.is_empty() || NOTHING.contains(&plain.as_str())
}

/// Whether notes on a text only state that it does not help.
pub(crate) fn tells_nothing(text: &str) -> bool {
    is_nothing(text) || is_refusal(text)
}

/// A sentence in lower case without punctuation, with "does not" for "doesn't".
fn plain(sentence: &str) -> String {
    let sentence = sentence.to_lowercase().replace('\u{2019}', "'");
    let sentence = sentence.replace("can't", "can not").replace("cannot", "can not").replace("n't", " not");
    let sentence = sentence.replace("it's ", "it is ").replace("there's ", "there is ").replace("i'm ", "i am ");
    let words = sentence.split(|sign: char| !sign.is_alphanumeric() && sign != '\'');
    words.map(|word| word.trim_matches('\'')).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The forms of a refusal in English, in the words of [`plain`].
static REFUSAL: LazyLock<Regex> = LazyLock::new(|| {
    let text = "(?:(?:the|this|that|these|those|any|all|provided|given|available|above|retrieved|short|evidence|detail) \
        )*(?:texts?|passages?|pages|context|documents?|conversations?|contents?|story|narrative|articles?|excerpts?|\
        dialogue|transcript|memory|sources?|material|graph|knowledge base|information|evidence|findings|summary|summaries)(?: provided| given)?";
    let in_text = format!("(?:based |anywhere )?(?:in|by|from|within|on|throughout) {text}");
    let adverbs = "(?:(?:explicitly|directly|clearly|specifically|actually|even|ever|further|been) )*";
    let stated = "(?:mentioned|specified|stated|indicated|described|discussed|known|clear|disclosed)";
    let given = "(?:provided|given|available|included|contained|present)";
    let say = "(?:say|mention|state|specify|tell|indicate|reveal|describe|name|identify|explain|give|provide|discuss|address|\
        (?:help (?:to )?)?answer)";
    let find = "(?:(?:could|can|did) not|(?:was|am) (?:unable|not able) to) (?:find|locate|identify)";
    let found_out = "(?:determined?|answer(?:ed)?|infer(?:red)?|ascertain(?:ed)?|tell)";
    let information = "(?:(?:any|an|the|enough|specific|explicit|relevant|direct|clear|further|such|other) )*\
        (?:information|mention|indication|answer|details?|evidence)";
    let question = "(?:who|whom|whose|what|which|when|where|why|how|whether)";
    let end = format!("(?: {in_text}\\b.*| {question}\\b.*| here| anywhere)?$");
    let answer = "(?:(?:the|this|that|such) )?(?:answer|information)";
    let forms = [
        format!(
            "{text} (?:does|do|did) not {adverbs}(?:{say}|(?:contain|include|have|hold|make|offer) {information})\\b"
        ),
        format!("{text} (?:contain|include|ha|have|hold|make|offer|give|provide)s? no {information}\\b"),
        format!("{text} (?:is|are) (?:silent|unclear|insufficient|not (?:sufficient|enough|clear))\\b"),
        format!("(?:(?:it|this|that|{answer}) is )?(?:unknown|unspecified|unclear|not {adverbs}{stated}){end}"),
        format!("(?:{answer} is )?not {adverbs}{given}{end}"),
        format!("(?:(?:it|this|that|{answer}) is )?not {in_text}\\b"),
        format!("(?:it|this|that|{answer}) does not {adverbs}(?:say|specify|mention|state){end}"),
        format!(
            "(?:there (?:is|are) )?(?:no|insufficient|not (?:enough|sufficient)) {information}(?: is| was)?\
            (?: {given}| found| made)?(?:{end}| (?:about|on|of|regarding|concerning|that)\\b| to {found_out}\\b)"
        ),
        "n a$".to_owned(),
        format!("(?:(?:it|this|that|{answer}) (?:is )?)?not found {in_text}\\b"),
        format!(".* (?:is|are|was|were) not {adverbs}(?:{stated}|{given}) {in_text}\\b"),
        format!("(?:.* )?can not be {found_out}{end}"),
        format!("(?:it is )?(?:impossible|unable|not possible) to {found_out}\\b"),
        format!("i do not (?:know{end}|have {information}\\b)"),
        format!("i (?:can not|am (?:unable|not able) to) {found_out}\\b"),
        format!(
            "i {find} (?:it|this|that|{answer}|{information}(?: (?:about|on|of|regarding|concerning|that)\\b.*)?){end}"
        ),
        format!("i {find} (?:{question}\\b|.* {in_text}\\b)"),
    ];
    let before = format!("(?:(?:unfortunately|sorry) )*(?:(?:based|according) (?:on|to) {text} )?");
    Regex::new(&format!("^{before}(?:{})", forms.join("|"))).expect("the forms are regular expressions")
});

#[cfg(test)]
mod tests {
    use super::{is_nothing, is_refusal, tells_nothing};
    use crate::core::answer::NOT_IN_DOCUMENTS;

    #[test]
    fn replies_that_state_that_there_is_no_answer_are_refusals() {
        let refusals = [
            "",
            " \n.",
            "*",
            NOT_IN_DOCUMENTS,
            "not in the document",
            "Unknown.",
            "\"No information available\"",
            "No information available in SHORT_MEMORY.",
            "There is no information about her wedding in the conversation.",
            "There's no mention of it.",
            "No answer is given in the text.",
            "This information is not provided.",
            "Not mentioned in the conversation.",
            "Not explicitly stated in the provided text.",
            "Not specified who lit it.",
            "not provided",
            "Not available.",
            "The text does not mention it.",
            "(the passages do not say)",
            "The provided context doesn\u{2019}t specify when Ann moved to Paris.",
            "The conversation does not contain any information about the name of Bob's dog.",
            "The story makes no mention of a brother.",
            "The passages provided do not say who lit the lamp.",
            "It is not mentioned.",
            "It isn't clear from the text.",
            "It is not specified where she went.",
            "The answer is not in the text.",
            "The name of Bob's dog is not mentioned in the conversation.",
            "Cannot be determined from the text.",
            "The date can't be determined.",
            "It is not possible to tell who did it.",
            "I don't know.",
            "I could not find it.",
            "I couldn't find any information about the wedding.",
            "I could not find the answer in the provided documents.",
            "Sorry, I was unable to find who lit the lamp.",
            "I did not find a brother in the text.",
            "The graph does not say.",
            "Not enough information.",
            "Based on the text, it is unknown.",
            "Unknown. The text does not say.",
            "N/A",
            "The pages do not mention the wedding.",
            "The content does not help to answer the question.",
            "EVIDENCE_CONTEXT does not mention it.",
            "Not found in the provided documents.",
            "There is not enough information to answer the question.",
            "I do not have enough information to answer.",
            "I\u{2019}m unable to determine who lit the lamp.",
        ];
        for text in refusals {
            assert!(is_refusal(text), "{text:?}");
        }
    }

    #[test]
    fn answers_with_a_negation_are_no_refusals() {
        let answers = [
            "In 1911.",
            "She did not say a word.",
            "He does not mention his brother",
            "He did not specify a date in the text of the letter.",
            "An unknown man did it.",
            "Unknown assailants killed him.",
            "Unknown to her brother, she sold the house.",
            "Not in the house.",
            "Not given any food.",
            "Not mentioned by his father.",
            "It was not mentioned until 1911.",
            "It is not available in stores.",
            "It does not mention his brother.",
            "No one.",
            "None.",
            "No.",
            "No answer came.",
            "No information was given to the police.",
            "No, the text does not mention it.",
            "The text does not say, but it was Tom.",
            "The text does not mention it. It was Tom.",
            "The story does not end well.",
            "The story of a lamp.",
            "The documents were not provided by the seller.",
            "The conversation in the garden.",
            "I do not know him.",
            "I could not find my brother.",
            "I could not find it in the house.",
            "It cannot be repaired.",
            "Text messages.",
            "Information about the lamp.",
            "There is not enough evidence to convict him.",
            "I do not have a brother.",
            "I am unable to swim.",
            "Not found in the house.",
        ];
        for text in answers {
            assert!(!is_refusal(text), "{text:?}");
        }
    }

    #[test]
    fn items_that_mean_none_are_told_from_answers() {
        for text in ["", " - ", "[]", "None.", "N/A", "null", "Nothing"] {
            assert!(is_nothing(text) && tells_nothing(text), "{text:?}");
        }
        for text in ["No one.", "None of them married.", "Nothing was sold.", "0", "没有"] {
            assert!(!is_nothing(text) && !tells_nothing(text), "{text:?}");
        }
        let refusal = "CONTENT does not mention who lit the lamp.";
        assert!(!is_nothing(refusal) && tells_nothing(refusal));
    }

    #[test]
    fn a_long_reply_is_no_refusal() {
        let long = format!("The text does not mention it{}.", " and Ada went home".repeat(4));
        assert!(!is_refusal(&long));
    }
}
