//! Integrates pages into the notes (equation 4).

use std::collections::BTreeSet;

use calls::{Agent, Stability, schema};
use serde::Deserialize;
use store::{Corpus, PassageId};

use super::call::{MAX_OUTPUT_TOKENS, agent};
use super::notes::Research;
use super::prompts::{INTEGRATE, INTEGRATE_THOUGHT};
use super::search::Found;
use crate::core::error::Result;
use crate::core::evidence::{Evidence, Item, budget, pack};
use crate::core::prompt::{Input, Instructions, string_of, words};
use crate::core::refusal::tells_nothing;
use crate::core::session::{Ask, Session};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Integration {
    content: String,
    sources: Vec<i64>,
}

/// Equation 4: integrates the pages into the notes and returns the pages that were integrated. An invalid reply and one
/// without notes, or that only states that the pages do not help, keep the old notes. Each round draws anew, since it
/// may have the pages and notes of the round before.
pub(super) async fn integrate(
    question: &str,
    found: &[Found],
    round: usize,
    result: &mut Research,
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Vec<PassageId>> {
    let step = "gam.integrate";
    let most_words = words(session.output_tokens(Agent::Researcher, MAX_OUTPUT_TOKENS));
    let rules = format!("{}\nThe notes may have {most_words} words.", INTEGRATE.rules);
    let instructions = Instructions { rules: &rules, ..INTEGRATE };
    let ask = |evidence: &str| {
        let mut inputs = vec![
            Input::new("QUESTION", Stability::Volatile, question),
            Input::new("EVIDENCE_CONTEXT", Stability::Volatile, evidence),
            Input::new("RESULT", Stability::Volatile, result.content.as_str()),
        ];
        if !result.sources.is_empty() {
            let pages: Vec<String> = result.sources.iter().map(ToString::to_string).collect();
            inputs.push(Input::new("RESULT_SOURCES", Stability::Volatile, pages.join(", ")));
        }
        let ask = agent(Agent::Researcher, step, instructions, INTEGRATE_THOUGHT, inputs, session);
        Ask { draw: round as u64 - 1, ..ask }
    };
    let bare = ask("");
    let budget = budget(Agent::Researcher, session.prompt_tokens(&bare), bare.reply_tokens(), session);
    let found = found.iter().map(|found| (found.page, found.tool));
    let items = Item::pages(Agent::Researcher, found, corpus, session)?;
    let Evidence { text, pages } = pack(step, Agent::Researcher, &items, budget, session)?;
    if pages.is_empty() {
        return Ok(pages);
    }
    let of_notes = result.sources.iter().filter(|page| !pages.contains(page));
    let shown: Vec<PassageId> = pages.iter().chain(of_notes).copied().collect();
    let ids: BTreeSet<i64> = shown.iter().map(|page| page.0).collect();
    let schema = schema::object([
        ("content", string_of(most_words)),
        ("sources", schema::array_of(ids.iter().copied(), ids.len())),
    ]);
    let check = |integration: &Integration| match integration.sources.iter().find(|page| !ids.contains(page)) {
        Some(page) => Err(format!("page {page} was not shown")),
        None => Ok(()),
    };
    let integration = session.json(ask(&text), schema, check).await?;
    for page in &pages {
        if !result.read.contains(page) {
            result.read.push(*page);
        }
    }
    let Some(Integration { content, sources }) = integration else { return Ok(Vec::new()) };
    let content = content.trim();
    if !tells_nothing(content) {
        result.sources = rest_on(sources, shown, content == result.content, &result.sources);
        content.clone_into(&mut result.content);
    }
    Ok(if result.content.is_empty() { Vec::new() } else { pages })
}

/// The pages that new notes rest on, each once. Where they name none they may rest on any page that was shown; notes that stay
/// the same keep theirs.
fn rest_on(named: Vec<i64>, shown: Vec<PassageId>, is_same: bool, before: &[PassageId]) -> Vec<PassageId> {
    match (named.is_empty(), is_same) {
        (true, true) => before.to_vec(),
        (true, false) => shown,
        (false, _) => {
            let mut seen = BTreeSet::new();
            named.into_iter().filter(|page| seen.insert(*page)).map(PassageId).collect()
        }
    }
}
