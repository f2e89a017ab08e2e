//! Time and peak memory of a phase, written every 30 seconds, so that a killed process keeps most of it.

use std::time::{Duration, Instant};

use memory::Trace;

use super::folder::QaFolder;
use super::item::{Line, Measured};
use super::tape::Scope;
use crate::Result;
use crate::host::{peak_since_watch, watch_memory};

/// The interval between two notes.
const BETWEEN: Duration = Duration::from_secs(30);

/// A phase being measured.
pub(super) struct Watch<'a> {
    folder: &'a QaFolder,
    scope: Scope,
    trace: &'a Trace,
    /// Whether the system reports the memory of this phase alone.
    knows_memory: bool,
    noted: Instant,
    noted_fallbacks: usize,
}

impl<'a> Watch<'a> {
    /// Starts to watch. Only one phase can be watched at a time.
    pub fn begin(folder: &'a QaFolder, scope: Scope, trace: &'a Trace) -> Watch<'a> {
        let knows_memory = watch_memory();
        Watch { folder, scope, trace, knows_memory, noted: Instant::now(), noted_fallbacks: 0 }
    }

    /// Records time and memory since the last note, if the interval has passed.
    ///
    /// # Errors
    /// [`crate::Error::Write`].
    pub fn tick(&mut self) -> Result<()> {
        if self.noted.elapsed() < BETWEEN { Ok(()) } else { self.note() }
    }

    /// Records time and memory since the last note.
    ///
    /// # Errors
    /// [`crate::Error::Write`].
    pub fn note(&mut self) -> Result<()> {
        let (now, fallbacks) = (Instant::now(), self.trace.fallbacks());
        let measured = Measured {
            scope: self.scope.clone(),
            seconds: Some(now.duration_since(self.noted).as_secs_f64()),
            fallbacks: fallbacks - self.noted_fallbacks,
            peak_memory_bytes: peak_since_watch().filter(|_| self.knows_memory),
        };
        (self.noted, self.noted_fallbacks) = (now, fallbacks);
        self.folder.put(&Line::Measured(measured))
    }
}
