//! PostgreSQL with pgvector: the server for corpora that several processes share (see shared/).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use std::{env, process};

use postgres::Config;
use postgres::config::Host;

use crate::shared::Session;
use crate::{Error, Result, without_secrets};

/// Timeout of connecting, unless the address sets another.
const CONNECT: Duration = Duration::from_secs(10);
/// A connection whose server has lost power or network is given up after this time without data and this many unanswered probes,
/// a minute in all, unless the address sets others. The default is more than two hours, in which all readers would wait for it.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// The same for a query that such a server does not acknowledge, which no probe follows: the default is 15 minutes.
const UNACKNOWLEDGED: Duration = Duration::from_mins(1);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;
/// PostgreSQL truncates a connection's application name to this length.
const MAX_SIGNATURE_BYTES: usize = 63;
/// Words of the command line in it: the program and its subcommand.
const SIGNATURE_WORDS: usize = 2;

/// A PostgreSQL database for corpora. Connections are not encrypted: run it on this machine or on a trusted network.
pub struct Postgres {
    config: Config,
    /// The address without user and password.
    place: String,
    is_local: bool,
    /// The connection that all readers use.
    pub(crate) readers: Arc<Session>,
}

impl Postgres {
    /// Parses an address, `postgres://USER:PASSWORD@HOST/DATABASE`; opens no connection.
    ///
    /// # Errors
    /// [`Error::Address`].
    pub fn at(url: &str) -> Result<Arc<Postgres>> {
        let mut config =
            Config::from_str(url).map_err(|error| Error::Address { problem: without_secrets(&error.to_string()) })?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name(&signature());
        }
        keep_alive(&mut config);
        let local = |host: &Host| match host {
            Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
            Host::Unix(_) => true,
        };
        let named = |host: &Host| match host {
            // The part of an unencoded password after its `@` is parsed into the host name.
            Host::Tcp(name) => name.rsplit('@').next().unwrap_or_default().to_owned(),
            Host::Unix(path) => path.display().to_string(),
        };
        // A connection goes to `hostaddr` where it is given, whatever `host` names.
        let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
        if hosts.is_empty() && addresses.is_empty() {
            return Err(Error::Address { problem: "no host is given".into() });
        }
        let places = hosts.iter().map(named).chain(addresses.iter().map(ToString::to_string));
        let place = places.collect::<Vec<_>>().join(",");
        let is_local = hosts.iter().all(local) && addresses.iter().all(IpAddr::is_loopback);
        let readers = Arc::new(Session::new(config.clone(), &place)?);
        Ok(Arc::new(Postgres { config, place, is_local, readers }))
    }

    /// Whether all connections to it stay on this machine.
    pub fn is_local(&self) -> bool {
        self.is_local
    }

    /// Checks that it answers within a timeout.
    ///
    /// # Errors
    /// [`Error::Postgres`] with the cause.
    pub fn check(&self, within: Duration) -> Result<()> {
        self.readers.start(None, |client| client.simple_query("SELECT 1").map(drop))?.wait_within(within)
    }

    /// Its address without user and password.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// A new connection.
    pub(crate) fn session(&self) -> Result<Session> {
        Session::new(self.config.clone(), &self.place)
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Postgres({})", self.place)
    }
}

/// Sets the keepalive of connections where the address leaves it at its default.
fn keep_alive(config: &mut Config) {
    if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        config.keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVE_PROBES);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNACKNOWLEDGED);
    }
}

/// The application name, which shows other clients who holds a lock.
fn signature() -> String {
    signature_of(process::id(), env::args_os().map(|word| word.to_string_lossy().into_owned()))
}

/// The application name of a process with this command line. All users of the server can see it, so it has none of the
/// arguments: one of them may be a question.
fn signature_of(pid: u32, words: impl Iterator<Item = String>) -> String {
    let command: Vec<String> = words.take(SIGNATURE_WORDS).map(|word| without_secrets(&word)).collect();
    let plain = format!("{pid} {}", command.join(" ")).replace(|letter: char| !matches!(letter, ' '..='~'), "?");
    plain.chars().take(MAX_SIGNATURE_BYTES).collect()
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
        check("postgres://ann:sec@ret@10.0.0.5/memory", Some(("10.0.0.5", false)));
        check("postgres://h:port/memory", None);
        let other = "host=localhost hostaddr=198.51.100.7 dbname=memory";
        check(other, Some(("localhost,198.51.100.7", false)));
        check("hostaddr=198.51.100.7 dbname=memory", Some(("198.51.100.7", false)));
        check("hostaddr=127.0.0.1 dbname=memory", Some(("127.0.0.1", true)));
        check("dbname=memory", None);
    }

    #[test]
    fn a_server_that_has_lost_power_is_given_up_after_a_minute_unless_the_address_sets_another_time() {
        let check = |options: &str, idle_seconds: u64, interval_seconds: u64, probes: u32, user_seconds: u64| {
            let postgres = Postgres::at(&format!("host=localhost dbname=memory {options}")).expect("it is an address");
            let Postgres { config, .. } = &*postgres;
            assert_eq!(config.get_keepalives_idle(), Duration::from_secs(idle_seconds), "{options}");
            let probing = (config.get_keepalives_interval(), config.get_keepalives_retries());
            assert_eq!(probing, (Some(Duration::from_secs(interval_seconds)), Some(probes)), "{options}");
            assert_eq!(config.get_tcp_user_timeout(), Some(&Duration::from_secs(user_seconds)), "{options}");
        };
        check("", 30, 10, 3, 60);
        let others = "keepalives_idle=300 keepalives_interval=20 keepalives_retries=5 tcp_user_timeout=90";
        check(others, 300, 20, 5, 90);
    }

    #[test]
    fn other_users_of_a_server_see_no_question() {
        let check = |words: &[&str], want: &str| {
            assert_eq!(signature_of(7, words.iter().map(|word| (*word).to_owned())), want);
        };
        check(&["/usr/bin/memlocal", "ask", "Who is ill?", "--corpus", "diary"], "7 /usr/bin/memlocal ask");
        check(&["memlocal", "--vectors=postgres://ann:secret@h/m", "ask"], "7 memlocal --vectors=postgres://h/m");
        check(&["Zo\u{eb}"], "7 Zo?");
        check(&[], "7 ");
        check(&["a".repeat(100).as_str()], &format!("7 {}", "a".repeat(61)));
    }
}
