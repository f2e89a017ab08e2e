//! Threads: the questions and answers of a conversation about a corpus, kept in its folder until they are deleted.
//!
//! A thread is one JSON file beside the corpus, private to its owner and removed with the corpus. An answer may quote a
//! document, so deleting a document removes the turns that could know it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::Corpus;
use utoipa::ToSchema;

use super::kept::{self, Record};
use crate::error::{Result, ServerError};
use crate::fresh::since_1970;
use crate::lost::{CorpusState, Gone};

/// Maximum bytes of a thread; a longer conversation continues in another.
const MAX_BYTES: usize = 8 << 20;

/// Maximum characters of a title; a title made from a longer question ends with an ellipsis.
const MAX_TITLE_CHARS: usize = 120;

/// A conversation.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(super) struct Thread {
    pub id: String,
    /// The first question unless it was renamed; empty before.
    pub title: String,
    /// Seconds since 1970.
    pub created: u64,
    pub updated: u64,
    pub turns: Vec<Turn>,
}

impl Record for Thread {
    const KIND: &'static str = "thread";
    const FOLDER: &'static str = "threads";

    fn id(&self) -> &str {
        &self.id
    }

    fn updated(&self) -> u64 {
        self.updated
    }
}

/// A question with its answers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(super) struct Turn {
    pub question: String,
    /// When it was first asked.
    pub created: u64,
    /// When the latest answer was given; files of earlier versions do not say.
    #[serde(default)]
    pub updated: Option<u64>,
    /// As `ask` returned them, the latest last: one for each time that the question was asked.
    pub answers: Vec<Value>,
}

/// Where an answer is appended.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub thread: String,
    /// The turn that gets a further answer; a new one if there is none.
    pub turn: Option<usize>,
}

/// Fails if an answer to this question cannot be appended there.
pub(super) fn check(corpus: &Corpus, place: &Place, question: &str) -> Result<()> {
    let (thread, bytes): (Thread, _) = kept::read(corpus, &place.thread)?;
    if bytes >= MAX_BYTES {
        let message = format!("the thread has {bytes} bytes; at most {MAX_BYTES} are continued: begin another thread");
        return Err(ServerError::invalid(message, "thread"));
    }
    match place.turn.map(|turn| thread.turns.get(turn)) {
        None => Ok(()),
        Some(Some(turn)) if turn.question == question => Ok(()),
        Some(Some(_)) => Err(ServerError::invalid("`turn` is a turn with another question", "turn")),
        Some(None) => {
            let message = format!("the thread has {} turns, counted from 0", thread.turns.len());
            Err(ServerError::invalid(message, "turn"))
        }
    }
}

/// The turns before a place, each with its latest answer.
pub(super) fn before(corpus: &Corpus, place: &Place) -> Result<Vec<memory::Turn>> {
    let (thread, _): (Thread, _) = kept::read(corpus, &place.thread)?;
    let before = thread.turns.iter().take(place.turn.unwrap_or(usize::MAX));
    let text = |answer: &Value| answer["answer"].as_str().unwrap_or_default().to_owned();
    let turn = |turn: &Turn| memory::Turn {
        question: turn
            .answers
            .last()
            .and_then(|answer| answer["understood"].as_str())
            .unwrap_or(&turn.question)
            .to_owned(),
        answer: turn.answers.last().map(text).unwrap_or_default(),
        short: turn.answers.last().and_then(|answer| answer["short"].as_str()).map(str::to_owned),
    };
    Ok(before.map(turn).collect())
}

