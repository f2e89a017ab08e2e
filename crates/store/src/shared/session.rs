//! A connection to PostgreSQL. Its client waits on a thread of its own: searches are made within asynchronous runtimes, in
//! which it may not wait.

use std::error::Error as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use postgres::{Client, Config, NoTls};

use crate::{Error, Result};

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// Does work on a connection in the order in which it is given, and ends with the value.
pub(crate) struct Session {
    jobs: Sender<Job>,
    place: String,
}

/// What work will have come to.
pub(crate) struct Answer<T> {
    answer: Receiver<std::result::Result<(T, u64), String>>,
    place: String,
}

/// The client, made anew when the server has gone and come back.
struct Connection {
    config: Config,
    client: Option<Client>,
    /// How many there have been.
    number: u64,
}

impl Session {
    /// Nothing is opened yet.
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

    /// Does work on whatever connection there is.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Client) -> std::result::Result<T, postgres::Error> + Send + 'static,
    ) -> Result<T> {
        self.start(None, work)?.wait()
    }

    /// Begins work; on one connection only, if its number is given.
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

    /// The same, for so long at most.
    pub(crate) fn wait_within(self, time: Duration) -> Result<T> {
        let silent = || Error::Postgres { place: self.place.clone(), source: "it does not answer".into() };
        let done = self.answer.recv_timeout(time).map_err(|_| silent())?;
        done.map(|(value, _)| value).map_err(|words| Error::Postgres { place: self.place, source: words.into() })
    }

    /// Also the number of the connection.
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
            // Others may use it.
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

/// Locks of a machine that has lost its power or its network are free again after a minute.
const KEEPALIVE: &str = "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3";

const LOST: &str = "the connection was lost; open the corpus again";

/// The server's words say more than the client's.
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
