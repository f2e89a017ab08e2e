//! A load test: many concurrent streams for a while, without an error, a lost token or growing memory.
//!
//! A few questions are first asked one by one, not streamed. Greedy answers do not depend on other requests, so every
//! stream must return the same text and the same number of tokens.

use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use calls::Sampling;
use serde::Serialize;

use super::service::{Heard, Service};
use super::workload::words;
use crate::Result;

/// Questions; the streams cycle through them.
const QUESTIONS: usize = 16;
/// Words of the shortest question. Each is longer than the one before, so that streams are at different positions.
const WORDS: usize = 8;
/// The most tokens of an answer.
const TOKENS: usize = 24;
/// The interval between two samples of the server's memory.
const LOOK: Duration = Duration::from_millis(250);
/// Memory counts as flat if the second half needs at most this much more than the first.
const GROWTH: f64 = 1.05;
/// The number of reported problems.
const SHOWN: usize = 5;

/// The result.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct LoadReport {
    pub streams: usize,
    pub seconds: f64,
    pub answers: usize,
    pub output_tokens: usize,
    /// Requests that failed.
    pub errors: usize,
    /// Answers that differ from those without a stream.
    pub different: usize,
    /// The first few of both.
    pub problems: Vec<String>,
    /// The server's memory over time, if it is known.
    pub memory: Vec<Look>,
}

/// A sample of the server's memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Look {
    /// Since the streams began.
    pub seconds: f64,
    pub bytes: u64,
}

/// Loads a server with this many streams. `memory` returns the bytes of its process, if they are known.
///
/// # Errors
/// If the questions are not answered one by one.
pub fn load(
    service: &Service,
    streams: usize,
    time: Duration,
    memory: &(dyn Fn() -> Option<u64> + Sync),
) -> Result<LoadReport> {
    let questions: Vec<String> = (0..QUESTIONS).map(|question| words(question, WORDS * (question + 1))).collect();
    let answers = questions
        .iter()
        .map(|question| service.whole(question, TOKENS, &Sampling::GREEDY))
        .collect::<Result<Vec<Heard>>>()?;
    let report = Mutex::new(LoadReport { streams, ..LoadReport::default() });
    let (started, over) = (Instant::now(), AtomicBool::new(false));
    thread::scope(|scope| {
        let (report, over, questions, answers) = (&report, &over, &questions, &answers);
        let look = scope.spawn(move || looks(memory, started, over));
        let stream = move |number: usize| {
            let mut turn = number;
            while started.elapsed() < time {
                let question = turn % QUESTIONS;
                let heard = service.stream(&questions[question], TOKENS, &Sampling::GREEDY);
                report.lock().unwrap_or_else(PoisonError::into_inner).take(heard, &answers[question]);
                turn += 1;
            }
        };
        let threads: Vec<_> = (0..streams).map(|number| scope.spawn(move || stream(number))).collect();
        threads.into_iter().for_each(|thread| drop(thread.join()));
        over.store(true, Ordering::Relaxed);
        let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
        report.seconds = started.elapsed().as_secs_f64();
        report.memory = look.join().unwrap_or_default();
    });
    Ok(report.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn looks(memory: &dyn Fn() -> Option<u64>, started: Instant, over: &AtomicBool) -> Vec<Look> {
    let mut looks = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let seconds = started.elapsed().as_secs_f64();
        looks.extend(memory().map(|bytes| Look { seconds, bytes }));
        thread::sleep(LOOK);
    }
    looks
}

impl LoadReport {
    fn take(&mut self, heard: Result<Heard>, want: &Heard) {
        match heard {
            Err(error) => {
                self.errors += 1;
                self.problem(error.to_string());
            }
            Ok(heard) => {
                self.answers += 1;
                self.output_tokens += heard.output_tokens;
                if (&heard.text, heard.output_tokens) != (&want.text, want.output_tokens) {
                    self.different += 1;
                    self.problem(format!("{:?} instead of {:?}", heard.text, want.text));
                }
            }
        }
    }

    fn problem(&mut self, problem: String) {
        if self.problems.len() < SHOWN {
            self.problems.push(problem);
        }
    }

    /// The peak memory in each half of the time.
    pub fn halves_bytes(&self) -> Option<(u64, u64)> {
        let most = |second: bool| {
            let half = self.memory.iter().filter(|look| (look.seconds > self.seconds / 2.0) == second);
            half.map(|look| look.bytes).max()
        };
        Some((most(false)?, most(true)?))
    }

    /// True if no request failed, nothing was lost and memory stayed flat, as far as it is known.
    pub fn holds(&self) -> bool {
        let flat = self.halves_bytes().is_none_or(|(first, second)| second as f64 <= first as f64 * GROWTH);
        self.errors == 0 && self.different == 0 && self.answers >= self.streams && flat
    }

    /// The memory samples.
    pub fn to_csv(&self) -> String {
        let line = |look: &Look| format!("{:.2},{}\n", look.seconds, look.bytes);
        "seconds,bytes\n".to_owned() + &self.memory.iter().map(line).collect::<String>()
    }
}

impl fmt::Display for LoadReport {
    /// Writes it as Markdown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadReport { streams, seconds, answers, output_tokens, errors, different, .. } = self;
        writeln!(
            f,
            "# Load\n\n{streams} streams at once for {seconds:.0} s: {answers} answers, {output_tokens} tokens.\n"
        )?;
        writeln!(f, "* Errors: {errors}\n* Answers that are not those without a stream: {different}")?;
        match self.halves_bytes() {
            Some((first, second)) => {
                let [first, second] = [first, second].map(|bytes| bytes as f64 / 1e6);
                writeln!(f, "* Memory: {first:.0} MB in the first half at most, {second:.0} MB in the second")?;
            }
            None => writeln!(f, "* Memory: not seen")?,
        }
        self.problems.iter().try_for_each(|problem| writeln!(f, "* {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_load_test_is_reported() {
        let good = || {
            let memory = vec![Look { seconds: 1.0, bytes: 1000 }, Look { seconds: 9.0, bytes: 1040 }];
            LoadReport { streams: 2, seconds: 10.0, answers: 2, memory, ..LoadReport::default() }
        };
        let check = |report: LoadReport, holds: bool| assert_eq!(report.holds(), holds, "{report}");
        check(good(), true);
        check(LoadReport { errors: 1, ..good() }, false);
        check(LoadReport { different: 1, ..good() }, false);
        check(LoadReport { answers: 1, ..good() }, false);
        check(LoadReport { memory: Vec::new(), ..good() }, true);
        let grown = vec![Look { seconds: 1.0, bytes: 1000 }, Look { seconds: 9.0, bytes: 1060 }];
        check(LoadReport { memory: grown, ..good() }, false);
    }

    #[test]
    fn lost_tokens_are_reported() {
        let want = Heard { text: "One two".into(), output_tokens: 2, ..Heard::default() };
        let check = |heard: Heard, different: usize| {
            let mut report = LoadReport::default();
            report.take(Ok(heard), &want);
            assert_eq!((report.different, report.problems.len()), (different, different));
        };
        check(want.clone(), 0);
        check(Heard { text: "One".into(), ..want.clone() }, 1);
        check(Heard { output_tokens: 1, ..want.clone() }, 1);
    }
}
