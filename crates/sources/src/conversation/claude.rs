//! Claude's export, `conversations.json`. The text of attached files is part of the message to which they are attached.

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
    let mut texts = if message.has("content") { message.texts("content")? } else { Vec::new() };
    if texts.iter().all(|text| text.trim().is_empty()) {
        texts = message.label("text")?.into_iter().collect();
    }
    let attachments = if message.has("attachments") { message.objects("attachments")? } else { Vec::new() };
    for attachment in attachments {
        let name = attachment.label("file_name")?.unwrap_or_default();
        texts.push(format!("[attachment: {name}]"));
        texts.extend(attachment.label("extracted_content")?);
    }
    Ok(texts.join("\n"))
}
