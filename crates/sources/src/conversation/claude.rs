//! Claude's export, `conversations.json`. The text of attached files is part of the message to which they are attached, and
//! so are the artifacts that a message makes or changes.

use super::layout::{Said, Session, laid_out_all};
use crate::records::Record;
use crate::{Cause, Source};

/// One source for each conversation, its path ending in `#` and the conversation's id.
pub(super) fn sources(path: &str, conversations: &[Record<'_>]) -> Result<Vec<Source>, Cause> {
    laid_out_all(path, conversations, |conversation| {
        let title = conversation.label("name")?;
        let mut said = Vec::new();
        for message in conversation.objects("chat_messages")? {
            let text = text(&message)?;
            if !text.trim().is_empty() {
                let id = (said.len() + 1).to_string();
                said.push(Said { id, speaker: message.text("sender")?, text, time: message.label("created_at")? });
            }
        }
        let time = conversation.label("created_at")?;
        Ok((conversation.label("uuid")?, title.clone(), vec![Session { number: 0, title, time, said }]))
    })
}

fn text(message: &Record<'_>) -> Result<String, Cause> {
    let mut texts = content(message)?;
    if texts.iter().all(|text| text.trim().is_empty()) {
        texts = message.label("text")?.into_iter().collect();
    }
    texts.retain(|text| !text.trim().is_empty());
    let attachments = if message.has("attachments") { message.objects("attachments")? } else { Vec::new() };
    for attachment in attachments {
        let name = attachment.label("file_name")?.unwrap_or_default();
        texts.push(format!("[attachment: {name}]"));
        texts.extend(attachment.label("extracted_content")?);
    }
    // Pictures, and files whose text the export does not hold.
    let files = if message.has("files") { message.objects("files")? } else { Vec::new() };
    for file in files {
        texts.push(format!("[file: {}]", file.label("file_name")?.unwrap_or_default()));
    }
    Ok(texts.join("\n"))
}

/// The texts and artifacts of a message, in order. Results of tools are left out.
fn content(message: &Record<'_>) -> Result<Vec<String>, Cause> {
    match message.raw("content") {
        None => return Ok(Vec::new()),
        Some(parts) if parts.starts_with('[') => {}
        Some(_) => return message.texts("content"),
    }
    let mut texts = Vec::new();
    for part in message.objects_if_any("content")? {
        let part = part?;
        texts.extend(part.string("text"));
        if part.string("type").is_some_and(|kind| kind == "tool_use") && part.has_object("input") {
            texts.extend(artifact(&part.object("input")?));
        }
    }
    Ok(texts)
}

/// What a call of a tool writes: a whole text, or the new one of a change.
fn artifact(input: &Record<'_>) -> Option<String> {
    let text = ["content", "file_text", "new_str"].into_iter().find_map(|field| input.string(field))?;
    let name = ["title", "path", "id"].into_iter().find_map(|field| input.string(field)).unwrap_or_default();
    (!text.trim().is_empty()).then(|| format!("[artifact: {name}]\n{text}"))
}
