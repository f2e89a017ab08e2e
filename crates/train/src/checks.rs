//! Examples of checked answers: a model reads answers, and each is marked as right or wrong by the wanted one.
//!
//! The check is the turn after the reading ([`reading::CHECK`]), so that it continues the KV cache of the reading. Answers are
//! the model's own, since those are what it has to judge.

use std::path::Path;

use calls::reading;
use models::adapter::Adapter;
use random::Random;

use crate::error::Result;
use crate::examples::{Line, Message, Reader};
use crate::reinforce::{Sample, Sampler, Task, Tasks};
use crate::reward::reward;

/// An answer is right from this F1 of words.
const RIGHT: f32 = 0.5;

/// Prompts that are sampled before the engine is started again.
const CHUNK: usize = 512;

/// The examples, and what is in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks {
    /// The readings themselves, each followed by the checks of its answers.
    pub lines: Vec<Line>,
    pub right: usize,
    pub wrong: usize,
    /// Lines left out because they are longer than the longest sequence.
    pub too_long: usize,
}

/// Samples `count` answers to each conversation of a file, and adds a check of each different one that is an answer. Lines that
/// are longer than the reader's longest are left out, and counted.
///
/// # Errors
/// If the file is no data of conversations, or sampling fails.
pub fn make(
    reader: &Reader<'_>,
    path: &Path,
    sampler: &mut dyn Sampler,
    adapter: &Adapter,
    (count, reply_tokens, seed): (usize, usize, u64),
    say: &mut dyn FnMut(&str),
) -> Result<Checks> {
    let Tasks { tasks, too_long, .. } = reader.tasks(path, reply_tokens)?;
    let mut random = Random::named(seed, "checks");
    let mut checks = Checks { too_long, ..Checks::default() };
    for (at, chunk) in tasks.chunks(CHUNK).enumerate() {
        let asked: Vec<&Task> = chunk.iter().collect();
        let replies = sampler.sample(adapter.clone(), &asked, count, random.bits())?;
        for (task, replies) in chunk.iter().zip(&replies) {
            checks.lines.push(conversation(task, [("assistant", task.wanted.as_str())]));
            for answer in answers(replies) {
                let is_right = is_right(answer, &task.wanted);
                *(if is_right { &mut checks.right } else { &mut checks.wrong }) += 1;
                let verdict = if is_right { reading::RIGHT } else { reading::WRONG };
                let turns = [("assistant", answer), ("user", reading::CHECK), ("assistant", verdict)];
                checks.lines.push(conversation(task, turns));
            }
        }
        let (done, total) = (at * CHUNK + chunk.len(), tasks.len());
        say(&format!("{done} of {total}: {} right, {} wrong", checks.right, checks.wrong));
    }
    Ok(checks)
}

/// The different answers among replies. "Not in the documents." is not one.
fn answers(replies: &[Sample]) -> Vec<&str> {
    let mut answers: Vec<&str> = Vec::new();
    for reply in replies.iter().filter(|reply| reply.is_whole) {
        let text = reply.text.trim();
        if !text.is_empty() && text != reading::NOT_FOUND && !answers.contains(&text) {
            answers.push(text);
        }
    }
    answers
}

/// As the benchmark counts: the words of the wanted answer occur in it, or it shares half of its words.
fn is_right(answer: &str, wanted: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.to_lowercase()
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (own, gold) = (words(answer), words(wanted));
    let holds = !gold.is_empty() && own.windows(gold.len()).any(|run| run == gold);
    wanted != reading::NOT_FOUND && (holds || reward(answer, wanted) >= RIGHT)
}

/// A task's prompt, continued by these turns.
fn conversation<const N: usize>(task: &Task, turns: [(&str, &str); N]) -> Line {
    let asked = task.prompt.messages();
    let asked = asked.iter().map(|message| (message.role.as_str(), message.content.as_str()));
    let turn = |(role, content): (&str, &str)| Message { role: role.into(), content: content.into() };
    Line::Chat { messages: asked.chain(turns).map(turn).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_right_as_the_benchmark_counts() {
        assert!(is_right("12th-century", "12th"));
        assert!(is_right("the Tower", "Eiffel Tower"));
        assert!(!is_right("a tower in the city of Paris", "Eiffel Tower"));
        assert!(!is_right("112th", "12th"), "words, not characters");
        assert!(!is_right("documents", reading::NOT_FOUND));
    }

    #[test]
    fn each_whole_answer_is_checked_once() {
        let sample = |text: &str, is_whole| Sample { text: text.into(), tokens: Vec::new(), is_whole };
        let replies = [
            sample("Paris", true),
            sample(" Paris ", true),
            sample("", true),
            sample("Paris and", false),
            sample(reading::NOT_FOUND, true),
            sample("Rome", true),
        ];
        assert_eq!(answers(&replies), ["Paris", "Rome"]);
    }
}
