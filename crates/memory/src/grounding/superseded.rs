//! Whether a later sentence of a text corrects, moves or cancels what a sentence says: "The meeting is on Monday. Correction: the
//! meeting is on Tuesday, not Monday." English only.

use super::claims::DETERMINERS;
use super::features::MONTHS;
use super::hedges::is_question;
use super::negation::Clauses;
use super::numbers::{Number, is_equal};
use super::question::FORMS_OF_BE;
use super::values::{Values, weekday};
use super::words::{Word, is_past, words};
use crate::core::cite::sentences;

/// Whether a value of a statement is no more that of the text behind the sentence that has it. A statement about what was before
/// holds still.
pub(super) fn is_superseded(said: &[Word], values: &Values, behind: &str) -> bool {
    if !said.iter().any(is_value) || has_any(said, &EARLIER) {
        return false;
    }
    let own = Own { words: said, values };
    sentences(behind).into_iter().enumerate().any(|(at, range)| own.is_taken_back_by(&behind[range], at == 0))
}

/// A statement with its values.
struct Own<'a> {
    words: &'a [Word],
    values: &'a Values,
}

impl Own<'_> {
    /// Whether a later sentence takes back a value of the statement. `is_next` if no other is between them.
    fn is_taken_back_by(&self, later: &str, is_next: bool) -> bool {
        let given = words(later);
        let is_marked = given.iter().take(3).any(|word| {
            let rest = later[word.range.end..].trim_start();
            MARKERS.contains(&word.lower.as_str()) && rest.starts_with([':', '-', '–', '—', ','])
        });
        // "May" can be a month.
        let is_open = |word: &Word| OPEN.contains(&word.lower.as_str()) && !is_value(word);
        if is_question(later) || !is_marked && given.iter().any(is_open) {
            return false;
        }
        let is_replaced = || self.is_replaced_in(later, &given);
        let is_own = |word: &Word| self.words.iter().any(|own| own.lower == word.lower);
        let is_old = |at: usize| is_value(&given[at]) && is_own(&given[at]) && is_former(&given, at);
        let has_old = (0..given.len()).any(is_old);
        let is_same = || is_next || given.iter().any(|word| self.has_stem(word));
        let is_denied = || Clauses::read(&given, later).any();
        let changes = |at: usize| CHANGES.contains(&given[at].lower.as_str()) && is_behind_to(&given, at);
        let is_moved = || (0..given.len()).any(|at| changes(at) && self.is_beside(&given, at, is_next));
        // "Classes on 3 May are cancelled" leaves those of Mondays.
        let has_other_day = || given.iter().any(|word| is_value(word) && !is_own(word));
        let is_off = || (0..given.len()).any(|at| is_cancelled(&given, at) && self.is_beside(&given, at, is_next));
        let is_changed = || is_moved() && is_replaced() || self.has_day() && is_off() && !has_other_day();
        let is_corrected = match (is_marked, has_old) {
            (true, true) => true,
            (false, false) => false,
            _ => is_same(),
        };
        is_corrected && is_replaced() || self.is_of_present() && is_changed() && !is_denied()
    }

    /// Whether a sentence has another value in the place of one of the statement.
    fn is_replaced_in(&self, later: &str, given: &[Word]) -> bool {
        let (own, other) = (self.values, Values::read(later, &|_| true));
        let numbers = own.numbers.iter().filter(|number| !number.ordinal).any(|number| {
            // "Not 40 euros but 45"
            let is_old = |old: &Number| is_equal(old.value, number.value) && is_former(given, old.at.start);
            let is_of_unit = |new: &Number| {
                new.unit_term() == number.unit_term() || new.unit.is_none() && other.numbers.iter().any(is_old)
            };
            let same = other.numbers.iter().filter(|new| !new.ordinal && is_of_unit(new));
            let mut new = same.filter(|new| !is_former(given, new.at.start)).peekable();
            new.peek().is_some() && !new.any(|new| is_equal(new.value, number.value))
        });
        let dates = own.dates.iter().any(|(date, _)| {
            let new = || other.dates.iter().filter(|(_, at)| at.is_none_or(|at| !is_former(given, at)));
            new().any(|(new, _)| new.conflicts(date)) && !new().any(|(new, _)| new.bears_out(date))
        });
        let new =
            |day: &str| (0..given.len()).any(|at| weekday(&given[at].lower) == Some(day) && !is_former(given, at));
        let weekdays =
            own.weekdays.iter().any(|day| !new(day) && other.weekdays.iter().any(|other| other != day && new(other)));
        numbers || dates || weekdays
    }

    fn has_stem(&self, word: &Word) -> bool {
        !is_value(word) && word.stem.is_some() && self.words.iter().any(|own| own.stem == word.stem)
    }

    /// Whether the noun directly before or behind a verb, without values between them, is of the statement, or is "it".
    fn is_beside(&self, given: &[Word], verb: usize, is_next: bool) -> bool {
        let is_noun = |word: &&Word| word.stem.is_some() && !is_value(word);
        let is_own = |word: &Word| self.has_stem(word);
        let refers = |word: Option<&Word>| word.is_some_and(|word| matches!(word.lower.as_str(), "it" | "this"));
        let beside = [given[..verb].last(), given.get(verb + 1)];
        is_next && (beside.into_iter().any(refers) || refers(given.first()))
            || given[..verb].iter().rev().find(is_noun).is_some_and(is_own)
            || given[verb + 1..].iter().find(is_noun).is_some_and(is_own)
    }

    /// Whether a statement is not about the past, which later events leave as it was.
    fn is_of_present(&self) -> bool {
        let is_of_past =
            |word: &Word| is_past(&word.lower) || matches!(word.lower.as_str(), "was" | "were" | "had" | "did");
        !self.words.iter().any(is_of_past) && !self.values.dates.iter().any(|(date, _)| date.year.is_some())
    }

    fn has_day(&self) -> bool {
        !self.values.dates.is_empty() || !self.values.weekdays.is_empty()
    }
}

