//! Short answers as spans of the evidence.
//!
//! Small models rarely write what they read: asked for a phrase they write a sentence that is not in the text. So with the
//! small profile the answer is chosen among spans of the evidence ([`crate::grounding`]) by surface features and, where the
//! caller scores, by the model's likelihood of each. Without a scorer the surface features decide alone.
//!
//! The likelihoods are computed after the few sentences that match the question's words best. If no span is more probable
//! than [`CLEAR`] there, the model writes an answer from the whole evidence as it would without spans, and the choice is
//! made again with spans that agree with that reply preferred.
//!
//! A model with an adapter for reading writes the answer ([`super::reader`]). Where it finds none although the evidence probably
//! holds one, a span is chosen if it is more probable than [`CLEAR`]: most of the others are wrong.
//!
//! Which of two options is the earlier or later one, or has more, and whether two are both something, is decided by what the evidence
//! tells of both, where it does, without a model.

use std::time::Duration;

use calls::{Agent, OutputFormat, ScoreRequest};

use crate::core::error::Result;
use crate::core::profile::Profile;
use crate::core::quotable::Quotable;
use crate::core::reader;
use crate::core::session::{Ask, Session};
use crate::core::settings::AnswerForm;
use crate::core::short::{is_polar, one_line};
use crate::core::trace::{Event, ScoreRecord};
use crate::grounding::{self, Chosen, Draft, ShortAnswer, THRESHOLD, prompt};

const STEP: &str = "answer.spans";

/// Whether the responder chooses a span instead of writing an answer.
pub(crate) fn applies(session: &Session<'_>) -> bool {
    let settings = &session.settings;
    session.profile(Agent::Responder) == Profile::Small
        && settings.choices.is_empty()
        && match settings.answer_form {
            AnswerForm::Sentence => settings.answer_rules.is_none(),
            AnswerForm::Short => true,
            AnswerForm::Free => false,
        }
}

/// Whether the responder is shown blocks of the evidence one by one, whatever the number of pages.
pub(crate) fn reads_blocks(session: &Session<'_>) -> bool {
    applies(session) && reader::is_there(session)
}

/// The probability from which the best span is taken without a reply of the model.
const CLEAR: f64 = 0.8;

/// The answers to a question from the evidence; none if it probably holds none. `ask` requests a written answer.
pub(crate) async fn choose(question: &str, ask: Ask, quotable: &Quotable, session: &Session<'_>) -> Result<Chosen> {
    let read = match compared(question, quotable) {
        Some(answer) => Some(Chosen { answers: vec![answer], answerable: None, margin: None, readings: Vec::new() }),
        None if reader::is_there(session) => reader::read(question, quotable, session).await?,
        None => None,
    };
    let (mut chosen, abstained) = match read {
        Some(read) => read_or_clear_span(question, read, quotable, session).await?,
        None => span(question, ask, quotable, session).await?,
    };
    session.trace.record(Event::Short {
        step: STEP.to_owned(),
        answers: chosen.answers.iter().map(|answer| answer.text.clone()).collect(),
        probability: chosen.answers.first().map_or(0.0, |answer| answer.probability),
        readings: chosen.readings.clone(),
        answerable: chosen.answerable,
        abstained,
    })?;
    if abstained {
        chosen.answers.clear();
    }
    Ok(chosen)
}

/// The answer to a question that compares two, by what the evidence tells of both.
fn compared(question: &str, quotable: &Quotable) -> Option<ShortAnswer> {
    let evidence = quotable.headed();
    grounding::dated_option(question, &quotable.texts())
        .or_else(|| grounding::counted_option(question, &evidence))
        .or_else(|| grounding::same_for_both(question, &evidence))
}

/// The answer of a reader, or a clear span if it has none; and whether it is withheld.
async fn read_or_clear_span(
    question: &str,
    read: Chosen,
    quotable: &Quotable,
    session: &Session<'_>,
) -> Result<(Chosen, bool)> {
    let abstained = read.answerable.map_or(read.answers.is_empty(), |answerable| answerable < THRESHOLD);
    if abstained || !read.answers.is_empty() {
        return Ok((read, abstained));
    }
    let texts = quotable.texts();
    let answers = scored(question, &Draft::new(question, &texts), &texts, session).await?.answers;
    let is_clear = answers.first().is_some_and(|best| best.probability >= CLEAR);
    Ok((Chosen { answers, ..read }, !is_clear))
}

/// The best span, and whether it is withheld.
async fn span(question: &str, ask: Ask, quotable: &Quotable, session: &Session<'_>) -> Result<(Chosen, bool)> {
    let texts = quotable.texts();
    let mut chosen = scored(question, &Draft::new(question, &texts), &texts, session).await?;
    let abstained = chosen.answers.is_empty() || chosen.answerable.is_some_and(|answerable| answerable < THRESHOLD);
    let is_open = |best: &ShortAnswer| best.probability < CLEAR && !is_polar(best);
    if !abstained && session.caller.scorer().is_some() && chosen.answers.first().is_some_and(is_open) {
        let reply = session.send(session.call(ask, OutputFormat::Text)).await?;
        let draft = Draft::with_reply(question, &texts, &reply.text);
        // The probability that there is an answer is fitted without replies.
        let answerable = chosen.answerable;
        chosen = Chosen { answerable, ..scored(question, &draft, &texts, session).await? };
    }
    Ok((chosen, abstained))
}

/// The best candidates of a draft, scored by the model if the caller scores.
async fn scored(question: &str, draft: &Draft, texts: &[&str], session: &Session<'_>) -> Result<Chosen> {
    let shown = draft.shown().iter().map(|place| one_line(&texts[place.text][place.start..place.end]));
    let shown = shown.collect::<Vec<_>>().join(" ");
    let likelihoods = likelihoods(question, &shown, draft.continuations(), session).await?;
    Ok(draft.choose(likelihoods.as_deref()))
}

/// The log-probabilities of texts as the whole reply, if the caller scores.
async fn likelihoods(
    question: &str,
    shown: &str,
    continuations: Vec<String>,
    session: &Session<'_>,
) -> Result<Option<Vec<f64>>> {
    let Some(scorer) = session.caller.scorer().filter(|_| continuations.len() > 1) else { return Ok(None) };
    let agent = Agent::Responder;
    let prompt = prompt::chat(question, shown, session.profile(agent));
    let turns = prompt.messages();
    let read = turns.iter().flat_map(|turn| ["<", turn.role.as_str(), ">\n", &turn.content, "\n"]).collect();
    let request = ScoreRequest {
        agent,
        step: STEP,
        workflow: session.workflow,
        tenant: session.tenant,
        priority: session.priority,
        prompt,
        continuations: continuations.clone(),
        end: true,
    };
    let scored = scorer.score(request).await?;
    session.trace.add(scored.usage);
    let record =
        |(text, score): (String, &calls::Score)| ScoreRecord { text, logprob: score.logprob, tokens: score.tokens };
    session.trace.record(Event::Score {
        step: STEP.to_owned(),
        agent,
        model: session.caller.models().model(agent).to_owned(),
        prompt: read,
        scores: continuations.into_iter().zip(&scored.scores).map(record).collect(),
        prompt_tokens: scored.usage.prompt_tokens,
        cached_tokens: scored.usage.cached_tokens,
        milliseconds: Duration::from_secs_f64(scored.usage.seconds).as_millis() as u64,
    })?;
    Ok(Some(scored.scores.iter().map(|score| score.logprob).collect()))
}
