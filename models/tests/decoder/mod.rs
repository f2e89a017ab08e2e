//! The decoder against transformers (torch, f32) on tiny random checkpoints; `tests/golden/decoder_random.py` made the
//! goldens.

mod gguf;
mod refused;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use models::{
    Batch, Decoder, DecoderNetwork, DecoderSpec, Footprint, KvCache, KvPrecision, LanguageModel, LoadOptions, Numerics,
    PAGE_TOKENS, PagedSequence, Precision, Quantisation, Spec, Weights, active_isa,
};
use serde_json::{Value, json};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/decoder").join(name)
}

fn read(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

fn load(name: &str) -> Decoder {
    load_in(name, Precision::Stored)
}

fn load_in(name: &str, precision: Precision) -> Decoder {
    let folder = golden(name);
    let Spec::Decoder(spec) = Spec::from_config(&read(folder.join("config.json"))).unwrap() else {
        panic!("no decoder")
    };
    let weights = Weights::open_folder(&folder).unwrap().in_precision(precision);
    Decoder::load(&spec, &weights, spec.context, &Device::Cpu).unwrap()
}

/// Runs `tokens` in chunks of the given lengths on scattered pages; the logits of every position.
fn run(decoder: &dyn DecoderNetwork, tokens: &[u32], chunks: &[usize]) -> Vec<Vec<f32>> {
    run_with(KvPrecision::F32, decoder, tokens, chunks)
}

fn run_with(kv: KvPrecision, decoder: &dyn DecoderNetwork, tokens: &[u32], chunks: &[usize]) -> Vec<Vec<f32>> {
    let cache = KvCache::new(decoder.spec(), 16, kv, &Device::Cpu).unwrap();
    let pages: Vec<u32> = vec![7, 2, 11, 0];
    let mut logits = Vec::new();
    let mut past = 0;
    for len in chunks {
        let positions: Vec<u32> = (past..past + len).map(|p| p as u32).collect();
        let slot = |p: &u32| pages[*p as usize / PAGE_TOKENS] * PAGE_TOKENS as u32 + p % PAGE_TOKENS as u32;
        let slots: Vec<u32> = positions.iter().map(slot).collect();
        let rows: Vec<u32> = (0..*len as u32).collect();
        let sequences = [PagedSequence { rows: 0..*len, past, pages: &pages }];
        let tokens = &tokens[past..past + len];
        let batch = Batch {
            tokens,
            positions: &positions,
            slots: &slots,
            sequences: &sequences,
            logit_rows: &rows,
            wanted: &[],
        };
        logits.extend(decoder.forward(batch, &cache).unwrap().logits.to_vec2::<f32>().unwrap());
        past += len;
    }
    logits
}

fn check(name: &str) {
    check_decoder(name, &load(name));
}

/// Whether a decoder gives the logits of a golden.
fn check_decoder(name: &str, decoder: &dyn DecoderNetwork) {
    let want = read(golden(name).join("logits.json"));
    let tokens = ids(&want["ids"]);
    let columns = ids(&want["columns"]);
    let logits = run(decoder, &tokens, &[tokens.len()]);
    let mut worst = 0f32;
    for (position, (logits, want)) in logits.iter().zip(want["positions"].as_array().unwrap()).enumerate() {
        let top = ids(&want["top_ids"]);
        let pairs = columns.iter().zip(floats(&want["columns"])).chain(top.iter().zip(floats(&want["top_logits"])));
        for (id, want) in pairs {
            worst = worst.max((logits[*id as usize] - want).abs());
        }
        let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap();
        assert_eq!(best as u32, top[0], "{name}: arg-max at position {position}");
        let sum: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
        worst = worst.max((sum.ln() as f32 - want["logsumexp"].as_f64().unwrap() as f32).abs());
    }
    println!("{name}: largest difference {worst:e}");
    assert!(worst <= 1e-4, "{name}: {worst}");

    for chunks in [vec![1; tokens.len()], vec![33, tokens.len() - 33], vec![5, 31, tokens.len() - 36]] {
        assert_eq!(run(decoder, &tokens, &chunks), logits, "{name}: chunks {chunks:?} change bits");
    }
}

#[test]
fn qwen2_with_a_sliding_window_in_its_last_layers() {
    check("qwen2_window");
}

#[test]
fn llama_with_explicit_head_dim() {
    check("llama");
}

#[test]
fn qwen2_with_tied_embeddings() {
    check("qwen2_tied");
}

#[test]
fn qwen2_untied_in_bf16_shards() {
    let weights_widened = load_in("qwen2_sharded_bf16", Precision::F32);
    check_decoder("qwen2_sharded_bf16", &weights_widened);
    let stored = load("qwen2_sharded_bf16");
    match active_isa().numerics() {
        Numerics::Portable => check_decoder("qwen2_sharded_bf16", &stored),
        // Rounds rows to bf16, as transformers does where it computes in bf16; the golden is computed in f32.
        Numerics::Bf16Pairs | Numerics::Bf16Tiles => check_rounded("qwen2_sharded_bf16", &stored, &weights_widened),
    }
}

/// The root of the squared difference of logits, over that of the wanted ones.
fn relative_difference(got: &[Vec<f32>], want: &[Vec<f32>]) -> f64 {
    let squares = |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>();
    let error = squares(&mut got.iter().flatten().zip(want.iter().flatten()).map(|(a, b)| a - b));
    (error / squares(&mut want.iter().flatten().copied())).sqrt()
}

/// Whether the logits of a decoder that rounds rows to bf16 are near those of one that does not, and independent of chunks.
fn check_rounded(name: &str, rounded: &Decoder, exact: &Decoder) {
    let tokens = ids(&read(golden(name).join("logits.json"))["ids"]);
    let [got, want] = [rounded, exact].map(|decoder| run(decoder, &tokens, &[tokens.len()]));
    let relative = relative_difference(&got, &want);
    println!("{name}: relative difference {relative:e}");
    assert!(relative <= 1.0 / 128.0, "{name}: {relative}");
    for chunks in [vec![1; tokens.len()], vec![33, tokens.len() - 33], vec![5, 31, tokens.len() - 36]] {
        assert_eq!(run(rounded, &tokens, &chunks), got, "{name}: chunks {chunks:?} change bits");
    }
}

#[test]
fn qwen2_with_yarn() {
    check("qwen2_yarn");
}

#[test]
fn qwen2_with_yarn_that_is_asked_for_at_load() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("qwen2_plain");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["tokenizer.json", "model.safetensors"] {
        std::fs::copy(golden("qwen2_yarn").join(name), folder.join(name)).unwrap();
    }
    // The same checkpoint before its vocabulary was extended.
    let mut config = read(golden("qwen2_yarn").join("config.json"));
    let scaling = config.as_object_mut().unwrap().remove("rope_scaling").unwrap();
    config["max_position_embeddings"] = scaling["original_max_position_embeddings"].clone();
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    std::fs::write(folder.join("chat_template.jinja"), "{{ messages[0].content }}").unwrap();
    let options = LoadOptions { yarn: Some(4.0), ..LoadOptions::default() };
    let model = LanguageModel::load_with(&folder, options, &Device::Cpu).unwrap();
    assert_eq!(model.spec().context, 256);
    check_decoder("qwen2_yarn", &*model.network);
}

