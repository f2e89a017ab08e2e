//! The responder, and the fallback where the memory does not hold the answer.

use calls::{Agent, Stability};
use store::{Corpus, Layer, PassageId};

use super::long_term::LongTerm;
use super::options::Options;
use super::perception::reader;
use super::prompts::{CHOOSE, RESPOND};
use super::short_term::from_both_ends;
use super::view::{Form, show};
use crate::core::answer;
use crate::core::choices;
use crate::core::error::Result;
use crate::core::outcome::Answer;
use crate::core::prompt::{Input, Instructions, build, in_form};
use crate::core::quotable::Quotable;
use crate::core::refusal::is_refusal;
use crate::core::session::{Ask, Session};
use crate::core::span;
use crate::core::trace::Event;

/// Tokens that an answer may have.
const MAX_OUTPUT_TOKENS: usize = 256;

/// The answer from the memory; none if the responder finds none there.
pub(super) async fn respond(
    question: &str,
    facts: &[usize],
    step: u64,
    memory: &LongTerm<'_>,
    session: &Session<'_>,
) -> Result<Option<Answer>> {
    let settings = &session.settings;
    let ask = |known: &str| {
        let mut inputs = vec![
            Input::new("SHORT_MEMORY", Stability::Volatile, known),
            Input::new("QUERY", Stability::Volatile, question),
        ];
        inputs.extend(choices::input(settings));
        let max_output_tokens = session.output_tokens(Agent::Responder, MAX_OUTPUT_TOKENS);
        let instructions = if settings.choices.is_empty() { RESPOND } else { CHOOSE };
        let rules = in_form(instructions.rules, "the answer", settings);
        let prompt = build(settings.layout, Instructions { rules: &rules, ..instructions }, inputs);
        Ask {
            agent: Agent::Responder,
            step: "memcot.respond",
            prompt,
            thinking_tokens: 0,
            max_output_tokens,
            draw: step,
        }
    };
    let view = show(&from_both_ends(facts), Form::Timed, reader(&ask(""), session), memory, session)?;
    let turns: Vec<PassageId> = view.places.iter().map(|place| memory.timeline.id(*place)).collect();
    let Some(answer) = answer_from(question, ask(&view.text), &turns, memory.corpus(), session).await? else {
        let reason = "the answer is not in the short-term memory".to_owned();
        session.trace.record(Event::Fallback { step: "memcot.respond".to_owned(), reason })?;
        return Ok(None);
    };
    session.stream(&answer.answer);
    Ok(Some(answer))
}

/// The reply to `ask`, or in the small profile an answer that is chosen from the turns; none if the reply refuses, or if
/// the turns probably hold none.
async fn answer_from(
    question: &str,
    ask: Ask,
    turns: &[PassageId],
    corpus: &Corpus,
    session: &Session<'_>,
) -> Result<Option<Answer>> {
    if span::applies(session) {
        let answer = answer::chosen(question, ask, &Quotable::of_pages(turns, corpus)?, session).await?;
        return Ok(Some(answer).filter(|answer| !answer.is_withheld()));
    }
    let reply = session.send(session.call(ask, choices::output_format(&session.settings))).await?;
    if is_refusal(&reply.text) {
        return Ok(None);
    }
    Ok(Some(answer::cited(question, reply, turns, corpus, session).await?))
}

/// Answers from the whole text if it fits, else from the memory and the windows of the nearest turns.
pub(super) async fn fall_back(
    question: &str,
    facts: &[usize],
    memory: &LongTerm<'_>,
    session: &Session<'_>,
) -> Result<Answer> {
    let corpus = memory.corpus();
    let pages = corpus.passages(Layer::Page)?;
    let context_tokens = session.context(Agent::Responder);
    // Token counts were stored when the pages were cut, so a text that is far too long is not read.
    if pages.iter().map(|page| page.tokens as usize).sum::<usize>() < context_tokens {
        let ask = answer::question_on_all(question, corpus, session)?;
        if session.prompt_tokens(&ask) + ask.max_output_tokens <= context_tokens {
            let pages: Vec<PassageId> = pages.iter().map(|page| page.id).collect();
            return answer::respond(question, ask, &pages, corpus, session).await;
        }
    }
    let nearest = memory.retrieve(&[question.to_owned()], session).await?;
    let mut ranked = from_both_ends(facts);
    ranked.extend(memory.timeline.around(&nearest, session.settings.options::<Options>().window));
    let mut seen = std::collections::BTreeSet::new();
    ranked.retain(|place| seen.insert(*place));
    let bare = answer::question(question, "", Stability::Volatile, session);
    let view = show(&ranked, Form::Sessions, reader(&bare, session), memory, session)?;
    let ids: Vec<PassageId> = view.places.iter().map(|place| memory.timeline.id(*place)).collect();
    let ask = answer::question(question, &view.text, Stability::Volatile, session);
    answer::respond(question, ask, &ids, corpus, session).await
}
