//! Speed of an engine on the workloads of the methods, beside a peer with the same work.
//!
//! A `Workload` is prompts and output lengths. Both sides generate exactly these lengths
//! ([`calls::Limits::min_output_tokens`]) from the same prompts with the same sampling options, so both do the same work.
//! Answers in a JSON schema have the same fields instead, and as many tokens as each side writes. Every
//! repetition has a unique prompt prefix, so that no KV cache is left from the one before. Ours and the peer are measured in turns, and the median
//! is reported.
//!
//! [`measure_clients`] measures servers from outside, and [`load`] tests a server under many streams, [`soak`] with mixed work.
//!
//! Not here: loading models (callers pass an [`EngineUnderTest`]).

mod client_load;
mod decoding;
mod engine;
mod gam_trace;
mod http;
mod item;
mod latency;
mod load;
mod outcome;
mod peer;
mod preset;
mod question;
mod report;
mod restart;
mod service;
mod soak;
mod soak_client;
mod suite;
mod workload;

use std::path::Path;
use std::time::Instant;

use crate::{Error, Result};
pub use client_load::{ClientLoad, measure_clients};
pub use decoding::Decoding;
pub use engine::EngineUnderTest;
pub use item::{Items, Sample, SpeedItem, Who};
pub use load::{LoadReport, Look, load};
use outcome::Outcome;
pub use outcome::Unit;
pub use peer::Peer;
pub use preset::Preset;
pub use report::SpeedReport;
pub use service::Service;
pub use soak::{SoakReport, Work, Worked, soak};
pub use suite::SpeedSuite;
use workload::Workload;

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    pub suites: &'a [SpeedSuite],
    /// Sizes of prompts and batches.
    pub preset: Preset,
    /// How long answers are drawn; each is measured. Other workloads are drawn as the agents do.
    pub decodings: &'a [Decoding],
    pub repetitions: usize,
    /// An OpenAI-compatible server with the same model on the same cores.
    pub peer: Option<&'a Peer>,
    /// One with the same embedding model, for [`SpeedSuite::Embed`].
    pub embedding_peer: Option<&'a Peer>,
    /// LoCoMo's file, for [`SpeedSuite::GamTrace`].
    pub conversations: Option<&'a Path>,
    /// Questions about it.
    pub questions: usize,
    /// Documents to memorise, for [`SpeedSuite::Ask`].
    pub documents: Option<&'a Path>,
}

impl<'a> Plan<'a> {
    /// The files that a suite needs; an empty path for one that needs none.
    fn data_of(&self, suite: SpeedSuite) -> Result<&'a Path> {
        let (path, flag) = match suite {
            SpeedSuite::Ask => (self.documents, "--docs"),
            SpeedSuite::GamTrace => (self.conversations, "--data"),
            _ => return Ok(Path::new("")),
        };
        path.ok_or(Error::Missing { suite, flag })
    }
}

/// Measures everything that a plan names, into `items`, which keep their values if there is an error. `progress` gets the
/// name of the next measurement.
///
/// # Errors
/// [`Error::Missing`] for data that a suite needs; errors of the engine or the peer.
pub async fn measure(
    plan: Plan<'_>,
    engine: &dyn EngineUnderTest,
    items: &mut Items,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    let measured = measure_all(plan, engine, items, progress).await;
    items.items.retain(|item| !item.samples.is_empty());
    measured
}

async fn measure_all(
    plan: Plan<'_>,
    engine: &dyn EngineUnderTest,
    items: &mut Items,
    progress: &mut dyn FnMut(&str),
) -> Result<()> {
    // Missing data are an error before hours of measuring and not after them.
    plan.suites.iter().try_for_each(|suite| plan.data_of(*suite).map(|_| ()))?;
    for suite in plan.suites {
        match suite {
            SpeedSuite::Embed => embed(plan, engine, progress, items).await?,
            SpeedSuite::Itl => latency::measure(plan.repetitions, engine, progress, items).await?,
            SpeedSuite::Load => start(plan, engine, progress, items).await?,
            SpeedSuite::Snapshot => restart::measure(plan.repetitions, engine, progress, items).await?,
            SpeedSuite::Ask => {
                let documents = plan.data_of(*suite)?;
                question::measure(plan.repetitions, documents, engine, progress, items).await?;
            }
            SpeedSuite::GamTrace => {
                let workload = gam_trace::record(plan.data_of(*suite)?, plan.questions, engine).await?;
                run(&[workload], plan, engine, progress, items).await?;
            }
            // Needs servers and no engine: `measure_clients`.
            SpeedSuite::Serve => {}
            SpeedSuite::Prefill | SpeedSuite::Decode | SpeedSuite::Json | SpeedSuite::Siblings => {
                let sizes = plan.preset.sizes();
                let workloads = workload::of(*suite, sizes, plan.decodings, engine.caller(), &mut items.left_out);
                run(&workloads, plan, engine, progress, items).await?;
            }
        }
    }
    Ok(())
}

