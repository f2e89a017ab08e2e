//! Uploaded files until they are ingested: one folder per server process, since several processes may share a data
//! folder.
//!
//! A process holds a lock in its folder. A later process can therefore tell folders in use from those that a stopped or
//! killed server left behind, and takes over the jobs in them.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use store::private;
use tempfile::TempDir;

use crate::error::Result;

/// The uploads of one tenant.
pub(crate) struct Uploads {
    /// Parent of the folders of all processes.
    folder: PathBuf,
    /// The folder of this process, created by the first upload.
    own: Mutex<Option<ProcessFolder>>,
}

/// A process's folder and the lock that marks it as in use.
struct ProcessFolder {
    folder: PathBuf,
    _lock: File,
}

const LOCK: &str = "lock";

/// The journal of an upload whose job was started.
pub(crate) const JOURNAL: &str = "job.json";

impl Uploads {
    pub fn new(folder: PathBuf) -> Uploads {
        Uploads { folder, own: Mutex::default() }
    }

    /// A folder for one upload, deleted when the value is dropped.
    pub fn create(&self) -> Result<TempDir> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let own = match &mut *own {
            Some(own) => own,
            none => {
                private::folder(&self.folder)?;
                none.insert(with_lock(&self.folder, || self.create_process_folder())?)
            }
        };
        let folder = TempDir::new_in(&own.folder)?;
        private::tighten(folder.path())?;
        Ok(folder)
    }

    /// Takes over the unfinished jobs of ended processes and deletes their other uploads.
    ///
    /// # Errors
    /// If files cannot be moved; what was not moved is left for the next server.
    pub fn take_over(&self) -> Result<Vec<PathBuf>> {
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        private::tighten(&self.folder)?;
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(with_lock(&self.folder, || {
            let mut taken = Vec::new();
            for ended in ended_processes(&self.folder)? {
                for upload in fs::read_dir(&ended)?.collect::<io::Result<Vec<_>>>()? {
                    if !upload.path().join(JOURNAL).exists() {
                        continue;
                    }
                    let own = match &mut *own {
                        Some(own) => own,
                        none => none.insert(self.create_process_folder()?),
                    };
                    let target = own.folder.join(upload.file_name());
                    fs::rename(upload.path(), &target)?;
                    taken.push(target);
                }
                fs::remove_dir_all(&ended)?;
            }
            Ok(taken)
        })?)
    }

    fn create_process_folder(&self) -> io::Result<ProcessFolder> {
        let folder = tempfile::Builder::new().prefix("server-").tempdir_in(&self.folder)?;
        private::tighten(folder.path())?;
        let lock = private::create(&folder.path().join(LOCK))?;
        lock.lock()?;
        Ok(ProcessFolder { folder: folder.keep(), _lock: lock })
    }
}

