//! Records beside a corpus: one JSON file each, private to its owner and removed with the corpus.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use store::{Corpus, private};

use crate::error::{Result, ServerError};

/// What is kept: the kind begins its ids (`thread-` and 32 hexadecimal digits), the folder is beside the database.
pub(super) trait Record: Serialize + DeserializeOwned {
    const KIND: &'static str;
    const FOLDER: &'static str;

    fn id(&self) -> &str;

    /// The time of the last change, in any unit.
    fn updated(&self) -> u64;
}

/// The file of a record; ids that this server does not make are refused.
fn file<T: Record>(corpus: &Corpus, id: &str) -> Result<PathBuf> {
    let digits = id.strip_prefix(T::KIND).and_then(|rest| rest.strip_prefix('-'));
    let is_made_here = digits.is_some_and(|digits| {
        digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    });
    if is_made_here { Ok(corpus.file(T::FOLDER).join(format!("{id}.json"))) } else { Err(unknown::<T>(id)) }
}

fn unknown<T: Record>(id: &str) -> ServerError {
    ServerError::NotFound(format!("{} {id}", T::KIND))
}

/// Permission to change the records of a corpus. It excludes other processes too: the command line forgets what quotes a document
/// that it removes.
pub(crate) fn lock(corpus: &Corpus) -> Result<File> {
    let lock = private::create(&corpus.file("records.lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// A record, with the bytes of its file.
pub(super) fn read<T: Record>(corpus: &Corpus, id: &str) -> Result<(T, usize)> {
    let bytes = match fs::read(file::<T>(corpus, id)?) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(unknown::<T>(id)),
        bytes => bytes?,
    };
    let damaged = |error| io::Error::new(io::ErrorKind::InvalidData, format!("{} {id} is damaged: {error}", T::KIND));
    Ok((serde_json::from_slice(&bytes).map_err(damaged)?, bytes.len()))
}

/// All records of a corpus, the latest first. A damaged file is skipped and logged.
pub(super) fn all<T: Record>(corpus: &Corpus) -> Result<Vec<T>> {
    map_all(corpus, |record: T| record)
}

/// What `map` makes of each record of a corpus, as [`all`]. One record at a time is in memory as a whole.
pub(super) fn map_all<T: Record, U>(corpus: &Corpus, map: impl Fn(T) -> U) -> Result<Vec<U>> {
    let mut mapped: Vec<(u64, String, U)> = Vec::new();
    for id in ids::<T>(corpus)? {
        match read::<T>(corpus, &id) {
            Ok((record, _)) => mapped.push((record.updated(), id, map(record))),
            // It was deleted after it was listed.
            Err(ServerError::NotFound(_)) => {}
            Err(error) => tracing::warn!(%error, "cannot read a {}", T::KIND),
        }
    }
    mapped.sort_by(|one, other| (other.0, &other.1).cmp(&(one.0, &one.1)));
    Ok(mapped.into_iter().map(|(.., record)| record).collect())
}

/// All records of a corpus, of which those that may quote a removed text are to be removed. Damaged files are removed: they may
/// quote it. The caller holds the lock.
pub(super) fn all_or_removed<T: Record>(corpus: &Corpus) -> Result<Vec<T>> {
    let mut records = Vec::new();
    for id in ids::<T>(corpus)? {
        match read::<T>(corpus, &id) {
            Ok((record, _)) => records.push(record),
            Err(ServerError::NotFound(_)) => {}
            Err(_) => delete::<T>(corpus, &id)?,
        }
    }
    Ok(records)
}

fn ids<T: Record>(corpus: &Corpus) -> Result<Vec<String>> {
    let entries = match fs::read_dir(corpus.file(T::FOLDER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        ids.extend(name.to_str().and_then(|name| name.strip_suffix(".json")).map(str::to_owned));
    }
    Ok(ids)
}

/// Writes a record atomically.
pub(super) fn write<T: Record>(corpus: &Corpus, record: &T) -> Result<()> {
    let path = file::<T>(corpus, record.id())?;
    private::folder(&corpus.file(T::FOLDER))?;
    Ok(private::replace(&path, json!(record).to_string())?)
}

pub(super) fn delete<T: Record>(corpus: &Corpus, id: &str) -> Result<()> {
    match fs::remove_file(file::<T>(corpus, id)?) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unknown::<T>(id)),
        deleted => Ok(deleted?),
    }
}

pub(super) fn delete_all<T: Record>(corpus: &Corpus) -> Result<()> {
    match fs::remove_dir_all(corpus.file(T::FOLDER)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => Ok(removed?),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use store::Corpora;

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Kept {
        id: String,
        updated: u64,
    }

    impl Record for Kept {
        const KIND: &'static str = "kept";
        const FOLDER: &'static str = "kept";

        fn id(&self) -> &str {
            &self.id
        }

        fn updated(&self) -> u64 {
            self.updated
        }
    }

    #[test]
    fn records_are_read_one_after_the_other_and_the_latest_is_first() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let corpus = Corpora::new(folder.path()).create("pell").expect("a corpus");
        let id = |number: u64| format!("kept-{number:032x}");
        for number in 0..3 {
            write(&corpus, &Kept { id: id(number), updated: number % 2 }).expect("it can be written");
        }
        let numbers = |records: Vec<Kept>| records.into_iter().map(|record| record.id).collect::<Vec<String>>();
        assert_eq!(numbers(all(&corpus).expect("they can be listed")), [1, 2, 0].map(id));
        // What is made of the first one that is read deletes the others.
        let only = map_all(&corpus, |record: Kept| {
            let others = (0..3).map(id).filter(|id| *id != record.id);
            others.for_each(|id| delete::<Kept>(&corpus, &id).expect("it is there"));
            record.id
        });
        assert_eq!(only.expect("they can be listed").len(), 1);
    }
}
