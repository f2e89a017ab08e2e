//! `memlocal-bench retrieval`: search tools compared on data sets with known answers.

use std::collections::HashMap;

use anyhow::Result;
use calls::Embedder;
use engine::{Config, Engine, Models};
use eval::retrieval::{Comparison, Rankings, Summary, rank};
use eval::{Beginning, Dataset, FileDigest, Manifest, ModelDigest, RunFolder};
use launch::eprintln;
use launch::flags::GlobalFlags;
use launch::loader::load_embedder;
use launch::output::{print, print_line};
use launch::progress::Steps;
use launch::typed_model::embedder_quantisation;
use launch::wait_for;
use memory::Progress;

use crate::args::Retrieval;
use crate::provenance::{command_line, digest};

pub fn run(bench: &Retrieval, global: &GlobalFlags) -> Result<()> {
    let began = Beginning::now(command_line());
    let mut data = bench.suite.load(&bench.data)?;
    data.limit(bench.limit.unwrap_or(usize::MAX));
    let name = format!("retrieval-{}", bench.suite);
    let folder = bench.out.as_ref().map(|out| RunFolder::create(out, &name)).transpose()?;
    let tools = if bench.tools.is_empty() { bench.suite.tools() } else { &bench.tools };
    let embeds = tools.iter().any(|tool| tool.embeds());
    let (engine, models) = embeds.then(|| embedder(bench, global)).transpose()?.unzip();
    let embedder = engine.as_ref().map(|engine| engine as &dyn Embedder);
    let (depths, windows) = (bench.suite.recall_depths(), bench.suite.windows());
    let comparison = Comparison { tools, bm25: bench.bm25, embedder, depths, windows };
    let mut steps = Steps::default();
    let report = &mut |done, of| steps.report(Progress { step: "embedding", unit: "passage", done, of });
    let rankings = wait_for(rank(&data, comparison, report))?;
    let summary = Summary::new(bench.suite, &data, &comparison, &rankings);
    if let Some(folder) = folder {
        keep(folder, began, models.into_iter().collect(), &data, &rankings, &summary)?;
    }
    if bench.json { print_line(serde_json::to_string_pretty(&summary)?) } else { print(summary) }
}

/// An engine with the embedding model only, and that model's digest.
fn embedder(bench: &Retrieval, global: &GlobalFlags) -> Result<(Engine, ModelDigest)> {
    let (name, quantise) = (&bench.embedder, bench.quantise_embedder);
    let embedder = Some(load_embedder(name, quantise, global)?);
    let models = Models { language: Vec::new(), agents: HashMap::new(), embedder };
    Ok((Engine::start(models, Config::default())?, digest(name, embedder_quantisation(name, quantise), global)?))
}

/// Writes the run folder.
fn keep(
    folder: RunFolder,
    began: Beginning,
    models: Vec<ModelDigest>,
    data: &Dataset,
    rankings: &Rankings,
    summary: &Summary,
) -> Result<()> {
    let files = data.files.iter().map(|file| FileDigest::of(file)).collect::<eval::Result<_>>()?;
    let manifest = Manifest::new(began, models, files);
    summary.draw(&folder.path().join("plots"))?;
    let path = folder.write(&manifest, &rankings.to_csv(), summary)?;
    eprintln!("kept in {}", path.display());
    Ok(())
}
