use std::cell::Cell;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;

use calls::{
    Agent, Call, CallError, Finish, Limits, OnText, OutputFormat, Prompt, Reply, Sampling, Stability, TokenLogprob,
};
use models::LanguageModel;
use scheduler::Namespace;
use serde_json::json;
use test_support::fuzz;
use tokio::sync::oneshot;

use super::*;
use crate::completion::random_schemas::random_schema;
use crate::config::Config;
use crate::frontend::ModelFrontend;
use crate::model_runner::ModelRunner;
use crate::start::split;
use crate::step_limits::DraftLimits;
use crate::written::Written;

/// A tiny model with random weights.
pub fn model() -> (ModelFrontend, ModelRunner) {
    model_with(Config { kv_tokens: 4096, ..Config::default() })
}

fn model_with(config: Config) -> (ModelFrontend, ModelRunner) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama");
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(golden.join(name), folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("chat_template.jinja"), "{{ messages[0].content }}").unwrap();
    let model = LanguageModel::load(folder.path(), &candle_core::Device::Cpu).unwrap();
    split("tiny".into(), model, std::iter::empty(), config, None).unwrap()
}

/// Calls in a random schema, some of them without room for more than the shortest replies, and one without a format.
fn calls(round: u64) -> Vec<Call> {
    let call = |most, seed| {
        let prompt = Prompt::new().user(Stability::Volatile, "When?");
        Call { sampling: Sampling::at(1.0, seed), ..Call::new(Agent::Responder, "test", prompt, most) }
    };
    let output_format = OutputFormat::Json(random_schema(round));
    let in_format = [10, 20, 40, 120].into_iter().zip(0..).map(|(most, seed)| {
        let logprobs = (seed == 1).then_some(1);
        Call { output_format: output_format.clone(), logprobs, ..call(most, seed) }
    });
    [call(30, round)].into_iter().chain(in_format).collect()
}

type Essence = Result<(String, Finish, usize, Vec<TokenLogprob>), String>;

fn essence(reply: Result<Reply, CallError>) -> Essence {
    let reply = reply.map_err(|error| error.to_string())?;
    Ok((reply.text, reply.finish, reply.usage.output_tokens, reply.logprobs))
}

/// The replies, each of which is continued `delay` steps later.
fn replies(
    (frontend, runner): &mut (ModelFrontend, ModelRunner),
    calls: &[Call],
    proceed: impl Fn(FormatJob) -> Advanced,
    mut delay: impl FnMut() -> usize,
) -> Vec<Essence> {
    let submit = |(id, call): (u64, &Call)| {
        let (sender, receiver) = oneshot::channel();
        let submission = frontend.submission(call.clone(), &Written::default(), None, sender)?;
        runner.submit(SequenceId(id), Namespace::default(), submission);
        Ok::<_, CallError>(receiver)
    };
    let waiting: Vec<Result<_, CallError>> = (0..).zip(calls).map(submit).collect();
    let mut elsewhere: Vec<(usize, FormatJob)> = Vec::new();
    for step in 0.. {
        if runner.is_idle() {
            break;
        }
        assert!(step < 10_000, "the replies do not end");
        runner.step(false);
        elsewhere.extend(runner.take_jobs().into_iter().map(|job| (step + delay(), job)));
        let back: Vec<_> = elsewhere.extract_if(.., |(due, _)| *due <= step).collect();
        back.into_iter().rev().for_each(|(_, job)| runner.take_back(proceed(job)));
    }
    waiting.into_iter().map(|reply| essence(reply.and_then(|mut reply| reply.try_recv().unwrap()))).collect()
}

const SAID: &str = "The quick brown fox jumps over a lazy dog, and it is gone.";

/// Twelve calls in a format that leaves one choice, behind this text.
fn forced_calls() -> Vec<Call> {
    let schema = json!({ "type": "object", "properties": { "said": { "const": SAID }, "sure": { "type": "boolean" } },
        "required": ["said", "sure"], "additionalProperties": false });
    let output_format = OutputFormat::Json(schema);
    let call = |seed| {
        let call = calls(0).swap_remove(0);
        let limits = Limits { max_output_tokens: 120, ..call.limits };
        Call { output_format: output_format.clone(), limits, sampling: Sampling::at(1.0, seed), ..call }
    };
    (0..12).map(call).collect()
}

#[test]
fn tokens_that_a_format_forces_take_no_steps_of_their_own_in_any_batch() {
    let (mut model, calls) = (model(), forced_calls());
    let rows = Cell::new(0);
    let counted = |job: FormatJob| {
        rows.set(rows.get() + job.rows.logits.len());
        job.run()
    };
    let together = replies(&mut model, &calls, counted, || 0);
    // Those of the prompts, and those of the tokens that are drawn.
    assert!(rows.get() <= 3 * calls.len(), "{} rows of logits for {} replies", rows.get(), calls.len());
    for (call, together) in calls.into_iter().zip(together) {
        let (text, finish, output_tokens, _) = together.unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(value["said"] == SAID && value["sure"].is_boolean(), "{text}");
        assert_eq!((finish, output_tokens), (Finish::Stop, text.len()), "every byte is a token");
        let alone = replies(&mut model, &[Call { logprobs: Some(0), ..call }], FormatJob::run, || 0).swap_remove(0);
        let (text_alone, finish_alone, tokens_alone, logprobs) = alone.unwrap();
        assert_eq!((&text_alone, finish_alone, tokens_alone), (&text, finish, output_tokens));
        assert_eq!(logprobs.len(), tokens_alone, "each token has its own");
    }
}

