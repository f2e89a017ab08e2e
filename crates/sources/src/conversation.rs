//! Conversations: detects which of the two JSON forms a file has, and lays out sessions of turns as text.
//!
//! The layout is the page of GAM on `LoCoMo`, byte for byte: `=== SESSION 0 - Dialogue Time(available to answer
//! questions): DATE ===`, a blank line, then `Ann (D1:1): Hello.` a turn.

use std::fmt::Write;

use crate::records::records;
use crate::{Captions, Cause, Kind, Section, Source, Turn, dialogue, locomo};

/// One session of a conversation.
pub(crate) struct Session {
    /// The number in the header line, which GAM counts from 0.
    pub number: usize,
    pub title: Option<String>,
    pub time: Option<String>,
    pub said: Vec<Said>,
}

/// One turn, before it has a span in the text.
pub(crate) struct Said {
    pub id: String,
    pub speaker: String,
    pub text: String,
    pub time: Option<String>,
}

/// The conversations of a `.json` or `.jsonl` file.
pub(crate) fn sources(path: &str, file: &str, captions: Captions) -> Result<Vec<Source>, Cause> {
    let records = records(file.trim_start_matches('\u{feff}'))?;
    let first = records.first().ok_or(Cause::NoText)?;
    if first.has("conversation") {
        return locomo::sources(path, &records, captions);
    }
    if first.has("speaker") || first.has("text") {
        return Ok(vec![laid_out(path, None, dialogue::sessions(&records)?)?]);
    }
    Err(Cause::UnknownConversation { line: first.line(), fields: first.first_fields() })
}

/// The sessions as one text.
///
/// # Errors
/// [`Cause::NoText`] when all turns are blank.
pub(crate) fn laid_out(path: &str, title: Option<String>, sessions: Vec<Session>) -> Result<Source, Cause> {
    if sessions.iter().flat_map(|session| &session.said).all(|said| said.text.trim().is_empty()) {
        return Err(Cause::NoText);
    }
    let mut text = String::new();
    let mut sections = Vec::new();
    for session in sessions {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        sections.push(lay_out(session, &mut text));
    }
    Ok(Source { path: path.to_owned(), kind: Kind::Conversation, title, text, sections })
}

fn lay_out(session: Session, text: &mut String) -> Section {
    let start = text.len();
    text.push_str(&header(&session));
    let mut turns = Vec::new();
    for said in session.said {
        text.push('\n');
        let start = text.len();
        text.push_str(&line(&said, session.time.as_deref()));
        turns.push(Turn { span: start..text.len(), id: said.id, speaker: said.speaker, time: said.time });
    }
    // A session ends with its last word, as GAM's pages do, without the white space that follows in the file.
    text.truncate(text.trim_end().len());
    for turn in &mut turns {
        turn.span.end = turn.span.end.min(text.len());
    }
    Section { span: start..text.len(), title: session.title, time: session.time, turns }
}

fn header(session: &Session) -> String {
    let number = session.number;
    match &session.time {
        Some(time) => format!("=== SESSION {number} - Dialogue Time(available to answer questions): {time} ===\n"),
        None => format!("=== SESSION {number} ===\n"),
    }
}

fn line(said: &Said, session_time: Option<&str>) -> String {
    let Said { id, speaker, text, time } = said;
    let mut line = format!("{speaker} ({id}");
    if let Some(time) = time.as_deref().filter(|time| Some(*time) != session_time) {
        let _ = write!(line, ", {time}");
    }
    line + "): " + text
}
