//! Adapters in the engine: which call runs with which, alone and together, and whose prefixes are whose.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use calls::{
    AdapterChoice, Agent, Call, CallError, Caller, ModelInfo, Prefixes, Reply, ScoreRequest, Scorer, TenantId,
    WorkflowId,
};
use engine::{Adapters, Config, Engine, Models, NamedAdapter};
use futures_util::future::join_all;
use models::LanguageModel;
use models::adapter::Adapter;

use crate::tiny::{self, ask, run};

const STORY: &str =
    "The keeper climbed the stairs of the lighthouse every evening and lit the lamp for the ships that passed.";

fn golden(model: &LanguageModel) -> Adapter {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/lora_serving/llama");
    Adapter::open_for(&path, model.spec()).unwrap()
}

/// The golden adapter with its changes times a factor.
fn times(adapter: &Adapter, factor: f32) -> Adapter {
    let mut other = adapter.clone();
    other.modules.values_mut().for_each(|module| module.scale *= factor);
    other
}

/// An engine with the adapters `plans` and `facts`; `plans` serves the researcher.
fn start(name: &str, factor: f32) -> Engine {
    start_sharing(name, factor, None)
}

/// The same with a shared prompt.
fn start_sharing(name: &str, factor: f32, shared_prompt: Option<String>) -> Engine {
    let model = tiny::model(name, |tokenizer| tokenizer);
    let plans = times(&golden(&model), factor);
    let facts = times(&plans, -1.5);
    let named = |name: &str, adapter| NamedAdapter { name: name.into(), model: 0, adapter };
    let loaded = vec![named("plans", plans), named("facts", facts)];
    let adapters = Adapters { loaded, agents: [(Agent::Researcher, 0)].into() };
    let models = Models { language: vec![("tiny".into(), model)], agents: HashMap::new(), embedder: None };
    Engine::start_with(models, adapters, Config::default(), shared_prompt).unwrap()
}

fn with(call: Call, adapter: &str) -> Call {
    let adapter = match adapter {
        "" => AdapterChoice::Base,
        name => AdapterChoice::Named(Arc::from(name)),
    };
    Call { adapter, logprobs: Some(3), ..call }
}

fn answer(engine: &Engine, call: Call) -> Reply {
    run(engine.call(call)).unwrap()
}

/// What a reply says of its tokens: text and log-probabilities.
fn said(reply: &Reply) -> (String, Vec<u32>) {
    (reply.text.clone(), reply.logprobs.iter().map(|token| token.logprob.to_bits()).collect())
}

#[test]
fn roles_and_calls_choose_adapters_and_replies_name_them() {
    let engine = start("adapters-agents", 1.0);
    let plain = tiny::start(tiny::model("adapters-plain", |tokenizer| tokenizer), Config::default());
    let base = answer(&engine, with(ask(STORY, 12), ""));
    let of_agent = |agent| answer(&engine, Call { agent, logprobs: Some(3), ..ask(STORY, 12) });
    let named = |name| answer(&engine, with(ask(STORY, 12), name));
    assert_eq!(base.model, "tiny");
    assert_eq!(
        said(&base),
        said(&answer(&plain, with(ask(STORY, 12), ""))),
        "an engine without adapters gives these bits"
    );
    assert_eq!(said(&of_agent(Agent::Responder)), said(&base));
    let researcher = of_agent(Agent::Researcher);
    assert_eq!(researcher.model, "tiny:plans");
    assert_eq!(said(&researcher), said(&named("plans")));
    assert_ne!(said(&researcher).1, said(&base).1);
    assert_ne!(said(&named("facts")).1, said(&researcher).1);
    assert_eq!((engine.model(Agent::Researcher), engine.base_model(Agent::Researcher)), ("tiny:plans", "tiny"));
    assert_eq!(engine.adapters(Agent::Judge), ["plans", "facts"]);
    let error = run(engine.call(with(ask(STORY, 12), "none-such"))).unwrap_err();
    assert!(matches!(&error, CallError::NoModel { what } if what.contains("none-such")), "{error}");
}

#[test]
fn calls_with_several_adapters_at_once_get_the_replies_that_they_get_alone() {
    let engine = start("adapters-together", 1.0);
    let calls: Vec<Call> =
        (0..9).map(|index| with(ask(&format!("{index}. {STORY}"), 20), ["plans", "", "facts"][index % 3])).collect();
    let together = run(join_all(calls.iter().map(|call| engine.call(call.clone()))));
    let fresh = start("adapters-alone", 1.0);
    for (call, together) in calls.into_iter().zip(together) {
        let (alone, together) = (answer(&fresh, call), together.unwrap());
        assert_eq!(said(&alone), said(&together), "{}", together.model);
    }
}

