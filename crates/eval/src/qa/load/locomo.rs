//! LoCoMo (Maharana et al. 2024): questions about long conversations. Captions of pictures are kept, because
//! some answers are only there. Adversarial questions are loaded too; the papers' reports leave them out.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use sources::{Captions, ReadOptions, Source};

use super::Texts;
use crate::Result;
use crate::data::files;
use crate::data::locomo::{ANSWERABLE, CATEGORIES, turn_id};
use crate::data::records::Records;
use crate::qa::case::{Case, Cases, Evidence, Question, sessions_with};

#[derive(Deserialize)]
struct Sample {
    qa: Vec<Qa>,
}

#[derive(Deserialize)]
struct Qa {
    question: String,
    /// May be a number; most adversarial questions have none.
    answer: Option<Texts>,
    adversarial_answer: Option<Texts>,
    #[serde(default)]
    evidence: Vec<String>,
    category: usize,
}

/// One case for each conversation.
pub(crate) fn load(path: &Path) -> Result<Cases> {
    let file = files::find(path, &["locomo"])?;
    let samples = Records::<Sample>::read(&file)?;
    let options = ReadOptions { captions: Captions::Kept, ..ReadOptions::default() };
    let mut cases = Cases { notes: vec!["captions of pictures are kept".into()], ..Cases::default() };
    for (record, mut source) in samples.iter().zip(sources::read(&file, &options)?) {
        let id = source.path.rsplit_once('#').map_or(source.path.as_str(), |(_, id)| id).to_owned();
        source.path.clone_from(&id);
        let turns = turns(&source);
        let mut questions = Vec::new();
        for (number, qa) in record.value.qa.iter().enumerate() {
            let fault = |field: &str, problem: String| samples.fault(record, &format!("qa[{number}].{field}"), problem);
            let Some(category) = qa.category.checked_sub(1).and_then(|index| CATEGORIES.get(index)) else {
                return Err(fault("category", format!("`{}` is none of 1 to 5", qa.category)));
            };
            let golds = qa.answer.as_ref().or(qa.adversarial_answer.as_ref()).map(Texts::texts).unwrap_or_default();
            if golds.is_empty() {
                return Err(fault("answer", "there is none".into()));
            }
            let groups = [*category].into_iter().chain((qa.category < 5).then_some(ANSWERABLE));
            let place = format!("{id}, question {number}");
            let evidence = evidence(&qa.evidence, &turns, &place, &mut cases.notes);
            questions.push(Question {
                id: number.to_string(),
                text: qa.question.clone(),
                golds,
                groups: groups.map(str::to_owned).collect(),
                sessions: sessions_with(&evidence, 0, &source),
                evidence,
                ..Question::default()
            });
        }
        cases.cases.push(Case { id, sources: vec![source], questions });
    }
    cases.files.push(file);
    Ok(cases)
}

fn turns(source: &Source) -> HashMap<String, Range<usize>> {
    let turns = source.sections.iter().flat_map(|section| &section.turns);
    turns.map(|turn| (turn.id.clone(), turn.span.clone())).collect()
}

/// The turns that evidence names; see the loader for retrieval on what is malformed.
fn evidence(
    named: &[String],
    turns: &HashMap<String, Range<usize>>,
    place: &str,
    notes: &mut Vec<String>,
) -> Vec<Evidence> {
    let mut evidence: Vec<Evidence> = Vec::new();
    let parts = named.iter().flat_map(|text| text.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == ':')));
    for part in parts.filter(|part| !part.is_empty()) {
        match turn_id(part).and_then(|id| Some((turns.get(&id)?.clone(), id))) {
            Some((_, id)) if evidence.iter().any(|known| known.id == id) => {}
            Some((bytes, id)) => evidence.push(Evidence { id, source: 0, bytes }),
            None => notes.push(format!("{place}: the evidence `{part}` names no turn")),
        }
    }
    evidence
}
