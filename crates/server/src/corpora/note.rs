//! A note beside a corpus: what a reader has written, or an answer that was saved from a thread.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Corpus;
use utoipa::ToSchema;

use super::kept::{self, Record};
use super::thread::cites;
use crate::error::Result;
use crate::lost::Gone;

/// A note.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(super) struct Note {
    pub id: String,
    /// The question of a saved answer, or the first line of the text, unless it was given.
    pub title: String,
    /// What the reader wrote, in Markdown.
    pub text: String,
    /// Milliseconds since 1970, so that the order of notes is that of their changes.
    pub created: u64,
    pub updated: u64,
    pub saved: Option<Saved>,
}

/// An answer that was saved from a thread.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(super) struct Saved {
    pub question: String,
    /// As `ask` returned it.
    pub answer: Value,
    /// When it was first asked, in seconds since 1970.
    pub asked: u64,
    /// Not before the answer was given; files of earlier versions do not say.
    #[serde(default)]
    pub answered: Option<u64>,
}

impl Record for Note {
    const KIND: &'static str = "note";
    const FOLDER: &'static str = "notes";

    fn id(&self) -> &str {
        &self.id
    }

    fn updated(&self) -> u64 {
        self.updated
    }
}

/// Removes saved answers that could know a document that is gone. What the reader wrote remains.
pub(crate) fn forget(corpus: &Corpus, gone: &[Gone]) -> Result<()> {
    let _one = kept::lock(corpus)?;
    for note in kept::all_or_removed::<Note>(corpus)? {
        let could_know = |saved: &Saved| {
            let answered = saved.answered.unwrap_or(note.created / 1000);
            gone.iter().any(|gone| answered >= gone.since || cites(&saved.answer, gone))
        };
        if !note.saved.as_ref().is_some_and(could_know) {
            continue;
        }
        if note.text.is_empty() {
            kept::delete::<Note>(corpus, &note.id)?;
        } else {
            kept::write(corpus, &Note { saved: None, ..note })?;
        }
    }
    Ok(())
}
