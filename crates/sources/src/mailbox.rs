//! Mailboxes (`.mbox`, and Thunderbird's, whose names have no extension): one section a message, read one message at a
//! time. A message without headers, as a damaged mailbox has, is read as plain text. A message beyond a limit, and one that is
//! neither an e-mail nor text, is left out and named in its place; all that are left out of a document are counted at its end.
//!
//! A long mailbox becomes several documents, filled with the messages in their order: `mail.mbox`, `mail.mbox#2`,
//! `mail.mbox#3`. So messages that are added at the end of a mailbox change its last document only.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::iter::Enumerate;
use std::mem;
use std::path::Path;
use std::time::Instant;

use crate::encoding::Decoded;
use crate::html::Deadline;
use crate::limit::{MAIL_BYTES, MAILBOX_DOCUMENT_BYTES, RECORDS, check_text};
use crate::source::Part;
use crate::{Cause, Kind, Limit, Source, email, encoding};

/// How much of a line is read at once.
const PIECE_BYTES: usize = 64 << 10;

/// The documents of a `.mbox` file.
///
/// # Errors
/// [`Cause::Damaged`] if it does not begin as a mailbox, [`Cause::Io`].
pub(crate) fn documents(name: &str, path: &Path) -> Result<Documents<BufReader<File>>, Cause> {
    let file = File::open(path).map_err(Cause::Io)?;
    let deadline = Deadline::for_bytes(file.metadata().map_err(Cause::Io)?.len());
    Documents::of(name, BufReader::new(file), deadline)
}

/// Opens a file without an extension, which may be a mailbox.
///
/// # Errors
/// The system's error if it cannot be opened. Other files are not opened.
pub(crate) fn check_readable(path: &Path) -> io::Result<()> {
    if is_candidate(path) { File::open(path).map(drop) } else { Ok(()) }
}

fn is_candidate(path: &Path) -> bool {
    // Opening a pipe can block.
    path.extension().is_none() && fs::metadata(path).is_ok_and(|meta| meta.is_file())
}

/// Whether a file without an extension is a mailbox: it starts with a line `From ` and at least two headers, one of them
/// of a mail.
pub(crate) fn is_mailbox(path: &Path) -> bool {
    let head = || {
        let (mut file, mut head) = (File::open(path)?, vec![0; b"From ".len()]);
        file.read_exact(&mut head)?;
        if head == b"From " {
            file.take(PIECE_BYTES as u64).read_to_end(&mut head)?;
        }
        Ok::<_, io::Error>(head)
    };
    is_candidate(path) && head().is_ok_and(|head| starts_mailbox(&head))
}

fn starts_mailbox(head: &[u8]) -> bool {
    const OF_MAILS: [&[u8]; 6] = [b"date", b"from", b"message-id", b"received", b"return-path", b"x-mozilla-status"];
    let mut lines = head.split_inclusive(|byte| *byte == b'\n');
    if !lines.next().is_some_and(is_separator) {
        return false;
    }
    let (mut headers, mut is_mail) = (0, false);
    for line in lines.take_while(|line| !line.trim_ascii().is_empty() && line.ends_with(b"\n")) {
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            continue;
        }
        if !is_header(line) {
            return false;
        }
        headers += 1;
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        is_mail |= OF_MAILS.iter().any(|known| known.eq_ignore_ascii_case(name));
    }
    headers > 1 && is_mail
}

/// The documents of a mailbox, each read when it is asked for; an error is the last item.
pub(crate) struct Documents<R> {
    name: String,
    messages: Enumerate<Messages<R>>,
    /// What was read and did not fit into the document before.
    waiting: Option<Entry>,
    /// The number of documents so far.
    count: usize,
    deadline: Deadline,
    /// When the last document was handed over: what is done with it takes no time of the mailbox.
    paused: Instant,
    has_ended: bool,
}

/// The text of a message, or the words in its place if it is left out, and why.
struct Entry {
    part: Part,
    left_out: Option<Cause>,
}

impl<R: BufRead> Documents<R> {
    fn of(name: &str, mut file: R, deadline: Deadline) -> Result<Self, Cause> {
        if !file.fill_buf().map_err(Cause::Io)?.starts_with(b"From ") {
            return Err(Cause::damaged(Kind::Mailbox, "it does not start with a line `From `"));
        }
        let messages = Messages { lines: file, is_line_start: true, first: Vec::new() }.enumerate();
        let (name, paused) = (name.to_owned(), Instant::now());
        Ok(Documents { name, messages, waiting: None, count: 0, deadline, paused, has_ended: false })
    }

