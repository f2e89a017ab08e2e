//! Repair of a damaged corpus: everything that can be read and is what was put in goes into a new file.
//!
//! A document is kept whole, text and passages, or lost. Its notes and vectors are kept one by one: those that are lost
//! are made again by the next preparation. Ids stay the same.

use std::fs::{self, File};
use std::path::Path;

use rusqlite::types::{FromSql, Value};
use rusqlite::{Row, params, params_from_iter};

use crate::database::{DATABASE_FILE, Database, beside};
use crate::derived::vector_key;
use crate::shared::changed_documents;
use crate::text::{self, Positions};
use crate::{Corpus, DerivedId, DocId, Document, Error, PassageId, Result, derived_files, private, vector};

/// The result of repairing a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repaired {
    /// It was not damaged, and was not changed.
    Sound,
    /// The copy of a shared corpus was fetched anew.
    Fetched {
        /// The paths of documents that were added, changed or removed here without PostgreSQL, and are now as it has them;
        /// `None` if that cannot be read.
        unsent: Option<Vec<String>>,
    },
    /// It is sound now, without this.
    Without(Loss),
}

/// What could not be saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The paths of lost documents, where they could be read.
    pub documents: Vec<String>,
    /// Lost notes, or passages whose notes could not be read.
    pub notes: usize,
    /// Lost vectors, or passages whose vectors could not be read.
    pub vectors: usize,
    /// Lost derived texts; those of lost documents are among them.
    pub derived: usize,
}

/// The file that a repair keeps.
const KEPT: &str = "memory.damaged.sqlite";

/// The names of the new file, and of files beside it, begin with this until it is complete.
const UNFINISHED: &str = "memory.repaired.";

/// Ids that are tried one by one; a larger last id is damaged.
const MOST_IDS: i64 = 1 << 24;

pub(crate) fn repair(damaged: &Corpus) -> Result<Repaired> {
    let mut loss = Loss::default();
    let fill = |new: &Database| {
        // Nothing relies on the new file before it is complete and closed, which writes everything to the disk.
        new.batch("PRAGMA synchronous = OFF;")?;
        Salvage { damaged, new, loss: &mut loss }.run()?;
        new.batch("PRAGMA synchronous = FULL;")
    };
    rebuild(damaged, fill, |_| Ok(()))?;
    Ok(Repaired::Without(loss))
}

/// Puts what `fetch` copies from PostgreSQL in the place of a damaged copy.
pub(crate) fn fetch(damaged: &Corpus, fetch: impl FnOnce(&Database) -> Result<()>) -> Result<Repaired> {
    let unsent = rebuild(damaged, fetch, |new| {
        let there = |known: &[Document], new: &[Document]| known.iter().all(|document| new.contains(document));
        if !damaged.documents().is_ok_and(|known| new.documents().is_ok_and(|new| there(&known, &new))) {
            derived_files::delete_made(damaged.folder())?;
        }
        Ok(unsent(damaged, new).ok())
    })?;
    Ok(Repaired::Fetched { unsent })
}

/// The paths of the documents with unsent changes in a damaged copy, which differ in the new one.
fn unsent(damaged: &Corpus, new: &Corpus) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for id in changed_documents(&damaged.database)? {
        match (damaged.document(id), new.document(id)) {
            (Ok(here), Ok(there)) if here == there => {}
            (Err(Error::UnknownDocument(_)), Err(Error::UnknownDocument(_))) => {}
            (Ok(document), _) | (Err(_), Ok(document)) => paths.push(document.path),
            (Err(error), Err(_)) => return Err(error),
        }
    }
    Ok(paths)
}

/// Puts a new file in the place of the damaged one, once it is sound and was compared with it.
fn rebuild<T>(
    damaged: &Corpus,
    fill: impl FnOnce(&Database) -> Result<()>,
    compare: impl FnOnce(&Corpus) -> Result<T>,
) -> Result<T> {
    let (name, folder) = (damaged.name().clone(), damaged.folder().to_path_buf());
    let (place, aside) = (folder.join(DATABASE_FILE), folder.join(format!("{UNFINISHED}sqlite")));
    // Those of a repair that was killed.
    derived_files::delete_named(&folder, UNFINISHED)?;
    drop(Database::create(&aside, fill)?);
    let new = Corpus::new(name, folder, Database::open_to_read(&aside)?, None, None)?;
    new.verify()?;
    let compared = compare(&new)?;
    drop(new);
    replace(&place, &aside).map_err(|source| Error::io(&place, source))?;
    Ok(compared)
}

