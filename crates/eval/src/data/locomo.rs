//! LoCoMo: conversations of many sessions, and questions with the turns that answer them as evidence (Maharana et al.
//! 2024, <https://github.com/snap-research/locomo>). Turns are read as the product reads them, captions kept; the text
//! of each is `Speaker: words [shares caption]`.
//!
//! Some of the published evidence is malformed. A string may hold several ids (`D8:6; D9:17`); `D:11:26` is read as
//! `D11:26` and `D30:05` as `D30:5`. Ids that name no turn, and questions without remaining evidence, are skipped
//! and noted.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use sources::{Captions, ReadOptions, Source};

use super::records::Records;
use super::{Collection, Dataset, Passage, Query, Wanted, files};
use crate::Result;

#[derive(Deserialize)]
struct Sample {
    qa: Vec<Qa>,
}

#[derive(Deserialize)]
struct Qa {
    question: String,
    #[serde(default)]
    evidence: Vec<String>,
    category: usize,
}

/// The categories by their number, from 1 (which is not the order of the paper's list).
pub(crate) const CATEGORIES: [&str; 5] =
    ["1 multi-hop", "2 temporal", "3 open-domain", "4 single-hop", "5 adversarial"];
/// The answerable categories, on which most papers report.
pub(crate) const ANSWERABLE: &str = "1 to 4";

/// One collection for each conversation.
pub(crate) fn load(path: &Path) -> Result<Dataset> {
    let file = files::find(path, &["locomo"])?;
    let samples = Records::<Sample>::read(&file)?;
    let options = ReadOptions { captions: Captions::Kept, ..ReadOptions::default() };
    let mut data = Dataset::default();
    for (record, source) in samples.iter().zip(sources::read(&file, &options)?) {
        let mut collection = turns(&source);
        let places: HashMap<&str, usize> =
            (0..).zip(&collection.passages).map(|(place, passage)| (passage.id.as_str(), place)).collect();
        let mut queries = Vec::new();
        for (number, question) in record.value.qa.iter().enumerate() {
            let problem = || format!("`{}` is none of 1 to 5", question.category);
            let category = question.category.checked_sub(1).and_then(|index| CATEGORIES.get(index));
            let category =
                category.ok_or_else(|| samples.fault(record, &format!("qa[{number}].category"), problem()))?;
            let place = format!("{}, question {number}", collection.name);
            let wanted = wanted(question, &places, &place, &mut data.notes);
            if !wanted.is_empty() {
                let answerable = (question.category < 5).then_some(ANSWERABLE);
                let groups = answerable.into_iter().chain([*category]).map(str::to_owned).collect();
                queries.push(Query { id: number.to_string(), text: question.question.clone(), groups, wanted });
            }
        }
        collection.queries = queries;
        data.collections.push(collection);
    }
    data.files.push(file);
    Ok(data)
}

fn turns(source: &Source) -> Collection {
    let mut sessions = Vec::new();
    for section in &source.sections {
        let start = sessions.last().map_or(0, |before: &Range<usize>| before.end);
        sessions.push(start..start + section.turns.len());
    }
    let turns = source.sections.iter().flat_map(|section| &section.turns);
    let passages = turns.map(|turn| {
        // A turn's id is its label in the text, not part of the utterance.
        let text = source.text[turn.span.clone()].replacen(&format!(" ({})", turn.id), "", 1);
        Passage { id: turn.id.clone(), title: String::new(), text }
    });
    let name = source.path.rsplit_once('#').map_or(source.path.as_str(), |(_, id)| id).to_owned();
    Collection { name, passages: passages.collect(), queries: Vec::new(), sessions }
}

fn wanted(question: &Qa, places: &HashMap<&str, usize>, place: &str, notes: &mut Vec<String>) -> Vec<Wanted> {
    let mut found = Vec::new();
    for evidence in &question.evidence {
        for part in evidence.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == ':')) {
            match turn_id(part).and_then(|id| places.get(id.as_str())) {
                Some(place) => found.push(*place),
                None if part.is_empty() => {}
                None => notes.push(format!("{place}: the evidence `{part}` names no turn")),
            }
        }
    }
    if found.is_empty() {
        notes.push(format!("{place} is left out: it has no evidence"));
    }
    Wanted::all(found)
}

/// Corrects malformed spellings to `D11:26`.
pub(crate) fn turn_id(written: &str) -> Option<String> {
    let numbers = written.strip_prefix('D')?.split(':').filter(|part| !part.is_empty());
    let numbers: Vec<u32> = numbers.map(|part| part.parse().ok()).collect::<Option<_>>()?;
    if let [session, turn] = numbers[..] { Some(format!("D{session}:{turn}")) } else { None }
}
