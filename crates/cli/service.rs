//! `memlocal bench serve`: how fast a server answers its clients beside another one, or whether it holds under a load.

use std::fmt::Display;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use eval::speed::{Service, Visits, load, visit};
use eval::{Beginning, Manifest, RunFolder, memory_of};
use remote::Address;
use serde::Serialize;

use crate::args::{Machine, ServeBench};
use crate::bench::{digest, typed};
use crate::home;
use crate::machine::name;
use crate::output::{print, print_line};
use crate::speed::{print_lines, report};

/// Clients of a measurement, and of a load.
const CLIENTS: [usize; 3] = [1, 8, 32];
const STREAMS: usize = 64;
/// How long they ask.
const VISIT: Duration = Duration::from_secs(20);
const LOAD: Duration = Duration::from_mins(2);

pub fn run(bench: &ServeBench, machine: &Machine) -> Result<()> {
    let began = Beginning::now(typed());
    for url in [&bench.against, &bench.url].into_iter().flatten() {
        if home::fetching(machine)?.offline && !url.parse::<Address>()?.is_loopback() {
            bail!("{url} is not on this machine, which --offline forbids");
        }
    }
    let peer = bench.against.as_deref().map(Service::find).transpose()?;
    let model = name(&bench.model);
    let last = model.rsplit('/').next().unwrap_or(&model).trim_end_matches(".gguf").replace(':', "-");
    let kind = if bench.load { "load" } else { "serve" };
    let folder = bench.out.as_ref().map(|out| RunFolder::create(out, &format!("{kind}-{last}"))).transpose()?;
    let serving = if bench.url.is_none() { Some(Serving::start(bench, machine)?) } else { None };
    let url = bench.url.as_ref().or(serving.as_ref().map(|serving| &serving.url));
    let ours = Service::find(url.context("there is no server")?)?;
    let keep = Keeping { folder, began, model: &bench.model, machine };
    if bench.load {
        let process = serving.as_ref().map(|serving| serving.child.id());
        hold(bench, &ours, process, keep)
    } else {
        compare(bench, &ours, peer.as_ref(), keep)
    }
}

/// Lets many streams run at once.
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
    ensure!(found.holds(), "the server does not hold under this load");
    Ok(())
}

/// Measures both servers in turns.
fn compare(bench: &ServeBench, ours: &Service, peer: Option<&Service>, keep: Keeping<'_>) -> Result<()> {
    let clients = if bench.clients.is_empty() { &CLIENTS[..] } else { &bench.clients };
    let time = bench.seconds.map_or(VISIT, Duration::from_secs);
    let items = visit(&Visits { ours, peer, clients, time, repetitions: bench.repetitions }, &mut report)?;
    report("");
    keep.write(&items.to_csv(), &items)?;
    if bench.json { print_lines(&items) } else { print(&items) }
}

/// Where the numbers go, and what they come from.
struct Keeping<'a> {
    folder: Option<RunFolder>,
    began: Beginning,
    model: &'a str,
    machine: &'a Machine,
}

impl Keeping<'_> {
    fn write(self, results: &str, summary: &(impl Display + Serialize)) -> Result<()> {
        let Some(folder) = self.folder else { return Ok(()) };
        let models = vec![digest(self.model, None::<&str>, self.machine)?];
        let path = folder.write(&Manifest::new(self.began, models, Vec::new()), results, summary)?;
        eprintln!("kept in {}", path.display());
        Ok(())
    }
}

/// A server of our own, which ends with the value.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    /// Starts this very program on a free port and waits until it listens.
    fn start(bench: &ServeBench, machine: &Machine) -> Result<Serving> {
        let mut command = Command::new(std::env::current_exe().context("this program has no path")?);
        command.args(["serve", "--port", "0", "--model", &bench.model, "--embedder", &bench.embedder]);
        command.arg("--data-dir").arg(home::folder(machine)?);
        command.args(machine.threads.map(|threads| format!("--threads={threads}")));
        command.args(machine.kv_tokens.map(|tokens| format!("--kv-tokens={tokens}")));
        command.arg(format!("--guesses={}", machine.guesses));
        command.args(machine.offline.then_some("--offline"));
        // A line for each request would be many.
        command.env("RUST_LOG", "warn").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("the server cannot be started")?;
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

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
