//! Examples: converts JSON lines to tokens and marks the answer.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

use models::{ChatOptions, ChatTemplate, Tokenizer};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError, io};

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: String,
    pub content: String,
}

/// A line of a data file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// A conversation; the loss is on its last turn, which is the assistant's.
    Chat { messages: Vec<Message> },
    /// Bare text; the loss is on the completion.
    Text { prompt: String, completion: String },
}

/// A tokenised example.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Prompt and answer; the answer ends with an end-of-turn token.
    pub tokens: Vec<u32>,
    /// The tokens of the answer.
    pub answer: Range<usize>,
    /// Places of answer tokens that were not drawn, ascending: nothing is learnt from them.
    pub forced: Vec<usize>,
    /// Its weight in the loss: 1, or the advantage of a sampled reply.
    pub weight: f32,
}

impl Example {
    /// Places of the tokens on which the loss is computed.
    pub fn learned(&self) -> impl Iterator<Item = usize> {
        self.answer.clone().filter(|at| self.forced.binary_search(at).is_err())
    }
}

/// The places, counted from `start`, of tokens that were not drawn.
pub(crate) fn forced(start: usize, drawn: impl IntoIterator<Item = bool>) -> Vec<usize> {
    (start..).zip(drawn).filter(|(_, drawn)| !drawn).map(|(at, _)| at).collect()
}

/// The examples of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Examples {
    pub examples: Vec<Example>,
    /// Neighbours that share most of their prompts: their common beginning goes through the network once.
    pub groups: Vec<Range<usize>>,
    /// Lines left out because they are longer than the longest sequence.
    pub too_long: usize,
    /// blake3 of the file.
    pub digest: String,
}

impl Examples {
    /// The first `most` examples.
    #[must_use]
    pub fn truncated(mut self, most: usize) -> Examples {
        self.examples.truncate(most);
        self.groups.retain(|group| group.start < most);
        if let Some(last) = self.groups.last_mut() {
            last.end = last.end.min(most);
        }
        self
    }
}

/// A digest of tokenised examples: prompts are rendered and tokenised again at every start of a run.
pub(crate) fn digest<'a>(examples: impl IntoIterator<Item = &'a Example>) -> String {
    let mut hasher = blake3::Hasher::new();
    for Example { tokens, answer, weight, .. } in examples {
        [tokens.len(), answer.start, answer.end].iter().for_each(|number| {
            hasher.update(&(*number as u64).to_le_bytes());
        });
        hasher.update(&weight.to_le_bytes());
        hasher.update(&tokens.iter().flat_map(|token| token.to_le_bytes()).collect::<Vec<u8>>());
    }
    hasher.finalize().to_hex().to_string()
}

/// The conversion of text to tokens.
#[derive(Debug)]
pub struct Reader<'a> {
    pub tokenizer: &'a Tokenizer,
    pub template: &'a ChatTemplate,
    /// Tokens that end a reply.
    pub eos: &'a [u32],
    /// The most tokens of an example.
    pub longest: usize,
}

/// The most examples of a group, so that a step has several texts.
const MAX_GROUP: usize = 8;

