//! SQuAD's form, which is XQuAD's too: articles of paragraphs with their questions.

use std::path::Path;

use serde::Deserialize;

use super::records::Records;
use crate::Result;

#[derive(Deserialize)]
struct File {
    data: Vec<Article>,
}

#[derive(Deserialize)]
pub(crate) struct Article {
    pub title: String,
    pub paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
pub(crate) struct Paragraph {
    pub context: String,
    pub qas: Vec<Qa>,
}

#[derive(Deserialize)]
pub(crate) struct Qa {
    pub id: String,
    pub question: String,
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    text: String,
}

impl Qa {
    pub fn golds(&self) -> Vec<String> {
        self.answers.iter().map(|answer| answer.text.clone()).collect()
    }
}

/// The articles of a file.
pub(crate) fn read(file: &Path) -> Result<Vec<Article>> {
    Ok(Records::<File>::read(file)?.into_values().flat_map(|file| file.data).collect())
}
