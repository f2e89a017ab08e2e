//! NarrativeQA (Kočiský et al. 2018): questions about whole stories, with two answers each. Read are its own tables
//! (`qaps.csv` beside `tmp/ID.content`), JSON lines of the same (`document_id`, `question`, `answers`) beside novels or
//! summaries, and ComoRAG's form of one story (`qas.jsonl`, `corpus.jsonl`).

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::{checked, csv};
use crate::data::files;
use crate::data::records::{Records, fault};
use crate::qa::case::{Case, Cases, Question, document};
use crate::{Error, Result};

#[derive(Deserialize)]
struct Qa {
    #[serde(rename = "_id", alias = "id")]
    id: String,
    #[serde(default)]
    document_id: String,
    question: String,
    #[serde(alias = "golden_answers")]
    answers: Vec<String>,
}

#[derive(Deserialize)]
struct Summary {
    document_id: String,
    summary: String,
}

#[derive(Deserialize)]
struct Novel {
    file: String,
    narrativeqa_document_id: Option<String>,
}

#[derive(Deserialize)]
struct Chunk {
    contents: String,
}

/// One case for each story.
pub(crate) fn load(path: &Path) -> Result<Cases> {
    let tables = if path.is_dir() { path.join("qaps.csv") } else { path.to_owned() };
    if tables.extension().is_some_and(|extension| extension == "csv") && tables.is_file() {
        return from_tables(&tables);
    }
    let file = files::find(path, &["fullstory", "qas", "qa"])?;
    let questions = Records::<Qa>::read(&file)?;
    let folder = file.parent().unwrap_or(path);
    let mut cases = Cases::default();
    let mut stories = stories(folder, &file, &mut cases)?;
    for record in questions.iter() {
        let Qa { id, document_id, question, answers } = &record.value;
        let question =
            Question { id: id.clone(), text: question.clone(), golds: answers.clone(), ..Question::default() };
        let question = checked(question, ["question", "answers"]);
        let question = question.map_err(|(field, problem)| questions.fault(record, field, problem))?;
        let missing = || questions.fault(record, "document_id", format!("there is no text of `{document_id}`"));
        add(document_id, question, &mut stories, &mut cases).ok_or_else(missing)?;
    }
    cases.files.insert(0, file);
    Ok(cases)
}

/// Puts a question into the case of its story, which is made at its first question; `None` if there is no such story.
fn add(id: &str, question: Question, stories: &mut HashMap<String, String>, cases: &mut Cases) -> Option<()> {
    if let Some(case) = cases.cases.iter_mut().find(|case| case.id == id) {
        case.questions.push(question);
        return Some(());
    }
    let text = stories.remove(id)?;
    cases.cases.push(Case { id: id.to_owned(), sources: vec![document(id, None, text)], questions: vec![question] });
    Some(())
}

/// The texts that questions are about, by the document's id: whole novels for a file with `fullstory` in its name, one
/// story in chunks for ComoRAG's form, summaries otherwise.
fn stories(folder: &Path, file: &Path, cases: &mut Cases) -> Result<HashMap<String, String>> {
    let name = files::name(file);
    if name.contains("fullstory") {
        let beside = folder.join("novels");
        let novels = if beside.is_dir() { beside } else { folder.parent().unwrap_or(folder).join("novels") };
        let index = Records::<Novel>::read(&novels.join("index.jsonl"))?;
        let mut stories = HashMap::new();
        for novel in index.into_values() {
            if let Some(id) = novel.narrativeqa_document_id {
                let path = novels.join(novel.file);
                stories.insert(id, fs::read_to_string(&path).map_err(Error::reading(&path))?);
                cases.files.push(path);
            }
        }
        return Ok(stories);
    }
    if name.starts_with("qas") {
        let corpus = files::find(folder, &["corpus"])?;
        let chunks = Records::<Chunk>::read(&corpus)?.into_values().map(|chunk| chunk.contents);
        let story = chunks.collect::<Vec<_>>().concat();
        cases.files.push(corpus);
        return Ok(HashMap::from([(String::new(), story)]));
    }
    let summaries = files::find(folder, &["summaries"])?;
    let texts =
        Records::<Summary>::read(&summaries)?.into_values().map(|summary| (summary.document_id, summary.summary));
    cases.notes.push("asked are summaries, not whole stories: no number of a paper compares".into());
    let texts = texts.collect();
    cases.files.push(summaries);
    Ok(texts)
}

fn from_tables(file: &Path) -> Result<Cases> {
    let folder = file.parent().unwrap_or(file);
    let mut cases = Cases::default();
    let mut stories = HashMap::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for row in csv::read(file)? {
        let field = |name| csv::field(file, &row, name);
        let (id, set) = (field("document_id")?.to_owned(), field("set")?.to_owned());
        let number = numbers.entry(id.clone()).or_default();
        let golds = vec![field("answer1")?.to_owned(), field("answer2")?.to_owned()];
        let (text, groups) = (field("question")?.to_owned(), vec![set]);
        let question = Question { id: format!("{id}_{number}"), text, golds, groups, ..Question::default() };
        *number += 1;
        let question = checked(question, ["question", "answer1"]);
        let question = question.map_err(|(field, problem)| fault(file, row.0, field, problem))?;
        if cases.cases.iter().all(|case| case.id != id) {
            let story = folder.join("tmp").join(format!("{id}.content"));
            let text = fs::read(&story).map_err(Error::reading(&story))?;
            // Some stories are in other encodings; what is no UTF-8 is marked as such.
            stories.insert(id.clone(), String::from_utf8_lossy(&text).into_owned());
            cases.files.push(story);
        }
        let missing = || fault(file, row.0, "document_id", format!("there is no text of `{id}`"));
        add(&id, question, &mut stories, &mut cases).ok_or_else(missing)?;
    }
    cases.files.insert(0, file.to_owned());
    Ok(cases)
}
