//! The answer stage: a model reads the graph, uses tools, and answers (section 3.3 and appendix D.2).

use std::collections::BTreeSet;
use std::ops::Range;

use calls::{Agent, OutputFormat, Prompt, Stability, schema};
use serde::Deserialize;
use serde_json::Value;
use store::{Corpus, DocId, Layer, PassageId, Span};

use super::focus::Options;
use super::graph::{Edge, Graph, Source};
use super::journal;
use super::operation::Place;
use super::prompts::{ANSWER, ANSWER_THOUGHT};
use super::tools::Tools;
use super::view::view;
use crate::core::access::Access;
use crate::core::answer;
use crate::core::choices;
use crate::core::error::Result;
use crate::core::outcome::{Answer, Confidence};
use crate::core::prompt::{Input, Instructions, build, in_form, phrase_of, think_first, words};
use crate::core::quotable::Quotable;
use crate::core::run::not_ready;
use crate::core::session::{Ask, Session};
use crate::core::span;
use crate::core::trace::Event;

const STEP: &str = "mindgraph.answer";

/// Tokens of a turn: calls of tools, or the answer.
const MAX_OUTPUT_TOKENS: usize = 2048;

/// Calls of tools in one turn, and nodes that an answer cites.
const MAX_TOOL_CALLS: usize = 4;
const MAX_CITED: usize = 16;

/// The final answer of the model.
#[derive(Debug, Clone, Deserialize)]
struct Final {
    answer: String,
    cited_nodes: Vec<String>,
    confidence: Confidence,
}

/// The answer where the last turn was cut: what a model had not finished is no decision.
const NO_ANSWER: &str = "The graph does not say.";

/// Answers a question from the graph that was built for it.
pub(super) async fn ask(question: &str, access: Access<'_>, session: &Session<'_>) -> Result<Answer> {
    let target = session.settings.options::<Options>().target(question);
    let blocks = access.count(Layer::Block)?;
    let pending = journal::pending(&access, &target)?.len();
    if pending > 0 || blocks == 0 {
        return Err(not_ready(&access, pending, blocks, &session.settings));
    }
    let graph = journal::graph(&access, &target)?;
    if span::applies(session) {
        return from_pages(question, &graph, &access, session).await;
    }
    let mut tools = Tools::new(graph, access);
    let (last, model) = converse(question, &mut tools, session).await?;
    let Final { answer, cited_nodes, confidence } = last;
    let answer = choices::with_text(&answer, &session.settings);
    let cited = cited_nodes.clone();
    session.trace.record(Event::Answer { step: STEP.to_owned(), cited, confidence })?;
    session.stream(&answer);
    let quotable = Quotable::around(&evidence(&cited_nodes, &tools)?, &tools.access)?;
    let answer = answer::grounded(question, answer, None, &quotable, session).await?;
    Ok(Answer { model, confidence: Some(confidence), cited_nodes, ..answer })
}

/// The answer of a small model, which uses no tools: chosen from the pages of the graph's quotes.
async fn from_pages(question: &str, graph: &Graph, corpus: &Corpus, session: &Session<'_>) -> Result<Answer> {
    let mut pages: Vec<PassageId> = Vec::new();
    for source in graph.nodes.iter().flat_map(|node| &node.sources) {
        let Some(place) = source.place else { continue };
        let page = page_of(source, place, corpus)?;
        if !pages.contains(&page) {
            pages.push(page);
        }
    }
    if pages.is_empty() {
        session.stream(NO_ANSWER);
        let note = Some("the model built a graph without a quote of the text".to_owned());
        return Ok(Answer { note, ..answer::withheld(NO_ANSWER, session) });
    }
    let (ask, shown) = answer::question_on_pages(question, &pages, "graph", corpus, session)?;
    let pages = if span::reads_blocks(session) { pages } else { shown };
    answer::respond(question, ask, &pages, corpus, session).await
}

/// The page that a quote begins on, or its block.
fn page_of(source: &Source, place: Place, corpus: &Corpus) -> Result<PassageId> {
    let pages = corpus.passages_of(source.document, Layer::Page)?;
    let on = |span: &Span| (span.start_byte..span.end_byte).contains(&place.span.start_byte);
    Ok(pages.iter().find(|page| on(&page.span)).map_or(source.block, |page| page.id))
}