    fn document(&mut self) -> Result<Option<Source>, Cause> {
        let (mut parts, mut length) = (Vec::new(), 0);
        let (mut left_out, mut first_cause) = (0, None);
        while let Some(entry) = self.entry()? {
            let bytes = entry.part.text.len();
            if !parts.is_empty() && (length + bytes > MAILBOX_DOCUMENT_BYTES || parts.len() == RECORDS) {
                self.waiting = Some(entry);
                break;
            }
            length += bytes;
            left_out += usize::from(entry.left_out.is_some());
            first_cause = first_cause.or(entry.left_out);
            parts.push(entry.part);
        }
        let is_only = self.count == 0 && self.waiting.is_none();
        if let Some(cause) = first_cause {
            if is_only && left_out == parts.len() {
                return Err(cause);
            }
            let text = format!("[{left_out} of {} messages are left out: their places say why]", parts.len());
            parts.push(Part { title: Some("messages left out".to_owned()), text, ..Part::default() });
        }
        if parts.is_empty() {
            return if is_only { Err(Cause::NoText) } else { Ok(None) };
        }
        self.count += 1;
        let name = if self.count == 1 { self.name.clone() } else { part_name(&self.name, self.count) };
        Source::joined(&name, Kind::Mailbox, None, parts).map(Some)
    }

    /// The next message that is not blank.
    fn entry(&mut self) -> Result<Option<Entry>, Cause> {
        if let Some(entry) = self.waiting.take() {
            return Ok(Some(entry));
        }
        for (i, message) in self.messages.by_ref() {
            let message = message.map_err(Cause::Io)?;
            let (part, left_out) = match message.read(self.deadline) {
                Ok(part) => (part, None),
                Err(cause @ (Cause::Io(_) | Cause::LimitExceeded(Limit::Time(_)))) => return Err(cause),
                Err(cause) => {
                    let text = format!("[message {} is left out: {cause}]", i + 1);
                    (Part { title: email::subject(&message.bytes), text, ..Part::default() }, Some(cause))
                }
            };
            if !part.text.trim().is_empty() {
                return Ok(Some(Entry { part, left_out }));
            }
        }
        Ok(None)
    }
}

impl<R: BufRead> Iterator for Documents<R> {
    type Item = Result<Source, Cause>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        self.deadline = self.deadline.after(self.paused.elapsed());
        let document = self.document().transpose();
        self.has_ended = !matches!(document, Some(Ok(_)));
        self.paused = Instant::now();
        document
    }
}

fn part_name(mailbox: &str, number: usize) -> String {
    format!("{mailbox}#{number}")
}

/// Whether a document has the name of one of the further documents of a mailbox, the second or a later one.
pub fn is_mailbox_part(document: &str, mailbox: &str) -> bool {
    let number = document.strip_prefix(mailbox).and_then(|rest| rest.strip_prefix('#'));
    let number = number.and_then(|number| number.parse().ok());
    number.is_some_and(|number: usize| number > 1 && part_name(mailbox, number) == document)
}

/// A message, or the beginning of one that is too large.
struct Message {
    bytes: Vec<u8>,
    is_too_large: bool,
}

impl Message {
    fn add(&mut self, piece: &[u8]) {
        self.is_too_large |= (self.bytes.len() + piece.len()) as u64 > MAIL_BYTES;
        if !self.is_too_large {
            self.bytes.extend_from_slice(piece);
        } else if self.bytes.len() > PIECE_BYTES {
            self.bytes.truncate(PIECE_BYTES);
            self.bytes.shrink_to_fit();
        }
    }

    fn read(&self, deadline: Deadline) -> Result<Part, Cause> {
        if self.is_too_large {
            return Err(Limit::MailBytes(MAIL_BYTES).into());
        }
        // The line `From ` is part of a message only if no header follows it.
        if self.bytes.starts_with(b"From ") {
            return self.words();
        }
        email::read(&self.bytes, Kind::Mailbox, deadline)
    }

    /// The text of a message without headers, and the line `From ` before it; blank if there is nothing but this line.
    fn words(&self) -> Result<Part, Cause> {
        // A byte becomes at most three bytes of text.
        check_text(3 * self.bytes.len())?;
        let Ok(Decoded { text, .. }) = encoding::decode(self.bytes.clone()) else {
            return Err(Cause::damaged(Kind::Mailbox, "a message has none of the headers of an e-mail"));
        };
        let has_words = text.split_once('\n').is_some_and(|(_, words)| !words.trim().is_empty());
        Ok(Part { text: if has_words { text } else { String::new() }, ..Part::default() })
    }
}

/// The messages of a mailbox. A line `From ` starts one if a header follows it; others are words that the program which
/// wrote the mailbox did not quote.
struct Messages<R> {
    lines: R,
    is_line_start: bool,
    /// The first header of the next message.
    first: Vec<u8>,
}

impl<R: BufRead> Iterator for Messages<R> {
    type Item = io::Result<Message>;

    fn next(&mut self) -> Option<Self::Item> {
        self.message().transpose()
    }
}

