//! Reads one file: the checks that all file types share, then the reader of its type.

use std::fs;
use std::path::Path;

use crate::limit::{FILE_BYTES, HTML_BYTES, JSON_BYTES, TEXT_BYTES};
use crate::{Cause, Kind, Limit, PdfChild, Source, SourceError, TextFile, conversation, docx, epub, html, pdf, plain};

/// How to read files.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The program that reads PDFs, and its limits. Without one they are read in this process without limits of memory and
    /// time, and a hostile file can hang or abort it.
    pub pdf_child: Option<PdfChild>,
    /// Whether the captions of the pictures in `LoCoMo` are part of the text.
    pub captions: Captions,
    /// Larger files are refused; JSON is limited to 64 MiB and HTML to 32 MiB besides.
    pub max_file_bytes: u64,
    /// Larger plain text and Markdown files are refused by [`open`].
    pub max_text_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            pdf_child: None,
            captions: Captions::Dropped,
            max_file_bytes: FILE_BYTES,
            max_text_bytes: TEXT_BYTES,
        }
    }
}

/// Whether the caption of a picture in a `LoCoMo` conversation is part of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Captions {
    /// Left out, as GAM does.
    #[default]
    Dropped,
    /// Appended to the turn: ` [shares a photo of a dog]`.
    Kept,
}

/// What a file holds.
#[derive(Clone, Debug)]
pub enum Opened {
    /// A plain text, which stays in its file.
    Text(TextFile),
    /// The extracted texts of any other file.
    Sources(Vec<Source>),
}

/// Opens one file: reads it, unless it is a plain text.
///
/// # Errors
/// As [`read`].
pub fn open(path: &Path, options: &ReadOptions) -> Result<Opened, SourceError> {
    match Kind::of(path) {
        Some(kind @ (Kind::Text | Kind::Markdown)) => {
            let checked = check_size(path, kind, options.max_text_bytes);
            let opened = checked.and_then(|()| TextFile::open(path, kind));
            opened.map(Opened::Text).map_err(|cause| cause.at(path))
        }
        _ => read(path, options).map(Opened::Sources),
    }
}

/// Reads one file: one source, or for a `LoCoMo` file one for each of its conversations.
///
/// # Errors
/// [`SourceError`] with the file's path and a [`Cause`]; a file without any text is an error too.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Vec<Source>, SourceError> {
    read_as_named(path, options).map_err(|cause| cause.at(path))
}

fn read_as_named(path: &Path, options: &ReadOptions) -> Result<Vec<Source>, Cause> {
    let kind = Kind::of(path).ok_or(Cause::UnknownKind)?;
    check_size(path, kind, options.max_file_bytes)?;
    let name = path.to_string_lossy();
    let bytes = || fs::read(path).map_err(Cause::Io);
    let text = || plain::decode(bytes()?);
    let source = match kind {
        Kind::Text => plain::text(&name, text()?)?,
        Kind::Markdown => plain::markdown(&name, text()?)?,
        Kind::Html => html::source(&name, &text()?)?,
        Kind::Pdf => pdf::source(&name, path, options.pdf_child.as_ref())?,
        Kind::Docx => docx::source(&name, &bytes()?)?,
        Kind::Epub => epub::source(&name, &bytes()?)?,
        Kind::Conversation => return conversation::sources(&name, &text()?, options.captions),
    };
    Ok(vec![source])
}

/// Checked before opening: opening a pipe can block, and a file beyond the limit would be read for nothing.
fn check_size(path: &Path, kind: Kind, max_bytes: u64) -> Result<(), Cause> {
    let meta = fs::metadata(path).map_err(Cause::Io)?;
    match meta.len() {
        _ if !meta.is_file() => Err(Cause::NotAFile),
        0 => Err(Cause::Empty),
        bytes if bytes > max_bytes => Err(Limit::FileBytes(max_bytes).into()),
        bytes if kind == Kind::Conversation && bytes > JSON_BYTES => Err(Limit::FileBytes(JSON_BYTES).into()),
        bytes if kind == Kind::Html && bytes > HTML_BYTES => Err(Limit::HtmlBytes(HTML_BYTES).into()),
        _ => Ok(()),
    }
}
