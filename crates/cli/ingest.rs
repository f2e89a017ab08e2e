//! `memlocal ingest`: files into a corpus.

use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

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
    let mut documents = Documents::find(&ingest.paths)?;
    let mut writer = if ingest.paths.is_empty() { corpora.open_writer(name)? } else { open(&corpora, name)? };
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
    fill(&mut writer, &mut documents, &session)?;
    let count = counted(writer.documents()?.len(), "document");
    let pages = counted(writer.passages(store::Layer::Page)?.len(), "page");
    print_line(format_args!("{name}: {count}, {pages}"))?;
    Ok(skipped_some(documents.skipped()))
}

/// Opens a corpus for writing, or makes it.
pub fn open(corpora: &Corpora, name: &str) -> Result<Writer> {
    match corpora.open_writer(name) {
        Err(store::Error::UnknownCorpus { .. }) => Ok(corpora.create(name)?),
        opened => Ok(opened?),
    }
}

/// The documents in files and folders, each read when it is its turn, so that only one is in memory. What cannot be read
/// is reported on standard error and counted.
pub struct Documents {
    files: std::vec::IntoIter<PathBuf>,
    /// What was read and not yet handed out: a file of conversations holds several documents.
    read: VecDeque<Source>,
    skipped: usize,
}

impl Documents {
    /// Finds the files and reads the first that can be read.
    ///
    /// # Errors
    /// If paths are given and no file under them can be read.
    pub fn find(paths: &[PathBuf]) -> Result<Documents> {
        let found = sources::find(paths);
        found.errors.iter().for_each(|error| eprintln!("skipped {error}"));
        let mut skipped = found.errors.len();
        for entry in &found.skipped {
            let path = entry.path.display();
            match entry.reason {
                // What a folder holds beside documents is no failure.
                SkipReason::UnknownKind => eprintln!("passed over {path}: not a document"),
                SkipReason::LinkOutside => {
                    eprintln!("skipped {path}: a link to outside the folder; give its target by name to read it");
                    skipped += 1;
                }
                _ => {}
            }
        }
        let mut documents = Documents { files: found.files.into_iter(), read: VecDeque::new(), skipped };
        documents.read_on();
        match (documents.read.is_empty() && !paths.is_empty(), documents.skipped) {
            (false, _) => Ok(documents),
            (true, 0) => anyhow::bail!("there are no documents in {}", listed(paths)),
            (true, _) => anyhow::bail!("none of the inputs could be read"),
        }
    }

    /// How many inputs could not be read so far.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Reads files until there is a document to hand out, or no more files.
    fn read_on(&mut self) {
        let options = ReadOptions { pdf_child: pdf_child(), ..ReadOptions::default() };
        while self.read.is_empty()
            && let Some(file) = self.files.next()
        {
            // A document is known by its place, wherever the command is run.
            match sources::read(&absolute(&file), &options) {
                Ok(read) => self.read.extend(read),
                Err(error) => {
                    eprintln!("skipped {}: {}", file.display(), error.cause);
                    self.skipped += 1;
                }
            }
        }
    }
}

impl Iterator for Documents {
    type Item = Source;

    fn next(&mut self) -> Option<Source> {
        self.read_on();
        self.read.pop_front()
    }
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// PDFs are read by this program in a process of its own, under the default limits.
pub fn pdf_child() -> Option<PdfChild> {
    Some(PdfChild::new(std::env::current_exe().ok()?, ["pdf-text"]))
}

/// Puts documents into a corpus and does what the session's method needs, with progress bars.
pub fn fill(writer: &mut Writer, documents: &mut Documents, session: &Session<'_>) -> Result<()> {
    for source in documents {
        let added = add(&source, writer, session)?;
        let what = match added.change {
            Change::Added => "added",
            Change::Replaced => "replaced",
            Change::Recut => "cut anew",
            Change::Unchanged => continue,
        };
        eprintln!("{what} {} ({})", shown(&source.path), counted(added.pages, "page"));
    }
    prepare_corpus(writer, session)
}

/// Does what the session's method needs, with progress bars.
pub fn prepare_corpus(writer: &mut Writer, session: &Session<'_>) -> Result<()> {
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
