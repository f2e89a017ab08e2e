//! A soak test: documents, questions, embeddings and abandoned chats for a long time, from twice as many clients as the
//! server admits. No request may fail, the server must stay ready and its memory flat.
//!
//! A refusal for want of room (status 429) is the right response to the second half of the clients and counts apart.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::item::median_of_counts;
use super::latency::percentile;
use super::load::Look;
use super::soak_client::{DOCUMENTS, Ended, Target, WORKS};
use crate::Result;
use crate::chart::{Axis, Chart, Kind, Series};
use crate::run_folder::put;

pub use super::soak_client::Work;

/// How many times as many clients there are as the server admits requests.
pub const OVERLOAD: usize = 2;
/// The interval between two samples of the server's memory, and between two looks at `/ready`.
const LOOK: Duration = Duration::from_secs(1);
/// The pause of a client after a refusal.
const PAUSE: Duration = Duration::from_millis(250);
/// The share of the time at the beginning in which caches may fill.
const WARMING: f64 = 0.2;
/// The number of reported problems.
const SHOWN: usize = 10;

/// One request: what it was, when it began, how long it took, how it ended.
type Timed = (Work, Duration, Duration, Ended);

/// The requests of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Worked {
    pub done: usize,
    pub refused: usize,
    pub failed: usize,
    /// 50th, 95th and 99th percentile and maximum of those that are done, from the request to its end.
    pub milliseconds: [f64; 4],
}

/// The result.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SoakReport {
    pub clients: usize,
    pub admitted: usize,
    pub seconds: f64,
    pub by_work: BTreeMap<Work, Worked>,
    /// The first few failures.
    pub problems: Vec<String>,
    /// The server's memory at the end of the warming and at the end of the run (medians of a tenth of the time), and the
    /// slope between by least squares, in bytes per hour; none if the memory is not known.
    pub memory: Option<(u64, u64, f64)>,
    #[serde(skip)]
    looks: Vec<Look>,
    #[serde(skip)]
    requests: Vec<Timed>,
}

/// Works on the server at `url`, which admits `admitted` requests at once. `memory` returns the bytes of its process, if
/// they are known.
///
/// # Errors
/// [`crate::Error::Peer`] if the server has no models or its corpora cannot be made.
pub fn soak(
    url: &str,
    admitted: usize,
    time: Duration,
    memory: &(dyn Fn() -> Option<u64> + Sync),
) -> Result<SoakReport> {
    let target = Target::find(url)?;
    let clients = (admitted * OVERLOAD).next_multiple_of(WORKS.len());
    let corpora: Vec<String> = (0..clients / WORKS.len()).map(|n| format!("soak-{}-{n}", process::id())).collect();
    for corpus in &corpora {
        target.expect("POST", "/v1/corpora", &json!({ "name": corpus }))?;
        for number in 0..DOCUMENTS {
            if let Ended::Failed(problem) = target.ingest(corpus, number, number) {
                return Err(target.error(problem));
            }
        }
    }
    let (started, over) = (Instant::now(), AtomicBool::new(false));
    let (requests, looks) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let (target, corpora, over, requests, looks) = (&target, &corpora, &over, &requests, &looks);
        let timed = move |work: Work, what: &dyn Fn() -> Ended| {
            let begin = started.elapsed();
            let ended = what();
            let took = started.elapsed().saturating_sub(begin);
            let was_refused = ended == Ended::Refused;
            requests.lock().unwrap_or_else(PoisonError::into_inner).push((work, begin, took, ended));
            was_refused
        };
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                timed(Work::Ready, &|| target.ready());
                let look = memory().map(|bytes| Look { seconds: started.elapsed().as_secs_f64(), bytes });
                looks.lock().unwrap_or_else(PoisonError::into_inner).extend(look);
                thread::sleep(LOOK);
            }
        });
        let client = move |number: usize| {
            let (work, corpus) = (WORKS[number % WORKS.len()], &corpora[number / WORKS.len()]);
            let mut turn = number;
            while started.elapsed() < time {
                if timed(work, &|| target.work(work, corpus, turn)) {
                    thread::sleep(PAUSE);
                }
                turn += clients;
            }
        };
        let threads: Vec<_> = (0..clients).map(|number| scope.spawn(move || client(number))).collect();
        threads.into_iter().for_each(|thread| drop(thread.join()));
        over.store(true, Ordering::Relaxed);
    });
    let seconds = started.elapsed().as_secs_f64();
    for corpus in &corpora {
        target.expect("DELETE", &format!("/v1/corpora/{corpus}"), &Value::Null)?;
    }
    let requests = requests.into_inner().unwrap_or_else(PoisonError::into_inner);
    let looks = looks.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(SoakReport { clients, admitted, ..SoakReport::of(seconds, requests, looks) })
}

