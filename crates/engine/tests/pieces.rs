//! A vocabulary of SentencePiece, whose bytes are tokens beside pieces with the same bytes: replies satisfy their output format,
//! and prompts begin as the file demands. The model has random weights.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use calls::{Agent, Call, Caller, OutputFormat, Prompt, Sampling, Stability};
use candle_core::quantized::gguf_file::{self, Value as Entry};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use engine::{Config, Engine, Models};
use models::{LanguageModel, Tokenizer};
use serde_json::{Value, json};

const GOLDEN: &str = include_str!("../../../tests/golden/sentencepiece.json");
const TEMPLATE: &str = "{% for message in messages %}[INST] {{ message.content }} [/INST]{% endfor %}";
const HIDDEN: usize = 64;

/// A GGUF file of one layer with the golden's pieces.
fn write(path: &Path) {
    let golden: Value = serde_json::from_str(GOLDEN).unwrap();
    let list = |name: &str, entry: fn(&Value) -> Entry| {
        Entry::Array(golden[name].as_array().unwrap().iter().map(entry).collect())
    };
    let vocab = golden["tokens"].as_array().unwrap().len();
    let metadata = [
        ("general.architecture", Entry::String("llama".into())),
        ("llama.block_count", Entry::U32(1)),
        ("llama.embedding_length", Entry::U32(HIDDEN as u32)),
        ("llama.feed_forward_length", Entry::U32(HIDDEN as u32)),
        ("llama.context_length", Entry::U32(512)),
        ("llama.attention.head_count", Entry::U32(2)),
        ("llama.attention.head_count_kv", Entry::U32(2)),
        ("llama.attention.layer_norm_rms_epsilon", Entry::F32(1e-6)),
        ("tokenizer.ggml.model", Entry::String("llama".into())),
        ("tokenizer.ggml.tokens", list("tokens", |token| Entry::String(token.as_str().unwrap().into()))),
        ("tokenizer.ggml.scores", list("scores", |score| Entry::F32(score.as_f64().unwrap() as f32))),
        ("tokenizer.ggml.token_type", list("kinds", |kind| Entry::I32(kind.as_i64().unwrap() as i32))),
        ("tokenizer.ggml.unknown_token_id", Entry::U32(0)),
        ("tokenizer.ggml.bos_token_id", Entry::U32(1)),
        ("tokenizer.ggml.eos_token_id", Entry::U32(2)),
        ("tokenizer.chat_template", Entry::String(TEMPLATE.into())),
    ];
    let square = [HIDDEN, HIDDEN];
    let shapes: [(&str, &[usize]); 11] = [
        ("token_embd.weight", &[vocab, HIDDEN]),
        ("output_norm.weight", &[HIDDEN]),
        ("blk.0.attn_norm.weight", &[HIDDEN]),
        ("blk.0.ffn_norm.weight", &[HIDDEN]),
        ("blk.0.attn_q.weight", &square),
        ("blk.0.attn_k.weight", &square),
        ("blk.0.attn_v.weight", &square),
        ("blk.0.attn_output.weight", &square),
        ("blk.0.ffn_gate.weight", &square),
        ("blk.0.ffn_up.weight", &square),
        ("blk.0.ffn_down.weight", &square),
    ];
    let tensors = shapes.map(|(name, shape)| {
        let len: usize = shape.iter().product();
        let noise = |i: usize| ((i + name.len()) as u32).wrapping_mul(2_654_435_761) as f32 / 2f32.powi(31) - 1.0;
        let values: Vec<f32> = (0..len).map(|i| if shape.len() == 1 { 1.0 } else { 0.3 * noise(i) }).collect();
        let values = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
        (name, QTensor::quantize(&values, GgmlDType::F32).unwrap())
    });
    let metadata: Vec<(&str, &Entry)> = metadata.iter().map(|(key, entry)| (*key, entry)).collect();
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    gguf_file::write(&mut File::create(path).unwrap(), &metadata, &tensors).unwrap();
}

fn model() -> LanguageModel {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write(&path);
    LanguageModel::load(&path, &Device::Cpu).unwrap()
}

fn engine(model: LanguageModel) -> Engine {
    let models = Models { language: vec![("tiny".into(), model)], agents: HashMap::new(), embedder: None };
    Engine::start(models, Config { kv_tokens: 1024, ..Config::default() }).unwrap()
}

fn call(output_format: OutputFormat, seed: u64) -> Call {
    let prompt = Prompt::new().user(Stability::Volatile, "When, and  what for?");
    Call { output_format, sampling: Sampling::at(1.0, seed), ..Call::new(Agent::Responder, "test", prompt, 120) }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

#[test]
fn a_form_is_filled_in_whatever_is_drawn() {
    let engine = engine(model());
    let schema = json!({ "type": "object", "required": ["name", "kind", "count"], "additionalProperties": false,
        "properties": {
            "name": { "type": "string" },
            "kind": { "enum": ["of the watch", "日本", " two  spaces"] },
            "count": { "type": "integer" } } });
    for seed in 0..12 {
        let reply = run(engine.call(call(OutputFormat::Json(schema.clone()), seed))).unwrap();
        let value: Value = serde_json::from_str(&reply.text).unwrap_or_else(|why| panic!("{why}: {:?}", reply.text));
        assert!(jsonschema::is_valid(&schema, &value), "{value}");
    }
}

#[test]
fn a_prompt_begins_with_the_token_of_beginnings_and_a_space() {
    let model = model();
    let tokenizer: &Tokenizer = &model.tokenizer;
    let bos = tokenizer.special("<s>").unwrap();
    let want = [vec![bos], tokenizer.encode(" [INST] When, and  what for? [/INST]").unwrap()].concat();
    let engine = engine(model);
    let reply = run(engine.call(call(OutputFormat::Text, 1))).unwrap();
    assert_eq!(reply.usage.prompt_tokens, want.len());
    assert_eq!(reply.rendered, "<s>[INST] When, and  what for? [/INST]");
}
