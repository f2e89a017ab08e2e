//! Derived texts: texts made from several passages, such as summaries, entities and facts. Each records its source
//! passages and is deleted with them, so that no text derived from a removed document is left.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Params, Row, params};

use crate::digest::Framed;
use crate::vector::{from_bytes, to_bytes, unit};
use crate::{Author, Corpus, DerivedId, Digest, Error, PassageId, Result, Writer};

/// A text that was made from several passages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    pub id: DerivedId,
    /// Its type, such as "comorag.summary/1".
    pub kind: String,
    /// A digest of its inputs; unique within a kind.
    pub key: Digest,
    pub text: String,
    pub author: Author,
    /// The passages from which it is derived, in the order of their ids.
    pub sources: Vec<PassageId>,
}

/// A derived text to store.
#[derive(Clone, Copy, Debug)]
pub struct NewDerived<'a> {
    pub kind: &'a str,
    /// A digest of its inputs.
    pub key: Digest,
    pub text: &'a str,
    /// The passages from which it is derived: at least one.
    pub sources: &'a [PassageId],
    pub bond: Bond,
    pub author: &'a Author,
}

/// When a derived text is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// As soon as one of its sources is deleted: a summary.
    All,
    /// When the last of its sources is deleted: an entity that several passages name.
    Any,
}

/// One row for each source.
const COLUMNS: &str = "
SELECT id, kind, key, text, model, prompt, passage FROM derived LEFT JOIN derived_source ON derived = id";

impl Corpus {
    /// All derived texts of a kind in the order of their ids.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn derived(&self, kind: &str) -> Result<Vec<Derived>> {
        self.derived_where("WHERE kind = ? ORDER BY id", [kind])
    }

    /// The derived text of a kind with the given input digest, if it exists.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn derived_at(&self, kind: &str, key: &Digest) -> Result<Option<Derived>> {
        Ok(self.derived_where("WHERE kind = ? AND key = ? ORDER BY id", params![kind, key.0])?.pop())
    }

    /// All derived texts of all kinds, by kind and key.
    pub(crate) fn all_derived(&self) -> Result<Vec<Derived>> {
        self.derived_where("ORDER BY kind, key", [])
    }

    fn derived_where(&self, clause: &str, params: impl Params) -> Result<Vec<Derived>> {
        let rows = self.database.rows(&format!("{COLUMNS} {clause}, passage"), params, |row| {
            Ok((read(row)?, row.get::<_, Option<PassageId>>(6)?))
        })?;
        let mut found: Vec<Derived> = Vec::new();
        for (derived, source) in rows {
            let source =
                source.ok_or_else(|| self.database.damaged(format!("derived text {} rests on nothing", derived.id)))?;
            match found.last_mut() {
                Some(last) if last.id == derived.id => last.sources.push(source),
                _ => found.push(Derived { sources: vec![source], ..derived }),
            }
        }
        Ok(found)
    }

    /// The derived texts of a kind without a vector of an embedder, in the order of their ids.
    ///
    /// # Errors
    /// Errors of reading the database.
    pub fn derived_without_vectors(&self, kind: &str, embedder: &str) -> Result<Vec<DerivedId>> {
        self.database.rows(
            "SELECT id FROM derived WHERE kind = ? AND NOT EXISTS (
                 SELECT 1 FROM derived_vector
                 WHERE derived = derived.id AND embedder = (SELECT id FROM embedder WHERE name = ?)
             ) ORDER BY id",
            params![kind, embedder],
            |row| row.get(0),
        )
    }

    /// The unit vectors of an embedder for the derived texts of a kind, in the order of their ids.
    ///
    /// # Errors
    /// [`Error::Damaged`] when one differs from what was stored.
    pub fn derived_vectors(&self, kind: &str, embedder: &str) -> Result<Vec<(DerivedId, Vec<f32>)>> {
        let rows = self.database.rows(
            "SELECT derived.id, derived_vector.key, data FROM derived JOIN derived_vector ON derived = derived.id
             WHERE kind = ? AND embedder = (SELECT id FROM embedder WHERE name = ?) ORDER BY derived.id",
            params![kind, embedder],
            |row| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?)),
        )?;
        let checked = |(id, stored_key, data): (DerivedId, i64, Vec<u8>)| {
            if vector_key(embedder, id, &data) != stored_key.cast_unsigned() {
                return Err(self.database.damaged(format!("the vector of derived text {id} is not what was put in")));
            }
            Ok((id, from_bytes(&data)))
        };
        rows.into_iter().map(checked).collect()
    }
}

