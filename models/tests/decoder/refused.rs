//! Checkpoints that would be computed wrongly are refused, and the error names what is in the way.

use std::collections::HashMap;
use std::path::Path;

use candle_core::quantized::gguf_file::Value as GgufValue;
use candle_core::{DType, Device, Tensor};
use models::{DecoderSpec, Footprint, LoadOptions, Spec};
use serde_json::{Value, json};

use super::{gguf, golden, load, read};

/// Why a checkpoint is refused, if it is.
fn refusal(path: &Path) -> Option<String> {
    let error = Footprint::of(path, LoadOptions::default()).err()?.to_string();
    Some(error.replace(&path.display().to_string(), "~"))
}

/// A copy of a golden with other fields in its configuration and with further tensors.
fn altered(name: &str, fields: &Value, tensors: &[(&str, Tensor)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut config = read(golden(name).join("config.json"));
    for (field, value) in fields.as_object().unwrap() {
        config[field] = value.clone();
    }
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    let mut all = candle_core::safetensors::load(golden(name).join("model.safetensors"), &Device::Cpu).unwrap();
    all.extend(tensors.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())));
    candle_core::safetensors::save(&all, folder.path().join("model.safetensors")).unwrap();
    folder
}

#[test]
fn a_field_that_nothing_honours_is_named() {
    let check = |name: &str, fields: Value, expected: Option<&str>| {
        let folder = altered(name, &fields, &[]);
        let found = refusal(folder.path());
        let fits = match (&found, expected) {
            (Some(found), Some(expected)) => found.contains(expected),
            (found, expected) => found.is_none() && expected.is_none(),
        };
        assert!(fits, "{fields}: {found:?} is not {expected:?}");
    };
    check("llama", json!({}), None);
    check("llama", json!({ "use_cache": false, "pretraining_tp": 1, "logit_scale": null }), None);
    check("llama", json!({ "logit_scale": 0.5 }), Some("`logit_scale` = 0.5"));
    check("llama", json!({ "quantization_config": { "quant_method": "gptq" } }), Some("`quantization_config`"));
    check("llama", json!({ "partial_rotary_factor": 0.5 }), Some("`partial_rotary_factor` = 0.5"));
    check("llama", json!({ "sliding_window": 20 }), Some("`sliding_window`"));
    check("llama", json!({ "sliding_window": 20, "use_sliding_window": false }), None);
    check("llama", json!({ "tie_word_embeddings": "yes" }), Some("`tie_word_embeddings` is \"yes\""));
    check("llama", json!({ "num_key_value_heads": "1" }), Some("`num_key_value_heads` is \"1\""));
    check("qwen2_tied", json!({ "mlp_bias": true }), Some("`mlp_bias` = true"));
    check("qwen2_window", json!({ "layer_types": ["full_attention", "linear_attention"] }), Some("`linear_attention`"));
    let (full, sliding) = (["full_attention"; 2], ["sliding_attention"; 2]);
    check("qwen2_tied", json!({ "layer_types": sliding }), Some("contradict"));
    check("mistral_window", json!({ "layer_types": full }), Some("contradict"));
    check("mistral_window", json!({ "layer_types": sliding }), None);
    let scaling = |more: Value| {
        let mut scaling = json!({ "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64 });
        scaling.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "rope_scaling": scaling })
    };
    check("llama", scaling(json!({ "beta_fast": 16 })), None);
    check("llama", scaling(json!({ "mrope_section": [8, 8] })), Some("`rope_scaling.mrope_section`"));
    check("llama", scaling(json!({ "rope_type": "longrope" })), Some("rope scaling `longrope`"));
    check("llama", scaling(json!({ "type": "linear" })), Some("both `yarn` and `linear`"));
    check("llama", json!({ "rope_parameters": { "rope_theta": 5.0 } }), Some("`rope_theta` is both"));
    check("llama", json!({ "model_type": "gemma2" }), Some("model type `gemma2`"));
    check("gemma3", json!({}), None);
    check("gemma3", json!({ "attn_logit_softcapping": 50.0 }), Some("`attn_logit_softcapping` = 50"));
    check("gemma3", json!({ "final_logit_softcapping": 30.0 }), Some("`final_logit_softcapping` = 30"));
    check("gemma3", json!({ "use_bidirectional_attention": true }), Some("`use_bidirectional_attention`"));
    check("gemma3", json!({ "hidden_activation": "silu" }), Some("activation `silu`"));
    check("gemma3", json!({ "sliding_window": 0 }), Some("a sliding window of no tokens"));
}

/// A list of this number of layers could not be allocated.
#[test]
fn more_layers_than_any_network_has_are_refused() {
    let check = |found: Option<String>, layers: u64| {
        let expected = format!("the model's configuration is unusable: {layers} layers, where 4096 are the most");
        assert_eq!(found, Some(expected));
    };
    let layers = 10_u64.pow(15);
    for name in ["llama", "qwen2_window", "gemma3"] {
        check(refusal(altered(name, &json!({ "num_hidden_layers": layers }), &[]).path()), layers);
    }
    let encoder = json!({ "model_type": "bert", "num_attention_heads": 2, "hidden_size": 8, "hidden_act": "gelu",
        "max_position_embeddings": 16, "num_hidden_layers": layers, "intermediate_size": 8, "vocab_size": 8,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12 });
    check(Spec::from_config(&encoder).err().map(|error| error.to_string()), layers);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let spec = load("llama_biases").spec().clone();
    let tensors = gguf::tensors("llama_biases", &spec);
    gguf::write(&path, &DecoderSpec { layers: 4097, ..spec }, &tensors, &[]);
    check(refusal(&path), 4097);
}

