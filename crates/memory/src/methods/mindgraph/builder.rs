//! The build stage: block after block, every graph's builder proposes edits (section 3.2 and appendix D.1).

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use calls::{Agent, Stability, schema};
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::Value;
use store::{Author, Corpus, DocId, Document, Layer, Meta, NewPassage, Offsets, Passage, PassageId, Span, Writer};

use super::focus::{Options, Target};
use super::graph::Graph;
use super::journal::{self, Entry};
use super::operation::{Edit, Kind, Operation, Place};
use super::prompts::{ANY_QUESTION, BUILD, BUILD_THOUGHT};
use super::quote::Quotable;
use super::view::view;
use crate::core::embed::within;
use crate::core::error::Result;
use crate::core::method::Settings;
use crate::core::origin::{shows_paths, time_at, unstated};
use crate::core::paging::windows;
use crate::core::preparation::Progress;
use crate::core::prompt::{Input, Instructions, build as prompt, phrase_of, think_first};
use crate::core::refusal::is_refusal;
use crate::core::session::{Ask, Session};
use crate::core::trace::Event;

const STEP: &str = "mindgraph.build";

/// Tokens of a block (section 4.2).
const BLOCK_TOKENS: usize = 8192;

/// Tokens of a proposal, and of one operation in it on average.
const MAX_OUTPUT_TOKENS: usize = 4096;
const OPERATION_TOKENS: usize = 80;

/// Greatest lengths of ids and quotes, in characters.
const ID_CHARS: usize = 64;
const QUOTE_CHARS: RangeInclusive<usize> = 12..=600;

/// Words of a node's description and of a relation.
const CONTENT_WORDS: usize = 150;
const RELATION_WORDS: usize = 12;

/// Builds every graph of the settings, as far as it is not built. The edits of a block are durable before the next
/// is read.
///
/// # Errors
/// If a call or the store fails; the blocks read before remain stored.
pub async fn build(writer: &mut Writer, session: &Session<'_>, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    cut(writer, session)?;
    let session = &steady(session);
    let mut builds =
        session.settings.options::<Options>().targets().into_iter().map(|target| Build::new(target, writer));
    let mut builds = builds.by_ref().collect::<Result<Vec<_>>>()?;
    let blocks = writer.passages(Layer::Block)?;
    let of = builds.iter().map(|build| build.pending.len()).sum();
    let mut done = 0;
    for (number, block) in (1..).zip(&blocks) {
        let open = builds.iter().filter(|build| build.pending.contains(&block.id)).count();
        if open > 0 {
            progress(Progress { step: "building graphs", unit: "block", done, of });
            read(number, blocks.len(), block, &mut builds, writer, session).await?;
            done += open;
        }
        for build in &mut builds {
            let entry = build.entry(block.id, writer)?;
            entry.replay(block, &mut build.graph);
        }
    }
    if of > 0 {
        progress(Progress { step: "building graphs", unit: "block", done, of });
    }
    Ok(())
}

/// Counts the calls that [`build`] would make.
pub(super) fn missing(corpus: &Corpus, session: &Session<'_>) -> Result<usize> {
    let targets = session.settings.options::<Options>().targets();
    let mut calls = 0;
    for document in corpus.documents()? {
        if let Some(blocks) = cut_anew(document.id, corpus, session)? {
            calls += blocks.len() * targets.len();
            continue;
        }
        let blocks: BTreeSet<PassageId> =
            corpus.passages_of(document.id, Layer::Block)?.iter().map(|block| block.id).collect();
        for target in &targets {
            calls += journal::pending(corpus, target)?.intersection(&blocks).count();
        }
    }
    Ok(calls)
}

/// Cuts every document that has no blocks, or blocks that the builder cannot read.
fn cut(writer: &mut Writer, session: &Session<'_>) -> Result<()> {
    for document in writer.documents()? {
        if let Some(blocks) = cut_anew(document.id, writer, session)? {
            writer.put_layer(document.id, Layer::Block, &blocks)?;
        }
    }
    Ok(())
}

