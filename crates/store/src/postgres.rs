//! PostgreSQL with pgvector: one index of vectors that several processes search, so that none of them has to hold it.
//!
//! SQLite stays the truth, for texts and for vectors: a corpus is still one file that moves, and every change one transaction. A
//! table holds what a saved graph would, unit vectors by the digests in `vector.key`, and is made again when it is missing or
//! short. Keys that SQLite lacks are passed over, so nothing that stands here too much can come out of a search.
//!
//! Tables bear a digest of the corpus' folder in their names. They are emptied when a document is removed and when a corpus
//! is, before anything else is changed; without PostgreSQL neither is done.
//!
//! The client waits on a thread of its own: searches are made within asynchronous runtimes, in which it may not wait.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use postgres::config::Host;
use postgres::{Client, Config, NoTls};

use crate::{Digest, Error, Layer, Result};

/// Whoever does not let us in within this time is not there, unless the address says otherwise.
const CONNECT: Duration = Duration::from_secs(10);
/// pgvector's limit for indexed vectors.
const MOST_INDEXED_DIMS: usize = 2000;
/// pgvector's limit for the candidates of one search of its graph.
const MOST_CANDIDATES: usize = 1000;
/// Candidates of a search, as in our own graphs.
const CANDIDATES: usize = 96;
/// Vectors that are best put in at once.
pub(crate) const BATCH: usize = 500;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A database for vectors. Connections are plain: it belongs on this machine or on a network of yours.
pub struct Postgres {
    jobs: Sender<Job>,
    /// Without user and password.
    place: String,
    is_local: bool,
}

/// The client, made anew when the server has gone and come back.
struct Connection {
    config: Config,
    client: Option<Client>,
}

impl Connection {
    fn client(&mut self) -> std::result::Result<&mut Client, postgres::Error> {
        let open = self.client.take().filter(|client| !client.is_closed());
        let client = match open {
            Some(client) => client,
            None => self.config.connect(NoTls)?,
        };
        Ok(self.client.insert(client))
    }
}

impl Postgres {
    /// Understands an address, `postgres://USER:PASSWORD@HOST/DATABASE`; nothing is opened yet.
    ///
    /// # Errors
    /// [`Error::Address`].
    pub fn at(url: &str) -> Result<Arc<Postgres>> {
        let mut config = Config::from_str(url).map_err(|error| Error::Address { problem: error.to_string() })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        let local = |host: &Host| match host {
            Host::Tcp(name) => {
                name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            }
            Host::Unix(_) => true,
        };
        let named = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let hosts = config.get_hosts();
        let place = hosts.iter().map(named).collect::<Vec<_>>().join(",");
        let is_local = hosts.iter().all(local);
        let (jobs, waiting) = channel::<Job>();
        let work = move || {
            let mut connection = Connection { config, client: None };
            waiting.into_iter().for_each(|job| job(&mut connection));
        };
        let started = thread::Builder::new().name("postgres".into()).spawn(work);
        started.map_err(|source| Error::Postgres { place: place.clone(), source: source.into() })?;
        Ok(Arc::new(Postgres { jobs, place, is_local }))
    }

    /// True if no packet to it leaves this machine.
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// Where it is, without user and password.
    pub fn place(&self) -> &str {
        &self.place
    }

    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Client) -> std::result::Result<T, postgres::Error> + Send + 'static,
    ) -> Result<T> {
        let failed = |source| Error::Postgres { place: self.place.clone(), source };
        let (reply, answer) = channel();
        let job: Job = Box::new(move |connection| {
            let _ = reply.send(connection.client().and_then(work));
        });
        let gone = || failed("its thread has ended".into());
        self.jobs.send(job).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?.map_err(|error| failed(words(&error).into()))
    }

    /// Deletes what is kept for the corpus in a folder; the tables stay, empty.
    pub(crate) fn forget(&self, corpus: &Corner) -> Result<()> {
        let prefix = corpus.0.clone();
        self.run(move |client| {
            let tables =
                "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND starts_with(tablename, $1)";
            for row in client.query(tables, &[&prefix])? {
                client.batch_execute(&format!("TRUNCATE {}", row.get::<_, &str>(0)))?;
            }
            Ok(())
        })
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Postgres({})", self.place)
    }
}

