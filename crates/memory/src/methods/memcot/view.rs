//! Turns in the form that prompts show: chosen by rank within a budget, then put in order.

use std::collections::BTreeSet;

use calls::Agent;

use super::long_term::LongTerm;
use crate::core::error::Result;
use crate::core::session::Session;
use crate::core::trace::Event;

/// The part of the long-term memory that a prompt shows.
#[derive(Debug, Default)]
pub(super) struct View {
    pub text: String,
    /// The places that are shown, the best first.
    pub places: Vec<usize>,
}

/// How turns are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// One line each, as they come: `[12] (8 May, 2023) Ann: Hello.`
    Ranked,
    /// The same in the order of time.
    Timed,
    /// In the order of time under the headings of their sessions.
    Sessions,
}

/// The reader of a view.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    pub step: &'static str,
    pub agent: Agent,
    pub budget_tokens: usize,
}

/// Shows the ranked turns that fit the reader's budget; the trace lists the others.
pub(super) fn show(
    ranked: &[usize],
    form: Form,
    reader: Reader,
    memory: &LongTerm<'_>,
    session: &Session<'_>,
) -> Result<View> {
    let (places, used_tokens) = fitting(ranked, form, reader, memory, session)?;
    let mut ordered = places.clone();
    if form != Form::Ranked {
        ordered.sort_unstable();
    }
    let mut text = String::new();
    for (number, place) in ordered.iter().enumerate() {
        if form == Form::Sessions && (number == 0 || !memory.timeline.together(ordered[number - 1], *place)) {
            text.push_str(&heading(*place, memory));
        }
        text.push_str(&line(*place, form, memory)?);
    }
    text.truncate(text.trim_end().len());
    let id = |place: &usize| memory.timeline.id(*place).0;
    let left_out = ranked.iter().filter(|place| !places.contains(place)).map(id).collect();
    let pages = places.iter().map(id).collect();
    let (step, budget_tokens) = (reader.step.to_owned(), reader.budget_tokens);
    session.trace.record(Event::Evidence { step, budget_tokens, used_tokens, pages, left_out })?;
    Ok(View { text, places })
}

/// The ranked places that fit the reader's budget, in their order, and the tokens that they take.
fn fitting(
    ranked: &[usize],
    form: Form,
    reader: Reader,
    memory: &LongTerm<'_>,
    session: &Session<'_>,
) -> Result<(Vec<usize>, usize)> {
    let (mut places, mut used_tokens, mut sessions) = (Vec::new(), 0, BTreeSet::new());
    for place in ranked {
        let mut line = line(*place, form, memory)?;
        let heading = (form == Form::Sessions).then(|| heading(*place, memory));
        if let Some(heading) = heading.clone().filter(|heading| !sessions.contains(heading)) {
            line = format!("{heading}{line}");
        }
        let tokens = session.caller.tokens().count_tokens(reader.agent, &line);
        if used_tokens + tokens > reader.budget_tokens {
            continue;
        }
        used_tokens += tokens;
        sessions.extend(heading);
        places.push(*place);
    }
    Ok((places, used_tokens))
}

/// A turn on one line, without line breaks.
fn line(place: usize, form: Form, memory: &LongTerm<'_>) -> Result<String> {
    let passage = &memory.timeline.turn(place).passage;
    let text = memory.corpus().passage_text(passage.id)?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(match (&passage.meta.time, form) {
        (_, Form::Sessions) => format!("{}: {text}\n", passage.id),
        (Some(time), _) => format!("[{}] ({time}) {text}\n", passage.id),
        (None, _) => format!("[{}] {text}\n", passage.id),
    })
}

fn heading(place: usize, memory: &LongTerm<'_>) -> String {
    let turn = memory.timeline.turn(place);
    let page = turn.page;
    let name = turn.session_label.clone().unwrap_or_else(|| format!("page {page}"));
    match &turn.passage.meta.time {
        Some(time) => format!("Session {name} ({time}):\n"),
        None => format!("Session {name}:\n"),
    }
}
