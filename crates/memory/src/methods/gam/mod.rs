//! General Agentic Memory (GAM, arXiv:2511.18423): a light memory prepared ahead of time, and deep research for each
//! question.
//!
//! The *memorizer* reads pages in order and writes an abstract of each, given the abstracts before it (equation 1); the
//! abstract is also the page's header (equation 2). The *researcher* plans searches over the memo (equation 3), searches
//! with three tools and integrates the results (equation 4), checks whether they are enough, and if not writes follow-up
//! requests (equation 5).
//!
//! # Departures
//! * The header is the abstract, in one call; the paper writes them separately.
//! * A page's header is indexed with its content, as the paper describes; its released code indexes the content alone.
//! * A page has at most 2,048 tokens, and at most a sixteenth of the memorizer's context.
//! * A memo entry belongs to its page and is never skipped, so the numbers in the prompt are the pages'.
//! * New requests replace the question in the plan alone, as in the released code: integration, information check and follow-up
//!   keep it, as the printed prompts say. In equation 5 the new request is that of all.
//! * Each tool returns k pages, as in the released code; the paper's "maximum number of retrieved pages" may be that of all tools.
//! * In the paper profile the planner sees the time of every page, and its document where there are several: questions name both.
//! * The integration agent sees which pages its notes come from, so that they stay among the sources. Notes that name no page rest
//!   on all pages that were shown.
//! * The information check and the follow-up are requested in one round, and the follow-up is cancelled if the notes are
//!   enough. There is no follow-up after the last round: its requests would not be used.
//! * The follow-up sees the requests that were searched for before; in equation 5 it would write them again while the notes stay
//!   the same.
//! * A page on which the notes rest, or that was integrated for the same request or with the same notes, is read again
//!   only if the plan names it by number; the released code reads every page again in every round in which a search finds
//!   it.
//! * Notes that were checked are not checked again until they change, since prompt and seed would be the same. Plan,
//!   integration and follow-up of each round have a seed of their own, so that the same prompt may have another reply. At
//!   temperature 0 research ends with the first round that finds no page to read and leaves the request as it was.
//! * A reply of the integration agent without notes, or that only states that the pages do not help, keeps the notes; agents
//!   write the date beside times such as "yesterday", since the responder sees the notes alone.
//! * The statements of an answer are checked against all pages that were read, those first that the notes rest on: notes may
//!   hold facts of a page that the integration agent no longer names.
//! * Pages that the plan names come first, then those of the search tools interleaved by rank; the released code sorts
//!   BM25 scores together with sums of cosines and puts named pages last.
//! * The paper does not cover a memo longer than a quarter of the context: the memorizer sees its latest part, the
//!   researcher plans over all parts at once, a call each, and the plans are merged, the first items of every part first.
//! * Pages are packed by rank within a token budget and the trace lists those left out; the next round reads them after the pages
//!   that it finds. The paper relies on a context of 128K tokens.
//! * A plan without a search is requested again, then replaced by a search for the request itself; so is one whose searches find
//!   no page. Empty notes are not checked; if they stay empty, the responder gets the pages that were read.
//! * Where a small model's answer is chosen from the pages that were read, research ends when a round finds no other page, or when
//!   all have been read: further notes would not change the answer.
//! * A reply ends when it repeats itself without end ([`calls::loops`]) and is requested once more.
//! * Strings and lists in plans have maximum lengths, which the prompt states, and ids can only be those that were shown; the output format is
//!   enforced JSON. Research agents think before it in at most 1,024 tokens, a sixteenth of the context, and not at all in
//!   the small profile: models below 3B fill a thought with copies of the prompt. The released code has 2,048 tokens
//!   for thought and JSON together.
//! * Prompts state the lengths of abstracts and notes in words; the paper's do not.
//! * Agents follow their prompts as they are; `memlocal-train reinforce --rollouts` is the reinforcement learning of equations 6 and 7. There are
//!   no switches for the ablations of table 3 (single tools, single modules).
//! * "With extraction" selects the sentences that share most terms with question and notes, byte for byte; the paper does
//!   not define its snippets.

mod call;
mod integrate;
mod memorizer;
mod notes;
mod options;
mod plan;
mod prompts;
mod reflect;
mod researcher;
mod search;

use futures_util::future::LocalBoxFuture;
use store::{Corpus, Layer, Writer};

use crate::core::about::{About, Paper};
use crate::core::access::Access;
use crate::core::embed::{ABSTRACT, Indexed, embed, without_vectors};
use crate::core::error::Result;
use crate::core::method::Method;
use crate::core::options::MethodOptions;
use crate::core::outcome::Answer;
use crate::core::preparation::{Missing, Progress};
use crate::core::session::Session;

pub use memorizer::memorise;
pub use notes::Research;
pub use options::{Options, OutputForm};
pub use researcher::research;

/// The method.
pub struct Gam;

static ABOUT: About = About {
    paper: Some(Paper {
        title: "General Agentic Memory Via Deep Research",
        authors: "B.Y. Yan, Chaofan Li, Hongjin Qian, Shuqi Lu, Zheng Liu",
        arxiv: Some("2511.18423"),
    }),
    module: include_str!("mod.rs"),
};

impl Method for Gam {
    fn name(&self) -> &'static str {
        "gam"
    }

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn own_options(&self) -> MethodOptions {
        MethodOptions::of::<Options>(options::OPTIONS)
    }

    fn answers_in_part(&self) -> bool {
        true
    }

    fn missing(&self, corpus: &Corpus, session: &Session<'_>) -> Result<Missing> {
        let calls = corpus.pending(Layer::Page, ABSTRACT)?.len();
        Ok(Missing { calls, vectors: without_vectors(corpus, Layer::Page, Indexed::HeaderAndContent, session)? })
    }

    fn prepare<'a>(
        &'a self,
        writer: &'a mut Writer,
        session: &'a Session<'_>,
        progress: &'a mut dyn FnMut(Progress),
    ) -> LocalBoxFuture<'a, Result<()>> {
        Box::pin(async move {
            memorise(writer, session, progress).await?;
            embed(writer, Layer::Page, Indexed::HeaderAndContent, session, progress).await
        })
    }

    fn ask<'a>(
        &'a self,
        question: &'a str,
        corpus: Access<'a>,
        session: &'a Session<'_>,
    ) -> LocalBoxFuture<'a, Result<Answer>> {
        Box::pin(async move { researcher::ask(question, &corpus, session).await })
    }
}
