//! Whether one sentence can state the answer to a question by itself.

use super::question::Question;
use super::words::words;

/// The longest label of a speaker in front of a turn, in bytes.
const LABEL: usize = 48;

/// False for a question that compares options, which takes more than one sentence, and for what a speaker of a conversation
/// says if the question is about another person, who is not mentioned.
pub fn can_state(question: &str, quote: &str) -> bool {
    Question::parse(question).options.is_empty() && !is_of_another_speaker(question, quote)
}

fn is_of_another_speaker(question: &str, quote: &str) -> bool {
    let Some((speaker, said)) = turn(quote) else { return false };
    let bare = |lower: String| lower.strip_suffix("'s").map(str::to_owned).unwrap_or(lower);
    // The first word of a question is capitalised whatever it is.
    let named = words(question).into_iter().skip(1).filter(|word| word.capital && !word.is_function() && !word.number);
    let named: Vec<String> = named.map(|word| bare(word.lower)).collect();
    let has = |text: &str| words(text).into_iter().any(|word| named.contains(&bare(word.lower)));
    !named.is_empty() && !has(speaker) && !has(said)
}

/// The speaker and the words of a turn: `Name: words` or `Name (id): words`.
fn turn(quote: &str) -> Option<(&str, &str)> {
    let (label, said) = quote.split_once(": ").filter(|(label, _)| label.len() <= LABEL)?;
    let speaker = label.split(" (").next().unwrap_or(label);
    let is_name = !speaker.is_empty() && words(speaker).iter().all(|word| word.capital && !word.is_function());
    is_name.then_some((speaker, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_speaker_says_of_himself_is_not_about_another() {
        let quote = "Tim (D21:13): I've been playing for about four months now.";
        assert!(!can_state("How long has John been playing the piano?", quote));
        assert!(can_state("How long has Tim been playing the piano?", quote));
        assert!(can_state("How long did it take?", quote));
        assert!(can_state("How old is John's son?", "Tim: John's son is four."));
        assert!(can_state("How long has John been playing?", "He has been playing: for four months."));
    }

    #[test]
    fn a_comparison_takes_more_than_one_sentence() {
        assert!(!can_state("Which is larger, Porto or Lisbon?", "Lisbon is the largest city."));
        assert!(can_state("Which city is the largest?", "Lisbon is the largest city."));
    }
}