/// The blocks of a document, if it has to be cut anew. Blocks that are smaller than necessary are kept, since reading a
/// text again has the highest cost.
fn cut_anew(document: DocId, corpus: &Corpus, session: &Session<'_>) -> Result<Option<Vec<NewPassage>>> {
    let most = block_tokens(session);
    let old = corpus.passages_of(document, Layer::Block)?;
    let fits = |block: &Passage| block.tokens as usize <= most;
    if !old.is_empty() && old.iter().all(fits) && session.settings.options::<Options>().block_tokens.is_none() {
        return Ok(None);
    }
    let text = corpus.document_text(document)?;
    let pages = corpus.passages_of(document, Layer::Page)?;
    let block = |(bytes, tokens): (Range<usize>, u32)| {
        let meta = Meta { time: time_at(&pages, bytes.start), ..Meta::default() };
        NewPassage { layer: Layer::Block, bytes, tokens, meta }
    };
    let blocks: Vec<NewPassage> =
        windows(&text, most, |text| session.caller.tokens().token_spans(Agent::Builder, text))
            .into_iter()
            .map(block)
            .collect();
    let same = old.len() == blocks.len() && old.iter().zip(&blocks).all(|(old, new)| old.span.bytes() == new.bytes);
    Ok((!same).then_some(blocks))
}

/// The paper's size, or a quarter of the context: the graph, the question and the reply also need room.
fn block_tokens(session: &Session<'_>) -> usize {
    let by_context = (session.context(Agent::Builder) / 4).clamp(64, BLOCK_TOKENS);
    session.settings.options::<Options>().block_tokens.unwrap_or(by_context)
}

/// The session with greedy decoding, so that what is stored does not depend on sampling.
pub(super) fn steady<'a>(session: &Session<'a>) -> Session<'a> {
    let settings = Settings { temperature: 0.0, ..session.settings.clone() };
    Session { settings, on_text: None, ..*session }
}

/// A graph under construction.
struct Build {
    target: Target,
    note: String,
    pending: BTreeSet<PassageId>,
    graph: Graph,
}

impl Build {
    fn new(target: Target, corpus: &Corpus) -> Result<Build> {
        let pending = journal::pending(corpus, &target)?;
        Ok(Build { note: target.note(), target, pending, graph: Graph::default() })
    }

    /// The stored result of a block.
    fn entry(&self, block: PassageId, corpus: &Corpus) -> Result<Entry> {
        let notes = corpus.notes(block)?;
        let note = notes.iter().find(|note| note.name == self.note);
        Ok(note.map_or_else(Entry::default, |note| journal::entry(&note.text)))
    }
}

/// Reads one block for every graph that needs it, all calls concurrently, and stores the results. A failed call
/// does not discard the other replies.
async fn read(
    number: usize,
    of: usize,
    block: &Passage,
    builds: &mut [Build],
    writer: &mut Writer,
    session: &Session<'_>,
) -> Result<()> {
    let text = writer.passage_text(block.id)?;
    let with_path = shows_paths(Agent::Builder, writer, session)?;
    let document = if with_path { Some(writer.document(block.document)?) } else { None };
    let path = document.as_ref().map(Document::short_path);
    let time = unstated(block.meta.time.as_deref(), &text);
    let reading = Reading { number, of, text: &text, path, time, several: builds.len() > 1 };
    let open: Vec<&Build> = builds.iter().filter(|build| build.pending.contains(&block.id)).collect();
    let proposals = join_all(open.iter().map(|build| propose(&reading, build, session))).await;
    let (quotable, offsets) = (Quotable::new(&text), Offsets::new(&text));
    let mut first_failure = Ok(());
    for (build, proposal) in open.into_iter().zip(proposals) {
        let (entry, unread) = match proposal {
            Ok(Some(proposal)) => proposal.resolve(&quotable, &offsets, block.span),
            Ok(None) => (Entry::skipped(), Vec::new()),
            Err(failure) => {
                first_failure = first_failure.and(Err(failure));
                continue;
            }
        };
        writer.put_notes(block.id, &[(&build.note, &entry.text())], &author(session))?;
        let refused = entry.replay(block, &mut build.graph.clone());
        session.trace.record(Event::Block {
            block: block.id.0,
            number,
            of,
            question: build.target.text().to_owned(),
            skipped: entry.skipped,
            edits: entry.edits.len(),
            unverified: entry.edits.iter().filter(|edit| edit.is_unverified()).count(),
            refused: [unread, refused].concat(),
        })?;
    }
    first_failure
}

