//! One file in, its sources out: the checks that all kinds share, then the reader of the kind.

use std::fs;
use std::path::Path;

use crate::{Cause, Kind, PdfChild, Source, SourceError, conversation, docx, epub, html, pdf, plain};

/// How to read.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The program that reads PDFs. Without one they are read in this process, where a bad file can hang or even
    /// abort it.
    pub pdf_child: Option<PdfChild>,
    /// What becomes of the pictures that `LoCoMo`'s speakers share.
    pub captions: Captions,
    /// Larger files are refused.
    pub max_file_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions { pdf_child: None, captions: Captions::Dropped, max_file_bytes: 256 << 20 }
    }
}

/// What becomes of a picture's caption in a `LoCoMo` conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Captions {
    /// Left out, as GAM does.
    #[default]
    Dropped,
    /// Written after the turn's words: ` [shares a photo of a dog]`.
    Kept,
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
    check_size(path, options.max_file_bytes)?;
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

/// Looks before opening: to open a pipe can hang, and a huge file would be read for nothing.
fn check_size(path: &Path, max_bytes: u64) -> Result<(), Cause> {
    let meta = fs::metadata(path).map_err(Cause::Io)?;
    match meta.len() {
        _ if !meta.is_file() => Err(Cause::NotAFile),
        0 => Err(Cause::Empty),
        bytes if bytes > max_bytes => Err(Cause::TooLarge { limit: max_bytes, what: "bytes" }),
        _ => Ok(()),
    }
}
