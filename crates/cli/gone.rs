//! Removing documents whose files are gone.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use launch::output::printable;
use launch::{absolute, eprintln, shown};
use memory::Session;
use server::Forget;
use sources::{Kind, is_mailbox_part};
use store::{Corpora, Document, Writer};

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

/// The given paths that are missing and of which a corpus has documents.
pub fn missing_of(corpora: &Corpora, corpus: &str, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut missing: Vec<PathBuf> = paths.iter().filter(|path| is_missing(path)).cloned().collect();
    if missing.is_empty() {
        return Ok(missing);
    }
    let stored = match corpora.open(corpus) {
        Err(store::Error::UnknownCorpus { .. }) => return Ok(Vec::new()),
        opened => opened?.documents()?,
    };
    missing.retain(|path| has_any_below(path, &stored));
    Ok(missing)
}

/// Says that the documents of files that are gone stay, because `--delete` was not given.
pub fn report_kept(files: &[PathBuf]) {
    for file in files {
        eprintln!("{} is gone; its documents stay, as --delete was not given", printable(file.display()));
    }
}

/// Removes the documents below the given paths whose files are gone, and conversations that are gone from files that were
/// read. If a path is gone itself, its documents are removed only if it is one of `missing`: its drive may not be mounted.
/// The result is the number of documents that were removed.
pub fn remove_gone(
    writer: &mut Writer,
    paths: &[PathBuf],
    missing: &[PathBuf],
    documents: &Documents,
) -> Result<usize> {
    let is_followed = |path: &&PathBuf| path.is_dir() || path.is_file() || missing.contains(path);
    let (followed, kept): (Vec<&PathBuf>, Vec<&PathBuf>) = paths.iter().partition(is_followed);
    let stored = writer.documents()?;
    for path in kept.into_iter().filter(|path| has_any_below(path, &stored)) {
        eprintln!("{} is gone, or its drive is not mounted; its documents stay", printable(path.display()));
    }
    let roots: Vec<PathBuf> = followed.into_iter().map(|path| absolute(path)).collect();
    let is_chosen = |path: &str| roots.iter().any(|root| is_below(root, path)) && is_gone(path, documents);
    remove(writer, |document| is_chosen(&document.path))
}

/// Removes the documents that mailboxes had and do not have any more: what is read again is replaced as a whole.
pub fn remove_old_parts(writer: &mut Writer, documents: &Documents) -> Result<()> {
    let mailbox = Kind::Mailbox.to_string();
    let is_part = |path: &str| documents.read.iter().any(|file| is_mailbox_part(path, file));
    let is_old =
        |document: &Document| document.kind == mailbox && is_part(&document.path) && is_gone(&document.path, documents);
    remove(writer, is_old).map(drop)
}

/// Stores documents in a corpus that is to hold no others, and prepares it for the session's method. Documents of files that
/// are still there and could not be read now stay.
pub fn fill_exactly(writer: &mut Writer, documents: &mut Documents, session: &Session<'_>) -> Result<()> {
    put(writer, documents, session)?;
    let unread: Vec<&PathBuf> = documents.failed.iter().filter(|path| may_exist(path)).collect();
    let is_listed = |path: &str| documents.paths.contains(path) || unread.iter().any(|unread| is_below(unread, path));
    remove(writer, |document| !is_listed(&document.path))?;
    prepare_corpus(writer, session)
}

/// Removes the documents that are chosen, with all that was derived from them, and returns their number.
fn remove(writer: &mut Writer, is_chosen: impl Fn(&Document) -> bool) -> Result<usize> {
    let mut documents = writer.documents()?;
    documents.retain(&is_chosen);
    Forget::beside(writer).change(writer, is_chosen, |writer| {
        for document in &documents {
            when_free(|| writer.remove_document(document.id))?;
            eprintln!("removed {}", shown(&document.path));
        }
        Ok(documents.len())
    })
}

/// Whether a path is missing from a folder that is there. Where the folder is missing too, or the path is a link without a
/// target, a drive may not be mounted.
fn is_missing(path: &Path) -> bool {
    // Without a slash at its end, which would follow a link.
    let path: PathBuf = absolute(path).components().collect();
    let is_absent = |error: io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    fs::symlink_metadata(&path).is_err_and(is_absent) && path.parent().is_some_and(Path::exists)
}

fn has_any_below(path: &Path, documents: &[Document]) -> bool {
    let root = absolute(path);
    documents.iter().any(|document| is_below(&root, &document.path))
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
    let path = Path::new(document);
    // A folder may be in the place of the file.
    let is_there = may_exist(path) && !path.is_dir();
    if is_there || documents.paths.contains(document) {
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
        fs::write(&file, "text").unwrap();
        assert!(may_exist(&file) && !may_exist(&folder.path().join("b.txt")));
        assert!(!may_exist(&file.join("b.txt")), "its folder is a file now");
        assert!(may_exist(&folder.path().join("x".repeat(5000))), "looking at it fails");
    }

    #[test]
    fn a_file_that_became_a_folder_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let [file, place] = ["a.txt", "b.txt"].map(|name| folder.path().join(name));
        fs::write(&file, "text").unwrap();
        fs::create_dir(&place).unwrap();
        let documents = Documents::of(Vec::new(), &[]);
        let is_gone = |path: &Path| is_gone(path.to_str().unwrap(), &documents);
        assert!(!is_gone(&file) && is_gone(&place));
    }

    #[cfg(unix)]
    #[test]
    fn a_path_is_missing_only_from_a_folder_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let is_missing = |name: &str| is_missing(&folder.path().join(name));
        fs::write(folder.path().join("file"), "text").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("link")).unwrap();
        assert!(is_missing("a.txt") && is_missing("a/"));
        assert!(is_missing("file/a.txt"), "its folder is a file now");
        for there in ["file", "link", "link/", "link/a.txt", "gone/a.txt"] {
            assert!(!is_missing(there), "{there}");
        }
    }
}