impl SoakReport {
    fn of(seconds: f64, requests: Vec<Timed>, looks: Vec<Look>) -> SoakReport {
        let mut by_work: BTreeMap<Work, Worked> = BTreeMap::new();
        let mut took: BTreeMap<Work, Vec<f64>> = BTreeMap::new();
        let mut problems = Vec::new();
        for (work, begin, duration, ended) in &requests {
            let worked = by_work.entry(*work).or_default();
            match ended {
                Ended::Done => {
                    worked.done += 1;
                    took.entry(*work).or_default().push(duration.as_secs_f64() * 1e3);
                }
                Ended::Refused => worked.refused += 1,
                Ended::Failed(problem) => {
                    worked.failed += 1;
                    if problems.len() < SHOWN {
                        problems.push(format!("{:.0} s: {problem}", begin.as_secs_f64()));
                    }
                }
            }
        }
        for (work, took) in &took {
            let milliseconds = [50, 95, 99, 100].map(|percent| percentile(took, percent));
            by_work.entry(*work).or_default().milliseconds = milliseconds;
        }
        SoakReport {
            seconds,
            by_work,
            problems,
            memory: trend(&looks, seconds),
            looks,
            requests,
            ..SoakReport::default()
        }
    }

    /// True if no request failed, all kinds of work were done, and memory grew by less than a twentieth after the warming.
    pub fn holds(&self) -> bool {
        let all = WORKS.iter().chain(&[Work::Ready]);
        let worked = |work: &Work| self.by_work.get(work).is_some_and(|worked| worked.done > 0 && worked.failed == 0);
        let flat = self.memory.is_none_or(|(first, last, _)| last as f64 <= first as f64 * 1.05);
        all.into_iter().all(worked) && flat
    }

    /// Every request.
    pub fn to_csv(&self) -> String {
        let line = |(work, begin, took, ended): &Timed| {
            let ended = match ended {
                Ended::Done => "done",
                Ended::Refused => "refused",
                Ended::Failed(_) => "failed",
            };
            format!("{},{:.1},{:.1},{ended}\n", work.name(), begin.as_secs_f64(), took.as_secs_f64() * 1e3)
        };
        "work,begin_s,took_ms,ended\n".to_owned() + &self.requests.iter().map(line).collect::<String>()
    }

    /// Writes the memory over time as `memory.csv` and as a plot.
    ///
    /// # Errors
    /// [`crate::Error::Write`], [`crate::Error::Draw`].
    pub fn keep_memory(&self, folder: &Path) -> Result<()> {
        let line = |look: &Look| format!("{:.1},{}\n", look.seconds, look.bytes);
        let csv = "seconds,bytes\n".to_owned() + &self.looks.iter().map(line).collect::<String>();
        put(&folder.join("memory.csv"), &csv)?;
        let points = self.looks.iter().map(|look| (look.seconds / 60.0, look.bytes as f64 / f64::from(1 << 20)));
        let series =
            Series { name: "resident memory of the server".into(), points: points.collect(), is_published: false };
        let chart = Chart {
            title: format!("{} clients, {} admitted", self.clients, self.admitted),
            kind: Kind::Lines,
            axis: Axis::Numbers("minutes".into()),
            values: "MiB".into(),
            series: vec![series],
        };
        chart.draw(folder, "memory")
    }
}