/// Runs the tool loop, whose last round must answer. Returns the answer and the model's name.
async fn converse(question: &str, tools: &mut Tools<'_>, session: &Session<'_>) -> Result<(Final, String)> {
    let labels = choices::labels(&session.settings);
    let (mut ask, shown) = opening(question, &tools.graph, session)?;
    tools.shown.extend(shown);
    let rounds = session.settings.options::<Options>().max_rounds.max(1);
    let mut full = false;
    let mut round = 0;
    loop {
        round += 1;
        let (last, ends) = (full || round >= rounds, round + 1 == rounds);
        ask.draw = round as u64 - 1;
        let output_format = OutputFormat::Json(form(tools, last, ask.max_output_tokens, &labels));
        let reply = session.send(session.call(ask.clone(), output_format)).await?;
        let turn = match reply.finish.is_cut() {
            true => Turn::Cut,
            false => read(&reply.text, tools, &labels),
        };
        let has_room = |results: &str| has_room(next(&ask, &reply.text, results, ends), &ask, session);
        let results = match turn {
            Turn::Final(answer, complaints) if complaints.is_empty() || last => {
                return Ok((known(answer, tools), reply.model));
            }
            Turn::Final(_, complaints) => complaints.join("\n"),
            Turn::Tools(calls) if !last => use_tools(&calls, tools, has_room, session).await?,
            Turn::Tools(_) => "there are no more tools".to_owned(),
            Turn::Nonsense(reason) => format!("error: {reason}"),
            Turn::Cut if last => {
                let answer = NO_ANSWER.to_owned();
                return Ok((Final { answer, cited_nodes: Vec::new(), confidence: Confidence::Low }, reply.model));
            }
            Turn::Cut => CUT.to_owned(),
        };
        if last {
            session.trace.record(Event::Fallback { step: STEP.to_owned(), reason: results })?;
            let answer = reply.text.trim().to_owned();
            return Ok((Final { answer, cited_nodes: Vec::new(), confidence: Confidence::Low }, reply.model));
        }
        full = results.is_empty() || !has_room(&results);
        ask.prompt = if full { next(&ask, &reply.text, FULL, true) } else { next(&ask, &reply.text, &results, ends) };
    }
}

/// Calls tools and returns the results that the chat has room for, in their order, with a note about the others; nothing
/// if there is room for none. A call whose result has no room is not offered again, since the room does not grow.
async fn use_tools(
    calls: &[Value],
    tools: &mut Tools<'_>,
    has_room: impl Fn(&str) -> bool,
    session: &Session<'_>,
) -> Result<String> {
    let mut results: Vec<String> = Vec::new();
    let mut left_out: Vec<&Value> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        let result = tools.call(call, session).await?;
        results.push(result.text.clone());
        // The note must have room even if it has to name all remaining calls.
        let others: Vec<&Value> = left_out.iter().copied().chain(&calls[at + 1..]).collect();
        if has_room(&noted(&results, &others)) {
            tools.give(result);
        } else {
            tools.leave_out(result);
            results.pop();
            left_out.push(call);
        }
    }
    if !left_out.is_empty() {
        session.trace.record(Event::Fallback { step: STEP.to_owned(), reason: no_room(&left_out) })?;
    }
    Ok(if results.is_empty() { String::new() } else { noted(&results, &left_out) })
}

/// Results of tools, and which calls have none because there is no room.
fn noted(results: &[String], left_out: &[&Value]) -> String {
    let note = (!left_out.is_empty()).then(|| no_room(left_out));
    results.iter().cloned().chain(note).collect::<Vec<_>>().join("\n\n")
}

fn no_room(calls: &[&Value]) -> String {
    let calls: Vec<String> = calls.iter().map(ToString::to_string).collect();
    format!("There is no room for the results of {}.", calls.join(", "))
}

/// The first turn: the graph, its size and the question; and the ids of the nodes that it has room for.
fn opening(question: &str, graph: &Graph, session: &Session<'_>) -> Result<(Ask, Vec<String>)> {
    let (thinking_tokens, max_output_tokens) =
        (session.thinking_tokens(Agent::Responder), session.output_tokens(Agent::Responder, MAX_OUTPUT_TOKENS));
    let ask = |shown: &str| {
        let mut inputs = vec![
            Input::new("MIND_GRAPH", Stability::Corpus, shown),
            Input::new("GRAPH_STATS", Stability::Corpus, graph.stats()),
            Input::new("QUESTION", Stability::Volatile, question),
        ];
        inputs.extend(choices::input(&session.settings));
        let rules = match session.settings.choices.is_empty() {
            true => format!("{}\nThe answer may have {} words.", ANSWER.rules, words(max_output_tokens) / 2),
            false => format!("{}{CHOICE}", ANSWER.rules),
        };
        let rules = in_form(&rules, "\"answer\"", &session.settings);
        let rules = think_first(&rules, ANSWER_THOUGHT, thinking_tokens);
        let prompt = build(session.settings.layout, Instructions { rules: &rules, ..ANSWER }, inputs);
        Ask { agent: Agent::Responder, step: STEP, prompt, thinking_tokens, max_output_tokens, draw: 0 }
    };
    let context = session.context(Agent::Responder);
    // A quarter of the context is reserved for turns and the results of tools, in addition to what `has_room` requires.
    let reserved = 2 * (thinking_tokens + max_output_tokens) + NOTE_TOKENS + context / 4;
    let shown = view(graph, context.saturating_sub(reserved), ask, session)?;
    Ok((ask(&shown.text), shown.ids().map(str::to_owned).collect()))
}

