//! The copy of a shared corpus: a corpus file that records which corpus it is a copy of, the last change it has, and
//! which of its rows have changed since.
//!
//! Triggers record the keys of changed rows, regardless of which code changes them. A change is sent row by row with
//! the values as SQLite stores them, so a receiving copy has identical rows, ids included.

use std::collections::BTreeSet;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Row, params, params_from_iter};

use crate::database::Database;
use crate::digest::Framed;
use crate::version::CHUNKED;
use crate::{Digest, DocId, Error, Result, text};

/// The corpus and change of which a file is a copy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Copy {
    pub id: String,
    /// The number of the last change that it has.
    pub version: i64,
    /// Over all changes up to that one.
    pub digest: Digest,
}

/// The change of one row.
pub(crate) struct RowChange {
    pub table: &'static str,
    /// The key columns of the row.
    pub key: Vec<u8>,
    /// All columns of the row; none if it was deleted.
    pub row: Option<Vec<u8>>,
}

/// A table and its key columns: three at most.
struct Table(&'static str, &'static [&'static str]);

const TEXTS: Table = Table("document_text", &["document", "start_byte"]);

/// All tables of schema.rs. A table added there must be added here, with an upgrade for copies that lack its triggers.
const TABLES: [Table; 9] = [
    Table("document", &["id"]),
    TEXTS,
    Table("passage", &["id"]),
    Table("note", &["passage", "name"]),
    Table("embedder", &["id"]),
    Table("vector", &["passage", "embedder", "part"]),
    Table("derived", &["id"]),
    Table("derived_source", &["derived", "passage"]),
    Table("derived_vector", &["derived", "embedder"]),
];
/// The last ids that were assigned. The table can have no triggers and is sent with every change.
const LAST_IDS: Table = Table("sqlite_sequence", &["name"]);
/// The column of a document's text up to version 2.
const WHOLE_TEXT: usize = 4;
/// Columns of `changed` after the table's name.
const KEY_COLUMNS: usize = 3;

const BOOKS: &str = "
DROP TABLE IF EXISTS copy;
DROP TABLE IF EXISTS changed;
CREATE TABLE copy (id TEXT NOT NULL, version INTEGER NOT NULL, digest BLOB NOT NULL) STRICT;
CREATE TABLE changed (tab TEXT NOT NULL, a ANY, b ANY, c ANY) STRICT;
";

impl Copy {
    /// The state of a copy before its corpus has any change.
    pub(crate) fn first(id: String) -> Copy {
        let digest = Digest::of(&["memlocal corpus", &id]);
        Copy { id, version: 0, digest }
    }

    /// The copy state of a file, if the file is a copy.
    pub(crate) fn of(database: &Database) -> Result<Option<Copy>> {
        if database.number("SELECT count(*) FROM sqlite_schema WHERE name = 'copy'")? == 0 {
            return Ok(None);
        }
        database.row("SELECT id, version, digest FROM copy", [], |row| {
            Ok(Copy { id: row.get(0)?, version: row.get(1)?, digest: Digest(row.get(2)?) })
        })
    }

    /// Makes a file a copy, with all of its rows recorded as changed.
    pub(crate) fn install(&self, database: &Database) -> Result<()> {
        database.transact(|| {
            database.batch(BOOKS)?;
            for table in &TABLES {
                database.batch(&table.triggers())?;
                database.batch(&format!(
                    "INSERT INTO changed SELECT '{}', {} FROM {}",
                    table.0,
                    table.key_of("", "NULL"),
                    table.0
                ))?;
            }
            let insert = "INSERT INTO copy (id, version, digest) VALUES (?, ?, ?)";
            database.insert(insert, params![self.id, self.version, self.digest.0]).map(drop)
        })
    }

    /// Records the last change of a file; the file then has no changes of its own.
    pub(crate) fn settle(&self, database: &Database) -> Result<()> {
        database.execute("DELETE FROM changed", [])?;
        let update = "UPDATE copy SET version = ?, digest = ?";
        database.execute(update, params![self.version, self.digest.0]).map(drop)
    }

    /// The state after one more change, whose rows are passed to `each`.
    pub(crate) fn with_changes(
        &self,
        database: &Database,
        mut each: impl FnMut(RowChange) -> Result<()>,
    ) -> Result<Copy> {
        let mut digest = Framed::default();
        digest.field(&self.digest.0);
        each_change(database, |change| {
            digest.field(change.table.as_bytes()).field(&change.key);
            match &change.row {
                Some(row) => digest.field(b"row").field(row),
                None => digest.field(b"gone"),
            };
            each(change)
        })?;
        Ok(Copy { id: self.id.clone(), version: self.version + 1, digest: digest.finish() })
    }
}

/// Whether the copy has row changes that have not been sent.
pub(crate) fn has_changes(database: &Database) -> Result<bool> {
    Ok(database.number("SELECT EXISTS (SELECT 1 FROM changed)")? == 1)
}

/// The documents whose rows have changes that have not been sent.
pub(crate) fn changed_documents(database: &Database) -> Result<Vec<DocId>> {
    // `renew_documents` has recorded a document 0.
    let changed = "SELECT DISTINCT a FROM changed WHERE tab = 'document' AND a > 0 ORDER BY a";
    database.rows(changed, [], |row| row.get(0))
}

/// Whether [`crate::Counts`] may have changed.
pub(crate) fn counts_change(database: &Database) -> Result<bool> {
    let counted = "SELECT EXISTS (SELECT 1 FROM changed WHERE tab IN ('document', 'passage', 'note'))";
    Ok(database.number(counted)? == 1)
}

/// Records the changes of the table of texts, which an upgraded file has just received, if the file is a copy. Its rows
/// are not recorded: those that PostgreSQL has are the same texts.
pub(crate) fn watch_texts(database: &Database) -> Result<()> {
    if Copy::of(database)?.is_some() { database.batch(&TEXTS.triggers()) } else { Ok(()) }
}

/// Makes a copy a corpus of its own.
pub(crate) fn forget_sharing(database: &Database) -> Result<()> {
    let triggers = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'copy@_%' ESCAPE '@'";
    database.transact(|| {
        for trigger in database.rows(triggers, [], |row| row.get::<_, String>(0))? {
            database.batch(&format!("DROP TRIGGER {trigger}"))?;
        }
        database.batch("DROP TABLE IF EXISTS copy; DROP TABLE IF EXISTS changed;")
    })
}

/// Records all documents as changed, so that PostgreSQL receives them in the tables of this version. The document 0,
/// which no corpus has, makes this a change even of an empty corpus.
pub(crate) fn renew_documents(database: &Database) -> Result<()> {
    database.batch(
        "INSERT INTO changed SELECT 'document', id, NULL, NULL FROM document;
         INSERT INTO changed SELECT 'document_text', document, start_byte, NULL FROM document_text;
         INSERT INTO changed VALUES ('document', 0, NULL, NULL);",
    )
}

fn each_change(database: &Database, mut each: impl FnMut(RowChange) -> Result<()>) -> Result<()> {
    let tables = TABLES.iter().filter(|table| database.has_chunks() || table.0 != TEXTS.0);
    for table in tables {
        let Table(name, key) = table;
        let same: Vec<String> = key
            .iter()
            .zip(["a", "b", "c"])
            .map(|(column, place)| format!("{name}.{column} = changed.{place}"))
            .collect();
        let changes = format!(
            "SELECT changed.*, {name}.* FROM (SELECT DISTINCT a, b, c FROM changed WHERE tab = '{name}') AS changed
             LEFT JOIN {name} ON {} ORDER BY a, b, c",
            same.join(" AND ")
        );
        database.each(&changes, [], |row| table.change(row), &mut each)?;
    }
    let last_ids = "SELECT name, NULL, NULL, name, seq FROM sqlite_sequence ORDER BY name";
    database.each(last_ids, [], |row| LAST_IDS.change(row), each)
}

impl Table {
    /// The key columns of a row, each prefixed with `prefix`, padded with `missing` to `KEY_COLUMNS`.
    fn key_of(&self, prefix: &str, missing: &str) -> String {
        let columns = self.1.iter().map(|column| format!("{prefix}{column}"));
        columns.chain(std::iter::repeat(missing.to_owned())).take(KEY_COLUMNS).collect::<Vec<_>>().join(", ")
    }

    fn triggers(&self) -> String {
        let Table(name, _) = self;
        let note = |row: &str| format!("INSERT INTO changed VALUES ('{name}', {});", self.key_of(row, "NULL"));
        let on = |event: &str, notes: &str| {
            let trigger = format!("copy_{name}_{event}");
            format!(
                "DROP TRIGGER IF EXISTS {trigger}; CREATE TRIGGER {trigger} AFTER {event} ON {name} BEGIN {notes} END;"
            )
        };
        let (old, new) = (note("OLD."), note("NEW."));
        [on("insert", &new), on("delete", &old), on("update", &format!("{old} {new}"))].concat()
    }

    fn change(&self, row: &Row<'_>) -> rusqlite::Result<RowChange> {
        let columns = row.as_ref().column_count();
        // The first column of every table belongs to its key.
        let is_there = row.get_ref(KEY_COLUMNS)? != ValueRef::Null;
        Ok(RowChange {
            table: self.0,
            key: encode(row, 0..self.1.len())?,
            row: is_there.then(|| encode(row, KEY_COLUMNS..columns)).transpose()?,
        })
    }

    fn named(name: &str) -> Option<&'static Table> {
        TABLES.iter().chain([&LAST_IDS]).find(|table| table.0 == name)
    }
}

/// Applies changes from PostgreSQL to a copy.
pub(crate) struct Intake<'a> {
    database: &'a Database,
    /// Whether PostgreSQL has the texts in the rows of documents, as up to version 2.
    whole_texts: bool,
    /// Tables from which rows were deleted.
    pub bereft: BTreeSet<&'static str>,
}

