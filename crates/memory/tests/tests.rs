//! The methods against scripted models and a real store: which calls are made, in which order, and what is stored.

mod agents;
mod answer_form;
mod auto;
mod baselines;
mod citations;
mod comorag;
mod comorag_build;
mod crash;
mod endings;
mod failures;
mod follow_up;
mod golden;
mod grounded;
mod handing_on;
mod haystack;
mod injection;
mod killed;
mod limits;
mod memcot;
mod memorizer;
mod mindgraph;
mod niah;
mod notes;
mod plans;
mod prefix;
mod random_replies;
mod ready;
mod rounds;
mod rules;
mod scratch;
mod study;

use test_support::{fill, oracle};

test_support::synchronise_nothing!();
