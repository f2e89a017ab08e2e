//! Mailboxes (`.mbox`): one section a message, read one message at a time.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use mail_parser::mailbox::mbox::MessageIterator;

use crate::html::Deadline;
use crate::limit::{RECORDS, check_text};
use crate::{Cause, Kind, Limit, Source, email};

/// A `.mbox` file.
pub(crate) fn source(name: &str, path: &Path, deadline: Deadline) -> Result<Source, Cause> {
    let mut file = BufReader::new(File::open(path).map_err(Cause::Io)?);
    if !file.fill_buf().map_err(Cause::Io)?.starts_with(b"From ") {
        return Err(Cause::damaged(Kind::Mailbox, "it does not start with a line `From `"));
    }
    let (mut parts, mut length) = (Vec::new(), 0);
    for (i, message) in MessageIterator::new(file).enumerate() {
        if i == RECORDS {
            return Err(Limit::Records(RECORDS).into());
        }
        let message = message.map_err(Cause::Io)?;
        let part = email::read(message.contents(), Kind::Mailbox, deadline).map_err(|cause| match cause {
            Cause::Damaged { kind, detail } => Cause::damaged(kind, format!("message {}: {detail}", i + 1)),
            other => other,
        })?;
        length += part.text.len();
        check_text(length)?;
        parts.push(part);
    }
    Source::joined(name, Kind::Mailbox, None, parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::HTML_TIME;

    #[test]
    fn messages_share_a_deadline() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let path = folder.path().join("a.mbox");
        let message = "From a\nSubject: x\nContent-Type: text/html\n\n<p>words\n\n";
        std::fs::write(&path, message).expect("the folder takes a file");
        let late = source("a.mbox", &path, Deadline::passed());
        assert!(matches!(late, Err(Cause::LimitExceeded(Limit::Time(HTML_TIME)))), "{late:?}");
    }
}