impl<R: BufRead> Messages<R> {
    fn message(&mut self) -> io::Result<Option<Message>> {
        let mut message = Message { bytes: mem::take(&mut self.first), is_too_large: false };
        let (mut piece, mut next) = (Vec::new(), Vec::new());
        loop {
            let is_start = self.piece(&mut piece)?;
            if piece.is_empty() {
                return Ok((!message.bytes.is_empty()).then_some(message));
            }
            while is_start && is_separator(&piece) {
                self.piece(&mut next)?;
                let is_followed = is_header(&next);
                if is_followed && !message.bytes.is_empty() {
                    self.first = next;
                    return Ok(Some(message));
                }
                if !is_followed {
                    message.add(&piece);
                }
                mem::swap(&mut piece, &mut next);
            }
            let marks = piece.iter().take_while(|byte| **byte == b'>').count();
            let is_quoted = is_start && marks > 0 && piece[marks..].starts_with(b"From ");
            message.add(&piece[usize::from(is_quoted)..]);
        }
    }

    /// Reads the next line, or a part of a long one, which is empty at the end; returns whether a line starts with it.
    fn piece(&mut self, piece: &mut Vec<u8>) -> io::Result<bool> {
        piece.clear();
        (&mut self.lines).take(PIECE_BYTES as u64).read_until(b'\n', piece)?;
        Ok(mem::replace(&mut self.is_line_start, piece.ends_with(b"\n")))
    }
}

/// Whether a whole line may start a message.
fn is_separator(line: &[u8]) -> bool {
    line.starts_with(b"From ") && line.ends_with(b"\n")
}

/// Whether a line starts with the name of a header: `Subject: x`.
fn is_header(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_named = !name.is_empty() && name.len() < line.len() && name.iter().all(is_name);
    // Old programs added lines `>From ` for each machine that a message had passed.
    is_named || line.starts_with(b">From ")
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use crate::limit::HTML_TIME;

    const HTML: &str = "Subject: x\nContent-Type: text/html\n\n<p>words\n\n";

    #[test]
    fn messages_share_a_deadline() {
        fn late(mailbox: &[u8]) -> Documents<&[u8]> {
            Documents::of("a.mbox", mailbox, Deadline::passed()).expect("it is a mailbox")
        }
        fn is_late(item: Option<Result<Source, Cause>>) -> bool {
            matches!(item, Some(Err(Cause::LimitExceeded(Limit::Time(HTML_TIME)))))
        }
        let words = "The lamp was out.\n".repeat(MAILBOX_DOCUMENT_BYTES / 16);
        let mailbox = format!("From a\n{HTML}From b\nSubject: y\n\n{words}\nFrom c\n{HTML}");
        let mut documents = late(mailbox.as_bytes());
        assert!(is_late(documents.next()) && documents.next().is_none());
        let mut documents = late(mailbox.as_bytes());
        documents.paused = documents.paused.checked_sub(HTML_TIME).expect("the machine has run for a minute");
        let names: Vec<String> = documents.map(|document| document.expect("it is in time").path).collect();
        assert_eq!(names, ["a.mbox", "a.mbox#2", "a.mbox#3"], "a pause takes no time");
    }

    #[test]
    fn only_the_numbers_that_are_given_name_the_documents_of_a_mailbox() {
        let check = |document, expect| assert_eq!(is_mailbox_part(document, "a.mbox"), expect, "{document}");
        check("a.mbox#2", true);
        check("a.mbox#10", true);
        for other in ["a.mbox", "a.mbox#", "a.mbox#1", "a.mbox#02", "a.mbox#2#3", "a.mbox#two", "b.mbox#2", "a.mbox2"] {
            check(other, false);
        }
    }

    #[test]
    fn a_line_that_is_read_in_pieces_starts_no_message_within() {
        // The second piece of the line starts with `From `, and a header follows the line.
        let words = iter::repeat_n(b'x', PIECE_BYTES).chain(*b"From b\nSubject: no\n>From here\n").collect::<Vec<u8>>();
        let mailbox = [b"From a\nSubject: One\n\n", &words[..], b"\nFrom b\nSubject: Two\n\nEnd\n"].concat();
        let messages = Messages { lines: &mailbox[..], is_line_start: true, first: Vec::new() };
        let messages: Vec<Message> = messages.collect::<Result<_, _>>().expect("it is in memory");
        let long = words.len() - 1;
        let lengths: Vec<usize> = messages.iter().map(|message| message.bytes.len()).collect();
        assert_eq!(lengths, ["Subject: One\n\n".len() + long + 1, "Subject: Two\n\nEnd\n".len()]);
    }

    #[test]
    fn only_a_from_line_and_headers_of_mails_start_a_mailbox_without_a_name() {
        let check = |head: &str, expect| assert_eq!(starts_mailbox(head.as_bytes()), expect, "{head}");
        check("From - Mon Jan  1 00:00:00 2024\nX-Mozilla-Status: 0001\nSubject: One\n two\n\nwords\n", true);
        check("From ann@x Mon\r\nReceived: by a\r\n\tfor b\r\nDate: Mon\r\n\r\n", true);
        check("From here it was dark.\n\nDate: Monday\nFrom: Ann\n", false);
        check("From a\nDate: Monday\n\n", false);
        check("From a\nTitle: x\nAuthor: y\n\n", false);
        check("From a\nDate: x\nFrom: Ann\nand more words\n\n", false);
        check("From: Ann\nDate: Monday\n\n", false);
        check("From a", false);
    }
}
