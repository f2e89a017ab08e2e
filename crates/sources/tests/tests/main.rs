//! The text of every type of file, and the error for every kind of damage.

mod archives;
mod calendars;
mod chats;
mod conversations;
mod documents;
mod find;
mod formulas;
mod html;
mod lists;
mod locomo;
mod mail;
#[cfg(unix)]
mod ocr;
mod office;
mod outlook;
mod outlook_file;
mod pdf;
mod random_input;
mod rtf;
mod secured;
mod struck;
mod tables;
mod texts;

use std::fs;
use std::path::{Path, PathBuf};

use sources::{Cause, ReadOptions, Source, read};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Reads a file of this name and content.
fn read_bytes(name: &str, bytes: &[u8]) -> Result<Vec<Source>, Cause> {
    read_bytes_with(name, bytes, &ReadOptions::default())
}

fn read_bytes_with(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Vec<Source>, Cause> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    let result = read(&path, options);
    if let Ok(sources) = &result {
        sources.iter().for_each(check_spans);
    }
    result.map_err(|error| {
        assert_eq!(error.path, path);
        assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
        error.cause
    })
}

/// Reads a file that holds one source.
fn read_one(name: &str, bytes: &[u8]) -> Source {
    let mut sources = read_bytes(name, bytes).unwrap();
    assert_eq!(sources.len(), 1);
    sources.remove(0)
}

/// The error message for a file that cannot be read.
fn complaint(name: &str, bytes: &[u8]) -> String {
    read_bytes(name, bytes).expect_err(name).to_string()
}

/// Sections are in order and disjoint and cover all of the text except blank lines; turns are in their sections.
fn check_spans(source: &Source) {
    let mut end = 0;
    for section in &source.sections {
        assert!(source.text[end..section.span.start].trim().is_empty());
        assert!(!source.text[section.span.clone()].trim().is_empty());
        end = section.span.start;
        for turn in &section.turns {
            assert!(end <= turn.span.start && turn.span.end <= section.span.end);
            let words = &source.text[turn.span.clone()];
            assert!(words.starts_with(&format!("{} ({}", turn.speaker, turn.id)), "{words}");
            end = turn.span.end;
        }
        end = section.span.end;
    }
    assert!(source.text[end..].trim().is_empty());
}
