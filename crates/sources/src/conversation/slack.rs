//! Slack's export: a folder for each channel with a file of messages for each day, beside `users.json`, which gives the
//! names of users.

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
    for message in messages {
        let mut text = readable(&message.label("text")?.unwrap_or_default(), &users)?;
        let files = if message.has("files") { message.objects("files")? } else { Vec::new() };
        for file in files {
            text.extend(["\n[file: ", &file.label("name")?.unwrap_or_default(), "]"]);
        }
        // What programs report is often in attachments alone; those of a message with words are previews of links.
        if text.trim().is_empty() && message.raw("attachments").is_some_and(|value| value.starts_with('[')) {
            text = attached(message, &users)?;
        }
        if !text.trim().is_empty() {
            let time = message.label("ts")?.map(|time| dates::minute_of(&time));
            let speaker = speaker(message, &users)?;
            // A name is repeated without being in the file again.
            length += text.len() + speaker.len();
            check_text(length)?;
            said.push(Said { id: (said.len() + 1).to_string(), speaker, text, time });
        }
    }
    let first = || messages.first()?.label("ts").ok()?.map(|time| dates::minute_of(&time));
    let time = day.or_else(first);
    let session = Session { number: 0, title: channel.clone(), time, said };
    Ok(vec![laid_out(path, Kind::Conversation, channel, vec![session])?])
}

/// The words of a message's attachments.
fn attached(message: &Record<'_>, users: &Names) -> Result<String, Cause> {
    let mut words = String::new();
    for attachment in message.objects("attachments")? {
        let texts = [attachment.label("pretext")?, attachment.label("title")?, attachment.label("text")?];
        let texts = texts.into_iter().flatten().filter(|text| !text.trim().is_empty()).collect::<Vec<_>>();
        let fallback = if texts.is_empty() { attachment.label("fallback")? } else { None };
        for text in texts.into_iter().chain(fallback) {
            words.extend([if words.is_empty() { "" } else { "\n" }, &readable(&text, users)?]);
            check_text(words.len())?;
        }
    }
    Ok(words)
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
        check("<https://a.b|a page>, <https://a.b>", "a page (https://a.b), https://a.b");
        check("1 &lt; 2 &amp;&amp; <", "1 < 2 && <");
        check("<https://a.b?c&amp;d|x &gt; y> &amp;lt; &copy", "x > y (https://a.b?c&d) &lt; &copy");
    }
}
