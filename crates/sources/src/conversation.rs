//! Conversations: detects which form a JSON file has.

mod chatgpt;
mod claude;
pub(crate) mod layout;
mod messages;
mod slack;
pub(crate) mod slack_users;
mod telegram;
pub(crate) mod whatsapp;

use crate::conversation::layout::laid_out;
use crate::encoding::Decoded;
use crate::records::records;
use crate::{Captions, Cause, Kind, SlackUsers, Source, dialogue, locomo};

/// The conversations of a `.json` or `.jsonl` file.
pub(crate) fn sources(
    path: &str,
    file: &Decoded,
    captions: Captions,
    users: &SlackUsers,
) -> Result<Vec<Source>, Cause> {
    let records = records(file.text.trim_start_matches('\u{feff}'), Kind::Conversation)?;
    let first = records.first().ok_or(Cause::NoText)?.indexed()?;
    let has = |field| first.has(field);
    if has("conversation") {
        return locomo::sources(path, &records, captions);
    }
    if has("mapping") {
        return chatgpt::sources(path, &records);
    }
    if has("chat_messages") {
        return claude::sources(path, &records);
    }
    if has("chats") || has("messages") && first.first_of("messages")?.is_some_and(|message| !message.has("role")) {
        return telegram::sources(path, &first);
    }
    if has("messages") {
        return messages::sources(path, &records);
    }
    if has("ts") && !has("speaker") {
        return slack::sources(path, &records, users);
    }
    if has("role") && has("content") {
        return messages::of_one(path, &records);
    }
    if has("speaker") || has("text") {
        return Ok(vec![laid_out(path, Kind::Conversation, None, dialogue::sessions(&records)?)?]);
    }
    Err(Cause::UnknownConversation { line: first.line(), fields: first.first_fields() })
}
