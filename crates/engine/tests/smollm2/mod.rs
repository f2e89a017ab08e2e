//! An engine on SmolLM2's real weights, and calls to it.

use std::collections::HashMap;

use calls::{Agent, Call, OutputFormat, Prompt, Sampling, Stability};
use candle_core::Device;
use engine::{Config, Engine, Models};
use models::LanguageModel;
use serde_json::Value;

/// `None`, with the reason on standard output, if the weights are not available.
pub fn engine(config: Config) -> Option<Engine> {
    let path = test_support::weights("smollm2-135m-instruct")?;
    let model = LanguageModel::load(&path, &Device::Cpu).unwrap();
    let models = Models { language: vec![("smollm2".into(), model)], agents: HashMap::new(), embedder: None };
    Some(Engine::start(models, config).unwrap())
}

pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

pub fn ask(text: &str, max_output_tokens: usize) -> Call {
    let prompt = Prompt::new().system("You are a helpful assistant.").user(Stability::Volatile, text);
    Call::new(Agent::Responder, "test", prompt, max_output_tokens)
}

pub fn shaped(text: &str, schema: Value, max_output_tokens: usize, seed: u64) -> Call {
    Call {
        output_format: OutputFormat::Json(schema),
        sampling: Sampling::at(1.0, seed),
        ..ask(text, max_output_tokens)
    }
}
