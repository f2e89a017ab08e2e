//! Try-answer (equation 3, appendix D): an answer, or the failure signal.

use calls::{Agent, Stability, schema};
use serde::Deserialize;
use serde_json::json;
use store::PassageId;

use super::agents::encode_ask;
use super::budget::shares;
use super::knowledge::Knowledge;
use super::options::Options;
use super::pack::{Packed, room};
use super::prompts::{ANSWER, CHOOSE};
use super::retrieve::Budgets;
use crate::core::choices;
use crate::core::error::Result;
use crate::core::prompt::{Input, Instructions, build, in_form, phrase_of, string_of, words};
use crate::core::refusal::is_refusal;
use crate::core::session::{Ask, Session};

/// Shares of the context (appendix B.4): veridical, semantic, episodic, history.
const SHARES: [usize; 4] = [8, 2, 2, 1];

/// Tokens of a reply (released code: 2,048).
const MAX_OUTPUT_TOKENS: usize = 2048;

/// Tokens kept free in a prompt for a probe.
const PROBE_TOKENS: usize = 200;

/// The context of try-answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    pub layers: Vec<(Knowledge, Packed)>,
    pub history: Packed,
}

impl Context {
    fn packed(&self) -> impl Iterator<Item = &Packed> {
        self.layers.iter().map(|(_, packed)| packed).chain([&self.history])
    }