#[test]
fn tensors_that_nothing_reads_are_named() {
    let ones = |len: usize| Tensor::ones(len, DType::F32, &Device::Cpu).unwrap();
    let check = |name: &str, tensor: &str, value: &Tensor, expected: Option<&str>| {
        let folder = altered(name, &json!({}), &[(tensor, value.clone())]);
        assert_eq!(refusal(folder.path()).as_deref(), expected, "{tensor}");
    };
    let unread = |tensor: &str| format!("~ has tensors that its network does not read: `{tensor}`");
    for tensor in ["model.layers.1.self_attn.o_proj.bias", "score.weight", "model.layers.2.input_layernorm.weight"] {
        check("llama", tensor, &ones(64), Some(&unread(tensor)));
    }
    let integers = ones(4).to_dtype(DType::I64).unwrap();
    check("llama", "model.layers.0.mlp.up_proj.g_idx", &integers, Some(&unread("model.layers.0.mlp.up_proj.g_idx")));
    check("llama", "model.layers.0.self_attn.rotary_emb.inv_freq", &ones(16), None);
    let spec = load("qwen2_tied").spec().clone();
    let other = Tensor::ones((spec.vocab, spec.hidden), DType::F32, &Device::Cpu).unwrap();
    let differs = "the model's configuration is unusable: `tie_word_embeddings` is true, but `lm_head.weight` differs from \
                   `model.embed_tokens.weight`";
    check("qwen2_tied", "lm_head.weight", &other, Some(differs));
    let all = candle_core::safetensors::load(golden("qwen2_tied").join("model.safetensors"), &Device::Cpu).unwrap();
    check("qwen2_tied", "lm_head.weight", &all["model.embed_tokens.weight"], None);
}

#[test]
fn many_unread_tensors_are_counted() {
    let ones = Tensor::ones(64, DType::F32, &Device::Cpu).unwrap();
    let folder = altered("llama", &json!({}), &["d", "b", "a", "e", "c"].map(|name| (name, ones.clone())));
    let expected = "~ has tensors that its network does not read: `a`, `b`, `c` and 2 more";
    assert_eq!(refusal(folder.path()).as_deref(), Some(expected));
}

#[test]
fn what_a_gguf_file_says_and_nothing_honours_is_named() {
    let spec = load("llama_biases").spec().clone();
    let plain = gguf::tensors("llama_biases", &spec);
    let ones = |len: usize| Tensor::ones(len, DType::F32, &Device::Cpu).unwrap();
    let refused = |tensors: &HashMap<String, Tensor>, extra: &[(&str, GgufValue)]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        gguf::write(&path, &spec, tensors, extra);
        refusal(&path)
    };
    let check = |tensors: &HashMap<String, Tensor>, extra: &[(&str, GgufValue)], expected: Option<&str>| {
        let found = refused(tensors, extra);
        let fits = match (&found, expected) {
            (Some(found), Some(expected)) => found.contains(expected),
            (found, expected) => found.is_none() && expected.is_none(),
        };
        assert!(fits, "{extra:?}: {found:?} is not {expected:?}");
    };
    let number = GgufValue::U32;
    check(&plain, &[], None);
    check(&plain, &[("expert_count", number(0)), ("vocab_size", number(264))], None);
    check(&plain, &[("expert_count", number(8))], Some("`llama.expert_count` = 8"));
    check(&plain, &[("attention.sliding_window", number(20))], Some("`llama.attention.sliding_window`"));
    check(&plain, &[("attention.value_length", number(8))], Some("`llama.attention.value_length`"));
    check(&plain, &[("rope.dimension_count", number(8))], Some("`llama.rope.dimension_count`"));
    check(&plain, &[("rope.scaling.attn_factor", GgufValue::F32(0.5))], Some("`llama.rope.scaling.attn_factor`"));
    let with = |name: &str, tensor: Tensor| {
        let mut tensors = plain.clone();
        tensors.insert(name.to_owned(), tensor);
        tensors
    };
    check(&with("blk.0.attn_q_norm.bias", ones(16)), &[], Some("`blk.0.attn_q_norm.bias`"));
    check(&with("blk.2.attn_norm.weight", ones(32)), &[], Some("`blk.2.attn_norm.weight`"));
    check(&with("rope_freqs.weight", ones(5)), &[], Some("`rope_freqs.weight` has shape [5]"));
    let linear = [("rope.scaling.factor", GgufValue::F32(2.0))];
    check(&with("rope_freqs.weight", ones(8)), &linear, Some("beside `rope_freqs.weight`"));
}
