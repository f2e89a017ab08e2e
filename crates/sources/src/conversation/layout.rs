//! Sessions of turns, and their layout as text.
//!
//! The layout is the page of GAM on `LoCoMo`, byte for byte: `=== SESSION 0 - Dialogue Time(available to answer
//! questions): DATE ===`, a blank line, then `Ann (D1:1): Hello.` a turn.

use std::fmt::Write;

use crate::records::{Ids, Record};
use crate::{Cause, Kind, Section, Source, Turn};

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

/// A conversation of a file of several: its id, its title and its sessions.
pub(crate) type Chat = (Option<String>, Option<String>, Vec<Session>);

/// One source for each conversation of an export, its path ending in `#` and the conversation's id, or its number in a file
/// of several. Empty conversations, which exports have, are left out.
///
/// # Errors
/// [`Cause::NoText`] when all are empty; those of `read`.
pub(crate) fn laid_out_all(
    path: &str,
    records: &[Record<'_>],
    read: impl Fn(&Record<'_>) -> Result<Chat, Cause>,
) -> Result<Vec<Source>, Cause> {
    let mut ids = Ids::default();
    let mut sources = Vec::new();
    for (i, record) in records.iter().enumerate() {
        let (id, title, sessions) = read(record)?;
        let id = id.or((records.len() > 1).then(|| (i + 1).to_string()));
        let path = id.as_ref().map_or(path.to_owned(), |id| format!("{path}#{id}"));
        ids.take(&id.unwrap_or_default(), record, "id")?;
        match laid_out(&path, Kind::Conversation, title, sessions) {
            Err(Cause::NoText) => {}
            source => sources.push(source?),
        }
    }
    if sources.is_empty() { Err(Cause::NoText) } else { Ok(sources) }
}

/// Turns with their days as sessions, one for each day.
pub(crate) fn by_day(turns: Vec<(String, Said)>) -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    for (day, said) in turns {
        if sessions.last().is_none_or(|session| session.title.as_ref() != Some(&day)) {
            let (number, time) = (sessions.len(), Some(day.clone()));
            sessions.push(Session { number, title: Some(day), time, said: Vec::new() });
        }
        if let Some(session) = sessions.last_mut() {
            session.said.push(said);
        }
    }
    sessions
}

/// The sessions as one text.
///
/// # Errors
/// [`Cause::NoText`] when all turns are blank.
pub(crate) fn laid_out(path: &str, kind: Kind, title: Option<String>, sessions: Vec<Session>) -> Result<Source, Cause> {
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
    Ok(Source { path: path.to_owned(), kind, title, text, encoding: None, sections })
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
