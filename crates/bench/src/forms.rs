//! `memlocal-bench forms`: checks that every reply has the output format that was requested.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use eval::qa::Backend;
use eval::{Beginning, Endings, FileDigest, Manifest, RunFolder, forms};
use launch::failure::refusal;
use launch::flags::GlobalFlags;
use launch::loader::start;
use launch::progress::Count;
use launch::{absolute, pdf_child, wait_for};
use serde_json::{Value, json};
use sources::{ReadOptions, Source};

use crate::args::Forms;
use crate::provenance::{command_line, digests, embedder, language_models};
use crate::results::{keep, show};

pub fn run(bench: &Forms, global: &GlobalFlags) -> Result<()> {
    let began = Beginning::now(command_line());
    let files = sources::find(&bench.docs).files;
    let data = FileDigest::of_all(&files)?;
    let choice = &bench.models;
    let open = if bench.resume { RunFolder::resume } else { RunFolder::begin };
    let folder = bench.out.as_ref().map(|out| open(out, "forms", &plan(bench, &data))).transpose()?;
    let sources = read(&files)?;
    let engine = start(choice, true, global)?;
    let backend = Backend { model: &choice.model, caller: &engine, embedder: &engine };
    let mut count = Count::new("inspecting", "call");
    let report = &mut |done: usize| count.report(done.min(bench.calls), bench.calls);
    let found = wait_for(forms::inspect(&sources, bench.calls, backend, folder.as_ref().map(RunFolder::path), report))?;
    if let Some(folder) = folder {
        let models = language_models(choice).chain([embedder(&choice.embedder, choice.quantise_embedder)]);
        let models = digests(models, &choice.adapters, global)?;
        keep(folder, &Manifest::new(began, models, data), &found.to_csv(), &found)?;
    }
    show(&found, bench.json)?;
    let total = found.total();
    let calls = total.endings.calls;
    ensure!(total.good == calls, "{} of {calls} replies do not have the format of their call", calls - total.good);
    let cut = bench.max_cut.map_or_else(Vec::new, |percent| found.cut_above(percent / 100.0));
    ensure!(cut.is_empty(), "more replies than --max-cut allows did not end by themselves: {}", listed(&cut));
    Ok(())
}

/// What the replies depend on.
fn plan(bench: &Forms, data: &[FileDigest]) -> Value {
    let choice = &bench.models;
    let mut plan = json!({
        "data": data,
        "calls": bench.calls,
        "models": [&choice.model, &choice.memorizer, &choice.researcher, &choice.embedder],
        "adapters": choice.adapters.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "quantise": choice.quantise.map(|format| format.to_string()),
        "yarn": choice.yarn,
    });
    let (_, quantise) = embedder(&choice.embedder, choice.quantise_embedder);
    let quantise = quantise.map_or_else(|| "stored".to_owned(), |format| format.to_string());
    let further = [
        ("judge", choice.judge.clone()),
        ("builder", choice.builder.clone()),
        ("quantise_embedder", choice.quantise_embedder.map(|_| quantise)),
    ];
    // Absent where they are not given, as in the plans of earlier versions.
    for (name, given) in further {
        if let Some(given) = given {
            plan[name] = given.into();
        }
    }
    plan
}

fn listed(steps: &[(&str, Endings)]) -> String {
    let step = |(step, endings): &(&str, Endings)| format!("{step}, {} of {}", endings.cut(), endings.calls);
    steps.iter().map(step).collect::<Vec<_>>().join("; ")
}

/// Reads documents; one that cannot be read is an error, since results depend on all of them.
fn read(files: &[PathBuf]) -> Result<Vec<Source>> {
    let options = ReadOptions { pdf_child: pdf_child(), ..ReadOptions::default() };
    let mut sources = Vec::new();
    for file in files {
        sources.extend(sources::read(&absolute(file), &options)?);
    }
    if sources.is_empty() {
        let hint = "--docs takes files and folders that memlocal ingest reads";
        return Err(refusal("there are no documents in the files and folders of --docs", hint));
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn a_run_is_resumed_with_the_same_models_only() {
        let plan = |words: &[&str]| {
            let all = ["memlocal-bench", "forms", "--docs", "a.txt"].iter().chain(words);
            let Command::Forms(bench) = Args::try_parse_from(all).unwrap().command else { panic!("another command") };
            plan(&bench, &[])
        };
        let usual = plan(&[]);
        assert_eq!(usual.get("judge"), None);
        for words in [["--judge", "a"], ["--builder", "a"], ["--memorizer", "a"], ["--quantise-embedder", "stored"]] {
            assert_ne!(plan(&words), usual, "{words:?}");
        }
    }
}
