//! Reads one file: the checks that all file types share, then the reader of its type.

use std::fmt;
use std::fs;
use std::path::Path;

use encoding_rs::UTF_8;

use crate::encoding::{self, Decoded};
use crate::html::Deadline;
use crate::kind::is_temporary;
use crate::limit::{FILE_BYTES, HTML_BYTES, JSON_BYTES, MAIL_BYTES, RTF_BYTES, TEXT_FILE_BYTES};
use crate::{Captions, Cause, Kind, Limit, PdfChild, SlackUsers, Source, SourceError, TextFile};
use crate::{
    calendar, compound, contacts, conversation, docx, email, epub, html, mailbox, notebook, odp, ods, odt, outlook,
    pdf, plain, pptx, rtf, table, web_archive, xlsx,
};

/// How to read files.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The program that reads PDFs, and its limits. Without one they are read in this process without limits of memory and
    /// time, and a hostile file can hang or abort it.
    pub pdf_child: Option<PdfChild>,
    /// Whether the captions of the pictures in `LoCoMo` are part of the text.
    pub captions: Captions,
    /// The names of users for Slack's exports.
    pub slack_users: SlackUsers,
    /// Larger files are refused; some types have smaller limits besides ([`Limit`]).
    pub max_file_bytes: u64,
    /// Larger mailboxes are refused, and by [`open`] larger plain text, Markdown and source files.
    pub max_text_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            pdf_child: None,
            captions: Captions::Dropped,
            slack_users: SlackUsers::default(),
            max_file_bytes: FILE_BYTES,
            max_text_bytes: TEXT_FILE_BYTES,
        }
    }
}

/// What a file holds.
#[derive(Debug)]
pub enum Opened {
    /// A plain text, which stays in its file.
    Text(TextFile),
    /// The extracted texts of any other file.
    Sources(Sources),
}

/// The extracted texts of one file, in their order. Those of a mailbox are read when they are asked for; an error,
/// as only mailboxes have here, is the last item.
pub struct Sources(Box<dyn Iterator<Item = Result<Source, Cause>> + Send>);

impl Sources {
    fn of(sources: Vec<Source>) -> Self {
        Sources(Box::new(sources.into_iter().map(Ok)))
    }
}

impl Iterator for Sources {
    type Item = Result<Source, Cause>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}

/// Opens one file: reads it, unless it is a plain text or a mailbox.
///
/// A file of an unknown type is read as plain text if it is valid UTF-8: it was named by the user, since [`crate::find`] lists no
/// such files of folders.
///
/// # Errors
/// As [`read`].
pub fn open(path: &Path, options: &ReadOptions) -> Result<Opened, SourceError> {
    let opened = match Kind::of_file(path) {
        _ if is_temporary(path) => Err(Cause::Temporary),
        None => {
            check_size(path, Kind::Text, options.max_text_bytes).and_then(|()| open_unknown(path)).map(Opened::Text)
        }
        Some(kind) if kind.is_verbatim() => {
            check_size(path, kind, options.max_text_bytes).and_then(|()| TextFile::open(path, kind)).map(Opened::Text)
        }
        Some(_) => read_as_named(path, options).map(Opened::Sources),
    };
    opened.map_err(|cause| cause.at(path))
}

fn open_unknown(path: &Path) -> Result<TextFile, Cause> {
    TextFile::open_as(UTF_8, path, Kind::Text).map_err(|cause| match cause {
        Cause::Binary { .. } | Cause::InvalidUtf8 { .. } | Cause::Utf16 => Cause::UnknownKind,
        other => other,
    })
}

/// Reads one file: one source, for a file of several conversations one for each, and for a long mailbox several, all of
/// them at once.
///
/// # Errors
/// [`SourceError`] with the file's path and a [`Cause`]; a file without any text is an error too.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Vec<Source>, SourceError> {
    read_as_named(path, options).and_then(Iterator::collect).map_err(|cause: Cause| cause.at(path))
}

