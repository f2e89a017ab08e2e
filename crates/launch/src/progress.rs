//! Progress on standard error: bars on a terminal, elsewhere a line every ten seconds.

use std::fmt;
use std::time::{Duration, Instant};

use calls::Usage;
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use memory::Progress;
use models::fetch;

use crate::eprintln;
use crate::output::{counted, printable};

/// Time between two lines where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// A bar for the file that is being downloaded.
#[derive(Default)]
pub struct Downloads {
    bar: Option<(String, Bar)>,
}

impl Downloads {
    /// Shows the progress of a file.
    pub fn report(&mut self, progress: fetch::Progress<'_>) {
        let fetch::Progress { file, done_bytes, total_bytes } = progress;
        if self.bar.as_ref().is_none_or(|(shown, _)| shown != file) {
            let template = match total_bytes {
                Some(_) => "{prefix} {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}{left}",
                None => "{prefix} {spinner} {bytes}, {bytes_per_sec}",
            };
            self.bar = Some((file.to_owned(), Bar::new(file, template)));
        }
        let Some((_, bar)) = &mut self.bar else { return };
        bar.set(done_bytes, total_bytes);
        bar.line_if_due(|| {
            let of = total_bytes.map_or_else(String::new, |total| format!(" of {}", HumanBytes(total)));
            format!("{file}: {}{of}", HumanBytes(done_bytes))
        });
    }
}

/// A bar for each step of preparation, one after the other.
#[derive(Default)]
pub struct Steps {
    bar: Option<(&'static str, Bar)>,
    /// Usage of all calls when the step began, and at the last report.
    costs: (Usage, Usage),
}

impl Steps {
    /// Shows the progress of a step.
    pub fn report(&mut self, progress: Progress) {
        self.report_with(progress, Usage::default());
    }

    /// Shows the progress of a step and the usage of its calls; `cost` is the usage of all calls so far.
    pub fn report_with(&mut self, progress: Progress, cost: Usage) {
        let Progress { step, unit, done, of } = progress;
        if self.bar.as_ref().is_some_and(|(shown, _)| *shown != step) {
            self.costs.0 = self.costs.1;
        }
        self.costs.1 = cost;
        if self.bar.as_ref().is_none_or(|(shown, _)| *shown != step) {
            let template = format!("{{prefix}} {{bar:30}} {{pos}} of {{len}} {unit}s, {{elapsed}} so far{{msg}}");
            self.bar = Some((step, Bar::new(step, &template)));
        }
        let Some((_, bar)) = &mut self.bar else { return };
        bar.set(done as u64, Some(of as u64));
        let took = bar.started.elapsed();
        let spent = spent(self.costs.0, cost);
        if done == of {
            bar.drawn.finish_and_clear();
            eprintln!("{step}: {} done in {:.1} s{spent}", counted(of, unit), took.as_secs_f32());
            (self.bar, self.costs.0) = (None, cost);
            return;
        }
        let pace = pace(done, of, unit, took) + &spent;
        bar.line_if_due(|| format!("{step}: {done} of {of} {unit}s{pace}"));
        bar.drawn.set_message(pace);
    }
}

/// A bar for the questions or calls of a run, some of which may be done when it begins.
pub struct Count {
    step: &'static str,
    unit: &'static str,
    begun: Option<(usize, Bar)>,
}

impl Count {
    /// Nothing is shown before the first report.
    pub fn new(step: &'static str, unit: &'static str) -> Count {
        Count { step, unit, begun: None }
    }

    /// Shows how many are done.
    pub fn report(&mut self, done: usize, of: usize) {
        let Count { step, unit, begun } = self;
        let (before, bar) = begun.get_or_insert_with(|| {
            let template = format!("{{prefix}} {{bar:30}} {{pos}} of {{len}} {unit}s, {{elapsed}} so far{{msg}}");
            (done.saturating_sub(1), Bar::new(step, &template))
        });
        bar.set(done as u64, Some(of as u64));
        let pace = pace(done - *before, of - *before, unit, bar.started.elapsed());
        bar.line_if_due(|| format!("{step}: {done} of {of} {unit}s{pace}"));
        bar.drawn.set_message(pace);
    }
}

/// Rate and remaining time, once something is done.
fn pace(done: usize, of: usize, unit: &str, took: Duration) -> String {
    if done == 0 {
        return String::new();
    }
    let each = took / u32::try_from(done).unwrap_or(u32::MAX);
    let left = each * u32::try_from(of - done).unwrap_or(u32::MAX);
    format!(", {:.1} {unit}s/min, {:#} left", 60.0 / each.as_secs_f64(), HumanDuration(left))
}

/// Usage between two reports, if there were calls.
fn spent(before: Usage, now: Usage) -> String {
    let since = |of: fn(&Usage) -> usize| of(&now).saturating_sub(of(&before));
    let calls = since(|usage| usage.calls);
    if calls == 0 {
        return String::new();
    }
    let prompt = counted(since(|usage| usage.prompt_tokens), "prompt token");
    format!(", {}, {prompt} ({} cached)", counted(calls, "call"), since(|usage| usage.cached_tokens))
}

/// A bar that becomes lines where there is no terminal.
struct Bar {
    drawn: ProgressBar,
    started: Instant,
    last_line: Instant,
}

impl Bar {
    fn new(prefix: &str, template: &str) -> Bar {
        let drawn = ProgressBar::no_length().with_prefix(printable(prefix));
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        drawn.set_style(style.with_key("left", write_left));
        drawn.enable_steady_tick(Duration::from_millis(200));
        Bar { drawn, started: Instant::now(), last_line: Instant::now() }
    }

    fn set(&self, done: u64, of: Option<u64>) {
        if let Some(of) = of {
            self.drawn.set_length(of);
        }
        self.drawn.set_position(done);
    }

    fn line_if_due(&mut self, line: impl FnOnce() -> String) {
        if self.drawn.is_hidden() && self.last_line.elapsed() >= BETWEEN_LINES {
            self.last_line = Instant::now();
            eprintln!("{}", line());
        }
    }
}

/// Prints the remaining time, once something is done.
fn write_left(state: &ProgressState, out: &mut dyn fmt::Write) {
    if state.pos() > 0 {
        let _ = write!(out, ", {:#} left", HumanDuration(state.eta()));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.drawn.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_remaining_time_follow_what_is_done() {
        let check = |done, of, seconds, want| assert_eq!(pace(done, of, "page", Duration::from_secs(seconds)), want);
        check(0, 10, 5, "");
        check(1, 10, 5, ", 12.0 pages/min, 45s left");
        check(10, 1000, 600, ", 1.0 pages/min, 17h left");
    }

    #[test]
    fn what_a_step_has_spent_is_what_calls_cost_since_it_began() {
        let usage =
            |calls, prompt_tokens, cached_tokens| Usage { calls, prompt_tokens, cached_tokens, ..Usage::default() };
        assert_eq!(spent(usage(2, 300, 100), usage(2, 300, 100)), "");
        assert_eq!(spent(usage(2, 300, 100), usage(3, 1000, 700)), ", 1 call, 700 prompt tokens (600 cached)");
    }
}
