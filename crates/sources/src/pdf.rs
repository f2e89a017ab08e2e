//! PDF: the text of each page, by pdf-extract, in a child process where the caller gives one.
//!
//! pdf-extract panics on some files and hangs on others, and its own loop over pages stops without a word at the
//! first page that fails; here such a page fails the file.

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use pdf_extract::{Document, Error, PlainTextOutput, output_doc_page};

use crate::pdf_child::{self, PdfChild};
use crate::source::Part;
use crate::{Cause, Kind, Source};

/// A `.pdf` file: one section a page.
pub(crate) fn source(name: &str, path: &Path, child: Option<&PdfChild>) -> Result<Source, Cause> {
    let pages = match child {
        Some(child) => pdf_child::pages(child, path)?,
        None => pages(path)?,
    };
    let parts = pages.into_iter().enumerate();
    let parts = parts.map(|(i, text)| Part { title: Some(format!("page {}", i + 1)), text }).collect();
    Source::joined(name, Kind::Pdf, None, parts).map_err(|cause| match cause {
        Cause::NoText => Cause::Scanned,
        other => other,
    })
}

/// The text of every page, read in this process.
///
/// # Errors
/// [`Cause::Encrypted`], or [`Cause::Damaged`], also where pdf-extract panics.
pub(crate) fn pages(path: &Path) -> Result<Vec<String>, Cause> {
    let damaged = |message: String| Cause::damaged(Kind::Pdf, message);
    let (document, numbers) = caught(|| load(path)).map_err(damaged)??;
    let page = |number| {
        let page = caught(|| page(&document, number)).flatten();
        page.map_err(|message| damaged(format!("page {number}: {message}")))
    };
    numbers.into_iter().map(page).collect()
}

/// Opens a PDF and numbers its pages. One that only restricts printing or copying opens without a password.
fn load(path: &Path) -> Result<(Document, Vec<u32>), Cause> {
    let mut document = Document::load(path).map_err(|error| match error {
        Error::InvalidPassword | Error::Decryption(_) => Cause::Encrypted,
        other => Cause::damaged(Kind::Pdf, other.to_string()),
    })?;
    if document.is_encrypted() {
        document.decrypt("").map_err(|_| Cause::Encrypted)?;
    }
    let numbers: Vec<u32> = document.get_pages().into_keys().collect();
    if numbers.is_empty() {
        return Err(Cause::damaged(Kind::Pdf, "it has no pages"));
    }
    Ok((document, numbers))
}

fn page(document: &Document, number: u32) -> Result<String, String> {
    let mut text = String::new();
    output_doc_page(document, &mut PlainTextOutput::new(&mut text), number).map_err(|error| error.to_string())?;
    Ok(text)
}

/// What the work gives, or the message with which it panics.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref().copied());
        message.unwrap_or("pdf-extract panicked").to_owned()
    })
}
