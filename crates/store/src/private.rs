//! Files and folders that only their owner may access. All files below a data folder that may contain words of
//! documents or prompts are created here, so that a permissive umask has no effect. On systems other than Unix,
//! permissions are inherited from the parent folder.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A temporary file that has not been written to for this long belongs to a process that was killed.
const ABANDONED: Duration = Duration::from_hours(1);

/// Permissions of all users except the owner.
#[cfg(unix)]
const OTHERS: u32 = 0o077;

/// Creates a folder and its missing parents for the owner only, durable across a power failure; restricts an existing
/// folder to the owner.
///
/// # Errors
/// Errors of the file system.
pub fn folder(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    missing.into_iter().try_for_each(sync_name)?;
    tighten_one(path)
}

/// Makes the creation, renaming or deletion of a path durable across a power failure, on systems that can synchronise
/// folders.
///
/// # Errors
/// Errors of the file system.
pub fn sync_name(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) => {
            File::open(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })?.sync_all()
        }
        _ => Ok(()),
    }
}

/// Options that create a file for the owner only, or truncate an existing one.
pub fn creating() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a file for the owner only, or truncates an existing one.
///
/// # Errors
/// Errors of the file system.
pub fn create(path: &Path) -> io::Result<File> {
    creating().open(path)
}

/// Writes a file for the owner only.
///
/// # Errors
/// Errors of the file system.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    io::Write::write_all(&mut create(path)?, content.as_ref())
}

/// Writes a file for the owner only in place of an existing one: there is the old content or the new, also after a full
/// disk, a kill, a power failure or with concurrent callers, of which the last one wins.
///
/// # Errors
/// Errors of the file system; the old content is there then, unless only synchronising the folder failed.
pub fn replace(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let (aside, mut file) = temporary(path)?;
    let mut write = || {
        io::Write::write_all(&mut file, content.as_ref())?;
        file.sync_all()?;
        fs::rename(&aside, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&aside)))?;
    sync_name(path)
}

/// Creates a temporary file beside `path` that no other thread or process uses: `{name}.{process}-{number}.new`.
fn temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    loop {
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".{}-{}.new", process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed)));
        let aside = PathBuf::from(aside);
        match creating().create_new(true).open(&aside) {
            // Processes of different containers can have the same id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((aside, created?)),
        }
    }
}

fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number =
        name.strip_suffix(".new").and_then(|name| name.rsplit_once('.')).and_then(|(_, id)| id.split_once('-'));
    number.is_some_and(|(process, number)| process.parse::<u32>().is_ok() && number.parse::<u64>().is_ok())
}

/// Deletes the temporary files that killed processes have left in a folder and below it.
///
/// # Errors
/// Errors of the file system.
pub fn sweep(folder: &Path) -> io::Result<()> {
    sweep_older(folder, ABANDONED)
}

/// The same for those that have not been written to for `age`.
pub(crate) fn sweep_older(folder: &Path, age: Duration) -> io::Result<()> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        entries => entries?.try_for_each(|entry| {
            let entry = entry?;
            match sweep_entry(&entry, age) {
                // It was renamed or deleted after it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                swept => swept,
            }
        }),
    }
}

fn sweep_entry(entry: &fs::DirEntry, age: Duration) -> io::Result<()> {
    let path = entry.path();
    if entry.file_type()?.is_dir() {
        return sweep_older(&path, age);
    }
    // The clock may have been set back since.
    let is_left = || io::Result::Ok(entry.metadata()?.modified()?.elapsed().is_ok_and(|passed| passed >= age));
    if is_temporary(&path) && (age.is_zero() || is_left()?) { fs::remove_file(path) } else { Ok(()) }
}

/// Removes the permissions of all users except the owner from a file or folder and all below it; does not follow links.
/// Files of other owners and missing files are skipped.
///
/// # Errors
/// Errors of the file system.
pub fn tighten(path: &Path) -> io::Result<()> {
    match tighten_all(path) {
        // A folder can be deleted after it was found.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        tightened => tightened,
    }
}

fn tighten_all(path: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_symlink() {
        return Ok(());
    }
    tighten_one(path)?;
    if kind.is_dir() {
        fs::read_dir(path)?.try_for_each(|entry| tighten(&entry?.path()))?;
    }
    Ok(())
}

