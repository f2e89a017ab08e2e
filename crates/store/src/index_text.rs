//! The texts of passages, as they are read and as they are indexed.

use rusqlite::params;

use crate::document_text::TextReader;
use crate::{Corpus, Document, Layer, PassageId, Result};

/// The text under which a passage is indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexText<'a> {
    /// Its own text.
    Content,
    /// The note of this name, if there is one, a line break, and its own text.
    NoteAndContent(&'a str),
}

impl Corpus {
    /// The text of one passage.
    ///
    /// # Errors
    /// [`crate::Error::UnknownPassage`]; [`crate::Error::Damaged`] when its span is not in the document.
    pub fn passage_text(&self, id: PassageId) -> Result<String> {
        let passage = self.passage(id)?;
        let text = self.text_range(passage.document, &passage.span.bytes())?;
        text.ok_or_else(|| self.misplaced(&passage))
    }

    /// The text under which one passage is to be indexed.
    ///
    /// # Errors
    /// As [`passage_text`](Self::passage_text).
    pub fn index_text(&self, id: PassageId, text: IndexText<'_>) -> Result<String> {
        let content = self.passage_text(id)?;
        self.decorated(id, &content, text)
    }

    /// Passes the index texts of all passages of a layer to a function, with their documents, each of which is read once.
    pub(crate) fn each_index_text(
        &self,
        layer: Layer,
        text: IndexText<'_>,
        mut each: impl FnMut(&Document, PassageId, &str),
    ) -> Result<()> {
        for document in self.documents()? {
            let passages = self.passages_of(document.id, layer)?;
            if passages.is_empty() {
                continue;
            }
            let mut whole = TextReader::new(self, &document)?;
            for passage in passages {
                let content = whole.range(&passage.span.bytes())?.ok_or_else(|| self.misplaced(&passage))?;
                each(&document, passage.id, &self.decorated(passage.id, &content, text)?);
            }
            whole.finish()?;
        }
        Ok(())
    }

    fn decorated(&self, id: PassageId, content: &str, text: IndexText<'_>) -> Result<String> {
        let note = match text {
            IndexText::Content => None,
            IndexText::NoteAndContent(name) => {
                self.database.row("SELECT text FROM note WHERE passage = ? AND name = ?", params![id, name], |row| {
                    row.get::<_, String>(0)
                })?
            }
        };
        Ok(note.map_or_else(|| content.to_owned(), |note| format!("{note}\n{content}")))
    }
}