/// Whether a word is a number, a month or a day of the week.
fn is_value(word: &Word) -> bool {
    word.number || weekday(&word.lower).is_some() || word.capital && MONTHS.contains(&word.lower.as_str())
}

/// Whether a value is there as what is not or is no more: "not on Monday", "instead of 10", "moved from 10 to 11".
fn is_former(given: &[Word], at: usize) -> bool {
    let is_link = |word: &Word| {
        let lower = word.lower.as_str();
        DETERMINERS.contains(&lower) || matches!(lower, "at" | "by" | "for" | "in" | "of" | "on") || is_value(word)
    };
    let Some(lead) = (0..at).rev().find(|before| !is_link(&given[*before])) else { return false };
    let has_end = || (at + 1..given.len().min(at + 5)).any(|to| given[to].lower == "to");
    match given[lead].lower.as_str() {
        "not" | "instead" => true,
        "than" => lead > 0 && given[lead - 1].lower == "rather",
        "from" => has_end() && has_any(given, &CHANGES),
        _ => false,
    }
}

/// Whether a value is behind "to" or "until" behind a verb.
fn is_behind_to(given: &[Word], verb: usize) -> bool {
    let is_end = |pair: &[Word]| matches!(pair[0].lower.as_str(), "to" | "until") && is_value(&pair[1]);
    given[verb + 1..].windows(2).any(is_end)
}

/// Whether the word at a place states that something is cancelled.
fn is_cancelled(given: &[Word], at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |before| given[before].lower.as_str());
    let is_passive = FORMS_OF_BE.contains(&before) || before == "been";
    match given[at].lower.as_str() {
        "cancelled" | "canceled" | "withdrawn" => is_passive,
        "called" => is_passive && given.get(at + 1).is_some_and(|next| next.lower == "off"),
        _ => false,
    }
}

fn has_any(words: &[Word], list: &[&str]) -> bool {
    words.iter().any(|word| list.contains(&word.lower.as_str()))
}

