//! Reflects whether the notes are enough, and requests what is missing (equation 5).

use std::pin::pin;

use calls::{Agent, Stability, schema};
use futures_util::future::{Either, select};
use serde::Deserialize;

use super::call::{MAX_QUERIES, QUERY_WORDS, agent};
use super::notes::Research;
use super::prompts::{FOLLOW_UP, FOLLOW_UP_THOUGHT, INFO_CHECK, INFO_CHECK_THOUGHT, TRIED};
use crate::core::error::Result;
use crate::core::prompt::{Input, Instructions, phrase_of};
use crate::core::refusal::is_nothing;
use crate::core::session::{Ask, Session};
use crate::core::trace::Trace;

/// What the rounds before have shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    /// Notes that are not enough.
    pub insufficient: &'a str,
    /// Requests that were searched for.
    pub tried: &'a [String],
}

/// Equation 5: requests for what is missing; `None` ends the research. The information check and the follow-up are requested
/// in one round; if the notes are enough, the follow-up is cancelled.
pub(super) async fn reflect(
    question: &str,
    result: &Research,
    known: Known<'_>,
    round: usize,
    is_last: bool,
    session: &Session<'_>,
) -> Result<Option<Vec<String>>> {
    match (result.content == known.insufficient, is_last) {
        (true, true) => return Ok(None),
        (true, false) => return follow_up(question, result, known.tried, round, session).await.map(Some),
        // No search would use the requests.
        (false, true) => return is_enough(question, result, session).await.map(|_| None),
        (false, false) => {}
    }
    // The follow-up is traced and counted only if it is used, whichever of the two ends first.
    let trace = Trace::kept();
    let beside = Session { settings: session.settings.clone(), trace: &trace, on_text: None, ..*session };
    let check = pin!(is_enough(question, result, session));
    let requests = pin!(follow_up(question, result, known.tried, round, &beside));
    let requests = match select(check, requests).await {
        Either::Left((enough, requests)) => {
            if enough? {
                None
            } else {
                Some(requests.await?)
            }
        }
        Either::Right((requests, check)) => {
            if check.await? {
                None
            } else {
                Some(requests?)
            }
        }
    };
    if requests.is_some() {
        session.trace.absorb(&trace)?;
    }
    Ok(requests)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InfoCheck {
    enough: bool,
}

/// Equation 5, information check: whether the notes answer the question; an invalid reply counts as no.
async fn is_enough(question: &str, result: &Research, session: &Session<'_>) -> Result<bool> {
    let inputs = reflection(question, result);
    let ask = agent(Agent::Judge, "gam.info_check", INFO_CHECK, INFO_CHECK_THOUGHT, inputs, session);
    let schema = schema::object([("enough", schema::boolean())]);
    let check: Option<InfoCheck> = session.json(ask, schema, |_| Ok(())).await?;
    Ok(check.is_some_and(|check| check.enough))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FollowUp {
    new_requests: Vec<String>,
}

/// Equation 5, follow-up: requests for what is missing; none if the reply is invalid. Each round draws anew, since the notes
/// may be those of the round before.
async fn follow_up(
    question: &str,
    result: &Research,
    tried: &[String],
    round: usize,
    session: &Session<'_>,
) -> Result<Vec<String>> {
    let mut inputs = reflection(question, result);
    let mut rules = FOLLOW_UP.rules.to_owned();
    if !tried.is_empty() {
        let listed: Vec<String> = tried.iter().map(|request| format!("- {request}")).collect();
        inputs.push(Input::new("TRIED_REQUESTS", Stability::Volatile, listed.join("\n")));
        rules.push_str(TRIED);
    }
    let instructions = Instructions { rules: &rules, ..FOLLOW_UP };
    let ask = agent(Agent::Researcher, "gam.follow_up", instructions, FOLLOW_UP_THOUGHT, inputs, session);
    let ask = Ask { draw: round as u64 - 1, ..ask };
    let schema = schema::object([("new_requests", schema::array(phrase_of(QUERY_WORDS), MAX_QUERIES))]);
    let reply: Option<FollowUp> = session.json(ask, schema, |_| Ok(())).await?;
    let mut new_requests = reply.map_or_else(Vec::new, |reply| reply.new_requests);
    new_requests.retain(|request| !is_nothing(request));
    Ok(new_requests)
}

fn reflection(question: &str, result: &Research) -> Vec<Input> {
    vec![
        Input::new("REQUEST", Stability::Volatile, question),
        Input::new("RESULT", Stability::Volatile, result.content.as_str()),
    ]
}