/// The server's words say more than the client's.
fn words(error: &postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

/// What the tables of one corpus begin with.
#[derive(Debug, Clone)]
pub(crate) struct Corner(String);

impl Corner {
    /// Corpora in different folders have different tables; those who share a folder share them.
    pub(crate) fn of(folder: &std::path::Path) -> Corner {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Corner(format!("memlocal_{}_", &Digest::of(&[&folder.display().to_string()]).to_string()[..16]))
    }
}

/// The vectors that one embedder gave the passages of one layer.
pub(crate) struct Table {
    postgres: Arc<Postgres>,
    name: String,
}

impl Table {
    /// Makes the table if it is not there.
    pub(crate) fn open(
        postgres: &Arc<Postgres>,
        corpus: &Corner,
        layer: Layer,
        embedder: &str,
        dims: usize,
    ) -> Result<Table> {
        let of = Digest::of(&[layer.as_str(), embedder, &dims.to_string()]).to_string();
        let name = format!("{}{}", corpus.0, &of[..16]);
        let table = Table { postgres: Arc::clone(postgres), name: name.clone() };
        table.postgres.run(move |client| {
            let mut making = client.transaction()?;
            // Two who make it at once would stumble over each other.
            making.batch_execute("SELECT pg_advisory_xact_lock(1835363692)")?;
            making.batch_execute("CREATE EXTENSION IF NOT EXISTS vector")?;
            making.batch_execute(&format!(
                "CREATE TABLE IF NOT EXISTS {name} (key bigint PRIMARY KEY, vector vector({dims}) NOT NULL)"
            ))?;
            making.commit()
        })?;
        Ok(table)
    }

    /// The keys that are there.
    pub(crate) fn keys(&self) -> Result<HashSet<u64>> {
        let name = self.name.clone();
        self.postgres.run(move |client| {
            let rows = client.query(&format!("SELECT key FROM {name}"), &[])?;
            Ok(rows.iter().map(|row| row.get::<_, i64>(0).cast_unsigned()).collect())
        })
    }

    /// Deletes all of them.
    pub(crate) fn clear(&self) -> Result<()> {
        let name = self.name.clone();
        self.postgres.run(move |client| client.batch_execute(&format!("TRUNCATE {name}")))
    }

    /// Puts vectors in; others may put in the same ones meanwhile.
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
        self.postgres.run(move |client| client.execute(&insert, &[&keys, &texts]))?;
        Ok(())
    }

    /// Lets pgvector make its graph, for more vectors than are best compared one by one.
    pub(crate) fn index(&self, dims: usize) -> Result<()> {
        if dims > MOST_INDEXED_DIMS {
            return Ok(());
        }
        let name = &self.name;
        let index = format!(
            "CREATE INDEX IF NOT EXISTS {name}_hnsw ON {name} USING hnsw (vector vector_ip_ops)
             WITH (m = 16, ef_construction = 128)"
        );
        self.postgres.run(move |client| client.batch_execute(&index))
    }

    /// The keys of the vectors with the highest cosines with a unit vector.
    pub(crate) fn search(&self, query: &[f32], wanted: usize) -> Result<Vec<(u64, f32)>> {
        let search = format!(
            "SELECT key, (-(vector <#> $1::text::vector))::real FROM {} ORDER BY vector <#> $1::text::vector LIMIT $2",
            self.name
        );
        let (query, limit) = (literal(query), i64::try_from(wanted).unwrap_or(i64::MAX));
        let how = if wanted > MOST_CANDIDATES {
            "SET LOCAL enable_indexscan = off".to_owned()
        } else {
            format!("SET LOCAL hnsw.ef_search = {}", wanted.max(CANDIDATES))
        };
        self.postgres.run(move |client| {
            let mut searching = client.transaction()?;
            searching.batch_execute(&how)?;
            let rows = searching.query(&search, &[&query, &limit])?;
            Ok(rows.iter().map(|row| (row.get::<_, i64>(0).cast_unsigned(), row.get(1))).collect())
        })
    }

    /// The cosines of some vectors with a unit vector.
    pub(crate) fn scores(&self, query: &[f32], keys: &[u64]) -> Result<Vec<(u64, f32)>> {
        let compare =
            format!("SELECT key, (-(vector <#> $1::text::vector))::real FROM {} WHERE key = ANY($2)", self.name);
        let query = literal(query);
        let keys: Vec<i64> = keys.iter().map(|key| key.cast_signed()).collect();
        self.postgres.run(move |client| {
            let rows = client.query(&compare, &[&query, &keys])?;
            Ok(rows.iter().map(|row| (row.get::<_, i64>(0).cast_unsigned(), row.get(1))).collect())
        })
    }
}

/// A vector as pgvector reads it; every number comes back as it was.
fn literal(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood_and_shown_without_secrets() {
        let check = |url: &str, want: Option<(&str, bool)>| {
            let found = Postgres::at(url).ok().map(|postgres| (postgres.place().to_owned(), postgres.is_local()));
            assert_eq!(found, want.map(|(place, local)| (place.to_owned(), local)), "{url}");
        };
        check("postgres://ann:secret@10.0.0.5/memory", Some(("10.0.0.5", false)));
        check("postgres://localhost:5433/memory", Some(("localhost", true)));
        check("postgresql://127.0.0.1,10.0.0.5/memory", Some(("127.0.0.1,10.0.0.5", false)));
        check("host=/run/postgresql dbname=memory", Some(("/run/postgresql", true)));
        check("postgres://h:port/memory", None);
    }
}
