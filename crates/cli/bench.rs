//! `memlocal bench`: numbers, and what they came from.

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;
use calls::Embedder;
use engine::{Config, Engine, Models};
use eval::retrieval::{Comparison, Rankings, Summary, rank};
use eval::{Dataset, FileDigest, Manifest, ModelDigest, RunFolder};
use memory::Progress;

use crate::args::{Bench, Machine, Retrieval};
use crate::ingest::wait_for;
use crate::machine::{fetched, load_embedder, name};
use crate::output::{print, print_line};
use crate::progress::Steps;
use crate::{forms, questions, service, speed};

pub fn run(command: &Bench, machine: &Machine) -> Result<ExitCode> {
    match command {
        Bench::Retrieval(bench) => retrieval(bench, machine)?,
        Bench::Engine(bench) => speed::run(bench, machine)?,
        Bench::Serve(bench) => service::run(bench, machine)?,
        Bench::Forms(bench) => forms::run(bench, machine)?,
        Bench::Qa(bench) => questions::run(bench, machine)?,
        Bench::Rescore { run } => questions::rescore(run)?,
        Bench::Compare { a, b } => questions::compare(a, b)?,
        Bench::Replay { run } => return questions::replay(run),
    }
    Ok(ExitCode::SUCCESS)
}

fn retrieval(bench: &Retrieval, machine: &Machine) -> Result<()> {
    let started = SystemTime::now();
    let mut data = bench.suite.load(&bench.data)?;
    data.limit(bench.limit.unwrap_or(usize::MAX));
    let name = format!("retrieval-{}", bench.suite);
    let folder = bench.out.as_ref().map(|out| RunFolder::create(out, &name)).transpose()?;
    let tools = if bench.tools.is_empty() { bench.suite.tools() } else { &bench.tools };
    let embeds = tools.iter().any(|tool| tool.embeds());
    let (engine, models) = embeds.then(|| embedder(&bench.embedder, machine)).transpose()?.unzip();
    let embedder = engine.as_ref().map(|engine| engine as &dyn Embedder);
    let comparison = Comparison { tools, bm25: bench.bm25, embedder };
    let mut steps = Steps::default();
    let report = &mut |done, of| steps.report(Progress { step: "embedding", unit: "passage", done, of });
    let rankings = wait_for(rank(&data, comparison, report))?;
    let summary = Summary::new(bench.suite, &data, &comparison, &rankings);
    if let Some(folder) = folder {
        keep(folder, started, models.into_iter().collect(), &data, &rankings, &summary)?;
    }
    if bench.json { print_line(serde_json::to_string_pretty(&summary)?) } else { print(summary) }
}

/// An engine for embedding only, and what it runs.
fn embedder(typed: &str, machine: &Machine) -> Result<(Engine, ModelDigest)> {
    let embedder = Some(load_embedder(typed, machine)?);
    let models = Models { language: Vec::new(), roles: HashMap::new(), embedder };
    Ok((Engine::start(models, Config::default())?, digest(typed, machine)?))
}

/// What a model is, file by file.
pub fn digest(typed: &str, machine: &Machine) -> Result<ModelDigest> {
    let files =
        fetched(typed, machine)?.files.iter().map(|file| FileDigest::of(&file.path)).collect::<eval::Result<_>>()?;
    Ok(ModelDigest { name: name(typed), files })
}

/// The command as it was typed.
pub fn typed() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("memlocal".to_owned()).chain(words).collect()
}

/// Writes the run folder.
fn keep(
    folder: RunFolder,
    started: SystemTime,
    models: Vec<ModelDigest>,
    data: &Dataset,
    rankings: &Rankings,
    summary: &Summary,
) -> Result<()> {
    let files = data.files.iter().map(|file| FileDigest::of(file)).collect::<eval::Result<_>>()?;
    let manifest = Manifest::new(typed(), started, models, files);
    let path = folder.write(&manifest, &rankings.to_csv(), summary)?;
    eprintln!("kept in {}", path.display());
    Ok(())
}
