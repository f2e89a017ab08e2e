//! Packing retrieved pages into a prompt: by rank, whole, under a budget.

use calls::Role;
use store::{Corpus, PassageId};

use crate::error::Result;
use crate::session::Session;
use crate::trace::Event;

/// A retrieved page: which tool brought it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Retrieved {
    pub page: PassageId,
    pub tool: &'static str,
}

/// Pages as a prompt shows them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    pub text: String,
    pub pages: Vec<PassageId>,
}

/// Packs pages in their order while they fit into `budget_tokens`; what does not fit stands in the trace.
pub(crate) fn pack(
    step: &'static str,
    role: Role,
    retrieved: &[Retrieved],
    budget_tokens: usize,
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Evidence> {
    let mut evidence = Evidence::default();
    let mut left_out = Vec::new();
    let mut used_tokens = 0;
    for Retrieved { page, tool } in retrieved {
        let line = format!("{}. [{tool}]({page}) {}\n", evidence.pages.len() + 1, corpus.passage_text(*page)?);
        let tokens = session.caller.count_tokens(role, &line);
        if used_tokens + tokens > budget_tokens {
            left_out.push(page.0);
            continue;
        }
        used_tokens += tokens;
        evidence.text.push_str(&line);
        evidence.pages.push(*page);
    }
    let pages = evidence.pages.iter().map(|page| page.0).collect();
    session.trace.record(Event::Evidence { step: step.to_owned(), budget_tokens, used_tokens, pages, left_out })?;
    Ok(evidence)
}

/// Tokens that pages may take in a prompt which has `other_tokens` without them and keeps `output_tokens` free.
pub(crate) fn budget(role: Role, other_tokens: usize, output_tokens: usize, session: &Session<'_>) -> usize {
    let context = session.context(role);
    let room = context.saturating_sub(other_tokens + output_tokens + SEAM_TOKENS);
    room.min(session.settings.evidence_tokens.unwrap_or(context / 2))
}

/// Tokens kept free because the tokens of parts do not quite add up to those of the whole.
const SEAM_TOKENS: usize = 32;
