//! Multi-hop questions over Wikipedia paragraphs: HotpotQA and 2WikiMultiHopQA in their own form (`context`,
//! `supporting_facts`), MemAgent's form of HotpotQA, which the GAM paper uses (a long context of numbered documents, as
//! text or as ids into a corpus), and MuSiQue's form (`paragraphs`, `is_supporting`).
//!
//! Each question is a case of its own whose text is its paragraphs, numbered, as MemAgent writes them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Texts, checked};
use crate::Result;
use crate::data::files;
use crate::data::records::{Record, Records};
use crate::qa::case::{Case, Cases, Evidence, Question, Text, document};

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "_id", alias = "id", default)]
    id: Option<String>,
    #[serde(alias = "input")]
    question: String,
    #[serde(alias = "answers")]
    answer: Option<Texts>,
    #[serde(default)]
    answer_aliases: Vec<String>,
    answerable: Option<bool>,
    index: Option<u64>,
    num_docs: Option<usize>,
    /// `bridge`, `comparison`, ...
    #[serde(rename = "type")]
    kind: Option<String>,
    context: Option<Context>,
    #[serde(alias = "doc_ids")]
    context_ids: Option<Vec<String>>,
    paragraphs: Option<Vec<Paragraph>>,
    supporting_facts: Option<Vec<(String, i64)>>,
    gold_ids: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Context {
    Whole(String),
    Paragraphs(Vec<(String, Vec<String>)>),
}

#[derive(Deserialize)]
struct Paragraph {
    title: String,
    #[serde(alias = "paragraph_text")]
    text: String,
    #[serde(default)]
    is_supporting: bool,
    #[serde(rename = "_id")]
    id: Option<String>,
}

/// A paragraph of a case: title, text, and whether the answer needs it.
type Piece<'a> = (&'a str, String, bool);

/// One case for each question.
pub(crate) fn load(path: &Path) -> Result<Cases> {
    let file = files::find(path, &["eval_", "dev", "distractor", "queries"])?;
    let items = Records::<Item>::read(&file)?;
    let mut cases = Cases { files: vec![file.clone()], ..Cases::default() };
    let corpus = match items.iter().any(|record| record.value.context_ids.is_some()) {
        true => {
            let file = corpus_beside(&file)?;
            cases.files.push(file.clone());
            Some(Records::<Paragraph>::read(&file)?)
        }
        false => None,
    };
    let paragraphs =
        corpus.iter().flat_map(Records::iter).filter_map(|record| Some((record.value.id.as_deref()?, &record.value)));
    let paragraphs: HashMap<&str, &Paragraph> = paragraphs.collect();
    for (number, record) in items.iter().enumerate() {
        if record.value.answerable == Some(false) {
            cases.notes.push(format!("question {number} is left out: it is marked as one without an answer"));
            continue;
        }
        cases.cases.push(case(&items, record, number, &paragraphs)?);
    }
    Ok(cases)
}

/// The corpus in the folder of the questions or in the one above.
fn corpus_beside(file: &Path) -> Result<PathBuf> {
    let folder = file.parent().unwrap_or(file);
    let above = folder.parent().unwrap_or(folder);
    files::find(folder, &["corpus"]).or_else(|error| files::find(above, &["corpus"]).map_err(|_| error))
}

fn case(
    items: &Records<Item>,
    record: &Record<Item>,
    number: usize,
    corpus: &HashMap<&str, &Paragraph>,
) -> Result<Case> {
    let item = &record.value;
    let fault = |(field, problem): (&str, String)| items.fault(record, field, problem);
    let id = match (item.index, &item.id) {
        (Some(index), _) => index.to_string(),
        (None, Some(id)) => id.clone(),
        (None, None) => number.to_string(),
    };
    let Some(answer) = &item.answer else {
        return Err(fault(("answer", "there is none; such a file is for `bench retrieval`".into())));
    };
    let hops = || item.paragraphs.is_some().then(|| id.split("__").next().unwrap_or_default().to_owned());
    let size = item.num_docs.map(|documents| format!("{documents} documents"));
    let mut question = Question {
        id: id.clone(),
        text: item.question.clone(),
        golds: answer.texts().into_iter().chain(item.answer_aliases.clone()).collect(),
        groups: size.or_else(hops).or_else(|| item.kind.clone()).into_iter().collect(),
        ..Question::default()
    };
    let text = if let Some(Context::Whole(text)) = &item.context {
        text.clone()
    } else {
        let (text, evidence) = numbered(&pieces(item, corpus).map_err(fault)?);
        question.evidence = evidence;
        text
    };
    if text.trim().is_empty() {
        return Err(fault(("context", "there is no paragraph in it".into())));
    }
    let questions = vec![checked(question, ["question", "answer"]).map_err(fault)?];
    Ok(Case { sources: vec![document(&id, None, text)], id, questions })
}

fn pieces<'a>(
    item: &'a Item,
    corpus: &HashMap<&str, &'a Paragraph>,
) -> std::result::Result<Vec<Piece<'a>>, super::Fault> {
    let is_fact = |title: &str| item.supporting_facts.iter().flatten().any(|(fact, _)| fact == title);
    if let Some(paragraphs) = &item.paragraphs {
        return Ok(paragraphs
            .iter()
            .map(|piece| (piece.title.as_str(), piece.text.clone(), piece.is_supporting))
            .collect());
    }
    if let Some(Context::Paragraphs(paragraphs)) = &item.context {
        return Ok(paragraphs.iter().map(|(title, text)| (title.as_str(), text.concat(), is_fact(title))).collect());
    }
    let Some(ids) = &item.context_ids else { return Err(("context", "there is none".into())) };
    let piece = |id: &String| {
        let piece = corpus.get(id.as_str()).ok_or_else(|| ("context_ids", format!("`{id}` is not in the corpus")))?;
        let is_gold = item.gold_ids.iter().flatten().any(|gold| gold == id);
        Ok((piece.title.as_str(), piece.text.clone(), is_gold))
    };
    ids.iter().map(piece).collect()
}

/// `Document 1:`, title and text, a blank line, and so on; and the spans of the supporting ones.
fn numbered(pieces: &[Piece<'_>]) -> (String, Vec<Evidence>) {
    let mut text = Text::default();
    let mut evidence = Vec::new();
    for (number, (title, words, is_needed)) in (1..).zip(pieces) {
        if number > 1 {
            text.push("\n\n");
        }
        let bytes = text.push(&format!("Document {number}:\n{title}\n{}", words.trim()));
        if *is_needed {
            evidence.push(Evidence { id: (*title).to_owned(), source: 0, bytes });
        }
    }
    (text.text, evidence)
}
