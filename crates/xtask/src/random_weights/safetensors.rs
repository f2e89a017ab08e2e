//! BGE-M3's shape (XLM-RoBERTa-large) as a Hugging Face folder.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use random::Random;
use serde_json::{Map, Value, json};

use super::blocks::Format;

const VOCAB: usize = 250_002;
const HIDDEN: usize = 1024;
const LAYERS: usize = 24;
const HEADS: usize = 16;
const FFN: usize = 4096;
const POSITIONS: usize = 8194;

pub(super) fn write_bge_m3(folder: &Path, tokenizer: &str) -> Result<PathBuf, String> {
    let config = json!({
        "architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta", "vocab_size": VOCAB, "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": FFN, "hidden_act": "gelu",
        "max_position_embeddings": POSITIONS, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1,
        "bos_token_id": 0, "eos_token_id": 2, "position_embedding_type": "absolute", "torch_dtype": "bfloat16",
    });
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(folder.join("config.json"), config.to_string()))
        .and_then(|()| fs::write(folder.join("tokenizer.json"), tokenizer))
        .and_then(|()| File::create(folder.join("model.safetensors")))
        .and_then(|file| put(BufWriter::new(file)));
    written.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder.to_owned())
}

/// Names and shapes, in the order of the file.
fn tensors() -> Vec<(String, Vec<usize>)> {
    let mut tensors = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![VOCAB, HIDDEN]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![POSITIONS, HIDDEN]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![1, HIDDEN]),
    ];
    let norm = |tensors: &mut Vec<_>, name: String| {
        tensors.extend(["weight", "bias"].map(|kind| (format!("{name}.LayerNorm.{kind}"), vec![HIDDEN])));
    };
    norm(&mut tensors, "embeddings".to_owned());
    for layer in 0..LAYERS {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let matrices = [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", FFN, HIDDEN),
            ("output.dense", HIDDEN, FFN),
        ];
        for (part, rows, cols) in matrices {
            tensors.push((name(&format!("{part}.weight")), vec![rows, cols]));
            tensors.push((name(&format!("{part}.bias")), vec![rows]));
        }
        norm(&mut tensors, name("attention.output"));
        norm(&mut tensors, name("output"));
    }
    tensors
}

fn put(mut out: impl Write) -> io::Result<()> {
    let tensors = tensors();
    let mut head = Map::new();
    let mut at = 0;
    for (name, shape) in &tensors {
        let end = at + Format::Bf16.bytes(shape.iter().product());
        let place: Value = json!({ "dtype": "BF16", "shape": shape, "data_offsets": [at, end] });
        head.insert(name.clone(), place);
        at = end;
    }
    let mut head = serde_json::to_vec(&head)?;
    head.resize(head.len().next_multiple_of(8), b' ');
    out.write_all(&(head.len() as u64).to_le_bytes())?;
    out.write_all(&head)?;
    let mut random = Random::new(1);
    for (name, shape) in tensors {
        let values = shape.iter().product();
        let bytes = if name.ends_with("LayerNorm.weight") {
            [0x80, 0x3f].repeat(values)
        } else {
            Format::Bf16.random(values, &mut random)
        };
        out.write_all(&bytes)?;
    }
    out.flush()
}