/// Neighbours of which each shares at least half of its tokens with the first.
pub fn groups(examples: &[Example]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (at, example) in examples.iter().enumerate() {
        match groups.last_mut() {
            Some(group)
                if group.len() < MAX_GROUP
                    && 2 * common(&[&examples[group.start], example]) >= example.tokens.len() =>
            {
                group.end += 1;
            }
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

/// The number of tokens with which all of the prompts begin, without the last token of any.
pub fn common(examples: &[&Example]) -> usize {
    let Some((first, rest)) = examples.split_first() else { return 0 };
    let shortest = examples.iter().map(|example| example.answer.start - 1).min().unwrap_or(0);
    let same = |other: &Example| first.tokens.iter().zip(&other.tokens).take_while(|(a, b)| a == b).count();
    rest.iter().map(|other| same(other)).min().unwrap_or(0).min(shortest)
}

/// Hands over each line of a file of JSON lines, which is not in memory as a whole; returns blake3 of the file.
///
/// # Errors
/// If the file cannot be read, a line has another form, or `take` refuses it.
pub(crate) fn json_lines<T: DeserializeOwned>(
    path: &Path,
    mut take: impl FnMut(T) -> std::result::Result<(), String>,
) -> Result<String> {
    let mut file = BufReader::new(File::open(path).map_err(io(path))?);
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), Vec::new());
    for number in 1.. {
        bytes.clear();
        if file.read_until(b'\n', &mut bytes).map_err(io(path))? == 0 {
            break;
        }
        hasher.update(&bytes);
        let failed = |reason: String| TrainError::Data { path: path.to_owned(), line: number, reason };
        let text = bytes.trim_ascii();
        if !text.is_empty() {
            let line = serde_json::from_slice(text).map_err(|error| failed(error.to_string()))?;
            take(line).map_err(failed)?;
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

impl Reader<'_> {
    /// Reads a file of JSON lines.
    ///
    /// # Errors
    /// If it cannot be read, a line is no example, or none is short enough.
    pub fn read(&self, path: &Path) -> Result<Examples> {
        let (mut examples, mut too_long) = (Vec::new(), 0);
        let digest = json_lines(path, |line: Line| {
            let example = self.example(&line)?;
            if example.tokens.len() > self.longest {
                too_long += 1;
            } else {
                examples.push(example);
            }
            Ok(())
        })?;
        if examples.is_empty() {
            let reason = format!("no example of at most {} tokens ({too_long} longer ones)", self.longest);
            return Err(TrainError::NoExamples { path: path.to_owned(), reason });
        }
        let groups = groups(&examples);
        Ok(Examples { examples, groups, too_long, digest })
    }

    /// Tokenises one line; the answer is tokenised separately from the prompt, as during generation.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn example(&self, line: &Line) -> std::result::Result<Example, String> {
        let encode = |text: &str| self.tokenizer.encode_prompt(text, &[]).map_err(|error| error.to_string());
        let plain = |text: &str| self.tokenizer.encode(text).map_err(|error| error.to_string());
        let end_of = |behind: &str| self.end_of(behind).map_err(|error| error.to_string());
        let (mut tokens, mut answer, end) = match line {
            Line::Text { prompt, completion } => {
                // As the engine reads a prompt without a chat.
                let whole = 0..prompt.len();
                let prompt = self.tokenizer.encode_prompt(prompt, std::slice::from_ref(&whole));
                (prompt.map_err(|error| error.to_string())?, plain(completion)?, end_of("")?)
            }
            Line::Chat { messages } => {
                let Some((last, before)) = messages.split_last().filter(|(last, _)| last.role == "assistant") else {
                    return Err("the last turn is not the assistant's".into());
                };
                let specials: Vec<&[u8]> = self.tokenizer.specials().map(|id| self.tokenizer.bytes(id)).collect();
                let holds =
                    |text: &str, name: &[u8]| text.as_bytes().windows(name.len().max(1)).any(|part| part == name);
                if let Some(name) =
                    specials.iter().find(|name| messages.iter().any(|message| holds(&message.content, name)))
                {
                    return Err(format!("a turn holds the special token `{}`", String::from_utf8_lossy(name)));
                }
                // As the engine renders the prompt of a call without a thought.
                let options = ChatOptions { thinks: Some(false), ..ChatOptions::default() };
                let opened = ChatOptions { opens_turn: true, ..options };
                let answer = last.content.trim();
                let turns = [before, &[Message { role: last.role.clone(), content: answer.to_owned() }]].concat();
                let prompt = self.template.render_chat(before, opened).map_err(|error| error.to_string())?;
                let whole = self.template.render_chat(&turns, options).map_err(|error| error.to_string())?;
                if !whole.starts_with(&prompt) || !whole[prompt.len()..].starts_with(answer) {
                    return Err("the chat template does not continue the prompt with the answer".into());
                }
                (encode(&prompt)?, plain(answer)?, end_of(&whole[prompt.len() + answer.len()..])?)
            }
        };
        if answer.is_empty() {
            return Err("the answer is empty".into());
        }
        answer.push(end);
        let from = tokens.len();
        tokens.extend(answer);
        if from == 0 {
            return Err("the prompt is empty".into());
        }
        Ok(Example { answer: from..tokens.len(), tokens, forced: Vec::new(), weight: 1.0 })
    }

    /// The token that ends an answer: of those that end a reply the one with which the chat template continues, such as
    /// Gemma's `<end_of_turn>`; else that of [`Reader::turn_end`].
    fn end_of(&self, behind: &str) -> Result<u32> {
        let behind = behind.trim_start().as_bytes();
        let name = |id: &u32| self.tokenizer.bytes(*id);
        let begins = |id: &&u32| !name(id).is_empty() && behind.starts_with(name(id));
        let written = self.eos.iter().filter(begins).max_by_key(|id| name(id).len());
        written.copied().map_or_else(|| self.turn_end(), Ok)
    }

    /// The token that ends a turn, whatever the chat template.
    ///
    /// # Errors
    /// If the tokenizer has none.
    pub fn turn_end(&self) -> Result<u32> {
        let named = self.tokenizer.special("<|im_end|>").or_else(|| self.tokenizer.special("<|eot_id|>"));
        named
            .or(self.eos.first().copied())
            .ok_or_else(|| TrainError::Settings("the tokenizer has no token that ends a turn".into()))
    }
}
