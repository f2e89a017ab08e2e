//! A tiny network with random weights, and what both kinds of reinforcement share.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use candle_core::{Device, Tensor};
use models::adapter::Projection;
use models::{Checkpoint, LoadOptions, LocalTime};
use portable::{Lora, LoraSettings, Network};
use serde_json::json;
use train::examples::Reader;
use train::optimiser::{Decay, Settings};
use train::reinforce::Tasks;
use train::run::Options;
use train::sampler::EngineSampler;

pub const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
                        {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

pub const REPLY_TOKENS: usize = 4;

pub struct Tiny {
    pub folder: tempfile::TempDir,
    pub checkpoint: Checkpoint,
    pub network: Network,
}

/// The golden Llama with random weights, where every byte is a token.
pub fn tiny() -> Tiny {
    tiny_with(TEMPLATE)
}

/// The same with a chat template.
pub fn tiny_with(template: &str) -> Tiny {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama");
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        fs::copy(golden.join(name), folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let checkpoint = Checkpoint::open(folder.path(), LoadOptions::default()).unwrap();
    let network = Network::load(&checkpoint.spec, &checkpoint.weights, 256, &Device::Cpu).unwrap();
    Tiny { folder, checkpoint, network }
}

impl Tiny {
    pub fn reader(&self) -> Reader<'_> {
        let Checkpoint { tokenizer, template, eos, .. } = &self.checkpoint;
        Reader { tokenizer, template, eos, longest: 200 }
    }

    pub fn tasks(&self, wanted: &str) -> Tasks {
        let path = self.folder.path().join("tasks.jsonl");
        let line = |question: &str| {
            let turns = [("system", "Be short."), ("user", question), ("assistant", wanted)];
            json!({ "messages": turns.map(|(role, content)| json!({ "role": role, "content": content })) }).to_string()
        };
        fs::write(&path, [line("Where?"), line(&"Why? ".repeat(50)), line("When?")].join("\n")).unwrap();
        let tasks = self.reader().tasks(&path, REPLY_TOKENS).unwrap();
        assert_eq!(tasks.too_long, 1);
        tasks
    }

    pub fn engine(&self) -> EngineSampler {
        let model = self.folder.path().to_owned();
        EngineSampler { model, temperature: 1.0, reply_tokens: REPLY_TOKENS, time: LocalTime::now() }
    }
}

pub fn settings() -> LoraSettings {
    LoraSettings { rank: 4, alpha: 8.0, targets: Projection::ALL.to_vec() }
}

pub fn options(folder: &Path, steps: usize) -> Options {
    let LoraSettings { rank, alpha, targets } = settings();
    Options {
        folder: folder.to_owned(),
        base: "tiny".into(),
        base_digest: "tiny".into(),
        seed: 5,
        rank,
        alpha,
        targets,
        start: None,
        optimiser: Settings { rate: 2e-2, warm_up: 0, steps, decay: Decay::Linear, weight_decay: 0.0, clip: 1.0 },
        memory: 1 << 30,
        checkpoint_every: Duration::from_hours(1),
        evaluate_every: 1000,
        stop_after: None,
        time: LocalTime::now(),
    }
}

/// The sums of gradients that differ by more than rounding.
pub fn differing(a: &[Vec<f32>], b: &[Vec<f32>]) -> usize {
    a.iter().flatten().zip(b.iter().flatten()).filter(|(a, b)| (*a - *b).abs() > 1e-4 * a.abs().max(1.0)).count()
}

/// An adapter that changes nothing yet.
pub fn fresh(tiny: &Tiny) -> Lora {
    Lora::new(tiny.network.spec(), settings(), &Device::Cpu, || 0.3).unwrap()
}

/// The fresh adapter after a small step against its gradients.
pub fn stepped(tiny: &Tiny, gradients: &[Vec<f32>]) -> Lora {
    let moved = fresh(tiny);
    for (variable, gradient) in moved.variables().into_iter().zip(gradients) {
        let values = variable.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let values: Vec<f32> = values.iter().zip(gradient).map(|(value, g)| value - 0.01 * g).collect();
        variable.set(&Tensor::from_vec(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
    }
    moved
}