impl Target {
    /// The question as the builder reads it.
    pub(super) fn text(&self) -> &str {
        match self {
            Target::Any => ANY_QUESTION,
            Target::Question(question) => question,
        }
    }
}

impl Edit {
    /// True if its quote was not found.
    fn is_unverified(&self) -> bool {
        self.place.is_none() && !matches!(self.operation, Operation::DeleteNode { .. })
    }
}

/// The author of edits: the model, and its instructions.
fn author(session: &Session<'_>) -> Author {
    let prompt = format!("{STEP} {}", store::Digest::of(&[BUILD.task, BUILD.rules, BUILD.cue]));
    Author { model: session.caller.models().model(Agent::Builder).to_owned(), prompt }
}

/// The block being read.
struct Reading<'a> {
    number: usize,
    of: usize,
    text: &'a str,
    /// The folder and the name of its document, if paths are shown.
    path: Option<&'a str>,
    /// When it begins, if it is a conversation and the text does not say so.
    time: Option<&'a str>,
    /// True if the call has several questions.
    several: bool,
}

/// The builder's reply. Operations are parsed one by one, so that an invalid one does not discard the others.
#[derive(Debug, Deserialize)]
struct Operations {
    operations: Vec<Value>,
}

/// The edits that the builder proposes for a block.
#[derive(Debug)]
struct Proposal {
    operations: Vec<Value>,
    /// True if the reply was cut and its last operation left out.
    cut: bool,
    /// The nodes whose contents the builder was not shown.
    unseen: BTreeSet<String>,
}

/// Requests the edits of one block; none if no reply is valid, or if the block does not fit even without the graph.
async fn propose(reading: &Reading<'_>, build: &Build, session: &Session<'_>) -> Result<Option<Proposal>> {
    let room = session.context(Agent::Builder);
    let (thinking_tokens, max_output_tokens) =
        (session.thinking_tokens(Agent::Builder), MAX_OUTPUT_TOKENS.min(room / 8));
    let most = (max_output_tokens / OPERATION_TOKENS).max(1);
    let rules =
        format!("{}\nThe list may have {most} objects, those that matter most for QUESTION first.", BUILD.rules);
    let rules = think_first(&rules, BUILD_THOUGHT, thinking_tokens);
    let instructions = Instructions { rules: &rules, ..BUILD };
    let ask = |graph: &str| Ask {
        agent: Agent::Builder,
        step: STEP,
        prompt: prompt(session.settings.layout, instructions, inputs(reading, &build.target, graph)),
        thinking_tokens,
        max_output_tokens,
        draw: 0,
    };
    let shown = view(&build.graph, room.saturating_sub(thinking_tokens + max_output_tokens), ask, session)?;
    let known: Vec<&str> = shown.ids().collect();
    let reply = session.json_with_ending(ask(&shown.text), form(reading.text, &known, most), |_| Ok(())).await;
    let Some((Operations { mut operations }, finish)) = session.none_if_too_long(STEP, reply)? else {
        return Ok(None);
    };
    if finish.is_cut() {
        operations = complete(operations);
        if operations.is_empty() {
            return Ok(None);
        }
    }
    let unseen = build.graph.ids().filter(|id| !shown.describes(id)).map(str::to_owned).collect();
    Ok(Some(Proposal { operations, cut: finish.is_cut(), unseen }))
}

