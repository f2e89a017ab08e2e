//! Slack's export: a folder for each channel with a file of messages for each day, beside `users.json`, which gives the
//! names of users. A reply in a thread names the message that it answers.

use std::collections::HashMap;
use std::path::Path;

use super::layout::{Said, Session, laid_out};
use super::slack_users::{Names, name_in};
use crate::limit::check_text;
use crate::records::Record;
use crate::{Cause, Kind, Limit, SlackUsers, Source, dates};

/// The messages of a day in a channel.
pub(super) fn sources(path: &str, messages: &[Record<'_>], users: &SlackUsers) -> Result<Vec<Source>, Cause> {
    // A file by another name was taken out of its channel's folder.
    let day = Path::new(path).file_stem().map(|day| day.to_string_lossy().into_owned()).filter(|day| is_day(day));
    let folder = Path::new(path).parent().filter(|_| day.is_some());
    let channel = folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let users = folder.and_then(Path::parent).map(|export| users.of(export)).unwrap_or_default();
    let (mut said, mut length) = (Vec::new(), 0);
    // The ids of messages by their times, which threads have as their names.
    let mut ids = HashMap::new();
    for message in messages {
        let mut text = readable(&message.label("text")?.unwrap_or_default(), &users)?;
        if text.trim().is_empty() {
            text = blocks(message, &users)?;
        }
        let files = if message.has("files") { message.objects("files")? } else { Vec::new() };
        for file in files {
            text.extend(["\n[file: ", &file.label("name")?.unwrap_or_default(), "]"]);
        }
        // What programs report is often in attachments alone; those of a message with words are previews of links.
        if text.trim().is_empty() && message.raw("attachments").is_some_and(|value| value.starts_with('[')) {
            text = attached(message, &users)?;
        }
        if !text.trim().is_empty() {
            let (id, time) = ((said.len() + 1).to_string(), message.label("ts")?);
            if let Some(thread) = message.label("thread_ts")?.filter(|thread| time.as_ref() != Some(thread)) {
                text.insert_str(0, &reply_to(&thread, &ids));
            }
            ids.extend(time.clone().map(|time| (time, id.clone())));
            let time = time.map(|time| dates::minute_of(&time));
            let speaker = speaker(message, &users)?;
            // A name is repeated without being in the file again.
            length += text.len() + speaker.len();
            check_text(length)?;
            said.push(Said { id, speaker, text, time });
        }
    }
    let first = || messages.first()?.label("ts").ok()?.map(|time| dates::minute_of(&time));
    let time = day.or_else(first);
    let session = Session { number: 0, title: channel.clone(), time, said };
    Ok(vec![laid_out(path, Kind::Conversation, channel, vec![session])?])
}

/// What is written before a reply: the id of the first message of its thread, or its time if it is in another file.
fn reply_to(thread: &str, ids: &HashMap<String, String>) -> String {
    match ids.get(thread) {
        Some(id) => format!("[reply to {id}] "),
        None => format!("[reply to the message of {}] ", dates::minute_of(thread)),
    }
}

/// The words of a message's attachments.
fn attached(message: &Record<'_>, users: &Names) -> Result<String, Cause> {
    let mut words = String::new();
    for attachment in message.objects("attachments")? {
        let texts = [attachment.label("pretext")?, attachment.label("title")?, attachment.label("text")?];
        let texts = texts.into_iter().flatten().filter(|text| !text.trim().is_empty()).collect::<Vec<_>>();
        let blocks = if texts.is_empty() { blocks(&attachment, users)? } else { String::new() };
        let fallback = if texts.is_empty() && blocks.is_empty() { attachment.label("fallback")? } else { None };
        let readable = texts.iter().chain(&fallback).map(|text| readable(text, users)).chain([Ok(blocks)]);
        for text in readable {
            let text = text?;
            words.extend([if words.is_empty() || text.is_empty() { "" } else { "\n" }, &text]);
            check_text(words.len())?;
        }
    }
    Ok(words)
}

/// The words of the blocks of which a message consists, each on lines of its own.
fn blocks(message: &Record<'_>, users: &Names) -> Result<String, Cause> {
    let mut words = String::new();
    for block in message.objects_if_any("blocks")? {
        write_block(&block?, BLOCK_LEVELS, users, &mut words)?;
        end_line(&mut words);
    }
    words.truncate(words.trim_end().len());
    Ok(words)
}

/// How deep Slack nests: a block, a list, an item, its words, and a word's text.
const BLOCK_LEVELS: usize = 5;

fn write_block(block: &Record<'_>, levels: usize, users: &Names, words: &mut String) -> Result<(), Cause> {
    check_text(words.len())?;
    let Some(levels) = levels.checked_sub(1) else { return Ok(()) };
    let kind = block.string("type").unwrap_or_default();
    match &*kind {
        "user" => {
            let id = block.string("user_id").unwrap_or_default();
            words.extend(["@", users.get(&id).map_or(&*id, String::as_str)]);
        }
        "channel" => words.extend(["#", &block.string("channel_id").unwrap_or_default()]),
        "broadcast" => words.extend(["@", &block.string("range").unwrap_or_default()]),
        "emoji" => words.extend([":", &block.string("name").unwrap_or_default(), ":"]),
        "image" => words.extend(block.string("alt_text").map(|text| format!("[image: {text}]"))),
        "link" => {
            let url = block.string("url").unwrap_or_default();
            let text = block.string("text").filter(|text| *text != url);
            words.push_str(&text.map_or(url.clone(), |text| format!("{text} ({url})")));
        }
        "mrkdwn" | "plain_text" => words.push_str(&readable(&block.string("text").unwrap_or_default(), users)?),
        _ => words.extend(block.string("text")),
    }
    if block.has_object("text") {
        write_block(&block.object("text")?, levels, users, words)?;
        end_line(words);
    }
    for field in ["fields", "elements"] {
        for part in block.objects_if_any(field)? {
            write_block(&part?, levels, users, words)?;
            // The parts of a line follow each other.
            if !matches!(&*kind, "rich_text_section" | "rich_text_quote" | "rich_text_preformatted") {
                end_line(words);
            }
        }
    }
    Ok(())
}

fn end_line(words: &mut String) {
    if !words.is_empty() && !words.ends_with('\n') {
        words.push('\n');
    }
}

/// Whether a file's name is that of a day: `2024-05-01`.
fn is_day(name: &str) -> bool {
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = name.split('-');
    [4, 2, 2].into_iter().all(|count| parts.next().is_some_and(|part| digits(part, count))) && parts.next().is_none()
}

fn speaker(message: &Record<'_>, users: &Names) -> Result<String, Cause> {
    if message.has_object("user_profile")
        && let Some(name) = name_in(&message.object("user_profile")?)?
    {
        return Ok(name);
    }
    let user = message.label("user")?;
    let known = user.as_ref().and_then(|user| users.get(user).cloned());
    Ok(known.or(message.label("username")?).or(user).unwrap_or_else(|| "Slack".to_owned()))
}

/// A message without Slack's marks: `<@U1>` is a name, `<#C1|news>` a channel, `<https://x|label>` a link.
///
/// # Errors
/// [`Limit::TextBytes`]: a mention is shorter than the name.
fn readable(text: &str, users: &Names) -> Result<String, Limit> {
    let mut readable = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        unescape(before, &mut readable);
        check_text(readable.len())?;
        let Some((mark, behind)) = after.split_once('>') else {
            readable.push('<');
            rest = after;
            continue;
        };
        let (target, label) = mark.split_once('|').map_or((mark, None), |(target, label)| (target, Some(label)));
        // Newer exports write `<#C1|>`.
        let label = label.filter(|label| !label.is_empty());
        match (target.split_at_checked(1), label) {
            (Some(("@", id)), label) => {
                readable.push('@');
                unescape(users.get(id).map_or(label.unwrap_or(id), String::as_str), &mut readable);
            }
            (Some(("#", id)), label) => {
                readable.push('#');
                unescape(label.unwrap_or(id), &mut readable);
            }
            (Some(("!", name)), label) => {
                readable.push('@');
                unescape(label.unwrap_or(name).trim_start_matches('@'), &mut readable);
            }
            (_, Some(label)) => {
                unescape(label, &mut readable);
                readable.push_str(" (");
                unescape(target, &mut readable);
                readable.push(')');
            }
            (_, None) => unescape(target, &mut readable),
        }
        rest = behind;
    }
    unescape(rest, &mut readable);
    Ok(readable)
}

