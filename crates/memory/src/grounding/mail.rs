//! Who writes a message of mail and who reads it, by the lines above its body: "From: Ann Lee <ann@home.example>".

use super::values::is_title;
use super::words::words;

/// A message of mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Message<'a> {
    /// The sender's name, or else the part of the address before "@".
    pub sender: &'a str,
    /// The same of the recipient, if there is one alone.
    pub recipient: Option<&'a str>,
}

/// The message that has a byte of a text in its body; `None` outside of bodies, and in what a message quotes of another one.
pub(super) fn message_at(text: &str, at: usize) -> Option<Message<'_>> {
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    if text[line..].starts_with('>') {
        return None;
    }
    let (mut message, mut header) = (None, Vec::new());
    for line in text[..line].lines() {
        match line.trim().is_empty() {
            _ if header.is_empty() && line.starts_with(FROM) => header.push(line),
            false if !header.is_empty() => header.push(line),
            // The body begins, or the paragraph that only begins as a header does ends.
            true if !header.is_empty() => message = Message::read(&std::mem::take(&mut header)).or(message),
            _ if introduces_another(line) => message = None,
            _ => (),
        }
    }
    message.filter(|_| header.is_empty())
}

/// The parts of a name in lower case, without titles: "ann" and "lee" of "Dr. Ann Lee" and of "ann.lee".
pub(super) fn parts(name: &str) -> Vec<String> {
    let parts = words(&name.replace('.', " ")).into_iter().map(|word| word.lower);
    parts.filter(|part| !is_title(part)).collect()
}

const FROM: &str = "From: ";
const TO: &str = "To: ";

/// Lines of which a header has at least one beside the sender's.
const BESIDE: [&str; 3] = [TO, "Date: ", "Sent: "];

/// How lines end that introduce what a message quotes of another one.
const WROTE: [&str; 4] = ["wrote:", "schrieb:", "a écrit :", "escribió:"];

impl<'a> Message<'a> {
    /// Reads the lines of a header, of which the first has the sender.
    fn read(header: &[&'a str]) -> Option<Message<'a>> {
        let [from, rest @ ..] = header else { return None };
        let is_header = rest.iter().any(|line| BESIDE.iter().any(|field| line.starts_with(field)));
        let to = rest.iter().find_map(|line| line.strip_prefix(TO));
        // With two addresses there are two recipients; one name may have a comma: "Lee, Ann".
        let recipient = to.filter(|to| to.matches('@').count() < 2 && !to.contains(';')).and_then(name);
        Some(Message { sender: name(from.strip_prefix(FROM)?)?, recipient }).filter(|_| is_header)
    }
}

/// The name in "Ann Lee <ann@home.example>", or "ann" of "ann@home.example".
fn name(address: &str) -> Option<&str> {
    let shown = address.split('<').next().unwrap_or_default().trim_matches(['"', ' ']);
    let whole = if shown.is_empty() { address.trim_matches(['<', '>', ' ']) } else { shown };
    whole.split('@').next().filter(|name| !name.is_empty())
}

/// Whether a line is above what a message quotes of another one: "On 3 May Ann wrote:", "-----Original Message-----".
fn introduces_another(line: &str) -> bool {
    line.starts_with("-----") || WROTE.iter().any(|end| line.trim_end().ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: &str = "# Move\nFrom: Ann Lee <ann@home.example>\nTo: Dr. Tom Roe <tom@home.example>\nDate: Mon, 2 Feb 2026\n\n\
        Hi Tom,\n\nI moved to Rome. From: here to there.\n\nFrom: Rome I write.\n\nI like it.\n\n\
        On 1 Feb 2026, Tom Roe wrote:\n> I live in Oslo.\n\nI quote.";

    fn sender_of(part: &str) -> Option<&str> {
        message_at(MAIL, MAIL.find(part).unwrap()).map(|message| message.sender)
    }

    #[test]
    fn the_sender_of_a_message_is_in_the_lines_above_its_body() {
        let message = message_at(MAIL, MAIL.find("I moved").unwrap());
        assert_eq!(message, Some(Message { sender: "Ann Lee", recipient: Some("Dr. Tom Roe") }));
        assert_eq!(sender_of("I like it"), Some("Ann Lee"), "a line of the body is no header");
        assert_eq!([sender_of("# Move"), sender_of("Date:"), sender_of("Ann Lee")], [None; 3]);
        assert_eq!([sender_of("I live"), sender_of("I quote")], [None; 2], "the words of another message");
        let next = format!("{MAIL}\n\nFrom: bo@x.example\nSent: Tuesday\nTo: a@x.example, b@x.example\n\nI know.");
        let forwarded = message_at(&next, next.find("I know").unwrap());
        assert_eq!(forwarded, Some(Message { sender: "bo", recipient: None }));
        assert_eq!(message_at("I moved to Rome.", 0), None);
    }

    #[test]
    fn names_and_addresses_have_the_same_parts() {
        for name in ["Dr. Ann Lee", "ann.lee", "Ann Lee"] {
            assert_eq!(parts(name), ["ann", "lee"], "{name}");
        }
        assert_eq!(name("\"Lee, Ann\" <a@x.example>"), Some("Lee, Ann"));
        assert_eq!([name("<ann.lee@x.example>"), name("")], [Some("ann.lee"), None]);
    }
}
