//! A file becomes text, with the places of its parts.
//!
//! [`find`] turns the paths a user named into a list of readable files; [`read`] turns one file into [`Source`]s. A
//! source's text never changes afterwards: whoever cites it gives byte spans into it and quotes it exactly.
//!
//! Every error names its file and its [`Cause`]; a file that holds no text is an error, never an empty source.
//!
//! Conversations come in one of two JSON forms: `LoCoMo`'s, or turns, as an array or as JSON lines:
//!
//! ```json
//! {"speaker": "Ann", "text": "Hello.", "time": "2024-05-01 10:02", "session": "monday", "id": "a1"}
//! ```
//!
//! `speaker` and `text` are needed. Turns of one `session` belong together, sessions in the order in which they first
//! appear; without `session` all turns are one. A turn without `id` is named by its place in the file, from 1. A
//! session's time is its first turn's.
//!
//! Not here: hashing and storing (the store), cutting sections into passages (the methods), OCR, and any network.

mod archive;
mod conversation;
mod dialogue;
mod docx;
mod epub;
mod error;
mod find;
mod html;
mod kind;
mod locomo;
mod pdf;
mod pdf_child;
mod plain;
mod prose;
mod read;
mod records;
mod source;
mod xml;

pub use error::{Cause, SourceError};
pub use find::{Found, SkipReason, Skipped, find};
pub use kind::Kind;
pub use pdf_child::{PdfChild, print_pdf_text};
pub use read::{Captions, ReadOptions, read};
pub use source::{Section, Source, Turn};
