//! Answers that are one item of an enumeration where the question asks for several: "Which two teams did he play for?" is answered by
//! "Ajax and Porto", not by "Ajax".

use std::ops::Range;

use calls::number_words;

use super::question::is_plural;
use super::words::{Word, words};
use crate::core::cite::sentences;

/// How many things a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Exactly(usize),
    All,
}

/// Words from the question word, or from "name", in which the number of things is, and from the number to their plural.
const NEAR: usize = 4;

/// The most things.
const MOST: usize = 9;

/// The bytes of the enumeration that an answer is an item of, if a question asks for as many things as it has, or for all of them.
/// `answer` is its bytes in a text of the evidence.
pub fn enumeration(question: &str, text: &str, answer: &Range<usize>) -> Option<Range<usize>> {
    let wanted = wanted(question)?;
    let sentence = sentences(text).into_iter().find(|range| range.start <= answer.start && answer.end <= range.end)?;
    let listed = Listed { words: words(&text[sentence.clone()]), text: &text[sentence.clone()] };
    let is_of_answer = |word: &Word| {
        answer.start <= sentence.start + word.range.start && sentence.start + word.range.end <= answer.end
    };
    let from = listed.words.iter().position(is_of_answer)?;
    let to = listed.words.iter().rposition(is_of_answer)? + 1;
    let (items, is_joined) = listed.items(from..to)?;
    let is_whole = match wanted {
        Wanted::Exactly(count) => items.len() == count,
        Wanted::All => items.len() > 1,
    };
    let (first, last) = (items.first()?, items.last()?);
    let range = |at: usize| &listed.words[at].range;
    (is_whole && is_joined).then(|| sentence.start + range(first.start).start..sentence.start + range(last.end - 1).end)
}

/// How many things a question asks for; `None` if it may ask for one.
fn wanted(question: &str) -> Option<Wanted> {
    let words = words(question);
    let is_imperative = |word: &Word| matches!(word.lower.as_str(), "name" | "list");
    let starts = words.first().is_some_and(is_imperative);
    let asks = |word: &Word| matches!(word.lower.as_str(), "what" | "which" | "who");
    let at = if starts { 0 } else { words.iter().position(asks)? };
    let near = &words[at + 1..words.len().min(at + 1 + NEAR)];
    let count = |word: &Word| number_words::value(&word.lower).or_else(|| word.lower.parse().ok());
    // "What are the two ...", but not "Which composer of two ...".
    let number = near.iter().position(|word| word.number || word.stem.is_some()).filter(|at| near[*at].number);
    if let Some(number) = number {
        let count = usize::try_from(count(&near[number])?).ok().filter(|count| (2..=MOST).contains(count))?;
        let mut behind = words[at + 2 + number..].iter().take(NEAR);
        return behind.any(|word| is_plural(&word.lower)).then_some(Wanted::Exactly(count));
    }
    let lowers: Vec<&str> = near.iter().map(|word| word.lower.as_str()).collect();
    match lowers[..] {
        ["all", ..] if starts => Some(Wanted::All),
        ["is" | "are" | "was" | "were", "all", ..] | ["are" | "were", "the", "names", ..] => Some(Wanted::All),
        _ => None,
    }
}

/// A sentence with its words.
struct Listed<'a> {
    words: Vec<Word>,
    text: &'a str,
}

