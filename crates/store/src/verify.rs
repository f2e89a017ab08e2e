//! Verification of a corpus, and a digest to compare corpora.

use std::collections::HashMap;

use crate::digest::Framed;
use crate::text::Positions;
use crate::{Corpus, Digest, PassageId, Result};

impl Corpus {
    /// Reads and checks all data: `SQLite`'s own structures, references, texts and vectors against their digests, spans
    /// against their texts. Notes and derived texts have no digest, so a flipped bit in one is not detected.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) with the first problem found.
    pub fn verify(&self) -> Result<()> {
        self.verify_structure()?;
        for document in self.documents()? {
            let passages = self.passages_where("WHERE document = ?", [document.id])?;
            let mut positions = Positions::new(passages.iter().map(|passage| passage.span.bytes()));
            self.read_text(&document, |piece| positions.add(piece))?;
            for passage in passages {
                if positions.span(&passage.span.bytes()) != Some(passage.span) {
                    return Err(self.misplaced(&passage));
                }
            }
        }
        let embedded = "SELECT DISTINCT name, passage FROM vector JOIN embedder ON embedder.id = embedder";
        for (embedder, passage) in
            self.database.rows(embedded, [], |row| Ok((row.get::<_, String>(0)?, row.get(1)?)))?
        {
            self.vectors(&embedder, passage)?;
        }
        self.verify_derived()
    }

    fn verify_derived(&self) -> Result<()> {
        self.all_derived()?;
        let embedded = "SELECT DISTINCT name, kind FROM derived_vector
             JOIN embedder ON embedder.id = embedder JOIN derived ON derived.id = derived";
        for (embedder, kind) in
            self.database.rows(embedded, [], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?
        {
            self.derived_vectors(&kind, &embedder)?;
        }
        Ok(())
    }

    fn verify_structure(&self) -> Result<()> {
        let found =
            self.database.row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0))?.unwrap_or_default();
        if found != "ok" {
            return Err(self.database.damaged(found));
        }
        match self.database.row("PRAGMA foreign_key_check", [], |row| row.get::<_, String>(0))? {
            Some(table) => Err(self.database.damaged(format!("a {table} belongs to nothing"))),
            None => Ok(()),
        }
    }

    /// A digest of all documents, passages and notes in the order of their ids and of all derived texts by kind and
    /// key. It excludes ids, times and vectors, so it is equal for corpora with the same content in the same order.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn digest(&self) -> Result<Digest> {
        let mut digest = Framed::default();
        let mut paths = HashMap::new();
        for document in self.documents()? {
            digest.field(b"document").field(document.path.as_bytes()).field(&document.digest.0);
            paths.insert(document.id, document.path);
        }
        let mut places = HashMap::new();
        for (place, passage) in (0_u32..).zip(self.passages_where("ORDER BY id", [])?) {
            places.insert(passage.id, place);
            let path = paths.get(&passage.document).ok_or_else(|| self.misplaced(&passage))?;
            digest.field(b"passage").field(path.as_bytes()).field(passage.layer.as_str().as_bytes());
            digest
                .number(passage.ordinal)
                .number(passage.span.start_char)
                .number(passage.span.end_char)
                .number(passage.tokens);
            let meta = passage.meta;
            digest.optional(meta.label.as_deref()).optional(meta.time.as_deref()).optional(meta.speaker.as_deref());
            self.add_notes(passage.id, &mut digest)?;
        }
        self.add_derived(&places, &mut digest)?;
        Ok(digest.finish())
    }

    fn add_derived(&self, places: &HashMap<PassageId, u32>, digest: &mut Framed) -> Result<()> {
        for derived in self.all_derived()? {
            digest
                .field(b"derived")
                .field(derived.kind.as_bytes())
                .field(&derived.key.0)
                .field(derived.text.as_bytes());
            digest.field(derived.author.model.as_bytes()).field(derived.author.prompt.as_bytes());
            for source in &derived.sources {
                let place = places.get(source).ok_or_else(|| {
                    self.database.damaged(format!("a derived text has the source {source}, which is no passage"))
                })?;
                digest.number(*place);
            }
        }
        Ok(())
    }

    fn add_notes(&self, passage: PassageId, digest: &mut Framed) -> Result<()> {
        for note in self.notes(passage)? {
            digest.field(b"note").field(note.name.as_bytes()).field(note.text.as_bytes());
            digest.field(note.author.model.as_bytes()).field(note.author.prompt.as_bytes());
        }
        Ok(())
    }
}