/// Adds text in which `&`, `<` and `>` are written as in HTML.
fn unescape(text: &str, readable: &mut String) {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        readable.push_str(before);
        let known = [("lt;", '<'), ("gt;", '>'), ("amp;", '&')];
        let found = known.into_iter().find_map(|(name, character)| Some((after.strip_prefix(name)?, character)));
        let (behind, character) = found.unwrap_or((after, '&'));
        readable.push(character);
        rest = behind;
    }
    readable.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_words() {
        let users = Names::from([("U1".to_owned(), "Ann".to_owned())]);
        let check = |text: &str, expect: &str| assert_eq!(readable(text, &users).as_deref(), Ok(expect));
        check("<@U1> and <@U2|bo> and <@U3>", "@Ann and @bo and @U3");
        check("<#C1|news> <!here> <!subteam^S1|@ops>", "#news @here @ops");
        check("<#C1|> <@U3|> <https://a.b|>", "#C1 @U3 https://a.b");
        check("<https://a.b|a page>, <https://a.b>", "a page (https://a.b), https://a.b");
        check("1 &lt; 2 &amp;&amp; <", "1 < 2 && <");
        check("<https://a.b?c&amp;d|x &gt; y> &amp;lt; &copy", "x > y (https://a.b?c&d) &lt; &copy");
    }
}
