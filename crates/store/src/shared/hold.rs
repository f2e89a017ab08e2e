//! Locks of a shared corpus across machines: one writer, and any number of readers, which prevent the removal of texts.
//!
//! The equivalent of lock.rs, with PostgreSQL's advisory locks. They end with their connection, so all work that relies
//! on a lock runs on the same connection or fails.

use std::sync::Arc;

use postgres::{Client, Row};

use crate::holder::Holder;
use crate::shared::session::{Answer, Session};
use crate::{CorpusName, Error, Postgres, Result};

/// A corpus's name, with the space of the clients that may see it.
#[derive(Clone, Debug)]
pub(crate) struct SharedName {
    /// The holder of a server's API key; empty if there is none.
    pub space: String,
    pub name: CorpusName,
}

/// A lock for reading or writing a corpus, released on drop.
pub(crate) struct Hold {
    pub name: SharedName,
    session: Arc<Session>,
    connection: u64,
    purpose: Purpose,
}

/// A lock for removing texts, released on drop.
pub(crate) struct Alone<'a>(&'a Hold);

/// The value is also the seed of the lock's number.
#[derive(Clone, Copy, PartialEq)]
enum Purpose {
    Writing = 1,
    Reading = 2,
}

/// SQL for the number of a lock: of $1, a name, and $2, a purpose.
const NUMBER: &str = "hashtextextended(concat(current_schema(), '/', $1::text), $2::bigint)";

impl Hold {
    /// Takes a lock for reading.
    ///
    /// # Errors
    /// [`Error::CorpusBusy`] while texts are being removed.
    pub(crate) fn reading(postgres: &Postgres, name: SharedName) -> Result<Hold> {
        Self::on(Arc::clone(&postgres.readers), name, Purpose::Reading)
    }

    /// Takes a lock for writing, on a separate connection.
    ///
    /// # Errors
    /// [`Error::CorpusBusy`] while another writer holds it.
    pub(crate) fn writing(postgres: &Postgres, name: SharedName) -> Result<Hold> {
        Self::on(Arc::new(postgres.session()?), name, Purpose::Writing)
    }

    fn on(session: Arc<Session>, name: SharedName, purpose: Purpose) -> Result<Hold> {
        let how = if purpose == Purpose::Reading { "_shared" } else { "" };
        let (text, function) = (name.text(), format!("pg_try_advisory_lock{how}"));
        let (attempt, connection) =
            session.start(None, move |client| lock(client, &function, &text, purpose))?.wait_numbered()?;
        match attempt {
            Attempt::Held(holder) => Err(Error::CorpusBusy { name: name.name.to_string(), holder }),
            Attempt::Ours => Ok(Hold { name, session, connection, purpose }),
        }
    }

    /// Takes the lock for removing texts.
    ///
    /// # Errors
    /// [`Error::CorpusBusy`] while the corpus has readers.
    pub(crate) fn alone(&self) -> Result<Alone<'_>> {
        let text = self.name.text();
        match self.run(move |client| lock(client, "pg_try_advisory_lock", &text, Purpose::Reading))? {
            Attempt::Held(holder) => Err(Error::CorpusBusy { name: self.name.name.to_string(), holder }),
            Attempt::Ours => Ok(Alone(self)),
        }
    }

    /// Runs work on the lock's connection; fails if the lock was lost.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Client) -> std::result::Result<T, postgres::Error> + Send + 'static,
    ) -> Result<T> {
        self.start(work)?.wait()
    }

    /// Starts work on the lock's connection.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Client) -> std::result::Result<T, postgres::Error> + Send + 'static,
    ) -> Result<Answer<T>> {
        self.session.start(Some(self.connection), work)
    }

    pub(crate) fn place(&self) -> &str {
        self.session.place()
    }

    /// Waits for the result, so that the lock is free when this returns.
    fn unlock(&self, function: &'static str, purpose: Purpose) {
        let text = self.name.text();
        let unlock = format!("SELECT {function}({NUMBER})");
        let _unlocked_by_closing_then = self.run(move |client| client.query_one(&unlock, &[&text, &(purpose as i64)]));
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        match self.purpose {
            Purpose::Reading => self.unlock("pg_advisory_unlock_shared", Purpose::Reading),
            Purpose::Writing => self.unlock("pg_advisory_unlock", Purpose::Writing),
        }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.unlock("pg_advisory_unlock", Purpose::Reading);
    }
}

impl SharedName {
    fn text(&self) -> String {
        format!("{}/{}", self.space, self.name)
    }
}

/// The result of trying to take a lock.
enum Attempt {
    Ours,
    /// Held by another client, if it is known.
    Held(Option<Holder>),
}

fn lock(
    client: &mut Client,
    function: &str,
    text: &str,
    purpose: Purpose,
) -> std::result::Result<Attempt, postgres::Error> {
    let seed = purpose as i64;
    if client.query_one(&format!("SELECT {function}({NUMBER})"), &[&text, &seed])?.get(0) {
        return Ok(Attempt::Ours);
    }
    let holder = format!(
        "SELECT application_name, host(client_addr) FROM pg_locks JOIN pg_stat_activity USING (pid)
         WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND pid <> pg_backend_pid()
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND (classid::bigint << 32) | objid::bigint = {NUMBER} LIMIT 1"
    );
    Ok(Attempt::Held(client.query_opt(&holder, &[&text, &seed])?.as_ref().and_then(signed)))
}

fn signed(row: &Row) -> Option<Holder> {
    let (pid, command) = row.get::<_, &str>(0).split_once(' ')?;
    Some(Holder { pid: pid.parse().ok()?, command: command.to_owned(), machine: row.get(1) })
}
