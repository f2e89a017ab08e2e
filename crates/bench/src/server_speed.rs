//! `memlocal-bench serve`: speed of a server with concurrent clients, beside another server; or a test under load.

use std::env::consts::EXE_SUFFIX;
use std::fmt::Display;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use eval::speed::{ClientLoad, Service, load, measure_clients, soak};
use eval::{Beginning, Manifest, ModelDigest, RunFolder, memory_of};
use launch::check_allowed;
use launch::failure::refusal;
use launch::flags::GlobalFlags;
use launch::output::print;
use serde::Serialize;

use crate::args::ServeBench;
use crate::provenance::{command_line, digests, embedder};
use crate::results::{folder_name, keep, show, show_lines, show_status};

/// Default numbers of clients of a measurement, and of a load test.
const CLIENTS: [usize; 3] = [1, 8, 32];
const STREAMS: usize = 64;
/// Default durations.
const CLIENT_TIME: Duration = Duration::from_secs(20);
const LOAD: Duration = Duration::from_mins(2);
const SOAK: Duration = Duration::from_mins(30);
/// Requests that a server under the soak test admits at once.
const ADMITTED: usize = 8;

pub fn run(bench: &ServeBench, global: &GlobalFlags) -> Result<()> {
    let began = Beginning::now(command_line());
    if bench.load && bench.clients.len() > 1 {
        return Err(refusal("a load test has one number of clients", "run it once for each: --load --clients N"));
    }
    [&bench.against, &bench.url].into_iter().flatten().try_for_each(|url| check_allowed(url, global))?;
    let peer = bench.against.as_deref().map(Service::find).transpose()?;
    let running = bench.url.as_deref().map(Service::find).transpose()?;
    let kind = match (bench.soak, bench.load) {
        (true, _) => "soak",
        (_, true) => "load",
        _ => "serve",
    };
    let name = folder_name(kind, running.as_ref().map_or(bench.model.as_str(), Service::model));
    let folder = bench.out.as_ref().map(|out| RunFolder::create(out, &name)).transpose()?;
    let started = if running.is_none() { Some(Serving::start(bench, global)?) } else { None };
    let url = bench.url.as_ref().or(started.as_ref().map(|serving| &serving.url)).context("there is no server")?;
    let ours = running.map_or_else(|| Service::find(url), Ok)?;
    let keeping = Keeping { folder, began, bench, ours: &ours, global };
    if let Some(serving) = started.as_ref().filter(|_| bench.soak) {
        soaked(bench, serving, keeping)
    } else if bench.load {
        let process = started.as_ref().map(|serving| serving.child.id());
        hold(bench, &ours, process, keeping)
    } else {
        compare(bench, &ours, peer.as_ref(), keeping)
    }
}

/// Runs the load test.
fn hold(bench: &ServeBench, ours: &Service, process: Option<u32>, keeping: Keeping<'_>) -> Result<()> {
    let streams = bench.clients.first().copied().unwrap_or(STREAMS);
    let time = bench.seconds.map_or(LOAD, Duration::from_secs);
    let found = load(ours, streams, time, &|| memory_of(process?))?;
    keeping.write(&found.to_csv(), &found)?;
    show(&found, bench.json)?;
    ensure!(found.holds(), "the server failed the load test");
    Ok(())
}

/// Runs the soak test.
fn soaked(bench: &ServeBench, serving: &Serving, keeping: Keeping<'_>) -> Result<()> {
    let time = bench.seconds.map_or(SOAK, Duration::from_secs);
    let process = serving.child.id();
    let found = soak(&serving.url, ADMITTED, time, &|| memory_of(process))?;
    if let Some(folder) = &keeping.folder {
        found.keep_memory(folder.path())?;
    }
    keeping.write(&found.to_csv(), &found)?;
    show(&found, bench.json)?;
    ensure!(found.holds(), "the server failed the soak test");
    Ok(())
}

