//! Files in the folder of a corpus that are derived from its database: saved graphs and the cache.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::database;
use crate::{Error, Result, private};

/// The folder of the cache.
pub(crate) fn cache(corpus: &Path) -> PathBuf {
    corpus.join("cache")
}

/// Deletes all derived files of the corpus in a folder, and its backups of older versions.
pub(crate) fn clear(corpus: &Path) -> Result<()> {
    database::delete_earlier(corpus)?;
    let deleted = match fs::remove_dir_all(cache(corpus)) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        deleted => deleted,
    };
    // Otherwise a power failure could bring them back.
    deleted.and_then(|()| private::sync_name(&cache(corpus))).map_err(|source| Error::io(&cache(corpus), source))
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
