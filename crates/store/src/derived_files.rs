//! Files in the folder of a corpus that are derived from its database: saved graphs, the cache, and what was trained. With
//! them go the copies of the database that upgrades and repairs leave.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::database::DATABASE_FILE;
use crate::{Error, Result, private};

const CACHE: &str = "cache";
const TRAINED: &str = "trained";

/// The folder of the cache.
pub(crate) fn cache(corpus: &Path) -> PathBuf {
    corpus.join(CACHE)
}

/// The folder of what was trained on the documents.
pub(crate) fn trained(corpus: &Path) -> PathBuf {
    corpus.join(TRAINED)
}

/// Derived files that are set aside while a transaction deletes documents: deleted when it is committed, otherwise put
/// back. An interrupted removal is completed by the next writer, since it may have been committed.
#[derive(Debug)]
pub(crate) struct Removal {
    corpus: PathBuf,
    is_committed: bool,
}

impl Removal {
    /// Sets the derived files of the corpus in a folder aside. The caller holds the writer's lock.
    pub(crate) fn begin(corpus: &Path) -> Result<Self> {
        complete_removal(corpus)?;
        let files = derived(corpus).map_err(|source| Error::io(corpus, source))?;
        let removal = Self { corpus: corpus.to_owned(), is_committed: false };
        let aside = removed(corpus);
        let set_aside = || {
            for file in &files {
                private::folder(&aside)?;
                fs::rename(file, aside.join(file.file_name().unwrap_or_default()))?;
            }
            // Otherwise a power failure could bring them back.
            private::sync_name(&aside)
        };
        set_aside().map_err(|source| Error::io(&aside, source))?;
        Ok(removal)
    }

    /// Deletes the files after the transaction was committed, and what a reader of the previous state has derived since.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.is_committed = true;
        complete_removal(&self.corpus)?;
        clear(&self.corpus)
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        if self.is_committed {
            return;
        }
        for entry in fs::read_dir(removed(&self.corpus)).into_iter().flatten().flatten() {
            let place = self.corpus.join(entry.file_name());
            if !place.exists() {
                let _lost_as_after_a_kill = fs::rename(entry.path(), place);
            }
        }
        let _deleted_by_the_next_writer = complete_removal(&self.corpus);
    }
}

/// The folder of files that are set aside.
fn removed(corpus: &Path) -> PathBuf {
    corpus.join(".removed")
}

/// Deletes what an interrupted removal has left.
pub(crate) fn complete_removal(corpus: &Path) -> Result<()> {
    delete(&removed(corpus))
}

/// Deletes the derived files of the corpus in a folder, and copies of its database from upgrades and repairs.
pub(crate) fn clear(corpus: &Path) -> Result<()> {
    derived(corpus).map_err(|source| Error::io(corpus, source))?.iter().try_for_each(|file| delete(file))
}

/// What contains words of documents, except graphs: the cache, what was trained, and the files and interrupted copies
/// beside the database that a version upgrade or a repair has left.
fn derived(corpus: &Path) -> io::Result<Vec<PathBuf>> {
    let is_derived = |name: &str| {
        let is_copy = name.starts_with("memory.") && !name.starts_with(DATABASE_FILE);
        is_copy || [CACHE, TRAINED].contains(&name)
    };
    files_named(corpus, is_derived)
}

fn delete(path: &Path) -> Result<()> {
    let deleted = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    let deleted = match deleted {
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
        deleted => deleted,
    };
    // Otherwise a power failure could bring it back.
    deleted.and_then(|()| private::sync_name(path)).map_err(|source| Error::io(path, source))
}

/// Deletes all saved graphs of the corpus in a folder.
pub(crate) fn delete_graphs(corpus: &Path) -> Result<()> {
    delete_named(corpus, "dense-")
}

/// Deletes all files that are made from the texts of the corpus in a folder, other than copies of its database.
pub(crate) fn delete_made(corpus: &Path) -> Result<()> {
    delete_graphs(corpus)?;
    [cache(corpus), trained(corpus)].iter().try_for_each(|folder| delete(folder))
}

/// Deletes the files in a folder whose names start with `prefix`.
pub(crate) fn delete_named(folder: &Path, prefix: &str) -> Result<()> {
    let files = files_named(folder, |name| name.starts_with(prefix)).map_err(|source| Error::io(folder, source))?;
    files.iter().try_for_each(|file| delete(file))
}

fn files_named(folder: &Path, is_meant: impl Fn(&str) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if is_meant(&entry.file_name().to_string_lossy()) {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}
