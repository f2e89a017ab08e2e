//! `memlocal bench forms`: do answers always have the form that was asked for?

use std::time::SystemTime;

use anyhow::{Result, bail};
use eval::{FileDigest, Manifest, RunFolder, forms};
use memory::Progress;

use crate::args::{Forms, Machine};
use crate::bench::{digest, typed};
use crate::ingest::{read, wait_for};
use crate::machine::start;
use crate::output::{print, print_line};
use crate::progress::Steps;

pub fn run(bench: &Forms, machine: &Machine) -> Result<()> {
    let started = SystemTime::now();
    let folder = bench.out.as_ref().map(|out| RunFolder::create(out, "forms")).transpose()?;
    let (sources, _) = read(&bench.docs)?;
    let engine = start(&bench.models, true, machine)?;
    let mut steps = Steps::default();
    let report = &mut |done, of| steps.report(Progress { step: "inspecting", unit: "call", done, of });
    let found = wait_for(forms::inspect(&sources, bench.calls, &engine, &engine, report))?;
    if let Some(folder) = folder {
        let models = [&bench.models.model, &bench.models.embedder];
        let models = models.into_iter().map(|typed| digest(typed, machine)).collect::<Result<_>>()?;
        let files = sources::find(&bench.docs).files;
        let data = files.iter().map(|file| FileDigest::of(file)).collect::<eval::Result<_>>()?;
        let path = folder.write(&Manifest::new(typed(), started, models, data), &found.to_csv(), &found)?;
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
