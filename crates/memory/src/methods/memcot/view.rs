//! Turns in the form that prompts show: chosen by rank within a budget, then put in order.

use std::collections::BTreeSet;

use calls::Agent;
use store::Passage;

use super::long_term::LongTerm;
use crate::core::error::Result;
use crate::core::origin::{in_brackets, shows_paths};
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
    /// One line each, as they come: `[12] (8 May, 2023) Ann: Hello.`; with several documents `[12] (notes/may.md) Hello.`
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
    let shown = Shown { form, with_paths: shows_paths(reader.agent, memory.corpus(), session)?, memory };
    let (places, used_tokens) = fitting(ranked, shown, reader, session)?;
    let mut ordered = places.clone();
    if form != Form::Ranked {
        ordered.sort_unstable();
    }
    let mut text = String::new();
    for (number, place) in ordered.iter().enumerate() {
        if form == Form::Sessions && (number == 0 || !memory.timeline.together(ordered[number - 1], *place)) {
            text.push_str(&shown.heading(*place)?);
        }
        text.push_str(&shown.line(*place)?);
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
fn fitting(ranked: &[usize], shown: Shown<'_>, reader: Reader, session: &Session<'_>) -> Result<(Vec<usize>, usize)> {
    let (mut places, mut used_tokens, mut sessions) = (Vec::new(), 0, BTreeSet::new());
    for place in ranked {
        let mut line = shown.line(*place)?;
        let heading = match shown.form {
            Form::Sessions => Some((shown.memory.timeline.turn(*place).passage.document, shown.heading(*place)?)),
            Form::Ranked | Form::Timed => None,
        };
        if let Some((_, heading)) = heading.as_ref().filter(|heading| !sessions.contains(*heading)) {
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

/// The form of the turns of a view, with or without the paths of their documents.
#[derive(Clone, Copy)]
struct Shown<'a> {
    form: Form,
    with_paths: bool,
    memory: &'a LongTerm<'a>,
}

impl Shown<'_> {
    /// A turn on one line, without line breaks.
    fn line(self, place: usize) -> Result<String> {
        let passage = &self.memory.timeline.turn(place).passage;
        let text = self.memory.corpus().passage_text(passage.id)?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.form == Form::Sessions {
            return Ok(format!("{}: {text}\n", passage.id));
        }
        Ok(match self.origin(passage)? {
            Some(origin) => format!("[{}] {origin} {text}\n", passage.id),
            None => format!("[{}] {text}\n", passage.id),
        })
    }

    fn heading(self, place: usize) -> Result<String> {
        let turn = self.memory.timeline.turn(place);
        let page = turn.page;
        let name = turn.session_label.clone().unwrap_or_else(|| format!("page {page}"));
        Ok(match self.origin(&turn.passage)? {
            Some(origin) => format!("Session {name} {origin}:\n"),
            None => format!("Session {name}:\n"),
        })
    }

    /// The path of a turn's document, if paths are shown, and its time.
    fn origin(self, turn: &Passage) -> Result<Option<String>> {
        let document = if self.with_paths { Some(self.memory.corpus().document(turn.document)?) } else { None };
        Ok(in_brackets(document.as_ref(), turn.meta.time.as_deref()))
    }
}
