//! The process that has a corpus open.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use crate::without_secrets;

/// The process that last opened a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    /// Its command line; only the program and its subcommand where PostgreSQL names the process.
    pub command: String,
    /// The address of its machine, if that may be another one.
    pub machine: Option<String>,
}

impl Holder {
    pub(crate) fn this_process() -> Self {
        let words: Vec<_> = std::env::args_os().map(|word| without_secrets(&word.to_string_lossy())).collect();
        Self { pid: std::process::id(), command: words.join(" "), machine: None }
    }

    /// The process that signed a lock file.
    pub(crate) fn read(mut file: &File) -> Option<Self> {
        let mut text = String::new();
        file.seek(SeekFrom::Start(0)).ok()?;
        file.read_to_string(&mut text).ok()?;
        let (pid, command) = text.split_once('\n')?;
        Some(Self { pid: pid.parse().ok()?, command: command.trim_end().to_owned(), machine: None })
    }
}

/// Without the command line: other users of a server must not see it.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        self.machine.as_ref().map_or(Ok(()), |machine| write!(f, " on {machine}"))
    }
}
