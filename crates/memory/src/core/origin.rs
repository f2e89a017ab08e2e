//! The origin of a passage is shown before it: the time of its session, since only the first part of a session has the
//! session's heading, and the path of its document, by which a question may refer to it.

use calls::Agent;
use store::{Corpus, Document, Passage, PassageId};

use crate::core::error::Result;
use crate::core::profile::Profile;
use crate::core::session::Session;

/// A passage's text, after the time of its session unless the text states it.
pub(crate) fn dated(id: PassageId, corpus: &Corpus) -> Result<String> {
    after_origin(id, false, corpus)
}

/// The same, with the folder and the name of its document before the time.
pub(crate) fn dated_with_path(id: PassageId, corpus: &Corpus) -> Result<String> {
    after_origin(id, true, corpus)
}

fn after_origin(id: PassageId, with_path: bool, corpus: &Corpus) -> Result<String> {
    let (passage, text) = (corpus.passage(id)?, corpus.passage_text(id)?);
    let document = if with_path { Some(corpus.document(passage.document)?) } else { None };
    let time = unstated(passage.meta.time.as_deref(), &text);
    Ok(match in_brackets(document.as_ref(), time) {
        Some(origin) => format!("{origin} {}", text.trim_start()),
        None => text,
    })
}

/// The folder and the name of a document, the time, or both, as prompts show them: `(notes/may.md, 8 May, 2023)`.
pub(crate) fn in_brackets(document: Option<&Document>, time: Option<&str>) -> Option<String> {
    let origin: Vec<&str> = document.map(Document::short_path).into_iter().chain(time).collect();
    (!origin.is_empty()).then(|| format!("({})", origin.join(", ")))
}

/// Whether an agent is shown the paths of documents: not with one document, and not in the small profile, whose prompts have
/// the name of a document as a heading.
pub(crate) fn shows_paths(agent: Agent, corpus: &Corpus, session: &Session<'_>) -> Result<bool> {
    Ok(session.profile(agent) == Profile::Paper && corpus.has_several_documents()?)
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
