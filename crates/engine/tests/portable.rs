//! The engine on the portable backend: replies, shared prefixes, constrained output, scores, adapters and embeddings as with the
//! kernels.

use std::collections::HashMap;
use std::path::Path;

use calls::{
    AdapterChoice, Agent, Call, Caller, Embedder, Heads, OutputFormat, Prefixes, Priority, Prompt, Reply, ScoreRequest,
    Scorer, Stability, TenantId, WorkflowId,
};
use candle_core::Device;
use engine::{Adapters, Config, Engine, Models, NamedAdapter};
use futures_util::future::join_all;
use models::adapter::Adapter;
use models::{Backend, EmbeddingModel, Kernels, KvPrecision, LanguageModel, Part, Precision};
use portable::Portable;
use serde_json::json;

use crate::tiny::{self, ask, run};

const PORTABLE: Portable = Portable { device: Device::Cpu };
const KERNELS: Kernels = Kernels { device: Device::Cpu };

/// An engine on the tiny model with the adapter `plans`. Keys and values are `f32`, so that both backends agree to about 1e-5
/// and greedy replies are the same.
fn start(name: &str, backend: &dyn Backend) -> Engine {
    start_model(tiny::model_on(name, backend))
}

fn start_model(model: LanguageModel) -> Engine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/lora_serving/llama");
    let adapter = Adapter::open_for(&path, model.spec()).unwrap();
    let loaded = vec![NamedAdapter { name: "plans".into(), model: 0, adapter }];
    let adapters = Adapters { loaded, agents: HashMap::new() };
    let models = Models { language: vec![("tiny".into(), model)], agents: HashMap::new(), embedder: None };
    let config = Config { kv_precision: KvPrecision::F32, kv_tokens: 4096, ..Config::default() };
    Engine::start_with(models, adapters, config, None).unwrap()
}

#[test]
fn a_kv_cache_in_bf16_or_8_bits_is_read_again_by_both_backends() {
    let text = |engine: &Engine| run(engine.call(ask("The keeper counted ships.", 20))).unwrap().text;
    for (name, backend) in [("portable", &PORTABLE as &dyn Backend), ("kernels", &KERNELS)] {
        for kv_precision in [KvPrecision::Bf16, KvPrecision::Q8_0] {
            let model = tiny::model_on(&format!("{name}-{kv_precision}"), backend);
            let models = Models { language: vec![("tiny".into(), model)], agents: HashMap::new(), embedder: None };
            let engine = Engine::start(models, Config { kv_precision, kv_tokens: 4096, ..Config::default() }).unwrap();
            // The second reads keys and values that the first has left.
            let first = text(&engine);
            assert_eq!(text(&engine), first, "{name}, {kv_precision}");
            assert!(!first.is_empty());
        }
    }
}

fn both(name: &str) -> [Engine; 2] {
    [start(&format!("portable-{name}"), &PORTABLE), start(&format!("kernels-{name}"), &KERNELS)]
}

/// Calls that begin alike, every second one with the adapter, some with a schema.
fn calls() -> Vec<Call> {
    let story = "The keeper counted ships, sails and gulls. ".repeat(2);
    let call = |index: usize| {
        let adapter = if index.is_multiple_of(2) { AdapterChoice::Base } else { AdapterChoice::Named("plans".into()) };
        let output_format =
            if index.is_multiple_of(3) { OutputFormat::Json(json!({ "type": "boolean" })) } else { OutputFormat::Text };
        Call { adapter, output_format, logprobs: Some(2), ..ask(&format!("{story}{index}"), 20) }
    };
    (0..9).map(call).collect()
}

fn together(engine: &Engine) -> Vec<Reply> {
    let replies = run(join_all(calls().into_iter().map(|call| engine.call(call))));
    replies.into_iter().map(Result::unwrap).collect()
}

#[test]
fn replies_of_a_batch_are_those_of_the_kernels_and_prefixes_are_shared() {
    let [portable, kernels] = both("batch");
    for round in 0..2 {
        for (ours, theirs) in together(&portable).iter().zip(&together(&kernels)) {
            assert_eq!((&ours.text, &ours.model, ours.finish), (&theirs.text, &theirs.model, theirs.finish));
            assert_eq!(ours.logprobs.len(), theirs.logprobs.len());
            for (ours, theirs) in ours.logprobs.iter().zip(&theirs.logprobs) {
                assert!((ours.logprob - theirs.logprob).abs() < 1e-3, "{ours:?} and {theirs:?}");
            }
            // In the second round the whole pages of every prompt are in the cache.
            let whole = (ours.usage.prompt_tokens - 1) / 32 * 32;
            assert!(round == 0 || ours.usage.cached_tokens >= whole, "{:?}", ours.usage);
        }
    }
}

#[test]
fn scores_are_those_of_the_kernels() {
    let [portable, kernels] = both("scores");
    let score = |engine: &Engine| -> Vec<f64> {
        let continuations = ["platinum", "p", "", " a gold chain"].map(str::to_owned).to_vec();
        let (workflow, tenant, priority) = (WorkflowId::default(), TenantId::LOCAL, Priority::default());
        let call = ask("What was it?", 1);
        let (agent, prompt) = (call.agent, call.prompt);
        let request =
            ScoreRequest { agent, step: "test", workflow, tenant, priority, prompt, continuations, end: true };
        run(engine.score(request)).unwrap().scores.iter().map(|score| score.logprob).collect()
    };
    for (ours, theirs) in score(&portable).into_iter().zip(score(&kernels)) {
        assert!((ours - theirs).abs() < 1e-3, "{ours} and {theirs}");
    }
}

