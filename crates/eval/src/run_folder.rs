//! A folder with the numbers of one run and their provenance.
//!
//! ```text
//! benches/runs/<date>-<machine>/<bench>/plan.json        what the run is to do, where it can be resumed
//!                                      /manifest.json    command, commit, machine, digests of models and data
//!                                      /results.csv      raw results, item by item
//!                                      /report.md        the numbers, for people
//!                                      /report.json      the same, for programs
//! ```

use std::fs::{self, File};
use std::io::{BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use std::{fmt, io};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Error, Host, Result};

/// A folder for one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
}

/// Provenance at the start of a run. The source may have changed at its end.
#[derive(Debug, Clone)]
pub struct Beginning {
    command: Vec<String>,
    commit: Option<String>,
    started: SystemTime,
}

/// The provenance of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The command line as typed.
    pub command: Vec<String>,
    /// The program's version.
    pub version: String,
    /// The commit of the program's source when the run began, with `-dirty` behind it if files had changed since.
    pub commit: Option<String>,
    /// The commit at the end, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_at_end: Option<String>,
    /// UTC.
    pub started: String,
    /// From start to the last number; for a resumed run, since it was resumed.
    pub seconds: f64,
    pub machine: Host,
    /// Every model that was used.
    pub models: Vec<ModelDigest>,
    /// Every data file that was read.
    pub data: Vec<FileDigest>,
}

/// A model by its name and files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelDigest {
    pub name: String,
    pub files: Vec<FileDigest>,
}

/// A file by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Without folders.
    pub name: String,
    pub bytes: u64,
    pub sha256: String,
}

impl RunFolder {
    /// Creates `parent/name`, and so checks before any work that results can be stored there.
    ///
    /// # Errors
    /// [`Error::Occupied`] if it is not empty, [`Error::Write`].
    pub fn create(parent: &Path, name: &str) -> Result<RunFolder> {
        let path = parent.join(name);
        create_empty(&path)?;
        Ok(RunFolder { path })
    }

    /// As above, for a run that can be resumed: `plan` determines what is measured.
    ///
    /// # Errors
    /// As [`RunFolder::create`].
    pub fn begin(parent: &Path, name: &str, plan: &impl Serialize) -> Result<RunFolder> {
        let folder = RunFolder::create(parent, name)?;
        put_json(&folder.path.join(PLAN), plan)?;
        Ok(folder)
    }

    /// Resumes the run in `parent/name`, or starts it if there is none.
    ///
    /// # Errors
    /// [`Error::OtherPlan`] if that run has another plan; as [`RunFolder::create`].
    pub fn resume(parent: &Path, name: &str, plan: &impl Serialize) -> Result<RunFolder> {
        let path = parent.join(name);
        let file = path.join(PLAN);
        let Ok(before) = fs::read(&file) else { return RunFolder::begin(parent, name, plan) };
        if before != json(plan, &file)?.into_bytes() {
            return Err(Error::OtherPlan { path });
        }
        Ok(RunFolder { path })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the manifest, the raw results, and the report, which renders itself as Markdown and as JSON.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(
        self,
        manifest: &Manifest,
        results: &str,
        report: &(impl fmt::Display + Serialize),
    ) -> Result<PathBuf> {
        put(&self.path.join("results.csv"), results)?;
        put(&self.path.join("report.md"), &report.to_string())?;
        put_json(&self.path.join("report.json"), report)?;
        put_json(&self.path.join("manifest.json"), manifest)?;
        Ok(self.path)
    }
}

/// Creates a folder, which must be empty. The plan that a killed process did not finish does not count.
///
/// # Errors
/// [`Error::Occupied`], [`Error::Write`].
pub(crate) fn create_empty(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(Error::writing(path))?;
    let begun = unfinished(Path::new(PLAN));
    let mut entries = fs::read_dir(path).map_err(Error::reading(path))?;
    if entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != begun)) {
        return Err(Error::Occupied { path: path.to_owned() });
    }
    Ok(())
}

/// Replaces a file at once or not at all, by what `write` writes. After an error nothing is left beside it.
///
/// # Errors
/// [`Error::Write`], and those of `write`.
pub(crate) fn replace<T>(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Result<T>) -> Result<T> {
    let beside = unfinished(path);
    let replaced = write_beside(&beside, path, write);
    if replaced.is_err() {
        // The error of writing is returned. What cannot be removed is overwritten by the next call.
        let _ = fs::remove_file(&beside);
    }
    replaced
}

