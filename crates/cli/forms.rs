//! `memlocal bench forms`: do answers always have the form that was asked for?

use anyhow::{Result, bail};
use eval::qa::Machine as Answering;
use eval::{Beginning, FileDigest, Manifest, RunFolder, forms};
use serde_json::json;

use crate::args::{Forms, Machine};
use crate::bench::{digest, typed};
use crate::ingest::{Documents, wait_for};
use crate::machine::start;
use crate::output::{print, print_line};
use crate::progress::Count;

pub fn run(bench: &Forms, machine: &Machine) -> Result<()> {
    let began = Beginning::now(typed());
    let files = sources::find(&bench.docs).files;
    let data = files.iter().map(|file| FileDigest::of(file)).collect::<eval::Result<Vec<_>>>()?;
    let choice = &bench.models;
    let plan = json!({
        "data": data,
        "calls": bench.calls,
        "models": [&choice.model, &choice.memorizer, &choice.researcher, &choice.embedder],
        "quantise": choice.quantise.map(|format| format.to_string()),
        "yarn": choice.yarn,
    });
    let open = if bench.resume { RunFolder::resume } else { RunFolder::begin };
    let folder = bench.out.as_ref().map(|out| open(out, "forms", &plan)).transpose()?;
    let sources: Vec<sources::Source> = Documents::find(&bench.docs)?.collect();
    let engine = start(choice, true, machine)?;
    let answering = Answering { model: &choice.model, caller: &engine, embedder: &engine };
    let mut count = Count::new("inspecting", "call");
    let report = &mut |done: usize| count.report(done.min(bench.calls), bench.calls);
    let found =
        wait_for(forms::inspect(&sources, bench.calls, answering, folder.as_ref().map(RunFolder::path), report))?;
    if let Some(folder) = folder {
        let models = [(&choice.model, choice.quantise), (&choice.embedder, choice.quantise_embedder)];
        let models = models.into_iter().map(|(typed, quantise)| digest(typed, quantise, machine));
        let models = models.collect::<Result<_>>()?;
        let path = folder.write(&Manifest::new(began, models, data), &found.to_csv(), &found)?;
        eprintln!("kept in {}", path.display());
    }
    let total = found.total();
    if bench.json {
        print_line(serde_json::to_string_pretty(&found)?)?;
    } else {
        print(&found)?;
    }
    if total.good < total.calls {
        bail!("{} of {} replies have not the form that was asked for", total.calls - total.good, total.calls);
    }
    Ok(())
}