impl Listed<'_> {
    /// The items of the enumeration that one is of, each as places of words, and whether "and" or "or" joins the last one; `None` if
    /// the one holds several.
    fn items(&self, own: Range<usize>) -> Option<(Vec<Range<usize>>, bool)> {
        if own.clone().any(|at| self.is_joining(at)) || (own.start..own.end - 1).any(|at| self.gap(at) == ",") {
            return None;
        }
        let form = Form::of(&self.words[own.clone()]);
        let (mut items, mut is_joined) = (vec![own.clone()], false);
        while let Some((last, joins)) = self.before(items[0].start) {
            let Some(item) = self.ending_at(last, form) else { break };
            is_joined |= joins;
            items.insert(0, item);
        }
        while let Some((first, joins)) = self.behind(items[items.len() - 1].end) {
            let Some(item) = self.beginning_at(first, form) else { break };
            is_joined |= joins;
            items.push(item);
        }
        Some((items, is_joined))
    }

    /// What is between a word and the next one, without blanks.
    fn gap(&self, at: usize) -> &str {
        let Some(next) = self.words.get(at + 1) else { return "." };
        self.text[self.words[at].range.end..next.range.start].trim()
    }

    fn is_joining(&self, at: usize) -> bool {
        self.words.get(at).is_some_and(|word| matches!(word.lower.as_str(), "and" | "or"))
    }

    /// The last word of the item before one that begins at a word, and whether "and" or "or" is between them.
    fn before(&self, start: usize) -> Option<(usize, bool)> {
        let last = start.checked_sub(1)?;
        if !self.is_joining(last) {
            return matches!(self.gap(last), "," | "&").then(|| (last, self.gap(last) == "&"));
        }
        let before = last.checked_sub(1)?;
        (self.gap(last).is_empty() && matches!(self.gap(before), "" | ",")).then_some((before, true))
    }

    /// The first word of the item behind one that ends before a word, and whether "and" or "or" is between them.
    fn behind(&self, end: usize) -> Option<(usize, bool)> {
        let gap = self.gap(end - 1);
        match (gap, self.is_joining(end)) {
            ("" | ",", true) => Some((end + 1, true)).filter(|_| self.gap(end).is_empty()),
            ("," | "&", false) => Some((end, gap == "&")),
            _ => None,
        }
    }

    /// The item that ends with a word.
    fn ending_at(&self, last: usize, form: Form) -> Option<Range<usize>> {
        let mut start = last + 1;
        while start > 0
            && self.belongs(start - 1, form)
            && (start == last + 1 || self.gap(start - 1).is_empty())
            && self.fits(start - 1..last + 1, form)
        {
            start -= 1;
        }
        self.trimmed(start..last + 1).filter(|item| item.end == last + 1)
    }

    /// The item that begins with a word. One in small letters that has more words than its form is none.
    fn beginning_at(&self, first: usize, form: Form) -> Option<Range<usize>> {
        let mut end = first;
        while end < self.words.len() && self.belongs(end, form) && (end == first || self.gap(end - 1).is_empty()) {
            end += 1;
        }
        self.trimmed(first..end).filter(|item| item.start == first && self.fits(item.clone(), form))
    }

    /// Whether a word can be one of an item.
    fn belongs(&self, at: usize, form: Form) -> bool {
        let word = &self.words[at];
        let is_link = || matches!(word.lower.as_str(), "of" | "the" | "a" | "an");
        match form {
            Form::Name => word.capital && !self.is_joining(at) || is_link(),
            Form::Words(_) => word.stem.is_some() && !word.capital || is_link(),
        }
    }

    fn fits(&self, item: Range<usize>, form: Form) -> bool {
        match form {
            Form::Name => true,
            Form::Words(most) => self.words[item].iter().filter(|word| word.stem.is_some()).count() <= most,
        }
    }

    /// An item without articles and "of" at its end; `None` if it has no content word.
    fn trimmed(&self, item: Range<usize>) -> Option<Range<usize>> {
        let last = self.words[item.clone()].iter().rposition(|word| word.stem.is_some())?;
        let first = if self.words[item.start].lower == "of" { item.start + 1 } else { item.start };
        Some(first..item.start + last + 1)
    }
}

/// The form of the items of an enumeration, which are alike.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// Capitalised words.
    Name,
    /// Others, with at most this number of content words.
    Words(usize),
}

impl Form {
    fn of(item: &[Word]) -> Form {
        let content = || item.iter().filter(|word| word.stem.is_some());
        match content().all(|word| word.capital) {
            true => Form::Name,
            false => Form::Words(content().count()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "It rained. He played for the Detroit Lions and the Los Angeles Rams restored him. He likes Bach, Mozart, and Clara \
        Schumann most. She plays flute and violin in Rome. Ann Lee, Bo and Kim Park came. Zelda met Link.";

    fn extended(question: &str, answer: &str) -> Option<&'static str> {
        let start = TEXT.find(answer).expect("the text has it");
        enumeration(question, TEXT, &(start..start + answer.len())).map(|range| &TEXT[range])
    }

    #[test]
    fn an_item_becomes_the_enumeration_that_has_as_many_as_are_asked_for() {
        for (question, answer, want) in [
            ("Which two teams did he play for?", "the Detroit Lions", "the Detroit Lions and the Los Angeles Rams"),
            ("What three composers does he like?", "Mozart", "Bach, Mozart, and Clara Schumann"),
            ("What are the three composers that he likes?", "Clara Schumann", "Bach, Mozart, and Clara Schumann"),
            ("Which 2 instruments does she play?", "violin", "flute and violin"),
            ("Name all who came.", "Ann Lee", "Ann Lee, Bo and Kim Park"),
            ("What are the names of those who came?", "Bo", "Ann Lee, Bo and Kim Park"),
        ] {
            assert_eq!(extended(question, answer), Some(want), "{question}");
        }
    }

    #[test]
    fn answers_stay_as_they_are_where_one_may_be_asked_for_or_the_number_differs() {
        for (question, answer) in [
            ("Which team did he play for?", "the Detroit Lions"),
            ("Which teams did he play for?", "the Detroit Lions"),
            ("Which three teams did he play for?", "the Detroit Lions"),
            ("How many composers does he like?", "Mozart"),
            ("Which composer of two operas does he like?", "Mozart"),
            ("Which two composers does he like?", "Bach, Mozart"),
            ("Which 2009 films does he like?", "Mozart"),
            ("Name all who met.", "Zelda"),
        ] {
            assert_eq!(extended(question, answer), None, "{question}");
        }
        assert_eq!(enumeration("Which two teams?", "", &(0..0)), None);
    }
}
