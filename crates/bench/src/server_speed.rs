//! `memlocal-bench serve`: speed of a server with concurrent clients, beside another server; or a test under load.

use std::env::consts::EXE_SUFFIX;
use std::fmt::Display;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use eval::speed::{ClientLoad, Service, load, measure_clients, soak};
use eval::{Beginning, Manifest, RunFolder, memory_of};
use launch::eprintln;
use launch::failure::refusal;
use launch::flags::{GlobalFlags, KvFormat};
use launch::home;
use launch::output::{print, print_line};
use launch::typed_model::name;
use models::KvPrecision;
use remote::Address;
use serde::Serialize;

use crate::args::ServeBench;
use crate::engine_speed::{print_lines, report};
use crate::provenance::{command_line, digest};

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
    for url in [&bench.against, &bench.url].into_iter().flatten() {
        if home::fetching(global)?.offline && !url.parse::<Address>()?.is_loopback() {
            bail!("{url} is not on this machine, which --offline forbids");
        }
    }
    let peer = bench.against.as_deref().map(Service::find).transpose()?;
    let model = name(&bench.model);
    let last = model.rsplit('/').next().unwrap_or(&model).trim_end_matches(".gguf").replace(':', "-");
    let kind = if bench.soak {
        "soak"
    } else if bench.load {
        "load"
    } else {
        "serve"
    };
    let folder = bench.out.as_ref().map(|out| RunFolder::create(out, &format!("{kind}-{last}"))).transpose()?;
    let serving = if bench.url.is_none() { Some(Serving::start(bench, global)?) } else { None };
    let url = bench.url.as_ref().or(serving.as_ref().map(|serving| &serving.url));
    let ours = Service::find(url.context("there is no server")?)?;
    let keep = Keeping { folder, began, model: &bench.model, global };
    if let Some(serving) = serving.as_ref().filter(|_| bench.soak) {
        soaked(bench, serving, keep)
    } else if bench.load {
        let process = serving.as_ref().map(|serving| serving.child.id());
        hold(bench, &ours, process, keep)
    } else {
        compare(bench, &ours, peer.as_ref(), keep)
    }
}

/// Runs the load test.
fn hold(bench: &ServeBench, ours: &Service, process: Option<u32>, keep: Keeping<'_>) -> Result<()> {
    let streams = bench.clients.first().copied().unwrap_or(STREAMS);
    let time = bench.seconds.map_or(LOAD, Duration::from_secs);
    let found = load(ours, streams, time, &|| memory_of(process?))?;
    keep.write(&found.to_csv(), &found)?;
    if bench.json {
        print_line(serde_json::to_string_pretty(&found)?)?;
    } else {
        print(&found)?;
    }
    ensure!(found.holds(), "the server failed the load test");
    Ok(())
}

/// Runs the soak test.
fn soaked(bench: &ServeBench, serving: &Serving, keep: Keeping<'_>) -> Result<()> {
    let time = bench.seconds.map_or(SOAK, Duration::from_secs);
    let process = serving.child.id();
    let found = soak(&serving.url, ADMITTED, time, &|| memory_of(process))?;
    if let Some(folder) = &keep.folder {
        found.keep_memory(folder.path())?;
    }
    keep.write(&found.to_csv(), &found)?;
    if bench.json {
        print_line(serde_json::to_string_pretty(&found)?)?;
    } else {
        print(&found)?;
    }
    ensure!(found.holds(), "the server failed the soak test");
    Ok(())
}

/// Measures both servers in turns.
fn compare(bench: &ServeBench, ours: &Service, peer: Option<&Service>, keep: Keeping<'_>) -> Result<()> {
    let clients = if bench.clients.is_empty() { &CLIENTS[..] } else { &bench.clients };
    let time = bench.seconds.map_or(CLIENT_TIME, Duration::from_secs);
    let (decodings, repetitions) = (&bench.decoding[..], bench.repetitions);
    let items = measure_clients(&ClientLoad { ours, peer, clients, decodings, time, repetitions }, &mut report)?;
    report("");
    keep.write(&items.to_csv(), &items)?;
    if bench.json { print_lines(&items) } else { print(&items) }
}

/// The run folder, and the provenance of the numbers.
struct Keeping<'a> {
    folder: Option<RunFolder>,
    began: Beginning,
    model: &'a str,
    global: &'a GlobalFlags,
}

impl Keeping<'_> {
    fn write(self, results: &str, summary: &(impl Display + Serialize)) -> Result<()> {
        let Some(folder) = self.folder else { return Ok(()) };
        let models = vec![digest(self.model, None::<&str>, self.global)?];
        let path = folder.write(&Manifest::new(self.began, models, Vec::new()), results, summary)?;
        eprintln!("kept in {}", path.display());
        Ok(())
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
        command.arg("--data-dir").arg(home::folder(global)?);
        command.args(bench.soak.then(|| format!("--max-requests={ADMITTED}")));
        command.args(global.threads.map(|threads| format!("--threads={threads}")));
        command.args(global.kv_tokens.map(|tokens| format!("--kv-tokens={tokens}")));
        command.args((global.kv != KvFormat::F16).then(|| format!("--kv={}", KvPrecision::from(global.kv))));
        command.arg(format!("--draft-tokens={}", global.draft_tokens));
        command.args(global.offline.then_some("--offline"));
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