    /// All that it shows.
    pub fn text(&self) -> String {
        let texts = self.packed().map(|packed| packed.text.as_str()).filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// The chunks that it comes from.
    pub fn sources(&self) -> Vec<PassageId> {
        let pieces = self.packed().flat_map(|packed| &packed.pieces);
        let mut chunks: Vec<PassageId> = pieces.flat_map(|piece| piece.sources.iter().copied()).collect();
        chunks.sort_unstable();
        chunks.dedup();
        chunks
    }
}

/// Divides the context budget, as far as both try-answer and mem-encode can read it, among the layers in use and the
/// history.
pub(super) fn budgets(question: &str, session: &Session<'_>) -> (Budgets, usize) {
    let options: Options = session.settings.options();
    let answer_room = room(&ask(question, &Context::default(), session), session);
    let encode_room = room(&encode_ask(question, "", "", session), session).saturating_sub(PROBE_TOKENS);
    let total = options.context_tokens.min(answer_room).min(encode_room);
    let used = Knowledge::ALL.map(|layer| options.uses(layer));
    let weights = [0, 1, 2, 3].map(|place| if place == 3 || used[place] { SHARES[place] } else { 0 });
    let shares = shares(total, &weights);
    (Knowledge::ALL.into_iter().zip(shares.iter().copied()).collect(), shares[3])
}

fn ask(question: &str, context: &Context, session: &Session<'_>) -> Ask {
    let mut inputs = Vec::new();
    for layer in session.settings.options::<Options>().used() {
        let name = match layer {
            Knowledge::Veridical => "DETAIL_ARTICLE",
            Knowledge::Semantic => "SUMMARY_BY_SEMANTIC",
            Knowledge::Episodic => "SUMMARY_BY_EPISODIC",
        };
        let shown = context.layers.iter().filter(|(of, _)| *of == layer).map(|(_, packed)| packed.text.as_str());
        inputs.push(Input::new(name, Stability::Volatile, or_nothing(shown.collect::<Vec<_>>().join("\n\n"))));
    }
    inputs.push(Input::new("HISTORY_INFO", Stability::Volatile, or_nothing(context.history.text.clone())));
    inputs.push(Input::new("QUESTION", Stability::Volatile, question));
    inputs.extend(choices::input(&session.settings));
    let instructions = if session.settings.choices.is_empty() { ANSWER } else { CHOOSE };
    let rules = format!("{}\n{}", instructions.rules, Sections::of(session).rule());
    let rules = in_form(&rules, "\"final_answer\", unless it is \"*\"", &session.settings);
    Ask {
        agent: Agent::Responder,
        step: "comorag.answer",
        prompt: build(session.settings.layout, Instructions { rules: &rules, ..instructions }, inputs),
        thinking_tokens: 0,
        max_output_tokens: session.output_tokens(Agent::Responder, MAX_OUTPUT_TOKENS),
        draw: 0,
    }
}

fn or_nothing(text: String) -> String {
    if text.is_empty() { "Nothing.".to_owned() } else { text }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Attempt {
    #[allow(dead_code)] // reasoning before the answer; for readers of the trace
    content_understanding: String,
    #[allow(dead_code)]
    question_analysis: Vec<String>,
    #[allow(dead_code)]
    #[serde(default)]
    options_analysis: Vec<String>,
    final_answer: String,
}

/// Words of an answer.
const ANSWER_WORDS: usize = 100;

/// The lengths of the sections before the answer, in words: three quarters of a reply at most, so that the answer has room
/// after them.
struct Sections {
    understanding: usize,
    point: usize,
    /// Nothing for an open question.
    option: Option<usize>,
}

/// Points of the analysis of a question.
const MAX_POINTS: usize = 4;

impl Sections {
    fn of(session: &Session<'_>) -> Sections {
        let quarter = words(session.output_tokens(Agent::Responder, MAX_OUTPUT_TOKENS)) / 4;
        let options = session.settings.choices.len();
        let option = (options > 0).then(|| (quarter / options.max(1)).max(1));
        Sections { understanding: quarter, point: quarter / MAX_POINTS, option }
    }

    /// The lengths as the prompt states them.
    fn rule(&self) -> String {
        let Sections { understanding, point, option } = self;
        let points = format!("each of at most {MAX_POINTS} points of \"question_analysis\" {point} words");
        let options =
            option.map_or_else(String::new, |words| format!(", and each of \"options_analysis\" {words} words"));
        format!("\"content_understanding\" may have {understanding} words, {points}{options}.")
    }
}

/// The failure signal.
const FAILURE: &str = "*";

/// Tries to answer; none is the failure signal, a refusal in words, or an invalid reply.
pub(super) async fn try_answer(question: &str, context: &Context, session: &Session<'_>) -> Result<Option<String>> {
    let ask = ask(question, context, session);
    let labels = choices::labels(&session.settings);
    let sections = Sections::of(session);
    let understanding = ("content_understanding", string_of(sections.understanding));
    let questions = ("question_analysis", schema::array(string_of(sections.point), MAX_POINTS));
    let last = "final_answer";
    let schema = match sections.option {
        None => schema::object([understanding, questions, (last, phrase_of(ANSWER_WORDS))]),
        Some(option) => {
            let allowed: Vec<&str> = labels.iter().map(String::as_str).chain([FAILURE]).collect();
            let options = ("options_analysis", schema::array(string_of(option), labels.len()));
            schema::object([understanding, questions, options, (last, json!({ "enum": allowed }))])
        }
    };
    let check = |attempt: &Attempt| match attempt.final_answer.trim() {
        "" => Err("it has no final_answer".to_owned()),
        other if !labels.is_empty() && other != FAILURE && !labels.iter().any(|label| label == other) => {
            Err(format!("there is no option {other}"))
        }
        _ => Ok(()),
    };
    let attempt = session.json(ask, schema, check).await?;
    let Some(Attempt { final_answer, .. }) = attempt else { return Ok(None) };
    let answer = final_answer.trim();
    if is_failure(answer) {
        return Ok(None);
    }
    Ok(Some(choices::with_text(answer, &session.settings)))
}

/// Whether an answer is the failure signal, with or without words after it, or a refusal in words alone. Stars on either side
/// of words are emphasis.
fn is_failure(answer: &str) -> bool {
    let is_signal = |rest: &str| rest.starts_with(char::is_whitespace) || !rest.contains(FAILURE);
    is_refusal(answer)
        || answer.strip_prefix(FAILURE).map(|rest| rest.trim_start_matches(FAILURE)).is_some_and(is_signal)
}
