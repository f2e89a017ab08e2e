//! Metrics in Prometheus' text format, by tenant; they contain numbers only, never content.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use calls::TenantId;

/// A counted quantity: name, Prometheus type and help text.
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
    EmbeddedTexts,
    Jobs,
}

impl Quantity {
    const ALL: [(Quantity, &'static str, &'static str, &'static str); 11] = [
        (Quantity::Requests, "memlocal_requests_total", "counter", "Completed requests, by route and status."),
        (Quantity::RequestSeconds, "memlocal_request_seconds_total", "counter", "Time until the response has ended."),
        (Quantity::InFlight, "memlocal_requests_in_flight", "gauge", "Requests whose response has not ended."),
        (Quantity::Calls, "memlocal_calls_total", "counter", "Successful calls of language models, by agent."),
        (Quantity::FailedCalls, "memlocal_failed_calls_total", "counter", "Refused and failed calls."),
        (Quantity::PromptTokens, "memlocal_prompt_tokens_total", "counter", "Prompt tokens, including cached ones."),
        (Quantity::CachedTokens, "memlocal_cached_tokens_total", "counter", "Prompt tokens found in the prefix cache."),
        (Quantity::OutputTokens, "memlocal_output_tokens_total", "counter", "Generated tokens."),
        (Quantity::CallSeconds, "memlocal_call_seconds_total", "counter", "From submission to the last token."),
        (Quantity::EmbeddedTexts, "memlocal_embedded_texts_total", "counter", "Embedded texts."),
        (Quantity::Jobs, "memlocal_jobs_running", "gauge", "Ingest jobs that have not ended."),
    ];
}

/// A duration recorded in a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Latency {
    /// Time to first token: from submission to the first text, for streamed calls.
    FirstToken,
    /// Inter-token latency: from one piece of text to the next.
    InterToken,
}

impl Latency {
    const ALL: [(Latency, &'static str, &'static str); 2] = [
        (Latency::FirstToken, "memlocal_ttft_seconds", "Time to first token, by agent."),
        (Latency::InterToken, "memlocal_itl_seconds", "Inter-token latency, by agent."),
    ];

    /// Upper bounds of the buckets in seconds; the last bucket is unbounded.
    fn bounds(self) -> [f64; 11] {
        match self {
            Latency::FirstToken => [0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0],
            Latency::InterToken => [0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0],
        }
    }
}

/// Cumulative counts per bucket, total count and sum.
#[derive(Debug, Clone, Copy, Default)]
struct Histogram {
    buckets: [u64; 11],
    count: u64,
    sum: f64,
}

impl Histogram {
    fn add(&mut self, other: &Histogram) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(buckets, more)| *buckets += more);
        self.count += other.count;
        self.sum += other.sum;
    }
}

/// A value per tenant; the server's own are counted under the local tenant.
type ByTenant<T> = BTreeMap<TenantId, T>;

/// All counts so far, by quantity and labels.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    counts: Mutex<BTreeMap<(Quantity, String), ByTenant<f64>>>,
    latencies: Mutex<BTreeMap<(Latency, String), ByTenant<Histogram>>>,
}

/// The values of one tenant, or of all.
fn values_of<T>(values: &ByTenant<T>, tenant: Option<TenantId>) -> impl Iterator<Item = &T> {
    values.iter().filter(move |(known, _)| tenant.is_none_or(|tenant| tenant == **known)).map(|(_, value)| value)
}

impl Metrics {
    /// Adds to a quantity; `labels` is empty or in Prometheus' format without braces.
    pub fn add(&self, tenant: TenantId, quantity: Quantity, labels: String, amount: f64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((quantity, labels)).or_default().entry(tenant).or_default() += amount;
    }

    /// Adds a duration.
    pub fn add_duration(&self, tenant: TenantId, quantity: Quantity, labels: String, time: Duration) {
        self.add(tenant, quantity, labels, time.as_secs_f64());
    }

    /// Records a duration; `labels` must not be empty.
    pub fn record_latency(&self, tenant: TenantId, latency: Latency, labels: &str, time: Duration) {
        let seconds = time.as_secs_f64();
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = latencies.entry((latency, labels.to_owned())).or_default().entry(tenant).or_default();
        for (buckets, bound) in histogram.buckets.iter_mut().zip(latency.bounds()) {
            *buckets += u64::from(seconds <= bound);
        }
        histogram.count += 1;
        histogram.sum += seconds;
    }

    /// The metrics of one tenant, or of all, in Prometheus' text format.
    pub fn render(&self, tenant: Option<TenantId>) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for (quantity, name, kind, help) in Quantity::ALL {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for ((_, labels), by_tenant) in
                counts.range((quantity, String::new())..).take_while(|((q, _), _)| *q == quantity)
            {
                let Some(count) = values_of(by_tenant, tenant).copied().reduce(|all, more| all + more) else {
                    continue;
                };
                let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
                let _ = writeln!(text, "{name}{labels} {count}");
            }
        }
        let latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        for (latency, name, help) in Latency::ALL {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
            for ((_, labels), by_tenant) in latencies.iter().filter(|((known, _), _)| *known == latency) {
                let mut all = Histogram::default();
                values_of(by_tenant, tenant).for_each(|one| all.add(one));
                let Histogram { buckets, count, sum } = all;
                if count == 0 {
                    continue;
                }
                for (bound, buckets) in latency.bounds().iter().zip(buckets) {
                    let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {buckets}");
                }
                let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
                let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}\n{name}_count{{{labels}}} {count}");
            }
        }
        text
    }
}
