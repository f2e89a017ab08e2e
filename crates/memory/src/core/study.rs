//! Training examples for the reader from a corpus: questions about spans of its documents.
//!
//! A model with the profile [`Profile::Paper`] writes the question; a smaller one does not write questions that a given span
//! answers, so its questions are sentences with a question word (`cloze`). A question is kept if the reader, shown its block
//! alone, gives the span back (round-trip filtering: Alberti et al. 2019, arXiv 1906.05416). Each kept question has one example
//! with its block, some with distractors beside it, and some questions one more with a block that BM25 ranks high for it but
//! that does not hold the answer.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use calls::{Agent, Call, OutputFormat, Prompt, Sampling, Stability, reading};
use futures_util::future::try_join_all;
use random::Random;
use serde_json::{Value, json};
use store::Corpus;

use crate::core::cloze;
use crate::core::error::Result;
use crate::core::profile::Profile;
use crate::core::reader::reading_call;
use crate::core::session::{Ask, Session};
use crate::grounding::{self, Shape, content_words, normal_form};

const WRITE: &str = "study.write";
const READ: &str = "study.read";

/// Blocks that are shorter, in bytes, have too little context for a question.
const SHORTEST_BLOCK: usize = 60;

/// Of this many blocks one is held out.
const HELD_OUT: usize = 10;

/// The minimum F1 between the span and what the reader reads.
const MIN_AGREEMENT: f64 = 0.8;

/// Of this many examples with the answer one has distractors beside its block.
const DISTRACTED: usize = 3;

const DISTRACTORS: usize = 2;

/// Of this many questions one has an example whose block does not hold the answer, about as in the training of the model's own
/// reader: with more, readers abstain too often.
const WITHOUT_ANSWER: usize = 4;

const MAX_QUESTION_TOKENS: usize = 48;

/// Candidate spans of a block that questions are drawn from.
const SPANS: usize = 12;

const TASK: &str = "\
You write a question about TEXT whose answer is ANSWER.
- Use the words of TEXT. Name people, things and places as TEXT does.
- The question does not contain ANSWER. It is one short line and ends with a question mark.";

/// Some passages with a question, and its answer in them ([`reading::NOT_FOUND`] if they hold none).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Heading and text of each passage.
    pub passages: Vec<(String, String)>,
    pub question: String,
    pub answer: String,
}

impl Example {
    /// The user turn of the reader's prompt.
    fn user(&self) -> String {
        let passages = self.passages.iter().map(|(heading, text)| (heading.as_str(), text.as_str()));
        reading::user(passages, &self.question)
    }

    /// The example as an object of the trainer's chat format.
    pub fn line(&self) -> Value {
        let turn = |role: &str, content: &str| json!({ "role": role, "content": content });
        let turns = [turn("system", reading::SYSTEM), turn("user", &self.user()), turn("assistant", &self.answer)];
        json!({ "messages": turns })
    }

    /// The example of an object that [`Example::line`] made: passages and question stay one text, `None` for another object.
    fn turns(line: &Value) -> Option<(&str, &str)> {
        let content = |at: usize| line["messages"][at]["content"].as_str();
        Some((content(1)?, content(2)?))
    }
}

/// Proposals that gave no question, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// The reply was cut or has no question mark, or the sentence of a cloze question is too long or too short.
    pub no_question: usize,
    /// The question contains its answer.
    pub contains_answer: usize,
    /// It shares less than two content words with its block, or less than half of its own.
    pub off_topic: usize,
    /// The same question was written before.
    pub repeated: usize,
    /// The reader reads another answer, or none.
    pub disagreement: usize,
}

impl Dropped {
    pub fn all(&self) -> usize {
        self.named().iter().map(|(_, count)| count).sum()
    }

    /// The counts with their reasons.
    pub fn named(&self) -> [(&'static str, usize); 5] {
        [
            ("no question was written", self.no_question),
            ("the question contains the answer", self.contains_answer),
            ("the question is not about its text", self.off_topic),
            ("written before", self.repeated),
            ("the reader reads another answer", self.disagreement),
        ]
    }
}

/// Scores over examples, each in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// The share of answers that are equal after SQuAD's normalisation.
    pub exact: f64,
    /// The mean of SQuAD's F1.
    pub f1: f64,
    pub examples: usize,
}

