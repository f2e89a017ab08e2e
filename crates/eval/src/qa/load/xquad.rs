//! XQuAD's articles with their paragraphs and questions, in SQuAD's form.

use std::ops::Range;
use std::path::Path;

use serde::Deserialize;

use crate::Result;
use crate::data::records::Records;
use crate::qa::case::{Evidence, Question, Text};

#[derive(Deserialize)]
struct Xquad {
    data: Vec<Article>,
}

#[derive(Deserialize)]
pub(super) struct Article {
    pub title: String,
    pub paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
pub(super) struct Paragraph {
    pub context: String,
    pub qas: Vec<Qa>,
}

#[derive(Deserialize)]
pub(super) struct Qa {
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

    /// The question of a part, answered by a span of its only source.
    pub fn asked(&self, part: &str, paragraph: usize, bytes: Range<usize>) -> Question {
        Question {
            id: self.id.clone(),
            text: self.question.clone(),
            golds: self.golds(),
            groups: vec![part.into()],
            evidence: vec![Evidence { id: paragraph.to_string(), source: 0, bytes }],
            ..Question::default()
        }
    }
}

/// The articles of a file.
pub(super) fn read(file: &Path) -> Result<Vec<Article>> {
    Ok(Records::<Xquad>::read(file)?.into_values().flat_map(|file| file.data).collect())
}

/// The paragraphs of an article but one, with their places.
pub(super) fn text_of(article: &Article, without: Option<usize>) -> (String, Vec<Option<Range<usize>>>) {
    let mut text = Text::default();
    let mut spans = Vec::new();
    for (number, paragraph) in article.paragraphs.iter().enumerate() {
        if Some(number) == without {
            spans.push(None);
            continue;
        }
        if !text.text.is_empty() {
            text.push("\n\n");
        }
        spans.push(Some(text.push(&paragraph.context)));
    }
    (text.text, spans)
}
