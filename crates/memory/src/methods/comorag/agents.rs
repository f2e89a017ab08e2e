//! The agents of the loop (section 2.3, appendix D): mem-encode, self-probe and mem-fuse.

use calls::{Agent, Stability, schema};
use serde::Deserialize;

use super::names::normal;
use super::pack::{Packed, Piece, fitting, pack, room};
use super::pool::{Evidence, Unit};
use super::prompts::{ENCODE, FUSE, PROBE};
use crate::core::error::Result;
use crate::core::profile::Profile;
use crate::core::prompt::{Input, Instructions, build, string_of, words};
use crate::core::refusal::{is_nothing, tells_nothing};
use crate::core::session::{Ask, Session};
use crate::core::trace::Event;

/// Words of a probe.
const PROBE_WORDS: usize = 60;
/// Findings of a cue.
const MAX_FINDINGS: usize = 5;
/// Tokens of replies (released code).
const MAX_CUE_TOKENS: usize = 500;
const MAX_PROBE_TOKENS: usize = 500;
const MAX_FUSED_TOKENS: usize = 1000;

fn researcher(
    step: &'static str,
    instructions: Instructions,
    inputs: Vec<Input>,
    most: usize,
    session: &Session<'_>,
) -> Ask {
    let prompt = build(session.settings.layout, instructions, inputs);
    let max_output_tokens = session.output_tokens(Agent::Researcher, most);
    Ask { agent: Agent::Researcher, step, prompt, thinking_tokens: 0, max_output_tokens, draw: 0 }
}

/// The question to the comprehension agent.
pub(super) fn encode_ask(question: &str, probe: &str, content: &str, session: &Session<'_>) -> Ask {
    let inputs = vec![
        Input::new("FINAL_OBJECTIVE", Stability::Volatile, question),
        Input::new("QUESTION", Stability::Volatile, probe),
        Input::new("CONTENT", Stability::Volatile, content),
    ];
    let none = if may_find_nothing(session) { "an empty list" } else { "\"\" alone" };
    let words = finding_words(session);
    let rules = format!("{}; {none} if CONTENT does not help.\nA finding may have {words} words.", ENCODE.rules);
    researcher("comorag.encode", Instructions { rules: &rules, ..ENCODE }, inputs, MAX_CUE_TOKENS, session)
}

/// Words of a finding, so that all fit into a reply.
fn finding_words(session: &Session<'_>) -> usize {
    words(session.output_tokens(Agent::Researcher, MAX_CUE_TOKENS)) / MAX_FINDINGS
}

/// Whether the list of findings may be empty; models of the small profile write `""` instead.
fn may_find_nothing(session: &Session<'_>) -> bool {
    session.profile(Agent::Researcher) == Profile::Paper
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Findings {
    key_findings: Vec<String>,
}

/// Mem-encode: how the evidence helps to answer the question. An invalid reply is no cue, and neither is a finding that only
/// states that the evidence does not help.
pub(super) async fn encode(question: &str, evidence: Evidence, session: &Session<'_>) -> Result<Unit> {
    let ask = encode_ask(question, &evidence.probe, &evidence.found.text, session);
    let list = schema::array(string_of(finding_words(session)), MAX_FINDINGS);
    let list = if may_find_nothing(session) { list } else { schema::at_least_one(list) };
    let schema = schema::object([("key_findings", list)]);
    let findings: Option<Findings> = session.json(ask, schema, |_| Ok(())).await?;
    let findings = findings.map_or_else(Vec::new, |findings| findings.key_findings);
    let lines = findings.iter().map(|finding| finding.trim()).filter(|finding| !tells_nothing(finding));
    let cue = lines.map(|finding| format!("Key Finding: {finding}")).collect::<Vec<_>>().join("\n");
    Ok(Unit { evidence, cue })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Probes {
    #[serde(rename = "probe_1")]
    first: String,
    #[serde(rename = "probe_2", default)]
    second: String,
    #[serde(rename = "probe_3", default)]
    third: String,
}

/// What self-probe reads.
#[derive(Clone, Copy)]
pub(super) struct Failed<'a> {
    /// The queries so far.
    pub probes: &'a [String],
    /// The units of the cycle before.
    pub latest: &'a [Unit],
    /// The fused accounts of the cycles before, the newest first.
    pub fused: &'a [Piece],
}

impl Failed<'_> {
    /// The cues, which have their places first, and the accounts, which a prompt shows before them.
    fn pieces(self) -> Vec<Piece> {
        let cues = self.latest.iter().enumerate().filter_map(|(id, unit)| unit.piece(id));
        let accounts = self.fused.iter().map(|account| Piece { place: (-1, account.id), ..account.clone() });
        cues.chain(accounts).collect()
    }
}

