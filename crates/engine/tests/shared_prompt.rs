//! A prompt that the operator shares among tenants.

use std::collections::HashMap;

use calls::{Agent, Call, Caller, Prompt, Stability, TenantId, WorkflowId};
use candle_core::Device;
use engine::{Adapters, Config, Engine, Models, StartError};
use models::LanguageModel;

use crate::tiny::{self, run};

const SYSTEM: &str = "You answer in one sentence, in the language of the question, and name the page.";
const QUESTION: &str = "Where does the ferry go in the winter, and who pays?";

fn start(model: LanguageModel, shared_prompt: Option<String>) -> Result<Engine, StartError> {
    let models = Models { language: vec![("tiny".into(), model)], agents: HashMap::new(), embedder: None };
    Engine::start_with(models, Adapters::default(), Config { kv_tokens: 1024, ..Config::default() }, shared_prompt)
}

fn ask(tenant: u64, question: &str) -> Call {
    let prompt = Prompt::new().system(SYSTEM).user(Stability::Volatile, question);
    Call { tenant: TenantId::new(tenant), ..Call::new(Agent::Responder, "test", prompt, 4) }
}

#[test]
fn tenants_see_the_shared_prompt_as_cached_from_their_first_call_on_and_nothing_behind_it() {
    let model = tiny::model("shared-prompt", |tokenizer| tokenizer);
    let path = model.source.path.clone();
    let engine = start(model, Some(SYSTEM.into())).unwrap();
    let [one, other] = [QUESTION, "?"].map(|question| engine.prompt_ids(&ask(1, question)).unwrap());
    let shared = one.iter().zip(&other).take_while(|(one, other)| one == other).count() / 32 * 32;
    assert!(shared >= 64);
    let cached = |tenant| run(engine.call(ask(tenant, QUESTION))).unwrap().usage.cached_tokens;
    assert_eq!([cached(1), cached(2)], [shared; 2]);
    assert!(cached(1) > shared, "a tenant finds its own prompts");
    let of_method = Call { workflow: WorkflowId(1), ..ask(3, QUESTION) };
    let usage = run(engine.call(of_method)).unwrap().usage;
    assert_eq!(usage.cached_tokens, 0, "its prefixes may be saved, and are whole then");
    assert!(engine.unload(0).unwrap());
    engine.load_again(0, LanguageModel::load(&path, &Device::Cpu).unwrap(), &[]).unwrap();
    assert_eq!(cached(2), shared, "it is computed again with the model");
}

#[test]
fn a_shared_prompt_changes_no_reply() {
    let model = |name| tiny::model(name, |tokenizer| tokenizer);
    let sharing = start(model("shared-prompt-reply"), Some(SYSTEM.into())).unwrap();
    let plain = start(model("shared-prompt-plain"), None).unwrap();
    let reply = |engine: &Engine| {
        let reply = run(engine.call(Call { logprobs: Some(2), ..ask(1, QUESTION) })).unwrap();
        (reply.text, reply.logprobs)
    };
    assert_eq!(reply(&sharing), reply(&plain));
}

#[test]
fn a_shared_prompt_that_the_context_does_not_hold_is_refused() {
    let model = tiny::model("shared-prompt-long", |tokenizer| tokenizer);
    let refused = start(model, Some(SYSTEM.repeat(9))).err().expect("it is too long").to_string();
    assert!(refused.starts_with("tiny cannot share the prompt: it has "), "{refused}");
    assert!(refused.ends_with("; the context holds 256"), "{refused}");
}