/// The memory after the warming and at the end, and its slope between in bytes per hour.
fn trend(looks: &[Look], seconds: f64) -> Option<(u64, u64, f64)> {
    let warm: Vec<&Look> = looks.iter().filter(|look| look.seconds >= seconds * WARMING).collect();
    let median = |part: &[&Look]| median_of_counts(part.iter().map(|look| look.bytes).collect());
    let tenth = warm.len().div_ceil(8);
    let (first, last) = (median(&warm[..tenth])?, median(&warm[warm.len() - tenth..])?);
    let count = warm.len() as f64;
    let mean_x = warm.iter().map(|look| look.seconds).sum::<f64>() / count;
    let mean_y = warm.iter().map(|look| look.bytes as f64).sum::<f64>() / count;
    let above: f64 = warm.iter().map(|look| (look.seconds - mean_x) * (look.bytes as f64 - mean_y)).sum();
    let below: f64 = warm.iter().map(|look| (look.seconds - mean_x).powi(2)).sum();
    Some((first, last, if below > 0.0 { above / below * 3600.0 } else { 0.0 }))
}

impl fmt::Display for SoakReport {
    /// Writes it as Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SoakReport { clients, admitted, seconds, .. } = self;
        writeln!(f, "# Soak\n\n{clients} clients of a server that admits {admitted} requests, {seconds:.0} s.\n")?;
        writeln!(f, "| work | done | refused (429) | failed | p50 ms | p95 ms | p99 ms | max ms |")?;
        writeln!(f, "|---|---|---|---|---|---|---|---|")?;
        for (work, Worked { done, refused, failed, milliseconds: [p50, p95, p99, most] }) in &self.by_work {
            let name = work.name();
            writeln!(f, "| {name} | {done} | {refused} | {failed} | {p50:.0} | {p95:.0} | {p99:.0} | {most:.0} |")?;
        }
        writeln!(f)?;
        match self.memory {
            Some((first, last, slope)) => {
                let [first, last] = [first, last].map(|bytes| bytes as f64 / f64::from(1 << 20));
                let slope = slope / f64::from(1 << 20);
                writeln!(
                    f,
                    "* Memory: {first:.0} MiB after a fifth of the time, {last:.0} MiB at the end; slope {slope:.1} MiB/h"
                )?;
            }
            None => writeln!(f, "* Memory: not known")?,
        }
        self.problems.iter().try_for_each(|problem| writeln!(f, "* {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(ready: Ended) -> Vec<Timed> {
        let request = |work, ended| (work, Duration::ZERO, Duration::from_millis(3), ended);
        let mut all: Vec<Timed> = WORKS.map(|work| request(work, Ended::Done)).into();
        all.extend([request(Work::Embed, Ended::Refused), request(Work::Ready, ready)]);
        all
    }

    fn looks(bytes: impl Fn(u64) -> u64) -> Vec<Look> {
        (0..100).map(|second| Look { seconds: second as f64, bytes: bytes(second) }).collect()
    }

    #[test]
    fn refusals_hold_and_failures_do_not() {
        let good = SoakReport::of(100.0, requests(Ended::Done), looks(|_| 1000));
        assert!(good.holds(), "{good}");
        assert_eq!(good.by_work[&Work::Embed].refused, 1);
        assert!((good.by_work[&Work::Ask].milliseconds[3] - 3.0).abs() < 1e-9);
        let bad = SoakReport::of(100.0, requests(Ended::Failed("503".into())), looks(|_| 1000));
        assert!(!bad.holds() && bad.problems == ["0 s: 503"], "{bad}");
        let mut idle = requests(Ended::Done);
        idle.retain(|(work, ..)| *work != Work::Ask);
        assert!(!SoakReport::of(100.0, idle, looks(|_| 1000)).holds());
    }

    #[test]
    fn memory_may_grow_while_caches_fill_and_not_after() {
        let warming = SoakReport::of(100.0, requests(Ended::Done), looks(|second| 1000 + 100 * second.min(20)));
        assert!(warming.holds(), "{warming}");
        assert!(warming.memory.unwrap().2.abs() < 1e-6);
        let growing = SoakReport::of(100.0, requests(Ended::Done), looks(|second| 1000 + 10 * second));
        assert!(!growing.holds(), "{growing}");
        let (first, last, slope) = growing.memory.unwrap();
        assert_eq!((first, last), (1245, 1945), "medians of ten numbers");
        assert!((slope - 36_000.0).abs() < 1e-6);
    }
}
