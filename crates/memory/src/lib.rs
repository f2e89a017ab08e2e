//! Methods of memory papers over calls and a store: what to ask a language model, in which order, and what to keep.
//!
//! [`methods`] has one folder a method, each readable beside its PDF: [`gam`], [`memcot`], [`comorag`], [`mindgraph`], and
//! the baselines [`rag`] and [`direct`]; [`auto`] chooses between them. What methods share is in the core, which names no method: cutting, indexing,
//! searching, packing evidence under a token budget, prompts, answers, citations, and the [`Method`] trait by which a
//! method describes itself. A loop is a loop; there is no framework for agents.
//!
//! # Invariants
//! * The output of a language model becomes memory only if it is a reply. The text of an error never does.
//! * A prompt that does not fit is an error, or is packed by rank and the trace lists what was left out; nothing is
//!   truncated silently.
//! * A citation is a span of a source, chosen mechanically, so its quote is in the source to the byte. An answer has
//!   citations for its supported statements only.
//!
//! Not here: bytes on disk and distances (`store`), tokens and devices (`engine`), flags and colours (`cli`).

mod core;
pub mod grounding;
pub mod methods;

pub use crate::core::about::{About, Paper};
pub use crate::core::access::Access;
pub use crate::core::cite::Citation;
pub use crate::core::error::{MemoryError, Result};
pub use crate::core::follow_up::{Turn, search_query, standalone};
pub use crate::core::ingest::{Added, add, add_text, default_page_tokens};
pub use crate::core::library::Library;
pub use crate::core::method::{Choice, Method, Session, Settings};
pub use crate::core::options::{MethodOptions, OptionKind, OptionSet, OptionSpec, Stage};
pub use crate::core::outcome::{Answer, Confidence, Statement, Support};
pub use crate::core::preparation::{Missing, Prepared, Progress};
pub use crate::core::profile::Profile;
pub use crate::core::run::{ask, choose, missing, prepare, prepared};
pub use crate::core::search::{SearchTool, search};
pub use crate::core::settings::{AnswerForm, Layout, MIN_EVIDENCE_TOKENS};
pub use crate::core::suggest::{Suggestion, suggest};
pub use crate::core::trace::{Endings, Event, HitRecord, ScoreRecord, Trace};
pub use crate::core::{graph_view, paging, study};
pub use methods::{ask_what_is_ready, auto, comorag, direct, gam, memcot, mindgraph, rag};
pub use random::Random;
