//! Packing retrieved pages, or sentences of them, into a prompt: by rank, whole, under a budget.

use calls::Role;
use store::{Corpus, PassageId};

use crate::error::Result;
use crate::session::Session;
use crate::trace::Event;

/// A text that a prompt may show, and the page that it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub page: PassageId,
    pub text: String,
}

impl Item {
    /// A whole page, with the tool that brought it.
    pub fn page(page: PassageId, tool: &str, corpus: &Corpus) -> Result<Item> {
        Ok(Item { page, text: format!("[{tool}]({page}) {}", corpus.passage_text(page)?) })
    }
}

/// Items as a prompt shows them, numbered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    pub text: String,
    pub pages: Vec<PassageId>,
}

/// Packs items in their order while they fit into `budget_tokens`; what does not fit stands in the trace.
pub(crate) fn pack(
    step: &'static str,
    role: Role,
    items: &[Item],
    budget_tokens: usize,
    session: &Session<'_>,
) -> Result<Evidence> {
    let mut evidence = Evidence::default();
    let mut left_out = Vec::new();
    let mut used_tokens = 0;
    for Item { page, text } in items {
        let line = format!("{}. {text}\n", evidence.pages.len() + 1);
        let tokens = session.caller.count_tokens(role, &line);
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

/// Tokens that pages may take in a prompt which has `other_tokens` without them and keeps `output_tokens` free.
pub(crate) fn budget(role: Role, other_tokens: usize, output_tokens: usize, session: &Session<'_>) -> usize {
    let context = session.context(role);
    let room = context.saturating_sub(other_tokens + output_tokens + SEAM_TOKENS);
    room.min(session.settings.evidence_tokens.unwrap_or(context / 2))
}

/// Tokens kept free because the tokens of parts do not quite add up to those of the whole.
const SEAM_TOKENS: usize = 32;
