//! Where uploads lie until they are remembered: a folder for each server process, since several may share a data folder.
//!
//! A process holds a lock in its own folder, so that whoever comes later can tell the folders of the living from those
//! that a killed server has left behind; nobody could take those up again.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use crate::error::Result;

/// The uploads of one tenant.
pub(crate) struct Uploads {
    /// Where the folders of all processes are.
    folder: PathBuf,
    /// That of this process, from the first upload on.
    own: Mutex<Option<Own>>,
}

/// A process' folder, and the lock that says that it lives.
struct Own {
    folder: TempDir,
    _alive: File,
}

const LOCK: &str = "lock";

impl Uploads {
    /// Clears what the dead have left behind.
    pub fn new(folder: PathBuf) -> Uploads {
        if folder.exists()
            && let Err(error) = alone(&folder, || clear(&folder))
        {
            tracing::warn!(%error, "old uploads cannot be cleared");
        }
        Uploads { folder, own: Mutex::default() }
    }

    /// A folder for one upload, which goes with the value.
    pub fn begin(&self) -> Result<TempDir> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let own = match &mut *own {
            Some(own) => own,
            none => none.insert(self.make()?),
        };
        Ok(TempDir::new_in(own.folder.path())?)
    }

    fn make(&self) -> io::Result<Own> {
        fs::create_dir_all(&self.folder)?;
        alone(&self.folder, || {
            let folder = tempfile::Builder::new().prefix("server-").tempdir_in(&self.folder)?;
            let alive = File::create(folder.path().join(LOCK))?;
            alive.lock()?;
            Ok(Own { folder, _alive: alive })
        })
    }
}

/// Keeps others from clearing a folder that is there but not locked yet.
fn alone<T>(folder: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let guard = File::create(folder.join(LOCK))?;
    guard.lock()?;
    work()
}

fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let alive = File::open(path.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_err());
        if path.is_dir() && !alive {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Uploads, fs};

    #[test]
    fn only_the_uploads_of_the_dead_are_cleared() {
        let data = tempfile::tempdir().expect("the system has a folder for temporary files");
        let folder = data.path().join("uploads");
        let left = folder.join("server-of-yesterday/upload");
        fs::create_dir_all(&left).expect("a folder can be made");
        fs::write(left.join("0.txt"), "words").expect("a file can be written");
        let first = Uploads::new(folder.clone());
        assert!(!left.exists(), "nobody holds its lock");
        let upload = first.begin().expect("there is room");
        let second = Uploads::new(folder.clone());
        assert!(upload.path().exists(), "its server lives");
        assert_ne!(second.begin().expect("there is room").path().parent(), upload.path().parent());
        let place = upload.path().to_owned();
        drop((upload, first));
        assert!(!place.exists());
    }
}