/// Gives both sides the same work, in turns, and each workload once before any is repeated: a processor that slows down does
/// so for all of them.
async fn run(
    workloads: &[Workload],
    plan: Plan<'_>,
    engine: &dyn EngineUnderTest,
    progress: &mut dyn FnMut(&str),
    items: &mut Items,
) -> Result<()> {
    let rounds =
        (0..plan.repetitions).flat_map(|repetition| workloads.iter().map(move |workload| (repetition, workload)));
    for (repetition, workload) in rounds {
        let item = items.item(workload.suite, &workload.case, workload.unit);
        progress(&format!("{} {}: {} of {}", workload.suite, workload.case, repetition + 1, plan.repetitions));
        let chains = workload.marked(repetition);
        if workload.prefilled {
            let prefills = workload::prefills(&chains);
            workload::run(&prefills, engine.caller()).await?;
            plan.peer.map(|peer| peer.run(&workload::ids(&prefills, engine)?)).transpose()?;
        }
        let outcome = workload::run(&chains, engine.caller()).await?;
        let ids = workload::ids(&chains, engine)?;
        item.prompt_tokens_minimum = workload.counts_tokens.then(|| workload::distinct_tokens(&ids));
        item.add(Who::Ours, workload.unit.of(&outcome), outcome);
        if let Some(peer) = plan.peer {
            let outcome = peer.run(&ids)?;
            item.add(Who::Peer, workload.unit.of(&outcome), outcome);
        }
    }
    Ok(())
}

/// Tokens per second of texts of about these numbers of tokens, alone or in a batch, where the embedder reads as many.
async fn embed(
    plan: Plan<'_>,
    engine: &dyn EngineUnderTest,
    progress: &mut dyn FnMut(&str),
    items: &mut Items,
) -> Result<()> {
    let embedder = engine.embedder();
    for (texts, tokens) in [(32, 128), (8, 512), (1, 16)] {
        let case = format!("{texts} texts of {tokens} tokens");
        let window = embedder.window_tokens();
        if tokens > window {
            items.left_out.push(format!("embed {case}: {} reads {window} tokens of a text", embedder.name()));
            continue;
        }
        let item = items.item(SpeedSuite::Embed, &case, Unit::PromptTokensPerSecond);
        for repetition in 0..plan.repetitions {
            progress(&format!("embed {case}: {} of {}", repetition + 1, plan.repetitions));
            let text = |text| workload::passage_of(repetition * texts + text, tokens, embedder);
            let batch: Vec<String> = (0..texts).map(text).collect();
            let prompt_tokens = batch.iter().map(|text| embedder.token_spans(text).len()).sum();
            let started = Instant::now();
            embedder.embed(batch.clone()).await?;
            let outcome = Outcome { seconds: started.elapsed().as_secs_f64(), prompt_tokens, ..Outcome::default() };
            item.add(Who::Ours, Unit::PromptTokensPerSecond.of(&outcome), outcome);
            if let Some(peer) = plan.embedding_peer {
                let seconds = peer.embed(&batch)?;
                let outcome = Outcome { seconds, ..outcome };
                item.add(Who::Peer, Unit::PromptTokensPerSecond.of(&outcome), outcome);
            }
        }
    }
    Ok(())
}

/// From nothing to the first token of an answer; the files are in the system's cache, except the first time perhaps.
async fn start(
    plan: Plan<'_>,
    engine: &dyn EngineUnderTest,
    progress: &mut dyn FnMut(&str),
    items: &mut Items,
) -> Result<()> {
    let item = items.item(SpeedSuite::Load, "to the first token", Unit::Seconds);
    for repetition in 0..plan.repetitions {
        progress(&format!("load: {} of {}", repetition + 1, plan.repetitions));
        let started = Instant::now();
        let fresh = engine.fresh()?;
        let outcome = workload::run(&[vec![workload::call("Say hello.", 1)]], fresh.caller()).await?;
        let seconds = started.elapsed().as_secs_f64();
        item.add(Who::Ours, seconds, Outcome { seconds, ..outcome });
    }
    Ok(())
}
