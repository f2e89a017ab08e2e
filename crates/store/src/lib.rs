//! What is remembered, and how to find it again.
//!
//! A *corpus* is one folder: `memory.sqlite` holds the truth (documents, passages, notes, derived texts, vectors), a lock says who has
//! it open, and everything else is derived and rebuilt when it is missing or damaged.
//!
//! - [`Corpora`] is the folder of all corpora: create, open, list, remove.
//! - [`Corpus`] reads one of them; [`Writer`] also changes it. Every change is one durable transaction.
//! - A [`Passage`] is a piece of an immutable document text (a page, a turn, a chunk); a [`Note`] is a text that a
//!   model wrote about one passage, a [`Derived`] one that was made from several and goes with them; a [`Part`] is the
//!   vector of a passage or of a stretch of it.
//! - [`LexicalIndex`] (BM25) and [`DenseIndex`] (cosine) answer with [`Hit`]s; [`fuse`] combines their lists.
//! - [`Postgres`] may hold corpora that several processes share; their folders hold copies then.
//!
//! Not here: language models and embedders (callers hand in texts and vectors), reading of file formats, cutting of
//! texts into passages, packing of results into prompts, graphs of entities.

mod analyzer;
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
mod schema;
mod secrets;
mod shared;
mod span;
mod vector;
mod verify;

pub use self::postgres::Postgres;
pub use analyzer::analyze;
pub use corpora::{Corpora, CorpusName, Listing};
pub use corpus::{Corpus, Counts, Writer};
pub use dense::DenseIndex;
pub use derived::{Bond, Derived, DerivedId, NewDerived};
pub use digest::Digest;
pub use document::{Change, DocId, Document, NewDocument};
pub use error::{Error, Result, VectorProblem};
pub use hit::Hit;
pub use lexical::{Bm25, LexicalIndex};
pub use lock::Holder;
pub use note::{Author, Note};
pub use passage::{IndexText, Layer, Meta, NewPassage, Passage, PassageId};
pub use secrets::without_secrets;
pub use span::{Offsets, Span};
pub use vector::Part;