/// The same for one file or folder, without recursion.
///
/// # Errors
/// Errors of the file system.
#[cfg(unix)]
pub fn tighten_one(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let tightened = fs::metadata(path).and_then(|metadata| {
        let mode = metadata.permissions().mode();
        if mode & OTHERS == 0 { Ok(()) } else { fs::set_permissions(path, fs::Permissions::from_mode(mode & !OTHERS)) }
    });
    match tightened {
        // It has another owner, or has been deleted meanwhile.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::NotFound
            ) =>
        {
            Ok(())
        }
        outcome => outcome,
    }
}

/// Does nothing: this system does not keep Unix permissions with files.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn tighten_one(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::thread;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_replaced_file_is_never_written_in_place() {
        let place = tempfile::tempdir().expect("the system has a folder for temporary files");
        let [file, other] = ["names.json", "other"].map(|name| place.path().join(name));
        replace(&file, "old").expect("it can be written");
        fs::hard_link(&file, &other).expect("links can be made");
        replace(&file, "new").expect("it can be written");
        let read = |path: &Path| fs::read_to_string(path).expect("it is there");
        assert_eq!([read(&file), read(&other)], ["new", "old"], "the old content was not touched");
        assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
        fs::create_dir(place.path().join("folder")).expect("it can be made");
        replace(&place.path().join("folder"), "third").expect_err("a folder is in its place");
        assert_eq!(left(place.path()), [] as [PathBuf; 0]);
    }

    /// The temporary files in a folder.
    fn left(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("it can be listed");
        entries.map(|entry| entry.expect("it can be listed").path()).filter(|path| is_temporary(path)).collect()
    }

    #[test]
    fn concurrent_replacements_leave_one_of_their_contents() {
        let place = tempfile::tempdir().expect("the system has a folder for temporary files");
        let file = place.path().join("names.json");
        let contents = [1_usize, 2, 3, 4].map(|number| number.to_string().repeat(number * 10_000));
        replace(&file, &contents[0]).expect("it can be written");
        thread::scope(|scope| {
            let file = &file;
            let writers = contents.each_ref().map(|content| {
                scope.spawn(move || (0..25).try_for_each(|_| replace(file, content)).expect("it can be written"))
            });
            while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
                let read = fs::read_to_string(file).expect("it is always there");
                assert!(contents.contains(&read), "{} bytes were read", read.len());
            }
        });
        assert_eq!(left(place.path()), [] as [PathBuf; 0]);
    }

    #[test]
    fn temporary_files_of_killed_processes_are_swept() {
        let place = tempfile::tempdir().expect("the system has a folder for temporary files");
        let deep = place.path().join("threads");
        folder(&deep).expect("it can be made");
        let old = SystemTime::now() - 2 * ABANDONED;
        let [killed, other, kept] = ["x.json.7-0.new", "memory.new", "x.json"].map(|name| deep.join(name));
        for path in [&killed, &other, &kept] {
            let file = create(path).expect("it can be written");
            file.set_modified(old).expect("it is ours");
        }
        let (young, _) = temporary(&deep.join("x.json")).expect("it can be made");
        sweep(place.path()).expect("it is ours");
        assert_eq!([&killed, &other, &kept, &young].map(|path| path.exists()), [false, true, true, true]);
        sweep_older(place.path(), Duration::ZERO).expect("it is ours");
        assert_eq!(left(&deep), [] as [PathBuf; 0]);
    }

    #[test]
    fn what_is_there_is_tightened_and_links_are_not_followed() {
        let place = tempfile::tempdir().expect("the system has a folder for temporary files");
        let loose =
            |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        let [folder_path, outside] = ["folder", "outside"].map(|name| place.path().join(name));
        folder(&folder_path.join("inner")).expect("it can be made");
        assert_eq!((mode(&folder_path), mode(&folder_path.join("inner"))), (0o700, 0o700));
        let file = folder_path.join("inner/file");
        write(&file, "words").expect("it can be written");
        assert_eq!(mode(&file), 0o600);
        fs::write(&outside, "words").expect("it can be written");
        std::os::unix::fs::symlink(&outside, folder_path.join("link")).expect("links can be made");
        for (path, mode) in [(&folder_path, 0o755), (&file, 0o644), (&outside, 0o644)] {
            loose(path, mode);
        }
        tighten(&folder_path).expect("it is ours");
        assert_eq!([&folder_path, &file, &outside].map(|path| mode(path)), [0o700, 0o600, 0o644]);
        tighten(&place.path().join("nothing")).expect("what is missing is no failure");
    }
}