impl<'a> Intake<'a> {
    /// `schema` is the version of the rows.
    pub(crate) fn new(database: &'a Database, schema: i64) -> Intake<'a> {
        Intake { database, whole_texts: schema < CHUNKED, bereft: BTreeSet::new() }
    }

    /// Deletes a row that was changed or deleted.
    pub(crate) fn forget(&mut self, table: &str, key: &[u8]) -> Result<()> {
        let Table(name, columns) = self.table(table)?;
        let same: Vec<String> = columns.iter().map(|column| format!("{column} = ?")).collect();
        let delete = format!("DELETE FROM {name} WHERE {}", same.join(" AND "));
        if self.database.execute(&delete, params_from_iter(self.decoded(key)?))? > 0 {
            self.bereft.insert(name);
        }
        Ok(())
    }

    /// Inserts a row in its current state.
    pub(crate) fn take(&self, table: &str, row: &[u8]) -> Result<()> {
        let (Table(name, _), mut row) = (self.table(table)?, self.decoded(row)?);
        if self.whole_texts && *name == "document" {
            self.take_text(&mut row)?;
        }
        if *name == LAST_IDS.0 {
            // SQLite created its own row when rows were inserted.
            self.database.execute("DELETE FROM sqlite_sequence WHERE name = ?", [row.first()])?;
        }
        let places = vec!["?"; row.len()].join(", ");
        self.database.execute(&format!("INSERT INTO {name} VALUES ({places})"), params_from_iter(row)).map(drop)
    }

    /// Stores the text in the row of a document, and takes it out of the row.
    fn take_text(&self, row: &mut Vec<Value>) -> Result<()> {
        let text = (row.len() > WHOLE_TEXT).then(|| row.remove(WHOLE_TEXT));
        match (row.first(), text) {
            (Some(Value::Integer(id)), Some(Value::Text(text))) => {
                text::store(self.database, DocId(*id), std::iter::once(Ok(text.into())))
            }
            _ => Err(self.strange("a document has no text")),
        }
    }

    /// Deletes the texts of deleted documents: up to version 2 they were in the rows of documents.
    pub(crate) fn finish(&self) -> Result<()> {
        if self.bereft.contains("document") {
            let orphans = "DELETE FROM document_text WHERE document NOT IN (SELECT id FROM document)";
            self.database.execute(orphans, [])?;
        }
        Ok(())
    }

    fn table(&self, name: &str) -> Result<&'static Table> {
        Table::named(name).ok_or_else(|| self.strange(&format!("there is no table `{name}`")))
    }

