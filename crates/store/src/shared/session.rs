//! A connection to PostgreSQL. Its blocking client runs on a separate thread: searches run within asynchronous
//! runtimes, where the client may not block.

use std::error::Error as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use postgres::{Client, Config, NoTls};

use crate::{Error, Result};

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// Taken before creating tables: concurrent `CREATE ... IF NOT EXISTS` statements can fail.
pub(crate) const MAKING_TABLES: &str = "SELECT pg_advisory_xact_lock(1835363692)";

/// Runs work on a connection in the order of submission, and ends when it is dropped.
pub(crate) struct Session {
    jobs: Sender<Job>,
    place: String,
}

/// The pending result of work.
pub(crate) struct Answer<T> {
    answer: Receiver<std::result::Result<(T, u64), String>>,
    place: String,
}

/// The client, reconnected after the server was unavailable.
struct Connection {
    config: Config,
    client: Option<Client>,
    /// Number of connections made so far.
    number: u64,
}

impl Session {
    /// Opens no connection yet.
    pub(crate) fn new(config: Config, place: &str) -> Result<Session> {
        let (jobs, waiting) = channel::<Job>();
        let work = move || {
            let mut connection = Connection { config, client: None, number: 0 };
            waiting.into_iter().for_each(|job| job(&mut connection));
        };
        let started = thread::Builder::new().name("postgres".into()).spawn(work);
        started.map_err(|source| Error::Postgres { place: place.to_owned(), source: source.into() })?;
        Ok(Session { jobs, place: place.to_owned() })
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Runs work on the current connection, or on a new one.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Client) -> std::result::Result<T, postgres::Error> + Send + 'static,
    ) -> Result<T> {
        self.start(None, work)?.wait()
    }

    /// Starts work; on one connection only, if its number is given.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        only: Option<u64>,
        work: impl FnOnce(&mut Client) -> std::result::Result<T, postgres::Error> + Send + 'static,
    ) -> Result<Answer<T>> {
        let (reply, answer) = channel();
        let job: Job = Box::new(move |connection| {
            let done = connection.client(only).and_then(|client| work(client).map_err(|error| words(&error)));
            let _nobody_waits = reply.send(done.map(|value| (value, connection.number)));
        });
        self.jobs.send(job).map_err(|_| ended(&self.place))?;
        Ok(Answer { answer, place: self.place.clone() })
    }
}

impl<T> Answer<T> {
    pub(crate) fn wait(self) -> Result<T> {
        self.wait_numbered().map(|(value, _)| value)
    }

    /// Waits for the result, at most for `time`.
    pub(crate) fn wait_within(self, time: Duration) -> Result<T> {
        let silent = || Error::Postgres { place: self.place.clone(), source: "it does not answer".into() };
        let done = self.answer.recv_timeout(time).map_err(|_| silent())?;
        done.map(|(value, _)| value).map_err(|words| Error::Postgres { place: self.place, source: words.into() })
    }

    /// Waits for the result and the number of its connection.
    pub(crate) fn wait_numbered(self) -> Result<(T, u64)> {
        let done = self.answer.recv().map_err(|_| ended(&self.place))?;
        done.map_err(|words| Error::Postgres { place: self.place, source: words.into() })
    }
}

impl Connection {
    fn client(&mut self, only: Option<u64>) -> std::result::Result<&mut Client, String> {
        let lives = |client: &mut Client| !client.is_closed() && (only.is_some() || client.check_connection().is_ok());
        let open = self.client.take().and_then(|mut client| lives(&mut client).then_some(client));
        let client = match open {
            Some(client) if only.is_none_or(|only| only == self.number) => client,
            // The client is usable for other work.
            Some(client) => {
                self.client = Some(client);
                return Err(LOST.to_owned());
            }
            None if only.is_some() => return Err(LOST.to_owned()),
            None => {
                self.number += 1;
                let connected = self.config.connect(NoTls).and_then(|mut client| {
                    client.batch_execute(KEEPALIVE)?;
                    Ok(client)
                });
                connected.map_err(|error| words(&error))?
            }
        };
        Ok(self.client.insert(client))
    }
}

/// The server releases the locks of a machine that has lost power or network after a minute.
const KEEPALIVE: &str = "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3";

const LOST: &str = "the connection was lost; open the corpus again";

/// The server's error message is more informative than the client's.
pub(crate) fn words(error: &postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(said), _) => said.message().to_owned(),
        (None, Some(cause)) if !error.to_string().contains(&cause.to_string()) => format!("{error}: {cause}"),
        (None, _) => error.to_string(),
    }
}

fn ended(place: &str) -> Error {
    Error::Postgres { place: place.to_owned(), source: "its thread has ended".into() }
}
