//! Sessions of turns, and their layout as text.
//!
//! The layout is the page of GAM on `LoCoMo`, byte for byte: `=== SESSION 0 - Dialogue Time(available to answer
//! questions): DATE ===`, a blank line, then `Ann (D1:1): Hello.` a turn.

use crate::limit::{RECORDS, TEXT_BYTES, check_text};
use crate::records::{Ids, Record};
use crate::{Cause, Kind, Limit, Section, Source, Turn};

/// One session of a conversation.
pub(crate) struct Session {
    /// The number in the header line, which GAM counts from 0.
    pub number: usize,
    pub title: Option<String>,
    pub time: Option<String>,
    pub said: Vec<Said>,
}

impl Session {
    /// At least the length of the session's text.
    fn max_bytes(&self) -> usize {
        let label = |label: &Option<String>| label.as_ref().map_or(0, String::len);
        let said = self
            .said
            .iter()
            .map(|said| said.speaker.len() + said.id.len() + said.text.len() + label(&said.time) + "\n (, ): ".len());
        "\n\n".len() + header(self.number, self.time.as_deref()).len() + said.sum::<usize>()
    }
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
/// [`Cause::NoText`] when all are empty; [`Limit::Records`] for the turns of all; those of `read`.
pub(crate) fn laid_out_all(
    path: &str,
    records: &[Record<'_>],
    read: impl Fn(&Record<'_>) -> Result<Chat, Cause>,
) -> Result<Vec<Source>, Cause> {
    let mut ids = Ids::default();
    let (mut sources, mut turns) = (Vec::new(), 0);
    for (i, record) in records.iter().enumerate() {
        let (id, title, sessions) = read(record)?;
        turns += sessions.iter().map(|session| session.said.len()).sum::<usize>();
        if turns > RECORDS {
            return Err(Limit::Records(RECORDS).into());
        }
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
///
/// # Errors
/// [`Limit::TextBytes`] for the text of the sessions.
pub(crate) fn by_day(turns: Vec<(String, Said)>) -> Result<Vec<Session>, Limit> {
    // A turn may be much shorter than the header of its day, so the text is counted before there are sessions.
    let days = turns.chunk_by(|(day, _), (next, _)| day == next).enumerate();
    let bytes = |(number, turns): (usize, &[(String, Said)])| {
        let length = |said: &Said| {
            let text = said.text.trim_end();
            said.speaker.len() + said.id.len() + text.len() + if text.is_empty() { "\n ():" } else { "\n (): " }.len()
        };
        let header = "\n\n".len() + header(number, Some(&turns[0].0)).len();
        header + turns.iter().map(|(_, said)| length(said)).sum::<usize>()
    };
    check_text(days.map(bytes).sum::<usize>().saturating_sub("\n\n".len()))?;
    let mut sessions: Vec<Session> = Vec::new();
    for (day, said) in turns {
        match sessions.last_mut() {
            Some(session) if session.title.as_ref() == Some(&day) => session.said.push(said),
            _ => {
                let (number, time) = (sessions.len(), Some(day.clone()));
                sessions.push(Session { number, title: Some(day), time, said: vec![said] });
            }
        }
    }
    Ok(sessions)
}

/// The sessions as one text.
///
/// # Errors
/// [`Cause::NoText`] when all turns are blank, [`Limit::TextBytes`].
pub(crate) fn laid_out(path: &str, kind: Kind, title: Option<String>, sessions: Vec<Session>) -> Result<Source, Cause> {
    if sessions.iter().flat_map(|session| &session.said).all(|said| said.text.trim().is_empty()) {
        return Err(Cause::NoText);
    }
    let bytes: usize = sessions.iter().map(Session::max_bytes).sum();
    // A text that grows is copied, and has twice the memory meanwhile.
    let mut text = String::with_capacity(bytes.min(TEXT_BYTES));
    let mut sections = Vec::with_capacity(sessions.len());
    for session in sessions {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        sections.push(lay_out(session, &mut text)?);
    }
    Ok(Source { path: path.to_owned(), kind, title, text, encoding: None, sections })
}

fn lay_out(session: Session, text: &mut String) -> Result<Section, Limit> {
    let start = text.len();
    text.push_str(&header(session.number, session.time.as_deref()));
    let mut turns = Vec::with_capacity(session.said.len());
    for said in session.said {
        text.push('\n');
        let start = text.len();
        write_line(&said, session.time.as_deref(), text);
        check_text(text.len())?;
        turns.push(Turn { span: start..text.len(), id: said.id, speaker: said.speaker, time: said.time });
    }
    // A session ends with its last word, as GAM's pages do, without the white space that follows in the file.
    text.truncate(text.trim_end().len());
    for turn in &mut turns {
        turn.span.end = turn.span.end.min(text.len());
    }
    Ok(Section { span: start..text.len(), title: session.title, time: session.time, turns })
}

fn header(number: usize, time: Option<&str>) -> String {
    match time {
        Some(time) => format!("=== SESSION {number} - Dialogue Time(available to answer questions): {time} ===\n"),
        None => format!("=== SESSION {number} ===\n"),
    }
}

fn write_line(said: &Said, session_time: Option<&str>, page: &mut String) {
    let Said { id, speaker, text, time } = said;
    page.extend([speaker, " (", id]);
    if let Some(time) = time.as_deref().filter(|time| Some(*time) != session_time) {
        page.extend([", ", time]);
    }
    page.extend(["): ", text]);
}
