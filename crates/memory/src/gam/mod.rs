//! General Agentic Memory (GAM, paper 002): a light memory made ahead of time, and deep research when a question comes.
//!
//! The *memorizer* reads pages in order and writes an abstract of each, knowing the abstracts before it (equation 1); the
//! abstract is also the page's header (equation 2). The *researcher* plans searches with the memo in view (3), searches
//! with three tools and integrates what they find (4), reflects whether that suffices, and if not asks on (5).
//!
//! # Departures
//! * The header is the abstract, in one call; the paper writes them separately.
//! * A page's header is indexed with its content, as the paper describes; its released code indexes the content alone.
//! * A memo entry belongs to its page and is never skipped, so the numbers in the prompt are the pages'.
//! * The integration agent is told which pages its notes rest on, so that they stay among the sources.
//! * The follow-up of the last round is not asked for, since nobody would read it.
//! * A memo longer than a quarter of the context: the memorizer sees its latest part, the researcher plans over it in
//!   parts and the plans are merged. The paper says nothing.
//! * Pages are packed by rank under a budget of tokens; those left out stand in the trace. The paper relies on its
//!   128K context.
//! * A plan that searches nothing is asked for again, then replaced by a search for the request itself. Empty notes are
//!   not judged, and if they stay empty the pages that were read are handed on in their place.
//! * An answer ends when it writes the same 16 tokens for the second time: small models go in circles.
//! * Strings and lists in plans have greatest lengths, and ids can only be those that were shown; output is JSON by
//!   construction. There is no `<think>` part: models below 7B fill it with copies of the prompt.
//! * "With extraction" takes the sentences that share most with question and notes, to the byte; the paper does not say
//!   how its snippets are made.

mod memorizer;
mod prompts;
mod researcher;

pub use memorizer::memorise;
pub(crate) use researcher::ask;
pub use researcher::{Research, research};
