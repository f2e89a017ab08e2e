//! Short answers by a model that is trained to read them: the adapter [`reading::ADAPTER`] of a small model.
//!
//! The model sees the parts of the evidence that match the question best, under the prompt of its training, and writes
//! the answer or that the documents do not have it. It also reads all of longer evidence in parts, at the same time; the
//! answer with the largest sum of probabilities is taken. The probability that there is an answer combines its own with the one
//! fitted on the evidence ([`crate::grounding`]).

use std::sync::Arc;

use calls::{AdapterChoice, Call, Prompt, Reply, Role, Sampling, Shape, Stability, reading};
use futures_util::future::try_join_all;

use crate::core::error::Result;
use crate::core::quotable::Quotable;
use crate::core::session::{Ask, Session};
use crate::core::span::is_polar;
use crate::grounding::{Chosen, Draft, Place, ShortAnswer, excerpts, normal_form, occurrences, parts};

const STEP: &str = "answer.read";

/// Bytes of the evidence that are shown: most examples of the training have as many.
const SHOWN_BYTES: usize = 2600;

/// The most parts of the evidence that are read besides.
const MAX_PARTS: usize = 4;

/// Tokens of an answer: those of the training have at most 15 words.
const MAX_OUTPUT_TOKENS: usize = 64;

/// The likely first tokens that a reply reports, among them that of [`reading::NOT_FOUND`].
const ALTERNATIVES: usize = 20;

/// Bytes of the first word of [`reading::NOT_FOUND`].
const FIRST_WORD: usize = 3;

/// Whether the responder has such an adapter and does not run with another one.
pub(crate) fn is_there(session: &Session<'_>) -> bool {
    let (caller, role) = (session.caller, Role::Responder);
    caller.model(role) == caller.base_model(role) && caller.adapters(role).iter().any(|name| name == reading::ADAPTER)
}

/// The answer to a question from the evidence, none if it probably holds none; `None` if all replies were cut.
pub(crate) async fn read(question: &str, quotable: &Quotable, session: &Session<'_>) -> Result<Option<Chosen>> {
    let texts = quotable.texts();
    let best = excerpts(question, &texts, SHOWN_BYTES);
    let is_whole =
        best.iter().map(|place| place.end - place.start).sum::<usize>() >= texts.iter().map(|t| t.len()).sum();
    let parts = if is_whole { Vec::new() } else { parts(&texts, SHOWN_BYTES) };
    let shown = std::iter::once(best).chain(parts.into_iter().take(MAX_PARTS));
    let calls = shown.map(|shown| session.send(call(question, &shown, quotable, session)));
    let replies = try_join_all(calls).await?;
    let replies: Vec<Reply> = replies.into_iter().filter(|reply| !reply.finish.is_cut()).collect();
    let Some(first) = replies.first() else { return Ok(None) };
    let draft = Draft::new(question, &texts);
    let fitted = draft.choose(None).answerable;
    let Some(best) = most_probable(&replies) else {
        let answerable = fitted.map(|fitted| combined(fitted, 1.0 - not_found(first)));
        return Ok(Some(Chosen { answers: Vec::new(), answerable, margin: None }));
    };
    let answers = vec![answer(question, best.text.trim(), &draft, &texts, best)];
    let answerable = fitted.map(|fitted| combined(fitted, 1.0 - not_found(best)));
    Ok(Some(Chosen { answers, answerable, margin: None }))
}

fn call(question: &str, shown: &[Place], quotable: &Quotable, session: &Session<'_>) -> Call {
    let texts = quotable.texts();
    let passages = shown.iter().map(|place| (quotable.heading(place.text), &texts[place.text][place.start..place.end]));
    let user = reading::user(passages, question);
    let ask = Ask {
        role: Role::Responder,
        step: STEP,
        prompt: Prompt::new().system(reading::SYSTEM).user(Stability::Volatile, user),
        thinking_tokens: 0,
        max_output_tokens: MAX_OUTPUT_TOKENS,
        draw: 0,
    };
    Call {
        adapter: AdapterChoice::Named(Arc::from(reading::ADAPTER)),
        sampling: Sampling::GREEDY,
        logprobs: Some(ALTERNATIVES),
        ..session.call(ask, Shape::Text)
    }
}

/// The reply whose answer has the largest sum of probabilities over the replies; `None` if none has an answer.
fn most_probable(replies: &[Reply]) -> Option<&Reply> {
    let total = |reply: &Reply| -> f64 {
        let same = replies.iter().filter(|other| normal_form(&other.text) == normal_form(&reply.text));
        same.map(|other| score(other).exp()).sum()
    };
    let answers = replies.iter().filter(|reply| !matches!(reply.text.trim(), "" | reading::NOT_FOUND));
    // The first of equals, which has seen the best sentences.
    answers.rev().max_by(|a, b| total(a).total_cmp(&total(b)))
}

/// The log-probability of a reply.
fn score(reply: &Reply) -> f64 {
    reply.logprobs.iter().map(|token| f64::from(token.logprob)).sum()
}

fn answer(question: &str, text: &str, draft: &Draft, texts: &[&str], reply: &Reply) -> ShortAnswer {
    let score = score(reply);
    let mut answer = ShortAnswer { text: text.to_owned(), places: Vec::new(), score, probability: score.exp() };
    if is_polar(&answer) {
        // The sentence that decides a question of this kind.
        let decided = draft.candidates().iter().find(|candidate| candidate.text == answer.text);
        answer.places = decided.map(|candidate| candidate.places.clone()).unwrap_or_default();
        return answer;
    }
    answer.places = occurrences(question, texts, text);
    if let Some(Place { text, start, end }) = answer.places.first() {
        texts[*text][*start..*end].clone_into(&mut answer.text);
    }
    answer
}

/// The probability that the reply says that there is no answer: that of its first token.
fn not_found(reply: &Reply) -> f64 {
    let Some(first) = reply.logprobs.first() else { return 0.0 };
    let begins = |bytes: &[u8]| bytes.len() >= FIRST_WORD && reading::NOT_FOUND.as_bytes().starts_with(bytes);
    let own = (begins(&first.bytes), first.logprob);
    let others = first.top.iter().map(|(bytes, logprob)| (begins(bytes), *logprob));
    let found = std::iter::once(own).chain(others).find(|(begins, _)| *begins);
    found.map_or(0.0, |(_, logprob)| f64::from(logprob).exp())
}

/// Two estimates of one probability: the mean of their log-odds.
fn combined(a: f64, b: f64) -> f64 {
    let odds = |p: f64| {
        let p = p.clamp(1e-6, 1.0 - 1e-6);
        (p / (1.0 - p)).ln()
    };
    1.0 / (1.0 + (-(odds(a) + odds(b)) / 2.0).exp())
}
