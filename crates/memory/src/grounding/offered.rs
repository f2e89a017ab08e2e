//! The two options that a question offers, and its other words: "Who is older, A or B?", "Was A or B born first?".

use super::question::{AUXILIARIES, Question};
use super::words::{Word, words};

#[derive(Debug)]
pub(super) struct Offered {
    pub first: String,
    pub second: String,
    /// The words that ask: those before the options, or behind them in a question that begins with an auxiliary verb.
    pub asking: Vec<Word>,
}

/// The options of a question; `None` if it does not offer two.
pub(super) fn offered(question: &str, parsed: &Question) -> Option<Offered> {
    let question = question.trim().trim_end_matches(['?', '.', ' ']);
    let all = words(question);
    if let Some(auxiliary) = all.first().filter(|word| AUXILIARIES.contains(&word.lower.as_str())) {
        return behind_auxiliary(&question[auxiliary.range.end..]);
    }
    let [first, second] = &parsed.options[..] else { return None };
    let (head, _) = question.split_once(first.as_str())?;
    Some(Offered { first: first.clone(), second: second.clone(), asking: words(head) })
}

/// The names on both sides of "or", each a run of capitalised words.
fn behind_auxiliary(rest: &str) -> Option<Offered> {
    let (before, behind) = rest.split_once(" or ")?;
    let first = words(before).into_iter().find(is_of_name)?;
    let words = words(behind);
    let is_link = |at: usize| {
        let is_before_name = words.get(at + 1).is_some_and(is_of_name);
        is_before_name && matches!(words[at].lower.as_str(), "of" | "the" | "and" | "de" | "von" | "van")
    };
    let length = (0..words.len()).take_while(|at| is_of_name(&words[*at]) || is_link(*at)).count();
    let last = words[..length].last()?;
    Some(Offered {
        first: before[first.range.start..].trim().to_owned(),
        second: behind[..last.range.end].trim().to_owned(),
        asking: words[length..].to_vec(),
    })
}

fn is_of_name(word: &Word) -> bool {
    word.capital || word.number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_before_and_behind_the_words_that_ask() {
        let read = |question: &str| {
            let offered = offered(question, &Question::parse(question))?;
            let asking: Vec<String> = offered.asking.into_iter().map(|word| word.lower).collect();
            Some((offered.first, offered.second, asking.join(" ")))
        };
        for (question, want) in [
            ("Who is older, Ann Lee or Bo Derek?", ("Ann Lee", "Bo Derek", "who is older")),
            ("Was Ann Lee or Bo Derek born first?", ("Ann Lee", "Bo Derek", "born first")),
            (
                "Does the band Unsane or House of Love have more members?",
                ("Unsane", "House of Love", "have more members"),
            ),
        ] {
            let want = Some((want.0.to_owned(), want.1.to_owned(), want.2.to_owned()));
            assert_eq!(read(question), want, "{question}");
        }
        for question in ["Who won?", "Is it red or blue?", "Did Ann win?"] {
            assert_eq!(read(question), None, "{question}");
        }
    }
}
