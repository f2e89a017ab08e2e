//! A server under concurrent clients: time to first text and output tokens per second, by number of clients.
//!
//! Every client sends questions in sequence until the time is over and receives its last answer completely. Both
//! servers get the same questions in the same order with the same sampling options, alternating. Times are
//! measured at the client, HTTP and queueing included.

use std::thread;
use std::time::{Duration, Instant};

use super::decoding::Decoding;
use super::item::Who;
use super::latency::percentile;
use super::outcome::Outcome;
use super::service::{Heard, Service};
use super::workload::words;
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
    /// How answers are drawn; each is measured separately.
    pub decodings: &'a [Decoding],
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
    let loads = plan.clients.iter().flat_map(|clients| plan.decodings.iter().map(|decoding| (*clients, *decoding)));
    for (clients, decoding) in loads {
        let mut turns = Vec::new();
        for repetition in 0..plan.repetitions {
            let what = format!("{clients} clients, {}", decoding.values());
            progress(&format!("{what}: {} of {}", repetition + 1, plan.repetitions));
            for (who, service) in sides.into_iter().flatten() {
                turns.push(turn(who, service, (clients, decoding), repetition, plan.time)?);
            }
        }
        report((clients, decoding), &turns, &mut items);
    }
    Ok(items)
}

/// Concurrent clients, and how their answers are drawn.
type Load = (usize, Decoding);

fn turn(who: Who, service: &Service, load: Load, repetition: usize, time: Duration) -> Result<Turn> {
    let (clients, decoding) = load;
    let started = Instant::now();
    let client = |client: usize| {
        let mut heard = Vec::new();
        while heard.is_empty() || started.elapsed() < time {
            let seed = seed(load, repetition, client, heard.len());
            let question = format!("{}\n\nGo on with this text.", words(seed, WORDS));
            heard.push(service.stream(&question, TOKENS, &decoding.sampling(seed as u64))?);
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

/// The seed of a client's question: each is asked once, whatever the load, so that no prefix of its prompt is cached.
fn seed((clients, decoding): Load, repetition: usize, client: usize, question: usize) -> usize {
    (((decoding as usize * 1000 + clients) * 100 + repetition) * 1000 + client) * 1000 + question
}

fn report((clients, decoding): Load, turns: &[Turn], items: &mut Items) {
    let what = format!("{clients} clients, {}", decoding.values());
    for (name, percent) in [("p50", 50), ("p99", 99)] {
        let item = items.item(SpeedSuite::Serve, &format!("first text {name} of {what}"), Unit::Milliseconds);
        for turn in turns {
            item.add(turn.who, percentile(&turn.firsts_milliseconds, percent), turn.outcome);
        }
    }
    let item = items.item(SpeedSuite::Serve, &what, Unit::OutputTokensPerSecond);
    for turn in turns {
        item.add(turn.who, Unit::OutputTokensPerSecond.of(&turn.outcome), turn.outcome);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_question_is_asked_twice() {
        let mut seeds = BTreeSet::new();
        for decoding in Decoding::DEFAULT {
            for clients in [1, 8] {
                for repetition in 0..2 {
                    for client in 0..clients {
                        seeds.extend((0..3).map(|question| seed((clients, decoding), repetition, client, question)));
                    }
                }
            }
        }
        assert_eq!(seeds.len(), Decoding::DEFAULT.len() * (1 + 8) * 2 * 3);
    }
}
