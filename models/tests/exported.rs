//! SmolLM2's real weights exported as a Qwen2 checkpoint with biases of zero, as a GGUF file and as safetensors: the same
//! network by another spec, so the logits have the same bits as the original's.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::quantized::{GgmlDType, QStorage, QTensor, gguf_file};
use candle_core::{DType, Device, Tensor};
use models::{
    Batch, DecoderSpec, KvCache, KvPrecision, LanguageModel, LoadOptions, PAGE_TOKENS, PagedSequence, Precision,
};
use serde_json::json;

/// Greedy continuations of two prompts, with the logits that they were drawn from.
fn continuations(model: &LanguageModel) -> Vec<(Vec<u32>, Vec<f32>)> {
    let of = |text: &str| {
        let prompt = model.tokenizer.encode_prompt(text, &[]).unwrap();
        let mut tokens = prompt.clone();
        let cache = KvCache::new(model.spec(), 4, KvPrecision::F32, &Device::Cpu).unwrap();
        let mut past = 0;
        let mut logits = Vec::new();
        for _ in 0..24 {
            let positions: Vec<u32> = (past as u32..tokens.len() as u32).collect();
            let sequences = [PagedSequence { rows: 0..positions.len(), past, pages: &[0, 1, 2, 3] }];
            let batch = Batch {
                tokens: &tokens[past..],
                positions: &positions,
                slots: &positions,
                sequences: &sequences,
                logit_rows: &[positions.len() as u32 - 1],
                wanted: &[],
            };
            logits = model.network.forward(batch, &cache).unwrap().logits.to_vec2::<f32>().unwrap().remove(0);
            past = tokens.len();
            tokens.push((0..logits.len()).reduce(|a, b| if logits[b] > logits[a] { b } else { a }).unwrap() as u32);
        }
        assert!(tokens.len() <= 4 * PAGE_TOKENS);
        (tokens, logits)
    };
    ["<|im_start|>user\nWhat is the sea?<|im_end|>\n<|im_start|>assistant\n", "Once upon a time"].map(of).into()
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("exported-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A GGUF file's rows of query and key heads in the order of halves; llama's are in the order of pairs.
fn halves_of(bytes: &[u8], rows: usize, dim: usize) -> Vec<u8> {
    let row_bytes = bytes.len() / rows;
    let source = |row: usize| row / dim * dim + row % dim % (dim / 2) * 2 + row % dim / (dim / 2);
    (0..rows).flat_map(|row| bytes[source(row) * row_bytes..][..row_bytes].to_vec()).collect()
}

fn export_gguf(original: &Path, spec: &DecoderSpec, to: &Path) {
    let mut file = File::open(original).unwrap();
    let content = gguf_file::Content::read(&mut file).unwrap();
    let renamed = |name: &String| name.replacen("llama.", "qwen2.", 1);
    let mut metadata: HashMap<String, gguf_file::Value> =
        content.metadata.iter().map(|(name, value)| (renamed(name), value.clone())).collect();
    metadata.insert("general.architecture".into(), gguf_file::Value::String("qwen2".into()));
    let mut tensors: Vec<(String, QTensor)> = Vec::new();
    for name in content.tensor_infos.keys() {
        let mut tensor = content.tensor(&mut file, name, &Device::Cpu).unwrap();
        if name.ends_with("attn_q.weight") || name.ends_with("attn_k.weight") {
            let rows = tensor.shape().dims()[0];
            let bytes = halves_of(&tensor.data().unwrap(), rows, spec.heads.dim);
            let storage = QStorage::from_data(Cow::Owned(bytes), &Device::Cpu, tensor.dtype()).unwrap();
            tensor = QTensor::new(storage, tensor.shape().clone()).unwrap();
        }
        if let Some(stem) = ["attn_q", "attn_k", "attn_v"]
            .into_iter()
            .find_map(|part| name.strip_suffix(&format!("{part}.weight")).map(|layer| format!("{layer}{part}")))
        {
            let zeros = Tensor::zeros(tensor.shape().dims()[0], DType::F32, &Device::Cpu).unwrap();
            tensors.push((format!("{stem}.bias"), QTensor::quantize(&zeros, GgmlDType::F32).unwrap()));
        }
        tensors.push((name.clone(), tensor));
    }
    let metadata: Vec<(&str, &gguf_file::Value)> =
        metadata.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let tensors: Vec<(&str, &QTensor)> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    gguf_file::write(&mut File::create(to).unwrap(), &metadata, &tensors).unwrap();
}

#[test]
fn as_a_gguf_file_it_gives_the_bits_of_the_original() {
    let Some(path) = test_support::weights("smollm2-135m-instruct") else { return };
    let original = LanguageModel::load(&path, &Device::Cpu).unwrap();
    let file = folder("gguf").join("model.gguf");
    export_gguf(&path, original.spec(), &file);
    let exported = LanguageModel::load(&file, &Device::Cpu).unwrap();
    let spec = exported.spec();
    assert_eq!((spec.architecture.as_str(), spec.qkv_bias, spec.rope.interleaved), ("qwen2", true, false));
    assert_eq!(continuations(&exported), continuations(&original));
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn as_safetensors_it_gives_the_bits_of_the_original_in_f32() {
    let Some(path) = test_support::weights("smollm2-135m-instruct") else { return };
    let in_f32 = LoadOptions { precision: Precision::F32, yarn: None };
    let original = LanguageModel::load_with(&path, in_f32, &Device::Cpu).unwrap();
    let folder = folder("safetensors");
    export_safetensors(&path, original.spec(), &folder);
    let exported = LanguageModel::load(&folder, &Device::Cpu).unwrap();
    let spec = exported.spec();
    assert_eq!((spec.architecture.as_str(), spec.qkv_bias, spec.tied), ("qwen2", true, true));
    let mut eos = original.eos.clone();
    eos.sort_unstable();
    assert_eq!(exported.eos, eos);
    assert_eq!(continuations(&exported), continuations(&original));
    std::fs::remove_dir_all(folder).unwrap();
}

fn export_safetensors(original: &Path, spec: &DecoderSpec, folder: &Path) {
    let mut file = File::open(original).unwrap();
    let content = gguf_file::Content::read(&mut file).unwrap();
    let mut tensors: HashMap<String, Tensor> = HashMap::new();
    for name in content.tensor_infos.keys() {
        let tensor = content.tensor(&mut file, name, &Device::Cpu).unwrap().dequantize(&Device::Cpu).unwrap();
        let name = hugging_face_name(name);
        let rows = tensor.dims()[0];
        if ["q_proj", "k_proj", "v_proj"].iter().any(|part| name.contains(part)) {
            let zeros = Tensor::zeros(rows, DType::F32, &Device::Cpu).unwrap();
            tensors.insert(name.replace(".weight", ".bias"), zeros);
        }
        let in_pairs = name.contains("q_proj") || name.contains("k_proj");
        tensors.insert(name, if in_pairs { in_halves(&tensor, spec.heads.dim) } else { tensor });
    }
    candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
    let config = json!({
        "model_type": "qwen2",
        "hidden_size": spec.hidden,
        "num_hidden_layers": spec.layers,
        "num_attention_heads": spec.heads.queries,
        "num_key_value_heads": spec.heads.keys,
        "intermediate_size": spec.ffn,
        "vocab_size": spec.vocab,
        "max_position_embeddings": spec.context,
        "rms_norm_eps": spec.norm_epsilon,
        "rope_theta": spec.rope.theta,
        "hidden_act": "silu",
        "tie_word_embeddings": true,
    });
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    export_tokenizer(&content, folder);
}

fn in_halves(tensor: &Tensor, dim: usize) -> Tensor {
    let (rows, cols) = tensor.dims2().unwrap();
    let pairs = tensor.reshape((rows / dim, dim / 2, 2, cols)).unwrap();
    pairs.transpose(1, 2).unwrap().contiguous().unwrap().reshape((rows, cols)).unwrap()
}

fn hugging_face_name(gguf: &str) -> String {
    const PARTS: [(&str, &str); 11] = [
        ("token_embd", "model.embed_tokens"),
        ("output_norm", "model.norm"),
        ("attn_norm", "input_layernorm"),
        ("attn_q", "self_attn.q_proj"),
        ("attn_k", "self_attn.k_proj"),
        ("attn_v", "self_attn.v_proj"),
        ("attn_output", "self_attn.o_proj"),
        ("ffn_norm", "post_attention_layernorm"),
        ("ffn_gate", "mlp.gate_proj"),
        ("ffn_up", "mlp.up_proj"),
        ("ffn_down", "mlp.down_proj"),
    ];
    let part = |name: &str| PARTS.iter().find(|(gguf, _)| *gguf == name).unwrap().1.to_owned();
    let stem = gguf.strip_suffix(".weight").unwrap();
    match stem.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) {
        Some((layer, name)) => format!("model.layers.{layer}.{}.weight", part(name)),
        None => format!("{}.weight", part(stem)),
    }
}

/// The vocabulary as the hub publishes it: `tokenizer.json` and the chat template.
fn export_tokenizer(content: &gguf_file::Content, folder: &Path) {
    let list = |key: &str| content.metadata[key].to_vec().unwrap();
    let text = |value: &gguf_file::Value| value.to_string().unwrap().clone();
    let tokens: Vec<String> = list("tokenizer.ggml.tokens").iter().map(text).collect();
    let merges: Vec<String> = list("tokenizer.ggml.merges").iter().map(text).collect();
    let vocab: HashMap<&String, usize> = tokens.iter().enumerate().map(|(id, token)| (token, id)).collect();
    let special = |(id, kind): (usize, &gguf_file::Value)| {
        let added = json!({ "id": id, "content": tokens[id], "single_word": false, "lstrip": false, "rstrip": false,
                            "normalized": false, "special": true });
        (kind.to_i32().unwrap() == 3).then_some(added)
    };
    let added: Vec<_> = list("tokenizer.ggml.token_type").iter().enumerate().filter_map(special).collect();
    let tokenizer = json!({
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": [
            { "type": "Digits", "individual_digits": true },
            { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
        ] },
        "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true },
        "model": { "type": "BPE", "vocab": vocab, "merges": merges },
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let template = text(&content.metadata["tokenizer.chat_template"]);
    std::fs::write(folder.join("chat_template.jinja"), template).unwrap();
}
