//! Short answers by a model that is trained to read them: the adapter [`reading::ADAPTER`] of a small model.
//!
//! The model reads the blocks of the evidence that match the question best, each in a call of its own and the best of them in one
//! more, under the prompt of its training, and writes the answer or that the documents do not have it. It reads the best sentences of
//! the blocks alone, too: a small model errs less often about one sentence than about a paragraph, and an answer that both have is
//! more probable. A sentence alone does not tell whether there is an answer, only which one it is. Where the question asks for
//! a number or a sum and the answer has none, the model chooses among the spans of what it was shown that have. The most probable
//! reading is the answer, in the spelling of the blocks if the model misspelled it. The probability that there is one combines the
//! model's own with the one fitted on the evidence ([`crate::grounding`]): the mean of their log-odds.

use std::sync::Arc;

use futures_util::future::try_join_all;

use calls::{AdapterChoice, Agent, Call, OutputFormat, Prompt, Reply, Sampling, Stability, reading};

use crate::core::error::Result;
use crate::core::quotable::Quotable;
use crate::core::session::{Ask, Session};
use crate::core::short::{is_polar, one_line};
use crate::grounding::{
    self, AnswerType, Block, Chosen, Draft, Place, ShortAnswer, Signals, blocks, logistic, normal_form, occurrences,
};

const STEP: &str = "answer.read";

/// Blocks of the evidence that are read one by one.
const READ: usize = 5;

/// Blocks that are read together.
const JOINT: usize = 3;

/// Sentences that are read alone. On 700 questions that the suite does not ask two are as good as three, and better than one.
const SENTENCES: usize = 2;

/// Spans that the model chooses among where its answer is not of the type that the question asks for.
const SPANS: usize = 16;

/// What a unit of BM25 counts beside a unit of log-probability when readings of several blocks are compared.
const RANK_WEIGHT: f64 = 0.1;

/// Tokens of an answer: those of the training have at most 15 words.
const MAX_OUTPUT_TOKENS: usize = 64;

/// The likely first tokens that a reply reports, among them that of [`reading::NOT_FOUND`].
const ALTERNATIVES: usize = 20;

/// Bytes of the first word of [`reading::NOT_FOUND`].
const FIRST_WORD: usize = 3;

/// Whether the responder has such an adapter and does not run with another one.
pub(crate) fn is_there(session: &Session<'_>) -> bool {
    let (models, agent) = (session.caller.models(), Agent::Responder);
    models.model(agent) == models.base_model(agent) && has_adapter(session)
}

fn has_adapter(session: &Session<'_>) -> bool {
    session.caller.models().adapters(Agent::Responder).iter().any(|name| name == reading::ADAPTER)
}

/// A call of the reader: the prompt of its training with this user turn, its adapter if the responder has it, and the most
/// probable reply.
pub(crate) fn reading_call(step: &'static str, user: String, session: &Session<'_>) -> Call {
    let ask = Ask {
        agent: Agent::Responder,
        step,
        prompt: Prompt::new().system(reading::SYSTEM).user(Stability::Volatile, user),
        thinking_tokens: 0,
        max_output_tokens: MAX_OUTPUT_TOKENS,
        draw: 0,
    };
    let call = session.call(ask, OutputFormat::Text);
    let adapter =
        if has_adapter(session) { AdapterChoice::Named(Arc::from(reading::ADAPTER)) } else { call.adapter.clone() };
    Call { adapter, sampling: Sampling::GREEDY, ..call }
}

/// What the model is shown: blocks, or one sentence of a block.
#[derive(Clone, Copy, PartialEq)]
struct Shown<'a> {
    blocks: &'a [Block],
    is_sentence: bool,
}

/// What the model read in one or several blocks.
struct Reading<'a> {
    shown: Shown<'a>,
    /// Empty if the blocks hold no answer.
    text: String,
    logprob: f64,
    /// The probability that the blocks hold no answer.
    not_found: f64,
}

