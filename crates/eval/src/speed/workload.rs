//! Prompts and lengths of answers.

use std::fmt::Write as _;
use std::time::Instant;

use calls::{Agent, Call, Caller, Embedder, Limits, OnText, OutputFormat, Prompt, Role, Sampling, Stability};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::decoding::Decoding;
use super::engine::EngineUnderTest;
use super::outcome::{Outcome, Unit};
use super::preset::Sizes;
use super::suite::SpeedSuite;
use crate::Result;

/// Chains of calls. Chains run concurrently, the calls of a chain one after the other.
pub(super) struct Workload {
    pub suite: SpeedSuite,
    pub case: String,
    pub unit: Unit,
    /// True if the number of computed prompt tokens matters.
    pub counts_tokens: bool,
    /// True if the prompts are computed before the measurement starts.
    pub prefilled: bool,
    pub chains: Vec<Vec<Call>>,
}

/// A prompt as tokens, and the length of its answer in tokens.
pub(super) struct Piece {
    pub prompt: Vec<u32>,
    pub output_tokens: usize,
    /// The JSON schema of the answer, which then has at most `output_tokens`.
    pub schema: Option<Value>,
    pub sampling: Sampling,
}

/// Tokens of the past before a decoded answer.
const AFTER: usize = 2048;

/// The synthetic workloads of a suite that fit the model's context; the others are added to `left_out`. Long answers are
/// drawn in each of these ways.
pub(super) fn of(
    suite: SpeedSuite,
    sizes: Sizes,
    decodings: &[Decoding],
    caller: &dyn Caller,
    left_out: &mut Vec<String>,
) -> Vec<Workload> {
    let context = caller.tokens().context_tokens(Agent::Researcher);
    let mut fits = |tokens: usize, case: &str| {
        if tokens > context {
            left_out.push(format!("{suite} {case}: the context of {context} tokens has no room for it"));
        }
        tokens <= context
    };
    // Answers are measured after their prompts, which the calls of one repetition share whatever their decoding.
    let prefilled = matches!(suite, SpeedSuite::Decode | SpeedSuite::Json);
    let workload =
        |case: String, unit, counts_tokens, chains| Workload { suite, case, unit, counts_tokens, prefilled, chains };
    match suite {
        SpeedSuite::Prefill => {
            let mut workloads = Vec::new();
            for tokens in sizes.prompts {
                let case = format!("{tokens} tokens");
                if fits(tokens + 64, &case) {
                    let call = call(&text_of(*tokens, caller), 1);
                    workloads.push(workload(case, Unit::PromptTokensPerSecond, false, vec![vec![call]]));
                }
            }
            workloads
        }
        SpeedSuite::Decode => {
            let at_once = |calls: usize, decoding: Decoding| {
                let drawn = |chain: usize| drawn(call(&words(chain, 12), 128), decoding, chain);
                let case = format!("{calls} at once, {}", decoding.values());
                workload(case, Unit::OutputTokensPerSecond, false, (0..calls).map(|chain| vec![drawn(chain)]).collect())
            };
            let mut workloads = Vec::new();
            for calls in sizes.answers {
                workloads.extend(decodings.iter().map(|decoding| at_once(*calls, *decoding)));
            }
            let case = format!("after {AFTER} tokens");
            if fits(AFTER + 256, &case) {
                let text = text_of(AFTER, caller);
                for decoding in decodings {
                    let case = format!("{case}, {}", decoding.values());
                    let chains = vec![vec![drawn(call(&text, 128), *decoding, 0)]];
                    workloads.push(workload(case, Unit::OutputTokensPerSecond, false, chains));
                }
            }
            workloads
        }
        SpeedSuite::Json => {
            let at_once = |calls: usize| {
                let chains = (0..calls).map(|chain| vec![in_schema(call(&words(chain, 12), JSON_TOKENS), chain)]);
                let case = format!("{calls} at once, {}", Decoding::Agents.values());
                workload(case, Unit::OutputTokensPerSecond, false, chains.collect())
            };
            sizes.answers.iter().map(|calls| at_once(*calls)).collect()
        }
        SpeedSuite::Siblings => {
            let Sizes { siblings, trunk, .. } = sizes;
            let case = format!("{siblings} on {trunk} tokens");
            if !fits(trunk + 256, &case) {
                return Vec::new();
            }
            let text = text_of(trunk, caller);
            let sibling = |leaf| vec![call(&format!("{text}\n\n{}", words(leaf, 24)), 16)];
            vec![workload(case, Unit::Seconds, true, (0..siblings).map(sibling).collect())]
        }
        _ => Vec::new(),
    }
}

