//! Mailboxes (`.mbox`, and Thunderbird's, whose names have no extension): one section a message, read one message at a
//! time. A message beyond a limit is left out and named in its place; all that are left out are counted at the end.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::mem;
use std::path::Path;

use crate::html::Deadline;
use crate::limit::{MAIL_BYTES, RECORDS, check_text};
use crate::source::Part;
use crate::{Cause, Kind, Limit, Source, email};

/// How much of a line is read at once.
const PIECE_BYTES: usize = 64 << 10;

/// A `.mbox` file.
pub(crate) fn source(name: &str, path: &Path) -> Result<Source, Cause> {
    let file = File::open(path).map_err(Cause::Io)?;
    let deadline = Deadline::for_bytes(file.metadata().map_err(Cause::Io)?.len());
    read(name, BufReader::new(file), deadline)
}

/// Whether a file without an extension is a mailbox: it starts with a line `From ` and at least two headers, one of them
/// of a mail.
pub(crate) fn is_mailbox(path: &Path) -> bool {
    // Opening a pipe can block.
    let is_candidate = path.extension().is_none() && fs::metadata(path).is_ok_and(|meta| meta.is_file());
    let head = || {
        let (mut file, mut head) = (File::open(path)?, vec![0; b"From ".len()]);
        file.read_exact(&mut head)?;
        if head == b"From " {
            file.take(PIECE_BYTES as u64).read_to_end(&mut head)?;
        }
        Ok::<_, io::Error>(head)
    };
    is_candidate && head().is_ok_and(|head| starts_mailbox(&head))
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

fn read(name: &str, mut file: impl BufRead, deadline: Deadline) -> Result<Source, Cause> {
    if !file.fill_buf().map_err(Cause::Io)?.starts_with(b"From ") {
        return Err(Cause::damaged(Kind::Mailbox, "it does not start with a line `From `"));
    }
    let (mut parts, mut length) = (Vec::new(), 0);
    let (mut left_out, mut first_limit) = (0, None);
    for (i, message) in (Messages { lines: file, is_line_start: true, first: Vec::new() }).enumerate() {
        if i == RECORDS {
            return Err(Limit::Records(RECORDS).into());
        }
        let message = message.map_err(Cause::Io)?;
        let part = match message.read(deadline) {
            Ok(part) => part,
            Err(Cause::LimitExceeded(limit)) if !matches!(limit, Limit::Time(_)) => {
                left_out += 1;
                first_limit = first_limit.or(Some(limit));
                let text = format!("[message {} is left out: {limit}]", i + 1);
                Part { title: email::subject(&message.bytes), text, ..Part::default() }
            }
            Err(Cause::Damaged { kind, detail }) => {
                return Err(Cause::damaged(kind, format!("message {}: {detail}", i + 1)));
            }
            Err(other) => return Err(other),
        };
        length += part.text.len();
        check_text(length)?;
        parts.push(part);
    }
    if let Some(limit) = first_limit {
        if left_out == parts.len() {
            return Err(limit.into());
        }
        let text = format!("[{left_out} of {} messages are left out: their places say why]", parts.len());
        parts.push(Part { title: Some("messages left out".to_owned()), text, ..Part::default() });
    }
    Source::joined(name, Kind::Mailbox, None, parts)
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
        email::read(&self.bytes, Kind::Mailbox, deadline)
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

    #[test]
    fn messages_share_a_deadline() {
        let mailbox = b"From a\nSubject: x\nContent-Type: text/html\n\n<p>words\n\n";
        let late = read("a.mbox", &mailbox[..], Deadline::passed());
        assert!(matches!(late, Err(Cause::LimitExceeded(Limit::Time(HTML_TIME)))), "{late:?}");
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