fn write_beside<T>(beside: &Path, path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Result<T>) -> Result<T> {
    let mut file = BufWriter::new(File::create(beside).map_err(Error::writing(path))?);
    let written = write(&mut file)?;
    let synced = file.into_inner().map_err(IntoInnerError::into_error).and_then(|file| file.sync_all());
    synced.and_then(|()| fs::rename(beside, path)).map_err(Error::writing(path))?;
    Ok(written)
}

/// Replaces a file at once or not at all.
///
/// # Errors
/// [`Error::Write`].
pub(crate) fn put(path: &Path, content: &str) -> Result<()> {
    replace(path, |file| file.write_all(content.as_bytes()).map_err(Error::writing(path)))
}

/// The same for a value as JSON.
///
/// # Errors
/// [`Error::Write`].
pub(crate) fn put_json(path: &Path, value: &impl Serialize) -> Result<()> {
    put(path, &json(value, path)?)
}

/// The file beside another that is renamed to it when it is whole.
fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

fn json(value: &impl Serialize, path: &Path) -> Result<String> {
    let json = serde_json::to_string_pretty(value).map_err(io::Error::from);
    Ok(json.map_err(Error::writing(path))? + "\n")
}

/// A line of `results.csv`; cells that would break it are quoted.
pub(crate) fn csv_line(cells: impl IntoIterator<Item = String>) -> String {
    let quoted = |cell: String| match cell.contains(['"', ',', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    };
    cells.into_iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

/// The plan of a run, written before it starts.
pub(crate) const PLAN: &str = "plan.json";

impl Beginning {
    /// A run that starts now.
    pub fn now(command: Vec<String>) -> Beginning {
        let command = command.iter().map(|word| store::without_secrets(word)).collect();
        Beginning { command, commit: commit(), started: SystemTime::now() }
    }
}

impl Manifest {
    /// Describes a run on this machine that ends now.
    pub fn new(began: Beginning, models: Vec<ModelDigest>, data: Vec<FileDigest>) -> Manifest {
        let Beginning { command, commit: at_start, started } = began;
        Manifest {
            command,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit_at_end: commit().filter(|at_end| Some(at_end) != at_start.as_ref()),
            commit: at_start,
            started: humantime::format_rfc3339_seconds(started).to_string(),
            seconds: started.elapsed().unwrap_or_default().as_secs_f64().round(),
            machine: Host::this(),
            models,
            data,
        }
    }
}

impl FileDigest {
    /// Reads a file and digests it.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn of(path: &Path) -> Result<FileDigest> {
        let mut digest = Sha256::new();
        let copied = File::open(path).and_then(|mut file| io::copy(&mut file, &mut digest));
        let bytes = copied.map_err(Error::reading(path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(FileDigest { name, bytes, sha256: format!("{:x}", digest.finalize()) })
    }

    /// Digests several files, in their order.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn of_all(files: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Vec<FileDigest>> {
        files.into_iter().map(|file| FileDigest::of(file.as_ref())).collect()
    }
}

/// The commit of the source tree in which this program was built, if the tree and git are still available.
fn commit() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["--no-optional-locks", "-C", env!("CARGO_MANIFEST_DIR")]);
    git.args(["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]);
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second name of the file shows whether its contents were changed in place, where a kill would leave a part of
    /// them.
    #[test]
    fn a_file_is_replaced_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let [path, before] = [PLAN, "before.json"].map(|name| folder.path().join(name));
        put_json(&path, &1).unwrap();
        fs::hard_link(&path, &before).unwrap();
        put_json(&path, &2).unwrap();
        let read = |path| fs::read_to_string(path).unwrap();
        assert_eq!((read(&before), read(&path)), ("1\n".to_owned(), "2\n".to_owned()));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        let failed = replace(&path, |file| {
            file.write_all(b"3\n").map_err(Error::writing(&path))?;
            Err::<(), Error>(Error::Panicked)
        });
        assert!(matches!(failed, Err(Error::Panicked)));
        assert_eq!((read(&path), fs::read_dir(folder.path()).unwrap().count()), ("2\n".to_owned(), 2));
    }

    #[test]
    fn a_source_that_changed_during_the_run_is_reported() {
        let check = |at_start: Option<String>, expect: Option<String>| {
            let began = Beginning { commit: at_start.clone(), ..Beginning::now(Vec::new()) };
            let manifest = Manifest::new(began, Vec::new(), Vec::new());
            assert_eq!((manifest.commit, manifest.commit_at_end), (at_start, expect));
        };
        check(commit(), None);
        check(Some("another".into()), commit());
    }
}
