//! PDF: the text of each page, by pdf-extract, in a child process if the caller configures one.
//! Pages without text are passed to OCR where it is installed ([`crate::Ocr`]).

use std::path::Path;

use crate::pdf_child::{self, PdfChild};
use crate::pdf_pages::each_page;
use crate::source::Part;
use crate::{Cause, Kind, Source};

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
    let mut kind = Kind::Pdf;
    if let Some(ocr) = child.and_then(|child| child.ocr.as_ref()) {
        let found = ocr.fill(path, &mut pages)?;
        kind = if found { Kind::ScannedPdf } else { kind };
    }
    let part = |(i, text)| Part { title: Some(format!("page {}", i + 1)), text, ..Part::default() };
    Source::joined(name, kind, None, pages.into_iter().enumerate().map(part).collect()).map_err(|cause| match cause {
        Cause::NoText => Cause::Scanned { has_ocr: child.is_some_and(|child| child.ocr.is_some()) },
        other => other,
    })
}
