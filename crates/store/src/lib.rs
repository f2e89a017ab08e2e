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
//! Not here: language models and embedders (callers pass texts and vectors), reading of file formats, division of texts
//! into passages, construction of prompts from results, graphs of entities.

mod analyzer;
mod bundled;
mod cache;
mod corpora;
mod corpus;
mod cut;
mod database;
mod dense;
mod derived;
mod digest;
mod document;
mod error;
pub mod fuse;
mod graph;
mod hit;
mod lexical;
mod lock;
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

pub use self::postgres::Postgres;
pub use analyzer::analyze;
pub use bundled::bundled_name;
pub use corpora::{Corpora, CorpusName, Listing};
pub use corpus::{Corpus, Counts, Writer};
pub use dense::DenseIndex;
pub use derived::{Bond, Derived, DerivedId, NewDerived};
pub use digest::Digest;
pub use document::{Change, DocId, Document, NewDocument, NewText};
pub use error::{Error, Result, VectorProblem};
pub use hit::Hit;
pub use lexical::{Bm25, LexicalIndex};
pub use lock::Holder;
pub use note::{Author, Note};
pub use passage::{IndexText, Layer, Meta, NewPassage, Passage, PassageId};
pub use repair::{Loss, Repaired};
pub use secrets::without_secrets;
pub use span::{Offsets, Span};
pub use text::{Pieces, Text};
pub use vector::Part;
