//! Corpora and their documents as JSON objects, which clients of the API and of the command line get alike.

use std::collections::HashMap;

use serde_json::{Value, json};
use store::{Corpus, DocId, Document, Layer, Listing, Passage, Result};

/// An entry of the list of corpora: its name, title and size with its counts, or with the error of opening it.
pub fn corpus_json(listing: Listing) -> Value {
    let Listing { name, title, bytes, counts } = listing;
    let name = name.to_string();
    match counts {
        Ok(counts) => json!({ "name": name, "title": title, "bytes": bytes, "documents": counts.documents,
            "passages": counts.passages, "pages_without_notes": counts.pending }),
        Err(error) => json!({ "name": name, "title": title, "bytes": bytes, "error": error.to_string() }),
    }
}

/// These documents of a corpus, without their texts.
///
/// # Errors
/// If the corpus cannot be read.
pub fn documents_json(corpus: &Corpus, documents: &[Document]) -> Result<Vec<Value>> {
    // One query for all documents: one for each takes seconds for thousands.
    let mut pages: HashMap<DocId, usize> = HashMap::new();
    for page in corpus.passages(Layer::Page)? {
        *pages.entry(page.document).or_default() += 1;
    }
    let line = |document: &Document| described(document, pages.get(&document.id).copied().unwrap_or_default());
    Ok(documents.iter().map(line).collect())
}

/// A document with its text and its parts.
///
/// # Errors
/// If the corpus has no such document, or cannot be read.
pub fn document_json(corpus: &Corpus, id: DocId) -> Result<Value> {
    let document = corpus.document(id)?;
    let parts = parts_json(corpus, id)?;
    let mut shown = described(&document, parts.len());
    shown["text"] = corpus.document_text(id)?.into();
    shown["parts"] = parts.into();
    Ok(shown)
}

/// The pages of a document, each with its place (characters), its name in the source, and the texts that models wrote about
/// it.
///
/// # Errors
/// If the corpus cannot be read.
pub fn parts_json(corpus: &Corpus, id: DocId) -> Result<Vec<Value>> {
    corpus.passages_of(id, Layer::Page)?.iter().map(|page| part(page, corpus)).collect()
}

fn described(document: &Document, pages: usize) -> Value {
    let Document { id, path, kind, title, created_seconds, .. } = document;
    json!({ "id": id, "name": path, "kind": kind, "title": title, "pages": pages, "created": created_seconds })
}

fn part(page: &Passage, corpus: &Corpus) -> Result<Value> {
    let notes = corpus.notes(page.id)?;
    let notes: Vec<Value> = notes.iter().map(|note| json!({ "name": note.name, "text": note.text })).collect();
    let (start, end) = (page.span.start_char, page.span.end_char);
    Ok(json!({ "page": page.id, "start": start, "end": end, "label": page.meta.label, "time": page.meta.time,
        "notes": notes }))
}
