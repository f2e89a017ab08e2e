//! Fits how much a model's likelihood counts beside the surface score: a grid over W, L and A, by F1 of the best candidate.
//!
//! A line of the input is a line of `dump`, with `lm` and `prior`: for each candidate and last for "not in the text" the
//! log-probability, the number of tokens and the log-probability of the end, after the chats of `memory::grounding::prompt`.

use std::fs;

use serde_json::Value;

use crate::Done;

struct Scored {
    surface: f64,
    chars: f64,
    with_evidence: f64,
    without: f64,
    f1: f64,
}

pub fn fit(file: &str) -> Done {
    let lines = fs::read_to_string(file)?;
    let cases =
        lines.lines().map(|line| Ok(case(&serde_json::from_str(line)?))).collect::<serde_json::Result<Vec<_>>>()?;
    let mut results: Vec<(f64, f64, [f64; 4])> = Vec::new();
    for surface in [0.0, 1.0] {
        for weight in [0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0] {
            for prior in [0.0, 0.25, 0.5, 0.75, 1.0] {
                for power in [0.0, 0.25, 0.5, 1.0] {
                    let score = |c: &Scored| {
                        surface * c.surface
                            + weight * (c.with_evidence - prior * c.without) * 10_f64.powf(power) / c.chars.powf(power)
                    };
                    let (mut f1, mut loss) = (0.0, 0.0);
                    for case in cases.iter().filter(|case| !case.is_empty()) {
                        let best = case.iter().max_by(|a, b| score(a).total_cmp(&score(b))).map_or(0.0, |best| best.f1);
                        f1 += best;
                        let top = case.iter().map(score).fold(f64::NEG_INFINITY, f64::max);
                        let total: f64 = case.iter().map(|c| (score(c) - top).exp()).sum();
                        loss -=
                            (case.iter().map(|c| (score(c) - top).exp() * c.f1).sum::<f64>() / total).max(1e-3).ln();
                    }
                    results.push((
                        100.0 * f1 / cases.len() as f64,
                        loss / cases.len() as f64,
                        [surface, weight * 10_f64.powf(power), prior, power],
                    ));
                }
            }
        }
    }
    for (title, surface) in [("likelihood alone", 0.0), ("with surface", 1.0)] {
        let mut part: Vec<_> = results.iter().filter(|(_, _, at)| at[0] == surface).collect();
        part.sort_by(|a, b| a.1.total_cmp(&b.1));
        println!("{title}: {} questions; F1, loss, [surface, W, L, A]", cases.len());
        part.iter().take(8).for_each(|row| println!("  {:.1} {:.4} {:?}", row.0, row.1, row.2));
    }
    let plain = results.iter().find(|(_, _, at)| at[0] == 1.0 && at[1] == 0.0);
    println!("surface alone: {plain:?}");
    Ok(())
}

fn case(line: &Value) -> Vec<Scored> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let total = |score: &Value| score[0].as_f64().unwrap_or(0.0) + score[2].as_f64().unwrap_or(0.0);
    let (lm, prior) = (list(&line["lm"]), list(&line["prior"]));
    let scored = |(at, candidate): (usize, Value)| Scored {
        surface: candidate["surface"].as_f64().unwrap_or(0.0),
        chars: candidate["text"].as_str().map_or(1, |text| text.chars().count()) as f64,
        with_evidence: total(&lm[at]),
        without: prior.get(at).map_or(0.0, total),
        f1: candidate["f1"].as_f64().unwrap_or(0.0),
    };
    list(&line["candidates"]).into_iter().enumerate().map(scored).collect()
}