/// The answer to a question from the evidence, none if it probably holds none; `None` if every reply about blocks was cut.
pub(crate) async fn read(question: &str, quotable: &Quotable, session: &Session<'_>) -> Result<Option<Chosen>> {
    let texts = quotable.texts();
    let evidence = quotable.headed();
    let mut best = grounding::linked(question, &evidence, blocks(question, &evidence));
    best.truncate(READ);
    let draft = Draft::new(question, &texts);
    let sentences = sentences(&best, &draft);
    let mut shown: Vec<&[Block]> = best.chunks(1).collect();
    if best.len() > 1 {
        // It has the prefix of the first call. Questions about two documents need it, and the third block is the one that the
        // first leads to.
        shown.push(&best[..best.len().min(JOINT)]);
    }
    let shown = shown.into_iter().map(|blocks| Shown { blocks, is_sentence: false });
    let shown: Vec<Shown<'_>> =
        shown.chain(sentences.chunks(1).map(|blocks| Shown { blocks, is_sentence: true })).collect();
    let replies =
        try_join_all(shown.iter().map(|shown| session.send(call(question, shown.blocks, &evidence, session)))).await?;
    // Not that of the first block: one that lacks what the question requires may score higher.
    let top_score = best.iter().map(|block| block.score).fold(f64::MIN_POSITIVE, f64::max);
    let readings: Vec<Reading<'_>> =
        shown.into_iter().zip(&replies).filter_map(|(shown, reply)| Reading::new(shown, reply)).collect();
    if readings.iter().all(|reading| reading.shown.is_sentence) {
        return Ok(None);
    }
    let speakers = grounding::speakers(&texts);
    let typed = try_join_all(readings.into_iter().map(async |reading| {
        let spans = spans(question, &reading, &draft);
        if spans.is_empty() {
            return Ok(reading);
        }
        let call = call(question, reading.shown.blocks, &evidence, session);
        let reply = session.send(Call { output_format: OutputFormat::Choice(spans), ..call }).await?;
        Result::Ok(Reading::new(reading.shown, &reply).unwrap_or(reading))
    }));
    let readings = typed.await?;
    let of_blocks = readings.iter().filter(|reading| !reading.shown.is_sentence);
    let best = of_blocks.max_by(|a, b| a.is_found().cmp(&b.is_found()).then(a.weight().total_cmp(&b.weight())));
    let not_found = best.map_or(1.0, |best| best.not_found);
    let fitted = draft.choose(None).answerable;
    let answerable = fitted.map(|fitted| logistic((log_odds(fitted) - log_odds(not_found)) / 2.0));
    let is_of_another = |place: &Place| grounding::is_of_another(question, &quotable.stating(*place), &speakers);
    let rated = |reading: &Reading<'_>| {
        let mut answer = reading.answer(question, &draft, &texts);
        let best_place = answer.places.first();
        let signals = Signals {
            logprob: reading.logprob,
            found: -log_odds(reading.not_found),
            agreement: reading.agreement(&readings),
            context: best_place.map_or(0.0, |place| draft.context(place)),
            answerable: fitted.map_or(0.0, log_odds),
            surface: draft.share(&answer.places),
            length: (answer.text.split_whitespace().count().max(1) as f64).ln(),
            rank: reading.shown.blocks[0].score / top_score,
            joint: f64::from(u8::from(reading.shown.blocks.len() > 1)),
            echo: draft.echo(&answer.text),
            is_of_another: best_place.is_some_and(is_of_another),
        };
        answer.probability = signals.right();
        (answer, signals)
    };
    // Whether there is an answer is decided by the weights, and which one by what the question requires and then by the
    // probabilities of being right. A number or a date is no person.
    let is_answer =
        |reading: &&Reading<'_>| reading.is_found() && !grounding::is_value_for_person(question, &reading.text);
    let found = readings.iter().filter(|_| best.is_some_and(Reading::is_found)).filter(is_answer);
    let mut found: Vec<(ShortAnswer, Signals)> = found.map(rated).collect();
    let required = required_type(question);
    let fits = |answer: &ShortAnswer| required.is_none_or(|required| required.is_in(&answer.text));
    found.sort_by(|(a, _), (b, _)| fits(b).cmp(&fits(a)).then(b.probability.total_cmp(&a.probability)));
    let is_of_another = found.first().is_some_and(|(_, signals)| signals.is_of_another);
    let answerable = answerable.map(|answerable| if is_of_another { answerable * OF_ANOTHER } else { answerable });
    let rating = |(answer, signals): &(ShortAnswer, Signals)| grounding::Reading {
        text: answer.text.clone(),
        signals: *signals,
    };
    let readings = found.iter().map(rating).collect();
    let answers = found.into_iter().map(|(answer, _)| answer).take(1).collect();
    Ok(Some(Chosen { answers, answerable, margin: None, readings }))
}

/// The sentences of the blocks that match the question best, each with the rank of its block.
fn sentences(blocks: &[Block], draft: &Draft) -> Vec<Block> {
    let places: Vec<Place> = blocks.iter().map(|block| block.place).collect();
    let found = draft.sentences_of(&places, SENTENCES).into_iter();
    found.map(|(at, place)| Block { place, score: blocks[at].score }).collect()
}

/// The share of the questions whose best answer a speaker says of himself, and not of the person that they name, which have an
/// answer: 7 of 35 of LoCoMo's.
const OF_ANOTHER: f64 = 0.2;

/// What hardly any answer to the question lacks.
fn required_type(question: &str) -> Option<AnswerType> {
    AnswerType::of(question).filter(|required| required.is_required())
}

/// The spans of a reading's blocks that have what the question requires, best first; empty if nothing is required or the answer
/// has it.
fn spans(question: &str, reading: &Reading<'_>, draft: &Draft) -> Vec<String> {
    let lacks = |required: &AnswerType| reading.is_found() && !required.is_in(&reading.text);
    let Some(required) = required_type(question).filter(lacks) else { return Vec::new() };
    let is_shown = |place: &Place| reading.shown.blocks.iter().any(|block| block.place.holds(place));
    let candidates = draft.candidates().iter().filter(|candidate| candidate.places.iter().any(is_shown));
    let of_type = candidates.filter(|candidate| required.is_in(&candidate.text));
    of_type.take(SPANS).map(|candidate| one_line(&candidate.text)).collect()
}

