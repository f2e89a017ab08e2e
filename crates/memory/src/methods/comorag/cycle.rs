//! The loop (algorithm 1): try to answer, and while that fails probe, retrieve, encode, fuse and try again.

use calls::{Agent, Stability};
use futures_util::future::try_join_all;
use futures_util::try_join;
use store::Corpus;

use super::agents::{Failed, encode, fuse, self_probe};
use super::answer::{Context, budgets, try_answer};
use super::knowledge::Knowledge;
use super::options::Options;
use super::pack::{Packed, Piece, pack};
use super::pool::{Evidence, Pool, Unit};
use super::retrieve::{Budgets, Layers};
use super::vectors::vectors_of;
use crate::core::answer;
use crate::core::error::Result;
use crate::core::outcome::Answer;
use crate::core::quotable::Quotable;
use crate::core::session::Session;
use crate::core::span;

/// The answer after a failed loop.
const NO_ANSWER: &str = "The text does not say.";

/// Answers a question. Each cycle is four rounds of calls: probe, filter, encode and fuse, answer.
pub(super) async fn ask(question: &str, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    let layers = Layers::open(corpus, session)?;
    let (budgets, history_tokens) = budgets(question, session);
    let mut pool = Pool::default();
    let mut probes = vec![question.to_owned()];
    let evidence = layers.retrieve(&probes, &pool, &budgets, session).await?;
    let context = Context { layers: of_evidence(&evidence), ..Context::default() };
    let mut answer = attempt(question, &context, corpus, session).await?;
    if !answer.is_withheld() {
        return Ok(answer);
    }
    let asked = vectors_of([question.to_owned()].into_iter(), session).await?.pop().unwrap_or_default();
    let mut latest = encode_all(question, evidence, session).await?;
    let mut fused: Vec<Piece> = Vec::new();
    for cycle in 1..=session.settings.options::<Options>().max_cycles {
        pool.update(latest.clone(), session).await?;
        let failed = Failed { probes: &probes, latest: &latest, fused: &fused };
        let new = self_probe(question, failed, cycle, session).await?;
        // The first attempt was shown evidence; each later one is shown the latest cues.
        let is_unseen = cycle == 1 && latest.iter().any(|unit| !unit.cue.is_empty());
        let evidence = match (new.is_empty(), is_unseen) {
            (false, _) => layers.retrieve(&new, &pool, &budgets, session).await?,
            (true, true) => Vec::new(),
            (true, false) => break,
        };
        let found = !evidence.is_empty();
        let (units, cue) = try_join!(
            encode_all(question, evidence, session),
            fuse(question, pool.related(&asked), history_tokens, cycle, session)
        )?;
        // The newest first, because it must be shown.
        cue.into_iter().for_each(|cue| fused.insert(0, cue));
        let history = pack("comorag.history".to_owned(), Agent::Responder, fused.clone(), history_tokens, session)?;
        // Without new evidence the cues of the cycle before are shown again.
        let shown = if found { &units } else { &latest };
        let context = Context { layers: of_cues(shown, &budgets, session)?, history };
        answer = attempt(question, &context, corpus, session).await?;
        if !answer.is_withheld() {
            return Ok(answer);
        }
        if !found {
            break;
        }
        probes.extend(new);
        latest = units;
    }
    session.stream(&answer.answer);
    // With the calls after the last attempt.
    Ok(Answer { usage: session.trace.usage(), ..answer })
}

async fn encode_all(question: &str, evidence: Vec<Evidence>, session: &Session<'_>) -> Result<Vec<Unit>> {
    try_join_all(evidence.into_iter().map(|evidence| encode(question, evidence, session))).await
}

/// The first attempt sees the evidence itself.
fn of_evidence(evidence: &[Evidence]) -> Vec<(Knowledge, Packed)> {
    evidence.iter().map(|evidence| (evidence.layer, evidence.found.clone())).collect()
}

/// Later attempts see the cues of their cycle by layer, or those of the one before.
fn of_cues(units: &[Unit], budgets: &Budgets, session: &Session<'_>) -> Result<Vec<(Knowledge, Packed)>> {
    let mut shown = Vec::new();
    for layer in session.settings.options::<Options>().used() {
        let of_layer = units.iter().enumerate().filter(|(_, unit)| unit.evidence.layer == layer);
        let cues: Vec<Piece> = of_layer.filter_map(|(id, unit)| unit.piece(id)).collect();
        let step = format!("comorag.cues.{layer}");
        shown.push((layer, pack(step, Agent::Responder, cues, budgets.get(&layer).copied().unwrap_or(0), session)?));
    }
    Ok(shown)
}

/// Tries to answer, with the places in the chunks that the answer rests on. It is withheld, and not streamed, if the attempt fails.
/// In the small profile the answer is chosen from the chunks that the context comes from.
async fn attempt(question: &str, context: &Context, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    let quotable = Quotable::of_pages(&context.sources(), corpus)?;
    let answer = if span::applies(session) {
        let ask = answer::question(question, &context.text(), Stability::Volatile, session);
        answer::chosen(question, ask, &quotable, session).await?
    } else {
        match try_answer(question, context, session).await? {
            Some(text) => {
                session.stream(&text);
                return answer::grounded(question, text, None, &quotable, session).await;
            }
            None => answer::withheld(NO_ANSWER, session),
        }
    };
    if !answer.is_withheld() {
        session.stream(&answer.answer);
    }
    Ok(answer)
}
