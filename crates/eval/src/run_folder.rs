//! A folder that holds the numbers of one run, and what they came from.
//!
//! ```text
//! benches/runs/<date>-<machine>/<bench>/manifest.json    command, commit, machine, digests of models and data
//!                                      /results.csv      raw results, item by item
//!                                      /summary.md       the numbers, for people
//!                                      /summary.json     the same, for programs
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;
use std::{fmt, io};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Error, Machine, Result};

/// A folder for one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
}

/// What a run was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// As it was typed.
    pub command: Vec<String>,
    /// The program's version.
    pub version: String,
    /// The commit of the program's source, with `-dirty` behind it if files have changed since.
    pub commit: Option<String>,
    /// UTC.
    pub started: String,
    /// From start to the last number.
    pub seconds: f64,
    pub machine: Machine,
    /// Every model that took part.
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
    /// Makes `parent/name`, and so proves before any work that results can be kept there.
    ///
    /// # Errors
    /// [`Error::Occupied`] when there is something in it already, [`Error::Write`].
    pub fn create(parent: &Path, name: &str) -> Result<RunFolder> {
        let path = parent.join(name);
        fs::create_dir_all(&path).map_err(Error::writing(&path))?;
        let mut entries = fs::read_dir(&path).map_err(Error::reading(&path))?;
        if entries.next().is_some() {
            return Err(Error::Occupied { path });
        }
        Ok(RunFolder { path })
    }

    /// Writes what the run was, its raw results, and its summary, which says itself in Markdown and as JSON.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(
        self,
        manifest: &Manifest,
        results: &str,
        summary: &(impl fmt::Display + Serialize),
    ) -> Result<PathBuf> {
        self.put("results.csv", results)?;
        self.put("summary.md", &summary.to_string())?;
        self.put_json("summary.json", summary)?;
        self.put_json("manifest.json", manifest)?;
        Ok(self.path)
    }

    fn put_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let json = serde_json::to_string_pretty(value).map_err(io::Error::from);
        self.put(name, &(json.map_err(Error::writing(&self.path.join(name)))? + "\n"))
    }

    fn put(&self, name: &str, content: &str) -> Result<()> {
        let path = self.path.join(name);
        fs::write(&path, content).map_err(Error::writing(&path))
    }
}

impl Manifest {
    /// Describes a run on this machine that ends now.
    pub fn new(command: Vec<String>, started: SystemTime, models: Vec<ModelDigest>, data: Vec<FileDigest>) -> Manifest {
        Manifest {
            command,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit(),
            started: humantime::format_rfc3339_seconds(started).to_string(),
            seconds: started.elapsed().unwrap_or_default().as_secs_f64().round(),
            machine: Machine::this(),
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
}

/// The commit of the source tree that this program was built in, if that and git are still there.
fn commit() -> Option<String> {
    let mut git = Command::new("git");
    git.args(["--no-optional-locks", "-C", env!("CARGO_MANIFEST_DIR")]);
    git.args(["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]);
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