struct Block {
    heading: String,
    text: String,
    held_out: bool,
}

/// A span of a block as an answer.
struct Proposal {
    block: usize,
    span: Range<usize>,
    shape: Shape,
}

struct Kept {
    block: usize,
    question: String,
    answer: String,
}

/// Questions about a corpus, in the making.
pub struct Study {
    blocks: Vec<Block>,
    /// In the order in which they are tried.
    proposals: Vec<Proposal>,
    next: usize,
    seed: u64,
    known: HashSet<String>,
    kept: Vec<Kept>,
    pub dropped: Dropped,
}

impl Study {
    /// Proposes at most `most` spans as answers, spread over the blocks of all documents. Equal for equal corpora and seeds.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn new(corpus: &Corpus, most: usize, seed: u64) -> Result<Study> {
        let mut blocks = Vec::new();
        for document in corpus.documents()? {
            let text = corpus.document_text(document.id)?;
            let ranges = grounding::paragraphs(&text).into_iter().filter(|range| range.len() >= SHORTEST_BLOCK);
            let block = |text: &str| Block { heading: document.title.clone(), text: text.to_owned(), held_out: false };
            blocks.extend(ranges.map(|range| block(text[range].trim())));
        }
        let mut random = Random::named(seed, "study");
        random.shuffle(&mut blocks);
        let held_out = blocks.len().div_ceil(HELD_OUT).min(blocks.len() / 2);
        blocks.iter_mut().take(held_out).for_each(|block| block.held_out = true);
        let mut rounds: Vec<(usize, Proposal)> = Vec::new();
        for (block, Block { text, .. }) in blocks.iter().enumerate() {
            let found = spans_of(text, &mut random).into_iter();
            rounds.extend(found.map(|(span, shape)| Proposal { block, span, shape }).enumerate());
        }
        // Every block has its first question before one has its second. Stable: held-out blocks are first in each round.
        rounds.sort_by_key(|(round, _)| *round);
        let proposals = rounds.into_iter().map(|(_, proposal)| proposal).take(most).collect();
        let (known, kept) = (HashSet::new(), Vec::new());
        Ok(Study { blocks, proposals, next: 0, seed, known, kept, dropped: Dropped::default() })
    }

    /// Proposals in all.
    pub fn proposed(&self) -> usize {
        self.proposals.len()
    }

    /// Proposals that were tried.
    pub fn tried(&self) -> usize {
        self.next
    }

    /// Questions that were kept.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Writes and filters the questions of the next proposals, `most` at most, side by side.
    ///
    /// # Errors
    /// If a call fails.
    pub async fn advance(&mut self, most: usize, session: &Session<'_>) -> Result<()> {
        let end = (self.next + most).min(self.proposals.len());
        let proposals = &self.proposals[self.next..end];
        let written = try_join_all(proposals.iter().map(|one| write(&self.blocks[one.block].text, one, session)));
        let mut asked = Vec::new();
        for (proposal, question) in proposals.iter().zip(written.await?) {
            let block = &self.blocks[proposal.block];
            let span = &block.text[proposal.span.clone()];
            let Some(question) = question else {
                self.dropped.no_question += 1;
                continue;
            };
            if contains(&question, span) {
                self.dropped.contains_answer += 1;
            } else if !is_about(&question, &block.text) {
                self.dropped.off_topic += 1;
            } else if !self.known.insert(normal_form(&question)) {
                self.dropped.repeated += 1;
            } else {
                asked.push(Kept { block: proposal.block, question, answer: span.to_owned() });
            }
        }
        let users: Vec<String> = asked.iter().map(|kept| self.example(kept, &[]).user()).collect();
        let answers = try_join_all(users.into_iter().map(|user| read(user, session))).await?;
        self.next = end;
        for (kept, answer) in asked.into_iter().zip(answers) {
            if f1(&answer, &kept.answer) >= MIN_AGREEMENT {
                self.kept.push(kept);
            } else {
                self.dropped.disagreement += 1;
            }
        }
        Ok(())
    }

    /// The examples to train on, and those that are held out: no block of one is the source of a question of the other.
    /// Examples of one block are neighbours.
    pub fn examples(&self) -> (Vec<Example>, Vec<Example>) {
        let mut random = Random::named(self.seed, "distractors");
        let mut order: Vec<&Kept> = self.kept.iter().collect();
        order.sort_by_key(|kept| kept.block);
        let (mut training, mut held_out) = (Vec::new(), Vec::new());
        for kept in order {
            let without = self.without_answer(kept);
            let mut beside = Vec::new();
            if random.below(DISTRACTED) == 0 {
                beside.extend(without.iter().take(DISTRACTORS));
            }
            let mut example = self.example(kept, &beside);
            random.shuffle(&mut example.passages);
            let examples = if self.blocks[kept.block].held_out { &mut held_out } else { &mut training };
            examples.push(example);
            if let Some(other) = without.first().filter(|_| random.below(WITHOUT_ANSWER) == 0) {
                let Block { heading, text, .. } = &self.blocks[*other];
                let passages = vec![(heading.clone(), text.clone())];
                let answer = reading::NOT_FOUND.to_owned();
                examples.push(Example { passages, question: kept.question.clone(), answer });
            }
        }
        (training, held_out)
    }

    fn example(&self, kept: &Kept, beside: &[&usize]) -> Example {
        let passage = |at: usize| (self.blocks[at].heading.clone(), self.blocks[at].text.clone());
        let passages = std::iter::once(kept.block).chain(beside.iter().map(|at| **at)).map(passage).collect();
        Example { passages, question: kept.question.clone(), answer: kept.answer.clone() }
    }

    /// Other blocks without the answer, best for the question first; those that are held out are shown to no training example.
    fn without_answer(&self, kept: &Kept) -> Vec<usize> {
        let held_out = self.blocks[kept.block].held_out;
        let others: Vec<usize> = (0..self.blocks.len())
            .filter(|at| *at != kept.block && (held_out || !self.blocks[*at].held_out))
            .filter(|at| !contains(&self.blocks[*at].text, &kept.answer))
            .collect();
        let texts: Vec<(&str, &str)> =
            others.iter().map(|at| (self.blocks[*at].heading.as_str(), self.blocks[*at].text.as_str())).collect();
        // A block that is cut again has several ranks; the best counts.
        let mut seen = HashSet::new();
        let ranked = grounding::blocks(&kept.question, &texts);
        ranked.into_iter().map(|block| block.place.text).filter(|at| seen.insert(*at)).map(|at| others[at]).collect()
    }
}

