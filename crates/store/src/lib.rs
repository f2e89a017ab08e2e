//! The store: documents, passages and data derived from them, and the indexes that search them.
//!
//! A *corpus* is one folder: `memory.sqlite` holds the authoritative data (documents, passages, notes, derived texts,
//! vectors), a lock file names the process that has it open, and all other files are derived and rebuilt when they are
//! missing or damaged.
//!
//! - [`Corpora`] is the folder of all corpora: create, open, list, remove.
//! - [`Corpus`] reads one of them; [`Writer`] also changes it. Every change is one durable transaction.
//! - A [`Passage`] is a span of an immutable document text (a page, a turn, a chunk); a [`Note`] is a text that a model
//!   wrote about one passage; a [`Derived`] text is made from several passages and deleted with them; a [`Part`] is the
//!   vector of a passage or of a span of it.
//! - [`LexicalIndex`] (BM25) and [`DenseIndex`] (cosine) return [`Hit`]s; [`fuse`] combines their lists.
//! - A bundle can hold corpora that are only read.
//! - [`Postgres`] can hold corpora that several processes share; their folders then hold copies.
//!
//! ```
//! use store::{Corpora, Layer, Meta, NewDocument, NewPassage};
//!
//! # fn main() -> store::Result<()> {
//! # let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
//! let mut writer = Corpora::new(folder.path()).create("letters")?;
//! let text = "Dear Ann, the lamp is lit.";
//! let page = NewPassage { layer: Layer::Page, bytes: 0..text.len(), tokens: 7, meta: Meta::default() };
//! writer.put_document(&NewDocument { path: "ann.txt", kind: "text", title: "", text, passages: &[page] })?;
//! let page = writer.passages(Layer::Page)?.remove(0);
//! assert_eq!(writer.passage_text(page.id)?, text);
//! # Ok(())
//! # }
//! ```
//!
//! Not here: language models and embedders (callers pass texts and vectors), reading of file formats, division of texts
//! into passages, construction of prompts from results, graphs of entities.

mod analyzer;
mod bundled;
mod cache;
mod corpora;
mod corpus;
mod counts;
mod cut;
mod database;
mod dense;
mod derived;
mod derived_files;
mod digest;
mod document;
mod document_text;
mod error;
pub mod fuse;
mod graph;
mod hit;
mod holder;
mod ids;
mod index_text;
mod lexical;
mod lock;
mod name;
mod note;
mod passage;
mod postgres;
pub mod private;
mod repair;
mod schema;
mod secrets;
mod shared;
mod span;
mod text;
mod title;
mod vector;
mod verify;
mod version;

pub use self::postgres::Postgres;
pub use analyzer::analyze;
pub use bundled::bundled_name;
pub use corpora::{Corpora, Listing};
pub use corpus::{Corpus, Writer};
pub use counts::Counts;
pub use dense::DenseIndex;
pub use derived::{Bond, Derived, NewDerived};
pub use digest::Digest;
pub use document::{Change, Document, NewDocument, NewText};
pub use error::{Error, Result, VectorProblem};
pub use hit::Hit;
pub use holder::Holder;
pub use ids::{DerivedId, DocId, Layer, PassageId};
pub use index_text::IndexText;
pub use lexical::{Bm25, LexicalIndex};
pub use name::CorpusName;
pub use note::{Author, Note};
pub use passage::{Meta, NewPassage, Passage};
pub use repair::{Loss, Repaired};
pub use secrets::without_secrets;
pub use span::{Offsets, Span};
pub use text::{Pieces, Text};
pub use vector::Part;
