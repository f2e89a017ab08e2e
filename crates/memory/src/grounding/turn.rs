//! Turns of a conversation in a text: `Name: words` or `Name (id): words`, each from the begin of a line.

use super::words::{Word, words};

/// The longest label of a speaker in front of a turn, in bytes.
const LABEL: usize = 48;

/// The speaker and the words of a turn.
pub(super) fn turn(text: &str) -> Option<(&str, &str)> {
    let (label, said) = text.split_once(": ").filter(|(label, _)| label.len() <= LABEL && !label.contains('\n'))?;
    let speaker = label.split(" (").next().unwrap_or(label);
    let is_name = !speaker.is_empty() && words(speaker).iter().all(|word| word.capital && !word.is_function());
    is_name.then_some((speaker, said))
}

/// The speaker of the turn that a byte is in, and the byte that the turn begins at. A turn ends at a blank line.
pub(super) fn speaker_at(text: &str, at: usize) -> Option<(&str, usize)> {
    let mut end = at;
    loop {
        let start = text[..end].rfind('\n').map_or(0, |line| line + 1);
        let line = &text[start..];
        if let Some((speaker, _)) = turn(line) {
            return Some((speaker, start));
        }
        let is_blank = line.lines().next().is_none_or(|line| line.trim().is_empty());
        if start == 0 || is_blank && start < at {
            return None;
        }
        end = start - 1;
    }
}

/// Whether a name only addresses: "Ann, I was ill.", "Thanks, Ann!".
pub(super) fn is_vocative(text: &str, words: &[Word], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| &text[words[before].range.end..words[at].range.start]);
    let greets = at.checked_sub(1).is_some_and(|before| GREETINGS.contains(&words[before].lower.as_str()));
    let is_apart = greets || before.is_none_or(|gap| gap.contains(','));
    is_apart && text[words[at].range.end..].trim_start().chars().next().is_none_or(|c| ",.!?".contains(c))
}

const GREETINGS: [&str; 13] =
    ["dear", "hey", "hi", "hello", "thanks", "wow", "yeah", "yes", "no", "oh", "congrats", "bye", "sorry"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_lasts_to_the_next_label_or_a_blank_line() {
        let text = "Ann (D1:1): Hey!\nI ran a race.\nTim: So did I.\n\nI slept.";
        let of = |part: &str| speaker_at(text, text.find(part).unwrap());
        assert_eq!(of("I ran"), Some(("Ann", 0)));
        assert_eq!(of("So did"), Some(("Tim", text.find("Tim").unwrap())));
        assert_eq!(of("I slept"), None);
        assert_eq!(turn("The end: it came."), None);
    }
}
