//! E-mail: headers, the plain text of a message or else its HTML as text, invitations, the names of attachments, and
//! messages that were forwarded as attachments. A blank plain text, as newsletters have, counts as none. Apple Mail's
//! files (`.emlx`) have the message's length before it, and a list of its properties, which is left out, after it.
//!
//! Signed messages (S/MIME) are read whether the text is beside the signature or within it; signatures are not verified. An encrypted
//! message is refused, and named if it is within another.
//!
//! Bytes that do not fit the character set that a message declares appear as U+FFFD. A part of 8-bit bytes that
//! declares none and is not UTF-8 is in the encoding that its letters tell.

use std::borrow::Cow;

use mail_parser::decoders::base64::base64_decode;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use mail_parser::{Encoding, HeaderName, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use crate::attachment::{Attachment, Secured};
use crate::cms::{self, Content};
use crate::html::Deadline;
use crate::limit::{MAIL_BYTES, MAIL_LINES, MAIL_PARAMETERS_BYTES, NESTING, SIGNATURES, check_text};
use crate::source::Part;
use crate::{Cause, Kind, Limit, Source, calendar, encoding, html};

/// Where a message is.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    deadline: Deadline,
    /// Whether it is within another message, which is read even if this one is not.
    is_attached: bool,
    /// How many signatures it is within.
    signatures: usize,
}

impl Place {
    /// The place of a message that is within no signature.
    pub fn new(deadline: Deadline, is_attached: bool) -> Self {
        Place { deadline, is_attached, signatures: 0 }
    }
}

/// A `.eml` or `.emlx` file.
pub(crate) fn source(path: &str, bytes: &[u8], deadline: Deadline) -> Result<Source, Cause> {
    let part = read(without_frame(bytes)?, Kind::Email, deadline)?;
    let title = part.title.clone();
    Source::joined(path, Kind::Email, title, vec![part])
}

/// The message in a file of Apple Mail's; any other file as it is.
fn without_frame(bytes: &[u8]) -> Result<&[u8], Cause> {
    let Some(end) = memchr::memchr(b'\n', bytes) else { return Ok(bytes) };
    let length = str::from_utf8(&bytes[..end]).ok().and_then(|line| line.trim().parse::<usize>().ok());
    let Some(length) = length else { return Ok(bytes) };
    let message = bytes[end + 1..].get(..length);
    message.ok_or_else(|| {
        Cause::damaged(Kind::Email, "it is shorter than its first line says; it may have been cut short")
    })
}

/// The text of a message, titled by its subject.
///
/// # Errors
/// [`Cause::Damaged`] if it has no headers, or in a file of its own none of those that are shown;
/// [`Cause::EncryptedMessage`], [`Cause::LimitExceeded`].
pub(crate) fn read(bytes: &[u8], kind: Kind, deadline: Deadline) -> Result<Part, Cause> {
    let message = parsed(bytes)?;
    let message = message.filter(|message| kind == Kind::Mailbox || is_email(message));
    let message = message.ok_or_else(|| Cause::damaged(kind, "a message has none of the headers of an e-mail"))?;
    let mut text = String::new();
    write(&message, &mut text, Place::new(deadline, false))?;
    Ok(Part { title: header(&message, HeaderName::Subject), time: date(&message), text })
}

/// Writes an e-mail that is attached to another message; returns whether the bytes are one.
///
/// # Errors
/// [`Cause::LimitExceeded`].
pub(crate) fn write_attached(bytes: &[u8], text: &mut String, deadline: Deadline) -> Result<bool, Cause> {
    let Some(message) = parsed(bytes)?.filter(is_email) else { return Ok(false) };
    text.push_str(ATTACHED_MESSAGE);
    write(&message, text, Place::new(deadline, true))?;
    Ok(true)
}

/// Writes the text and the attachments of a signed part, of whose message another program keeps the headers; returns whether
/// the bytes are one.
///
/// # Errors
/// [`Cause::LimitExceeded`].
pub(crate) fn write_signed(bytes: &[u8], text: &mut String, deadline: Deadline) -> Result<bool, Cause> {
    let is_signed =
        |message: &Message<'_>| message.parts.first().is_some_and(|part| part.is_content_type("multipart", "signed"));
    let Some(message) = parsed(bytes)?.filter(is_signed) else { return Ok(false) };
    write(&message, text, Place::new(deadline, true))?;
    Ok(true)
}

