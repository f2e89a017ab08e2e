//! `memlocal ingest`: files into a corpus.

use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use calls::{Lane, TenantId, WorkflowId};
use memory::{Session, Settings, Trace, add, comorag, memcot, mindgraph, prepare};
use sources::{PdfChild, ReadOptions, SkipReason, Source};
use store::{Change, Corpora, Writer};

use crate::answering::Answering;
use crate::args::{Ingest, Machine, MethodChoice};
use crate::failure::skipped_some;
use crate::home;
use crate::output::{counted, print_line};
use crate::progress::Steps;

pub fn run(ingest: &Ingest, machine: &Machine) -> Result<ExitCode> {
    let corpora = home::corpora(machine)?;
    let name = &ingest.corpus;
    let (sources, skipped) = if ingest.paths.is_empty() { (Vec::new(), 0) } else { read(&ingest.paths)? };
    let mut writer = if sources.is_empty() { corpora.open_writer(name)? } else { open(&corpora, name)? };
    let answering = Answering::start(&ingest.models, &ingest.engine, true, machine)?;
    let trace = trace(ingest.trace.as_deref())?;
    let session = Session {
        caller: answering.caller(),
        embedder: &answering.engine,
        settings: settings(&ingest.method)?,
        trace: &trace,
        workflow: WorkflowId(1),
        tenant: TenantId::LOCAL,
        lane: Lane::Bulk,
        on_text: None,
    };
    fill(&mut writer, &sources, &session)?;
    let documents = counted(writer.documents()?.len(), "document");
    let pages = counted(writer.passages(store::Layer::Page)?.len(), "page");
    print_line(format_args!("{name}: {documents}, {pages}"))?;
    Ok(skipped_some(skipped))
}

/// Opens a corpus for writing, or makes it.
pub fn open(corpora: &Corpora, name: &str) -> Result<Writer> {
    match corpora.open_writer(name) {
        Err(store::Error::UnknownCorpus { .. }) => Ok(corpora.create(name)?),
        opened => Ok(opened?),
    }
}

/// Reads files and folders; what cannot be read is named on standard error and counted.
///
/// # Errors
/// If there is nothing left.
pub fn read(paths: &[PathBuf]) -> Result<(Vec<Source>, usize)> {
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
        match sources::read(&absolute(&file), &options) {
            Ok(read) => sources.extend(read),
            Err(error) => {
                eprintln!("skipped {}: {}", file.display(), error.cause);
                skipped += 1;
            }
        }
    }
    match (sources.is_empty(), skipped) {
        (false, _) => Ok((sources, skipped)),
        (true, 0) => anyhow::bail!("there are no documents in {}", listed(paths)),
        (true, _) => anyhow::bail!("none of the inputs could be read"),
    }
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// PDFs are read by this very program in a process of its own.
pub fn pdf_child() -> Option<PdfChild> {
    let program = std::env::current_exe().ok()?;
    Some(PdfChild { program, args: vec!["pdf-text".into()], time_limit: Duration::from_mins(2) })
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
        eprintln!("{what} {} ({})", shown(&source.path), counted(added.pages, "page"));
    }
    let mut steps = Steps::default();
    wait_for(prepare(writer, session, &mut |progress| steps.report_with(progress, session.trace.usage())))
}

/// Runs a future to its end.
pub fn wait_for<T, E>(work: impl Future<Output = Result<T, E>>) -> Result<T>
where
    anyhow::Error: From<E>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().build().context("no runtime")?;
    Ok(runtime.block_on(work)?)
}

/// What the method flags say.
///
/// # Errors
/// If the file of questions cannot be read.
pub fn settings(choice: &MethodChoice) -> Result<Settings> {
    let questions = choice.questions.as_deref().map_or_else(|| Ok(Vec::new()), lines)?;
    Ok(Settings {
        method: choice.method,
        layout: choice.layout,
        page_tokens: choice.page_tokens,
        temperature: choice.temperature,
        seed: choice.seed,
        memcot: memcot::Options { store: choice.memcot_store, ..memcot::Options::default() },
        comorag: comorag::Options { layers: choice.layers.clone(), ..comorag::Options::default() },
        mindgraph: mindgraph::Options { focus: choice.focus, questions, ..mindgraph::Options::default() },
        ..Settings::default()
    })
}

/// The lines of a file that say something.
fn lines(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// A trace to a file, or none.
pub fn trace(path: Option<&Path>) -> Result<Trace> {
    let Some(path) = path else { return Ok(Trace::off()) };
    let file = std::fs::File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Trace::to(std::io::BufWriter::new(file)))
}

/// A path that means the same wherever the command is run; without `..`, so that a file has one name.
pub fn absolute(path: &Path) -> PathBuf {
    let canonical = path.components().any(|part| part == Component::ParentDir).then(|| path.canonicalize().ok());
    canonical.flatten().or_else(|| std::path::absolute(path).ok()).unwrap_or_else(|| path.to_owned())
}

/// A path as people want to read it: from here, if it is below here.
pub fn shown(path: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    Path::new(path).strip_prefix(here).map_or_else(|_| path.to_owned(), |below| below.display().to_string())
}