impl Drop for ProcessFolder {
    /// Unfinished jobs are left for the next server.
    fn drop(&mut self) {
        let _ = fs::remove_file(self.folder.join(LOCK));
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Prevents other processes from deleting a folder that is created but not locked yet.
fn with_lock<T>(folder: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let guard = private::create(&folder.join(LOCK))?;
    guard.lock()?;
    work()
}

/// Calls this for the folder of every upload, with whether its process has ended.
fn for_each_upload(data_folder: &Path, mut work: impl FnMut(&Path, bool) -> io::Result<()>) -> io::Result<()> {
    let folder = data_folder.join("uploads");
    if !folder.exists() {
        return Ok(());
    }
    with_lock(&folder, || {
        let ended = ended_processes(&folder)?;
        for process in folders_in(&folder)? {
            let has_ended = ended.contains(&process);
            for upload in folders_in(&process)? {
                work(&upload, has_ended)?;
            }
        }
        Ok(())
    })
}

/// Deletes the uploads to a corpus that was removed, and those of ended servers that became no job. Jobs of running servers on it
/// find it missing and end.
///
/// # Errors
/// If files cannot be read or deleted.
pub(crate) fn delete_uploads_of(data_folder: &Path, corpus: &str) -> io::Result<()> {
    for_each_upload(data_folder, |upload, has_ended| {
        let is_orphan = match fs::read(upload.join(JOURNAL)) {
            Ok(journal) => is_of(&journal, corpus),
            Err(error) if error.kind() == io::ErrorKind::NotFound => has_ended,
            Err(error) => return Err(error),
        };
        if is_orphan { fs::remove_dir_all(upload) } else { Ok(()) }
    })
}

/// Deletes the uploads from which documents of a corpus were made, or would be again: those of jobs that failed or were cancelled,
/// and of ended processes. A job of which no upload is left is deleted.
///
/// # Errors
/// If files cannot be read or deleted.
pub(crate) fn delete_uploads_to(data_folder: &Path, corpus: &str, is_gone: impl Fn(&str) -> bool) -> io::Result<()> {
    for_each_upload(data_folder, |upload, has_ended| {
        let journal = match fs::read(upload.join(JOURNAL)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            journal => journal?,
        };
        let journal: Value = serde_json::from_slice(&journal).unwrap_or_default();
        let has_ended = has_ended || journal["cancelled"] == true || !journal["error"].is_null();
        if journal["corpus"].as_str() != Some(corpus) || !has_ended {
            return Ok(());
        }
        let files = journal["files"].as_array().into_iter().flatten();
        let (gone, left): (Vec<_>, Vec<_>) = files.partition(|file| file["name"].as_str().is_some_and(&is_gone));
        if gone.is_empty() {
            return Ok(());
        }
        if left.is_empty() {
            return fs::remove_dir_all(upload);
        }
        for file in gone.iter().filter_map(|file| file["file"].as_str()) {
            match fs::remove_file(upload.join(file)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        Ok(())
    })
}

/// Whether the journal of a job names a corpus.
fn is_of(journal: &[u8], corpus: &str) -> bool {
    let journal = serde_json::from_slice::<Value>(journal).unwrap_or_default();
    journal["corpus"].as_str() == Some(corpus)
}

fn folders_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    Ok(paths.collect::<io::Result<Vec<_>>>()?.into_iter().filter(|path| path.is_dir()).collect())
}

/// The folders of ended processes.
fn ended_processes(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut ended = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_alive = File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err());
        if path.is_dir() && !is_alive {
            ended.push(path);
        }
    }
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use super::{JOURNAL, Path, Uploads, delete_uploads_of, fs};

    #[test]
    fn uploads_to_a_removed_corpus_are_deleted_and_those_to_others_stay() {
        let data = tempfile::tempdir().expect("the system has a folder for temporary files");
        delete_uploads_of(data.path(), "lamp").expect("there is nothing to delete");
        let folder = data.path().join("uploads");
        let uploads = Uploads::new(folder.clone());
        let running = uploads.create().expect("there is room");
        let new = uploads.create().expect("there is room");
        let [of_it, of_another, none] = ["lamp", "lamps", "none"].map(|name| {
            let place = folder.join("server-old").join(name);
            fs::create_dir_all(&place).expect("a folder can be made");
            fs::write(place.join("0.txt"), "words").expect("a file can be written");
            place
        });
        for (place, corpus) in [(&of_it, "lamp"), (&of_another, "lamps"), (&running.path().to_owned(), "lamp")] {
            fs::write(place.join(JOURNAL), format!("{{\"corpus\": \"{corpus}\"}}")).expect("a file can be written");
        }
        delete_uploads_of(data.path(), "lamp").expect("they can be deleted");
        let exist = [of_it.as_path(), &of_another, &none, running.path(), new.path()].map(Path::exists);
        assert_eq!(exist, [false, true, false, false, true]);
    }

    #[test]
    fn only_uploads_of_ended_processes_are_taken_over_or_deleted() {
        let data = tempfile::tempdir().expect("the system has a folder for temporary files");
        let folder = data.path().join("uploads");
        let left = folder.join("server-old/upload");
        fs::create_dir_all(&left).expect("a folder can be made");
        fs::write(left.join("0.txt"), "words").expect("a file can be written");
        let begun = folder.join("server-old/begun");
        fs::create_dir_all(&begun).expect("a folder can be made");
        fs::write(begun.join(JOURNAL), "{}").expect("a file can be written");
        let first = Uploads::new(folder.clone());
        let taken = first.take_over().expect("they can be moved");
        assert!(!left.exists() && !begun.exists(), "their lock is free");
        assert!(taken.len() == 1 && taken[0].join(JOURNAL).exists());
        let upload = first.create().expect("there is room");
        let second = Uploads::new(folder.clone());
        assert!(second.take_over().expect("there is nothing to move").is_empty());
        assert!(upload.path().exists(), "its server is running");
        assert_ne!(second.create().expect("there is room").path().parent(), upload.path().parent());
        let place = upload.path().to_owned();
        drop((upload, first));
        assert!(!place.exists());
        assert_eq!(second.take_over().expect("they can be moved").len(), 1, "unfinished jobs pass to the next server");
    }
}
