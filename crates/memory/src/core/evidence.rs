//! Packing retrieved pages, or sentences of them, into a prompt: by rank, whole, within a token budget.

use calls::Agent;
use store::{Corpus, PassageId};

use crate::core::error::Result;
use crate::core::origin::{dated, dated_with_path, shows_paths};
use crate::core::session::Session;
use crate::core::trace::Event;

/// A text for a prompt, and the page that it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub page: PassageId,
    pub text: String,
}

impl Item {
    /// Whole pages for an agent, each with the tool that found it.
    pub fn pages<'a>(
        agent: Agent,
        found: impl IntoIterator<Item = (PassageId, &'a str)>,
        corpus: &Corpus,
        session: &Session<'_>,
    ) -> Result<Vec<Item>> {
        let shown = if shows_paths(agent, corpus, session)? { dated_with_path } else { dated };
        let item = |(page, tool)| Ok(Item { page, text: format!("[{tool}]({page}) {}", shown(page, corpus)?) });
        found.into_iter().map(item).collect()
    }
}

/// Numbered items of a prompt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    pub text: String,
    pub pages: Vec<PassageId>,
}

/// Packs items in their order as far as they fit into `budget_tokens`; the trace lists the pages that do not fit.
pub(crate) fn pack(
    step: &'static str,
    agent: Agent,
    items: &[Item],
    budget_tokens: usize,
    session: &Session<'_>,
) -> Result<Evidence> {
    let mut evidence = Evidence::default();
    let mut left_out = Vec::new();
    let mut used_tokens = 0;
    for Item { page, text } in items {
        let line = format!("{}. {text}\n", evidence.pages.len() + 1);
        let tokens = session.caller.tokens().count_tokens(agent, &line);
        if used_tokens + tokens > budget_tokens {
            left_out.push(page.0);
            continue;
        }
        used_tokens += tokens;
        evidence.text.push_str(&line);
        evidence.pages.push(*page);
    }
    evidence.text.truncate(evidence.text.trim_end().len());
    let pages = evidence.pages.iter().map(|page| page.0).collect();
    session.trace.record(Event::Evidence { step: step.to_owned(), budget_tokens, used_tokens, pages, left_out })?;
    Ok(evidence)
}

/// The token budget of pages in a prompt of `other_tokens` without them and `output_tokens` for the reply.
pub(crate) fn budget(agent: Agent, other_tokens: usize, output_tokens: usize, session: &Session<'_>) -> usize {
    let context = session.context(agent);
    let room = context.saturating_sub(other_tokens + output_tokens + SEAM_TOKENS);
    room.min(session.settings.evidence_tokens.unwrap_or(context / 2))
}

/// Tokens kept free because a prompt may have more tokens than the sum of its parts.
const SEAM_TOKENS: usize = 32;