    fn decoded(&self, bytes: &[u8]) -> Result<Vec<Value>> {
        decode(bytes).ok_or_else(|| self.strange("a row is not one"))
    }

    fn strange(&self, what: &str) -> Error {
        self.database.damaged(format!("what PostgreSQL holds of it is no corpus: {what}"))
    }
}

/// Encodes columns: a letter for the type of each, then a number, or a length and bytes.
fn encode(row: &Row<'_>, columns: std::ops::Range<usize>) -> rusqlite::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for column in columns {
        let mut put = |kind: u8, number: [u8; 8], rest: &[u8]| {
            bytes.push(kind);
            bytes.extend(number);
            bytes.extend(rest);
        };
        match row.get_ref(column)? {
            ValueRef::Null => bytes.push(b'n'),
            ValueRef::Integer(number) => put(b'i', number.to_le_bytes(), &[]),
            ValueRef::Real(number) => put(b'r', number.to_le_bytes(), &[]),
            ValueRef::Text(text) => put(b't', (text.len() as u64).to_le_bytes(), text),
            ValueRef::Blob(blob) => put(b'b', (blob.len() as u64).to_le_bytes(), blob),
        }
    }
    Ok(bytes)
}

fn decode(mut bytes: &[u8]) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        if *kind == b'n' {
            values.push(Value::Null);
            bytes = rest;
            continue;
        }
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*number)).ok();
        let (value, rest) = match kind {
            b'i' => (Value::Integer(i64::from_le_bytes(*number)), rest),
            b'r' => (Value::Real(f64::from_le_bytes(*number)), rest),
            b't' => {
                let (text, rest) = rest.split_at_checked(length?)?;
                (Value::Text(String::from_utf8(text.to_vec()).ok()?), rest)
            }
            b'b' => {
                let (blob, rest) = rest.split_at_checked(length?)?;
                (Value::Blob(blob.to_vec()), rest)
            }
            _ => return None,
        };
        values.push(value);
        bytes = rest;
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::Corpora;

    #[test]
    fn every_table_is_shared() -> Result<()> {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let writer = Corpora::new(folder.path()).create("tables")?;
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
        let mut known = TABLES.map(|table| table.0.to_owned());
        known.sort();
        assert_eq!(writer.database.rows(tables, [], |row| row.get::<_, String>(0))?, known);
        Ok(())
    }

    #[test]
    fn rows_come_back_as_they_were() -> rusqlite::Result<()> {
        let values = "SELECT NULL, -1, 9223372036854775807, 0.1, '', 'né' || char(0), x'', x'00ff'";
        let connection = Connection::open_in_memory()?;
        let bytes = connection.query_row(values, [], |row| encode(row, 0..8))?;
        let want: Vec<Value> =
            connection.query_row(values, [], |row| (0..8).map(|column| row.get(column)).collect())?;
        assert_eq!(decode(&bytes), Some(want));
        for end in (0..bytes.len()).filter(|end| ![0, 1, 10, 19, 28, 37, 50, 59].contains(end)) {
            assert_eq!(decode(&bytes[..end]), None, "{end} of {} bytes are no row", bytes.len());
        }
        Ok(())
    }
}
