//! A server under concurrent clients: time to first text and output tokens per second, by number of clients.
//!
//! Every client sends questions in sequence until the time is over and receives its last answer completely. Both
//! servers get the same questions in the same order, alternating; greedy answers have similar lengths on both. Times
//! measured at the client, HTTP and queueing included.

use std::thread;
use std::time::{Duration, Instant};

use super::item::Who;
use super::latency::percentile;
use super::service::{Heard, Service};
use super::workload::{Outcome, words};
use super::{Items, SpeedSuite, Unit};
use crate::{Error, Result};

/// Words of a question; about 130 tokens.
const WORDS: usize = 100;
/// The most tokens of an answer.
const TOKENS: usize = 64;

/// The parameters of a measurement.
#[derive(Debug)]
pub struct ClientLoad<'a> {
    pub ours: &'a Service,
    /// A server with the same model on the same cores.
    pub peer: Option<&'a Service>,
    /// Numbers of concurrent clients; each is measured separately.
    pub clients: &'a [usize],
    /// How long clients send questions.
    pub time: Duration,
    pub repetitions: usize,
}

/// One measurement of one server.
struct Turn {
    who: Who,
    firsts_milliseconds: Vec<f64>,
    outcome: Outcome,
}

/// Measures everything; `progress` gets the name of the next measurement.
///
/// # Errors
/// [`Error::Peer`] if a server refuses a request or closes the connection.
pub fn measure_clients(plan: &ClientLoad<'_>, progress: &mut dyn FnMut(&str)) -> Result<Items> {
    let mut items = Items::default();
    let sides = [Some((Who::Ours, plan.ours)), plan.peer.map(|peer| (Who::Peer, peer))];
    for clients in plan.clients {
        let mut turns = Vec::new();
        for repetition in 0..plan.repetitions {
            progress(&format!("{clients} clients: {} of {}", repetition + 1, plan.repetitions));
            for (who, service) in sides.into_iter().flatten() {
                turns.push(turn(who, service, *clients, repetition, plan.time)?);
            }
        }
        report(*clients, &turns, &mut items);
    }
    Ok(items)
}

fn turn(who: Who, service: &Service, clients: usize, repetition: usize, time: Duration) -> Result<Turn> {
    let started = Instant::now();
    let client = |client: usize| {
        let mut heard = Vec::new();
        while heard.is_empty() || started.elapsed() < time {
            // A new question each time, so that no prefix is cached.
            let seed = ((clients * 100 + repetition) * 1000 + client) * 1000 + heard.len();
            heard.push(service.stream(&format!("{}\n\nGo on with this text.", words(seed, WORDS)), TOKENS)?);
        }
        Ok(heard)
    };
    let client = &client;
    let heard: Vec<Result<Vec<Heard>>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|number| scope.spawn(move || client(number))).collect();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|heard| heard.unwrap_or(Err(Error::Panicked))).collect()
    });
    let mut outcome = Outcome { seconds: started.elapsed().as_secs_f64(), ..Outcome::default() };
    let mut firsts_milliseconds = Vec::new();
    for heard in heard.into_iter().collect::<Result<Vec<_>>>()?.iter().flatten() {
        firsts_milliseconds.push(heard.first.as_secs_f64() * 1e3);
        outcome.prompt_tokens += heard.prompt_tokens;
        outcome.cached_tokens += heard.cached_tokens;
        outcome.output_tokens += heard.output_tokens;
    }
    Ok(Turn { who, firsts_milliseconds, outcome })
}

fn report(clients: usize, turns: &[Turn], items: &mut Items) {
    for (name, percent) in [("p50", 50), ("p99", 99)] {
        let item =
            items.item(SpeedSuite::Serve, &format!("first text {name} of {clients} clients"), Unit::Milliseconds);
        for turn in turns {
            item.add(turn.who, percentile(&turn.firsts_milliseconds, percent), turn.outcome);
        }
    }
    let item = items.item(SpeedSuite::Serve, &format!("{clients} clients"), Unit::OutputTokensPerSecond);
    for turn in turns {
        item.add(turn.who, Unit::OutputTokensPerSecond.of(&turn.outcome), turn.outcome);
    }
}
