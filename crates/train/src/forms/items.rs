//! The items of a source file: questions with their contexts and answers.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use crate::error::{Result, TrainError, io};

/// A passage and its title.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub(super) struct Passage {
    pub(super) title: String,
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(untagged)]
pub(super) enum Context {
    Text(String),
    Passages(Vec<Passage>),
}

/// A line of a source file.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) source: String,
    pub(super) kind: Kind,
    pub(super) context: Context,
    pub(super) question: String,
    pub(super) answers: Vec<String>,
    pub(super) supporting: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Single,
    Multihop,
    Story,
    Dialogue,
    Boolean,
    Unanswerable,
}

/// Reads a file of items, `*.jsonl.gz`.
pub(super) fn read(path: &Path) -> Result<Vec<Item>> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(io(path))?;
    BufReader::new(MultiGzDecoder::new(file)).read_to_string(&mut text).map_err(io(path))?;
    let parse = |(number, line): (usize, std::io::Result<String>)| {
        let line = line.map_err(io(path))?;
        let failed = |reason: String| TrainError::Data { path: path.to_owned(), line: number + 1, reason };
        serde_json::from_str(&line).map_err(|error| failed(error.to_string()))
    };
    text.as_bytes().lines().enumerate().map(parse).collect()
}

/// The document of a passage: sections of a story are titled `STORY, part N`.
pub(super) fn document(title: &str) -> &str {
    title.rsplit_once(", part ").map_or(title, |(story, _)| story)
}

/// The passages of the context.
pub(super) fn own_passages(item: &Item) -> Vec<Passage> {
    match &item.context {
        Context::Text(text) => vec![Passage { title: String::new(), text: text.clone() }],
        Context::Passages(passages) => passages.clone(),
    }
}

/// Whether an item names a passage as supporting, by its title or by one of its sentences.
pub(super) fn is_named(item: &Item, passage: &Passage) -> bool {
    item.supporting.iter().any(|s| *s == passage.title || passage.text.contains(s.as_str()))
}
