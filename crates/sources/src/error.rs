//! Why a file could not be read: one enum; each variant says what is wrong and what to do.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Kind, Limit};

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
/// `Display` contains the system's errors, so they are fields and not a `source()`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The operating system could not read the file.
    #[error("cannot be read: {}", why(.0))]
    Io(io::Error),
    /// A folder, a device or a pipe where a file was expected.
    #[error("not a regular file")]
    NotAFile,
    /// The file name has no extension that a reader supports.
    #[error("unsupported file type (supported: {}, source code, and any text in UTF-8)", Kind::document_extensions())]
    UnknownKind,
    /// A lock or another file that programs leave beside documents.
    #[error("a lock or temporary file of another program, not a document; name the document itself")]
    Temporary,
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file is valid and contains no text.
    #[error("the file contains no text")]
    NoText,
    /// A PDF with pages and no text on any of them.
    #[error("the PDF contains no text{}", if *.has_ocr { ", and OCR recognised none" } else {
        ": a scanned PDF needs OCR; install the programs tesseract and pdftoppm, or convert it to text" })]
    Scanned {
        /// Whether OCR was tried.
        has_ocr: bool,
    },
    /// The file needs a password, or is a book with copy protection.
    #[error("the file is encrypted; save a copy without a password")]
    Encrypted,
    /// A message that is encrypted.
    #[error("the message is encrypted (S/MIME); open it in the mail program that has its key, and save it as text")]
    EncryptedMessage,
    /// A NUL byte where text was expected.
    #[error("binary data, not text: byte {offset_bytes} is NUL")]
    Binary {
        /// The offset of the first NUL.
        offset_bytes: usize,
    },
    /// Text that starts as UTF-16 and is not valid, or part of an archive.
    #[error("the text is not valid UTF-16; save it as UTF-8")]
    Utf16,
    /// Text that is damaged UTF-8, or in no encoding that is recognised.
    #[error("the text is not valid UTF-8 at byte {offset_bytes}; save it as UTF-8")]
    InvalidUtf8 {
        /// The offset of the first invalid byte.
        offset_bytes: usize,
    },
    /// The content does not match the file type, or is incomplete.
    #[error("damaged {kind}: {detail}")]
    Damaged {
        /// The expected file type.
        kind: Kind,
        /// What failed, and where.
        detail: String,
    },
    /// JSON in no supported form of conversation.
    #[error("line {line}: not a supported conversation: expected an export of a chat, `messages` with `role` and `content`, objects with `speaker` and `text`, or LoCoMo's `conversation`{}", found(.fields))]
    UnknownConversation {
        /// The line on which the value starts.
        line: usize,
        /// The names of the first fields that the object has instead.
        fields: Vec<String>,
    },
    /// An object of a conversation with a missing or invalid field.
    #[error("line {line}: field `{field}` {problem}")]
    Field {
        /// The line on which the object starts.
        line: usize,
        /// The name of the field.
        field: String,
        /// What is wrong with it: `is missing`.
        problem: &'static str,
    },
    /// Reading the file takes more memory, output or time than allowed.
    #[error("{0}")]
    LimitExceeded(Limit),
    /// The program that reads PDFs, or one of OCR, could not be run.
    #[error("the program {} could not be run: {error}", program.display())]
    PdfChild {
        /// The program.
        program: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl Cause {
    pub(crate) fn damaged(kind: Kind, detail: impl Into<String>) -> Self {
        Cause::Damaged { kind, detail: detail.into() }
    }

    /// The same for damage of a part of a file, which it names unless it names another.
    pub(crate) fn in_part(self, part: &str) -> Self {
        match self {
            Cause::Damaged { kind, detail } if !detail.starts_with("its part ") => {
                Cause::damaged(kind, format!("its part {part}: {detail}"))
            }
            other => other,
        }
    }

    pub(crate) fn at(self, path: &Path) -> SourceError {
        SourceError { path: path.to_owned(), cause: self }
    }
}

impl From<Limit> for Cause {
    fn from(limit: Limit) -> Self {
        Cause::LimitExceeded(limit)
    }
}

/// The system's error; of missing permission also what to do.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{error}; allow this user to read it, or exclude it"),
        _ => error.to_string(),
    }
}

fn found(fields: &[String]) -> String {
    if fields.is_empty() {
        return String::new();
    }
    format!(", found `{}`", fields.join("`, `"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_permission_has_advice() {
        let cause = |kind: io::ErrorKind| Cause::Io(kind.into()).to_string();
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let expect = format!("cannot be read: {denied}; allow this user to read it, or exclude it");
        assert_eq!(cause(io::ErrorKind::PermissionDenied), expect);
        let missing = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(cause(io::ErrorKind::NotFound), format!("cannot be read: {missing}"));
    }

    #[test]
    fn the_innermost_part_that_is_damaged_is_named() {
        let inner = Cause::damaged(Kind::Odt, "it is missing").in_part("Object 1/content.xml").in_part("content.xml");
        assert_eq!(inner.to_string(), "damaged ODT: its part Object 1/content.xml: it is missing");
        assert!(matches!(Cause::NoText.in_part("content.xml"), Cause::NoText));
    }
}
