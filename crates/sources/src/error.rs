//! Why a file could not be read: one enum, each variant naming whose fault it is and what to look at.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Kind;

/// A file that could not be read. Its `Display` is one complete line: the path and the cause.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct SourceError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What is wrong with a file.
///
/// `Display` says all of it, so the system's errors within are data here and no second `source()`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The system would not give us the file.
    #[error("cannot be read: {0}")]
    Io(io::Error),
    /// A folder, a device or a pipe where a file was expected.
    #[error("not a regular file")]
    NotAFile,
    /// The name ends in nothing that we can read.
    #[error("unknown kind of file (known: {})", known())]
    UnknownKind,
    /// Zero bytes.
    #[error("the file is empty")]
    Empty,
    /// A readable file in which there is nothing to read.
    #[error("no text in it")]
    NoText,
    /// Pages, but no text on any of them.
    #[error("no text: a scanned PDF needs OCR, which memlocal does not have")]
    Scanned,
    /// The file needs a password, or a book its seller's key.
    #[error("encrypted: save a copy without the password first")]
    Encrypted,
    /// A NUL byte where text was expected.
    #[error("a binary file, not text (byte {offset_bytes} is zero)")]
    Binary {
        /// Where the first NUL is.
        offset_bytes: usize,
    },
    /// Text in the encoding that some Windows programs call "Unicode".
    #[error("the text is UTF-16; save it as UTF-8")]
    Utf16,
    /// Text in some older encoding.
    #[error("not UTF-8: byte {offset_bytes} fits no character; save it as UTF-8")]
    InvalidUtf8 {
        /// Where the first wrong byte is.
        offset_bytes: usize,
    },
    /// The file is not what its name says, or not whole.
    #[error("damaged {kind}: {detail}")]
    Damaged {
        /// What it was read as.
        kind: Kind,
        /// What failed, and where.
        detail: String,
    },
    /// JSON that is no conversation we know.
    #[error("line {line}: no conversation that memlocal knows: expected objects with `speaker` and `text`, or LoCoMo's `conversation`{}", found(.fields))]
    UnknownConversation {
        /// Where the value starts.
        line: usize,
        /// The fields the object has instead.
        fields: Vec<String>,
    },
    /// A turn of a conversation that lacks something.
    #[error("line {line}: field `{field}` {problem}")]
    Field {
        /// Where the object with the field starts.
        line: usize,
        /// The field.
        field: String,
        /// What is wrong with it: `is missing`.
        problem: &'static str,
    },
    /// More than we are willing to hold in memory: a huge file, or one that unpacks to a huge one.
    #[error("too large: more than {limit} {what}")]
    TooLarge {
        /// How much would have been read.
        limit: u64,
        /// Of what: `bytes`, `bytes unpacked`, `archive entries`.
        what: &'static str,
    },
    /// The program that reads PDFs could not be run.
    #[error("the PDF reader {} did not run: {error}", program.display())]
    PdfChild {
        /// The program.
        program: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Reading took too long and was stopped: a PDF that hangs its reader, or HTML made to.
    #[error("reading it took more than {} s and was stopped", limit.as_secs_f32())]
    TimedOut {
        /// How long it had.
        limit: Duration,
    },
}

impl Cause {
    pub(crate) fn damaged(kind: Kind, detail: impl Into<String>) -> Self {
        Cause::Damaged { kind, detail: detail.into() }
    }

    pub(crate) fn at(self, path: &Path) -> SourceError {
        SourceError { path: path.to_owned(), cause: self }
    }
}

fn known() -> String {
    Kind::EXTENSIONS.map(|(extension, _)| format!(".{extension}")).join(" ")
}

fn found(fields: &[String]) -> String {
    if fields.is_empty() {
        return String::new();
    }
    format!(", found `{}`", fields.join("`, `"))
}
