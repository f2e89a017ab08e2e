//! `memlocal-bench forms`: checks that every reply has the output format that was requested.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use eval::qa::Backend;
use eval::{Beginning, Endings, FileDigest, Manifest, RunFolder, forms};
use launch::eprintln;
use launch::flags::GlobalFlags;
use launch::loader::start;
use launch::output::{print, print_line};
use launch::progress::Count;
use launch::typed_model::{embedder_quantisation, without_adapter};
use launch::{absolute, pdf_child, wait_for};
use serde_json::json;
use sources::{ReadOptions, Source};

use crate::args::Forms;
use crate::provenance::{adapter_digest, command_line, digest};

pub fn run(bench: &Forms, global: &GlobalFlags) -> Result<()> {
    let began = Beginning::now(command_line());
    let files = sources::find(&bench.docs).files;
    let data = files.iter().map(|file| FileDigest::of(file)).collect::<eval::Result<Vec<_>>>()?;
    let choice = &bench.models;
    let plan = json!({
        "data": data,
        "calls": bench.calls,
        "models": [&choice.model, &choice.memorizer, &choice.researcher, &choice.embedder],
        "adapters": choice.adapters.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "quantise": choice.quantise.map(|format| format.to_string()),
        "yarn": choice.yarn,
    });
    let open = if bench.resume { RunFolder::resume } else { RunFolder::begin };
    let folder = bench.out.as_ref().map(|out| open(out, "forms", &plan)).transpose()?;
    let sources = read(&files)?;
    let engine = start(choice, true, global)?;
    let backend = Backend { model: &choice.model, caller: &engine, embedder: &engine };
    let mut count = Count::new("inspecting", "call");
    let report = &mut |done: usize| count.report(done.min(bench.calls), bench.calls);
    let found = wait_for(forms::inspect(&sources, bench.calls, backend, folder.as_ref().map(RunFolder::path), report))?;
    if let Some(folder) = folder {
        let models = [
            (&choice.model, choice.quantise),
            (&choice.embedder, embedder_quantisation(&choice.embedder, choice.quantise_embedder)),
        ];
        let models = models
            .into_iter()
            .map(|(typed, quantise)| digest(without_adapter(typed, &choice.model, &choice.adapters), quantise, global));
        let models = models
            .chain(choice.adapters.iter().filter_map(|flag| adapter_digest(flag, global)))
            .collect::<Result<_>>()?;
        let path = folder.write(&Manifest::new(began, models, data), &found.to_csv(), &found)?;
        eprintln!("kept in {}", path.display());
    }
    let total = found.total();
    if bench.json {
        print_line(serde_json::to_string_pretty(&found)?)?;
    } else {
        print(&found)?;
    }
    let calls = total.endings.calls;
    ensure!(total.good == calls, "{} of {calls} replies do not have the format of their call", calls - total.good);
    let cut = bench.max_cut.map_or_else(Vec::new, |percent| found.cut_above(percent / 100.0));
    ensure!(cut.is_empty(), "more replies than --max-cut allows did not end by themselves: {}", listed(&cut));
    Ok(())
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
    ensure!(!sources.is_empty(), "there are no documents in the files and folders of --docs");
    Ok(sources)
}
