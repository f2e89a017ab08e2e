//! `memlocal ingest`: files into a corpus.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use calls::{Lane, WorkflowId};
use memory::{Session, Settings, Trace, add, prepare};
use sources::{PdfChild, ReadOptions, SkipReason, Source};
use store::{Change, Corpora, Writer};

use crate::args::{Args, Ingest, MethodChoice};
use crate::failure::{Interrupted, SKIPPED};
use crate::progress::Pages;
use crate::{home, machine};

pub fn run(ingest: &Ingest, args: &Args) -> Result<ExitCode> {
    let corpora = home::corpora(args)?;
    let (sources, skipped) = read(&ingest.paths);
    if sources.is_empty() && !ingest.paths.is_empty() {
        anyhow::bail!("none of the inputs could be read");
    }
    let mut writer =
        if ingest.paths.is_empty() { corpora.open_writer(&ingest.corpus)? } else { open(&corpora, &ingest.corpus)? };
    let engine = machine::start(&ingest.models, true, args)?;
    let trace = trace(ingest.trace.as_deref())?;
    let session = Session {
        caller: &engine,
        embedder: &engine,
        settings: settings(&ingest.method),
        trace: &trace,
        workflow: WorkflowId(1),
        lane: Lane::Bulk,
        on_text: None,
    };
    fill(&mut writer, &sources, &session)?;
    let counts = writer.counts()?;
    println!("{}: {} documents, {} pages", ingest.corpus, counts.documents, writer.passages(store::Layer::Page)?.len());
    Ok(if skipped == 0 { ExitCode::SUCCESS } else { ExitCode::from(SKIPPED) })
}

/// Opens a corpus for writing, or makes it.
pub fn open(corpora: &Corpora, name: &str) -> Result<Writer> {
    match corpora.open_writer(name) {
        Err(store::Error::UnknownCorpus { .. }) => Ok(corpora.create(name)?),
        opened => Ok(opened?),
    }
}

/// Reads files and folders; what cannot be read is named on standard error and counted.
pub fn read(paths: &[PathBuf]) -> (Vec<Source>, usize) {
    let found = sources::find(paths);
    let mut skipped = found.errors.len();
    found.errors.iter().for_each(|error| eprintln!("skipped {error}"));
    // What a folder holds beside documents is no failure, but it is said.
    let of_no_kind = found.skipped.iter().filter(|skipped| skipped.reason == SkipReason::UnknownKind);
    of_no_kind.for_each(|skipped| eprintln!("passed over {}: not a document", skipped.path.display()));
    let options = ReadOptions { pdf_child: pdf_child(), ..ReadOptions::default() };
    let mut sources = Vec::new();
    for file in found.files {
        // A document is known by its place, wherever the command is run.
        let file = std::path::absolute(&file).unwrap_or(file);
        match sources::read(&file, &options) {
            Ok(read) => sources.extend(read),
            Err(error) => {
                eprintln!("skipped {error}");
                skipped += 1;
            }
        }
    }
    (sources, skipped)
}

/// PDFs are read by this very program in a process of its own.
fn pdf_child() -> Option<PdfChild> {
    let program = std::env::current_exe().ok()?;
    Some(PdfChild { program, args: vec!["pdf-text".into()], time_limit: Duration::from_secs(120) })
}

/// Puts sources into a corpus and does what the session's method needs, with progress bars.
pub fn fill(writer: &mut Writer, sources: &[Source], session: &Session<'_>) -> Result<()> {
    for source in sources {
        let added = add(source, writer, session)?;
        let what = match added.change {
            Change::Added => "added",
            Change::Replaced => "replaced",
            Change::Recut => "cut anew",
            Change::Unchanged => continue,
        };
        eprintln!("{what} {} ({} pages)", shown(&source.path), added.pages);
    }
    let mut pages = Pages::default();
    interruptible(async { Ok(prepare(writer, session, &mut |progress| pages.report(progress)).await?) })
}

/// Runs a future to its end or to Ctrl-C.
pub fn interruptible<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        tokio::select! {
            done = work => done,
            _ = tokio::signal::ctrl_c() => Err(Interrupted.into()),
        }
    })
}

/// What the method flags say.
pub fn settings(choice: &MethodChoice) -> Settings {
    Settings {
        method: choice.method,
        layout: choice.layout,
        page_tokens: choice.page_tokens,
        temperature: choice.temperature,
        seed: choice.seed,
        ..Settings::default()
    }
}

/// A trace to a file, or none.
pub fn trace(path: Option<&Path>) -> Result<Trace> {
    let Some(path) = path else { return Ok(Trace::off()) };
    let file = std::fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Trace::to(std::io::BufWriter::new(file)))
}

/// A path as people want to read it: from here, if it is below here.
pub fn shown(path: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    Path::new(path).strip_prefix(here).map_or_else(|_| path.to_owned(), |below| below.display().to_string())
}
