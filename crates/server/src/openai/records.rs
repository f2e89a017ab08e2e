//! Records that a holder keeps: one private JSON file each in a folder, under an id that this server has made.

use std::cmp::Reverse;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, result};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use store::private;

use crate::error::{Result, ServerError};

/// What is kept. The prefix begins its ids (`resp` of `resp-` and 32 hexadecimal digits), the noun is for messages.
pub(crate) trait Record: Serialize + DeserializeOwned {
    const PREFIX: &'static str;
    const NOUN: &'static str;

    fn id(&self) -> &str;
}

/// Bounds of what is kept of one kind for one holder where records are trimmed.
const MAX_RECORDS: usize = 1000;
const MAX_BYTES: u64 = 256 << 20;
const MAX_AGE: Duration = Duration::from_hours(30 * 24);

/// The file that a change of a record locks.
pub(super) const LOCK: &str = "changes.lock";

/// The records of one kind and holder.
pub(crate) struct Records<T> {
    folder: PathBuf,
    kind: PhantomData<fn() -> T>,
}

impl<T: Record> Records<T> {
    pub fn new(folder: PathBuf) -> Records<T> {
        if let Err(error) = private::sweep(&folder) {
            tracing::warn!(%error, path = %folder.display(), "cannot delete what an interrupted server left");
        }
        Records { folder, kind: PhantomData }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Permission to change a record between reading and writing it. It excludes other processes too: the command line forgets
    /// what quotes a document that it removes.
    pub fn lock(&self) -> Result<File> {
        private::folder(&self.folder)?;
        let lock = private::create(&self.folder.join(LOCK))?;
        lock.lock()?;
        Ok(lock)
    }

    /// The file of a record with this extension; ids that this server does not make are refused.
    pub fn path(&self, id: &str, extension: &str) -> Result<PathBuf> {
        let digits = id.strip_prefix(T::PREFIX).and_then(|rest| rest.strip_prefix('-'));
        let is_made_here = digits.is_some_and(|digits| {
            digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        });
        if is_made_here { Ok(self.folder.join(format!("{id}.{extension}"))) } else { Err(unknown::<T>(id)) }
    }

    pub fn read(&self, id: &str) -> Result<T> {
        match read_file(&self.path(id, "json")?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unknown::<T>(id)),
            read => Ok(read?),
        }
    }

    /// All records. A damaged one is skipped and logged.
    pub fn all(&self) -> Result<Vec<T>> {
        let mut records = Vec::new();
        for (path, ..) in self.files()?.into_iter().filter(|(path, ..)| is_record(path)) {
            match read_file(&path) {
                Ok(record) => records.push(record),
                Err(error) => tracing::warn!(%error, "cannot read a {}", T::NOUN),
            }
        }
        Ok(records)
    }

    /// All records, the last written first. A damaged one is skipped.
    pub fn latest_first(&self) -> Result<impl Iterator<Item = T>> {
        let mut files = self.files()?;
        files.retain(|(path, ..)| is_record(path));
        files.sort_by_key(|(_, written, _)| Reverse(*written));
        Ok(files.into_iter().filter_map(|(path, ..)| read_file(&path).ok()))
    }

    /// Writes a record atomically.
    pub fn write(&self, record: &T) -> Result<()> {
        let path = self.path(record.id(), "json")?;
        private::folder(&self.folder)?;
        Ok(private::replace(&path, json!(record).to_string())?)
    }

    /// Deletes what is too old or too much, the oldest first; the latest stays.
    pub fn trim(&self) -> Result<()> {
        let mut files = self.files()?;
        files.sort_by_key(|(_, written, _)| Reverse(*written));
        let mut bytes = 0;
        for (number, (path, written, length)) in files.into_iter().enumerate() {
            bytes += length;
            let is_old = written.elapsed().is_ok_and(|age| age > MAX_AGE);
            if number > 0 && (number >= MAX_RECORDS || bytes > MAX_BYTES || is_old) {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    pub fn remove(&self, id: &str) -> Result<()> {
        match fs::remove_file(self.path(id, "json")?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unknown::<T>(id)),
            removed => Ok(removed?),
        }
    }

    /// All files but that of the lock, with the time of their last change and their length.
    pub fn files(&self) -> Result<Vec<(PathBuf, SystemTime, u64)>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_name() == LOCK {
                continue;
            }
            match entry.metadata() {
                Ok(about) => files.push((entry.path(), about.modified()?, about.len())),
                // It was renamed or deleted meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(files)
    }

    /// The records that a removal must consider. Files whose content is not known, or whose writing was interrupted, are
    /// deleted.
    pub fn all_or_removed(&self) -> Result<Vec<T>> {
        let mut records = Vec::new();
        for (path, ..) in self.files()? {
            match read_file(&path) {
                Ok(record) if is_record(&path) => records.push(record),
                _ => fs::remove_file(path)?,
            }
        }
        Ok(records)
    }
}

fn is_record(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "json")
}

fn read_file<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, format!("a record is damaged: {error}"));
    let read: result::Result<T, _> = serde_json::from_slice(&fs::read(path)?);
    read.map_err(damaged)
}

pub(crate) fn unknown<T: Record>(id: &str) -> ServerError {
    ServerError::NotFound(format!("{} {id}", T::NOUN))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Kept {
        id: String,
    }

    impl Record for Kept {
        const PREFIX: &'static str = "kept";
        const NOUN: &'static str = "record";

        fn id(&self) -> &str {
            &self.id
        }
    }

    #[test]
    fn records_are_listed_while_others_are_written() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let records = Records::<Kept>::new(folder.path().join("kept"));
        let write = |number: usize| records.write(&Kept { id: format!("kept-{number:032x}") });
        (0..50).for_each(|number| write(number).expect("it can be written"));
        thread::scope(|scope| {
            let writer = scope.spawn(|| (0..300).try_for_each(|turn| write(turn % 50)));
            while !writer.is_finished() {
                assert_eq!(records.all().expect("they can be listed").len(), 50);
            }
            writer.join().expect("it ends").expect("all can be written");
        });
    }
}
