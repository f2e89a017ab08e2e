//! Notes: what a language model wrote about a passage. They cost the most of all that is kept, so each set of them is
//! one durable transaction: a call that has been answered and noted is never made again, however the process ends.

use rusqlite::{Row, params};

use crate::{Corpus, Layer, PassageId, Result, Writer};

/// A text that a model derived from a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub passage: PassageId,
    /// What it is to the passage, such as "abstract".
    pub name: String,
    pub text: String,
    pub author: Author,
}

/// Who wrote a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The model's name and version.
    pub model: String,
    /// A digest of the prompt's wording.
    pub prompt: String,
}

impl Corpus {
    /// The notes on one passage by name.
    ///
    /// # Errors
    /// As reading the database.
    pub fn notes(&self, passage: PassageId) -> Result<Vec<Note>> {
        self.database.rows(
            "SELECT passage, name, text, model, prompt FROM note WHERE passage = ? ORDER BY name",
            [passage],
            read,
        )
    }

    /// All notes of one name in a layer, in the order of the passages: with GAM's abstracts of pages, the memo.
    ///
    /// # Errors
    /// As reading the database.
    pub fn notes_named(&self, layer: Layer, name: &str) -> Result<Vec<Note>> {
        self.database.rows(
            "SELECT note.passage, note.name, note.text, model, prompt
             FROM passage JOIN note ON note.passage = passage.id
             WHERE layer = ? AND name = ? ORDER BY passage.id",
            params![layer, name],
            read,
        )
    }

    /// The passages of a layer that lack a note of this name, in the order of their ids.
    ///
    /// # Errors
    /// As reading the database.
    pub fn pending(&self, layer: Layer, name: &str) -> Result<Vec<PassageId>> {
        self.database.rows(
            "SELECT id FROM passage WHERE layer = ?
             AND NOT EXISTS (SELECT 1 FROM note WHERE note.passage = passage.id AND note.name = ?) ORDER BY id",
            params![layer, name],
            |row| row.get(0),
        )
    }
}

impl Writer {
    /// Keeps the notes (name, text) of one author on a passage, all in one transaction; notes of the same names are
    /// replaced.
    ///
    /// # Errors
    /// [`Error::UnknownPassage`](crate::Error::UnknownPassage), [`Error::DiskFull`](crate::Error::DiskFull); nothing
    /// has changed then.
    pub fn put_notes(&mut self, passage: PassageId, notes: &[(&str, &str)], author: &Author) -> Result<()> {
        self.passage(passage)?;
        self.database.transact(|| {
            for (name, text) in notes {
                self.database.execute(
                    "INSERT OR REPLACE INTO note (passage, name, text, model, prompt) VALUES (?, ?, ?, ?, ?)",
                    params![passage, name, text, author.model, author.prompt],
                )?;
            }
            Ok(())
        })
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Note> {
    let author = Author { model: row.get(3)?, prompt: row.get(4)? };
    Ok(Note { passage: row.get(0)?, name: row.get(1)?, text: row.get(2)?, author })
}
