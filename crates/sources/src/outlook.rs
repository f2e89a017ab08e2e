//! Outlook's messages (`.msg`, MS-OXMSG), read as e-mails are: headers, the plain text of a message or else its HTML or
//! RTF as text, the time and place of a meeting, the entries of attached calendars, the names of other attachments, and
//! the messages attached to it. Of a signed message (S/MIME) the signed text and its attachments are read; an encrypted one
//! is refused.
//!
//! A message is a storage of a compound file with properties; so are its recipients, its attachments, and a message
//! that is an attachment.

use encoding_rs::Encoding;
use mail_parser::DateTime;

use crate::attachment::{Attachment, Secured};
use crate::compound::Compound;
use crate::email::{self, ATTACHED_MESSAGE, Headers};
use crate::html::Deadline;
use crate::limit::{MESSAGE_NESTING, check_text};
use crate::outlook_meeting::Meetings;
use crate::outlook_names::Names;
use crate::outlook_object::{Object, PROPERTIES, Place, decoded};
use crate::source::Part;
use crate::{Cause, Kind, Limit, Source, encoding, html, rtf, rtf_compressed};

/// The numbers of properties.
const CLASS: u16 = 0x001A;
const SUBJECT: u16 = 0x0037;
const SUBMIT_TIME: u16 = 0x0039;
const DELIVERY_TIME: u16 = 0x0E06;
const TRANSPORT_HEADERS: u16 = 0x007D;
const DISPLAY_CC: u16 = 0x0E03;
const DISPLAY_TO: u16 = 0x0E04;
const PLAIN: u16 = 0x1000;
const RTF: u16 = 0x1009;
const HTML: u16 = 0x1013;
const RECIPIENT_TYPE: u16 = 0x0C15;
const DATA: u16 = 0x3701;
const MIME_TYPE: u16 = 0x370E;
/// The long name of an attached file, its short name, and its title, which is all that other attachments have.
const NAMES: [u16; 3] = [0x3707, 0x3704, 0x3001];

/// The name of a person, and their addresses in the order of preference. Those inside Exchange are no e-mail addresses.
type Person = (u16, [u16; 2]);
const AUTHOR: Person = (0x0042, [0x5D02, 0x0065]);
/// Who sent a message for its author.
const SENDER: Person = (0x0C1A, [0x5D01, 0x0C1F]);
const RECIPIENT: Person = (0x3001, [0x39FE, 0x3003]);

/// A `.msg` file.
///
/// # Errors
/// [`Cause::Damaged`], [`Cause::EncryptedMessage`], [`Cause::LimitExceeded`], [`Cause::NoText`].
pub(crate) fn source(path: &str, bytes: &[u8], deadline: Deadline) -> Result<Source, Cause> {
    let mut file = Compound::open(bytes, Kind::Email, deadline)?;
    if !file.has_stream(&format!("/{PROPERTIES}")) {
        return Err(Cause::damaged(Kind::Email, "it is not a message of Outlook: it has no properties"));
    }
    let meetings = Meetings::of(&Names::read(&mut file)?);
    let (text, invitation, steps) = (String::new(), String::new(), Vec::new());
    let mut reader = Reader { file, meetings, deadline, text, invitation, steps };
    let headers = reader.message(String::new(), Place::File, None, 0)?;
    while let Some(step) = reader.steps.pop() {
        reader.attachment(step)?;
        check_text(reader.text.len())?;
    }
    let part = Part { title: headers.subject.clone(), time: headers.date, text: reader.text };
    Source::joined(path, Kind::Email, headers.subject, vec![part])
}

/// An attachment that is not written yet.
struct Step {
    path: String,
    encoding: Option<&'static Encoding>,
    /// How many messages its message is inside of.
    depth: usize,
}

struct Reader<'a> {
    file: Compound<'a>,
    meetings: Meetings,
    deadline: Deadline,
    text: String,
    /// The last calendar that was written.
    invitation: String,
    /// The attachments that are still to be written, the next one last.
    steps: Vec<Step>,
}

