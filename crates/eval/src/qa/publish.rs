//! A run to be shown to others: without the texts of its data, which may not be ours to give away.

use std::fs;
use std::io;
use std::path::Path;

use super::folder::{MANIFEST, RESULTS, manifest};
use super::item::{Item, Line};
use super::lines;
use super::tape::{TAPE, TRANSCRIPT};
use crate::{Error, FileDigest, Result};

/// What is taken as it is: it says what was run and what came of it, and no word of the data.
const WHOLE: [&str; 2] = ["report.md", "report.json"];

const PLOTS: &str = "plots";

/// Names what was left out, with digests.
const LEFT_OUT: &str = "left-out.json";

/// Copies the run in `folder` to `to`, a new folder: manifest, report, plots, and results without questions, gold answers and
/// quotes. Answers stay, and where they rest. Of transcript and tape, in which every prompt is, the digests are kept.
///
/// # Errors
/// [`Error::Occupied`] if there is something in `to`, and those of reading and writing.
pub fn publish(folder: &Path, to: &Path) -> Result<()> {
    let results: Vec<Line> = lines::read(&folder.join(RESULTS))?;
    let mut manifest = manifest(folder)?;
    // Where the data lie is this machine's matter.
    manifest.plan.data = manifest.plan.data.file_name().map(Into::into).unwrap_or_default();
    fs::create_dir_all(to.join(PLOTS)).map_err(Error::writing(to))?;
    if fs::read_dir(to).map_err(Error::reading(to))?.count() > 1 {
        return Err(Error::Occupied { path: to.to_owned() });
    }
    let results = results.into_iter().map(without_texts).map(|line| json(&line, to));
    write(&to.join(RESULTS), &results.collect::<Result<Vec<_>>>()?.join("\n"))?;
    write(&to.join(MANIFEST), &json(&manifest, to)?)?;
    for name in WHOLE {
        copy(&folder.join(name), &to.join(name))?;
    }
    for plot in entries(&folder.join(PLOTS))? {
        copy(&plot, &to.join(PLOTS).join(plot.file_name().unwrap_or_default()))?;
    }
    let left_out = [TRANSCRIPT, TAPE, RESULTS].map(|name| FileDigest::of(&folder.join(name)));
    let left_out = left_out.into_iter().collect::<Result<Vec<_>>>()?;
    write(&to.join(LEFT_OUT), &json(&left_out, to)?)
}

fn without_texts(line: Line) -> Line {
    let Line::Answered(item) = line else { return line };
    let Item { mut question, mut citations, .. } = *item.clone();
    question.text.clear();
    question.golds.clear();
    question.options.clear();
    citations.iter_mut().for_each(|citation| citation.quote.clear());
    Line::Answered(Box::new(Item { question, citations, ..*item }))
}

fn json(value: &impl serde::Serialize, path: &Path) -> Result<String> {
    serde_json::to_string(value).map_err(io::Error::from).map_err(Error::writing(path))
}

fn write(path: &Path, content: &str) -> Result<()> {
    fs::write(path, format!("{content}\n")).map_err(Error::writing(path))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).map_err(Error::reading(from))
}

/// What is in a folder; nothing if it is not there.
fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).map_err(Error::reading(folder))?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(Error::reading(folder))).collect()
}
