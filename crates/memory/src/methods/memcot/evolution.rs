//! The loop of memory and reasoning (section 4.1, equations 5 to 7).

use store::Corpus;

use super::judge::{MAX_QUERIES, Verdict, judge};
use super::long_term::LongTerm;
use super::options::Options;
use super::perception::{Focus, Perceived, known, perceive};
use super::prompts::{NO_QUERY, REPEATED};
use super::responder::{fall_back, respond};
use super::short_term::{Action, ShortTerm};
use crate::core::error::Result;
use crate::core::outcome::Answer;
use crate::core::refusal::is_nothing;
use crate::core::session::Session;

/// Answers a question: perceive, judge, and search on with other queries, at most J times.
pub(super) async fn ask(question: &str, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    let memory = LongTerm::open(corpus, session)?;
    let mut short_term = ShortTerm::default();
    let mut query = Query { texts: vec![question.to_owned()], action: None };
    let steps = session.settings.options::<Options>().steps;
    for step in 0..steps {
        let facts = short_term.facts();
        let known = known(&facts, &memory, session)?;
        let focus = Focus { question, queries: &query.texts, facts: &facts, known: &known, step: step as u64 };
        let retrieved = memory.retrieve(&query.texts, session).await?;
        let perceived = perceive(focus, &retrieved, &memory, session).await?;
        let is_last = step + 1 == steps;
        let next = evolve(focus, &perceived, query.action, is_last, &mut short_term, &memory, session).await?;
        let ends = is_last || next.query.texts.is_empty();
        let facts = short_term.facts();
        if (next.can_answer || ends)
            && !facts.is_empty()
            && let Some(answer) = respond(question, &facts, step as u64, &memory, session).await?
        {
            return Ok(answer);
        }
        if ends {
            break;
        }
        query = next.query;
    }
    fall_back(question, &short_term.facts(), &memory, session).await
}

/// q: the queries, and the judge's action that made them.
struct Query {
    texts: Vec<String>,
    action: Option<Action>,
}

/// The outcome of a step.
struct Next {
    can_answer: bool,
    query: Query,
}

/// Equations 6 and 7: useful turns enter the memory, queries without a new turn are recorded as failed, and the judge
/// writes the next queries. If it writes none, or all of them failed before, the judge is called once more, unless this is the
/// last step.
async fn evolve(
    focus: Focus<'_>,
    perceived: &Perceived,
    action: Option<Action>,
    is_last: bool,
    short_term: &mut ShortTerm,
    memory: &LongTerm<'_>,
    session: &Session<'_>,
) -> Result<Next> {
    let is_new = |place: &usize| !focus.facts.contains(place);
    let mut failed = !perceived.places.iter().any(is_new);
    if failed {
        // Before the judge's call, so that its prompt shows them.
        short_term.fail(action, focus.queries, &perceived.missing);
    }
    let mut learned = false;
    let mut complaint = None;
    loop {
        let Some(verdict) = judge(focus, perceived, complaint, short_term, memory, session).await? else { break };
        learned |= short_term.learn(useful(&verdict, perceived, short_term));
        match (learned, failed) {
            (false, false) => short_term.fail(action, focus.queries, &perceived.missing),
            // The second attempt keeps a turn that the first one did not.
            (true, true) => short_term.forget_failure(),
            _ => {}
        }
        failed = !learned;
        let can_answer = verdict.can_answer && !short_term.facts().is_empty();
        let texts = short_term.untried(&verdict.queries, MAX_QUERIES);
        if can_answer || is_last || !texts.is_empty() || complaint.is_some() {
            return Ok(Next { can_answer, query: Query { texts, action: Some(verdict.action) } });
        }
        let wrote = verdict.queries.iter().any(|query| !is_nothing(query));
        complaint = Some(if wrote { REPEATED } else { NO_QUERY });
    }
    // Without a valid reply of the judge nothing is learned and the search ends.
    Ok(Next { can_answer: false, query: Query { texts: Vec::new(), action } })
}

/// The turns to keep. A judge that can answer but names no turn of an empty memory means what was just perceived.
fn useful(verdict: &Verdict, perceived: &Perceived, short_term: &ShortTerm) -> Vec<usize> {
    let is_unnamed = verdict.can_answer && verdict.useful.is_empty() && short_term.facts().is_empty();
    if is_unnamed { perceived.places.clone() } else { verdict.useful.clone() }
}
