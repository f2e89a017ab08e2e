//! XQuAD's articles as texts, and its questions about them.

use std::ops::Range;

use crate::data::squad::{Article, Qa};
use crate::qa::case::{Evidence, Question, Text};

impl Qa {
    /// The question of a part, answered by a span of its only source.
    pub(super) fn asked(&self, part: &str, paragraph: usize, bytes: Range<usize>) -> Question {
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