/// Scores the reader on examples, as lines of [`Example::line`]. All calls are made side by side.
///
/// # Errors
/// If a call fails.
pub async fn score_reader(lines: &[Value], session: &Session<'_>) -> Result<Scores> {
    let turns: Vec<(&str, &str)> = lines.iter().filter_map(Example::turns).collect();
    let answers = try_join_all(turns.iter().map(|(user, _)| read((*user).to_owned(), session))).await?;
    let scored = answers.iter().zip(&turns).map(|(answer, (_, wanted))| {
        let exact = normal_form(answer) == normal_form(wanted);
        // Words that an answer shares with "Not in the documents." are no part of it.
        let none = [answer.as_str(), wanted].contains(&reading::NOT_FOUND);
        (f64::from(u8::from(exact)), if none { f64::from(u8::from(exact)) } else { f1(answer, wanted) })
    });
    let (exact, f1) = scored.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let examples = turns.len();
    let count = examples.max(1) as f64;
    Ok(Scores { exact: exact / count, f1: f1 / count, examples })
}

/// Spans of a block that can be answers: names, numbers, dates, quotations and noun phrases, in a seeded order, none within another.
fn spans_of(text: &str, random: &mut Random) -> Vec<(Range<usize>, Shape)> {
    let mut found = grounding::candidates("", &[text], grounding::MOST);
    found.retain(|candidate| !matches!(candidate.shape, Shape::Clause) && normal_form(&candidate.text).len() > 1);
    // Names and values before words and phrases: they are better answers.
    found.sort_by_key(|candidate| matches!(candidate.shape, Shape::Word | Shape::Phrase));
    let mut kept: Vec<(Range<usize>, Shape)> = Vec::new();
    for candidate in found {
        let Some(place) = candidate.places.first() else { continue };
        let overlaps = |(other, _): &(Range<usize>, Shape)| other.start < place.end && place.start < other.end;
        if kept.len() < SPANS && !kept.iter().any(overlaps) {
            kept.push((place.start..place.end, candidate.shape));
        }
    }
    random.shuffle(&mut kept);
    kept
}