#[test]
fn cached_prefixes_are_used_with_their_own_adapter_only() {
    let engine = start("adapters-cache", 1.0);
    let cached = |adapter: &str| answer(&engine, with(ask(STORY, 4), adapter)).usage.cached_tokens;
    for adapter in ["plans", "", "facts"] {
        assert_eq!(cached(adapter), 0, "{adapter}: another's prefix");
        assert!(cached(adapter) > 64, "{adapter}: its own prefix");
    }
}

#[test]
fn scores_are_those_of_the_adapter_of_the_role() {
    let engine = start("adapters-scores", 1.0);
    let score = |agent| {
        let request = ScoreRequest {
            agent,
            step: "test",
            workflow: WorkflowId::default(),
            tenant: TenantId::LOCAL,
            priority: calls::Priority::Workflow,
            prompt: ask(STORY, 1).prompt,
            continuations: vec![" The lamp".into()],
            end: false,
        };
        run(engine.score(request)).unwrap().scores[0].logprob
    };
    let (base, adapted) = (score(Agent::Responder), score(Agent::Researcher));
    assert!((base - adapted).abs() > 0.01, "{base} and {adapted}");
    assert_eq!(score(Agent::Responder), base);
}

#[test]
fn saved_prefixes_come_back_for_the_same_adapter_and_not_for_another_of_its_name() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("prefixes-of-adapters");
    let _ = std::fs::remove_dir_all(&folder);
    let call = |workflow| {
        let prompt = calls::Prompt::new().system(STORY).user(calls::Stability::Volatile, "Who?");
        let call = Call::new(Agent::Researcher, "test", prompt, 4);
        Call { workflow: WorkflowId(workflow), ..call }
    };
    let engine = start("adapters-kept", 1.0);
    let first = answer(&engine, call(1));
    let kept = run(engine.keep_prefixes(TenantId::LOCAL, WorkflowId(1), &folder));
    assert!(kept.tokens >= 64 && kept.refused.is_empty(), "{kept:?}");
    let again = start("adapters-kept", 1.0);
    let back = run(again.bring_prefixes(TenantId::LOCAL, &folder));
    assert_eq!((back.tokens, back.refused.len()), (kept.tokens, 0));
    let second = answer(&again, call(1));
    assert!(second.usage.cached_tokens >= 64 && second.text == first.text);
    // The base and the other adapter find nothing of it.
    assert_eq!(answer(&again, with(call(2), "")).usage.cached_tokens, 0);
    let other = start("adapters-kept", 0.5);
    let back = run(other.bring_prefixes(TenantId::LOCAL, &folder));
    assert_eq!((back.tokens, back.refused.len()), (0, 1), "{back:?}");
    assert_eq!(answer(&other, call(1)).usage.cached_tokens, 0);
}

#[test]
fn a_shared_prompt_is_shared_by_calls_without_an_adapter_only() {
    let engine = start_sharing("adapters-shared-prompt", 1.0, Some(STORY.into()));
    let prompt = calls::Prompt::new().system(STORY).user(calls::Stability::Volatile, "Who?");
    let call = Call::new(Agent::Responder, "test", prompt, 4);
    let cached = |adapter| answer(&engine, with(call.clone(), adapter)).usage.cached_tokens;
    assert_eq!(cached("plans"), 0);
    assert!(cached("") >= 64);
}

#[test]
fn a_model_is_loaded_again_with_its_adapters_only() {
    let engine = start("loaded-again", 1.0);
    let call = Call { adapter: AdapterChoice::Named(Arc::from("facts")), ..ask(STORY, 8) };
    let before = run(engine.call(call.clone())).unwrap().text;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("loaded-again");
    let load = || LanguageModel::load(&folder, &candle_core::Device::Cpu).unwrap();
    assert!(engine.unload(0).unwrap());
    let refused = engine.load_again(0, load(), &[]).unwrap_err().to_string();
    assert_eq!(refused, "the adapters of tiny have changed since the engine was started");
    let plans = times(&golden(&load()), 1.0);
    let facts = times(&plans, -1.5);
    let named = |name: &str, adapter| NamedAdapter { name: name.into(), model: 0, adapter };
    engine.load_again(0, load(), &[named("plans", plans), named("facts", facts)]).unwrap();
    assert_eq!(run(engine.call(call)).unwrap().text, before);
}
