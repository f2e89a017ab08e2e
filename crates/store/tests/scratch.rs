//! Corpora for tests, in folders that are deleted when the test ends.

use std::error::Error;

use store::{Author, Corpora, DocId, Layer, Meta, NewDocument, NewPassage, Offsets, Part, Passage, Writer};
use tempfile::TempDir;

pub type Outcome = Result<(), Box<dyn Error>>;

pub struct Scratch {
    pub folder: TempDir,
    pub corpora: Corpora,
}

impl Scratch {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let corpora = Corpora::new(folder.path());
        Self { folder, corpora }
    }

    /// A new corpus named "scratch".
    pub fn writer(&self) -> Writer {
        self.corpora.create("scratch").expect("a new folder takes a new corpus")
    }

    pub fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("corpora/scratch").join(name)
    }
}

/// Passages of `layer` that are the lines of a text.
pub fn lines(layer: Layer, text: &str) -> Vec<NewPassage> {
    let mut start = 0;
    let line = |line: &str| {
        let bytes = start..start + line.trim_end().len();
        start += line.len();
        NewPassage { layer, bytes, tokens: 1, meta: Meta::default() }
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Stores a text whose lines are pages.
pub fn put_lines(writer: &mut Writer, path: &str, text: &str) -> store::Result<DocId> {
    let passages = lines(Layer::Page, text);
    let document = NewDocument { path, kind: "text", title: path, text, passages: &passages };
    writer.put_document(&document).map(|(id, _)| id)
}

/// One vector for the whole of a passage.
pub fn whole(passage: &Passage, vector: &[f32]) -> Vec<Part> {
    vec![Part { span: passage.span, vector: vector.to_vec() }]
}

/// The first `bytes` bytes of a passage of an ASCII document as a span.
pub fn beginning(passage: &Passage, bytes: usize) -> store::Span {
    let text = "x".repeat(passage.span.bytes().end);
    let start = passage.span.bytes().start;
    Offsets::new(&text).span(start..start + bytes).expect("the text is ASCII and long enough")
}

pub fn author() -> Author {
    Author { model: "scripted".to_owned(), prompt: "0123".to_owned() }
}
