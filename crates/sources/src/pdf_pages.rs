//! The text of each page of a PDF by pdf-extract, in this process.
//!
//! pdf-extract panics on some files and does not return on others, and its own loop over pages ends silently at the first
//! page that fails; here such a page is an error. A file with a damaged cross-reference table is repaired if it is
//! complete.

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use pdf_extract::{Document, Error, Object, PlainTextOutput, output_doc_page};

use crate::limit::PDF_PAGE_BYTES;
use crate::{Cause, Kind, Limit, pdf_repair};

/// The mark in place of the text of a page that has none and shows a picture.
pub(crate) const PICTURE: &str = "\u{1}";

/// Reads a PDF in this process and passes on the text of one page after another.
///
/// # Errors
/// [`Cause::Encrypted`], [`Limit::PdfPageBytes`], or [`Cause::Damaged`], also where pdf-extract panics.
pub(crate) fn each_page(path: &Path, mut each: impl FnMut(String) -> Result<(), Cause>) -> Result<(), Cause> {
    let damaged = |detail: &str| Cause::damaged(Kind::Pdf, detail);
    let document =
        caught(|| load(path)).unwrap_or_else(|| Err(damaged(&format!("the PDF library cannot read it; {ADVICE}"))))?;
    for number in document.get_pages().into_keys() {
        let text = caught(|| page(&document, number));
        each(text.unwrap_or_else(|| Err(damaged(&format!("page {number}: its content is invalid; {ADVICE}"))))?)?;
    }
    Ok(())
}

/// What to do about a PDF that the library cannot read.
const ADVICE: &str = "open it in a PDF viewer and print it to a new PDF";

/// Opens a PDF. One that only restricts printing or copying opens without a password.
fn load(path: &Path) -> Result<Document, Cause> {
    let file = std::fs::read(path).map_err(Cause::Io)?;
    let mut document = match Document::load_mem(&file) {
        Err(Error::InvalidPassword | Error::Decryption(_) | Error::UnsupportedSecurityHandler(_)) => {
            return Err(Cause::Encrypted);
        }
        Ok(mut document) if document.is_encrypted() => {
            document.decrypt("").map_err(|_| Cause::Encrypted)?;
            document
        }
        Ok(document) if pdf_repair::is_complete(&document) => document,
        // Some producers declare another number of pages than there are.
        Ok(document) if !document.get_pages().is_empty() => pdf_repair::repaired(&file).unwrap_or(document),
        Ok(_) | Err(_) => pdf_repair::repaired(&file).map_err(|detail| Cause::damaged(Kind::Pdf, detail))?,
    };
    if document.get_pages().is_empty() {
        return Err(Cause::damaged(Kind::Pdf, "it has no pages"));
    }
    empty_pictures(&mut document);
    Ok(document)
}

/// pdf-extract reads the data of a picture as if they were the content of a page.
fn empty_pictures(document: &mut Document) {
    for object in document.objects.values_mut() {
        if let Object::Stream(stream) = object
            && stream.dict.get(b"Subtype").and_then(Object::as_name).is_ok_and(|name| name == b"Image")
        {
            stream.set_plain_content(Vec::new());
        }
    }
}

fn page(document: &Document, number: u32) -> Result<String, Cause> {
    let damaged = |error: String| Cause::damaged(Kind::Pdf, format!("page {number}: {error}; {ADVICE}"));
    let id = document.get_pages().get(&number).copied().unwrap_or_default();
    // pdf-extract needs about 40 times the memory of the content.
    let content = document.get_page_content(id).map_err(|error| damaged(error.to_string()))?;
    if content.len() as u64 > PDF_PAGE_BYTES {
        return Err(Limit::PdfPageBytes(PDF_PAGE_BYTES).into());
    }
    let has_picture = has_picture(&content);
    drop(content);
    let mut text = String::new();
    output_doc_page(document, &mut PlainTextOutput::new(&mut text), number)
        .map_err(|error| damaged(error.to_string()))?;
    Ok(if has_picture && text.trim().is_empty() { PICTURE.to_owned() } else { text })
}

/// Whether the content of a page draws a picture: an object of its own, or one within the content.
fn has_picture(content: &[u8]) -> bool {
    let is_delimiter = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
    content.split(is_delimiter).any(|word| matches!(word, b"Do" | b"BI"))
}

/// The result of `work`, or `None` if it panics. The panic's message is about the library's code, so it is dropped.
fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    panic::catch_unwind(AssertUnwindSafe(work)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_objects_of_their_own_or_within_the_content() {
        let check = |content: &str, expect| assert_eq!(has_picture(content.as_bytes()), expect, "{content}");
        check("q 9 0 0 9 0 0 cm /Im1 Do Q", true);
        check("q\nBI /W 1 /H 1 ID x EI\nQ", true);
        check("/F1 9 Tf (What to Doubt) Tj 1 0 0 rg 0 0 9 9 re f", false);
        check("", false);
    }
}
