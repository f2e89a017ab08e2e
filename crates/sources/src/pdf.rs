//! PDF: the text of each page, by pdf-extract, in a child process if the caller configures one, its words mended
//! ([`crate::pdf_words`]).
//! Pages without text are passed to OCR where it is installed ([`crate::Ocr`]); pictures whose text is not recognised
//! are named in their places.

use std::path::Path;

use crate::pdf_child::{self, PdfChild};
use crate::pdf_pages::{PICTURE, each_page};
use crate::source::Part;
use crate::{Cause, Kind, Source, pdf_words};

/// A `.pdf` file: one section a page.
pub(crate) fn source(name: &str, path: &Path, child: Option<&PdfChild>) -> Result<Source, Cause> {
    let mut pages = Vec::new();
    match child {
        Some(child) => pages = pdf_child::pages(child, path)?,
        None => each_page(path, |text| {
            pages.push(text);
            Ok(())
        })?,
    }
    let pictures: Vec<bool> = pages.iter().map(|page| page.as_str() == PICTURE).collect();
    pages.iter_mut().filter(|page| page.as_str() == PICTURE).for_each(String::clear);
    let mut kind = Kind::Pdf;
    if let Some(ocr) = child.and_then(|child| child.ocr.as_ref()) {
        let found = ocr.fill(path, &mut pages)?;
        kind = if found { Kind::ScannedPdf } else { kind };
    }
    if pages.iter().all(|page| page.trim().is_empty()) {
        return Err(Cause::Scanned { has_ocr: child.is_some_and(|child| child.ocr.is_some()) });
    }
    pdf_words::mend(&mut pages);
    let part = |(i, (text, is_picture)): (usize, (String, bool))| {
        let title = format!("page {}", i + 1);
        let is_lost = is_picture && text.trim().is_empty();
        let text = if is_lost { format!("[{title}: a picture without text]") } else { text };
        Part { title: Some(title), text, ..Part::default() }
    };
    Source::joined(name, kind, None, pages.into_iter().zip(pictures).enumerate().map(part).collect())
}