/// Self-probe (equation 1): new queries, none equal to an earlier one; none if the reply is invalid.
pub(super) async fn self_probe(
    question: &str,
    failed: Failed<'_>,
    cycle: usize,
    session: &Session<'_>,
) -> Result<Vec<String>> {
    let ask = |context: &str| {
        let previous = failed.probes.iter().map(|probe| format!("- {probe}")).collect::<Vec<_>>().join("\n");
        let inputs = vec![
            Input::new("ORIGINAL_QUERY", Stability::Volatile, question),
            Input::new("CONTEXT", Stability::Volatile, if context.is_empty() { "Nothing was found." } else { context }),
            Input::new("PREVIOUS_PROBES", Stability::Volatile, previous),
        ];
        let draw = cycle as u64 - 1;
        Ask { draw, ..researcher("comorag.probe", PROBE, inputs, MAX_PROBE_TOKENS, session) }
    };
    let bare = ask("");
    let room = room(&bare, session);
    let context = pack("comorag.probe".to_owned(), Agent::Researcher, failed.pieces(), room, session)?;
    let schema = schema::object(["probe_1", "probe_2", "probe_3"].map(|name| (name, string_of(PROBE_WORDS))));
    let check = |probes: &Probes| match new_probes(probes, failed.probes).is_empty() {
        true => Err("it has no probe that was not tried before".to_owned()),
        false => Ok(()),
    };
    let probes = session.json(ask(&context.text), schema, check).await?;
    Ok(probes.map_or_else(Vec::new, |probes| new_probes(&probes, failed.probes)))
}

/// The probes that differ from all earlier ones and from one another in more than spelling; "None" is no probe.
fn new_probes(probes: &Probes, history: &[String]) -> Vec<String> {
    let mut known: Vec<String> = history.iter().map(|probe| normal(probe)).collect();
    let mut new = Vec::new();
    for probe in [&probes.first, &probes.second, &probes.third] {
        let words = normal(probe);
        if !words.is_empty() && !is_nothing(probe) && !known.contains(&words) {
            known.push(words);
            new.push(probe.trim().to_owned());
        }
    }
    new
}

/// Mem-fuse (equation 2): one account of the related cues. Its prompt names the length that the history has room for,
/// `most_tokens` at most. None if there are no cues, or if they tell nothing.
pub(super) async fn fuse(
    question: &str,
    related: Vec<Piece>,
    most_tokens: usize,
    cycle: usize,
    session: &Session<'_>,
) -> Result<Option<Piece>> {
    let max_output_tokens = session.output_tokens(Agent::Researcher, MAX_FUSED_TOKENS).min(most_tokens).max(1);
    let rules = format!("{}\nWrite at most {} words.", FUSE.rules, words(max_output_tokens));
    let ask = |analysis: &str| {
        let inputs = vec![
            Input::new("PREVIOUS_ANALYSIS", Stability::Volatile, analysis),
            Input::new("CURRENT_QUERY", Stability::Volatile, question),
        ];
        let instructions = Instructions { rules: &rules, ..FUSE };
        Ask { max_output_tokens, ..researcher("comorag.fuse", instructions, inputs, MAX_FUSED_TOKENS, session) }
    };
    let bare = ask("");
    let Packed { text, pieces } =
        pack("comorag.fuse".to_owned(), Agent::Researcher, related, room(&bare, session), session)?;
    if pieces.is_empty() {
        return Ok(None);
    }
    let reply = session.text(ask(&text)).await?;
    let text = within_history(reply.trim(), most_tokens, session)?.to_owned();
    let mut sources: Vec<_> = pieces.into_iter().flat_map(|piece| piece.sources).collect();
    sources.sort_unstable();
    sources.dedup();
    let id = i64::try_from(cycle).unwrap_or(i64::MAX);
    Ok((!tells_nothing(&text)).then_some(Piece { id, place: (id, 0), text, sources }))
}

/// The account as far as the history has room for it; a reply that was cut at its limit is requested again with a higher one.
fn within_history<'a>(account: &'a str, most_tokens: usize, session: &Session<'_>) -> Result<&'a str> {
    let kept = fitting(account, Agent::Responder, most_tokens, session);
    if kept.len() < account.len() {
        let reason = format!("the history has room for {most_tokens} tokens, and the account was shortened to fit");
        session.trace.record(Event::Fallback { step: "comorag.fuse".to_owned(), reason })?;
    }
    Ok(kept)
}
