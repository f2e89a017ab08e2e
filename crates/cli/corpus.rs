//! `memlocal corpus`: lists, shows, checks, repairs, backs up, restores and removes corpora.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use indicatif::HumanBytes;
use launch::confirmation::{can_ask, is_confirmed};
use launch::eprintln;
use launch::failure::{refusal, skipped_some};
use launch::flags::GlobalFlags;
use launch::output::{counted, print, print_line, print_table, printable};
use launch::{absolute, check_folder_of, home, shown};
use memory::graph_view::Format;
use memory::{Settings, methods};
use serde_json::{Value, json};
use server::{Forget, ServerError, corpus_json, document_json, documents_json, parts_json};
use store::{Corpora, Corpus, DocId, Layer, Listing, Loss, Repaired};

use crate::answer::page_name;
use crate::args::Corpus as Command;
use crate::documents::content;

/// The hint where something else is to be restored.
const WRITTEN_BY_BACKUP: &str = "give the file that `memlocal corpus backup` wrote";

pub fn run(command: &Command, global: &GlobalFlags) -> Result<ExitCode> {
    let corpora = home::corpora(global)?;
    match command {
        Command::List { json: true } => {
            let listings: Vec<Value> = corpora.list()?.into_iter().map(corpus_json).collect();
            print_json(&json!({ "corpora": listings }))?;
        }
        Command::List { json: false } => {
            let header = ["corpus", "documents", "passages", "pages to memorise", "size"];
            print_table(&header, corpora.list()?.into_iter().map(row))?;
        }
        Command::Show { name, pages, text, json } => {
            let corpus = known(corpora.open(name))?;
            match text {
                Some(path) if *json => print_json(&document_json(&corpus, document(&corpus, path)?)?)?,
                Some(path) => print(corpus.document_text(document(&corpus, path)?)?)?,
                None if *json => print_json(&shown_as_json(&corpus, *pages)?)?,
                None if *pages => show_pages(&corpus)?,
                None => show_documents(&corpus)?,
            }
        }
        Command::Graph { name, format, question } => {
            print(graph(&known(corpora.open(name))?, *format, question.as_deref())?)?;
        }
        Command::Check { name } => {
            let corpus = known(corpora.open(name))?;
            corpus.verify().map_err(|error| damaged(error, name))?;
            print_line(format_args!("{name} is sound: {}, schema {}", content(&corpus)?, corpus.schema()?))?;
        }
        Command::Repair { name } => return repair(&corpora, name),
        Command::Backup { name, file } => {
            check_folder_of(file)?;
            let corpus = known(corpora.open(name))?;
            corpus.back_up(file).map_err(|error| match error {
                store::Error::FileExists { .. } => refusal(error.to_string(), "choose another name, or remove it"),
                error => error.into(),
            })?;
            print_line(format_args!("copied {name} to {}", printable(absolute(file).display())))?;
        }
        Command::Restore { file, name } => {
            if !file.is_file() {
                let is_reversed = Path::new(name).is_file();
                let hint = if is_reversed { "the file comes before the name of the corpus" } else { WRITTEN_BY_BACKUP };
                return Err(refusal(format!("{} is not a file", shown(file)), hint));
            }
            let writer = corpora.restore(name, file).map_err(|error| match error {
                store::Error::CorpusExists { .. } => {
                    refusal(error.to_string(), format!("choose another name, or remove it: memlocal corpus rm {name}"))
                }
                store::Error::Damaged { .. } => refusal(error.to_string(), "use an older backup"),
                store::Error::NotACorpus { .. } => refusal(error.to_string(), WRITTEN_BY_BACKUP),
                error => error.into(),
            })?;
            print_line(format_args!("restored {name}: {}", content(&writer)?))?;
        }
        Command::Rm { name, yes } => {
            if !yes {
                confirm(&corpora, name, global)?;
            }
            remove(&corpora, name, global)?;
            print_line(format_args!("removed {name}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks whether a corpus may be removed; one that does not exist needs no answer.
fn confirm(corpora: &Corpora, name: &str, global: &GlobalFlags) -> Result<()> {
    let Some(listing) = corpora.list()?.into_iter().find(|listing| listing.name.to_string() == name) else {
        return Ok(());
    };
    if !can_ask() {
        return Err(refusal(
            format!("there is no terminal to ask at whether {name} may be removed"),
            format!("to remove it without a question: memlocal corpus rm {name} --yes"),
        ));
    }
    let size = HumanBytes(listing.bytes);
    let size =
        listing.counts.map_or_else(|_| size.to_string(), |counts| counted(counts.documents as usize, "document"));
    let whose = if global.vectors.is_some() { ", for all who share it" } else { "" };
    if is_confirmed(format_args!("remove {name} ({size}){whose}?"))? {
        return Ok(());
    }
    Err(refusal(format!("{name} was not removed"), "only the answer `y` removes it"))
}

/// Removes a corpus with what servers keep of it, and what an interrupted removal has left.
fn remove(corpora: &Corpora, name: &str, global: &GlobalFlags) -> Result<()> {
    let folder = home::folder(global)?;
    match Forget::in_folder(&folder).remove_corpus(corpora, name) {
        Err(ServerError::Store(error)) => known(Err(error)),
        Err(ServerError::DataFolder(error)) => Err(store::Error::io(&folder, error).into()),
        Err(error) => {
            Err(error).with_context(|| format!("cannot delete what is kept of {name} in {}", folder.display()))
        }
        Ok(()) => Ok(()),
    }
}

/// Gives the error of an unknown corpus the hint to list all corpora, instead of the hint to create one.
fn known<T>(outcome: store::Result<T>) -> Result<T> {
    outcome.map_err(|error| match error {
        store::Error::UnknownCorpus { .. } => refusal(error.to_string(), "memlocal corpus list shows all of them"),
        error => error.into(),
    })
}

/// Gives the error of a damaged corpus the hint to repair it.
fn damaged(error: store::Error, name: &str) -> anyhow::Error {
    match error {
        store::Error::Damaged { .. } => refusal(
            error.to_string(),
            format!("restore it from a backup, or save the rest: memlocal corpus repair {name}"),
        ),
        error => error.into(),
    }
}

/// Exits with 3 if something was lost.
fn repair(corpora: &Corpora, name: &str) -> Result<ExitCode> {
    match known(corpora.repair(name))? {
        Repaired::Sound => print_line(format_args!("{name} is sound; nothing was changed"))?,
        Repaired::Fetched { unsent } => {
            print_line(format_args!("{name} was copied anew from PostgreSQL; the damaged file is kept beside it"))?;
            let Some(unsent) = unsent else {
                eprintln!("not sent: changes that PostgreSQL does not have, if there were any, cannot be read");
                return Ok(skipped_some(1));
            };
            for path in &unsent {
                eprintln!("not sent: {}", shown(path));
            }
            if !unsent.is_empty() {
                eprintln!("hint: add or remove these documents again: PostgreSQL did not have the change");
            }
            return Ok(skipped_some(unsent.len()));
        }
        Repaired::Without(Loss { documents, notes, vectors, derived }) => {
            for path in &documents {
                eprintln!("lost {}", shown(path));
            }
            let lost = [(documents.len(), "document"), (notes, "note"), (vectors, "vector"), (derived, "derived text")];
            let lost = lost.map(|(number, thing)| counted(number, thing)).join(", ");
            print_line(format_args!("repaired {name} without {lost}; the damaged file is kept beside it"))?;
            eprintln!("hint: ingest lost documents again; memlocal ingest --corpus {name} makes what else is missing");
            return Ok(skipped_some(documents.len()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(listing: Listing) -> Vec<String> {
    let size = HumanBytes(listing.bytes).to_string();
    let [documents, passages, pending] = match listing.counts {
        Ok(counts) => [counts.documents, counts.passages, counts.pending].map(|number| number.to_string()),
        Err(error) => [error.to_string(), String::new(), String::new()],
    };
    vec![listing.name.to_string(), documents, passages, pending, size]
}

/// The document with this path.
fn document(corpus: &Corpus, path: &Path) -> Result<DocId> {
    // Documents that a server received have plain names.
    let named = corpus.document_at(&path.to_string_lossy())?;
    match named.map_or_else(|| corpus.document_at(&absolute(path).display().to_string()), |found| Ok(Some(found)))? {
        Some(document) => Ok(document.id),
        None => Err(refusal(
            format!("{} is not a document of this corpus", shown(path)),
            format!("memlocal corpus show {} lists them", corpus.name()),
        )),
    }
}

/// A graph, if every block has been read for it.
fn graph(corpus: &Corpus, format: Format, question: Option<&str>) -> Result<String> {
    let (method, kind) = methods::graph(None).map_err(anyhow::Error::msg)?;
    let view = (kind.view)(corpus, question)?;
    if view.read < view.of || view.of == 0 {
        let name = corpus.name();
        let asked = question.map_or_else(
            || {
                let mut settings = Settings::new(method);
                method.expect_any_question(&mut settings);
                format!("QUESTION {}", method.preparation_flags(&settings))
            },
            |question| format!("{question:?}"),
        );
        let lacks = match (view.of, question) {
            (0, None) => format!("{name} has no graph yet"),
            (0, Some(_)) => format!("{name} has no graph for this question yet"),
            (of, _) => format!("{} of {of} blocks of {name} have been read for this graph", view.read),
        };
        return Err(refusal(lacks, format!("memlocal ask {asked} --corpus {name} --method {method} builds it")));
    }
    Ok((kind.export)(corpus, question, format)?)
}

/// The documents, each with its parts if its pages are asked for.
fn shown_as_json(corpus: &Corpus, pages: bool) -> Result<Value> {
    let documents = corpus.documents()?;
    let mut shown = documents_json(corpus, &documents)?;
    if pages {
        for (line, document) in shown.iter_mut().zip(&documents) {
            line["parts"] = parts_json(corpus, document.id)?.into();
        }
    }
    Ok(json!({ "documents": shown }))
}

fn print_json(value: &Value) -> Result<()> {
    print_line(serde_json::to_string_pretty(value)?)
}

fn show_documents(corpus: &Corpus) -> Result<()> {
    let mut rows = Vec::new();
    for document in corpus.documents()? {
        let pages = corpus.passages_of(document.id, Layer::Page)?.len();
        rows.push(vec![shown(&document.path), document.kind, document.title, pages.to_string()]);
    }
    print_table(&["document", "kind", "title", "pages"], rows)
}

fn show_pages(corpus: &Corpus) -> Result<()> {
    for page in corpus.passages(Layer::Page)? {
        let document = corpus.document(page.document)?;
        let (name, path) = (page_name(&page, &document), shown(&document.path));
        let (start, end) = (page.span.start_char, page.span.end_char);
        let tokens = counted(page.tokens as usize, "token");
        print_line(format_args!("{name} of {path}, characters {start} to {end}, {tokens}, id {}", page.id))?;
        for note in corpus.notes(page.id)? {
            print_line(format_args!("  {} by {}: {}", note.name, note.author.model, note.text))?;
        }
    }
    Ok(())
}
