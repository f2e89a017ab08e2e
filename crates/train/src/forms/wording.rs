//! Comparison of texts in any layout, and of answers in any wording.

use std::collections::HashSet;

use calls::number_words;

/// A digest of the letters and digits of a text: white space, case and punctuation do not change it.
pub(super) fn key(text: &str) -> blake3::Hash {
    let letters: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    blake3::hash(letters.as_bytes())
}

const ARTICLES: [&str; 3] = ["a", "an", "the"];

/// The words of a text in lower case without articles; names of numbers below 100 are digits.
pub(super) fn words(text: &str) -> Vec<String> {
    let joined = |c: &char| matches!(c, ',' | '.' | '\'' | '’');
    let text: String = text.to_lowercase().chars().filter(|c| !joined(c)).collect();
    let (mut words, mut tens) = (Vec::new(), None::<u32>);
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        if word.is_empty() || ARTICLES.contains(&word) {
            continue;
        }
        let number = number_words::value(word);
        if let (Some(tens), Some(unit @ 1..=9)) = (tens, number) {
            words.pop();
            words.push((tens + unit).to_string());
        } else {
            words.push(number.map_or_else(|| word.to_owned(), |number| number.to_string()));
        }
        tens = number.filter(|number| *number >= 20);
    }
    words
}

/// A text that may give an answer.
pub(super) struct Text {
    lower: String,
    words: HashSet<String>,
}

impl Text {
    pub(super) fn of(text: &str) -> Text {
        Text { lower: text.to_lowercase(), words: words(text).into_iter().collect() }
    }

    /// Whether the text holds one of these answers literally, or all of its words in any order.
    pub(super) fn may_give(&self, answers: &[String]) -> bool {
        let is_given = |answer: &String| {
            self.lower.contains(&answer.trim().to_lowercase())
                || words(answer).iter().all(|word| self.words.contains(word))
        };
        answers.iter().any(is_given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_text_does_not_depend_on_its_layout() {
        assert_eq!(key("The  Tower, in\n Paris ."), key("the tower in paris."));
        assert_ne!(key("The tower in Paris."), key("The tower in Pavia."));
    }

    #[test]
    fn an_answer_is_found_in_other_words() {
        let gives = |text: &str, answer: &str| Text::of(text).may_give(&[answer.to_owned()]);
        assert!(gives("It has twenty-five towers.", "25 towers") && gives("It has 25 towers.", "twenty five"));
        assert!(gives("1000 ships", "1,000 ships") && gives("on 5 March 1990", "March 5, 1990"));
        assert!(gives("a bridge in the U.S.", "US") && gives("Wool of sheep.", "the wool of the sheep"));
        assert!(gives("the towers", "tower"), "parts of words count too");
        assert!(!gives("It has twenty-four towers.", "25") && !gives("in Paris", "in Pavia"));
    }
}
