//! The date of a conversation travels with its parts: only the first part of a session has the session's heading.

use store::{Corpus, Passage, PassageId};

use crate::core::error::Result;

/// A passage's text, after the time of its session unless the text states it.
pub(crate) fn dated(id: PassageId, corpus: &Corpus) -> Result<String> {
    let text = corpus.passage_text(id)?;
    let time = corpus.passage(id)?.meta.time;
    Ok(match unstated(time.as_deref(), &text) {
        Some(time) => format!("({time}) {}", text.trim_start()),
        None => text,
    })
}

/// The time of a passage, unless its text states it.
pub(crate) fn unstated<'a>(time: Option<&'a str>, text: &str) -> Option<&'a str> {
    time.filter(|time| !text.contains(time))
}

/// The time of the page in which a document's byte is, for passages that are cut from its text.
pub(crate) fn time_at(pages: &[Passage], byte: usize) -> Option<String> {
    let after = pages.partition_point(|page| page.span.bytes().start <= byte);
    after.checked_sub(1).and_then(|number| pages[number].meta.time.clone())
}
