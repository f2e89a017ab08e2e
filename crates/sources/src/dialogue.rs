//! The simple form of a conversation: a list of turns, as described in the crate's documentation.

use std::collections::HashMap;

use crate::Cause;
use crate::conversation::layout::{Said, Session};
use crate::records::{Ids, Record};

/// The sessions of a file of turns.
pub(crate) fn sessions(turns: &[Record<'_>]) -> Result<Vec<Session>, Cause> {
    let mut ids = Ids::default();
    let mut sessions: Vec<Session> = Vec::new();
    let mut numbers: HashMap<Option<String>, usize> = HashMap::new();
    for (i, turn) in turns.iter().enumerate() {
        let said = Said {
            id: turn.label("id")?.unwrap_or_else(|| (i + 1).to_string()),
            speaker: turn.text("speaker")?,
            text: turn.text("text")?,
            time: turn.label("time")?,
        };
        ids.take(&said.id, turn, "id")?;
        let title = turn.label("session")?;
        let number = *numbers.entry(title.clone()).or_insert(sessions.len());
        match sessions.get_mut(number) {
            Some(session) => session.said.push(said),
            None => sessions.push(Session { number, title, time: said.time.clone(), said: vec![said] }),
        }
    }
    Ok(sessions)
}
