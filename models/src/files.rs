//! Files of checkpoints: on the disk, or in a bundle, where a path continues below the path of the bundle.

use std::fs::{self, File};
use std::io::{self, BufWriter, IntoInnerError};
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
        None => fs::read(path).map_err(|source| ModelError::Io { path: path.to_owned(), source }),
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
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
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

/// Replaces a file at once or not at all, durably: `write` writes the contents to a file beside it, which is synced and
/// renamed; then the name is synced. The permissions of a file that is replaced are kept. After an error of writing the file
/// is as before, and nothing is left beside it.
///
/// # Errors
/// If the file cannot be written or synced, and those of `write`.
pub fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let beside = path.with_added_extension("part");
    let written = write_synced(&beside, path, write).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The error of writing is returned. What cannot be removed is overwritten by the next call.
        let _ = fs::remove_file(&beside);
    }
    written?;
    sync_name(path)
}

/// Writes and syncs a file that has the permissions of `replaced`, if that exists.
fn write_synced(
    path: &Path,
    replaced: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let file = File::create(path)?;
    // Before the contents, which may be private. The permissions of a device are not this file's.
    if file.metadata()?.is_file() {
        match fs::metadata(replaced) {
            Ok(replaced) => file.set_permissions(replaced.permissions())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let mut file = BufWriter::new(file);
    write(&mut file)?;
    file.into_inner().map_err(IntoInnerError::into_error)?.sync_all()
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
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        for text in ["one", "two"] {
            replace(&path, |file| file.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
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
        replace(&path, |file| file.write_all(b"one")).unwrap_err();
        assert!(!path.try_exists().unwrap());
    }

    #[test]
    fn contents_that_are_written_in_part_replace_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        replace(&path, |file| file.write_all(b"one")).unwrap();
        let failed = replace(&path, |file| {
            file.write_all(&vec![b'2'; 1 << 16])?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        assert_eq!(in_folder(folder.path()).unwrap(), [path]);
    }

    #[cfg(unix)]
    #[test]
    fn a_replaced_file_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        replace(&path, |file| file.write_all(b"one")).unwrap();
        for wanted in [0o600, 0o640] {
            fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
            let beside = path.with_added_extension("part");
            let before_contents = |file: &mut BufWriter<File>| {
                assert_eq!(mode(&beside), wanted);
                file.write_all(b"two")
            };
            replace(&path, before_contents).unwrap();
            assert_eq!(mode(&path), wanted);
        }
    }
}
