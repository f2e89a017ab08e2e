//! Do two columns differ? A paired bootstrap over their common questions (Efron and Tibshirani 1993).

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::folder::{QaManifest, items, manifest};
use super::item::{Column, Item};
use super::margin::FEWEST;
use super::reporting::{is_published, scored};
use crate::{Error, Random, Result};

/// Bootstrap resamples.
const DRAWS: usize = 10_000;
/// A fixed seed, so that the draws are equal in every run.
const SEED: u64 = 1;
/// A difference with a lower p-value is called significant.
const LEVEL: f64 = 0.05;

/// Two columns by one scorer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub scorer: String,
    pub a: Column,
    pub b: Column,
    /// The number of common questions.
    pub questions: usize,
    pub mean_a: f64,
    pub mean_b: f64,
    /// The 95 % confidence interval of `mean_b - mean_a`.
    pub low: f64,
    pub high: f64,
    /// The two-sided p-value.
    pub p: f64,
}

/// Compares the common columns of two runs; all pairs of columns if they have none in common or are the same run.
///
/// # Errors
/// [`Error::NotComparable`] for different suites or questions, and those of the files.
pub fn compare(a: &Path, b: &Path) -> Result<Vec<Comparison>> {
    let (manifest_a, manifest_b) = (manifest(a)?, manifest(b)?);
    let (suite_a, suite_b) = (&manifest_a.plan.suite, &manifest_b.plan.suite);
    if suite_a != suite_b {
        return Err(Error::NotComparable { problem: format!("one is about {suite_a}, the other about {suite_b}") });
    }
    let (items_a, items_b) = (by_column(a, &manifest_a)?, by_column(b, &manifest_b)?);
    let same_run = a == b;
    let common = |x: &Column, y: &Column| !same_run && x == y;
    let all: Vec<(&Column, &Column)> = items_a.keys().flat_map(|x| items_b.keys().map(move |y| (x, y))).collect();
    let mut pairs: Vec<_> = all.iter().copied().filter(|(x, y)| common(x, y)).collect();
    if pairs.is_empty() {
        pairs = all.into_iter().filter(|(x, y)| if same_run { x < y } else { x != y }).collect();
    }
    // A published run has no texts of its questions.
    let have_texts = !is_published(a) && !is_published(b);
    let mut comparisons = Vec::new();
    for (x, y) in pairs {
        for scorer in manifest_a.plan.scorers.iter().filter(|scorer| manifest_b.plan.scorers.contains(scorer)) {
            let scores = paired(&items_a[x], &items_b[y], scorer, have_texts);
            if !scores.is_empty() {
                comparisons.push(bootstrap(scorer, x, y, &scores));
            }
        }
    }
    if comparisons.is_empty() {
        return Err(Error::NotComparable { problem: "no two columns were asked the same question".into() });
    }
    Ok(comparisons)
}

/// The results of a run, scored as in its report.
fn by_column(run: &Path, manifest: &QaManifest) -> Result<BTreeMap<Column, Vec<Item>>> {
    let (_, items) = if is_published(run) { items(run) } else { scored(run, &manifest.plan) }?;
    let mut columns: BTreeMap<Column, Vec<Item>> = BTreeMap::new();
    for item in items {
        columns.entry(item.column()).or_default().push(item);
    }
    Ok(columns)
}

/// The scores of the common questions, which have the same case, id and, if both runs have texts, the same text.
fn paired(a: &[Item], b: &[Item], scorer: &str, have_texts: bool) -> Vec<(f64, f64)> {
    let score = |item: &Item| item.scores.get(scorer).map(|mark| mark.value);
    let text = |item: &Item| have_texts.then(|| item.question.text.clone());
    let question = |item: &Item| (item.case.clone(), item.question.id.clone(), text(item));
    let others: BTreeMap<_, f64> = b.iter().filter_map(|item| Some((question(item), score(item)?))).collect();
    a.iter().filter_map(|item| Some((score(item)?, *others.get(&question(item))?))).collect()
}

