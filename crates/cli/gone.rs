//! Removing documents whose files are gone.

use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use launch::output::printable;
use launch::{absolute, eprintln, shown};
use memory::Session;
use server::Forget;
use store::{Document, Writer};

use crate::documents::{Documents, prepare_corpus, put};

/// The time between two looks at the files, or at a corpus that is in use.
pub const LOOK: Duration = Duration::from_secs(1);

/// Repeats what another process prevents.
pub fn when_free<T>(mut attempt: impl FnMut() -> store::Result<T>) -> Result<T> {
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
/// read. Nothing is removed of a folder that is gone itself: its drive may not be mounted. The result is the
/// number of documents that were removed.
pub fn remove_gone(writer: &mut Writer, paths: &[PathBuf], documents: &Documents) -> Result<usize> {
    let (roots, missing): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.iter().map(|path| absolute(path)).partition(|path| path.is_dir() || path.is_file());
    for root in missing {
        eprintln!("{} is gone; its documents stay", printable(root.display()));
    }
    remove(writer, |path| roots.iter().any(|root| is_below(root, path)) && is_gone(path, documents))
}

/// Stores documents in a corpus that is to hold no others, and prepares it for the session's method. Documents of files that
/// are still there and could not be read now stay.
pub fn fill_exactly(writer: &mut Writer, documents: &mut Documents, session: &Session<'_>) -> Result<()> {
    put(writer, documents, session)?;
    let unread: Vec<&PathBuf> = documents.failed.iter().filter(|path| may_exist(path)).collect();
    let is_listed = |path: &str| documents.paths.contains(path) || unread.iter().any(|unread| is_below(unread, path));
    remove(writer, |path| !is_listed(path))?;
    prepare_corpus(writer, session)
}

/// Removes the documents whose paths are chosen, with all that was derived from them, and returns their number.
fn remove(writer: &mut Writer, is_removed: impl Fn(&str) -> bool) -> Result<usize> {
    let mut documents = writer.documents()?;
    documents.retain(|document| is_removed(&document.path));
    let is_chosen = |document: &Document| is_removed(&document.path);
    Forget::beside(writer).change(writer, is_chosen, |writer| {
        for document in &documents {
            when_free(|| writer.remove_document(document.id))?;
            eprintln!("removed {}", shown(&document.path));
        }
        Ok(documents.len())
    })
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
    // It may be the path of a file whose name is not UTF-8: on the disk it has other bytes.
    if document.contains(char::REPLACEMENT_CHARACTER) {
        return false;
    }
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
