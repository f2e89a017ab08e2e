//! Traces of questions: every call and search, kept in memory up to a limit, never written to disk.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::lost::CorpusState;

/// The trace of a question.
struct Kept {
    id: String,
    corpus: String,
    /// That of the corpus before the question.
    state: CorpusState,
    lines: Vec<u8>,
}

/// The latest traces of one tenant.
pub(crate) struct Traces {
    kept: Mutex<VecDeque<Kept>>,
    max_bytes: usize,
}

impl Traces {
    pub fn new(max_bytes: usize) -> Traces {
        Traces { kept: Mutex::default(), max_bytes }
    }

    /// Stores a trace and drops the oldest beyond the limit.
    pub fn put(&self, id: String, corpus: String, state: CorpusState, lines: Vec<u8>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(Kept { id, corpus, state, lines });
        while kept.len() > 1 && kept.iter().map(|trace| trace.lines.len()).sum::<usize>() > self.max_bytes {
            kept.pop_front();
        }
    }

    /// Deletes the traces of all questions to a corpus.
    pub fn delete_of(&self, corpus: &str) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).retain(|trace| trace.corpus != corpus);
    }

    /// The lines of a trace as one JSON object, unless they may quote a text that another process has removed since.
    /// `now` tells the state of a corpus.
    pub(super) fn json(&self, id: &str, now: impl Fn(&str) -> Result<CorpusState>) -> Result<Option<String>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Kept { corpus, state, lines, .. }) = kept.iter().find(|trace| trace.id == id) else { return Ok(None) };
        if now(corpus)? != *state {
            return Ok(None);
        }
        let lines = String::from_utf8_lossy(lines);
        let events: Vec<&str> = lines.lines().collect();
        Ok(Some(format!("{{\"id\":\"{id}\",\"events\":[{}]}}", events.join(","))))
    }
}
