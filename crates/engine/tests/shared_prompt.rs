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
    start_in(1024, model, shared_prompt)
}

fn start_in(kv_tokens: usize, model: LanguageModel, shared_prompt: Option<String>) -> Result<Engine, StartError> {
    let models = Models { language: vec![("tiny".into(), model)], agents: HashMap::new(), embedder: None };
    Engine::start_with(models, Adapters::default(), Config { kv_tokens, ..Config::default() }, shared_prompt)
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
fn a_shared_prompt_that_leaves_no_room_for_a_question_is_refused() {
    let refused = |name, kv_tokens, times| {
        let model = tiny::model(name, |tokenizer| tokenizer);
        start_in(kv_tokens, model, Some(SYSTEM.repeat(times))).err().expect("it is too long").to_string()
    };
    let of_context = refused("shared-prompt-long", 1024, 9);
    assert!(of_context.starts_with("tiny cannot share the prompt: it has "), "{of_context}");
    assert!(of_context.ends_with(", but prompts can have 256"), "{of_context}");
    let of_cache = refused("shared-prompt-half", 128, 1);
    let (count, left) = of_cache
        .strip_prefix("tiny cannot share the prompt: it has ")
        .and_then(|rest| rest.split_once(" tokens, but prompts can have "))
        .unwrap_or_else(|| panic!("{of_cache}"));
    assert!(count.parse::<usize>().unwrap() >= left.parse().unwrap(), "its pages are not in the context: {of_cache}");
}
