//! Publishes a run without the texts of its data, whose licence may not allow redistribution.

use std::path::Path;
use std::{fs, io};

use serde::Serialize;

use super::folder::{LEFT_OUT, MANIFEST, RESULTS, manifest};
use super::item::{Item, Line};
use super::lines;
use super::reporting::{keep, read_report};
use super::tape::{TAPE, TRANSCRIPT};
use crate::{Error, FileDigest, Result};

/// Writes the run in `folder` to `to`, a new folder: manifest, report, plots, and results without questions, gold answers and
/// quotes. The models' answers are kept, with their spans. Of transcript and tape, which contain every prompt, only the
/// digests are kept.
///
/// # Errors
/// [`Error::Occupied`] if `to` is not empty, and those of reading and writing.
pub fn publish(folder: &Path, to: &Path) -> Result<()> {
    let results: Vec<Line> = lines::read(&folder.join(RESULTS))?;
    let mut manifest = manifest(folder)?;
    // The path of the data is private to this machine.
    manifest.plan.data = manifest.plan.data.file_name().map(Into::into).unwrap_or_default();
    manifest.run.command.iter_mut().for_each(|word| *word = without_folders(word));
    let (_, mut report) = read_report(folder)?;
    report.answers.clear();

    fs::create_dir_all(to).map_err(Error::writing(to))?;
    if fs::read_dir(to).map_err(Error::reading(to))?.next().is_some() {
        return Err(Error::Occupied { path: to.to_owned() });
    }
    let results = results.into_iter().map(without_texts).map(|line| json(&line, to));
    write(&to.join(RESULTS), &results.collect::<Result<Vec<_>>>()?.join("\n"))?;
    write(&to.join(MANIFEST), &json(&manifest, to)?)?;
    let left_out = [TRANSCRIPT, TAPE, RESULTS].map(|name| FileDigest::of(&folder.join(name)));
    write(&to.join(LEFT_OUT), &json(&left_out.into_iter().collect::<Result<Vec<_>>>()?, to)?)?;
    keep(&report, to)
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

/// The file name of an absolute path, also behind `NAME=`; other words as they are.
fn without_folders(word: &str) -> String {
    let (key, value) = word.split_at(word.find('=').map_or(0, |at| at + 1));
    let path = Path::new(value);
    let name = path.file_name().filter(|_| path.is_absolute());
    name.map_or_else(|| word.to_owned(), |name| format!("{key}{}", name.to_string_lossy()))
}

fn json(value: &impl Serialize, path: &Path) -> Result<String> {
    serde_json::to_string(value).map_err(io::Error::from).map_err(Error::writing(path))
}

fn write(path: &Path, content: &str) -> Result<()> {
    fs::write(path, format!("{content}\n")).map_err(Error::writing(path))
}
