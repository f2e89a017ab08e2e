//! Tables of vectors (pgvector): an index that all clients of a corpus search, so that none of them has to hold it in
//! memory.
//!
//! A table holds what a saved graph would, unit vectors by the digests in `vector.key`, and is filled again when it is
//! missing or incomplete. Keys that a copy lacks are skipped, so surplus vectors never appear in results. Tables are
//! emptied when a document is removed; the vectors of a replaced document are deleted only if there are no readers, so
//! a reader finds all vectors of its snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use postgres::Transaction;

use crate::shared::hold::Hold;
use crate::shared::session::MAKING_TABLES;
use crate::{Digest, Layer, Result};

/// pgvector's limit for indexed vectors.
const MAX_INDEXED_DIMS: usize = 2000;
/// pgvector's limit for the candidates of one search of its HNSW graph. A search for more vectors is an exact scan.
pub(crate) const MAX_CANDIDATES: usize = 1000;
/// Candidates of a search, as in the graphs of graph.rs.
const CANDIDATES: usize = 96;
/// Vectors to insert with one statement.
pub(crate) const BATCH: usize = 500;

/// The tables of one corpus, for a client that has it open.
#[derive(Clone)]
pub(crate) struct Tables {
    pub hold: Arc<Hold>,
    /// Prefix of their names.
    prefix: String,
}

/// The vectors of one embedder for the passages of one layer.
pub(crate) struct Table {
    hold: Arc<Hold>,
    name: String,
}

/// Prefix of the names of a corpus's tables.
pub(crate) fn prefix(id: &str) -> String {
    format!("memlocal_vectors_{}_", &Digest::of(&[id]).to_string()[..16])
}

/// The tables whose names begin with `prefix`.
pub(crate) fn tables(client: &mut Transaction<'_>, prefix: &str) -> std::result::Result<Vec<String>, postgres::Error> {
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND starts_with(tablename, $1)";
    Ok(client.query(tables, &[&prefix])?.iter().map(|row| row.get(0)).collect())
}

impl Tables {
    pub(crate) fn of(id: &str, hold: Arc<Hold>) -> Tables {
        Tables { hold, prefix: prefix(id) }
    }

    /// Empties all tables.
    pub(crate) fn clear(&self) -> Result<()> {
        let prefix = self.prefix.clone();
        self.hold.run(move |client| {
            let mut clearing = client.transaction()?;
            for table in tables(&mut clearing, &prefix)? {
                clearing.batch_execute(&format!("TRUNCATE {table}"))?;
            }
            clearing.commit()
        })
    }

    /// Deletes vectors from all tables.
    pub(crate) fn delete(&self, keys: &[u64]) -> Result<()> {
        let prefix = self.prefix.clone();
        let keys: Vec<i64> = keys.iter().map(|key| key.cast_signed()).collect();
        self.hold.run(move |client| {
            let mut deleting = client.transaction()?;
            for table in tables(&mut deleting, &prefix)? {
                deleting.execute(&format!("DELETE FROM {table} WHERE key = ANY($1)"), &[&keys])?;
            }
            deleting.commit()
        })
    }

    /// Creates a table if it does not exist.
    pub(crate) fn open(&self, layer: Layer, embedder: &str, dims: usize) -> Result<Table> {
        let of = Digest::of(&[layer.as_str(), embedder, &dims.to_string()]).to_string();
        let name = format!("{}{}", self.prefix, &of[..16]);
        let table = Table { hold: Arc::clone(&self.hold), name: name.clone() };
        table.hold.run(move |client| {
            let mut making = client.transaction()?;
            making.batch_execute(MAKING_TABLES)?;
            making.batch_execute("CREATE EXTENSION IF NOT EXISTS vector")?;
            making.batch_execute(&format!(
                "CREATE TABLE IF NOT EXISTS {name} (key bigint PRIMARY KEY, vector vector({dims}) NOT NULL)"
            ))?;
            making.commit()
        })?;
        Ok(table)
    }
}

impl Table {
    /// The keys in the table.
    pub(crate) fn keys(&self) -> Result<HashSet<u64>> {
        let name = self.name.clone();
        self.hold.run(move |client| {
            let rows = client.query(&format!("SELECT key FROM {name}"), &[])?;
            Ok(rows.iter().map(|row| row.get::<_, i64>(0).cast_unsigned()).collect())
        })
    }

    /// Inserts vectors; other clients may insert the same ones concurrently.
    pub(crate) fn insert(&self, vectors: &[(u64, Vec<f32>)]) -> Result<()> {
        if vectors.is_empty() {
            return Ok(());
        }
        let keys: Vec<i64> = vectors.iter().map(|(key, _)| key.cast_signed()).collect();
        let texts: Vec<String> = vectors.iter().map(|(_, vector)| literal(vector)).collect();
        let insert = format!(
            "INSERT INTO {} SELECT key, text::vector FROM unnest($1::bigint[], $2::text[]) AS new (key, text)
             ON CONFLICT DO NOTHING",
            self.name
        );
        self.hold.run(move |client| client.execute(&insert, &[&keys, &texts]))?;
        Ok(())
    }

    /// Creates pgvector's HNSW index, for more vectors than an exact scan should compare.
    pub(crate) fn index(&self, dims: usize) -> Result<()> {
        if dims > MAX_INDEXED_DIMS {
            return Ok(());
        }
        let name = &self.name;
        let index = format!(
            "CREATE INDEX IF NOT EXISTS {name}_hnsw ON {name} USING hnsw (vector vector_ip_ops)
             WITH (m = 16, ef_construction = 128)"
        );
        self.hold.run(move |client| client.batch_execute(&index))
    }

    /// The keys of the vectors with the highest cosine similarity to a unit vector. If at most [`MAX_CANDIDATES`] are wanted,
    /// fewer may be found although the table has more: its index has deleted vectors until PostgreSQL's next vacuum.
    pub(crate) fn search(&self, query: &[f32], wanted: usize) -> Result<Vec<(u64, f32)>> {
        let search = format!(
            "SELECT key, (-(vector <#> $1::text::vector))::real FROM {} ORDER BY vector <#> $1::text::vector LIMIT $2",
            self.name
        );
        let (query, limit) = (literal(query), i64::try_from(wanted).unwrap_or(i64::MAX));
        let how = if wanted > MAX_CANDIDATES {
            "SET LOCAL enable_indexscan = off".to_owned()
        } else {
            format!("SET LOCAL hnsw.ef_search = {}", wanted.max(CANDIDATES))
        };
        self.hold.run(move |client| {
            let mut searching = client.transaction()?;
            searching.batch_execute(&how)?;
            let rows = searching.query(&search, &[&query, &limit])?;
            Ok(rows.iter().map(|row| (row.get::<_, i64>(0).cast_unsigned(), row.get(1))).collect())
        })
    }

    /// The cosine similarities of some vectors to a unit vector.
    pub(crate) fn scores(&self, query: &[f32], keys: &[u64]) -> Result<Vec<(u64, f32)>> {
        let compare =
            format!("SELECT key, (-(vector <#> $1::text::vector))::real FROM {} WHERE key = ANY($2)", self.name);
        let query = literal(query);
        let keys: Vec<i64> = keys.iter().map(|key| key.cast_signed()).collect();
        self.hold.run(move |client| {
            let rows = client.query(&compare, &[&query, &keys])?;
            Ok(rows.iter().map(|row| (row.get::<_, i64>(0).cast_unsigned(), row.get(1))).collect())
        })
    }
}

/// A vector in pgvector's text format; every number is restored exactly.
fn literal(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}
