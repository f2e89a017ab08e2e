//! The random checkpoints as GGUF files in `f32`: the logits are those of transformers.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use models::{Decoder, DecoderSpec, Footprint, LoadOptions, Precision, Quantisation, Routing, Spec, Weights};

use super::{check_decoder, floats, golden, load, read};

/// Names and values of hyperparameters beyond those that every file has.
type Extra<'a> = &'a [(&'a str, Value)];

/// The name that llama.cpp's converter gives to a tensor.
fn gguf_name(name: &str, spec: &DecoderSpec) -> String {
    let second = if spec.post_norms { "post_attention_norm" } else { "ffn_norm" };
    let parts: [(&str, &str); 17] = [
        ("model.layers.", "blk."),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("mlp.gate.", "ffn_gate_inp."),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", second),
        ("pre_feedforward_layernorm", "ffn_norm"),
        ("post_feedforward_layernorm", "post_ffw_norm"),
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
    ];
    parts.iter().fold(name.replace("lm_head", "output"), |name, (part, own)| name.replace(part, own))
}

/// Rows of heads from the order of halves to that of neighbouring pairs.
fn in_pairs(tensor: &Tensor, dim: usize) -> Tensor {
    let (shape, rows) = (tensor.shape().clone(), tensor.dim(0).unwrap());
    let halves = tensor.reshape((rows / dim, 2, dim / 2, tensor.elem_count() / rows)).unwrap();
    halves.transpose(1, 2).unwrap().contiguous().unwrap().reshape(shape).unwrap()
}

/// The tensors of a golden under their GGUF names.
pub(super) fn tensors(name: &str, spec: &DecoderSpec) -> HashMap<String, Tensor> {
    let all = candle_core::safetensors::load(golden(name).join("model.safetensors"), &Device::Cpu).unwrap();
    let renamed = all.into_iter().filter(|(name, _)| !(spec.tied && name == "lm_head.weight")).map(|(name, tensor)| {
        let is_rotated = name.contains("q_proj") || name.contains("k_proj");
        let reordered = spec.architecture == "llama" && is_rotated;
        (gguf_name(&name, spec), if reordered { in_pairs(&tensor, spec.heads.dim) } else { tensor })
    });
    renamed.collect()
}

/// Writes a GGUF file with the shape of `spec`.
pub(super) fn write(path: &Path, spec: &DecoderSpec, tensors: &HashMap<String, Tensor>, extra: Extra<'_>) {
    let number = |number: usize| Value::U32(u32::try_from(number).unwrap());
    let tokens = (0..spec.vocab).map(|token| Value::String(token.to_string())).collect();
    let own = |key: &str| format!("{}.{key}", spec.architecture);
    let mut metadata = vec![
        ("general.architecture".to_owned(), Value::String(spec.architecture.clone())),
        ("tokenizer.ggml.tokens".to_owned(), Value::Array(tokens)),
        (own("block_count"), number(spec.layers)),
        (own("embedding_length"), number(spec.hidden)),
        (own("feed_forward_length"), number(spec.ffn)),
        (own("context_length"), number(spec.context)),
        (own("attention.head_count"), number(spec.heads.queries)),
        (own("attention.head_count_kv"), number(spec.heads.keys)),
        (own("attention.key_length"), number(spec.heads.dim)),
        (own("attention.layer_norm_rms_epsilon"), Value::F32(spec.norm_epsilon)),
        (own("rope.dimension_count"), number(spec.heads.dim)),
        (own("rope.freq_base"), Value::F32(spec.rope.theta)),
    ];
    metadata.extend(extra.iter().map(|(key, value)| (own(key), value.clone())));
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let stored = |tensor: &Tensor| QTensor::quantize(tensor, GgmlDType::F32).unwrap();
    let stored: Vec<(&str, QTensor)> = tensors.iter().map(|(name, t)| (name.as_str(), stored(t))).collect();
    let stored: Vec<(&str, &QTensor)> = stored.iter().map(|(name, tensor)| (*name, tensor)).collect();
    gguf_file::write(&mut File::create(path).unwrap(), &metadata, &stored).unwrap();
}

fn check(name: &str, additional: &[(&str, Tensor)], extra: Extra<'_>) {
    let original = load(name);
    let mut tensors = tensors(name, original.spec());
    tensors.extend(additional.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())));
    check_tensors(name, &original, &tensors, extra);
}

/// Whether these tensors give the logits of a golden.
fn check_tensors(name: &str, original: &Decoder, tensors: &HashMap<String, Tensor>, extra: Extra<'_>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write(&path, original.spec(), tensors, extra);
    let (weights, metadata) = Weights::open_gguf(&path).unwrap();
    let Spec::Decoder(spec) = Spec::from_gguf(&metadata, &weights).unwrap() else { panic!("no decoder") };
    check_decoder(name, &Decoder::load(&spec, &weights, spec.context, &Device::Cpu).unwrap());
}

