//! MuSiQue's form: JSON lines, each a question with its paragraphs, `is_supporting` on those that it needs (Trivedi et
//! al. 2022, <https://github.com/StonyBrookNLP/musique>). The pool is all paragraphs of all questions.

use std::path::Path;

use serde::Deserialize;

use super::pool::Pool;
use super::records::Records;
use super::{Collection, Dataset, Query, Wanted, files};
use crate::Result;

#[derive(Deserialize)]
struct Item {
    /// `2hop__574419_270105`.
    id: String,
    question: String,
    paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
struct Paragraph {
    title: String,
    #[serde(rename = "paragraph_text")]
    text: String,
    is_supporting: bool,
}

/// The questions by their number of hops.
pub(crate) fn load(path: &Path) -> Result<Dataset> {
    let file = files::find(path, &["dev"])?;
    let questions = Records::<Item>::read(&file)?;
    let mut pool = Pool::default();
    let mut queries = Vec::new();
    for record in questions.iter() {
        let Item { id, question, paragraphs } = &record.value;
        let mut supporting = Vec::new();
        for paragraph in paragraphs {
            let place = pool.put(&paragraph.title, &paragraph.text);
            supporting.extend(paragraph.is_supporting.then_some(place));
        }
        if supporting.is_empty() {
            return Err(questions.fault(record, "paragraphs", "none of them is supporting"));
        }
        let hops = id.split("__").next().unwrap_or_default().to_owned();
        let wanted = Wanted::all(supporting);
        queries.push(Query { id: id.clone(), text: question.clone(), groups: vec![hops], wanted });
    }
    let collections =
        vec![Collection { name: "pool".into(), passages: pool.passages, queries, ..Collection::default() }];
    Ok(Dataset { collections, files: vec![file], notes: Vec::new() })
}
