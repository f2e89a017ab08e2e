//! Chats in the form of OpenAI's API: `{"messages": [{"role": "user", "content": "Hello."}]}`.

use super::layout::{Said, Session, laid_out, laid_out_all};
use crate::records::Record;
use crate::{Cause, Kind, Source};

/// One source for each chat, its path ending in `#` and the chat's id, or its number if there are several.
pub(super) fn sources(path: &str, chats: &[Record<'_>]) -> Result<Vec<Source>, Cause> {
    laid_out_all(path, chats, |chat| {
        let title = chat.label("title")?;
        Ok((chat.label("id")?, title.clone(), vec![session(title, &chat.objects("messages")?)?]))
    })
}

/// A file that is the list of messages itself.
pub(super) fn of_one(path: &str, messages: &[Record<'_>]) -> Result<Vec<Source>, Cause> {
    Ok(vec![laid_out(path, Kind::Conversation, None, vec![session(None, messages)?])?])
}

fn session(title: Option<String>, messages: &[Record<'_>]) -> Result<Session, Cause> {
    let said = messages.iter().enumerate().map(|(i, message)| said(i, message)).collect::<Result<Vec<_>, _>>()?;
    let said = said.into_iter().filter(|said| !said.text.trim().is_empty()).collect();
    Ok(Session { number: 0, title, time: None, said })
}

fn said(i: usize, message: &Record<'_>) -> Result<Said, Cause> {
    let speaker = match message.label("name")? {
        Some(name) => name,
        None => message.text("role")?,
    };
    let time = [message.label("time")?, message.label("timestamp")?, message.label("created_at")?];
    // A message that only calls tools has no content.
    let text = if message.has("content") { message.texts("content")?.join("\n") } else { String::new() };
    Ok(Said { id: (i + 1).to_string(), speaker, text, time: time.into_iter().flatten().next() })
}
