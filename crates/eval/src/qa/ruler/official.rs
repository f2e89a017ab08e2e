//! Files that RULER has made: JSON lines of `index`, `input`, `outputs`, `length`. The question is the last line of the
//! input; the text before it is memorised. The task is the name of the file or of its folder.

use std::path::Path;

use serde::Deserialize;

use super::Task;
use crate::Result;
use crate::data::files;
use crate::data::records::Records;
use crate::qa::case::{Case, Cases, Question, document};

#[derive(Deserialize)]
struct Item {
    index: u64,
    input: String,
    outputs: Vec<String>,
}

/// One case for each record.
pub(crate) fn load(file: &Path) -> Result<Cases> {
    let items = Records::<Item>::read(file)?;
    let folder = file.parent().map(files::name).unwrap_or_default();
    let stem = files::name(file);
    let named = |task: &Task| folder == task.name || stem.starts_with(task.name);
    let task = Task::ALL.into_iter().find(named);
    let mut cases = Cases { files: vec![file.to_owned()], ..Cases::default() };
    for record in items.iter() {
        let Item { index, input, outputs } = &record.value;
        let fault = |field: &str, problem: &str| items.fault(record, field, problem);
        let (text, question) = input.trim_end().rsplit_once('\n').ok_or_else(|| fault("input", "it is of one line"))?;
        if outputs.is_empty() {
            return Err(fault("outputs", "there is no answer in it"));
        }
        let groups = task.map_or_else(Vec::new, |task| vec![task.name.to_owned(), task.group.to_owned()]);
        let question = Question {
            id: index.to_string(),
            text: question.trim_start_matches("Question: ").to_owned(),
            golds: outputs.clone(),
            groups,
            ..Question::default()
        };
        let id = format!("{}-{index}", task.map_or("ruler", |task| task.name));
        cases.cases.push(Case { sources: vec![document(&id, None, text.to_owned())], id, questions: vec![question] });
    }
    Ok(cases)
}
