//! Publishes a run without the texts of its data, whose licence may not allow redistribution.

use std::io;
use std::path::Path;

use serde::Serialize;

use super::cited::Cited;
use super::folder::{LEFT_OUT, MANIFEST, RESULTS, manifest};
use super::item::{Item, Line};
use super::lines;
use super::reporting::{keep, read_report};
use super::tape::{TAPE, TRANSCRIPT};
use crate::run_folder::{create_empty, put};
use crate::{Error, FileDigest, Result};

/// Writes the run in `folder` to `to`, a new folder: manifest, report, plots, and results without questions, gold answers and
/// quotes. The models' answers are kept, with their spans and numbers of pages. Of transcript and tape, which contain every
/// prompt, only the digests are kept.
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

    create_empty(to)?;
    let (suite, scorers) = (manifest.plan.suite()?, manifest.plan.scorers()?);
    // Scored as in the report, since it cannot be done without the texts.
    let scored = |mut line: Line| {
        if let Line::Answered(item) = &mut line {
            item.score(suite, &scorers);
        }
        line
    };
    let results = results.into_iter().map(scored).map(without_texts).map(|line| json(&line, to));
    put(&to.join(RESULTS), &results.collect::<Result<String>>()?)?;
    put(&to.join(MANIFEST), &json(&manifest, to)?)?;
    let left_out = FileDigest::of_all([TRANSCRIPT, TAPE, RESULTS].map(|name| folder.join(name)))?;
    put(&to.join(LEFT_OUT), &json(&left_out, to)?)?;
    keep(&report, to)
}

fn without_texts(line: Line) -> Line {
    let Line::Answered(item) = line else { return line };
    let Item { mut question, citations, .. } = *item.clone();
    question.text.clear();
    question.golds.clear();
    question.history.clear();
    question.options.clear();
    let citations = citations.into_iter().map(Cited::without_texts).collect();
    Line::Answered(Box::new(Item { question, citations, ..*item }))
}

/// The file name of an absolute path, also behind `NAME=`; other words as they are.
fn without_folders(word: &str) -> String {
    let (key, value) = word.split_at(word.find('=').map_or(0, |at| at + 1));
    let path = Path::new(value);
    let name = path.file_name().filter(|_| path.is_absolute());
    name.map_or_else(|| word.to_owned(), |name| format!("{key}{}", name.to_string_lossy()))
}

/// A value as a line of JSON.
fn json(value: &impl Serialize, path: &Path) -> Result<String> {
    let json = serde_json::to_string(value).map_err(io::Error::from);
    Ok(json.map_err(Error::writing(path))? + "\n")
}