/// The operations of a reply that was cut, without the last, which the model did not complete, and without repetitions.
fn complete(operations: Vec<Value>) -> Vec<Value> {
    let before_last = operations.len().saturating_sub(1);
    let mut complete: Vec<Value> = Vec::new();
    for operation in operations.into_iter().take(before_last) {
        if !complete.contains(&operation) {
            complete.push(operation);
        }
    }
    complete
}

/// The inputs in the paper's order. Shared-first sorts by stability: the calls of one question share the question and
/// the head of the graph, those of several questions the block.
fn inputs(reading: &Reading<'_>, target: &Target, graph: &str) -> Vec<Input> {
    use Stability::{AppendOnly, Corpus, Volatile};
    let [question, state, block] =
        if reading.several { [AppendOnly, Volatile, Corpus] } else { [Corpus, AppendOnly, Volatile] };
    let Reading { number, of, text, path, time, .. } = reading;
    let path = path.map_or_else(String::new, |path| format!(", from {path}"));
    let time = time.map_or_else(String::new, |time| format!(", of {time}"));
    let text = format!("(block {number}/{of}{path}{time})\n\"\"\"\n{}\n\"\"\"", text.trim_end());
    vec![
        Input::new("QUESTION", question, target.text()),
        Input::new("GRAPH_STATE", state, graph),
        Input::new("TEXT_BLOCK", block, text),
    ]
}

/// The schema of a proposal: quotes are words of the block, and only shown nodes can be edited or deleted.
fn form(text: &str, known: &[&str], most: usize) -> Value {
    let quote = || schema::quote_of(text, QUOTE_CHARS);
    let id = || schema::identifier(ID_CHARS);
    let mut operations = vec![
        schema::object([
            ("op", schema::constant("add_node")),
            ("id", id()),
            ("type", schema::one_of(Kind::NAMES)),
            ("content", phrase_of(CONTENT_WORDS)),
            ("src", quote()),
        ]),
        schema::object([
            ("op", schema::constant("add_edge")),
            ("source", id()),
            ("target", id()),
            ("relation", phrase_of(RELATION_WORDS)),
            ("src", quote()),
        ]),
    ];
    if !known.is_empty() {
        let known = || schema::one_of(known.iter().copied());
        operations.push(schema::object([
            ("op", schema::constant("edit_node")),
            ("id", known()),
            ("content", phrase_of(CONTENT_WORDS)),
            ("src", quote()),
        ]));
        operations.push(schema::object([("op", schema::constant("delete_node")), ("id", known())]));
    }
    schema::object([("operations", schema::array(schema::any_of(operations), most))])
}

impl Proposal {
    /// Finds the places of all quotes; returns what was not used, with reasons.
    fn resolve(self, quotable: &Quotable<'_>, offsets: &Offsets<'_>, block: Span) -> (Entry, Vec<String>) {
        let mut unread: Vec<String> = self.cut.then(|| CUT.to_owned()).into_iter().collect();
        let mut edits = Vec::new();
        for operation in self.operations {
            match serde_json::from_value::<Operation>(operation) {
                Ok(operation) if operation.content().is_some_and(is_refusal) => {
                    let id = operation.described().unwrap_or_default();
                    unread.push(format!("`{id}` only states that the text has no answer"));
                }
                Ok(operation) => {
                    let found = quotable.find(operation.quote());
                    let place = found.and_then(|(bytes, how)| {
                        offsets.span(bytes).map(|inner| Place { span: within(block, inner), how })
                    });
                    let unseen = operation.described().is_some_and(|id| self.unseen.contains(id));
                    edits.push(Edit { operation, place, unseen });
                }
                Err(error) => unread.push(format!("no operation: {error}")),
            }
        }
        (Entry { skipped: false, cut: self.cut, edits }, unread)
    }
}

/// The entry of the trace for the last operation of a reply that was cut.
const CUT: &str = "the reply was cut: its last operation is not used";
