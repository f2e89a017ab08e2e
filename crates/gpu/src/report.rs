//! Rows of results: checks with their tolerances, measurements with their units.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use kernels::cuda::QuantisedProducts;
use kernels::cuda::device::DeviceInfo;

/// The whole run is to end within ten minutes: nothing is begun after this.
const MOST: Duration = Duration::from_mins(9);

/// What was found so far.
#[derive(Debug)]
pub struct Report {
    card: String,
    started: Instant,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    part: &'static str,
    name: String,
    value: f64,
    unit: &'static str,
    /// A check's verdict; measurements have none.
    good: Option<bool>,
}

impl Report {
    /// An empty report about a GPU, of a run that started at `started`.
    pub fn new(card: &DeviceInfo, started: Instant) -> Report {
        let (major, minor) = card.capability;
        let gib = card.total as f64 / f64::from(1 << 30);
        let card = format!("{}, compute capability {major}.{minor}, {gib:.1} GiB", card.name);
        Report { card, started, rows: Vec::new() }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// The time left to the run.
    pub fn left(&self) -> Duration {
        MOST.saturating_sub(self.started.elapsed())
    }

    /// An error that must not be above a tolerance; no number is above every tolerance.
    pub fn check(&mut self, part: &'static str, name: impl Into<String>, error: f64, tolerance: f64) {
        let good = error <= tolerance;
        let name = format!("{} (at most {tolerance:.1e})", name.into());
        self.push(Row { part, name, value: error, unit: "error", good: Some(good) });
    }

    /// What was found of candle's quantised products when the GPU was opened: slow ones are right as well.
    pub fn products(&mut self, found: QuantisedProducts) {
        let wrong = if found == QuantisedProducts::Wrong { 1.0 } else { 0.0 };
        self.check("quantised", format!("candle's products of quantised weights: {found:?}"), wrong, 0.0);
    }

    /// A measurement.
    pub fn measured(&mut self, part: &'static str, name: impl Into<String>, value: f64, unit: &'static str) {
        self.push(Row { part, name: name.into(), value, unit, good: None });
    }

    /// A value that was measured before, by its name.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.rows.iter().find(|row| row.name == name).map(|row| row.value)
    }

    /// A part that could not be done.
    pub fn failed(&mut self, part: &str, reason: &str) {
        let name = format!("{part}: {reason}");
        self.push(Row { part: "failed", name, value: f64::NAN, unit: "", good: Some(false) });
    }

    /// Something that was not done and need not have been.
    pub fn left_out(&mut self, what: &str, reason: &str) {
        let name = format!("{what}: {reason}");
        self.push(Row { part: "left out", name, value: f64::NAN, unit: "", good: None });
    }

    /// True if no check has failed.
    pub fn is_good(&self) -> bool {
        self.rows.iter().all(|row| row.good != Some(false))
    }

    fn push(&mut self, row: Row) {
        let verdict = row.good.map_or("", |good| if good { "  ok" } else { "  WRONG" });
        eprintln!("  {} {:.4e} {}{verdict}", row.name, row.value, row.unit);
        self.rows.push(row);
    }

    /// Writes `results.csv` and `summary.md`.
    pub fn write(&self, folder: &Path) -> std::io::Result<()> {
        let mut csv = String::from("part,name,value,unit,good\n");
        let mut summary = format!("# {}\n\n{:.0} seconds.\n\n", self.card, self.seconds());
        summary.push_str("| part | what | value | unit | |\n|---|---|---:|---|---|\n");
        for Row { part, name, value, unit, good } in &self.rows {
            let good = good.map_or("", |good| if good { "ok" } else { "wrong" });
            let quoted = name.replace('"', "\"\"").replace('\n', " ");
            // Writing into a string does not fail.
            let _ = writeln!(csv, "{part},\"{quoted}\",{value:e},{unit},{good}");
            let cell = name.replace('|', "/").replace('\n', " ");
            let _ = writeln!(summary, "| {part} | {cell} | {value:.4} | {unit} | {good} |");
        }
        std::fs::write(folder.join("results.csv"), csv)?;
        std::fs::write(folder.join("summary.md"), summary)
    }
}
