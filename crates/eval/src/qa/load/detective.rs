//! DetectiveQA (Xu et al. 2024): annotations of detective novels (`novel_id`, `questions` with options by letter), and
//! the novels themselves as text files whose names begin with that id, beside the annotations or in a folder there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Texts, checked, with_letters};
use crate::data::files;
use crate::data::records::Records;
use crate::qa::case::{Case, Cases, Question, document};
use crate::{Error, Result};

#[derive(Deserialize)]
struct Novel {
    novel_id: Texts,
    questions: Vec<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    question: String,
    options: BTreeMap<String, String>,
    answer: String,
}

/// One case for each novel.
pub(crate) fn load(path: &Path) -> Result<Cases> {
    fs::metadata(path).map_err(Error::reading(path))?;
    let folder = if path.is_file() { path.parent().unwrap_or(path) } else { path };
    let novels = texts(folder)?;
    let mut cases = Cases::default();
    for file in files::json_files(path)? {
        let records = Records::<Novel>::read(&file)?;
        for record in records.iter() {
            let id = record.value.novel_id.texts().concat();
            let named = |novel: &&PathBuf| files::name(novel).split(['-', '_', '.', ' ']).next() == Some(id.as_str());
            let problem = || format!("no .txt file below {} begins with `{id}`", folder.display());
            let novel = novels.iter().find(named).ok_or_else(|| records.fault(record, "novel_id", problem()))?;
            let questions = record.value.questions.iter().enumerate().map(|(number, asked)| {
                question(number, asked)
                    .map_err(|(field, problem)| records.fault(record, &format!("questions[{number}].{field}"), problem))
            });
            let questions = questions.collect::<Result<Vec<_>>>()?;
            if let Some(case) = cases.cases.iter_mut().find(|case| case.id == id) {
                let numbered = (case.questions.len()..).zip(questions);
                let numbered = numbered.map(|(number, question)| Question { id: number.to_string(), ..question });
                case.questions.extend(numbered.collect::<Vec<_>>());
            } else {
                let text = fs::read_to_string(novel).map_err(Error::reading(novel))?;
                cases.files.push(novel.clone());
                cases.cases.push(Case { sources: vec![document(&id, None, text)], id, questions });
            }
        }
        cases.files.push(file);
    }
    Ok(cases)
}

fn question(number: usize, asked: &Asked) -> std::result::Result<Question, super::Fault> {
    let question = Question { id: number.to_string(), text: asked.question.clone(), ..Question::default() };
    let question = with_letters(question, asked.options.clone(), &asked.answer, ["options", "answer"])?;
    checked(question, ["question", "answer"])
}

/// The text files of a folder and of the folders in it.
fn texts(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::reading(folder))? {
        let path = entry.map_err(Error::reading(folder))?.path();
        if path.is_dir() {
            texts.extend(self::texts(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            texts.push(path);
        }
    }
    texts.sort();
    Ok(texts)
}