impl Reader<'_> {
    /// Writes a message without its attachments, which become steps; returns its headers.
    fn message(
        &mut self,
        path: String,
        place: Place,
        encoding: Option<&'static Encoding>,
        depth: usize,
    ) -> Result<Headers, Cause> {
        if depth > MESSAGE_NESTING {
            return Err(Limit::Nesting(MESSAGE_NESTING).into());
        }
        let message = Object::open(&mut self.file, path, place, encoding)?;
        let mut headers = self.headers(&message)?;
        headers.write(&mut self.text);
        let class = message.line(&mut self.file, CLASS)?.unwrap_or_default().to_ascii_lowercase();
        let start = self.meetings.write(&class, &message, &mut self.file, &mut self.text)?;
        headers.date = headers.date.or(start);
        let attachments = self.file.storages(&message.path, "__attach_version1.0_#")?;
        let unread = match is_secured(&class) {
            true => self.write_secured(&message, &attachments, depth > 0)?,
            false => Some(Secured::Other),
        };
        let Some(unread) = unread else { return Ok(headers) };
        match self.body(&message)?.filter(|body| !body.trim().is_empty()) {
            Some(body) => {
                // Text that grows later would be copied into twice its size.
                self.text.reserve(body.len() + 2);
                self.text.extend(["\n", body.trim(), "\n"]);
            }
            None if depth == 0 => {
                unread.or_refused()?;
            }
            None => {}
        }
        check_text(self.text.len())?;
        let step = |path| Step { path, encoding: message.encoding, depth };
        self.steps.extend(attachments.into_iter().rev().map(step));
        Ok(headers)
    }

    /// Writes the text and the attachments of a signed message, which its only attachment holds as they came (MS-OXOSMIME, 2.1.3);
    /// returns what the attachment is if they are not in it or cannot be read.
    fn write_secured(
        &mut self,
        message: &Object,
        attachments: &[String],
        is_attached: bool,
    ) -> Result<Option<Secured>, Cause> {
        let [path] = attachments else { return Ok(Some(Secured::Other)) };
        let attached = Object::open(&mut self.file, path.clone(), Place::Part, message.encoding)?;
        let Some(bytes) = attached.bytes(&mut self.file, DATA)? else { return Ok(Some(Secured::Damaged)) };
        let kind = attached.line(&mut self.file, MIME_TYPE)?;
        if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/signed")) {
            let is_written = email::write_signed(&bytes, &mut self.text, self.deadline)?;
            return Ok((!is_written).then_some(Secured::Damaged));
        }
        email::write_secured(&bytes, &mut self.text, email::Place::new(self.deadline, is_attached))
    }

    /// The headers of a message. What its properties lack is taken from the headers with which it came, if it has them.
    fn headers(&mut self, message: &Object) -> Result<Headers, Cause> {
        let [to, cc] = self.recipients(message)?;
        let from = match self.person(message, AUTHOR)? {
            Some(author) => Some(author),
            None => self.person(message, SENDER)?,
        };
        let own = Headers { subject: self.line(message, SUBJECT)?, from, to, cc, date: date(message) };
        let came_with = message.text(&mut self.file, TRANSPORT_HEADERS)?;
        let Some(came_with) = came_with.filter(|_| own.from.is_none() || own.date.is_none()) else { return Ok(own) };
        let first_line = "Microsoft Mail Internet Headers Version 2.0";
        let came_with = format!("{}\r\n\r\n", came_with.trim_start_matches(first_line).trim());
        let Some(came_with) = email::parsed(came_with.as_bytes())?.map(|message| Headers::of(&message)) else {
            return Ok(own);
        };
        Ok(Headers {
            subject: own.subject.or(came_with.subject),
            from: own.from.or(came_with.from),
            to: own.to.or(came_with.to),
            cc: own.cc.or(came_with.cc),
            date: own.date.or(came_with.date),
        })
    }

    /// To whom a message went, and with copies to whom. Without storages of recipients these are lists of names.
    fn recipients(&mut self, message: &Object) -> Result<[Option<String>; 2], Cause> {
        let (mut to, mut cc) = (Vec::new(), Vec::new());
        for path in self.file.storages(&message.path, "__recip_version1.0_#")? {
            let recipient = Object::open(&mut self.file, path, Place::Part, message.encoding)?;
            // The upper bits are flags.
            let list = match recipient.integer(RECIPIENT_TYPE).map(|kind| kind & 15) {
                Some(1) => &mut to,
                Some(2) => &mut cc,
                _ => continue,
            };
            list.extend(self.person(&recipient, RECIPIENT)?);
        }
        let joined = |list: Vec<String>| (!list.is_empty()).then(|| list.join(", "));
        let to = joined(to).map_or_else(|| self.line(message, DISPLAY_TO), |to| Ok(Some(to)))?;
        let cc = joined(cc).map_or_else(|| self.line(message, DISPLAY_CC), |cc| Ok(Some(cc)))?;
        Ok([to, cc])
    }

    /// A person: `Ann <ann@example.org>`.
    fn person(&mut self, object: &Object, (name, addresses): Person) -> Result<Option<String>, Cause> {
        let mut found = None;
        for address in addresses {
            let address = if found.is_none() { self.line(object, address)? } else { None };
            found = found.or(address.filter(|address| address.contains('@')));
        }
        // Outlook puts an address that it shows as a name in quotes.
        let name = self.line(object, name)?.map(|name| name.trim_matches('\'').to_owned());
        let name = name.filter(|name| !name.is_empty());
        Ok(match (name, found) {
            (Some(name), Some(address)) if !name.eq_ignore_ascii_case(&address) => Some(format!("{name} <{address}>")),
            (name, address) => address.or(name),
        })
    }

    fn line(&mut self, object: &Object, number: u16) -> Result<Option<String>, Cause> {
        object.line(&mut self.file, number)
    }

    /// The plain text of a message, else the text of its HTML, else of its RTF.
    fn body(&mut self, message: &Object) -> Result<Option<String>, Cause> {
        if let Some(words) = message.text(&mut self.file, PLAIN)? {
            return Ok(Some(words.replace("\r\n", "\n")));
        }
        let page = match message.bytes(&mut self.file, HTML)? {
            Some(page) => Some(decoded(page, message.html_encoding(), encoding::decode_html)?),
            None => message.text(&mut self.file, HTML)?,
        };
        let text = page.map(|page| html::page(&page, self.deadline)).transpose()?.map(|page| page.text);
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            return Ok(Some(text));
        }
        let Some(compressed) = message.bytes(&mut self.file, RTF)? else { return Ok(None) };
        let document = rtf_compressed::decompressed(&compressed).and_then(|rtf| rtf::document(&rtf));
        document.map(|(_, text)| Some(text)).map_err(|cause| match cause {
            Cause::Damaged { detail, .. } => Cause::damaged(Kind::Email, format!("the RTF of a message: {detail}")),
            other => other,
        })
    }

    /// Writes an attachment.
    fn attachment(&mut self, Step { path, encoding, depth }: Step) -> Result<(), Cause> {
        let message = format!("{path}/__substg1.0_{DATA:04X}000D");
        if self.file.has_stream(&format!("{message}/{PROPERTIES}")) {
            self.text.push_str(ATTACHED_MESSAGE);
            return self.message(message, Place::Attached, encoding, depth + 1).map(drop);
        }
        let attached = Object::open(&mut self.file, path, Place::Part, encoding)?;
        let mut name = None;
        for number in NAMES {
            name = if name.is_none() { self.line(&attached, number)? } else { name };
        }
        let kind = self.line(&attached, MIME_TYPE)?;
        let is = |types: &[&str], extension: &str| is_of(kind.as_deref(), name.as_deref(), types, extension);
        if is(&["message/rfc822"], ".eml")
            && let Some(bytes) = attached.bytes(&mut self.file, DATA)?
            && email::write_attached(&bytes, &mut self.text, self.deadline)?
        {
            return Ok(());
        }
        let is_calendar = is(&["text/calendar", "application/ics"], ".ics");
        let calendar = if is_calendar { attached.bytes(&mut self.file, DATA)? } else { None };
        let entries = match calendar {
            Some(bytes) => email::entries_of(&decoded(bytes, None, encoding::decode)?)?,
            None => String::new(),
        };
        let mut attachment = Attachment { name, kind, entries, secured: None };
        if attachment.is_secured() {
            let bytes = attached.bytes(&mut self.file, DATA)?.unwrap_or_default();
            attachment.secured = email::write_secured(&bytes, &mut self.text, email::Place::new(self.deadline, true))?;
            if attachment.secured.is_none() {
                return Ok(());
            }
        }
        Ok(attachment.write(&mut self.text, &mut self.invitation)?)
    }
}

/// Whether a message of a class, in small letters, is signed or encrypted (MS-OXOSMIME).
fn is_secured(class: &str) -> bool {
    [".smime", ".smime.multipartsigned"].iter().any(|end| class.ends_with(end))
}

/// Whether an attachment has one of these MIME types; if it declares none, its name tells the type.
fn is_of(kind: Option<&str>, name: Option<&str>, types: &[&str], extension: &str) -> bool {
    match kind {
        Some(kind) => types.iter().any(|known| kind.eq_ignore_ascii_case(known)),
        None => name.is_some_and(|name| name.to_ascii_lowercase().ends_with(extension)),
    }
}

/// When a message was sent, or else when it came.
fn date(message: &Object) -> Option<String> {
    let date = |number| message.seconds(number).map(DateTime::from_timestamp).filter(DateTime::is_valid);
    date(SUBMIT_TIME).or_else(|| date(DELIVERY_TIME)).map(|date| date.to_rfc822())
}
