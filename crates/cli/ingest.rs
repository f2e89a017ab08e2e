//! `memlocal ingest`: adds files to a corpus.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use calls::{Priority, TenantId, WorkflowId};
use launch::corpus_adapter::reader_of;
use launch::failure::{refusal, skipped_some};
use launch::flags::GlobalFlags;
use launch::{Backend, check_folder_of, home};
use memory::{Session, Trace};
use sources::{Selection, Watch};
use store::{Corpora, Writer};

use crate::args::Ingest;
use crate::documents::{Documents, fill, listed, print_content};
use crate::gone::{missing_of, remove_gone, remove_old_parts, report_kept};
use crate::{settings, watch};

pub fn run(ingest: &Ingest, global: &GlobalFlags) -> Result<ExitCode> {
    ingest.models.check_adapters_are_used()?;
    ingest.method.options.check(&[ingest.method.method])?;
    if let Some(file) = &ingest.trace {
        check_folder_of(file)?;
    }
    let corpora = home::corpora(global)?;
    let name = &ingest.corpus;
    let selection = Selection::new(&ingest.include, &ingest.exclude).map_err(|error| {
        refusal(error.to_string(), "patterns are those of .gitignore, such as '*.md', 'notes/**' or '[a-c]*.txt'")
    })?;
    let missing = missing_of(&corpora, name, &ingest.paths)?;
    // A watched path may be missing because its drive is not mounted yet.
    let removed = if ingest.delete && !ingest.watch { &missing[..] } else { &[] };
    let paths: Vec<PathBuf> = ingest.paths.iter().filter(|path| !removed.contains(path)).cloned().collect();
    let mut documents = Documents::list(&paths, &selection);
    if !ingest.paths.is_empty() && !ingest.watch && !documents.has_next() {
        if ingest.delete {
            return remove_only(ingest, removed, &corpora, &documents);
        }
        return Err(nothing_read(ingest, &missing, &documents));
    }
    if !ingest.delete {
        report_kept(&missing);
    }
    // What changes while the files are read for the first time is read again.
    let seen = ingest.watch.then(|| Watch::new(&ingest.paths, selection));
    let mut writer = if ingest.paths.is_empty() { corpora.open_writer(name)? } else { open(&corpora, name)? };
    let embeds = ingest.method.method.embeds();
    let backend = Backend::start(&ingest.models, &ingest.engine, embeds, global)?;
    let trace = trace(ingest.trace.as_deref())?;
    let session = Session {
        caller: backend.caller(),
        embedder: &backend.embedder,
        settings: settings::of_method(&ingest.method)?,
        trace: &trace,
        workflow: WorkflowId(1),
        tenant: TenantId::LOCAL,
        priority: Priority::Bulk,
        on_text: None,
    };
    let had_adapter = reader_of(&writer).exists();
    fill(&mut writer, &mut documents, &session)?;
    remove_old_parts(&mut writer, &documents)?;
    if ingest.delete {
        remove_gone(&mut writer, &ingest.paths, removed, &documents)?;
    }
    watch::report_deleted_adapter(had_adapter, &writer);
    print_content(&writer)?;
    drop(writer);
    if let Some(seen) = seen {
        watch::follow(seen, ingest, &corpora, &session)?;
    }
    Ok(skipped_some(documents.skipped()))
}

/// The error where no file could be read; the corpus has documents of the `missing` paths.
fn nothing_read(ingest: &Ingest, missing: &[PathBuf], documents: &Documents) -> anyhow::Error {
    let error = documents.none_in(&ingest.paths);
    if missing.is_empty() {
        return error;
    }
    let hint = format!("--delete removes the documents of {} from {}", listed(missing), ingest.corpus);
    refusal(error.to_string(), hint)
}

/// Removes documents where no file could be read, which needs no model.
fn remove_only(ingest: &Ingest, missing: &[PathBuf], corpora: &Corpora, documents: &Documents) -> Result<ExitCode> {
    let mut writer = match corpora.open_writer(&ingest.corpus) {
        Err(store::Error::UnknownCorpus { .. }) => return Err(documents.none_in(&ingest.paths)),
        opened => opened?,
    };
    let had_adapter = reader_of(&writer).exists();
    if remove_gone(&mut writer, &ingest.paths, missing, documents)? == 0 {
        return Err(documents.none_in(&ingest.paths));
    }
    watch::report_deleted_adapter(had_adapter, &writer);
    print_content(&writer)?;
    Ok(skipped_some(documents.skipped()))
}

/// Opens a corpus for writing, or creates it.
pub fn open(corpora: &Corpora, name: &str) -> store::Result<Writer> {
    match corpora.open_writer(name) {
        Err(store::Error::UnknownCorpus { .. }) => match corpora.create(name) {
            // Another process has created it meanwhile.
            Err(store::Error::CorpusExists { .. }) => corpora.open_writer(name),
            created => created,
        },
        opened => opened,
    }
}

/// A trace to a file, if one is named.
pub fn trace(path: Option<&Path>) -> Result<Trace> {
    let Some(path) = path else { return Ok(Trace::off()) };
    let file = std::fs::File::create(path).map_err(|error| {
        refusal(format!("cannot write {}: {error}", path.display()), "name a file that you may write: --trace FILE")
    })?;
    Ok(Trace::to(std::io::BufWriter::new(file)))
}
