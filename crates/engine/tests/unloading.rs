//! Language models that leave memory and come back under the same engine.

use calls::{Agent, CallError, Caller, ModelInfo, ModelState, Status, Tokens};
use candle_core::Device;
use engine::{Config, Engine, StartError};
use models::LanguageModel;

use crate::tiny::{self, ask, run};

fn state(engine: &Engine) -> ModelState {
    engine.state().remove(0)
}

#[test]
fn an_unloaded_model_refuses_calls_and_answers_as_before_once_it_is_loaded_again() {
    let model = tiny::model("unloading", |tokenizer| tokenizer);
    let path = model.source.path.clone();
    let engine = tiny::start(model, Config { kv_tokens: 2048, ..Config::default() });
    let call = ask("The sea is wide", 12);
    let text = run(engine.call(call.clone())).unwrap().text;
    let before = state(&engine);
    assert!(before.total_pages == 64 && before.steps > 0, "{before:?}");

    assert!(engine.unload(0).unwrap());
    assert!(engine.unload(0).unwrap(), "it is unloaded already");
    let refused = run(engine.call(call.clone())).unwrap_err();
    assert_eq!(refused.to_string(), "no model is loaded for this call: its model was unloaded");
    let unloaded = state(&engine);
    assert_eq!((unloaded.total_pages, unloaded.cached_pages), (0, 0));
    assert!(unloaded.steps >= before.steps, "its counts stay: {unloaded:?}");
    assert!(engine.is_alive() && engine.prompt_tokens(&call) > 12, "calls can still be prepared");
    assert_eq!(engine.model(Agent::Responder), "tiny");

    let load = || LanguageModel::load(&path, &Device::Cpu).unwrap();
    engine.load_again(0, load(), &[]).unwrap();
    let reply = run(engine.call(call)).unwrap();
    assert_eq!((reply.text, reply.usage.cached_tokens), (text, 0));
    let after = state(&engine);
    assert!(after.total_pages == before.total_pages && after.steps > unloaded.steps, "{after:?}");
    engine.load_again(0, load(), &[]).unwrap();
    assert!(state(&engine).cached_pages > 0, "a model that is loaded stays as it is");
}

#[test]
fn a_model_that_has_changed_is_not_loaded_again() {
    let engine = tiny::start(tiny::model("changed", |tokenizer| tokenizer), Config::default());
    assert!(engine.unload(0).unwrap());
    let other = tiny::model("changed-since", |tokenizer| tokenizer);
    let refused = engine.load_again(0, other, &[]).unwrap_err();
    assert!(matches!(&refused, StartError::Changed { .. }), "{refused}");
    assert_eq!(refused.to_string(), "the files of tiny have changed since the engine was started");
    assert!(matches!(run(engine.call(ask("The sea", 2))), Err(CallError::NoModel { .. })));
}
