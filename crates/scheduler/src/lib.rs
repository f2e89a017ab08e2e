//! Given requests and a budget of pages, says what to run next. Pure bookkeeping: no tensors, no clock, no threads.
//!
//! A *sequence* is a prompt and what was generated after it. Its keys and values live in *pages* of [`PAGE_TOKENS`]
//! tokens out of one [`PagePool`]. Pages full of tokens are nodes of a [`PrefixTree`], so that requests with the same tokens
//! from the start share them; a page that is still being filled can be shared already: a request that needs it waits for the
//! sequence that fills it or runs in the same step.
//!
//! Every request has a [`Namespace`]. Prefixes are matched and published within it only, so that neither the number of cached
//! tokens nor the time they save depends on prompts of another namespace. The pool and the order of eviction are common to all.
//!
//! # Invariants
//! * `free + in the tree + private == total`, after every operation ([`Scheduler::check_integrity`]).
//! * A page is written by one sequence only, and is read by others once it is ready or in the very step that fills it.
//! * A page is never matched, copied, saved or restored across namespaces, except those that are [pinned](Scheduler::pin): they are
//!   filled before the first request, stay for good, and are no part of the pool. What follows them belongs to a namespace again.
//! * What an abandoned step computed is never read.
//! * An admitted sequence never runs out of pages: admission counts what it may still need.
//! * Pages are taken where the next use is farthest: answers and the ends of prompts, then beginnings that no open workflow
//!   uses, then those that a workflow under way will ask about again; the longest unused first.
//! * Within a priority the tenant is next for which the fewest tokens were computed ([`TokenCounters`]): its prompts in the rows of
//!   a step, and its requests in admission, there for a turn of at most four requests, unless pages are short.
//! * At least one token of every prompt is computed, since its logits are needed.
//!
//! ```
//! use scheduler::{Config, Namespace, Request, Scheduler, SequenceId, TenantId};
//!
//! let mut scheduler = Scheduler::new(Config { pages: 8, step_tokens: 64, max_running: 4 });
//! let id = SequenceId(1);
//! let (namespace, prompt) = (Namespace::default(), vec![7; 40]);
//! let request = Request {
//!     id,
//!     tenant: TenantId::default(),
//!     namespace,
//!     pinned: false,
//!     prompt,
//!     stable_tokens: 0,
//!     workflow: None,
//!     max_output_tokens: 2,
//!     priority: 0,
//! };
//! assert!(scheduler.submit(request).is_ok());
//! let step = scheduler.step(usize::MAX);
//! let work = &step.work[0];
//! assert_eq!((work.tokens.len(), work.wants_logits), (40, true));
//! // Here the engine runs the forward pass and samples.
//! scheduler.commit(work);
//! scheduler.append(id, 3);
//! scheduler.finish(id);
//! assert!(scheduler.is_idle());
//! ```
//!
//! Not here: sampling, grammars, devices (`engine`); what a page holds (`models`).

mod admission;
mod order;
mod page_pool;
mod prefix_tree;
mod request;
mod saved;
mod scheduler;
mod sequence;
mod token_counters;
mod waiting;

pub use page_pool::{PageId, PagePool};
pub use prefix_tree::PrefixTree;
pub use request::{Namespace, Request, SequenceId, TenantId, WorkflowId};
pub use saved::SavedPage;
pub use scheduler::{Config, PROMPT_ROWS, PageCopy, Refusal, Scheduler, Step, Usage, Work};
pub use token_counters::TokenCounters;

/// Tokens in a page.
pub const PAGE_TOKENS: usize = 32;
