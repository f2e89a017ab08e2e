//! `memlocal-bench engine`: speed of the engine on the workloads of the methods.

use std::path::PathBuf;

use anyhow::Result;
use calls::{Agent, Call, Caller, Embedder};
use engine::Engine;
use eval::speed::{EngineUnderTest, Items, Peer, Plan, SpeedReport, SpeedSuite, measure};
use eval::{Beginning, FileDigest, Manifest, RunFolder};
use launch::failure::refusal;
use launch::flags::{GlobalFlags, ModelFlags};
use launch::loader::start;
use launch::output::print;
use launch::typed_model::name;
use launch::{check_allowed, wait_for};

use crate::args::Speed;
use crate::provenance::{command_line, digests, embedder, language_models};
use crate::results::{folder_name, keep, show_lines, show_status};

pub fn run(bench: &Speed, global: &GlobalFlags) -> Result<()> {
    let began = Beginning::now(command_line());
    let suites = suites(bench);
    check_flags(bench, &suites)?;
    [&bench.against, &bench.embed_against].into_iter().flatten().try_for_each(|url| check_allowed(url, global))?;
    if let Some(process) = bench.against_process.filter(|process| eval::memory_of(*process).is_none()) {
        return Err(refusal(
            format!("nothing is known of the memory of process {process}"),
            "--against-process takes the number of a process that runs on this machine, under Linux",
        ));
    }
    let peer = bench.against.as_deref().map(Peer::connect).transpose()?;
    let embedding_peer = bench.embed_against.as_deref().map(Peer::connect).transpose()?;
    let folder_name = folder_name("engine", &bench.models.model);
    let folder = bench.out.as_ref().map(|out| RunFolder::create(out, &folder_name)).transpose()?;
    let ours = Ours::start(&bench.models, suites.iter().any(|suite| suite.embeds()), global)?;
    let plan = Plan {
        suites: &suites,
        preset: bench.preset,
        decodings: &bench.decoding,
        repetitions: bench.repetitions,
        peer: peer.as_ref(),
        embedding_peer: embedding_peer.as_ref(),
        conversations: bench.data.as_deref(),
        questions: bench.questions,
        documents: bench.docs.as_deref(),
    };
    let mut items = Items::default();
    let measured = wait_for(measure(plan, &ours, &mut items, &mut show_status));
    show_status("");
    let page = SpeedReport {
        model: name(&bench.models.model),
        quantise: bench.models.quantise.map(|format| format.to_string()),
        context_tokens: ours.caller().tokens().context_tokens(Agent::Researcher),
        peer: bench.against.as_deref().map(store::without_secrets),
        preset: bench.preset,
        repetitions: bench.repetitions,
        max_draft_tokens: ours.engine.config().max_draft_tokens,
        machine: eval::Host::this(),
        peak_memory_bytes: eval::peak_memory_bytes(),
        peer_peak_memory_bytes: bench.against_process.and_then(eval::peak_memory_of),
        ended_early: measured.as_ref().err().map(|error| format!("{error:#}")),
        items,
    };
    if let Some(folder) = folder {
        let flags = &bench.models;
        let embedder = ours.with_embedder.then(|| embedder(&flags.embedder, flags.quantise_embedder));
        let models = digests(language_models(flags).chain(embedder), &flags.adapters, global)?;
        let documents: Vec<PathBuf> = bench.docs.iter().cloned().collect();
        let data = FileDigest::of_all(bench.data.iter().cloned().chain(sources::find(&documents).files))?;
        keep(folder, &Manifest::new(began, models, data), &page.items.to_csv(), &page)?;
    }
    if bench.json {
        show_lines(&page.items)?;
    } else {
        print(&page)?;
    }
    measured
}

/// The suites of --suite, or all that need no flag that is missing.
fn suites(bench: &Speed) -> Vec<SpeedSuite> {
    let possible = |suite: &SpeedSuite| match suite {
        SpeedSuite::GamTrace => bench.data.is_some(),
        SpeedSuite::Ask => bench.docs.is_some(),
        _ => true,
    };
    if bench.suite.is_empty() { SpeedSuite::ALL.into_iter().filter(possible).collect() } else { bench.suite.clone() }
}

