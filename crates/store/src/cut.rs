//! A cut: the passages into which a document is divided, by layer. A layer whose cut is unchanged keeps all data that
//! was derived from its passages.

use rusqlite::params;

use crate::text::Positions;
use crate::{DocId, Error, Layer, Meta, NewPassage, Passage, Result, Span, Writer};

/// Passages of a document with their spans, by layer.
pub(crate) struct Cut(Vec<(Layer, Vec<CutPassage>)>);

#[derive(PartialEq, Eq)]
struct CutPassage {
    span: Span,
    tokens: u32,
    meta: Meta,
}

impl Cut {
    /// Resolves the passages of the document at `path` to spans of its text.
    ///
    /// # Errors
    /// [`Error::BadSpan`].
    pub(crate) fn of(path: &str, positions: &Positions, passages: &[NewPassage]) -> Result<Self> {
        let mut layers: Vec<(Layer, Vec<CutPassage>)> = Vec::new();
        for passage in passages {
            let placed = CutPassage::of(path, positions, passage)?;
            match layers.iter_mut().find(|(known, _)| *known == passage.layer) {
                Some((_, passages)) => passages.push(placed),
                None => layers.push((passage.layer, vec![placed])),
            }
        }
        Ok(Self(layers))
    }
}

impl CutPassage {
    fn of(path: &str, positions: &Positions, passage: &NewPassage) -> Result<Self> {
        let NewPassage { bytes, tokens, meta, .. } = passage;
        let span = positions.span(bytes).ok_or_else(|| Error::BadSpan {
            document: path.to_owned(),
            start_byte: bytes.start,
            end_byte: bytes.end,
        })?;
        Ok(Self { span, tokens: *tokens, meta: meta.clone() })
    }
}

impl From<Passage> for CutPassage {
    fn from(passage: Passage) -> Self {
        Self { span: passage.span, tokens: passage.tokens, meta: passage.meta }
    }
}

impl Writer {
    /// Adds a layer to a stored document in one transaction: `passages` become its `layer`. A layer with a different
    /// cut is deleted with all data derived from it; a layer with the same cut is left unchanged.
    ///
    /// # Errors
    /// [`Error::UnknownDocument`], [`Error::BadSpan`], [`Error::DiskFull`]; nothing has changed then.
    pub fn put_layer(&mut self, document: DocId, layer: Layer, passages: &[NewPassage]) -> Result<()> {
        let known = self.document(document)?;
        let mut positions = Positions::new(passages.iter().map(|passage| passage.bytes.clone()));
        self.read_text(&known, |piece| positions.add(piece))?;
        let place = |passage| CutPassage::of(&known.path, &positions, passage);
        let cut = Cut(vec![(layer, passages.iter().map(place).collect::<Result<_>>()?)]);
        self.database.transact(|| self.put_cut(document, &cut)).map(|_changed| ())
    }

    /// Makes the stored layers equal to those of `cut`; returns whether any differed.
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