/// Measures both servers in turns.
fn compare(bench: &ServeBench, ours: &Service, peer: Option<&Service>, keeping: Keeping<'_>) -> Result<()> {
    let clients = if bench.clients.is_empty() { &CLIENTS[..] } else { &bench.clients };
    let time = bench.seconds.map_or(CLIENT_TIME, Duration::from_secs);
    let (decodings, repetitions) = (&bench.decoding[..], bench.repetitions);
    let items = measure_clients(&ClientLoad { ours, peer, clients, decodings, time, repetitions }, &mut show_status)?;
    show_status("");
    keeping.write(&items.to_csv(), &items)?;
    if bench.json { show_lines(&items) } else { print(&items) }
}

/// The run folder, and the provenance of the numbers.
struct Keeping<'a> {
    folder: Option<RunFolder>,
    began: Beginning,
    bench: &'a ServeBench,
    ours: &'a Service,
    global: &'a GlobalFlags,
}

impl Keeping<'_> {
    fn write(self, results: &str, report: &(impl Display + Serialize)) -> Result<()> {
        let Keeping { folder: Some(folder), began, bench, ours, global } = self else { return Ok(()) };
        let models = match &bench.url {
            // Of the model of a server that was running only the name is known.
            Some(url) => {
                let name = store::without_secrets(&format!("{} at {url}", ours.model()));
                vec![ModelDigest { name, files: Vec::new() }]
            }
            None => digests([(bench.model.as_str(), None), embedder(&bench.embedder, None)], &[], global)?,
        };
        keep(folder, &Manifest::new(began, models, Vec::new()), results, report)
    }
}

/// A server that ends when the value is dropped.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    /// Starts `memlocal serve` on a free port and waits until it listens.
    fn start(bench: &ServeBench, global: &GlobalFlags) -> Result<Serving> {
        let program = memlocal()?;
        let mut command = Command::new(&program);
        command.args(["serve", "--port", "0", "--model", &bench.model, "--embedder", &bench.embedder]);
        command.args(global.as_arguments()).envs(global.vectors.iter().map(|url| ("MEMLOCAL_VECTORS", url)));
        command.args(bench.soak.then(|| format!("--max-requests={ADMITTED}")));
        // Requests are not logged, since there are many.
        command.env("RUST_LOG", "warn").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("{} cannot be started", program.display()))?;
        let output = child.stdout.take();
        let mut serving = Serving { child, url: String::new() };
        let mut line = String::new();
        if let Some(output) = output {
            BufReader::new(output).read_line(&mut line).context("the server says nothing")?;
        }
        let url = line.trim().strip_prefix("memlocal listens on ").context("the server did not start")?;
        url.clone_into(&mut serving.url);
        Ok(serving)
    }
}

/// The program `memlocal`, which is installed beside this one.
fn memlocal() -> Result<PathBuf> {
    let here = std::env::current_exe().context("the path of this program is unknown")?;
    let program = here.with_file_name(format!("memlocal{EXE_SUFFIX}"));
    if program.exists() {
        return Ok(program);
    }
    let hint = "build it with `cargo build --release` in memlocal's repository, or name a running server with --url";
    Err(refusal(format!("{} is missing, which runs the server", program.display()), hint))
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::Args;

    #[test]
    fn flags_that_would_have_no_effect_are_refused() {
        let is_taken = |words: &str| {
            let all = ["memlocal-bench", "serve"].into_iter().chain(words.split_whitespace());
            Args::try_parse_from(all).is_ok()
        };
        let of_url = "--url http://127.0.0.1:1 --decoding greedy";
        for used in ["", "--load", "--soak", of_url, "--model a --embedder b --load"] {
            assert!(is_taken(used), "{used}");
        }
        for unused in [
            "--load --decoding greedy",
            "--load --repetitions 2",
            "--soak --decoding greedy",
            "--soak --repetitions 2",
            "--url http://127.0.0.1:1 --model a",
            "--url http://127.0.0.1:1 --embedder a",
        ] {
            assert!(!is_taken(unused), "{unused}");
        }
    }
}
