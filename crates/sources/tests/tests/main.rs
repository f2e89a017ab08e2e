//! What reading gives for every kind of file, and what every kind of damage says.

mod archives;
mod conversations;
mod documents;
mod find;
mod html;
mod locomo;
mod pdf;
mod salad;

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

/// What reading says instead of giving a source.
fn complaint(name: &str, bytes: &[u8]) -> String {
    read_bytes(name, bytes).expect_err(name).to_string()
}

/// Sections in order and apart, all of the text but blank lines in them, and turns in their sections.
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