/// Writes the text and the attachments of a message that is within its signature; returns what the bytes are if that cannot be read.
///
/// # Errors
/// [`Cause::EncryptedMessage`] and [`Cause::Damaged`] of a message in it, [`Cause::LimitExceeded`].
pub(crate) fn write_secured(bytes: &[u8], text: &mut String, place: Place) -> Result<Option<Secured>, Cause> {
    let signed = match cms::content(bytes) {
        Some(Content::Signed(signed)) => signed,
        Some(Content::Encrypted) => return Ok(Some(Secured::Encrypted)),
        Some(Content::Other) => return Ok(Some(Secured::Other)),
        None => return Ok(Some(Secured::Damaged)),
    };
    if place.signatures == SIGNATURES {
        return Err(Limit::Nesting(SIGNATURES).into());
    }
    // Files are signed in this form too. A message without headers starts with the empty line after them.
    let has_type = |message: &Message<'_>| message.parts.first().is_some_and(|part| part.content_type().is_some());
    let has_no_headers = signed.starts_with(b"\r\n") || signed.starts_with(b"\n");
    let is_message = |message: &Message<'_>| has_type(message) || has_no_headers || is_email(message);
    let Some(message) = parsed(&signed)?.filter(is_message) else { return Ok(Some(Secured::Other)) };
    write(&message, text, Place { signatures: place.signatures + 1, ..place })?;
    Ok(None)
}

/// The line before a message that is attached to another.
pub(crate) const ATTACHED_MESSAGE: &str = "\n[attached message]\n";

fn is_email(message: &Message<'_>) -> bool {
    SHOWN.iter().any(|name| message.header(name.clone()).is_some())
}

/// The message in these bytes; `None` if they have no headers.
///
/// # Errors
/// [`Cause::LimitExceeded`].
pub(crate) fn parsed(bytes: &[u8]) -> Result<Option<Message<'_>>, Limit> {
    check(bytes)?;
    Ok(parser().parse(bytes))
}

fn parser() -> MessageParser {
    let text = |parser: MessageParser, name| parser.header_text(name);
    let names = [HeaderName::From, HeaderName::To, HeaderName::Cc, HeaderName::Subject];
    let parser = names.into_iter().fold(MessageParser::new().with_mime_headers(), text);
    parser.header_date(HeaderName::Date).default_header_ignore()
}

/// The subject of a message that is not read.
pub(crate) fn subject(bytes: &[u8]) -> Option<String> {
    let head = &bytes[..bytes.len().min(MAIL_PARAMETERS_BYTES)];
    parser().parse_headers(head).and_then(|message| header(&message, HeaderName::Subject))
}

const SHOWN: [HeaderName<'static>; 5] =
    [HeaderName::From, HeaderName::To, HeaderName::Cc, HeaderName::Date, HeaderName::Subject];

/// Refuses what would take mail-parser much memory or time: each line can be a header, and nested messages are dropped
/// by recursion.
fn check(bytes: &[u8]) -> Result<(), Limit> {
    if bytes.len() as u64 > MAIL_BYTES {
        return Err(Limit::MailBytes(MAIL_BYTES));
    }
    let (mut lines, mut nested, mut parameters) = (0, 0, None);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        lines += 1;
        if line.trim_ascii_start().get(..8).is_some_and(|start| start.eq_ignore_ascii_case(b"content-")) {
            parameters = Some(line.len());
            let line = line.to_ascii_lowercase();
            let is_nested = |kind: &str| memchr::memmem::find(&line, kind.as_bytes()).is_some();
            nested += usize::from(["rfc822", "global", "digest"].iter().any(|kind| is_nested(kind)));
        } else if line.starts_with(b" ") || line.starts_with(b"\t") {
            parameters = parameters.map(|length| length + line.len());
        } else {
            parameters = None;
        }
        if lines > MAIL_LINES {
            return Err(Limit::MailLines(MAIL_LINES));
        }
        if nested > NESTING {
            return Err(Limit::Nesting(NESTING));
        }
        if parameters.is_some_and(|length| length > MAIL_PARAMETERS_BYTES) {
            return Err(Limit::MailParametersBytes(MAIL_PARAMETERS_BYTES));
        }
    }
    Ok(())
}

pub(crate) fn header(message: &Message<'_>, name: HeaderName<'static>) -> Option<String> {
    one_line(&message.header(name)?.as_text_list().unwrap_or_default().join(", "))
}

/// A text with single spaces between its words; `None` if it has none.
pub(crate) fn one_line(text: &str) -> Option<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

fn date(message: &Message<'_>) -> Option<String> {
    message.date().filter(|date| date.is_valid()).map(mail_parser::DateTime::to_rfc822)
}

/// The headers of a message that are shown, each on one line.
pub(crate) struct Headers {
    pub subject: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub cc: Option<String>,
    pub date: Option<String>,
}

impl Headers {
    pub fn of(message: &Message<'_>) -> Self {
        let header = |name| header(message, name);
        Headers {
            subject: header(HeaderName::Subject),
            from: header(HeaderName::From),
            to: header(HeaderName::To),
            cc: header(HeaderName::Cc),
            date: date(message),
        }
    }

    pub fn write(&self, text: &mut String) {
        let lines = [
            ("# ", &self.subject),
            ("From: ", &self.from),
            ("To: ", &self.to),
            ("Cc: ", &self.cc),
            ("Date: ", &self.date),
        ];
        for (label, value) in lines {
            if let Some(value) = value {
                text.extend([label, value, "\n"]);
            }
        }
    }
}

