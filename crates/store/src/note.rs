//! Notes: texts that a language model wrote about a passage. They are the most expensive data in the store, so each set
//! of them is one durable transaction: a call whose answer was stored is never repeated, even if the process is killed.

use rusqlite::{Row, params};

use crate::{Corpus, Layer, PassageId, Result, Writer};

/// A text that a model wrote about a passage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub passage: PassageId,
    /// Its kind, such as "abstract".
    pub name: String,
    pub text: String,
    pub author: Author,
}

/// The model and prompt that produced a note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// The model's name and version.
    pub model: String,
    /// A digest of the prompt template.
    pub prompt: String,
}

impl Corpus {
    /// The notes on one passage, by name.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn notes(&self, passage: PassageId) -> Result<Vec<Note>> {
        self.database.rows(
            "SELECT passage, name, text, model, prompt FROM note WHERE passage = ? ORDER BY name",
            [passage],
            read,
        )
    }

    /// All notes of one name in a layer, in the order of the passages: for GAM's abstracts of pages, this is the memo.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn notes_named(&self, layer: Layer, name: &str) -> Result<Vec<Note>> {
        self.database.rows(
            "SELECT note.passage, note.name, note.text, model, prompt
             FROM passage JOIN note ON note.passage = passage.id
             WHERE layer = ? AND name = ? ORDER BY passage.id",
            params![layer, name],
            read,
        )
    }

    /// The passages of a layer without a note of this name, in the order of their ids.
    ///
    /// # Errors
    /// Errors of reading the database.
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
    /// Stores the notes (name, text) of one author on a passage, all in one transaction; replaces notes of the same
    /// names.
    ///
    /// # Errors
    /// [`Error::UnknownPassage`](crate::Error::UnknownPassage), [`Error::DiskFull`](crate::Error::DiskFull); nothing is
    /// changed then.
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
