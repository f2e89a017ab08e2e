//! The short-term memory m (section 4.3): semantic, the known turns, and episodic, the failed queries.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use store::analyze;

use crate::core::refusal::is_nothing;

/// Failures that the judge is shown (the paper's code: 3).
const NEWEST: usize = 3;

/// The judge's action on an insufficient query (section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Action {
    /// Decomposition: shorter and more exact queries in place of one.
    Break,
    /// Pruning: known parts are removed.
    Delete,
}

/// A step that found nothing new.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Failure {
    /// The action that produced its queries; none for the question itself.
    action: Option<Action>,
    queries: Vec<String>,
    missing: String,
}

/// Both memories.
#[derive(Debug, Default)]
pub(super) struct ShortTerm {
    /// Places of the turns known to be useful, in the order of time.
    facts: BTreeSet<usize>,
    failures: Vec<Failure>,
}

impl ShortTerm {
    /// Keeps turns; returns whether any is new.
    pub fn learn(&mut self, places: impl IntoIterator<Item = usize>) -> bool {
        let before = self.facts.len();
        self.facts.extend(places);
        self.facts.len() > before
    }

    /// The known turns, in the order of time.
    pub fn facts(&self) -> Vec<usize> {
        self.facts.iter().copied().collect()
    }

    /// Records that these queries found nothing new.
    pub fn fail(&mut self, action: Option<Action>, queries: &[String], missing: &str) {
        let missing = if is_nothing(missing) { String::new() } else { missing.trim().to_owned() };
        self.failures.push(Failure { action, queries: queries.to_vec(), missing });
    }

    /// Removes the newest failure.
    pub fn forget_failure(&mut self) {
        self.failures.pop();
    }

    /// The queries that have words and have not failed, each once; case, order and stop words do not count, and "None" is no
    /// query.
    pub fn untried(&self, queries: &[String], most: usize) -> Vec<String> {
        let failed = self.failures.iter().flat_map(|failure| &failure.queries).map(|query| words(query));
        let mut known: BTreeSet<BTreeSet<String>> = failed.collect();
        known.insert(BTreeSet::new());
        let named = queries.iter().map(|query| query.trim()).filter(|query| !is_nothing(query));
        let fresh = named.filter(|query| known.insert(words(query)));
        fresh.take(most).map(str::to_owned).collect()
    }

    /// The newest failures as the judge reads them, the oldest of them first.
    pub fn trajectory(&self) -> String {
        let newest = self.failures.len().saturating_sub(NEWEST);
        let lines: Vec<String> = self.failures[newest..].iter().map(ToString::to_string).collect();
        if lines.is_empty() { "None.".to_owned() } else { lines.join("\n") }
    }
}

/// Turns in the order of time, ranked from both ends in turn, the newest first: a prompt without room for all leaves out
/// those in the middle.
pub(super) fn from_both_ends(facts: &[usize]) -> Vec<usize> {
    let newest_first = facts.iter().rev().zip(facts).flat_map(|(newest, oldest)| [*newest, *oldest]);
    newest_first.take(facts.len()).collect()
}

fn words(query: &str) -> BTreeSet<String> {
    analyze(query).into_iter().collect()
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action {
            Some(action) => write!(f, "- {action:?}:")?,
            None => write!(f, "- Root:")?,
        }
        self.queries.iter().try_for_each(|query| write!(f, " \"{query}\""))?;
        if self.missing.is_empty() { Ok(()) } else { write!(f, " missed: {}", self.missing) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn the_trajectory_keeps_the_newest() {
        let mut memory = ShortTerm::default();
        assert_eq!(memory.trajectory(), "None.");
        memory.fail(None, &strings(&["first"]), "");
        memory.fail(Some(Action::Break), &strings(&["second", "half"]), " the year\n");
        memory.fail(Some(Action::Delete), &strings(&["third"]), "all");
        memory.fail(Some(Action::Break), &strings(&["fourth"]), "None.");
        let want =
            "- Break: \"second\" \"half\" missed: the year\n- Delete: \"third\" missed: all\n- Break: \"fourth\"";
        assert_eq!(memory.trajectory(), want);
        // A failure that is no longer shown still counts.
        assert_eq!(memory.untried(&strings(&["First?", "fifth"]), 2), ["fifth"]);
        memory.forget_failure();
        assert_eq!(memory.untried(&strings(&["First?", "fourth"]), 2), ["fourth"]);
    }

    #[test]
    fn a_query_that_failed_is_known_in_other_letters_and_order() {
        let mut memory = ShortTerm::default();
        memory.fail(None, &strings(&["Where did Ada marry?"]), "");
        let check = |queries: &[&str], want: &[&str]| assert_eq!(memory.untried(&strings(queries), 2), want);
        check(&["where did ada marry", "Ada married. Where did?"], &[]);
        check(&["", " ?! ", "the of", "None.", "N/A"], &[]);
        check(&[" Ada's wedding ", "ada's WEDDING", "1911"], &["Ada's wedding", "1911"]);
        check(&["a b", "c d", "e f"], &["a b", "c d"]);
    }

    #[test]
    fn facts_are_ranked_from_both_ends() {
        assert_eq!(from_both_ends(&[]), Vec::<usize>::new());
        assert_eq!(from_both_ends(&[4]), [4]);
        assert_eq!(from_both_ends(&[1, 2, 3, 4]), [4, 1, 3, 2]);
        assert_eq!(from_both_ends(&[1, 2, 3, 4, 5]), [5, 1, 4, 2, 3]);
    }

    #[test]
    fn facts_are_in_the_order_of_time() {
        let mut memory = ShortTerm::default();
        assert!(memory.learn([10, 2]));
        assert!(!memory.learn([2]));
        assert!(memory.learn([2, 7]));
        assert_eq!(memory.facts(), [2, 7, 10]);
    }
}
