//! Scanned PDFs: pages without text are passed to the programs of OCR.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sources::{Cause, Kind, Limit, Ocr, PdfChild, ReadOptions, Source, read};

use crate::fixture;

/// A program that runs a shell script.
fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
    file
}

/// Reads a PDF whose pages have these texts, with a form feed between two, through programs that are scripts.
fn read_with(pages: &str, pdftoppm: &str, tesseract: &str) -> Result<Source, Cause> {
    let folder = tempfile::tempdir().unwrap();
    let ocr = Ocr {
        pdftoppm: program(folder.path(), "pdftoppm", pdftoppm),
        tesseract: program(folder.path(), "tesseract", tesseract),
        languages: Some("deu+eng".to_owned()),
        page_time: if tesseract.contains("sleep") { Duration::from_millis(100) } else { Duration::from_mins(1) },
        time: Duration::from_mins(10),
    };
    let child = PdfChild { ocr: Some(ocr), ..PdfChild::new("printf", [format!("{pages}%.0s")]) };
    let options = ReadOptions { pdf_child: Some(child), ..ReadOptions::default() };
    loop {
        match read(&fixture("letter.pdf"), &options).map(|mut sources| sources.remove(0)).map_err(|error| error.cause) {
            // A process that another test was starting still had the script open for writing.
            Err(Cause::PdfChild { error, .. }) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {}
            result => return result,
        }
    }
}

#[test]
fn pages_without_text_are_recognised_and_the_document_says_so() {
    // The text names the arguments of both programs.
    let source = read_with(r"one\f \fthree", r#"echo "$1 $2 $3 $4 ${7##*/}""#, r#"cat; echo "$*""#).unwrap();
    assert_eq!(source.kind, Kind::ScannedPdf);
    assert_eq!(source.kind.to_string(), "PDF read by OCR");
    assert_eq!(source.text, "one\n\n-f 2 -l 2 3500\nstdin stdout -l deu+eng\n\nthree");
}

#[test]
fn a_picture_is_named_in_its_place_if_its_text_is_not_recognised() {
    let read = |tesseract| read_with(r"one\f\001", "echo x", tesseract).unwrap();
    assert_eq!(read("cat").text, "one\n\nx");
    let source = read("exit 0");
    assert_eq!((source.kind, source.text.as_str()), (Kind::Pdf, "one\n\n[page 2: a picture without text]"));
}

#[test]
fn a_pdf_with_text_on_all_pages_needs_no_ocr() {
    let source = read_with(r"one\ftwo", "exit 1", "exit 1").unwrap();
    assert_eq!((source.kind, source.text.as_str()), (Kind::Pdf, "one\n\ntwo"));
}

#[test]
fn ocr_that_fails_hangs_or_finds_nothing_says_so() {
    let check = |pdftoppm, tesseract, expect: &str| {
        let cause = read_with(" ", pdftoppm, tesseract).unwrap_err();
        let message = cause.to_string();
        assert!(message.starts_with(expect.split("...").next().unwrap()), "{message}");
        assert!(message.ends_with(expect.split("...").last().unwrap()), "{message}");
    };
    check("echo x", "exit 0", "the PDF contains no text, and OCR recognised none");
    check("echo no such page >&2; exit 1", "cat", "damaged PDF read by OCR: page 1: .../pdftoppm: no such page");
    check(
        "echo x",
        "echo no language deu >&2; exit 1",
        "damaged PDF read by OCR: page 1: .../tesseract: no language deu",
    );
    check("echo x", r"printf '\351'", "damaged PDF read by OCR: page 1: incomplete utf-8 byte sequence from index 0");
    let cause = read_with(" ", "echo x", "exec sleep 600").unwrap_err();
    assert!(matches!(cause, Cause::LimitExceeded(Limit::Time(_))), "{cause}");
}

#[test]
fn the_real_programs_recognise_printed_letters() {
    let Some(ocr) = Ocr::installed() else { return eprintln!("skipped: tesseract or pdftoppm is missing") };
    // The child gives no text, so that the pages are read from their pictures.
    let child = PdfChild { ocr: Some(ocr), ..PdfChild::new("printf", [r"\f%.0s"]) };
    let options = ReadOptions { pdf_child: Some(child), ..ReadOptions::default() };
    let source = read(&fixture("letter.pdf"), &options).unwrap().remove(0);
    assert_eq!(source.kind, Kind::ScannedPdf);
    for words in ["The lamp of the north pier was out for two hours.", "A new wick was fitted on the 4th."] {
        assert!(source.text.contains(words), "{}", source.text);
    }
}