/// The spec of a golden with other fields in its configuration; those that are `null` are left out.
fn spec_with(name: &str, fields: &Value) -> DecoderSpec {
    let mut config = read(golden(name).join("config.json"));
    let all = config.as_object_mut().unwrap();
    all.extend(fields.as_object().unwrap().clone());
    all.retain(|_, value| !value.is_null());
    let Spec::Decoder(spec) = Spec::from_config(&config).unwrap() else { panic!("no decoder") };
    spec
}

#[test]
fn yarn_extends_a_context_that_is_stated_as_that_of_training() {
    // As the model card of Qwen2.5 tells to write it.
    let context = |name: &str, kind: &str, positions: usize, factor: f64| {
        let scaling = json!({ "type": kind, "factor": factor, "original_max_position_embeddings": 32_768 });
        let fields = json!({ "max_position_embeddings": positions, "rope_scaling": scaling });
        spec_with(name, &fields).context
    };
    assert_eq!(context("qwen2_tied", "yarn", 32_768, 4.0), 131_072);
    assert_eq!(context("qwen2_tied", "yarn", 131_072, 4.0), 131_072);
    assert_eq!(context("qwen2_tied", "yarn", 40_960, 1.0), 40_960);
    assert_eq!(context("gemma3", "yarn", 32_768, 2.5), 81_920);
    let linear = json!({ "max_position_embeddings": 32_768, "rope_scaling": { "type": "linear", "factor": 4.0 } });
    assert_eq!(spec_with("llama", &linear).context, 32_768);
}