fn call(question: &str, blocks: &[Block], evidence: &[(&str, &str)], session: &Session<'_>) -> Call {
    let shown = blocks.iter().map(|block| {
        let (heading, text) = evidence[block.place.text];
        (heading, grounding::shown(text, &block.place))
    });
    let shown: Vec<_> = shown.collect();
    let passages = shown.iter().map(|(heading, text)| (*heading, &**text));
    let call = reading_call(STEP, reading::user(passages, question), session);
    Call { logprobs: Some(ALTERNATIVES), ..call }
}

impl<'a> Reading<'a> {
    /// `None` for a reply that was cut.
    fn new(shown: Shown<'a>, reply: &Reply) -> Option<Reading<'a>> {
        let text = match reply.text.trim() {
            reading::NOT_FOUND => "",
            text => without_conjunction(text),
        };
        (!reply.finish.is_cut()).then(|| Reading {
            shown,
            text: text.to_owned(),
            logprob: reply.logprobs.iter().map(|token| f64::from(token.logprob)).sum(),
            not_found: not_found(reply),
        })
    }

    fn is_found(&self) -> bool {
        !self.text.is_empty()
    }

    /// How probable it is that this reading is the answer, compared with others that are found or not like it. The log-probability
    /// of "Not in the documents." is not one of an answer.
    fn weight(&self) -> f64 {
        let found = if self.is_found() { self.logprob / 2.0 } else { 0.0 };
        found - log_odds(self.not_found) / 2.0 + RANK_WEIGHT * self.shown.blocks[0].score
    }

    /// The share of the other readings whose answer is the same or contains this one or is part of it.
    fn agreement(&self, readings: &[Reading<'_>]) -> f64 {
        let own = normal_form(&self.text);
        let others = readings.iter().filter(|other| other.shown != self.shown);
        let (mut all, mut agree) = (0, 0);
        for other in others {
            let text = normal_form(&other.text);
            all += 1;
            agree += usize::from(!text.is_empty() && (text.contains(&own) || own.contains(&text)));
        }
        if all == 0 { 0.0 } else { f64::from(agree as u32) / f64::from(all) }
    }

    /// The place in the blocks whose words the answer misspells.
    fn misspelled(&self, texts: &[&str]) -> Option<Place> {
        let place = |Place { text, start, end }: Place| {
            let (similarity, range) = grounding::nearest_spelling(&texts[text][start..end], &self.text)?;
            Some((similarity, Place { text, start: start + range.start, end: start + range.end }))
        };
        let places = self.shown.blocks.iter().filter_map(|block| place(block.place));
        places.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, place)| place)
    }

    fn answer(&self, question: &str, draft: &Draft, texts: &[&str]) -> ShortAnswer {
        let (text, score) = (self.text.clone(), self.logprob);
        let mut answer = ShortAnswer { text, places: Vec::new(), score, probability: 0.0 };
        if is_polar(&answer) {
            // The sentence that decides a question of this kind.
            let decided = draft.candidates().iter().find(|candidate| candidate.text == answer.text);
            answer.places = decided.map(|candidate| candidate.places.clone()).unwrap_or_default();
            return answer;
        }
        answer.places = occurrences(question, texts, &answer.text);
        if answer.places.is_empty() {
            answer.places.extend(self.misspelled(texts));
        }
        // Stable: within the blocks that were read, and elsewhere, the best sentence is first.
        answer.places.sort_by_key(|place| !self.shown.blocks.iter().any(|block| block.place.holds(place)));
        if let Some(Place { text, start, end }) = answer.places.first() {
            texts[*text][*start..*end].clone_into(&mut answer.text);
        }
        answer
    }
}

/// The words behind a conjunction that a reading begins with: "in the north" of "and in the north".
fn without_conjunction(text: &str) -> &str {
    let rest = ["and ", "but ", "or "].iter().find_map(|word| text.strip_prefix(word));
    rest.map_or(text, str::trim_start)
}

/// The probability that the reply says that there is no answer: that of its first token.
fn not_found(reply: &Reply) -> f64 {
    let Some(first) = reply.logprobs.first() else { return 0.0 };
    let begins = |bytes: &[u8]| bytes.len() >= FIRST_WORD && reading::NOT_FOUND.as_bytes().starts_with(bytes);
    let own = (begins(&first.bytes), first.logprob);
    let others = first.top.iter().map(|(bytes, logprob)| (begins(bytes), *logprob));
    let found = std::iter::once(own).chain(others).find(|(begins, _)| *begins);
    found.map_or(0.0, |(_, logprob)| f64::from(logprob).exp())
}

fn log_odds(p: f64) -> f64 {
    let p = p.clamp(1e-6, 1.0 - 1e-6);
    (p / (1.0 - p)).ln()
}
