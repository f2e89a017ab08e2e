//! Inter-token latency of an interactive answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use calls::{Call, OnText, Priority};
use futures_util::future::{Either, select};

use super::item::Who;
use super::outcome::Outcome;
use super::workload;
use super::{EngineUnderTest, Items, SpeedSuite, Unit};
use crate::Result;

/// Tokens of the answer; the first counts as time to the first token and is left out.
const TOKENS: usize = 128;
/// Texts of one job of the embedder, of about 250 tokens each.
const TEXTS: usize = 256;
const WORDS: usize = 200;

/// An answer by itself, then the same while texts are embedded for as long as it takes: median and 99th percentile.
pub(super) async fn measure(
    repetitions: usize,
    engine: &dyn EngineUnderTest,
    progress: &mut dyn FnMut(&str),
    items: &mut Items,
) -> Result<()> {
    for (case, busy) in [("alone", false), ("while embedding", true)] {
        let mut gaps = Vec::new();
        for repetition in 0..repetitions {
            progress(&format!("itl {case}: {} of {repetitions}", repetition + 1));
            gaps.push(if busy { beside_embedding(repetition, engine).await? } else { answer(engine).await? });
        }
        for (name, percent) in [("p50", 50), ("p99", 99)] {
            let item = items.item(SpeedSuite::Itl, &format!("{name} {case}"), Unit::Milliseconds);
            for gaps in &gaps {
                let value = percentile(gaps, percent);
                let seconds = gaps.iter().sum::<f64>() / 1e3;
                item.add(Who::Ours, value, Outcome { seconds, output_tokens: TOKENS, ..Outcome::default() });
            }
        }
    }
    Ok(())
}

async fn beside_embedding(repetition: usize, engine: &dyn EngineUnderTest) -> Result<Vec<f64>> {
    let embedding = async {
        for job in 0.. {
            let seed = (repetition * 1000 + job) * TEXTS;
            let texts = (0..TEXTS).map(|text| workload::words(seed + text, WORDS)).collect();
            if let Err(error) = engine.embedder().embed(texts).await {
                return error;
            }
        }
        unreachable!("the jobs do not end")
    };
    match select(Box::pin(answer(engine)), Box::pin(embedding)).await {
        Either::Left((gaps, _)) => gaps,
        Either::Right((error, _)) => Err(error.into()),
    }
}

/// Milliseconds between the pieces of text of an answer.
async fn answer(engine: &dyn EngineUnderTest) -> Result<Vec<f64>> {
    let times = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&times);
    let note = move |_: &str| sink.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
    let call = workload::call("Tell me about the sea.", TOKENS);
    engine.caller().call(Call { priority: Priority::Interactive, on_text: Some(OnText::new(note)), ..call }).await?;
    let times = times.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(times.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3).collect())
}

/// The smallest value that is not below `percent` percent of the values.
pub(super) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let check = |percent, expect: f64| assert!((percentile(&values, percent) - expect).abs() < 1e-9, "{percent}");
        check(50, 100.0);
        check(99, 198.0);
        check(100, 200.0);
        assert!(percentile(&[], 50).is_nan());
    }
}