fn bootstrap(scorer: &str, a: &Column, b: &Column, scores: &[(f64, f64)]) -> Comparison {
    let count = scores.len() as f64;
    let (mean_a, mean_b) =
        (scores.iter().map(|pair| pair.0).sum::<f64>() / count, scores.iter().map(|pair| pair.1).sum::<f64>() / count);
    let mut random = Random::new(SEED);
    let mut draw = || (0..scores.len()).map(|_| random.pick(scores)).map(|(a, b)| b - a).sum::<f64>() / count;
    let mut differences: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
    differences.sort_by(f64::total_cmp);
    let (below, above) =
        (differences.iter().filter(|d| **d <= 0.0).count(), differences.iter().filter(|d| **d >= 0.0).count());
    let p = (2.0 * below.min(above) as f64 / DRAWS as f64).clamp(1.0 / DRAWS as f64, 1.0);
    let (low, high) = (differences[DRAWS / 40], differences[DRAWS - 1 - DRAWS / 40]);
    let (scorer, questions) = (scorer.to_owned(), scores.len());
    Comparison { scorer, a: a.clone(), b: b.clone(), questions, mean_a, mean_b, low, high, p }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { scorer, a, b, questions, mean_a, mean_b, low, high, p } = self;
        let percent = |value: f64| value * 100.0;
        let (mean_a, mean_b, difference) = (percent(*mean_a), percent(*mean_b), percent(mean_b - mean_a));
        write!(f, "{scorer}: {} by {} {mean_a:.2} %, {} by {} {mean_b:.2} %", a.0, a.1, b.0, b.1)?;
        write!(f, ", difference {difference:+.2} points")?;
        write!(f, " (95 % interval {:+.2} to {:+.2})", percent(*low), percent(*high))?;
        let verdict = match *p < LEVEL {
            _ if *questions < FEWEST => "too few to say",
            true => "significant at 5 %",
            false => "not significant at 5 %",
        };
        write!(f, " over {questions} questions, p = {p:.4}: {verdict}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_significant_if_it_is_large_for_the_number_of_questions() {
        let column = |name: &str| ("model".to_owned(), name.to_owned());
        let check = |scores: &[(f64, f64)], expect: &str| {
            let verdict = bootstrap("f1:gam", &column("a"), &column("b"), scores).to_string();
            assert!(verdict.ends_with(expect), "{verdict}");
        };
        let better: Vec<(f64, f64)> = (0..30).map(|number| (0.0, f64::from(number % 3 == 0))).collect();
        check(&better, ": significant at 5 %");
        check(&better[..10], ": too few to say");
        let other: Vec<(f64, f64)> = (0..30).map(|n| (f64::from(n % 3 == 1), f64::from(n % 3 == 0))).collect();
        check(&other, ": not significant at 5 %");
    }

    /// The interval of a difference of 0.25 over 400 questions. The ends that 10,000 draws find have a standard deviation
    /// of 0.014 times their distance from the mean.
    #[test]
    fn the_interval_of_a_difference_is_that_of_its_standard_error() {
        let column = |name: &str| ("model".to_owned(), name.to_owned());
        let scores: Vec<(f64, f64)> = (0..400).map(|number| (0.0, f64::from(number % 4 == 0))).collect();
        let found = bootstrap("f1:gam", &column("a"), &column("b"), &scores);
        let half = 1.96 * (0.1875_f64 / 399.0).sqrt();
        assert_eq!((found.mean_a, found.mean_b), (0.0, 0.25));
        for (end, want) in [(found.low, 0.25 - half), (found.high, 0.25 + half)] {
            assert!((end - want).abs() < half / 10.0, "{end}, want {want}");
        }
        assert!(found.to_string().contains("difference +25.00 points (95 % interval +2"), "{found}");
    }
}
