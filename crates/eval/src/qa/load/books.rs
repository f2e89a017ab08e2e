//! ∞Bench's novels (Zhang et al. 2024): En.QA with free answers and En.MC with options, as JSON lines of `id`,
//! `context`, `input`, `answer`, `options`. Questions about one novel follow each other and are one case.

use std::path::Path;

use serde::Deserialize;

use super::{Texts, checked};
use crate::Result;
use crate::data::files;
use crate::data::records::Records;
use crate::qa::case::{Case, Cases, Question, document};
use crate::{Error, data::files::name};

#[derive(Deserialize)]
struct Item {
    id: Texts,
    context: String,
    input: String,
    answer: Texts,
    #[serde(default)]
    options: Vec<String>,
}

/// All novel tasks that the file, or the folder, holds.
pub(crate) fn load(path: &Path) -> Result<Cases> {
    std::fs::metadata(path).map_err(Error::reading(path))?;
    let mut cases = Cases::default();
    for file in files::json_files(path)? {
        if path.is_file() || ["longbook_qa_eng", "longbook_choice_eng"].iter().any(|task| name(&file).contains(task)) {
            read(&file, &mut cases)?;
            cases.files.push(file);
        }
    }
    if cases.files.is_empty() {
        let problem = "no longbook_qa_eng.jsonl or longbook_choice_eng.jsonl in it".to_owned();
        return Err(Error::NotTheData { path: path.to_owned(), problem });
    }
    Ok(cases)
}

fn read(file: &Path, cases: &mut Cases) -> Result<()> {
    let items = Records::<Item>::read(file)?;
    for record in items.iter() {
        let Item { id, context, input, answer, options } = &record.value;
        let fault = |(field, problem): (&str, String)| items.fault(record, field, problem);
        if context.trim().is_empty() {
            return Err(fault(("context", "it is empty".into())));
        }
        let task = if options.is_empty() { "en.qa" } else { "en.mc" };
        let mut golds = answer.texts();
        if !options.is_empty() {
            let place = options.iter().position(|option| golds.contains(option));
            let problem = || fault(("answer", format!("`{}` is none of the options", golds.join(", "))));
            golds = vec![char::from(b'A' + place.ok_or_else(problem)? as u8).to_string()];
        }
        let question = Question {
            id: format!("{task}-{}", id.texts().concat()),
            text: input.clone(),
            golds,
            groups: vec![task.to_owned()],
            options: options.clone(),
            ..Question::default()
        };
        let question = checked(question, ["input", "answer"]).map_err(fault)?;
        match cases.cases.last_mut() {
            Some(case) if case.sources.iter().any(|source| source.text == *context) => case.questions.push(question),
            _ => {
                let id = format!("book-{}", cases.cases.len() + 1);
                let sources = vec![document(&id, None, context.clone())];
                cases.cases.push(Case { id, sources, questions: vec![question] });
            }
        }
    }
    Ok(())
}
