//! ChatGPT's export, `conversations.json`: each conversation is a tree of messages, of which the branch that was shown
//! last is read, with the names of attached files and with the texts of canvases that a message makes or changes. Left out:
//! hidden messages, calls of other tools and results of tools, marks of citations.

use std::collections::HashSet;

use super::layout::{Said, Session, laid_out_all};
use crate::records::{Record, records};
use crate::{Cause, Kind, Source, dates};

/// One source for each conversation, its path ending in `#` and the conversation's id.
pub(super) fn sources(path: &str, conversations: &[Record<'_>]) -> Result<Vec<Source>, Cause> {
    laid_out_all(path, conversations, |conversation| {
        let id = [conversation.label("conversation_id")?, conversation.label("id")?].into_iter().flatten().next();
        let title = conversation.label("title")?;
        let time = conversation.label("create_time")?.map(|time| dates::minute_of(&time));
        let said = branch(conversation)?;
        Ok((id, title.clone(), vec![Session { number: 0, title, time, said }]))
    })
}

/// The messages from the root to the current node.
fn branch(conversation: &Record<'_>) -> Result<Vec<Said>, Cause> {
    let mapping = conversation.object("mapping")?;
    let mut next = conversation.label("current_node")?;
    let (mut ids, mut seen) = (Vec::new(), HashSet::new());
    while let Some(id) = next {
        if !seen.insert(id.clone()) {
            return Err(conversation.fault("mapping", "has a message that answers itself"));
        }
        next = mapping.object(&id)?.label("parent")?;
        ids.push(id);
    }
    drop(seen);
    let mut said = Vec::new();
    for id in ids.into_iter().rev() {
        let node = mapping.object(&id)?;
        if !node.has_object("message") {
            continue;
        }
        let message = node.object("message")?;
        let speaker = message.object("author")?.text("role")?;
        let metadata = if message.has_object("metadata") { Some(message.object("metadata")?) } else { None };
        let is_hidden = |metadata: &Record<'_>| metadata.raw("is_visually_hidden_from_conversation") == Some("true");
        let is_shown = !metadata.as_ref().is_some_and(is_hidden);
        if !is_shown || !matches!(&*speaker, "user" | "assistant") || !message.has_object("content") {
            continue;
        }
        let content = message.object("content")?;
        let is_text = matches!(&*content.text("content_type")?, "text" | "multimodal_text");
        let mut text = match canvas(&message, &content)? {
            Some(text) => text,
            None if is_text => without_citations(&content.texts("parts")?.join("\n")),
            None => continue,
        };
        if let Some(metadata) = metadata.filter(|metadata| metadata.raw("attachments").is_some_and(is_array)) {
            for attachment in metadata.objects("attachments")? {
                let name = attachment.label("name")?.unwrap_or_default();
                text.extend([if text.is_empty() { "[attachment: " } else { "\n[attachment: " }, &name, "]"]);
            }
        }
        if !text.trim().is_empty() {
            let time = message.label("create_time")?.map(|time| dates::minute_of(&time));
            said.push(Said { id: (said.len() + 1).to_string(), speaker, text, time });
        }
    }
    Ok(said)
}

/// What a message writes into a canvas: a whole text, or the new texts of a change. Such a message is the call of a tool, whose
/// arguments are JSON in its text.
fn canvas(message: &Record<'_>, content: &Record<'_>) -> Result<Option<String>, Cause> {
    const TOOLS: [&str; 2] = ["canmore.create_textdoc", "canmore.update_textdoc"];
    if !message.string("recipient").is_some_and(|tool| TOOLS.contains(&&*tool)) {
        return Ok(None);
    }
    let arguments = match content.string("text") {
        Some(text) => text,
        None if content.has("parts") => content.texts("parts")?.concat(),
        None => return Ok(None),
    };
    let arguments = match records(&arguments, Kind::Conversation) {
        Err(cause @ Cause::LimitExceeded(_)) => return Err(cause),
        arguments => arguments.unwrap_or_default(),
    };
    let [arguments] = &arguments[..] else { return Ok(None) };
    if let Some(text) = arguments.string("content") {
        let name = arguments.string("name").unwrap_or_default();
        return Ok(Some(format!("[canvas: {name}]\n{text}")));
    }
    let mut texts = vec!["[canvas]".to_owned()];
    for update in arguments.objects_if_any("updates")? {
        texts.extend(update?.string("replacement"));
    }
    Ok((texts.len() > 1).then(|| texts.join("\n")))
}

fn is_array(json: &str) -> bool {
    json.starts_with('[')
}

/// A text without the marks of its citations, which name results of tools: `\u{e200}cite\u{e202}turn0search0\u{e201}`.
fn without_citations(text: &str) -> String {
    let mut parts = text.split('\u{e200}');
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_citation = part.starts_with("cite\u{e202}") || part.starts_with("filecite\u{e202}");
        match part.split_once('\u{e201}') {
            Some((_, behind)) if is_citation => shown.push_str(behind),
            _ => shown.extend(["\u{e200}", part]),
        }
    }
    shown
}
