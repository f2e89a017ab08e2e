//! Files of checkpoints: on the disk, or in a bundle, where a path continues below the path of the bundle.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bundle::Bundle;

use crate::error::{ModelError, Result};

pub(crate) fn is_file(path: &Path) -> bool {
    path.is_file() || Bundle::holding(path).is_some_and(|(bundle, name)| bundle.find(&name).is_some())
}

pub(crate) fn is_dir(path: &Path) -> bool {
    path.is_dir() || Bundle::holding(path).is_some_and(|(bundle, name)| bundle.below(&format!("{name}/")).count() > 0)
}

/// # Errors
/// If the file is missing, cannot be read, or is in a bundle and was altered.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    match Bundle::holding(path) {
        Some((bundle, name)) => match bundle.find(&name) {
            Some(entry) => Ok(bundle.read(entry)?),
            None => Err(ModelError::Io { path: path.to_owned(), source: io::ErrorKind::NotFound.into() }),
        },
        None => std::fs::read(path).map_err(|source| ModelError::Io { path: path.to_owned(), source }),
    }
}

/// The files of a folder, without those of its subfolders.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn in_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if let Some((bundle, name)) = Bundle::holding(folder) {
        let prefix = format!("{name}/");
        let names = bundle.below(&prefix).map(|entry| &entry.name[prefix.len()..]);
        return Ok(names.filter(|name| !name.contains('/')).map(|name| folder.join(name)).collect());
    }
    let paths = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let paths = paths.collect::<io::Result<Vec<PathBuf>>>()?;
    Ok(paths.into_iter().filter(|path| path.is_file()).collect())
}

/// Length and time of change of a file.
///
/// # Errors
/// If the file cannot be found.
pub(crate) fn stamp(path: &Path) -> Result<(u64, SystemTime)> {
    let held = Bundle::holding(path);
    let entry = held.as_ref().and_then(|(bundle, name)| Some((bundle.path(), bundle.find(name)?)));
    let metadata = entry.map_or(path, |(bundle, _)| bundle).metadata();
    let io = |source| ModelError::Io { path: path.to_owned(), source };
    let stamp = metadata.and_then(|metadata| Ok((metadata.len(), metadata.modified()?))).map_err(io)?;
    Ok(entry.map_or(stamp, |(_, entry)| (entry.bytes, stamp.1)))
}

/// Replaces a file at once or not at all, durably: its contents are written beside it first, and its name is synced after.
///
/// # Errors
/// If the file cannot be written or synced.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = PathBuf::from(format!("{}.part", path.display()));
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&beside, path)?;
    sync_name(path)
}

/// Makes the name of a file or a folder durable.
///
/// # Errors
/// If its folder cannot be synced.
pub(crate) fn sync_name(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        for text in ["one", "two"] {
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(in_folder(folder.path()).unwrap(), [path]);
    }

    /// Linux writes to `/dev/null` and refuses to sync it.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_cannot_be_synced_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::os::unix::fs::symlink("/dev/null", folder.path().join("a.json.part")).unwrap();
        replace(&path, b"one").unwrap_err();
        assert!(!path.try_exists().unwrap());
    }
}
