//! The numbers of a run of measurements.

use std::fmt;

use serde::Serialize;

use super::SpeedSuite;
use super::outcome::{Outcome, Unit};
use crate::run_folder::csv_line;

/// The side that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Ours,
    Peer,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub who: Who,
    /// In the item's unit.
    pub value: f64,
    pub outcome: Outcome,
}

/// One line of the results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpeedItem {
    pub suite: SpeedSuite,
    pub case: String,
    pub unit: Unit,
    /// The median.
    pub ours: f64,
    /// The median.
    pub peer: Option<f64>,
    /// The speed-up of ours over the peer: above 1 is better, whatever the unit.
    pub ratio: Option<f64>,
    /// Prompt tokens that ours computed; the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens_computed: Option<usize>,
    /// The same for the peer, as far as it reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_prompt_tokens_computed: Option<usize>,
    /// With each distinct prefix computed once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_tokens_minimum: Option<usize>,
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// All lines.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Items {
    pub items: Vec<SpeedItem>,
    /// Workloads that do not fit the model's context.
    pub left_out: Vec<String>,
}

impl SpeedItem {
    /// Adds a measurement and recomputes the medians.
    pub(super) fn add(&mut self, who: Who, value: f64, outcome: Outcome) {
        self.samples.push(Sample { who, value, outcome });
        self.ours = median(self.values(Who::Ours, |sample| sample.value)).unwrap_or(f64::NAN);
        self.peer = median(self.values(Who::Peer, |sample| sample.value));
        self.ratio = self.peer.map(|peer| if self.unit.more_is_better() { self.ours / peer } else { peer / self.ours });
        if self.prompt_tokens_minimum.is_some() {
            let computed = |sample: &Sample| (sample.outcome.prompt_tokens - sample.outcome.cached_tokens) as u64;
            let of = |who| median_of_counts(self.values(who, computed)).map(|tokens| tokens as usize);
            (self.prompt_tokens_computed, self.peer_prompt_tokens_computed) = (of(Who::Ours), of(Who::Peer));
        }
    }

    fn values<T>(&self, who: Who, value: impl Fn(&Sample) -> T) -> Vec<T> {
        self.samples.iter().filter(|sample| sample.who == who).map(value).collect()
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    middle(&values).map(|(lower, upper)| f64::midpoint(lower, upper))
}

/// The median of whole numbers, rounded down.
pub(super) fn median_of_counts(mut counts: Vec<u64>) -> Option<u64> {
    counts.sort_unstable();
    middle(&counts).map(|(lower, upper)| u64::midpoint(lower, upper))
}

/// The two values in the middle, which are one if their number is odd.
fn middle<T: Copy>(sorted: &[T]) -> Option<(T, T)> {
    let last = sorted.len().checked_sub(1)?;
    Some((sorted[last / 2], sorted[sorted.len() / 2]))
}

impl Items {
    /// The line of a case, a new one if it has none.
    pub(super) fn item(&mut self, suite: SpeedSuite, case: &str, unit: Unit) -> &mut SpeedItem {
        let is_it = |item: &SpeedItem| item.suite == suite && item.case == case && item.unit == unit;
        if let Some(at) = self.items.iter().position(is_it) {
            return &mut self.items[at];
        }
        self.items.push(SpeedItem {
            suite,
            case: case.to_owned(),
            unit,
            ours: f64::NAN,
            peer: None,
            ratio: None,
            prompt_tokens_computed: None,
            peer_prompt_tokens_computed: None,
            prompt_tokens_minimum: None,
            samples: Vec::new(),
        });
        let last = self.items.len() - 1;
        &mut self.items[last]
    }

