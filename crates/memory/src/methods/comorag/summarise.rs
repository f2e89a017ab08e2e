//! Summaries of several texts: concurrent calls, each summary stored as soon as it is written.

use calls::{Agent, Stability};
use futures_util::StreamExt;
use futures_util::stream::iter;
use store::{Bond, Digest, NewDerived, PassageId, Writer};

use super::derive::{AT_ONCE, author};
use crate::core::error::Result;
use crate::core::preparation::Progress;
use crate::core::prompt::{Input, Instructions, build, words};
use crate::core::session::{Ask, Session};

/// A summary to be written.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub kind: &'static str,
    /// Whether a single text is its own summary, as in the order of the text; by theme it is shortened like any other.
    pub single_as_is: bool,
    pub step: &'static str,
    pub instructions: Instructions<'static>,
    pub max_output_tokens: usize,
    /// The place that it belongs to; part of its key, so that equal texts in two documents have a summary each.
    pub place: String,
    pub texts: Vec<String>,
    /// The chunks that support it.
    pub sources: Vec<PassageId>,
}

/// A summary that is stored.
#[derive(Debug, Clone)]
pub(super) struct Made {
    pub key: Digest,
    pub text: String,
    pub sources: Vec<PassageId>,
}

impl Task {
    pub fn key(&self) -> Digest {
        let texts: Vec<&str> = [self.place.as_str()].into_iter().chain(self.texts.iter().map(String::as_str)).collect();
        Digest::of(&texts)
    }

    fn ask(&self, session: &Session<'_>) -> Ask {
        ask(self.step, self.instructions, self.max_output_tokens, &self.texts.join("\n\n"), session)
    }
}

fn ask(step: &'static str, instructions: Instructions, most: usize, passages: &str, session: &Session<'_>) -> Ask {
    let inputs = vec![Input::new("PASSAGES", Stability::Volatile, passages)];
    let max_output_tokens = session.output_tokens(Agent::Memorizer, most).min(most);
    let rules = format!("{}\nWrite at most {} words.", instructions.rules, words(max_output_tokens));
    let prompt = build(session.settings.layout, Instructions { rules: &rules, ..instructions }, inputs);
    Ask { agent: Agent::Memorizer, step, prompt, thinking_tokens: 0, max_output_tokens, draw: 0 }
}

/// Tokens of texts that one call can read.
pub(super) fn room(instructions: Instructions, max_output_tokens: usize, session: &Session<'_>) -> usize {
    let bare = ask("comorag.room", instructions, max_output_tokens, "", session);
    let other_tokens = session.prompt_tokens(&bare) + bare.max_output_tokens + SEAM_TOKENS;
    session.context(Agent::Memorizer).saturating_sub(other_tokens)
}

/// Tokens kept free because the tokens of the parts do not add up exactly to those of the whole.
const SEAM_TOKENS: usize = 32;

/// Tokens of a text with the blank line after it.
pub(super) fn tokens(text: &str, session: &Session<'_>) -> usize {
    session.caller.tokens().count_tokens(Agent::Memorizer, text) + 2
}

/// Writes the summaries that are not stored yet; returns all, in the order of the tasks. The words name the step and unit
/// of progress.
pub(super) async fn summarise(
    tasks: &[Task],
    [step, unit]: [&'static str; 2],
    writer: &mut Writer,
    session: &Session<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<Made>> {
    let mut made: Vec<Option<Made>> = Vec::new();
    for task in tasks {
        let known = writer.derived_at(task.kind, &task.key())?;
        made.push(known.map(|known| Made { key: known.key, text: known.text, sources: known.sources }));
    }
    let pending: Vec<usize> = (0..tasks.len()).filter(|place| made[*place].is_none()).collect();
    let report = |done| Progress { step, unit, done, of: pending.len() };
    let write = |place: usize| async move { (place, text_of(&tasks[place], session).await) };
    let mut replies = iter(pending.iter().map(|place| write(*place))).buffer_unordered(AT_ONCE);
    let mut done = 0;
    if !pending.is_empty() {
        progress(report(0));
    }
    while let Some((place, text)) = replies.next().await {
        let (task, text) = (&tasks[place], text?);
        let (key, author) = (task.key(), author(task.step, task.instructions, Agent::Memorizer, session));
        let summary =
            NewDerived { kind: task.kind, key, text: &text, sources: &task.sources, bond: Bond::All, author: &author };
        writer.put_derived(&[summary])?;
        done += 1;
        progress(report(done));
        made[place] = Some(Made { key, text, sources: task.sources.clone() });
    }
    Ok(made.into_iter().flatten().collect())
}

async fn text_of(task: &Task, session: &Session<'_>) -> Result<String> {
    match &task.texts[..] {
        [only] if task.single_as_is => Ok(only.clone()),
        _ => Ok(session.text(task.ask(session)).await?.trim().to_owned()),
    }
}
