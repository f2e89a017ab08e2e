//! `memlocal corpus`: what is remembered.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use comfy_table::{Table, presets};
use indicatif::HumanBytes;
use store::{Corpus, Layer};

use crate::args::{Args, Corpus as Command};
use crate::home;
use crate::ingest::shown;

pub fn run(command: &Command, args: &Args) -> Result<ExitCode> {
    let corpora = home::corpora(args)?;
    match command {
        Command::List => {
            let mut table = table(&["corpus", "documents", "passages", "pages to memorise", "size"]);
            for listing in corpora.list()? {
                let size = HumanBytes(listing.bytes).to_string();
                let row = match listing.counts {
                    Ok(counts) => [counts.documents, counts.passages, counts.pending].map(|n| n.to_string()),
                    Err(error) => [error.to_string(), String::new(), String::new()],
                };
                let [documents, passages, pending] = row;
                table.add_row([listing.name.to_string(), documents, passages, pending, size]);
            }
            print(&table.to_string())?;
        }
        Command::Show { name, pages, text } => {
            let corpus = corpora.open(name)?;
            match text {
                Some(path) => print(&document_text(&corpus, path)?)?,
                None if *pages => show_pages(&corpus)?,
                None => show_documents(&corpus)?,
            }
        }
        Command::Rm { name } => {
            corpora.remove(name)?;
            println!("removed {name}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn document_text(corpus: &Corpus, path: &Path) -> Result<String> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = corpus.document_at(&absolute.display().to_string())?;
    let found = found.with_context(|| format!("{} is no document of this corpus", path.display()))?;
    Ok(corpus.document_text(found.id)?)
}

fn show_documents(corpus: &Corpus) -> Result<()> {
    let mut table = table(&["document", "kind", "title", "pages"]);
    for document in corpus.documents()? {
        let pages = corpus.passages_of(document.id, Layer::Page)?.len();
        table.add_row([shown(&document.path), document.kind, document.title, pages.to_string()]);
    }
    print(&table.to_string())
}

fn show_pages(corpus: &Corpus) -> Result<()> {
    for page in corpus.passages(Layer::Page)? {
        let path = shown(&corpus.document(page.document)?.path);
        let span = page.span;
        let mut lines = format!(
            "page {} of {path}, characters {} to {}, {} tokens\n",
            page.id, span.start_char, span.end_char, page.tokens
        );
        for note in corpus.notes(page.id)? {
            lines.push_str(&format!("  {} by {}: {}\n", note.name, note.author.model, note.text));
        }
        print(lines.trim_end())?;
    }
    Ok(())
}

/// A table without frame lines that scripts would have to strip.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// Prints to standard output; a reader that has gone away is no error.
pub fn print(text: &str) -> Result<()> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}