/// The question, or `None` if there is none.
async fn write(text: &str, proposal: &Proposal, session: &Session<'_>) -> Result<Option<String>> {
    if session.profile(Agent::Responder) == Profile::Small {
        return Ok(cloze::question(text, proposal.span.clone(), proposal.shape));
    }
    let span = &text[proposal.span.clone()];
    let prompt = Prompt::new().system(TASK);
    let prompt = prompt.user(Stability::Volatile, format!("TEXT\n{text}\n\nANSWER\n{span}\n\nQUESTION"));
    let ask = Ask {
        agent: Agent::Responder,
        step: WRITE,
        prompt,
        thinking_tokens: 0,
        max_output_tokens: MAX_QUESTION_TOKENS,
        draw: 0,
    };
    let call = session.call(ask, OutputFormat::Text);
    let call = Call { sampling: Sampling::GREEDY, stop: vec!["\n".to_owned()], ..call };
    let reply = session.send(call).await?.text;
    let end = reply.char_indices().find(|(_, c)| matches!(c, '?' | '？' | '؟'));
    let question = end.map(|(at, mark)| reply[..at + mark.len_utf8()].trim().to_owned());
    Ok(question.filter(|question| !content_words(question).is_empty()))
}

/// What the reader answers; empty if its reply was cut.
async fn read(user: String, session: &Session<'_>) -> Result<String> {
    let reply = session.send(reading_call(READ, user, session)).await?;
    Ok(if reply.finish.is_cut() { String::new() } else { reply.text.trim().to_owned() })
}

/// True if the words of a text hold those of an answer, in order and side by side.
fn contains(text: &str, answer: &str) -> bool {
    format!(" {} ", normal_form(text)).contains(&format!(" {} ", normal_form(answer)))
}

/// True for a question of whose content words the text has two at least, and at least half.
pub(crate) fn is_about(question: &str, text: &str) -> bool {
    let known: HashSet<String> = content_words(text).into_iter().collect();
    let words = content_words(question);
    let shared = words.iter().filter(|word| known.contains(*word)).count();
    question.ends_with(['?', '？', '؟']) && shared > 1 && 2 * shared >= words.len()
}

/// SQuAD's F1: of words with their counts.
fn f1(answer: &str, wanted: &str) -> f64 {
    let (answer, wanted) = (normal_form(answer), normal_form(wanted));
    let mut left: HashMap<&str, usize> = HashMap::new();
    wanted.split(' ').filter(|word| !word.is_empty()).for_each(|word| *left.entry(word).or_default() += 1);
    let total = |text: &str| text.split_whitespace().count();
    let mut shared = 0;
    for word in answer.split_whitespace() {
        if let Some(count) = left.get_mut(word).filter(|count| **count > 0) {
            *count -= 1;
            shared += 1;
        }
    }
    if shared == 0 { 0.0 } else { 2.0 * f64::from(shared) / (total(&answer) + total(&wanted)) as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_counts_words_as_squad_does() {
        assert_eq!(f1("The Paris lamp.", "paris lamp"), 1.0);
        assert_eq!(f1("lamp", "Paris lamp"), 2.0 / 3.0);
        assert_eq!(f1("lamp lamp", "lamp"), 2.0 / 3.0);
        assert_eq!(f1("", "lamp"), 0.0);
    }

    #[test]
    fn an_answer_is_contained_by_whole_words() {
        assert!(contains("In the Paris shop.", "the paris"));
        assert!(!contains("Parisian shops", "Paris"));
    }

    #[test]
    fn names_and_values_are_proposed_and_none_overlaps_another() {
        let text = "On 7 May 1911 Ada Brook paid 900 crowns for a lamp in Paris.";
        let spans = spans_of(text, &mut Random::new(1));
        let spans: Vec<&str> = spans.into_iter().map(|(span, _)| &text[span]).collect();
        for want in ["Ada Brook", "Paris"] {
            assert!(spans.iter().any(|span| span.contains(want)), "{want} is not in {spans:?}");
        }
        let once = |span: &&str| spans.iter().filter(|other| other.contains(span)).count() == 1;
        assert!(spans.iter().all(once), "{spans:?}");
    }
}
