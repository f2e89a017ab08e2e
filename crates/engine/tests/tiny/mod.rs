//! An engine on the golden Llama with random weights: 256 tokens of context, every byte is a token.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use calls::{Agent, Call, Prompt, Sampling, Stability};
use candle_core::Device;
use engine::{Config, Engine, Models};
use models::{Backend, LanguageModel, LoadOptions, Part};

const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
                        {% endfor %}<|im_start|>assistant\n";

/// The golden model in a folder of its own, with changes to its tokenizer.
pub fn model(name: &str, change: impl Fn(String) -> String) -> LanguageModel {
    model_with(name, TEMPLATE, change)
}

/// The same with a chat template.
pub fn model_with(name: &str, template: &str, change: impl Fn(String) -> String) -> LanguageModel {
    LanguageModel::load(&folder(name, template, change), &Device::Cpu).unwrap()
}

/// The same on a backend.
#[allow(dead_code, reason = "one of the test binaries chooses it")]
pub fn model_on(name: &str, backend: &dyn Backend) -> LanguageModel {
    LanguageModel::load_on(&folder(name, TEMPLATE, |tokenizer| tokenizer), LoadOptions::default(), backend).unwrap()
}

/// The same in parts.
#[allow(dead_code, reason = "one of the test binaries divides it")]
pub fn model_split(name: &str, parts: &[(&dyn Backend, Part)]) -> LanguageModel {
    LanguageModel::load_split(&folder(name, TEMPLATE, |tokenizer| tokenizer), LoadOptions::default(), parts).unwrap()
}

fn folder(name: &str, template: &str, change: impl Fn(String) -> String) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama");
    let folder: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["config.json", "model.safetensors"] {
        std::fs::copy(golden.join(name), folder.join(name)).unwrap();
    }
    let tokenizer = std::fs::read_to_string(golden.join("tokenizer.json")).unwrap();
    std::fs::write(folder.join("tokenizer.json"), change(tokenizer)).unwrap();
    std::fs::write(folder.join("chat_template.jinja"), template).unwrap();
    folder
}

pub fn start(model: LanguageModel, config: Config) -> Engine {
    let models = Models { language: vec![("tiny".into(), model)], agents: HashMap::new(), embedder: None };
    Engine::start(models, config).unwrap()
}

pub fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

#[allow(dead_code, reason = "not every test asks by it")]
pub fn ask(text: &str, max_output_tokens: usize) -> Call {
    let prompt = Prompt::new().user(Stability::Volatile, text);
    Call::new(Agent::Responder, "test", prompt, max_output_tokens)
}

/// A call whose reply is one letter again and again, each of them a token.
#[allow(dead_code, reason = "not every test needs its reply")]
pub fn letters(engine: &Engine, count: usize) -> Call {
    let [with, without] = ["x", ""].map(|text| engine.prompt_ids(&ask(text, 1)).unwrap());
    let letter = with.into_iter().find(|token| !without.contains(token)).unwrap();
    let sampling = Sampling { logit_bias: [(letter, 1000.0)].into(), ..Sampling::GREEDY };
    Call { sampling, ..ask("Say it.", count) }
}