/// A call for an answer of exactly this many tokens, drawn as the agents do.
pub(super) fn call(text: &str, output_tokens: usize) -> Call {
    let prompt = Prompt::new().system("You read closely.").user(Stability::Volatile, text);
    let call = fixed(Call::new(Agent::Researcher, "bench", prompt, output_tokens), output_tokens);
    drawn(call, Decoding::Agents, 0)
}

/// More tokens than an answer in the schema has, if it is written without many spaces.
const JSON_TOKENS: usize = 320;

/// The same call, drawn as the agents do, for an answer in a schema like theirs: six records with a number, a text of at most 48
/// characters and one of three names.
fn in_schema(call: Call, seed: usize) -> Call {
    let record = json!({
        "type": "object",
        "properties": {
            "page": { "type": "integer", "minimum": 0, "maximum": 99 },
            "quote": { "type": "string", "minLength": 1, "maxLength": 48 },
            "kind": { "enum": ["person", "place", "event"] },
        },
        "required": ["page", "quote", "kind"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": { "records": { "type": "array", "minItems": 6, "maxItems": 6, "items": record } },
        "required": ["records"],
        "additionalProperties": false,
    });
    let limits = Limits { min_output_tokens: 0, ..call.limits };
    drawn(Call { output_format: OutputFormat::Json(schema), limits, ..call }, Decoding::Agents, seed)
}

/// The same call drawn in this way.
fn drawn(call: Call, decoding: Decoding, seed: usize) -> Call {
    Call { sampling: decoding.sampling(seed as u64), ..call }
}

/// The same call, with its sampling, for an answer of exactly this many arbitrary tokens.
pub(super) fn fixed(call: Call, output_tokens: usize) -> Call {
    let limits = Limits { max_output_tokens: output_tokens, min_output_tokens: output_tokens, ..Limits::default() };
    Call { output_format: OutputFormat::Text, limits, on_text: None::<OnText>, ..call }
}

/// Random words, equal for equal seeds.
pub(super) fn words(seed: usize, count: usize) -> String {
    const WORDS: &str = "the river house of light under seven old maps and every letter from Anna to her brother \
        went over cold mountains while rain fell on quiet towns where people kept their names in books";
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        words[(state >> 33) as usize % words.len()]
    };
    (0..count).map(|_| next()).collect::<Vec<_>>().join(" ")
}

/// Words that make a prompt of about this many tokens, never more.
pub(super) fn text_of(tokens: usize, caller: &dyn Caller) -> String {
    let fits = |count: usize| caller.tokens().prompt_tokens(&call(&words(tokens, count), 1)) <= tokens;
    let (mut low, mut high) = (0, tokens);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    words(tokens, low)
}

/// Words with this many tokens for an embedder, or slightly fewer, equal for equal seeds.
pub(super) fn passage_of(seed: usize, tokens: usize, embedder: &dyn Embedder) -> String {
    let text = words(seed, tokens);
    let end = embedder.token_spans(&text).get(..tokens).and_then(|spans| spans.last().map(|span| span.end));
    let cut = end.map_or(text.len(), |end| text[..end].rfind(' ').unwrap_or(end));
    text[..cut].to_owned()
}

impl Workload {
    /// The chains, with a prompt prefix unique to this repetition.
    pub fn marked(&self, repetition: usize) -> Vec<Vec<Call>> {
        let mut mark = String::new();
        // A word instead of a number alone, so that already the first token differs.
        let _ = write!(mark, "{} {repetition}. ", words(repetition * 7 + 3, 3));
        let marked = |call: &Call| Call { prompt: begun_with(&mark, &call.prompt), ..call.clone() };
        self.chains.iter().map(|chain| chain.iter().map(marked).collect()).collect()
    }
}

/// The same prompts with answers of one token: answering them computes the prompts.
pub(super) fn prefills(chains: &[Vec<Call>]) -> Vec<Vec<Call>> {
    chains.iter().map(|chain| chain.iter().map(|call| fixed(call.clone(), 1)).collect()).collect()
}