impl Writer {
    /// Stores derived texts, all in one transaction, and returns their ids. An existing text of the same kind and key
    /// is kept and gets the new sources too.
    ///
    /// # Errors
    /// [`Error::NoSource`], [`Error::UnknownPassage`], [`Error::DiskFull`]; nothing is changed then.
    pub fn put_derived(&mut self, items: &[NewDerived<'_>]) -> Result<Vec<DerivedId>> {
        self.database.transact(|| items.iter().map(|item| self.put_one(item)).collect())
    }

    fn put_one(&self, item: &NewDerived<'_>) -> Result<DerivedId> {
        if item.sources.is_empty() {
            return Err(Error::NoSource { kind: item.kind.to_owned() });
        }
        let known = self.database.row(
            "SELECT id FROM derived WHERE kind = ? AND key = ?",
            params![item.kind, item.key.0],
            |row| row.get(0),
        )?;
        let id = match known {
            Some(id) => id,
            None => DerivedId(self.database.insert(
                "INSERT INTO derived (kind, key, text, bond, model, prompt) VALUES (?, ?, ?, ?, ?, ?)",
                params![item.kind, item.key.0, item.text, item.bond, item.author.model, item.author.prompt],
            )?),
        };
        for passage in item.sources {
            self.passage(*passage)?;
            self.database.execute(
                "INSERT OR IGNORE INTO derived_source (derived, passage) VALUES (?, ?)",
                params![id, passage],
            )?;
        }
        Ok(id)
    }

    /// Stores an embedder's vectors of derived texts, all in one transaction; replaces its previous vectors of them.
    ///
    /// # Errors
    /// [`Error::BadVector`], [`Error::UnknownDerived`], [`Error::DiskFull`]; nothing is changed then.
    pub fn put_derived_vectors(&mut self, embedder: &str, vectors: &[(DerivedId, Vec<f32>)]) -> Result<()> {
        self.database.transact(|| {
            for (id, vector) in vectors {
                let known = self.database.row("SELECT 1 FROM derived WHERE id = ?", [id], |_| Ok(()))?;
                known.ok_or(Error::UnknownDerived(*id))?;
                let (number, dims) = self.embedder(embedder, vector.len())?;
                let refused = |problem| Error::BadVector { embedder: embedder.to_owned(), problem };
                let data = to_bytes(&unit(vector, dims).map_err(refused)?);
                let key = vector_key(embedder, *id, &data).cast_signed();
                self.database.execute(
                    "INSERT OR REPLACE INTO derived_vector (derived, embedder, key, data) VALUES (?, ?, ?, ?)",
                    params![id, number, key, data],
                )?;
            }
            Ok(())
        })
    }

    /// Deletes derived texts and their vectors, all in one transaction; unknown ids are skipped.
    ///
    /// # Errors
    /// Errors of writing the database.
    pub fn remove_derived(&mut self, ids: &[DerivedId]) -> Result<()> {
        self.database.transact(|| {
            for id in ids {
                self.database.execute("DELETE FROM derived WHERE id = ?", [id])?;
            }
            Ok(())
        })
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<Derived> {
    Ok(Derived {
        id: row.get(0)?,
        kind: row.get(1)?,
        key: Digest(row.get(2)?),
        text: row.get(3)?,
        author: Author { model: row.get(4)?, prompt: row.get(5)? },
        sources: Vec::new(),
    })
}

pub(crate) fn vector_key(embedder: &str, id: DerivedId, data: &[u8]) -> u64 {
    Framed::default().field(b"derived").field(embedder.as_bytes()).field(&id.0.to_le_bytes()).field(data).finish_short()
}

impl Bond {
    fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Any => "any",
        }
    }
}

impl ToSql for Bond {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.as_str().to_sql()
    }
}

impl FromSql for Bond {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let name = value.as_str()?;
        [Self::All, Self::Any].into_iter().find(|bond| bond.as_str() == name).ok_or(FromSqlError::InvalidType)
    }
}
