//! Multi-hop questions over Wikipedia paragraphs, in two forms.
//!
//! HotpotQA's and 2WikiMultiHopQA's own (`context`: ten paragraphs a question, `supporting_facts`: titles and
//! sentences): the pool is all paragraphs of all questions. HippoRAG's: a corpus beside the questions, whose gold
//! passages are named by `gold_ids` or `gold_titles`.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde::Deserialize;

use super::pool::Pool;
use super::records::{Record, Records};
use super::{Collection, Dataset, Passage, Query, Wanted, files};
use crate::Result;

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "_id")]
    id: String,
    question: String,
    /// `bridge`, `comparison`, ...
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Titles and sentences.
    context: Option<Vec<(String, Vec<String>)>>,
    /// Titles and numbers of sentences.
    supporting_facts: Option<Vec<(String, i64)>>,
    gold_ids: Option<Vec<String>>,
    gold_titles: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Paragraph {
    #[serde(rename = "_id")]
    id: Option<String>,
    title: String,
    text: String,
}

/// The places of the passages that have a name. If several have it, which of them is wanted is unknown.
type Places = HashMap<String, BTreeSet<usize>>;

/// Reads questions, and the corpus beside them if they bring no paragraphs of their own.
pub(crate) fn load(path: &Path) -> Result<Dataset> {
    let file = files::find(path, &["queries", "dev"])?;
    let questions = Records::<Item>::read(&file)?;
    if questions.iter().any(|record| record.value.context.is_some()) {
        let collections = vec![from_contexts(&questions)?];
        return Ok(Dataset { collections, files: vec![file], notes: Vec::new() });
    }
    let corpus = files::find(file.parent().unwrap_or(path), &["corpus"])?;
    let collections = vec![from_corpus(&questions, &Records::read(&corpus)?)?];
    Ok(Dataset { collections, files: vec![corpus, file], notes: Vec::new() })
}

fn from_contexts(questions: &Records<Item>) -> Result<Collection> {
    let mut pool = Pool::default();
    let mut queries = Vec::new();
    for record in questions.iter() {
        let mut by_title = Places::new();
        for (title, text) in record.value.context.iter().flatten() {
            by_title.entry(title.clone()).or_default().insert(pool.put(title, &text.join(" ")));
        }
        let facts = record.value.supporting_facts.iter().flatten().map(|(title, _)| title);
        queries.push(query(questions, record, "supporting_facts", facts, &by_title)?);
    }
    Ok(Collection { name: "pool".into(), passages: pool.passages, queries, ..Collection::default() })
}

fn from_corpus(questions: &Records<Item>, corpus: &Records<Paragraph>) -> Result<Collection> {
    let mut passages = Vec::new();
    let (mut by_id, mut by_title) = (Places::new(), Places::new());
    for (place, record) in corpus.iter().enumerate() {
        let Paragraph { id, title, text } = &record.value;
        let id = id.clone().unwrap_or_else(|| place.to_string());
        if by_id.insert(id.clone(), BTreeSet::from([place])).is_some() {
            return Err(corpus.fault(record, "_id", format!("`{id}` is already the id of an earlier one")));
        }
        by_title.entry(title.clone()).or_default().insert(place);
        passages.push(Passage { id, title: title.clone(), text: text.clone() });
    }
    let mut queries = Vec::new();
    for record in questions.iter() {
        queries.push(match (&record.value.gold_ids, &record.value.gold_titles) {
            (Some(ids), _) => query(questions, record, "gold_ids", ids, &by_id),
            (None, titles) => query(questions, record, "gold_titles", titles.iter().flatten(), &by_title),
        }?);
    }
    Ok(Collection { name: "corpus".into(), passages, queries, ..Collection::default() })
}

/// A query to which the passages that a field names are relevant.
fn query<'a>(
    questions: &Records<Item>,
    record: &Record<Item>,
    field: &str,
    names: impl IntoIterator<Item = &'a String>,
    places: &Places,
) -> Result<Query> {
    let Item { id, question, kind, .. } = &record.value;
    let fault = |name, problem| questions.fault(record, field, format!("`{name}` {problem}"));
    let mut named = BTreeSet::new();
    for name in names {
        let places = places.get(name).ok_or_else(|| fault(name, "is none of the passages"))?;
        if places.len() > 1 {
            return Err(fault(name, "is the title of several passages"));
        }
        named.extend(places);
    }
    let wanted = Wanted::all(named);
    if wanted.is_empty() {
        return Err(questions.fault(record, field, "it names no passage"));
    }
    Ok(Query { id: id.clone(), text: question.clone(), groups: kind.iter().cloned().collect(), wanted })
}