/// The bits of the log-probabilities of tokens and of the most likely ones in their places.
fn bits(tokens: &[TokenLogprob]) -> Vec<u32> {
    let all = tokens.iter().flat_map(|token| token.top.iter().map(|(_, logprob)| *logprob).chain([token.logprob]));
    all.map(f32::to_bits).collect()
}

#[test]
fn forced_tokens_with_log_probabilities_take_no_steps_of_their_own_in_any_batch() {
    let calls: Vec<Call> = forced_calls().into_iter().map(|call| Call { logprobs: Some(2), ..call }).collect();
    let steps = Cell::new(0);
    let counted = |job: FormatJob| {
        steps.set(steps.get() + 1);
        job.run()
    };
    let together = replies(&mut model(), &calls, counted, || 0);
    assert!(steps.take() <= 10 * calls.len(), "a chunk has 16 tokens");
    // Without drafts every token takes a step.
    let config = Config { kv_tokens: 4096, max_draft_tokens: 0, ..Config::default() };
    let one_by_one = replies(&mut model_with(config), &calls, counted, || 0);
    let tokens: usize = one_by_one.iter().map(|reply| reply.as_ref().unwrap().2).sum();
    assert_eq!(steps.take(), tokens);
    // The memory of their logits bounds a chunk.
    let few = |mut job: FormatJob| {
        job.rows.drafts = DraftLimits { found: 0, known: 3 };
        let advanced = counted(job);
        assert!(advanced.advance.draft.as_ref().unwrap().len() <= 3);
        advanced
    };
    let by_few = replies(&mut model(), &calls, few, || 0);
    assert!((tokens / 4..=tokens / 3).contains(&steps.take()), "a chunk has 4 tokens");
    for ((together, one_by_one), by_few) in together.iter().zip(&one_by_one).zip(&by_few) {
        assert_eq!(together, one_by_one);
        assert_eq!(by_few, one_by_one);
        let [together, one_by_one, by_few] = [together, one_by_one, by_few].map(|reply| &reply.as_ref().unwrap().3);
        assert!(one_by_one.iter().all(|token| token.top.len() == 2) && one_by_one.iter().any(|token| token.drawn));
        assert_eq!(bits(together), bits(one_by_one));
        assert_eq!(bits(by_few), bits(one_by_one));
    }
}

/// As the engine's thread continues a reply without a format.
fn unprepared(FormatJob { id, mut generation, rows, vocabulary, .. }: FormatJob) -> Advanced {
    let advance = generation.advance(rows, &vocabulary);
    Advanced { id, generation, advance }
}

#[test]
fn replies_in_random_schemas_do_not_depend_on_when_they_are_continued() {
    let mut rounds = fuzz::rounds(150);
    let (mut model, mut random, mut accepted) = (model(), 1_u64, 0);
    for round in &mut rounds {
        let calls = calls(round);
        let at_once = replies(&mut model, &calls, unprepared, || 0);
        let late = replies(&mut model, &calls, FormatJob::run, || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(random >> 33).unwrap() % 4
        });
        assert_eq!(at_once, late, "schema {round} {}", random_schema(round));
        accepted += at_once[1..].iter().map(|reply| u64::from(reply.is_ok())).sum::<u64>();
    }
    let rounds = rounds.done();
    println!("{accepted} replies in {rounds} random schemas");
    assert!(accepted > rounds / 2, "{accepted} of {rounds}");
}

#[test]
fn a_cancelled_reply_that_comes_back_is_dropped() {
    let (frontend, mut runner) = model();
    let call = calls(0).swap_remove(0);
    let call = Call { output_format: OutputFormat::Choice(vec!["yes, it is".into(), "no".into()]), ..call };
    let (sender, mut receiver) = oneshot::channel();
    let submission = frontend.submission(call, &Written::default(), None, sender).unwrap();
    runner.submit(SequenceId(1), Namespace::default(), submission);
    runner.step(false);
    let job = runner.take_jobs().pop().unwrap();
    assert!(!runner.step(false), "nothing runs without its next token");
    runner.cancel(SequenceId(1));
    assert!(runner.is_idle());
    runner.take_back(job.run());
    assert!(runner.is_idle() && receiver.try_recv().is_err());
}

#[test]
fn a_cancelled_reply_that_waits_for_a_thread_is_dropped() {
    let (frontend, mut runner) = model();
    let (written, text) = channel();
    let on_text = Some(OnText::new(move |_| written.send(()).unwrap_or_default()));
    let output_format = OutputFormat::Choice(vec!["yes, it is".into(), "no".into()]);
    let call = Call { output_format, on_text, ..calls(0).swap_remove(0) };
    let (sender, receiver) = oneshot::channel();
    let submission = frontend.submission(call, &Written::default(), None, sender).unwrap();
    runner.submit(SequenceId(1), Namespace::default(), submission);
    runner.step(false);
    let job = runner.take_jobs().pop().unwrap();
    drop(receiver);
    runner.cancel(SequenceId(1));
    let mut threads = FormatThreads::start().unwrap();
    threads.send(0, job, Duration::from_secs(1));
    let dropped = text.recv_timeout(Duration::from_mins(1));
    assert_eq!(dropped, Err(RecvTimeoutError::Disconnected), "it was continued, or kept for the engine's thread");
    assert!(threads.within(Duration::ZERO).is_none());
}