/// A call whose prompt has whole pages, in workflow 1.
fn long_call() -> Call {
    let prompt = Prompt::new().system("The keeper counted ships. ".repeat(5)).user(Stability::Volatile, "Who?");
    Call { workflow: WorkflowId(1), ..Call::new(Agent::Responder, "test", prompt, 4) }
}

#[test]
fn saved_prefixes_come_back_to_the_backend_that_computed_them_only() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prefixes-of-backends");
    let _ = std::fs::remove_dir_all(&folder);
    let first = start("portable-kept", &PORTABLE);
    let reply = run(first.call(long_call())).unwrap();
    let kept = run(first.keep_prefixes(TenantId::LOCAL, WorkflowId(1), &folder));
    assert!(kept.tokens >= 64 && kept.refused.is_empty(), "{kept:?}");
    drop(first);
    let again = start("portable-kept", &PORTABLE);
    assert_eq!(run(again.bring_prefixes(TenantId::LOCAL, &folder)).tokens, kept.tokens);
    let second = run(again.call(long_call())).unwrap();
    assert!(second.usage.cached_tokens >= 64 && second.text == reply.text, "{:?}", second.usage);
    drop(again);
    let other = start("portable-kept", &KERNELS);
    let back = run(other.bring_prefixes(TenantId::LOCAL, &folder));
    assert_eq!((back.tokens, back.refused.len()), (0, 1), "{back:?}");
}

/// The tiny model with its first layer on one backend and the second on another.
fn start_split(name: &str, backends: [&dyn Backend; 2]) -> Engine {
    let [first, second] = backends;
    let parts = [
        (first, Part { layers: 0..1, table: true, head: false }),
        (second, Part { layers: 1..2, table: false, head: true }),
    ];
    start_model(tiny::model_split(name, &parts))
}

#[test]
fn a_split_model_replies_as_the_whole_one() {
    let whole = start("whole", &KERNELS);
    for (name, backends, is_exact) in [
        ("split-kernels", [&KERNELS as &dyn Backend, &KERNELS], true),
        ("split-mixed", [&KERNELS, &PORTABLE], false),
        ("split-turned", [&PORTABLE, &KERNELS], false),
    ] {
        let split = start_split(name, backends);
        for _ in 0..2 {
            for (ours, theirs) in together(&split).iter().zip(&together(&whole)) {
                assert_eq!(
                    (&ours.text, &ours.model, ours.finish),
                    (&theirs.text, &theirs.model, theirs.finish),
                    "{name}"
                );
                for (ours, theirs) in ours.logprobs.iter().zip(&theirs.logprobs) {
                    let difference = (ours.logprob - theirs.logprob).abs();
                    assert!(
                        if is_exact { difference == 0.0 } else { difference < 1e-3 },
                        "{name}: {ours:?}, {theirs:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn saved_prefixes_of_a_split_model_name_its_arithmetic() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prefixes-of-parts");
    let _ = std::fs::remove_dir_all(&folder);
    let first = start_split("parts-kept", [&KERNELS, &PORTABLE]);
    run(first.call(long_call())).unwrap();
    let kept = run(first.keep_prefixes(TenantId::LOCAL, WorkflowId(1), &folder));
    assert!(kept.tokens >= 64 && kept.refused.is_empty(), "{kept:?}");
    drop(first);
    let again = start_split("parts-kept", [&KERNELS, &PORTABLE]);
    assert_eq!(run(again.bring_prefixes(TenantId::LOCAL, &folder)).tokens, kept.tokens);
    drop(again);
    for backends in [[&KERNELS as &dyn Backend, &KERNELS], [&PORTABLE, &KERNELS]] {
        let back = run(start_split("parts-kept", backends).bring_prefixes(TenantId::LOCAL, &folder));
        assert_eq!((back.tokens, back.refused.len()), (0, 1), "{back:?}");
    }
}

#[test]
fn embeddings_are_those_of_the_kernels() {
    let Some(folder) = test_support::weights("all-minilm-l6-v2") else { return };
    let vectors = |backend: &dyn Backend| {
        let model = EmbeddingModel::load_on(&folder, Precision::Stored, backend).unwrap();
        let models = Models { language: vec![], agents: HashMap::new(), embedder: Some(("minilm".into(), model)) };
        let engine = Engine::start(models, Config::default()).unwrap();
        let texts = (1..20).map(|n| "The keeper counted ships, sails and gulls. ".repeat(n)).collect();
        run(engine.encode(texts, Heads::All)).unwrap()
    };
    for (ours, theirs) in vectors(&PORTABLE).iter().zip(&vectors(&KERNELS)) {
        let cosine: f32 = ours.dense.iter().zip(&theirs.dense).map(|(a, b)| a * b).sum();
        assert!(cosine > 0.999_99, "{cosine}");
    }
}
