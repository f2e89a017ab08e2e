//! Slack's export: a folder for each channel with a file of messages for each day, beside `users.json`, which gives the
//! names of users.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use super::layout::{Said, Session, laid_out};
use crate::limit::JSON_BYTES;
use crate::records::{Record, records};
use crate::{Cause, Kind, Source, dates, encoding};

/// The messages of a day in a channel.
pub(super) fn sources(path: &str, messages: &[Record<'_>]) -> Result<Vec<Source>, Cause> {
    // A file by another name was taken out of its channel's folder.
    let day = Path::new(path).file_stem().map(|day| day.to_string_lossy().into_owned()).filter(|day| is_day(day));
    let folder = Path::new(path).parent().filter(|_| day.is_some());
    let channel = folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let users = folder.and_then(Path::parent).map(|root| users(&root.join("users.json"))).unwrap_or_default();
    let mut said = Vec::new();
    for message in messages {
        let mut text = readable(&message.label("text")?.unwrap_or_default(), &users);
        let files = if message.has("files") { message.objects("files")? } else { Vec::new() };
        for file in files {
            text.extend(["\n[file: ", &file.label("name")?.unwrap_or_default(), "]"]);
        }
        if !text.trim().is_empty() {
            let time = message.label("ts")?.map(|time| dates::minute_of(&time));
            said.push(Said { id: (said.len() + 1).to_string(), speaker: speaker(message, &users)?, text, time });
        }
    }
    let first = || messages.first()?.label("ts").ok()?.map(|time| dates::minute_of(&time));
    let time = day.or_else(first);
    let session = Session { number: 0, title: channel.clone(), time, said };
    Ok(vec![laid_out(path, Kind::Conversation, channel, vec![session])?])
}

/// Whether a file's name is that of a day: `2024-05-01`.
fn is_day(name: &str) -> bool {
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let mut parts = name.split('-');
    [4, 2, 2].into_iter().all(|count| parts.next().is_some_and(|part| digits(part, count))) && parts.next().is_none()
}

fn speaker(message: &Record<'_>, users: &HashMap<String, String>) -> Result<String, Cause> {
    if message.has_object("user_profile")
        && let Some(name) = name_in(&message.object("user_profile")?)?
    {
        return Ok(name);
    }
    let user = message.label("user")?;
    let known = user.as_ref().and_then(|user| users.get(user).cloned());
    Ok(known.or(message.label("username")?).or(user).unwrap_or_else(|| "Slack".to_owned()))
}

/// The name that a profile shows.
fn name_in(profile: &Record<'_>) -> Result<Option<String>, Cause> {
    let names = [profile.label("real_name")?, profile.label("display_name")?, profile.label("name")?];
    Ok(names.into_iter().flatten().find(|name| !name.trim().is_empty()))
}

/// The names of users by their ids. Without the file, messages keep the ids.
fn users(file: &Path) -> HashMap<String, String> {
    let is_file = fs::symlink_metadata(file).is_ok_and(|meta| meta.is_file() && meta.len() <= JSON_BYTES);
    let text = is_file.then(|| fs::read(file).ok()).flatten().and_then(|bytes| encoding::decode_utf8(bytes).ok());
    let text = text.unwrap_or_default();
    let records = records(&text, Kind::Conversation).unwrap_or_default();
    let user = |user: &Record<'_>| Some((user.text("id").ok()?, name_in(user).ok()??));
    records.iter().filter_map(user).collect()
}

/// A message without Slack's marks: `<@U1>` is a name, `<#C1|news>` a channel, `<https://x|label>` a link.
fn readable(text: &str, users: &HashMap<String, String>) -> String {
    let mut readable = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        readable.push_str(before);
        let Some((mark, behind)) = after.split_once('>') else {
            readable.push('<');
            rest = after;
            continue;
        };
        let (target, label) = mark.split_once('|').map_or((mark, None), |(target, label)| (target, Some(label)));
        match (target.split_at_checked(1), label) {
            (Some(("@", id)), label) => {
                readable.push('@');
                readable.push_str(users.get(id).map_or(label.unwrap_or(id), String::as_str));
            }
            (Some(("#", id)), label) => readable.extend(["#", label.unwrap_or(id)]),
            (Some(("!", name)), label) => readable.extend(["@", label.unwrap_or(name).trim_start_matches('@')]),
            (_, Some(label)) => readable.extend([label, " (", target, ")"]),
            (_, None) => readable.push_str(target),
        }
        rest = behind;
    }
    readable.push_str(rest);
    readable.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_words() {
        let users = HashMap::from([("U1".to_owned(), "Ann".to_owned())]);
        let check = |text: &str, expect: &str| assert_eq!(readable(text, &users), expect);
        check("<@U1> and <@U2|bo> and <@U3>", "@Ann and @bo and @U3");
        check("<#C1|news> <!here> <!subteam^S1|@ops>", "#news @here @ops");
        check("<https://a.b|a page>, <https://a.b>", "a page (https://a.b), https://a.b");
        check("1 &lt; 2 &amp;&amp; <", "1 < 2 && <");
    }
}