#[test]
fn theta_that_a_configuration_leaves_out_is_that_of_transformers() {
    for name in ["llama", "mistral_window", "qwen2_tied", "qwen3", "qwen3_moe"] {
        let parts = [json!({ "rope_theta": null }), json!({ "rope_theta": null, "rope_parameters": {} })];
        for fields in parts {
            assert_eq!(spec_with(name, &fields).rope.theta, 10_000.0, "{name}");
        }
    }
    // `meta-llama/Llama-2-7b-chat-hf` as it is published.
    let config = json!({
        "_name_or_path": "meta-llama/Llama-2-7b-chat-hf", "architectures": ["LlamaForCausalLM"], "bos_token_id": 1,
        "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 4096, "initializer_range": 0.02,
        "intermediate_size": 11_008, "max_position_embeddings": 4096, "model_type": "llama", "num_attention_heads": 32,
        "num_hidden_layers": 32, "num_key_value_heads": 32, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
        "rope_scaling": null, "tie_word_embeddings": false, "torch_dtype": "float16",
        "transformers_version": "4.32.0.dev0", "use_cache": true, "vocab_size": 32_000
    });
    let Spec::Decoder(spec) = Spec::from_config(&config).unwrap() else { panic!("no decoder") };
    assert_eq!((spec.rope.theta, spec.context), (10_000.0, 4096));
}

#[test]
fn qwen3_with_normalised_heads() {
    check("qwen3");
}

#[test]
fn qwen3_with_experts() {
    check("qwen3_moe");
}

#[test]
fn llama_with_biases_of_attention_and_feed_forward() {
    check("llama_biases");
}

#[test]
fn qwen3_with_biases_of_attention() {
    check("qwen3_biases");
}

#[test]
fn qwen2_with_yarn_whose_betas_and_attention_factor_are_given() {
    check("qwen2_yarn_options");
}

#[test]
fn llama_with_yarn_whose_attention_factor_follows_from_two_scales() {
    check("llama_yarn_scales");
}

#[test]
fn llama_with_the_scaling_of_llama_3() {
    check("llama3");
}

#[test]
fn llama_with_linear_scaling() {
    check("llama_linear");
}

#[test]
fn mistral_with_a_sliding_window() {
    check("mistral_window");
}

#[test]
fn qwen2_whose_configuration_names_the_type_of_each_layer() {
    check("qwen2_layer_types");
}

#[test]
fn gemma3_with_two_rotary_embeddings_and_norms_of_outputs() {
    check("gemma3");
}

#[test]
fn gemma3_whose_scores_are_scaled_otherwise() {
    check("gemma3_scores");
}

#[test]
fn gemma3_with_an_image_encoder_that_is_left_out() {
    // As published, and as transformers 4.52 and later write it.
    check_multimodal("", |name| format!("language_model.{name}"));
    check_multimodal("model.", |name| name.replace("model.", "model.language_model."));
}