/// Refuses workloads without their data, and flags that no workload of the run uses.
fn check_flags(bench: &Speed, suites: &[SpeedSuite]) -> Result<()> {
    let required =
        [("--data", bench.data.is_some(), SpeedSuite::GamTrace), ("--docs", bench.docs.is_some(), SpeedSuite::Ask)];
    if let Some((flag, _, suite)) = required.iter().find(|(_, given, suite)| !given && suites.contains(suite)) {
        let hint = format!("add {flag} PATH, or leave {suite} out of --suite");
        return Err(refusal(format!("the workload {suite} needs {flag}"), hint));
    }
    let peer = ("--embed-against", bench.embed_against.is_some(), SpeedSuite::Embed);
    let unused = required.into_iter().chain([peer]).find(|(_, given, suite)| *given && !suites.contains(suite));
    if let Some((flag, _, suite)) = unused {
        let hint = format!("add {suite} to --suite, or leave {flag} out");
        return Err(refusal(format!("{flag} is for the workload {suite}, which is not in --suite"), hint));
    }
    if bench.against_process.is_some() && bench.against.is_none() && bench.embed_against.is_none() {
        let hint = "name the server with --against or --embed-against";
        return Err(refusal("--against-process is the process of another server, and none is named", hint));
    }
    Ok(())
}

/// Our engine, and what is needed to restart it.
struct Ours<'a> {
    engine: Engine,
    models: &'a ModelFlags,
    with_embedder: bool,
    global: &'a GlobalFlags,
}

impl Ours<'_> {
    fn start<'a>(models: &'a ModelFlags, with_embedder: bool, global: &'a GlobalFlags) -> Result<Ours<'a>> {
        Ok(Ours { engine: start(models, with_embedder, global)?, models, with_embedder, global })
    }
}

impl EngineUnderTest for Ours<'_> {
    fn caller(&self) -> &dyn Caller {
        &self.engine
    }

    fn embedder(&self) -> &dyn Embedder {
        &self.engine
    }

    fn prompt_ids(&self, call: &Call) -> eval::Result<Vec<u32>> {
        Ok(self.engine.prompt_ids(call)?)
    }

    fn fresh(&self) -> eval::Result<Box<dyn EngineUnderTest + '_>> {
        let fresh = Ours::start(self.models, self.with_embedder, self.global);
        Ok(Box::new(fresh.map_err(|error| eval::Error::Restart(error.into()))?))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use launch::failure::hint_of;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn flags_without_their_workloads_and_workloads_without_their_flags_are_refused() {
        let typed = |words: &str| {
            let all = ["memlocal-bench", "engine"].into_iter().chain(words.split_whitespace());
            Args::try_parse_from(all).map(|args| match args.command {
                Command::Engine(bench) => bench,
                other => panic!("{other:?}"),
            })
        };
        let check = |words: &str| {
            let bench = typed(words).unwrap();
            check_flags(&bench, &suites(&bench))
        };
        for used in [
            "",
            "--data locomo.json --questions 3",
            "--suite gam-trace,ask --data locomo.json --docs texts",
            "--suite embed --embed-against http://127.0.0.1:1 --against-process 1",
        ] {
            assert!(check(used).is_ok(), "{used}");
        }
        for (wrong, hint) in [
            ("--suite decode --data locomo.json", "add gam-trace to --suite, or leave --data out"),
            ("--suite decode --docs texts", "add ask to --suite, or leave --docs out"),
            ("--suite decode --embed-against http://127.0.0.1:1", "add embed to --suite, or leave --embed-against out"),
            ("--against-process 1", "name the server with --against or --embed-against"),
            ("--suite gam-trace", "add --data PATH, or leave gam-trace out of --suite"),
            ("--suite prefill,ask", "add --docs PATH, or leave ask out of --suite"),
        ] {
            let error = check(wrong).unwrap_err();
            assert_eq!(hint_of(&error).as_deref(), Some(hint), "{wrong}: {error}");
        }
        assert!(typed("--questions 3").is_err(), "without --data no question is asked");
    }
}