/// Words that begin a correction, before a mark.
const MARKERS: [&str; 7] = ["amendment", "correction", "corrections", "corrected", "edit", "erratum", "update"];

/// Verbs by which a value gets another one.
const CHANGES: [&str; 9] =
    ["changed", "corrected", "delayed", "extended", "moved", "postponed", "rescheduled", "revised", "shifted"];

/// Words of a sentence that only considers a change.
const OPEN: [&str; 15] = [
    "asked",
    "can",
    "could",
    "if",
    "may",
    "might",
    "proposed",
    "should",
    "suggested",
    "unless",
    "want",
    "wants",
    "when",
    "whether",
    "would",
];

/// Words of a statement about what was before.
const EARLIER: [&str; 12] = [
    "before",
    "earlier",
    "first",
    "former",
    "formerly",
    "initially",
    "old",
    "original",
    "originally",
    "planned",
    "previously",
    "until",
];

#[cfg(test)]
mod tests {
    use super::super::statement_tests::{answers, tell_apart};

    #[test]
    fn a_value_that_a_later_sentence_corrects_is_not_supported() {
        tell_apart(&[
            (
                "The meeting is on Monday.",
                "The meeting is on Tuesday.",
                "The meeting is on Monday. Bring a pen. Correction: the meeting is on Tuesday, not Monday.",
            ),
            ("The call is at 10.", "", "Ann: The call is at 10.\nTom: No, we moved it from 10 to 11."),
            ("Tickets cost 40 euros.", "", "Tickets cost 40 euros. Update: now 45 euros."),
            (
                "The report is due on 3 May.",
                "",
                "The report is due on 3 May. The cook left. The report was postponed to 9 May.",
            ),
            ("The fair takes place on Sunday.", "", "The fair takes place on Sunday. The fair has been cancelled."),
            (
                "The hall seats 412 people.",
                "",
                "The hall seats 412 people. It was built of wood. The hall seats 421 people rather than 412.",
            ),
            ("The club has 412 members.", "", "The club has 412 members. The number of members is not 412 but 421."),
            ("The boat leaves on Friday.", "", "The boat leaves on Friday. It has been rescheduled to Saturday."),
        ]);
        let stall = "A stall costs 15 pounds. Update: stalls cost 18 pounds.";
        assert!(!answers("What does a stall cost?", "15 pounds", stall));
    }

    #[test]
    fn a_value_beside_which_a_later_sentence_has_others_is_supported() {
        tell_apart(&[
            ("", "The meeting is on Monday.", "The meeting is on Monday. The dinner was moved to Tuesday."),
            ("", "The call is at 10.", "Ann: The call is at 10.\nTom: Could we move it from 10 to 11?"),
            ("", "Tickets cost 40 euros.", "Tickets cost 40 euros. Update: the hall holds 45 people."),
            ("", "The firm was founded in 1887.", "The firm was founded in 1887. It was moved to Bern in 1920."),
            ("", "The show began on 3 May.", "The show began on 3 May. The show was cancelled."),
            ("", "The shop opens at 9.", "The shop opens at 9. It is open from 9 to 17."),
            ("", "The fair takes place on Sunday.", "The fair takes place on Sunday. The fair is not cancelled."),
            (
                "",
                "The meeting was originally on Monday.",
                "The meeting was originally on Monday. The meeting was moved to Tuesday.",
            ),
            ("", "The office opens on 3 May.", "The office opens on 3 May. The office party was moved to 5 June."),
            ("", "Claims close on 3 May.", "Claims close on 3 May. Last updated: 5 April."),
            ("", "Classes are on Monday.", "Classes are on Monday. Classes on 3 May are cancelled."),
            ("", "The tour is on Sunday.", "The tour is on Sunday. The tour is cancelled when it rains."),
            ("", "The call is at 10.", "The call is at 10. The cook left. It opens at 9, not at 10."),
        ]);
    }
}
