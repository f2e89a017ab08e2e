//! Mailboxes (`.mbox`): one section a message, read one message at a time.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use mail_parser::mailbox::mbox::MessageIterator;

use crate::limit::TEXT_BYTES;
use crate::{Cause, Kind, Limit, Source, email};

/// A `.mbox` file.
pub(crate) fn source(name: &str, path: &Path) -> Result<Source, Cause> {
    let mut file = BufReader::new(File::open(path).map_err(Cause::Io)?);
    if !file.fill_buf().map_err(Cause::Io)?.starts_with(b"From ") {
        return Err(Cause::damaged(Kind::Mailbox, "it does not start with a line `From `"));
    }
    let (mut parts, mut length) = (Vec::new(), 0);
    for (i, message) in MessageIterator::new(file).enumerate() {
        let message = message.map_err(Cause::Io)?;
        let part = email::read(message.contents(), Kind::Mailbox).map_err(|cause| match cause {
            Cause::Damaged { kind, detail } => Cause::damaged(kind, format!("message {}: {detail}", i + 1)),
            other => other,
        })?;
        length += part.text.len();
        if length > TEXT_BYTES {
            return Err(Limit::TextBytes(TEXT_BYTES).into());
        }
        parts.push(part);
    }
    Source::joined(name, Kind::Mailbox, None, parts)
}