fn read_as_named(path: &Path, options: &ReadOptions) -> Result<Sources, Cause> {
    if is_temporary(path) {
        return Err(Cause::Temporary);
    }
    let kind = Kind::of_file(path);
    let most = if kind == Some(Kind::Mailbox) { options.max_text_bytes } else { options.max_file_bytes };
    check_size(path, kind.unwrap_or(Kind::Text), most)?;
    let name = path.to_string_lossy();
    let bytes = || fs::read(path).map_err(Cause::Io);
    let text = || encoding::decode(bytes()?);
    let deadline = Deadline::start();
    let source = match kind {
        None => {
            let pieces = open_unknown(path)?.pieces()?;
            Source::whole(&name, Kind::Text, None, pieces.collect::<Result<_, _>>()?)?
        }
        Some(Kind::Pdf | Kind::ScannedPdf) => pdf::source(&name, path, options.pdf_child.as_ref())?,
        Some(Kind::Docx) => docx::source(&name, &bytes()?)?,
        Some(Kind::Odt) => odt::source(&name, &bytes()?)?,
        Some(Kind::Ods) => ods::source(&name, &bytes()?)?,
        Some(Kind::Odp) => odp::source(&name, &bytes()?)?,
        Some(Kind::Rtf) => rtf::source(&name, &bytes()?)?,
        Some(Kind::Pptx) => pptx::source(&name, &bytes()?)?,
        Some(Kind::Xlsx) => xlsx::source(&name, &bytes()?)?,
        Some(Kind::Epub) => epub::source(&name, &bytes()?, deadline)?,
        Some(Kind::Email) => mail(&name, &bytes()?, deadline)?,
        Some(Kind::Mailbox) => return Ok(Sources(Box::new(mailbox::documents(&name, path)?))),
        Some(Kind::WebArchive) => web_archive::source(&name, &bytes()?, deadline)?,
        Some(Kind::Table) => table::source(&name, path)?,
        Some(Kind::Html) => {
            return read_text(&name, Kind::Html, encoding::decode_html(bytes()?)?, options, deadline).map(Sources::of);
        }
        Some(kind) => return read_text(&name, kind, text()?, options, deadline).map(Sources::of),
    };
    Ok(Sources::of(vec![source]))
}

/// Reads an e-mail. Its content tells the format, since mails of both are kept under either name.
fn mail(name: &str, bytes: &[u8], deadline: Deadline) -> Result<Source, Cause> {
    let is_outlook = bytes.starts_with(&compound::SIGNATURE);
    if is_outlook { outlook::source(name, bytes, deadline) } else { email::source(name, bytes, deadline) }
}

/// Reads a file that is a text in any encoding.
fn read_text(
    name: &str,
    kind: Kind,
    file: Decoded,
    options: &ReadOptions,
    deadline: Deadline,
) -> Result<Vec<Source>, Cause> {
    let encoding = file.encoding;
    let mut sources = match kind {
        Kind::Markdown => vec![plain::markdown(name, file)?],
        Kind::Code => vec![plain::code(name, file)?],
        Kind::Html => vec![html::source(name, &file.text, deadline)?],
        Kind::Notebook => vec![notebook::source(name, &file)?],
        Kind::Calendar => vec![calendar::source(name, &file)?],
        Kind::Contacts => vec![contacts::source(name, &file)?],
        Kind::Conversation => conversation::sources(name, &file, options.captions, &options.slack_users)?,
        Kind::WhatsApp => match conversation::whatsapp::source(name, &file)? {
            Some(chat) => vec![chat],
            None => vec![plain::text(name, file)?],
        },
        _ => vec![plain::text(name, file)?],
    };
    sources.iter_mut().for_each(|source| source.encoding = encoding);
    Ok(sources)
}

/// Checked before opening: opening a pipe can block, and a file beyond the limit would be read for nothing.
fn check_size(path: &Path, kind: Kind, max_bytes: u64) -> Result<(), Cause> {
    let meta = fs::metadata(path).map_err(Cause::Io)?;
    let most = match kind {
        Kind::Conversation | Kind::Notebook | Kind::WhatsApp | Kind::Calendar | Kind::Contacts => {
            max_bytes.min(JSON_BYTES)
        }
        Kind::Email | Kind::WebArchive => max_bytes.min(MAIL_BYTES),
        Kind::Rtf => max_bytes.min(RTF_BYTES),
        _ => max_bytes,
    };
    match meta.len() {
        _ if !meta.is_file() => Err(Cause::NotAFile),
        0 => Err(Cause::Empty),
        bytes if bytes > most => Err(Limit::FileBytes(most).into()),
        bytes if kind == Kind::Html && bytes > HTML_BYTES => Err(Limit::HtmlBytes(HTML_BYTES).into()),
        _ => Ok(()),
    }
}
