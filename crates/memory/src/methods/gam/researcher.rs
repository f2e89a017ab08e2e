//! The researcher: rounds of plan, search, integrate and reflect (section 2.2.2, equations 3 to 5).

use std::collections::BTreeMap;

use calls::{Agent, Stability};
use store::{Corpus, Layer, PassageId};

use super::integrate::integrate;
use super::memorizer::located_memo;
use super::notes::Research;
use super::options::{Options, OutputForm};
use super::plan::plan;
use super::reflect::{Known, reflect};
use super::search::{Found, PAGE_INDEX, search};
use crate::core::answer;
use crate::core::by_terms::cite;
use crate::core::embed::Indexed;
use crate::core::error::Result;
use crate::core::evidence::{Item, budget, pack};
use crate::core::library::Library;
use crate::core::outcome::Answer;
use crate::core::session::Session;
use crate::core::span;

/// Answers a question: research, then one call to the responder.
pub(super) async fn ask(question: &str, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    let library = Library::open(corpus, Layer::Page, Indexed::HeaderAndContent, session.embedder)?;
    let research = research(question, &library, session).await?;
    respond(question, &research, corpus, session).await
}

/// Runs the research loop.
///
/// # Errors
/// If a call or the store fails. An invalid reply is no error: the round continues without it.
pub async fn research(question: &str, library: &Library<'_>, session: &Session<'_>) -> Result<Research> {
    let options: Options = session.settings.options();
    let memo = located_memo(library.corpus(), session)?;
    let mut result = Research::default();
    let mut request = question.to_owned();
    // Requests of follow-ups that were searched for.
    let mut tried: Vec<String> = Vec::new();
    // Pages that were found and had no room in the prompt.
    let mut left_out: Vec<Found> = Vec::new();
    // Pages that were integrated for the present request or with the present notes, each with the notes before it.
    let mut integrated: BTreeMap<PassageId, String> = BTreeMap::new();
    // Notes that are not enough: none at first, then those of the last check.
    let mut insufficient = String::new();
    for round in 1..=options.max_iterations {
        let plan = plan(&request, &memo, round, session).await?;
        let mut found = search(&plan, &request, options.k, library, session).await?;
        left_out.retain(|page| !found.iter().any(|found| found.page == page.page));
        found.append(&mut left_out);
        // A page that the plan names is read again. One that a search finds again is not, if the notes rest on it or if it
        // told nothing.
        let is_known = |page: &PassageId| result.sources.contains(page) || integrated.contains_key(page);
        found.retain(|found| found.tool == PAGE_INDEX || !is_known(&found.page));
        if is_fruitless(&found, &result, session) {
            break;
        }
        if !found.is_empty() {
            let before = result.content.clone();
            let pages = integrate(question, &found, round, &mut result, library.corpus(), session).await?;
            integrated.extend(pages.into_iter().map(|page| (page, before.clone())));
            left_out.extend(found.iter().filter(|found| !result.read.contains(&found.page)).cloned());
        }
        if has_read_all(&result, library, session)? {
            break;
        }
        let is_last = round == options.max_iterations;
        let known = Known { insufficient: &insufficient, tried: &tried };
        let Some(new_requests) = reflect(question, &result, known, round, is_last, session).await? else {
            break;
        };
        insufficient.clone_from(&result.content);
        let next = if new_requests.is_empty() { question.to_owned() } else { new_requests.join(" ") };
        // Nothing has changed, and greedy replies would be the same again.
        if found.is_empty() && next == request && session.settings.temperature == 0.0 {
            break;
        }
        if next != request {
            integrated.retain(|_, before| *before == result.content);
        }
        request = next;
        for new in new_requests {
            if !tried.contains(&new) {
                tried.push(new);
            }
        }
    }
    Ok(result)
}

/// Whether a round cannot change the answer: a small model's answer is chosen from the pages that were read, and the round found
/// no other page.
fn is_fruitless(found: &[Found], result: &Research, session: &Session<'_>) -> bool {
    span::applies(session) && !result.read.is_empty() && found.iter().all(|found| result.read.contains(&found.page))
}

/// Whether no later round can change the answer, since a small model has read every page.
fn has_read_all(result: &Research, library: &Library<'_>, session: &Session<'_>) -> Result<bool> {
    Ok(span::applies(session) && result.read.len() == library.corpus().count(Layer::Page)?)
}

/// Sentences that accompany the notes in the output form "with extraction".
const MAX_SNIPPETS: usize = 8;

/// Calls the responder with the research in the output form of the options (table 4).
async fn respond(question: &str, research: &Research, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    // Where there are no notes, all pages that were read.
    let sources = if research.sources.is_empty() { &research.read } else { &research.sources };
    let notes = &research.content;
    let output = if notes.is_empty() { OutputForm::Pages } else { session.settings.options::<Options>().output };
    let items: Vec<Item> = match output {
        OutputForm::Integration => Vec::new(),
        OutputForm::Pages => {
            Item::pages(Agent::Responder, sources.iter().map(|page| (*page, "source")), corpus, session)?
        }
        OutputForm::Extraction => {
            let snippets = cite(question, notes, sources, MAX_SNIPPETS, corpus)?.into_iter();
            snippets.map(|snippet| Item { page: PassageId(snippet.page), text: snippet.quote }).collect()
        }
    };
    let context = if items.is_empty() {
        notes.clone()
    } else {
        let bare = answer::question(question, notes, Stability::Volatile, session);
        let budget = budget(Agent::Responder, session.prompt_tokens(&bare), bare.max_output_tokens, session);
        let evidence = pack("answer", Agent::Responder, &items, budget, session)?;
        format!("{notes}\n\n{}", evidence.text).trim().to_owned()
    };
    let ask = answer::question(question, &context, Stability::Volatile, session);
    // The notes may still hold facts of pages that the integration agent no longer names.
    let others = research.read.iter().filter(|page| !sources.contains(page));
    let pages: Vec<PassageId> = sources.iter().chain(others).copied().collect();
    answer::respond(question, ask, &pages, corpus, session).await
}
