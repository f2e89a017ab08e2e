//! A reply in the format of a JSON schema, from a model on this disk (a GGUF file, or a folder with safetensors).
//!
//!     cargo run --release -p engine --example json -- MODEL

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;

use calls::{Agent, Call, Caller, OutputFormat, Prompt, Stability, schema};
use candle_core::Device;
use engine::{Config, Engine, Models};
use models::LanguageModel;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: json MODEL")?;
    let model = LanguageModel::load(Path::new(&path), &Device::Cpu)?;
    // Agents that are not named are served by the first model.
    let models = Models { language: vec![("model".to_owned(), model)], agents: HashMap::new(), embedder: None };
    let engine = Engine::start(models, Config::default())?;
    let format = schema::object([("city", schema::string(40)), ("is_capital", schema::boolean())]);
    let prompt = Prompt::new()
        .system("Answer in JSON.")
        .user(Stability::Volatile, "Which city is the Eiffel Tower in, and is it a capital?");
    let call = Call::new(Agent::Responder, "demo.city", prompt, 60);
    let reply = engine.call(Call { output_format: OutputFormat::Json(format), ..call }).await?;
    println!(
        "{}\n{} of {} prompt tokens were cached",
        reply.text, reply.usage.cached_tokens, reply.usage.prompt_tokens
    );
    Ok(())
}