/// Appends an answer and returns the number of its turn; `None` if the thread was deleted, or texts that it may quote were removed
/// or replaced since the corpus had this state.
pub(super) fn append(
    corpus: &Corpus,
    place: &Place,
    question: &str,
    answer: &Value,
    state: &CorpusState,
) -> Result<Option<usize>> {
    let _one = kept::lock(corpus)?;
    if CorpusState::of(corpus)? != *state {
        return Ok(None);
    }
    let (mut thread, _): (Thread, _) = match kept::read(corpus, &place.thread) {
        Err(ServerError::NotFound(_)) => return Ok(None),
        read => read?,
    };
    thread.updated = now();
    // Turns may have been removed since the place was checked.
    let asks = |turn: &usize| thread.turns.get(*turn).is_some_and(|turn| turn.question == question);
    let number = place.turn.filter(asks).unwrap_or(thread.turns.len());
    if number == thread.turns.len() {
        let turn = Turn { question: question.to_owned(), created: now(), updated: None, answers: Vec::new() };
        thread.turns.push(turn);
    }
    thread.turns[number].answers.push(answer.clone());
    thread.turns[number].updated = Some(thread.updated);
    if thread.title.is_empty() {
        thread.title = title_of(question);
    }
    kept::write(corpus, &thread)?;
    Ok(Some(number))
}

/// Removes the turns that could know a document that is gone: those with an answer since it was added, and those that cite it.
pub(crate) fn forget(corpus: &Corpus, gone: &[Gone]) -> Result<()> {
    let _one = kept::lock(corpus)?;
    for mut thread in kept::all_or_removed::<Thread>(corpus)? {
        let (before, updated) = (thread.turns.len(), thread.updated);
        let could_know = |turn: &Turn| {
            let answered = turn.updated.unwrap_or(updated);
            gone.iter().any(|gone| answered >= gone.since || turn.answers.iter().any(|answer| cites(answer, gone)))
        };
        thread.turns.retain(|turn| !could_know(turn));
        match thread.turns.len() {
            0 if before > 0 => kept::delete::<Thread>(corpus, &thread.id)?,
            now if now < before => kept::write(corpus, &thread)?,
            _ => {}
        }
    }
    Ok(())
}

/// An answer of a thread.
pub(super) struct TurnAnswer {
    pub question: String,
    pub answer: Value,
    pub asked: u64,
    /// Not before the answer was given.
    pub answered: u64,
}

/// An answer of a thread; `None` if the thread has no such answer.
pub(super) fn answer_of(corpus: &Corpus, id: &str, turn: usize, answer: usize) -> Result<Option<TurnAnswer>> {
    let (mut thread, _): (Thread, _) = kept::read(corpus, id)?;
    if turn >= thread.turns.len() {
        return Ok(None);
    }
    let Turn { question, created, updated, mut answers } = thread.turns.swap_remove(turn);
    let answered = updated.unwrap_or(thread.updated);
    Ok((answer < answers.len()).then(|| TurnAnswer {
        question,
        answer: answers.swap_remove(answer),
        asked: created,
        answered,
    }))
}

/// Whether an answer quotes a document: as the source of the answer or of one of its statements, whatever the verdict.
pub(super) fn cites(answer: &Value, gone: &Gone) -> bool {
    let statements = answer["statements"].as_array().into_iter().flatten();
    let citations = answer["citations"].as_array().into_iter().flatten();
    citations
        .chain(statements.map(|statement| &statement["citation"]))
        .any(|citation| citation["path"] == gone.path.as_str())
}

pub(super) fn now() -> u64 {
    since_1970().as_secs()
}

pub(super) fn title_of(question: &str) -> String {
    let line = question.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_TITLE_CHARS {
        return line;
    }
    let start: String = line.chars().take(MAX_TITLE_CHARS - 1).collect();
    format!("{start}…")
}

pub(super) fn checked_title(title: &str) -> Result<String> {
    let title = title.trim();
    let chars = title.chars().count();
    if (1..=MAX_TITLE_CHARS).contains(&chars) && !title.chars().any(char::is_control) {
        return Ok(title.to_owned());
    }
    let message = format!("a title has 1 to {MAX_TITLE_CHARS} characters on one line; this one has {chars}");
    Err(ServerError::invalid(message, "title"))
}
