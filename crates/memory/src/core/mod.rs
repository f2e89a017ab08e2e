//! What every method is made of: cutting, indexing, searching, packing evidence, prompts, sessions, traces, answers and
//! citations. Nothing here names a method; a method describes itself by [`method::Method`].

pub(crate) mod access;
pub(crate) mod answer;
pub(crate) mod by_terms;
pub(crate) mod choices;
pub(crate) mod cite;
mod cloze;
pub(crate) mod dates;
pub(crate) mod embed;
pub(crate) mod error;
pub(crate) mod evidence;
pub(crate) mod follow_up;
pub mod graph_view;
pub(crate) mod ingest;
pub(crate) mod judge;
pub(crate) mod library;
pub(crate) mod method;
pub(crate) mod named;
pub(crate) mod options;
pub(crate) mod outcome;
pub mod paging;
pub(crate) mod prefixes;
pub(crate) mod preparation;
pub(crate) mod profile;
pub(crate) mod prompt;
pub(crate) mod quotable;
pub(crate) mod random;
pub(crate) mod reader;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod span;
pub mod study;
pub(crate) mod suggest;
pub(crate) mod support;
pub(crate) mod trace;
