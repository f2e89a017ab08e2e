//! `memlocal ingest --watch` and `--delete`: a corpus follows its folders.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use launch::corpus_adapter::reader_of;
use launch::{absolute, eprintln, shown};
use memory::Session;
use sources::{Changes, Watch};
use store::{Corpora, Writer};

use crate::args::Ingest;
use crate::documents::{Documents, fill, print_content};

/// The time between two looks at the files.
const LOOK: Duration = Duration::from_secs(1);

/// Ingests what changes, until the process is interrupted. The corpus is open for writing only meanwhile.
pub fn follow(mut watch: Watch, ingest: &Ingest, corpora: &Corpora, session: &Session<'_>) -> Result<()> {
    eprintln!("watching for changes; Ctrl-C ends it");
    loop {
        thread::sleep(LOOK);
        let Changes { changed, removed } = watch.look();
        if changed.is_empty() && removed.is_empty() {
            continue;
        }
        if !ingest.delete {
            for file in &removed {
                eprintln!("{} is gone; its documents stay, as --delete was not given", file.display());
            }
        }
        if changed.is_empty() && !ingest.delete {
            continue;
        }
        let mut writer = when_free(|| corpora.open_writer(&ingest.corpus))?;
        let had_adapter = reader_of(&writer).exists();
        let mut documents = Documents::of(changed);
        fill(&mut writer, &mut documents, session)?;
        if ingest.delete {
            remove_gone(&mut writer, &ingest.paths, &documents)?;
        }
        report_deleted_adapter(had_adapter, &writer);
        print_content(&writer)?;
    }
}

/// Says that the adapter of a corpus was deleted with a text that it had learned from.
pub fn report_deleted_adapter(was_there: bool, writer: &Writer) {
    if was_there && !reader_of(writer).exists() {
        let name = writer.name();
        eprintln!("the adapter of {name} was deleted, since it had learned from replaced or removed documents");
        eprintln!("hint: memlocal train --corpus {name} makes another");
    }
}

/// Repeats what another process prevents.
fn when_free<T>(mut attempt: impl FnMut() -> store::Result<T>) -> Result<T> {
    let mut is_first = true;
    loop {
        match attempt() {
            Err(error @ store::Error::CorpusBusy { .. }) => {
                if std::mem::take(&mut is_first) {
                    eprintln!("waiting: {error}");
                }
                thread::sleep(LOOK);
            }
            done => return Ok(done?),
        }
    }
}

/// Removes the documents below the given folders whose files are gone, and conversations that are gone from files that were
/// read. Nothing is removed of a folder that is gone itself: its drive may not be mounted.
pub fn remove_gone(writer: &mut Writer, paths: &[PathBuf], documents: &Documents) -> Result<()> {
    let (roots, missing): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.iter().map(|path| absolute(path)).partition(|path| path.is_dir() || path.is_file());
    for root in missing {
        eprintln!("{} is gone; its documents stay", root.display());
    }
    for document in writer.documents()? {
        if !roots.iter().any(|root| is_below(root, &document.path)) || !is_gone(&document.path, documents) {
            continue;
        }
        when_free(|| writer.remove_document(document.id))?;
        eprintln!("removed {}", shown(&document.path));
    }
    Ok(())
}

/// Whether a document is of a file below a folder, or of this file itself.
fn is_below(root: &Path, document: &str) -> bool {
    Path::new(document).starts_with(root) || conversation_of(document, &root.to_string_lossy())
}

/// Whether a document is a conversation of a file of several.
fn conversation_of(document: &str, file: &str) -> bool {
    document.strip_prefix(file).is_some_and(|rest| rest.starts_with('#'))
}

fn is_gone(document: &str, documents: &Documents) -> bool {
    if may_exist(Path::new(document)) || documents.paths.contains(document) {
        return false;
    }
    if documents.read.iter().any(|file| conversation_of(document, file)) {
        return true;
    }
    // A conversation stays as long as its file is there and was not read again.
    let ends = document.match_indices('#').map(|(end, _)| end);
    !ends.into_iter().any(|end| Path::new(&document[..end]).is_file())
}

/// False only if there is no such file: one that cannot be looked at, as in a folder without permission, may still exist.
fn may_exist(path: &Path) -> bool {
    path.try_exists().unwrap_or_else(|error| error.kind() != io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_looked_at_may_exist() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        std::fs::write(&file, "text").unwrap();
        assert!(may_exist(&file) && !may_exist(&folder.path().join("b.txt")));
        assert!(!may_exist(&file.join("b.txt")), "its folder is a file now");
        assert!(may_exist(&folder.path().join("x".repeat(5000))), "looking at it fails");
    }
}