    /// Every single measurement.
    pub fn to_csv(&self) -> String {
        let mut csv = String::from("suite,case,unit,who,value,seconds,prompt_tokens,cached_tokens,output_tokens\n");
        for item in &self.items {
            for Sample { who, value, outcome } in &item.samples {
                let Outcome { seconds, prompt_tokens, cached_tokens, output_tokens } = outcome;
                let who = if *who == Who::Ours { "ours" } else { "peer" };
                csv += &csv_line([
                    item.suite.to_string(),
                    item.case.clone(),
                    item.unit.to_string(),
                    who.to_owned(),
                    format!("{value:.4}"),
                    format!("{seconds:.5}"),
                    prompt_tokens.to_string(),
                    cached_tokens.to_string(),
                    output_tokens.to_string(),
                ]);
            }
        }
        csv
    }
}

impl fmt::Display for Items {
    /// Writes it as Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Medians; a ratio above 1 is the speed-up of memlocal over the peer.")?;
        if self.items.iter().any(|item| item.prompt_tokens_minimum.is_some()) {
            writeln!(f, "Prompt tokens computed: those that no cache held; at least: each distinct prefix once.")?;
        }
        writeln!(
            f,
            "\n| suite | case | unit | ours | peer | ratio | prompt tokens computed | at least | peer computed |"
        )?;
        writeln!(f, "|---|---|---|---:|---:|---:|---:|---:|---:|")?;
        for item in &self.items {
            let SpeedItem { suite, case, unit, ours, peer, ratio, .. } = item;
            let number = |value: &Option<f64>| value.map_or_else(String::new, |value| format!("{value:.2}"));
            let count = |value: Option<usize>| value.map_or_else(String::new, |value| value.to_string());
            write!(f, "| {suite} | {case} | {unit} | {ours:.2} | {} | {} ", number(peer), number(ratio))?;
            let (computed, least) = (item.prompt_tokens_computed, item.prompt_tokens_minimum);
            writeln!(f, "| {} | {} | {} |", count(computed), count(least), count(item.peer_prompt_tokens_computed))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_say_how_many_times_faster_ours_is() {
        let check = |unit: Unit, ours: &[f64], peer: &[f64], expect: (f64, Option<f64>, Option<f64>)| {
            let mut items = Items::default();
            let item = items.item(SpeedSuite::Decode, "", unit);
            ours.iter().for_each(|value| item.add(Who::Ours, *value, Outcome::default()));
            peer.iter().for_each(|value| item.add(Who::Peer, *value, Outcome::default()));
            assert_eq!((item.ours, item.peer, item.ratio), expect);
        };
        check(Unit::Seconds, &[3.0, 1.0, 2.0], &[8.0, 12.0], (2.0, Some(10.0), Some(5.0)));
        check(Unit::OutputTokensPerSecond, &[30.0], &[15.0], (30.0, Some(15.0), Some(2.0)));
        check(Unit::Milliseconds, &[4.0, 6.0], &[], (5.0, None, None));
    }

    #[test]
    fn the_median_of_an_even_number_of_counts_is_between_the_two_in_the_middle() {
        assert_eq!(median_of_counts(vec![]), None);
        assert_eq!(median_of_counts(vec![9, 1, 5]), Some(5));
        let mut items = Items::default();
        let item = items.item(SpeedSuite::GamTrace, "", Unit::Seconds);
        item.prompt_tokens_minimum = Some(1);
        for prompt_tokens in [40, 10, 31, 20] {
            item.add(Who::Ours, 1.0, Outcome { prompt_tokens, ..Outcome::default() });
        }
        assert_eq!((item.prompt_tokens_computed, item.peer_prompt_tokens_computed), (Some(25), None));
    }

    #[test]
    fn the_columns_of_a_report_are_explained() {
        let mut items = Items::default();
        items.item(SpeedSuite::Serve, "1 clients", Unit::OutputTokensPerSecond).add(Who::Ours, 2.0, Outcome::default());
        let explained = "Medians; a ratio above 1 is the speed-up of memlocal over the peer.\n";
        assert!(items.to_string().starts_with(&format!("{explained}\n| suite |")), "{items}");
        items.item(SpeedSuite::Siblings, "", Unit::Seconds).prompt_tokens_minimum = Some(1);
        assert!(items.to_string().starts_with(&format!("{explained}Prompt tokens computed: ")), "{items}");
    }

    #[test]
    fn a_comma_in_a_name_begins_no_column() {
        let mut items = Items::default();
        let item = items.item(SpeedSuite::GamTrace, "20 questions, conv-26", Unit::Seconds);
        item.add(Who::Peer, 1.5, Outcome { seconds: 1.5, prompt_tokens: 3, cached_tokens: 2, output_tokens: 1 });
        let csv = items.to_csv();
        assert_eq!(csv.lines().last(), Some(r#"gam-trace,"20 questions, conv-26",s,peer,1.5000,1.50000,3,2,1"#));
    }
}