/// Follows the rules where there are options.
const CHOICE: &str = "\nOPTIONS holds the answers that QUESTION may have: \"answer\" is the letter of the best of them in \
                      square brackets.";

const GO_ON: &str = "Use tools or answer QUESTION, as JSON.";
const END: &str = "Answer QUESTION now, as JSON.";
const FULL: &str = "There is no room for more passages.";
const CUT: &str = "error: this turn was cut before its end and is not used; write a shorter one";

/// More tokens than the note that there is no more room has.
const NOTE_TOKENS: usize = 64;

/// The chat with a turn and its results added.
fn next(ask: &Ask, turn: &str, results: &str, ends: bool) -> Prompt {
    let text = format!("{results}\n\n{}", if ends { END } else { GO_ON });
    ask.prompt.clone().assistant(turn).user(Stability::AppendOnly, text)
}

/// True if a prompt leaves room for one more turn, the note that there is no more room, and the answer.
fn has_room(prompt: Prompt, ask: &Ask, session: &Session<'_>) -> bool {
    let tokens = session.prompt_tokens(&Ask { prompt, ..ask.clone() });
    tokens + 2 * ask.reply_tokens() + NOTE_TOKENS <= session.context(Agent::Responder)
}

/// The form of a turn: calls of tools or the answer; in the last turn the answer.
fn form(tools: &Tools<'_>, last: bool, max_output_tokens: usize, labels: &[String]) -> Value {
    let answer = match labels.is_empty() {
        true => phrase_of(words(max_output_tokens) / 2),
        false => schema::one_of(labels.iter().map(String::as_str)),
    };
    let answer = schema::object([
        ("answer", answer),
        ("cited_nodes", schema::array_of(tools.shown_ids(), MAX_CITED)),
        ("confidence", schema::one_of(["high", "medium", "low"])),
    ]);
    match tools.form().filter(|_| !last) {
        Some(call) => {
            let calls = schema::at_least_one(schema::array(call, MAX_TOOL_CALLS));
            schema::any_of(vec![schema::object([("tool_calls", calls)]), answer])
        }
        None => answer,
    }
}

/// A reply of the model.
enum Turn {
    Tools(Vec<Value>),
    /// An answer, and what is wrong with it.
    Final(Final, Vec<String>),
    Nonsense(String),
    /// A turn that the model did not end: neither its calls nor its answer are a decision.
    Cut,
}

fn read(text: &str, tools: &Tools<'_>, labels: &[String]) -> Turn {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return Turn::Nonsense(format!("this is not the JSON that was asked for ({error})")),
    };
    if let Some(calls) = value.get("tool_calls").and_then(Value::as_array).filter(|calls| !calls.is_empty()) {
        return Turn::Tools(calls.iter().take(MAX_TOOL_CALLS).cloned().collect());
    }
    match serde_json::from_value::<Final>(value) {
        Ok(answer) => {
            let unknown = answer.cited_nodes.iter().filter(|id| tools.graph.node(id).is_none());
            let complaints = unknown.map(|id| format!("error: {}", tools.unknown(id)));
            let named = labels.is_empty() || labels.iter().any(|label| label == answer.answer.trim());
            let no_option = (!named).then(|| format!("error: there is no option {}", answer.answer));
            let complaints = complaints.chain(no_option).collect();
            Turn::Final(answer, complaints)
        }
        Err(error) => Turn::Nonsense(format!("this is neither a call of tools nor an answer ({error})")),
    }
}

/// The answer without nodes that are not there, and with each node once.
fn known(answer: Final, tools: &Tools<'_>) -> Final {
    let mut seen = BTreeSet::new();
    let mut cited_nodes = answer.cited_nodes;
    cited_nodes.retain(|id| tools.graph.node(id).is_some() && seen.insert(id.clone()));
    Final { answer: answer.answer.trim().to_owned(), cited_nodes, confidence: answer.confidence }
}

/// What an answer rests on: the quotes of cited nodes and of the edges between two of them, as far as they were found, and the
/// passages that were looked up.
fn evidence(cited: &[String], tools: &Tools<'_>) -> Result<Vec<(DocId, Range<usize>)>> {
    let nodes = cited.iter().filter_map(|id| tools.graph.node(id)).flat_map(|node| &node.sources);
    let between = |edge: &&Edge| cited.contains(&edge.source) && cited.contains(&edge.target);
    let edges = tools.graph.edges.iter().filter(between).flat_map(|edge| &edge.sources);
    let quotes = nodes.chain(edges).filter_map(|source| Some((source.document, source.place?.span.bytes())));
    let mut evidence: Vec<_> = quotes.collect();
    evidence.extend(tools.passages()?);
    Ok(evidence)
}