/// The tensors of `qwen3_moe` with those of a layer's experts in one, and its further hyperparameters.
fn stacked_experts(spec: &DecoderSpec) -> (HashMap<String, Tensor>, [(&'static str, Value); 3]) {
    let Routing { experts, used, ffn, .. } = spec.routing.unwrap();
    let mut tensors = tensors("qwen3_moe", spec);
    for layer in 0..spec.layers {
        for part in ["gate", "up", "down"] {
            let each = (0..experts)
                .map(|expert| tensors.remove(&format!("blk.{layer}.mlp.experts.{expert}.{part}_proj.weight")).unwrap());
            let stacked = Tensor::stack(&each.collect::<Vec<_>>(), 0).unwrap();
            tensors.insert(format!("blk.{layer}.ffn_{part}_exps.weight"), stacked);
        }
    }
    let number = |number: usize| Value::U32(u32::try_from(number).unwrap());
    let extra = [
        ("expert_count", number(experts)),
        ("expert_used_count", number(used)),
        ("expert_feed_forward_length", number(ffn)),
    ];
    (tensors, extra)
}

#[test]
fn experts_that_are_stacked() {
    let original = load("qwen3_moe");
    let (tensors, extra) = stacked_experts(original.spec());
    check_tensors("qwen3_moe", &original, &tensors, &extra);
}

#[test]
fn experts_that_are_stacked_are_counted_as_small_as_they_are_quantised() {
    let spec = load("qwen3_moe").spec().clone();
    let (tensors, extra) = stacked_experts(&spec);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    write(&path, &spec, &tensors, &extra);
    let bytes = |path: &Path, precision| Footprint::of(path, LoadOptions { precision, yarn: None }).unwrap().weights;
    let [stored, q8_0] = [Precision::Stored, Precision::Quantised(Quantisation::Q8_0)];
    assert_eq!(bytes(&path, q8_0), bytes(&golden("qwen3_moe"), q8_0));
    assert!(bytes(&path, q8_0).all < bytes(&path, stored).all);
}

#[test]
fn gemma_whose_norms_have_the_offset_in_the_file() {
    let original = load("gemma3");
    let stored = tensors("gemma3", original.spec()).into_iter().map(|(name, tensor)| {
        let tensor = if name.ends_with("_norm.weight") { (tensor + 1.0).unwrap() } else { tensor };
        (name, tensor)
    });
    let extra = [
        ("attention.sliding_window", Value::U32(20)),
        // As in Google's own files, whose image encoder is in another.
        ("vision.block_count", Value::U32(27)),
        ("mm.tokens_per_image", Value::U32(256)),
        ("rope.scaling.type", Value::String("linear".into())),
        ("rope.scaling.factor", Value::F32(8.0)),
    ];
    check_tensors("gemma3", &original, &stored.collect(), &extra);
}

#[test]
fn biases_of_attention_and_feed_forward() {
    check("llama_biases", &[], &[]);
    check("qwen3_biases", &[], &[]);
}

#[test]
fn yarn_whose_betas_and_attention_factor_are_given() {
    // llama.cpp multiplies the paper's factor, 0.1 ln 4 + 1, by these two.
    let extra = [
        ("rope.scaling.type", Value::String("yarn".into())),
        ("rope.scaling.factor", Value::F32(4.0)),
        ("rope.scaling.original_context_length", Value::U32(64)),
        ("rope.scaling.attn_factor", Value::F32(0.7)),
        ("rope.scaling.yarn_attn_factor", Value::F32(2.0 / (0.1 * 4f32.ln() + 1.0))),
        ("rope.scaling.yarn_beta_fast", Value::F32(6.0)),
        ("rope.scaling.yarn_beta_slow", Value::F32(0.5)),
    ];
    check("qwen2_yarn_options", &[], &extra);
}

#[test]
fn yarn_extends_a_context_that_is_stated_as_that_of_training() {
    let mut spec = load("qwen2_yarn").spec().clone();
    let extra = [
        ("rope.scaling.type", Value::String("yarn".into())),
        ("rope.scaling.factor", Value::F32(4.0)),
        ("rope.scaling.original_context_length", Value::U32(64)),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    for (stated, reached) in [(64, 256), (512, 512)] {
        spec.context = stated;
        write(&path, &spec, &tensors("qwen2_yarn", &spec), &extra);
        assert_eq!(Footprint::of(&path, LoadOptions::default()).unwrap().context, reached);
    }
}

#[test]
fn frequencies_that_a_tensor_divides() {
    let divisors = floats(&read(golden("llama3").join("logits.json"))["rope_freqs"]);
    let divisors = Tensor::from_vec(divisors.clone(), divisors.len(), &Device::Cpu).unwrap();
    check("llama3", &[("rope_freqs.weight", divisors)], &[]);
}

#[test]
fn linear_scaling_with_its_type_and_without() {
    let factor = ("rope.scaling.factor", Value::F32(2.5));
    check("llama_linear", &[], &[("rope.scaling.type", Value::String("linear".into())), factor.clone()]);
    check("llama_linear", &[], &[factor]);
}
