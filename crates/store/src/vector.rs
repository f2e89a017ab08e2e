//! Vectors: embeddings of passages. A passage longer than the embedder's window has several, one for each part.

use rusqlite::params;

use crate::digest::Framed;
use crate::{Corpus, Error, Layer, PassageId, Result, Span, VectorProblem, Writer};

/// The vector of a passage or of a part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The embedded span of the document; within the passage.
    pub span: Span,
    /// Of any length when stored, of length 1 when read.
    pub vector: Vec<f32>,
}

/// The location and digest of a stored vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VectorRef {
    pub(crate) passage: PassageId,
    pub(crate) part: u32,
    /// A digest of embedder, passage, part and numbers: equal keys mean equal vectors.
    pub(crate) key: u64,
}

impl Corpus {
    /// The unit vectors of an embedder for a passage, in the order of its parts.
    ///
    /// # Errors
    /// [`Error::Damaged`] when they differ from what was stored.
    pub fn vectors(&self, embedder: &str, passage: PassageId) -> Result<Vec<Part>> {
        let rows = self.database.rows(
            "SELECT part, key, start_char, end_char, start_byte, end_byte, data FROM vector
             WHERE passage = ? AND embedder = (SELECT id FROM embedder WHERE name = ?) ORDER BY part",
            params![passage, embedder],
            |row| {
                let span = Span {
                    start_char: row.get(2)?,
                    end_char: row.get(3)?,
                    start_byte: row.get(4)?,
                    end_byte: row.get(5)?,
                };
                Ok((row.get(0)?, row.get::<_, i64>(1)?, span, row.get::<_, Vec<u8>>(6)?))
            },
        )?;
        let part = |(part, stored_key, span, data): (u32, i64, Span, Vec<u8>)| {
            if key(embedder, passage, part, &data) != stored_key.cast_unsigned() {
                return Err(self.database.damaged(format!("a vector of passage {passage} is not what was put in")));
            }
            Ok(Part { span, vector: from_bytes(&data) })
        };
        rows.into_iter().map(part).collect()
    }

    /// The passages of a layer without a vector of an embedder, in the order of their ids.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn without_vectors(&self, layer: Layer, embedder: &str) -> Result<Vec<PassageId>> {
        self.database.rows(
            "SELECT id FROM passage WHERE layer = ? AND NOT EXISTS (
                 SELECT 1 FROM vector
                 WHERE passage = passage.id AND embedder = (SELECT id FROM embedder WHERE name = ?)
             ) ORDER BY id",
            params![layer, embedder],
            |row| row.get(0),
        )
    }

    /// All vectors of a layer, ordered by passage and part.
    pub(crate) fn vector_refs(&self, layer: Layer, embedder: &str) -> Result<Vec<VectorRef>> {
        self.database.rows(
            "SELECT passage.id, part, key FROM passage JOIN vector ON vector.passage = passage.id
             WHERE layer = ? AND embedder = (SELECT id FROM embedder WHERE name = ?) ORDER BY passage.id, part",
            params![layer, embedder],
            |row| Ok(VectorRef { passage: row.get(0)?, part: row.get(1)?, key: row.get::<_, i64>(2)?.cast_unsigned() }),
        )
    }
}

impl Writer {
    /// Stores an embedder's vectors of passages, all in one transaction; replaces its previous vectors of them. If
    /// passages are embedded both with and without notes, the embedder's name must include which.
    ///
    /// # Errors
    /// [`Error::BadVector`], [`Error::UnknownPassage`], [`Error::DiskFull`]; nothing is changed then.
    pub fn put_vectors(&mut self, embedder: &str, passages: &[(PassageId, Vec<Part>)]) -> Result<()> {
        self.database.transact(|| {
            for (passage, parts) in passages {
                self.put_parts(embedder, *passage, parts)?;
            }
            Ok(())
        })
    }

    fn put_parts(&self, embedder: &str, passage: PassageId, parts: &[Part]) -> Result<()> {
        let refused = |problem| Error::BadVector { embedder: embedder.to_owned(), problem };
        let whole = self.passage(passage)?.span;
        let dims = parts.first().ok_or_else(|| refused(VectorProblem::NoParts))?.vector.len();
        let (id, dims) = self.embedder(embedder, dims)?;
        self.database.execute("DELETE FROM vector WHERE passage = ? AND embedder = ?", params![passage, id])?;
        for (ordinal, Part { span, vector }) in (0_u32..).zip(parts) {
            if !whole.contains(*span) {
                return Err(refused(VectorProblem::OutsidePassage));
            }
            let data = to_bytes(&unit(vector, dims).map_err(refused)?);
            let key = key(embedder, passage, ordinal, &data).cast_signed();
            self.database.insert(
                "INSERT INTO vector (passage, embedder, part, key, start_char, end_char, start_byte, end_byte, data)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    passage,
                    id,
                    ordinal,
                    key,
                    span.start_char,
                    span.end_char,
                    span.start_byte,
                    span.end_byte,
                    data
                ],
            )?;
        }
        Ok(())
    }

    /// The id and dimensions of an embedder; a new embedder gets the dimensions of its first vector.
    pub(crate) fn embedder(&self, name: &str, dims: usize) -> Result<(i64, usize)> {
        let known = self.database.row("SELECT id, dims FROM embedder WHERE name = ?", [name], |row| {
            Ok((row.get(0)?, row.get::<_, u32>(1)? as usize))
        })?;
        #[allow(clippy::cast_possible_wrap)] // no slice is longer than i64::MAX
        let insert =
            || self.database.insert("INSERT INTO embedder (name, dims) VALUES (?, ?)", params![name, dims as i64]);
        match known {
            Some(known) => Ok(known),
            None => Ok((insert()?, dims)),
        }
    }
}

/// The vector scaled to length 1, so that inner products are cosines.
pub(crate) fn unit(vector: &[f32], dims: usize) -> std::result::Result<Vec<f32>, VectorProblem> {
    if vector.len() != dims {
        return Err(VectorProblem::Dimensions { expected: dims, found: vector.len() });
    }
    if !vector.iter().all(|number| number.is_finite()) {
        return Err(VectorProblem::NotFinite);
    }
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    if length == 0.0 {
        return Err(VectorProblem::Zero);
    }
    // The absolute value is at most 1.
    Ok(vector.iter().map(|number| (f64::from(*number) / length) as f32).collect())
}

/// The encoding of a vector in the database.
pub(crate) fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().copied().flat_map(f32::to_le_bytes).collect()
}

pub(crate) fn from_bytes(data: &[u8]) -> Vec<f32> {
    data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

pub(crate) fn key(embedder: &str, passage: PassageId, part: u32, data: &[u8]) -> u64 {
    Framed::default().field(embedder.as_bytes()).field(&passage.0.to_le_bytes()).number(part).field(data).finish_short()
}
