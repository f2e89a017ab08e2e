//! `memlocal-bench retrieval`: search tools compared on data sets with known answers.

use std::collections::HashMap;

use anyhow::Result;
use calls::Embedder;
use engine::{Config, Engine, Models};
use eval::retrieval::{Comparison, Summary, rank};
use eval::{Beginning, FileDigest, Manifest, RunFolder};
use launch::flags::GlobalFlags;
use launch::loader::load_embedder;
use launch::progress::Steps;
use launch::wait_for;
use memory::Progress;

use crate::args::Retrieval;
use crate::provenance::{self, command_line, digests};
use crate::results::{keep, show};

pub fn run(bench: &Retrieval, global: &GlobalFlags) -> Result<()> {
    let began = Beginning::now(command_line());
    let mut data = bench.suite.load(&bench.data)?;
    data.limit(bench.limit.unwrap_or(usize::MAX));
    let name = format!("retrieval-{}", bench.suite);
    let folder = bench.out.as_ref().map(|out| RunFolder::create(out, &name)).transpose()?;
    let tools = if bench.tools.is_empty() { bench.suite.tools() } else { &bench.tools };
    let embeds = tools.iter().any(|tool| tool.embeds());
    let engine = embeds.then(|| embedder(bench, global)).transpose()?;
    let embedder = engine.as_ref().map(|engine| engine as &dyn Embedder);
    let (depths, windows) = (bench.suite.recall_depths(), bench.suite.windows());
    let comparison = Comparison { tools, bm25: bench.bm25, embedder, depths, windows };
    let mut steps = Steps::default();
    let report = &mut |done, of| steps.report(Progress { step: "embedding", unit: "passage", done, of });
    let rankings = wait_for(rank(&data, comparison, report))?;
    let summary = Summary::new(bench.suite, &data, &comparison, &rankings);
    if let Some(folder) = folder {
        let models = embeds.then(|| provenance::embedder(&bench.embedder, bench.quantise_embedder));
        let manifest = Manifest::new(began, digests(models, &[], global)?, FileDigest::of_all(&data.files)?);
        summary.draw(&folder.path().join("plots"))?;
        keep(folder, &manifest, &rankings.to_csv(), &summary)?;
    }
    show(&summary, bench.json)
}

/// An engine with the embedding model only.
fn embedder(bench: &Retrieval, global: &GlobalFlags) -> Result<Engine> {
    let embedder = Some(load_embedder(&bench.embedder, bench.quantise_embedder, global)?);
    let models = Models { language: Vec::new(), agents: HashMap::new(), embedder };
    Ok(Engine::start(models, Config::default())?)
}
