//! Files of JSON lines that grow during a run.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::data::records::Records;
use crate::{Error, Result};

/// The records of a file; none if there is no file. An unfinished last line is ignored.
///
/// # Errors
/// [`Error::Record`] with line and field.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    if !path.try_exists().map_err(Error::reading(path))? {
        return Ok(Vec::new());
    }
    cut_unfinished(path)?;
    if fs::metadata(path).map_err(Error::reading(path))?.len() == 0 {
        return Ok(Vec::new());
    }
    Ok(Records::read(path)?.into_values().collect())
}

/// Removes the text after the last line break.
fn cut_unfinished(path: &Path) -> Result<()> {
    let bytes = fs::read(path).map_err(Error::reading(path))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole < bytes.len() {
        let file = OpenOptions::new().write(true).open(path).map_err(Error::writing(path))?;
        file.set_len(whole as u64).map_err(Error::writing(path))?;
    }
    Ok(())
}

/// A file that grows by records.
#[derive(Debug)]
pub(crate) struct Appender {
    path: PathBuf,
    file: File,
}

impl Appender {
    /// Opens a file, which is created if there is none.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn open(path: PathBuf) -> Result<Appender> {
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(Error::writing(&path))?;
        Ok(Appender { path, file })
    }

    /// Appends a record as one write, so that a killed process leaves at most one line unfinished. What a full disk cuts
    /// off is removed again.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn append(&mut self, record: &impl Serialize) -> Result<()> {
        self.write(record).map_err(Error::writing(&self.path))
    }

    fn write(&mut self, record: &impl Serialize) -> io::Result<()> {
        let line = serde_json::to_string(record)? + "\n";
        let before = self.file.metadata()?.len();
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            self.file.set_len(before)?;
            return Err(error);
        }
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::env;
    use std::process::Command;

    use super::*;

    const FILE: &str = "MEMLOCAL_TEST_LINES";

    /// Runs itself in a process whose files are limited to 8 KiB at most: a longer line is cut off there.
    #[test]
    fn a_line_that_is_cut_off_is_removed() {
        if let Some(path) = env::var_os(FILE) {
            let mut file = Appender::open(path.into()).unwrap();
            file.append(&"one").unwrap();
            let error = file.append(&"x".repeat(1 << 16)).unwrap_err().to_string();
            assert!(error.starts_with("cannot write ") && error.ends_with("lines.jsonl"), "{error}");
            file.append(&"two").unwrap();
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines.jsonl");
        let run = Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact \"$1\""])
            .arg(env::current_exe().unwrap())
            .arg("qa::lines::tests::a_line_that_is_cut_off_is_removed")
            .env(FILE, &path)
            .output()
            .unwrap();
        assert!(run.status.success(), "{run:?}");
        assert_eq!(read::<String>(&path).unwrap(), ["one", "two"]);
    }
}