/// The golden Gemma beside tensors of an image encoder behind `prefix`, its own tensors `renamed`.
fn check_multimodal(prefix: &str, renamed: fn(&str) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let text = candle_core::safetensors::load(golden("gemma3").join("model.safetensors"), &Device::Cpu).unwrap();
    let mut tensors: HashMap<String, Tensor> =
        text.into_iter().map(|(name, tensor)| (renamed(&name), tensor)).collect();
    let zeros = Tensor::zeros((4, 4), DType::F32, &Device::Cpu).unwrap();
    for name in [
        "vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight",
        "multi_modal_projector.mm_input_projection_weight",
    ] {
        tensors.insert(format!("{prefix}{name}"), zeros.clone());
    }
    candle_core::safetensors::save(&tensors, folder.path().join("model.safetensors")).unwrap();
    let text = read(golden("gemma3").join("config.json"));
    let config = json!({
        "model_type": "gemma3", "text_config": text, "vision_config": { "hidden_size": 8 }, "boi_token_index": 255,
        "image_token_index": 254, "mm_tokens_per_image": 256, "eos_token_id": [1, 106], "initializer_range": 0.02,
    });
    let mut quantised = config.clone();
    quantised["quantization_config"] = json!({ "quant_method": "gptq" });
    let refused = Spec::from_config(&quantised).unwrap_err().to_string();
    assert!(refused.contains("`quantization_config`"), "{refused}");
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    std::fs::copy(golden("gemma3").join("tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
    std::fs::write(folder.path().join("chat_template.jinja"), "{{ messages[0].content }}").unwrap();
    let model = LanguageModel::load(folder.path(), &Device::Cpu).unwrap();
    check_decoder("gemma3", &*model.network);
    let bytes = |path: &Path| Footprint::of(path, LoadOptions::default()).unwrap().weights.all;
    assert_eq!(bytes(folder.path()), bytes(&golden("gemma3")), "the image encoder takes no memory");
}

#[test]
fn keys_and_values_in_bf16_or_8_bits_lose_little() {
    for name in ["llama", "qwen3", "gemma3"] {
        let decoder = load(name);
        let tokens = ids(&read(golden(name).join("logits.json"))["ids"]);
        let [bytes, pairs, halves, exact] = [KvPrecision::Q8_0, KvPrecision::Bf16, KvPrecision::F16, KvPrecision::F32]
            .map(|kv| run_with(kv, &decoder, &tokens, &[tokens.len()]));
        let [bytes, pairs, halves] = [bytes, pairs, halves].map(|logits| relative_difference(&logits, &exact));
        println!("{name}: relative difference {bytes:e} in 8 bits, {pairs:e} in bf16, {halves:e} in f16");
        // Measured 0.017 for `llama`: half a step of 1/127 is 0.4 % of the largest value of a block, and random layers with sharp
        // attention amplify that. A wrong scale or place gives about 1.
        assert!(halves < bytes && bytes < 0.05, "{name}: {bytes} in 8 bits, {halves} in f16");
        assert!(halves < pairs && pairs < 0.05, "{name}: {pairs} in bf16, {halves} in f16");
    }
}

#[test]
fn a_token_beyond_the_vocabulary_is_an_error() {
    let decoder = load("llama");
    let cache = KvCache::new(decoder.spec(), 1, KvPrecision::F16, &Device::Cpu).unwrap();
    let sequences = [PagedSequence { rows: 0..1, past: 0, pages: &[0] }];
    let batch = Batch {
        tokens: &[100_000],
        positions: &[0],
        slots: &[0],
        sequences: &sequences,
        logit_rows: &[0],
        wanted: &[],
    };
    assert!(decoder.forward(batch, &cache).is_err());
}

#[test]
fn dense_weights_become_smaller_while_they_are_loaded() {
    let tokens = ids(&read(golden("llama").join("logits.json"))["ids"]);
    let logits = |precision| {
        let decoder = load_in("llama", precision);
        (decoder.weight_bytes(), run(&decoder, &tokens, &[tokens.len()]))
    };
    let (bytes, exact) = logits(Precision::Stored);
    let (small, near) = logits(Precision::Quantised(Quantisation::Q8_0));
    let square = |x: f32| f64::from(x).powi(2);
    let lost: f64 = exact.iter().flatten().zip(near.iter().flatten()).map(|(exact, near)| square(exact - near)).sum();
    let lost = (lost / exact.iter().flatten().map(|exact| square(*exact)).sum::<f64>()).sqrt();
    println!("{bytes} bytes become {small}; logits lose {lost:.4}");
    assert!(small * 3 < bytes);
    // Measured 0.049: every product rounds weights and activations to 1/127 of a block's largest value, and random layers
    // amplify that. How exact the blocks themselves are is tested where they are made; here a row in a wrong place, or a
    // matrix left out, would show as a loss of about 1.
    assert!(lost > 0.0 && lost < 0.1, "logits lose {lost}");
    // Every weight keeps its position and differs by half a quantisation step at most.
    let weights = |precision| Weights::open_folder(&golden("llama")).unwrap().in_precision(precision);
    let spec = load("llama").spec().clone();
    let matrix =
        |precision| weights(precision).matrix("model.layers.0.mlp.up_proj.weight", spec.ffn, spec.hidden).unwrap();
    let (stored, quantised) = (matrix(Precision::Stored), matrix(Precision::Quantised(Quantisation::Q8_0)));
    let (mut before, mut after) = (vec![0f32; spec.hidden], vec![0f32; spec.hidden]);
    for row in 0..spec.ffn {
        stored.row(row, &mut before);
        quantised.row(row, &mut after);
        for (exact, near) in before.chunks(32).zip(after.chunks(32)) {
            let largest = exact.iter().fold(0f32, |largest, x| largest.max(x.abs()));
            // The scale itself is rounded to half precision, which moves the largest value by up to 2^-11 of it.
            let most = largest * (0.5 / 127.0 + 1.0 / 2048.0);
            assert!(exact.iter().zip(near).all(|(exact, near)| (exact - near).abs() <= most), "row {row}");
        }
    }
    // Its rows are shorter than a block of Q4_K.
    assert_eq!(logits(Precision::Quantised(Quantisation::Q4K)), (small, near));
}

/// A copy of a checkpoint in which the embedding of one token is not a number.
fn with_broken_token(name: &str, token: usize) -> (tempfile::TempDir, Decoder) {
    let folder = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(golden(name)).unwrap().flatten() {
        std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
    }
    let Spec::Decoder(spec) = Spec::from_config(&read(golden(name).join("config.json"))).unwrap() else {
        panic!("no decoder")
    };
    let shards = std::fs::read_dir(folder.path()).unwrap().flatten().map(|file| file.path());
    for shard in shards.filter(|path| path.extension().is_some_and(|extension| extension == "safetensors")) {
        let mut bytes = std::fs::read(&shard).unwrap();
        let header_len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[8..8 + header_len]).unwrap();
        let Some(offsets) = header["model.embed_tokens.weight"]["data_offsets"].as_array() else { continue };
        let [start, end] = [0, 1].map(|at| 8 + header_len + offsets[at].as_u64().unwrap() as usize);
        let row = (end - start) / spec.vocab;
        bytes[start + token * row..start + (token + 1) * row].fill(0xff);
        std::fs::write(shard, bytes).unwrap();
    }
    let weights = Weights::open_folder(folder.path()).unwrap();
    let decoder = Decoder::load(&spec, &weights, spec.context, &Device::Cpu).unwrap();
    (folder, decoder)
}

#[test]
fn rows_that_lose_their_numbers_are_named_and_harm_no_neighbour() {
    const BROKEN: u32 = 5;
    let (_folder, decoder) = with_broken_token("qwen2_sharded_bf16", BROKEN as usize);
    let run = |first: &[u32]| {
        let second = [9, 8, 7];
        let cache = KvCache::new(decoder.spec(), 2, KvPrecision::F32, &Device::Cpu).unwrap();
        let tokens = [first, &second].concat();
        let positions: Vec<u32> = (0..first.len() as u32).chain(0..3).collect();
        let slots: Vec<u32> = (0..first.len() as u32).chain(32..35).collect();
        let sequences = [
            PagedSequence { rows: 0..first.len(), past: 0, pages: &[0] },
            PagedSequence { rows: first.len()..tokens.len(), past: 0, pages: &[1] },
        ];
        let last = [tokens.len() as u32 - 1];
        let batch = Batch {
            tokens: &tokens,
            positions: &positions,
            slots: &slots,
            sequences: &sequences,
            logit_rows: &last,
            wanted: &[],
        };
        let output = decoder.forward(batch, &cache).unwrap();
        (output.finite, output.logits.to_vec2::<f32>().unwrap())
    };
    let (finite, logits) = run(&[1, 2, BROKEN, 3]);
    assert_eq!(finite, [true, true, false, false, true, true, true]);
    let (all_finite, expected) = run(&[1, 2, 4, 3]);
    assert!(all_finite.iter().all(|finite| *finite));
    assert_eq!(logits, expected);
}

#[test]
fn logits_that_are_not_wanted_are_not_there_and_the_others_have_the_same_bits() {
    for name in ["qwen2_tied", "llama"] {
        let decoder = load(name);
        let cache = KvCache::new(decoder.spec(), 1, KvPrecision::F32, &Device::Cpu).unwrap();
        let logits = |wanted: &[Option<Vec<u32>>]| {
            let sequences = [PagedSequence { rows: 0..4, past: 0, pages: &[0] }];
            let (tokens, at) = ([5, 99, 17, 200], [0, 1, 2, 3]);
            let batch = Batch {
                tokens: &tokens,
                positions: &at,
                slots: &at,
                sequences: &sequences,
                logit_rows: &[1, 2, 3],
                wanted,
            };
            decoder.forward(batch, &cache).unwrap().logits.to_vec2::<f32>().unwrap()
        };
        let all = logits(&[]);
        let some = logits(&[Some(vec![0, 63, 263]), None, Some(Vec::new())]);
        let kept = |column: usize| [0, 63, 263].contains(&column);
        let first = (0..264).map(|column| if kept(column) { all[0][column] } else { f32::NEG_INFINITY });
        assert_eq!(some, [first.collect(), all[1].clone(), vec![f32::NEG_INFINITY; 264]], "{name}");
    }
}