fn write(message: &Message<'_>, text: &mut String, place: Place) -> Result<(), Cause> {
    Headers::of(message).write(text);
    for body in bodies(message) {
        text.push('\n');
        match &body.body {
            PartType::Text(words) => text.push_str(words_of(message, body, words)?.replace("\r\n", "\n").trim()),
            PartType::Html(html) => text.push_str(&html::page(&words_of(message, body, html)?, place.deadline)?.text),
            // Pictures within the text are attachments too.
            _ => {}
        }
        text.push('\n');
        check_text(text.len())?;
    }
    let mut invitation = String::new();
    for id in &message.attachments {
        let Some(attached) = message.parts.get(*id as usize) else { continue };
        if let PartType::Message(nested) = &attached.body {
            text.push_str(ATTACHED_MESSAGE);
            write(nested, text, Place { is_attached: true, ..place })?;
            continue;
        }
        let kind = attached.content_type().map(|kind| format!("{}/{}", kind.ctype(), kind.subtype().unwrap_or("?")));
        let mut attachment = Attachment {
            name: attached.attachment_name().and_then(one_line),
            kind,
            entries: entries(message, attached)?,
            secured: None,
        };
        if attachment.is_secured() {
            let place = Place { is_attached: place.is_attached || *id > 0, ..place };
            match write_secured(attached.contents(), text, place)? {
                None => continue,
                Some(secured) if place.is_attached => attachment.secured = Some(secured),
                Some(secured) => attachment.secured = Some(secured.or_refused()?),
            }
        }
        attachment.write(text, &mut invitation)?;
    }
    Ok(check_text(text.len())?)
}

/// The entries of an attached calendar as text; empty for another attachment, or for a calendar without entries.
fn entries(message: &Message<'_>, attached: &MessagePart<'_>) -> Result<String, Cause> {
    let text = match &attached.body {
        PartType::Text(words) if attached.is_content_type("text", "calendar") => words_of(message, attached, words)?,
        PartType::Binary(bytes) if attached.is_content_type("application", "ics") => String::from_utf8_lossy(bytes),
        _ => return Ok(String::new()),
    };
    Ok(entries_of(&text)?)
}

/// The entries of a calendar as text.
///
/// # Errors
/// [`Limit::Records`], [`Limit::TextBytes`].
pub(crate) fn entries_of(calendar: &str) -> Result<String, Limit> {
    check_text(calendar.len())?;
    let entries: Vec<String> = calendar::entries(calendar)?.into_iter().map(|entry| entry.text).collect();
    Ok(entries.join("\n\n"))
}

/// The parts with the plain text of a message, or with its HTML if no such part has words.
fn bodies<'a, 'x>(message: &'a Message<'x>) -> impl Iterator<Item = &'a MessagePart<'x>> {
    let body = move |id: &u32| message.parts.get(*id as usize);
    let has_words = |body: &MessagePart<'_>| match &body.body {
        PartType::Text(words) => !words.trim().is_empty(),
        PartType::Html(_) => true,
        _ => false,
    };
    let is_plain = message.text_body.iter().filter_map(body).any(has_words);
    let ids = if is_plain { &message.text_body } else { &message.html_body };
    ids.iter().filter_map(body)
}

/// The words of a part, which the parser has decoded by its declarations.
///
/// # Errors
/// [`Limit::TextBytes`].
pub(crate) fn words_of<'a>(
    message: &Message<'_>,
    part: &MessagePart<'_>,
    words: &'a str,
) -> Result<Cow<'a, str>, Limit> {
    let is_declared = part.content_type().is_some_and(|kind| kind.has_attribute("charset"));
    if is_declared || !words.contains('\u{fffd}') {
        return Ok(Cow::Borrowed(words));
    }
    check_text(words.len())?;
    let encoded = message.raw_message.get(part.offset_body as usize..part.offset_end as usize).unwrap_or_default();
    let bytes = match part.encoding {
        Encoding::None => Some(encoded.to_vec()),
        Encoding::QuotedPrintable => quoted_printable_decode(encoded),
        Encoding::Base64 => base64_decode(encoded),
    };
    let is_html = matches!(part.body, PartType::Html(_));
    let decode = if is_html { encoding::decode_html } else { encoding::decode };
    let decoded = bytes.and_then(|bytes| decode(bytes).ok());
    Ok(decoded.map_or(Cow::Borrowed(words), |decoded| Cow::Owned(decoded.text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::HTML_TIME;

    #[test]
    fn parts_and_attached_messages_share_a_deadline() {
        let html = "Content-Type: text/html\n\n<p>words\n";
        let attached = format!(
            "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/rfc822\n\nSubject: y\n{html}\n--b--\n"
        );
        for mail in [html, &attached] {
            let late = source("a.eml", format!("Subject: x\n{mail}").as_bytes(), Deadline::passed());
            assert!(matches!(late, Err(Cause::LimitExceeded(Limit::Time(HTML_TIME)))), "{late:?}");
        }
    }
}
