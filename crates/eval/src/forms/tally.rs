//! Counts of replies by step, and how they are printed.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::Endings;

/// The replies of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    #[serde(flatten)]
    pub endings: Endings,
    /// Replies that parse and validate, and do not end in white space; free text always does.
    pub good: usize,
    /// The errors of the others.
    pub wrong: Vec<String>,
}

/// The replies of all steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Forms {
    pub steps: BTreeMap<String, Tally>,
}

impl Forms {
    /// All steps together.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        for tally in self.steps.values() {
            total.endings += tally.endings;
            total.good += tally.good;
            total.wrong.extend_from_slice(&tally.wrong);
        }
        total
    }

    /// The steps in which more than this share of the replies, from 0 to 1, did not end by themselves.
    pub fn cut_above(&self, limit: f64) -> Vec<(&str, Endings)> {
        let steps = self.steps.iter().map(|(step, tally)| (step.as_str(), tally.endings));
        steps.filter(|(_, endings)| endings.cut_rate() > limit).collect()
    }

    /// The steps line by line, for programs.
    pub fn to_csv(&self) -> String {
        let line = |(step, tally): (&String, &Tally)| {
            let Endings { calls, length, repetition, closed_early } = tally.endings;
            format!("{step},{calls},{},{length},{repetition},{closed_early}\n", tally.good)
        };
        let header = "step,calls,good,length,repetition,closed_early\n".to_owned();
        std::iter::once(header).chain(self.steps.iter().map(line)).collect()
    }
}

impl fmt::Display for Forms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# Forms\n\n| step | calls | good | at the limit | repetition | closed early | cut, % |")?;
        writeln!(f, "|---|{}", "---:|".repeat(6))?;
        let all = self.total();
        for (step, tally) in self.steps.iter().map(|(step, tally)| (step.as_str(), tally)).chain([("all", &all)]) {
            let Endings { calls, length, repetition, closed_early } = tally.endings;
            write!(f, "| {step} | {calls} | {} | {length} | {repetition} | {closed_early} |", tally.good)?;
            writeln!(f, " {:.1} |", tally.endings.cut_rate() * 100.0)?;
        }
        all.wrong.iter().try_for_each(|wrong| writeln!(f, "\n* {wrong}"))
    }
}
