//! The common format of all data sets of questions: cases, each with some texts and the questions about them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use memory::Turn;
use serde::{Deserialize, Serialize};
use sources::{Kind, Section, Source};

use crate::Random;

/// One suite's questions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cases {
    pub cases: Vec<Case>,
    /// Corrections and omissions in the files, with reasons.
    pub notes: Vec<String>,
    /// The files that were read.
    pub files: Vec<PathBuf>,
}

/// Texts that are memorised together, and the questions about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Unique in its data set.
    pub id: String,
    pub sources: Vec<Source>,
    pub questions: Vec<Question>,
}

/// A question with its gold answers and their evidence.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Question {
    /// Unique in its case.
    pub id: String,
    pub text: String,
    /// Any of them is right; for a question with options the letter; for RULER all of them are required.
    pub golds: Vec<String>,
    /// The groups with separate numbers, the question's category first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The texts of options A, B, ...
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// The time of the question, where it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The questions before it in a conversation, with their answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<(String, String)>,
    /// The evidence, if the data set names it.
    #[serde(skip)]
    pub evidence: Vec<Evidence>,
    /// The sessions of a conversation with evidence.
    #[serde(skip)]
    pub sessions: Vec<Evidence>,
}

/// A span of a text that is evidence for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Its name in the data set.
    pub id: String,
    /// The number of the case's text.
    pub source: usize,
    /// Its byte range in that text.
    pub bytes: Range<usize>,
}

impl Question {
    /// The first of its groups.
    pub fn category(&self) -> &str {
        self.groups.first().map_or("", String::as_str)
    }

    /// Whether the texts lack the answer: LongMemEval marks such questions by their ids, as does the suite `answers`.
    pub fn is_unanswerable(&self) -> bool {
        self.id.ends_with("_abs")
    }

    /// The number at the start of its category; LoCoMo's categories have one.
    pub fn category_number(&self) -> usize {
        self.category().split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// The conversation before it.
    pub fn turns(&self) -> Vec<Turn> {
        let turn = |(question, answer): &(String, String)| Turn {
            question: question.clone(),
            answer: answer.clone(),
            short: None,
        };
        self.history.iter().map(turn).collect()
    }

    /// The question for every method, with its date. Options are passed separately, since only the answering call gets
    /// them.
    pub fn asked(&self) -> String {
        let date = self.date.as_ref().map_or_else(String::new, |date| format!("Today is {date}.\n"));
        date + &self.text
    }
}

impl Cases {
    /// The number of questions.
    pub fn questions(&self) -> usize {
        self.cases.iter().map(|case| case.questions.len()).sum()
    }

    /// Keeps the first `most` questions and their cases; notes what is left out.
    pub fn limit(&mut self, most: usize) {
        let all = self.questions();
        let mut left = most;
        for case in &mut self.cases {
            case.questions.truncate(left);
            left -= case.questions.len();
        }
        self.drop_empty();
        if most < all {
            self.notes.push(format!("only the first {most} of {all} questions are asked"));
        }
    }

    /// Keeps the first `most` questions of each category; notes what is left out.
    pub fn limit_each(&mut self, most: usize) {
        let all = self.questions();
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        self.keep(|question| {
            let taken = taken.entry(question.category().to_owned()).or_default();
            *taken += 1;
            *taken <= most
        });
        let left = self.questions();
        if left < all {
            self.notes.push(format!("only the first {most} questions of each part are asked, {left} of {all}"));
        }
    }

    /// Keeps `most` questions drawn by a seed, in their order; notes what is left out.
    pub fn sample(&mut self, most: usize, seed: u64) {
        let all = self.questions();
        if most >= all {
            return;
        }
        let mut numbers: Vec<usize> = (0..all).collect();
        Random::new(seed).shuffle(&mut numbers);
        numbers.truncate(most);
        let chosen: std::collections::BTreeSet<usize> = numbers.into_iter().collect();
        let mut number = 0;
        self.keep(|_| {
            number += 1;
            chosen.contains(&(number - 1))
        });
        self.notes.push(format!("{most} of {all} questions are asked, drawn by seed {seed}"));
    }

    /// Keeps the questions of a category that starts with one of `names`; notes the number of others by category.
    pub fn only(&mut self, names: &[String]) {
        let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
        self.keep(|question| {
            let kept = names.iter().any(|name| question.category().starts_with(name.as_str()));
            if !kept {
                *left_out.entry(question.category().to_owned()).or_default() += 1;
            }
            kept
        });
        let notes = left_out
            .iter()
            .map(|(category, questions)| format!("the {questions} questions of category `{category}` are left out"));
        self.notes.extend(notes);
    }

    /// Keeps the cases whose id starts with one of `names`; notes how many are left out.
    pub fn only_of(&mut self, names: &[String]) {
        let all = self.cases.len();
        self.cases.retain(|case| names.iter().any(|name| case.id.starts_with(name.as_str())));
        if self.cases.len() < all {
            self.notes.push(format!("only {} of {all} cases are asked: {}", self.cases.len(), names.join(", ")));
        }
    }

    fn keep(&mut self, mut wanted: impl FnMut(&Question) -> bool) {
        self.cases.iter_mut().for_each(|case| case.questions.retain(&mut wanted));
        self.drop_empty();
    }

    fn drop_empty(&mut self) {
        self.cases.retain(|case| !case.questions.is_empty());
    }
}

/// The sessions of a conversation with evidence, each once.
pub(crate) fn sessions_with(evidence: &[Evidence], number: usize, source: &Source) -> Vec<Evidence> {
    let has = |section: &&Section| {
        evidence.iter().any(|evidence| evidence.source == number && section.span.contains(&evidence.bytes.start))
    };
    let session = |section: &Section| Evidence {
        id: section.title.clone().unwrap_or_default(),
        source: number,
        bytes: section.span.clone(),
    };
    source.sections.iter().filter(has).map(session).collect()
}

/// A text built from pieces with known spans.
#[derive(Default)]
pub(crate) struct Text {
    pub text: String,
}

impl Text {
    /// Appends a piece and returns its span.
    pub fn push(&mut self, piece: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(piece);
        start..self.text.len()
    }
}

/// A text of one section.
pub(crate) fn document(path: &str, title: Option<String>, text: String) -> Source {
    let section = Section { span: 0..text.len(), title: None, time: None, turns: Vec::new() };
    Source { path: path.to_owned(), kind: Kind::Text, title, text, encoding: None, sections: vec![section] }
}