fn begun_with(mark: &str, prompt: &Prompt) -> Prompt {
    let mut mark = mark;
    prompt.segments().iter().fold(Prompt::new(), |prompt, segment| {
        let text = [std::mem::take(&mut mark), &segment.text].concat();
        match segment.role {
            Role::System => prompt.system(text),
            Role::User => prompt.user(segment.stability, text),
            Role::Assistant => prompt.assistant(text),
            Role::Tool => prompt.turn(Role::Tool, text, segment.turn.clone().unwrap_or_default()),
        }
    })
}

/// Runs the workload on our engine.
pub(super) async fn run(chains: &[Vec<Call>], caller: &dyn Caller) -> Result<Outcome> {
    let chain = |calls: Vec<Call>| async move {
        let mut usages = Vec::new();
        for call in calls {
            usages.push(caller.call(call).await?.usage);
        }
        Ok::<_, calls::CallError>(usages)
    };
    let started = Instant::now();
    let usages = try_join_all(chains.iter().cloned().map(chain)).await?;
    let mut outcome = Outcome { seconds: started.elapsed().as_secs_f64(), ..Outcome::default() };
    for usage in usages.iter().flatten() {
        outcome.prompt_tokens += usage.prompt_tokens;
        outcome.cached_tokens += usage.cached_tokens;
        outcome.output_tokens += usage.output_tokens;
    }
    Ok(outcome)
}

/// The workload as tokens.
pub(super) fn ids(chains: &[Vec<Call>], engine: &dyn EngineUnderTest) -> Result<Vec<Vec<Piece>>> {
    let piece = |call: &Call| {
        let (output_tokens, sampling) = (call.limits.max_output_tokens, call.sampling.clone());
        let schema = match &call.output_format {
            OutputFormat::Json(schema) => Some(schema.clone()),
            _ => None,
        };
        Ok(Piece { prompt: engine.prompt_ids(call)?, output_tokens, schema, sampling })
    };
    chains.iter().map(|chain| chain.iter().map(piece).collect()).collect()
}

/// Prompt tokens to compute if each distinct prefix is computed once, and at least the last token of each
/// prompt again.
pub(super) fn distinct_tokens(chains: &[Vec<Piece>]) -> usize {
    let mut prompts: Vec<&[u32]> = chains.iter().flatten().map(|piece| piece.prompt.as_slice()).collect();
    prompts.sort_unstable();
    let mut before: &[u32] = &[];
    let mut computed = 0;
    for prompt in prompts {
        let shared = prompt.iter().zip(before).take_while(|(a, b)| a == b).count();
        computed += (prompt.len() - shared).max(1);
        before = prompt;
    }
    computed
}

#[cfg(test)]
mod tests {
    use calls::Scripted;

    use super::*;

    #[test]
    fn each_distinct_prefix_counts_once() {
        let check = |prompts: &[&[u32]], expect: usize| {
            let sampling = Sampling::GREEDY;
            let piece = |prompt: &&[u32]| {
                vec![Piece { prompt: prompt.to_vec(), output_tokens: 1, schema: None, sampling: sampling.clone() }]
            };
            assert_eq!(distinct_tokens(&prompts.iter().map(piece).collect::<Vec<_>>()), expect, "{prompts:?}");
        };
        check(&[], 0);
        check(&[&[1, 2, 3]], 3);
        check(&[&[1, 2, 3], &[1, 2, 4]], 4);
        check(&[&[1, 2], &[1, 2, 4], &[1, 2]], 4);
        check(&[&[5, 1], &[1, 2], &[5, 2]], 5);
    }

    #[test]
    fn a_text_has_as_many_tokens_as_it_is_to_have() {
        let caller = Scripted::new(8192);
        for tokens in [64, 512, 4000] {
            let text = text_of(tokens, &caller);
            let (here, one_more) = (
                caller.tokens().prompt_tokens(&call(&text, 1)),
                caller.tokens().prompt_tokens(&call(&(text + " x"), 1)),
            );
            assert!(here <= tokens && tokens < one_more, "{here} for {tokens}");
        }
    }

    #[test]
    fn the_mark_comes_first_and_changes_nothing_else() {
        let workload = Workload {
            suite: SpeedSuite::Prefill,
            case: String::new(),
            unit: Unit::Seconds,
            counts_tokens: false,
            prefilled: false,
            chains: vec![vec![call("How many?", 3)]],
        };
        let text = |repetition: usize| workload.marked(repetition)[0][0].prompt.messages();
        let (first, second) = (text(0), text(1));
        assert!(first[0].content.ends_with("0. You read closely."), "{}", first[0].content);
        assert_ne!(first[0], second[0]);
        assert_eq!(first[1], second[1]);
    }
}
