//! Files in the folder of a corpus that are derived from its database: saved graphs, the cache, and what was trained.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::database;
use crate::{Error, Result, private};

/// The folder of the cache.
pub(crate) fn cache(corpus: &Path) -> PathBuf {
    corpus.join("cache")
}

/// The folder of what was trained on the documents.
pub(crate) fn trained(corpus: &Path) -> PathBuf {
    corpus.join("trained")
}

/// Deletes all derived files of the corpus in a folder, and its backups of older versions.
pub(crate) fn clear(corpus: &Path) -> Result<()> {
    database::delete_earlier(corpus)?;
    [cache(corpus), trained(corpus)].iter().try_for_each(|folder| delete(folder))
}

fn delete(folder: &Path) -> Result<()> {
    let deleted = match fs::remove_dir_all(folder) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        deleted => deleted,
    };
    // Otherwise a power failure could bring it back.
    deleted.and_then(|()| private::sync_name(folder)).map_err(|source| Error::io(folder, source))
}

/// Deletes all saved graphs of the corpus in a folder.
pub(crate) fn delete_graphs(corpus: &Path) -> Result<()> {
    for path in graph_files(corpus).map_err(|source| Error::io(corpus, source))? {
        let deleted = fs::remove_file(&path).and_then(|()| private::sync_name(&path));
        deleted.map_err(|source| Error::io(&path, source))?;
    }
    Ok(())
}

fn graph_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("dense-") {
            paths.push(entry.path());
        }
    }
    Ok(paths)
}