/// Puts the new file in the place of the damaged one, which is kept with its log.
fn replace(place: &Path, new: &Path) -> std::io::Result<()> {
    let kept = place.with_file_name(KEPT);
    for suffix in ["", "-wal"] {
        let (old, kept) = (beside(place, suffix), beside(&kept, suffix));
        if old.exists() {
            fs::copy(old, &kept)?;
            File::open(&kept)?.sync_all()?;
        } else if kept.exists() {
            // The log of a file that an earlier repair has kept.
            fs::remove_file(&kept)?;
        }
    }
    private::sync_name(&kept)?;
    // A log must never be found beside another database.
    for suffix in ["-wal", "-shm"] {
        let log = beside(place, suffix);
        if log.exists() {
            fs::remove_file(log)?;
        }
    }
    private::sync_name(place)?;
    fs::rename(new, place)?;
    private::sync_name(place)
}

struct Salvage<'a> {
    damaged: &'a Corpus,
    new: &'a Database,
    loss: &'a mut Loss,
}

impl Salvage<'_> {
    fn run(&mut self) -> Result<()> {
        let old = &self.damaged.database;
        for embedder in all(old, "SELECT * FROM embedder").unwrap_or_default() {
            self.put("embedder", &embedder)?;
        }
        for id in self.ids("document")? {
            self.document(DocId(id))?;
        }
        for id in self.ids("derived")? {
            let kept = self.unless_failed(self.new.transact(|| self.derived(DerivedId(id))))?;
            self.loss.derived += usize::from(!matches!(kept, Ok(true)));
        }
        self.last_ids()
    }

    /// Saves the last ids that were assigned, also of tables of which no row was saved: ids are never reused.
    fn last_ids(&self) -> Result<()> {
        let raise = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
        let insert = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)";
        for row in all(&self.damaged.database, "SELECT name, seq FROM sqlite_sequence").unwrap_or_default() {
            if self.new.execute(raise, params_from_iter(&row))? == 0 {
                self.new.execute(insert, params_from_iter(&row))?;
            }
        }
        Ok(())
    }

    /// The ids of a table's rows. Where the table cannot be read through, those in the index of its unique columns, which
    /// has pages of its own; where that cannot either, all ids that were ever assigned.
    fn ids(&self, table: &str) -> Result<Box<dyn Iterator<Item = i64>>> {
        let old = &self.damaged.database;
        for source in ["NOT INDEXED".to_owned(), format!("INDEXED BY sqlite_autoindex_{table}_1")] {
            if let Ok(ids) = old.rows(&format!("SELECT id FROM {table} {source} ORDER BY id"), [], |row| row.get(0)) {
                return Ok(Box::new(ids.into_iter()));
            }
        }
        let last = old.row("SELECT seq FROM sqlite_sequence WHERE name = ?", [table], |row| row.get::<_, i64>(0))?;
        match last.unwrap_or_default() {
            last if last > MOST_IDS => Err(old.damaged(format!("the table {table} and its last id {last}"))),
            last => Ok(Box::new(1..=last)),
        }
    }

    /// Saves a document, or counts it as lost.
    fn document(&mut self, id: DocId) -> Result<()> {
        let known = self.damaged.document(id);
        if matches!(known, Err(Error::UnknownDocument(_))) {
            return Ok(());
        }
        let saved = known.and_then(|document| {
            self.new.transact(|| {
                let row = params![
                    id,
                    document.path,
                    document.kind,
                    document.title,
                    document.digest.0,
                    document.created_seconds
                ];
                self.new.insert(
                    "INSERT INTO document (id, path, kind, title, digest, created) VALUES (?, ?, ?, ?, ?, ?)",
                    row,
                )?;
                text::store(self.new, id, self.damaged.text_pieces(id).map(|piece| Ok(piece?.into())))?;
                let passages = self.damaged.passages_where("WHERE document = ?", [id])?;
                let mut positions = Positions::new(passages.iter().map(|passage| passage.span.bytes()));
                self.damaged.read_text(&document, |piece| positions.add(piece))?;
                if let Some(passage) = passages.iter().find(|at| positions.span(&at.span.bytes()) != Some(at.span)) {
                    return Err(self.damaged.misplaced(passage));
                }
                for row in all(&self.damaged.database, &format!("SELECT * FROM passage WHERE document = {id}"))? {
                    self.put("passage", &row)?;
                }
                Ok(passages)
            })
        });
        if let Ok(passages) = self.unless_failed(saved)? {
            return passages.iter().try_for_each(|passage| self.passage(passage.id));
        }
        let path = self.damaged.database.row("SELECT path FROM document WHERE id = ?", [id], |row| row.get(0));
        let unnamed = || format!("document {id}");
        self.loss.documents.push(path.ok().flatten().unwrap_or_else(unnamed));
        Ok(())
    }

    /// Saves what was made of a passage.
    fn passage(&mut self, id: PassageId) -> Result<()> {
        let old = &self.damaged.database;
        match all(old, &format!("SELECT * FROM note WHERE passage = {id}")) {
            Ok(notes) => notes.iter().try_for_each(|note| self.put("note", note))?,
            Err(_) => self.loss.notes += 1,
        }
        let vectors =
            "SELECT name, passage, part, key, data, vector.* FROM vector LEFT JOIN embedder ON embedder.id = embedder
             WHERE passage = ? ORDER BY embedder, part";
        let read = |row: &Row<'_>| {
            let (embedder, data): (Option<String>, Vec<u8>) = (row.get(0)?, row.get(4)?);
            let is_whole = embedder.is_some_and(|embedder| {
                let (part, stored) = (row.get(2).unwrap_or_default(), row.get::<_, i64>(3).unwrap_or_default());
                vector::key(&embedder, id, part, &data) == stored.cast_unsigned()
            });
            Ok((is_whole, columns(row, 5)?))
        };
        match old.rows(vectors, [id], read) {
            // A passage has all its parts or none.
            Ok(rows) if rows.iter().all(|(is_whole, _)| *is_whole) => {
                rows.iter().try_for_each(|(_, row)| self.put("vector", row))
            }
            _ => {
                self.loss.vectors += 1;
                Ok(())
            }
        }
    }

    /// Saves a derived text, if its sources were saved; returns whether it was.
    fn derived(&self, id: DerivedId) -> Result<bool> {
        let old = &self.damaged.database;
        let Some(row) = all(old, &format!("SELECT * FROM derived WHERE id = {id}"))?.pop() else { return Ok(true) };
        let sources = all(old, &format!("SELECT * FROM derived_source WHERE derived = {id}"))?;
        let saved = |source: &&Vec<Value>| -> Result<bool> {
            Ok(self.new.row("SELECT 1 FROM passage WHERE id = ?", [&source[1]], |_| Ok(()))?.is_some())
        };
        let kept: Vec<&Vec<Value>> = sources
            .iter()
            .filter_map(|row| saved(&row).map(|saved| saved.then_some(row)).transpose())
            .collect::<Result<_>>()?;
        let bound_to_all = row.get(4) == Some(&Value::Text("all".to_owned()));
        if kept.is_empty() || (bound_to_all && kept.len() < sources.len()) {
            return Ok(false);
        }
        self.put("derived", &row)?;
        kept.into_iter().try_for_each(|source| self.put("derived_source", source))?;
        let vectors =
            "SELECT name, key, data, derived_vector.* FROM derived_vector JOIN embedder ON embedder.id = embedder
             WHERE derived = ?";
        let read = |row: &Row<'_>| {
            let (embedder, key, data): (String, i64, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok((vector_key(&embedder, id, &data) == key.cast_unsigned(), columns(row, 3)?))
        };
        // A lost vector is made again.
        let vectors = old.rows(vectors, [id], read).unwrap_or_default();
        vectors.iter().filter(|(is_whole, _)| *is_whole).try_for_each(|(_, row)| self.put("derived_vector", row))?;
        Ok(true)
    }

    /// Fails if an attempt failed because of the new file, such as on a full disk: nothing is lost then.
    fn unless_failed<T>(&self, attempt: Result<T>) -> Result<Result<T>> {
        match attempt {
            Err(error) if error.path() == Some(self.new.path()) => Err(error),
            attempt => Ok(attempt),
        }
    }

    fn put(&self, table: &str, row: &[Value]) -> Result<()> {
        let places = vec!["?"; row.len()].join(", ");
        self.new.insert(&format!("INSERT INTO {table} VALUES ({places})"), params_from_iter(row)).map(drop)
    }
}

/// All columns of rows.
fn all(database: &Database, sql: &str) -> Result<Vec<Vec<Value>>> {
    database.rows(sql, [], |row| columns(row, 0))
}

/// The columns of a row from the `first` on. A text that is not UTF-8 is an error.
fn columns(row: &Row<'_>, first: usize) -> rusqlite::Result<Vec<Value>> {
    (first..row.as_ref().column_count()).map(|column| Ok(Value::column_result(row.get_ref(column)?)?)).collect()
}
