//! `memlocal bench`: numbers, and what they came from.

use std::collections::HashMap;
use std::fmt::Display;
use std::process::ExitCode;

use anyhow::Result;
use calls::Embedder;
use engine::{Config, Engine, Models};
use eval::retrieval::{Comparison, Rankings, Summary, rank};
use eval::{Beginning, Dataset, FileDigest, Manifest, ModelDigest, RunFolder};
use memory::Progress;

use crate::args::{Bench, Machine, Retrieval};
use crate::ingest::wait_for;
use crate::machine::{fetched, load_embedder, quantised_name};
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
        Bench::Plot { runs, out } => questions::plot(runs, out)?,
        Bench::Publish { run, out } => eval::qa::publish(run, out)?,
        Bench::Replay { run } => return questions::replay(run),
    }
    Ok(ExitCode::SUCCESS)
}

fn retrieval(bench: &Retrieval, machine: &Machine) -> Result<()> {
    let began = Beginning::now(typed());
    let mut data = bench.suite.load(&bench.data)?;
    data.limit(bench.limit.unwrap_or(usize::MAX));
    let name = format!("retrieval-{}", bench.suite);
    let folder = bench.out.as_ref().map(|out| RunFolder::create(out, &name)).transpose()?;
    let tools = if bench.tools.is_empty() { bench.suite.tools() } else { &bench.tools };
    let embeds = tools.iter().any(|tool| tool.embeds());
    let (engine, models) = embeds.then(|| embedder(bench, machine)).transpose()?.unzip();
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

/// An engine for embedding only, and what it runs.
fn embedder(bench: &Retrieval, machine: &Machine) -> Result<(Engine, ModelDigest)> {
    let (typed, quantise) = (&bench.embedder, bench.quantise_embedder);
    let embedder = Some(load_embedder(typed, quantise, machine)?);
    let models = Models { language: Vec::new(), roles: HashMap::new(), embedder };
    Ok((Engine::start(models, Config::default())?, digest(typed, quantise, machine)?))
}

/// What a model is, file by file, and what it was quantised to.
pub fn digest(typed: &str, quantise: Option<impl Display>, machine: &Machine) -> Result<ModelDigest> {
    let files =
        fetched(typed, machine)?.files.iter().map(|file| FileDigest::of(&file.path)).collect::<eval::Result<_>>()?;
    Ok(ModelDigest { name: quantised_name(typed, quantise), files })
}

/// The command as it was typed.
pub fn typed() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("memlocal".to_owned()).chain(words).collect()
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
