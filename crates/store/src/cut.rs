//! A cut: into which passages a document is divided, layer by layer. Where a layer is cut as before, nothing that was
//! derived from its passages is lost.

use rusqlite::params;

use crate::{DocId, Error, Layer, Meta, NewDocument, NewPassage, Offsets, Passage, Result, Span, Writer};

/// The passages of a new document with their spans, by layer.
pub(crate) struct Cut(Vec<(Layer, Vec<CutPassage>)>);

#[derive(PartialEq, Eq)]
struct CutPassage {
    span: Span,
    tokens: u32,
    meta: Meta,
}

impl Cut {
    /// Places the passages of a new document in its text.
    ///
    /// # Errors
    /// [`Error::BadSpan`].
    pub(crate) fn of(new: &NewDocument<'_>) -> Result<Self> {
        let offsets = Offsets::new(new.text);
        let mut layers: Vec<(Layer, Vec<CutPassage>)> = Vec::new();
        for NewPassage { layer, bytes, tokens, meta } in new.passages {
            let span = offsets.span(bytes.clone()).ok_or_else(|| Error::BadSpan {
                document: new.path.to_owned(),
                start_byte: bytes.start,
                end_byte: bytes.end,
            })?;
            let passage = CutPassage { span, tokens: *tokens, meta: meta.clone() };
            match layers.iter_mut().find(|(known, _)| known == layer) {
                Some((_, passages)) => passages.push(passage),
                None => layers.push((*layer, vec![passage])),
            }
        }
        Ok(Self(layers))
    }
}

impl From<Passage> for CutPassage {
    fn from(passage: Passage) -> Self {
        Self { span: passage.span, tokens: passage.tokens, meta: passage.meta }
    }
}

impl Writer {
    /// Makes the layers of `cut` be as they are there; returns whether any was different.
    pub(crate) fn put_cut(&self, document: DocId, cut: &Cut) -> Result<bool> {
        let mut changed = false;
        for (layer, passages) in &cut.0 {
            let old: Vec<CutPassage> = self.passages_of(document, *layer)?.into_iter().map(CutPassage::from).collect();
            if old != *passages {
                self.database
                    .execute("DELETE FROM passage WHERE document = ? AND layer = ?", params![document, layer])?;
                self.insert_passages(document, *layer, passages)?;
                changed = true;
            }
        }
        Ok(changed)
    }

    fn insert_passages(&self, document: DocId, layer: Layer, passages: &[CutPassage]) -> Result<()> {
        for (ordinal, CutPassage { span, tokens, meta }) in (0_u32..).zip(passages) {
            self.database.insert(
                "INSERT INTO passage (
                     document, layer, ordinal, start_char, end_char, start_byte, end_byte, tokens, label, time, speaker
                 ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    document,
                    layer,
                    ordinal,
                    span.start_char,
                    span.end_char,
                    span.start_byte,
                    span.end_byte,
                    tokens,
                    meta.label,
                    meta.time,
                    meta.speaker
                ],
            )?;
        }
        Ok(())
    }
}
