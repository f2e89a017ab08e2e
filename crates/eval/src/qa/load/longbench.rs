//! Questions that bring their own long text: LongBench-v2 (Bai et al. 2025; four options) and LongReason-200 (MindGraph,
//! section 4.1: 62 of its questions are LongBench-v2's, 138 have free answers).
//!
//! LongReason-200 was released without a description of its fields; read are `id`, `source`, `question`, `context`,
//! `answer`, and for questions with options LongBench-v2's `choice_A` to `choice_D` or an object `choices`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::{Texts, checked, with_letters};
use crate::Result;
use crate::data::files;
use crate::data::records::Records;
use crate::qa::case::{Case, Cases, Question, document};

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "_id", alias = "id")]
    id: Texts,
    #[serde(alias = "domain")]
    source: Option<String>,
    sub_domain: Option<String>,
    difficulty: Option<String>,
    length: Option<String>,
    question: String,
    #[serde(rename = "choice_A")]
    a: Option<String>,
    #[serde(rename = "choice_B")]
    b: Option<String>,
    #[serde(rename = "choice_C")]
    c: Option<String>,
    #[serde(rename = "choice_D")]
    d: Option<String>,
    choices: Option<BTreeMap<String, String>>,
    answer: Texts,
    context: String,
}

/// LongBench-v2.
pub(crate) fn load_v2(path: &Path) -> Result<Cases> {
    load(path, &["longbench", "data"], true)
}

/// LongReason-200.
pub(crate) fn load_longreason(path: &Path) -> Result<Cases> {
    load(path, &["longreason", "data"], false)
}

fn load(path: &Path, names: &[&str], needs_options: bool) -> Result<Cases> {
    let file = files::find(path, names)?;
    let items = Records::<Item>::read(&file)?;
    let mut cases = Cases::default();
    for record in items.iter() {
        let item = &record.value;
        let fault = |(field, problem): (&str, String)| items.fault(record, field, problem);
        let id = item.id.texts().concat();
        let question = Question {
            id: id.clone(),
            text: item.question.clone(),
            golds: item.answer.texts(),
            groups: [&item.source, &item.sub_domain, &item.difficulty, &item.length]
                .into_iter()
                .flatten()
                .cloned()
                .collect(),
            ..Question::default()
        };
        let question = match options(item) {
            Some(options) => with_letters(question, options, &item.answer.texts().concat(), ["choices", "answer"]),
            None if needs_options => Err(("choice_A", "there is none".into())),
            None => Ok(question),
        };
        let question = question.and_then(|question| checked(question, ["question", "answer"])).map_err(fault)?;
        if item.context.trim().is_empty() {
            return Err(fault(("context", "it is empty".into())));
        }
        let sources = vec![document(&id, None, item.context.clone())];
        cases.cases.push(Case { id, sources, questions: vec![question] });
    }
    cases.files.push(file);
    Ok(cases)
}

fn options(item: &Item) -> Option<BTreeMap<String, String>> {
    let letters = [("A", &item.a), ("B", &item.b), ("C", &item.c), ("D", &item.d)];
    let named = letters.into_iter().filter_map(|(letter, text)| Some((letter.to_owned(), text.clone()?)));
    let named: BTreeMap<String, String> = named.collect();
    if named.is_empty() { item.choices.clone().filter(|choices| !choices.is_empty()) } else { Some(named) }
}
