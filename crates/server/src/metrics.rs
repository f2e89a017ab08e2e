//! What is counted, in Prometheus' text form: numbers only, never a word of what is asked.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A counted quantity: its name, its kind for Prometheus, and what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Quantity {
    Requests,
    RequestSeconds,
    InFlight,
    Calls,
    FailedCalls,
    PromptTokens,
    CachedTokens,
    OutputTokens,
    CallSeconds,
    FirstTextSeconds,
    FirstTexts,
    EmbeddedTexts,
    Jobs,
}

impl Quantity {
    const ALL: [(Quantity, &'static str, &'static str, &'static str); 13] = [
        (Quantity::Requests, "memlocal_requests_total", "counter", "Requests answered, by route and status."),
        (Quantity::RequestSeconds, "memlocal_request_seconds_total", "counter", "Time until the head of the answer."),
        (Quantity::InFlight, "memlocal_requests_in_flight", "gauge", "Requests whose answer has not begun."),
        (Quantity::Calls, "memlocal_calls_total", "counter", "Calls that language models have answered, by role."),
        (Quantity::FailedCalls, "memlocal_failed_calls_total", "counter", "Calls that were refused or failed."),
        (Quantity::PromptTokens, "memlocal_prompt_tokens_total", "counter", "Tokens of prompts, cached ones included."),
        (Quantity::CachedTokens, "memlocal_cached_tokens_total", "counter", "Prompt tokens that were there already."),
        (Quantity::OutputTokens, "memlocal_output_tokens_total", "counter", "Tokens written."),
        (Quantity::CallSeconds, "memlocal_call_seconds_total", "counter", "From submission to the last token."),
        (
            Quantity::FirstTextSeconds,
            "memlocal_first_text_seconds_total",
            "counter",
            "From submission to the first text.",
        ),
        (Quantity::FirstTexts, "memlocal_first_texts_total", "counter", "Calls whose text was read along."),
        (Quantity::EmbeddedTexts, "memlocal_embedded_texts_total", "counter", "Texts turned into vectors."),
        (Quantity::Jobs, "memlocal_jobs_running", "gauge", "Ingest jobs that have not ended."),
    ];
}

/// All counts so far, by quantity and labels.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    counts: Mutex<BTreeMap<(Quantity, String), f64>>,
}

impl Metrics {
    /// Adds to a quantity; `labels` is empty or in Prometheus' form without braces.
    pub fn add(&self, quantity: Quantity, labels: String, amount: f64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((quantity, labels)).or_default() += amount;
    }

    /// Adds a time.
    pub fn time(&self, quantity: Quantity, labels: String, time: Duration) {
        self.add(quantity, labels, time.as_secs_f64());
    }

    /// The whole in Prometheus' text form.
    pub fn render(&self) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for (quantity, name, kind, help) in Quantity::ALL {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for ((_, labels), count) in
                counts.range((quantity, String::new())..).take_while(|((q, _), _)| *q == quantity)
            {
                let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                let _ = writeln!(text, "{name}{labels} {count}");
            }
        }
        text
    }
}
