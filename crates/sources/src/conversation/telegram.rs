//! Telegram's export, `result.json`: one chat, or all chats. Left out: what Telegram itself reports, such as new members.

use super::layout::{Said, Session, by_day, laid_out, laid_out_all};
use crate::records::{Ids, Record};
use crate::{Cause, Kind, Source};

/// One source for each chat; of an export of all chats, its path ends in `#` and the chat's id.
pub(super) fn sources(path: &str, export: &Record<'_>) -> Result<Vec<Source>, Cause> {
    if !export.has("chats") {
        return Ok(vec![laid_out(path, Kind::Conversation, export.label("name")?, sessions(export)?)?]);
    }
    let mut chats = export.object("chats")?.objects("list")?;
    if export.has_object("left_chats") {
        chats.extend(export.object("left_chats")?.objects("list")?);
    }
    laid_out_all(path, &chats, |chat| Ok((chat.label("id")?, chat.label("name")?, sessions(chat)?)))
}

/// Fields of messages that are named in brackets with some of their own fields.
const NAMED: [(&str, &str, &[&str]); 2] = [
    ("contact_information", "contact", &["first_name", "last_name", "phone_number"]),
    ("location_information", "location", &["latitude", "longitude"]),
];

fn sessions(chat: &Record<'_>) -> Result<Vec<Session>, Cause> {
    let mut ids = Ids::default();
    let mut all = Vec::new();
    for message in chat.objects("messages")? {
        if message.label("type")?.as_deref() != Some("message") {
            continue;
        }
        let text = text(&message)?;
        if text.trim().is_empty() {
            continue;
        }
        let id = message.label("id")?.ok_or_else(|| message.fault("id", "is missing"))?;
        ids.take(&id, &message, "id")?;
        let speaker = [message.label("from")?, message.label("from_id")?].into_iter().flatten().next();
        let speaker = speaker.unwrap_or_else(|| "Deleted Account".to_owned());
        let date = message.text("date")?;
        let day = date.get(..10).unwrap_or(&date).to_owned();
        all.push((day, Said { id, speaker, text, time: Some(date.replacen('T', " ", 1)) }));
    }
    Ok(by_day(all)?)
}

/// The words of a message; a picture, a file, a sticker, a poll, a contact or a place is named in brackets.
fn text(message: &Record<'_>) -> Result<String, Cause> {
    let mut text = String::new();
    if let Some(from) = message.label("forwarded_from")? {
        text = format!("[forwarded from {from}] ");
    }
    let kind = message.label("media_type")?.unwrap_or_else(|| "file".to_owned()).replace('_', " ");
    if message.has("photo") {
        text.push_str("[photo] ");
    } else if let Some(name) = message.label("file_name")? {
        text.extend(["[", &kind, ": ", &name, "] "]);
    } else if message.has("file") {
        text.extend(["[", &kind, "] "]);
    }
    if message.has_object("poll") {
        let poll = message.object("poll")?;
        let answers = if poll.has("answers") { poll.objects("answers")? } else { Vec::new() };
        let words = |answer: &Record<'_>| answer.texts("text").map(|texts| texts.concat());
        let answers = answers.iter().map(words).collect::<Result<Vec<String>, Cause>>()?;
        text.extend(["[poll: ", &poll.texts("question")?.concat(), " (", &answers.join(", "), ")] "]);
    }
    for (field, name, parts) in NAMED {
        if message.has_object(field) {
            let object = message.object(field)?;
            let words = parts.iter().map(|part| object.label(part)).collect::<Result<Vec<_>, Cause>>()?;
            let words: Vec<String> = words.into_iter().flatten().filter(|word| !word.is_empty()).collect();
            text.extend(["[", name, ": ", &words.join(" "), "] "]);
        }
    }
    if message.has("text") {
        text.push_str(&message.texts("text")?.concat());
    }
    Ok(text.trim_end().to_owned())
}
