//! Adapters against peft and transformers (torch, f32) on tiny random checkpoints; `tests/golden/lora_serving.py` made the
//! goldens.

use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::gguf_file;
use models::adapter::{Adapter, LowRank, Projection};
use models::{
    AdaptedRows, Batch, Decoder, KvCache, KvPrecision, ModelError, PAGE_TOKENS, PagedSequence, Precision, Quantisation,
    Spec, Weights,
};
use serde_json::Value;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(name)
}

fn read(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn load(folder: &Path, precision: Precision) -> Decoder {
    let Spec::Decoder(spec) = Spec::from_config(&read(folder.join("config.json"))).unwrap() else {
        panic!("no decoder")
    };
    let weights = Weights::open_folder(folder).unwrap().in_precision(precision);
    Decoder::load(&spec, &weights, spec.context, &Device::Cpu).unwrap()
}

fn base(name: &str, precision: Precision) -> Decoder {
    load(&golden("decoder").join(name), precision)
}

fn numbers(value: &Value) -> impl Iterator<Item = f32> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32)
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

/// The logits of every token of some sequences, each with its adapter, computed in one batch.
fn run(decoder: &Decoder, sequences: &[(&[u32], Option<usize>)]) -> Vec<Vec<Vec<f32>>> {
    let cache = KvCache::new(decoder.spec(), 32, KvPrecision::F32, &Device::Cpu).unwrap();
    let (mut tokens, mut positions, mut slots, mut ranges, mut pages) = (vec![], vec![], vec![], vec![], vec![]);
    let mut adapted: Vec<AdaptedRows> = Vec::new();
    for (index, (sequence, adapter)) in sequences.iter().enumerate() {
        let own: Vec<u32> = (0..4).map(|page| 4 * index as u32 + page).collect();
        let rows = tokens.len()..tokens.len() + sequence.len();
        for position in 0..sequence.len() {
            positions.push(position as u32);
            slots.push(own[position / PAGE_TOKENS] * PAGE_TOKENS as u32 + (position % PAGE_TOKENS) as u32);
        }
        tokens.extend_from_slice(sequence);
        if let Some(adapter) = adapter {
            let rows = rows.clone().map(|row| row as u32);
            match adapted.iter_mut().find(|adapted| adapted.adapter == *adapter) {
                Some(adapted) => adapted.rows.extend(rows),
                None => adapted.push(AdaptedRows { adapter: *adapter, rows: rows.collect() }),
            }
        }
        ranges.push(rows);
        pages.push(own);
    }
    let rows: Vec<u32> = (0..tokens.len() as u32).collect();
    let paged: Vec<PagedSequence<'_>> =
        ranges.iter().zip(&pages).map(|(rows, pages)| PagedSequence { rows: rows.clone(), past: 0, pages }).collect();
    let batch = Batch {
        tokens: &tokens,
        positions: &positions,
        slots: &slots,
        sequences: &paged,
        logit_rows: &rows,
        wanted: &[],
    };
    let logits = decoder.forward_adapted(batch, &adapted, &cache).unwrap().logits.to_vec2::<f32>().unwrap();
    ranges.into_iter().map(|rows| logits[rows].to_vec()).collect()
}

fn bits(logits: &[Vec<f32>]) -> Vec<Vec<u32>> {
    logits.iter().map(|row| row.iter().map(|x| x.to_bits()).collect()).collect()
}

/// The mean difference of logits.
fn difference(a: &[Vec<f32>], b: &[Vec<f32>]) -> f64 {
    let pairs = || a.iter().flatten().zip(b.iter().flatten());
    pairs().map(|(a, b)| f64::from((a - b).abs())).sum::<f64>() / pairs().count() as f64
}

fn check(name: &str) {
    let mut decoder = base(name, Precision::Stored);
    let adapter = Adapter::open_for(&golden("lora_serving").join(name), decoder.spec()).unwrap();
    let adapter = decoder.adapt(&adapter).unwrap();
    let want = read(golden("lora_serving").join(name).join("logits.json"));
    let (tokens, columns) = (ids(&want["ids"]), ids(&want["columns"]));
    let logits = run(&decoder, &[(&tokens, Some(adapter))]).remove(0);
    let mut worst = 0f32;
    for (logits, want) in logits.iter().zip(want["positions"].as_array().unwrap()) {
        let top = ids(&want["top_ids"]);
        let pairs = columns.iter().zip(numbers(&want["columns"])).chain(top.iter().zip(numbers(&want["top_logits"])));
        pairs.for_each(|(id, want)| worst = worst.max((logits[*id as usize] - want).abs()));
    }
    println!("{name}: largest difference {worst:e}");
    assert!(worst <= 1e-4, "{name}: {worst}");
    let plain = run(&decoder, &[(&tokens, None)]).remove(0);
    assert!(difference(&logits, &plain) > 0.05, "{name}: the adapter changes nothing");
}

#[test]
fn an_adapter_of_all_projections_gives_the_logits_of_peft() {
    check("llama");
}

#[test]
fn rank_stabilised_scales_and_patterns_in_bf16_give_the_logits_of_peft() {
    check("qwen2_tied");
}

#[test]
fn an_adapter_of_some_projections_in_f16_gives_the_logits_of_peft() {
    check("qwen3");
}

#[test]
fn a_gguf_adapter_is_the_same_as_pefts() {
    let spec = base("llama", Precision::Stored).spec().clone();
    let folder = golden("lora_serving/llama");
    let peft = Adapter::open_for(&folder, &spec).unwrap();
    assert_eq!(Adapter::open_for(&golden("lora_serving/llama.gguf"), &spec).unwrap(), peft);
    let file = Adapter::open_for(&folder.join("adapter_model.safetensors"), &spec).unwrap();
    assert_eq!(file.digest(), peft.digest());
    let mut other = peft.clone();
    other.modules.values_mut().next().unwrap().scale = 1.0;
    assert_ne!(other.digest(), peft.digest());
}

/// The golden GGUF adapter with one more key.
fn with_key(key: &str) -> tempfile::NamedTempFile {
    let mut golden = File::open(golden("lora_serving/llama.gguf")).unwrap();
    let content = gguf_file::Content::read(&mut golden).unwrap();
    let more = gguf_file::Value::Array(vec![gguf_file::Value::U32(7)]);
    let metadata = content.metadata.iter().map(|(key, value)| (key.as_str(), value));
    let metadata: Vec<_> = metadata.chain([(key, &more)]).collect();
    let names = content.tensor_infos.keys();
    let tensor = |name: &String| content.tensor(&mut golden, name, &Device::Cpu).unwrap();
    let tensors: Vec<_> = names.clone().map(tensor).collect();
    let tensors: Vec<_> = names.map(String::as_str).zip(&tensors).collect();
    let file = tempfile::Builder::new().suffix(".gguf").tempfile().unwrap();
    gguf_file::write(&mut file.as_file(), &metadata, &tensors).unwrap();
    file
}

#[test]
fn a_key_of_a_gguf_adapter_without_effect_here_is_named() {
    let spec = base("llama", Precision::Stored).spec().clone();
    let plain = Adapter::open_for(&golden("lora_serving/llama.gguf"), &spec).unwrap();
    for key in ["adapter.lora.task_name", "adapter.lora.prompt_prefix", "general.tags"] {
        assert_eq!(Adapter::open_for(with_key(key).path(), &spec).unwrap(), plain, "{key}");
    }
    let error = Adapter::open_for(with_key("adapter.alora.invocation_tokens").path(), &spec).unwrap_err();
    assert!(matches!(error, ModelError::AdapterUnsupported { .. }), "{error}");
    assert!(error.to_string().contains("`adapter.alora.invocation_tokens`"), "{error}");
}

#[test]
fn a_gguf_adapter_of_llama_is_for_mistral_too() {
    let mut spec = base("llama", Precision::Stored).spec().clone();
    let file = golden("lora_serving/llama.gguf");
    let for_llama = Adapter::open_for(&file, &spec).unwrap();
    spec.architecture = "mistral".into();
    assert_eq!(Adapter::open_for(&file, &spec).unwrap(), for_llama);
}

#[test]
fn a_licence_is_that_of_the_card_or_of_the_gguf_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.gguf");
    let licence = gguf_file::Value::String("cc0-1.0".to_owned());
    gguf_file::write(&mut File::create(&file).unwrap(), &[("general.license", &licence)], &[]).unwrap();
    assert_eq!(Adapter::licence(&file).as_deref(), Some("cc0-1.0"));
    assert_eq!(Adapter::licence(folder.path()), None);
    std::fs::write(folder.path().join("README.md"), "---\nlicense: mit\n---\n").unwrap();
    for path in [folder.path(), &folder.path().join("adapter_model.safetensors")] {
        assert_eq!(Adapter::licence(path).as_deref(), Some("mit"));
    }
}

/// `W + s·B·A` of every module, in a folder of its own.
fn merge(name: &str, adapter: &Adapter) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let from = golden("decoder").join(name);
    std::fs::copy(from.join("config.json"), folder.path().join("config.json")).unwrap();
    let bytes = std::fs::read(from.join("model.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut merged: Vec<(String, Vec<usize>, Vec<u8>)> = Vec::new();
    for (tensor, view) in tensors.iter() {
        assert_eq!(view.dtype(), safetensors::Dtype::F32);
        let mut values: Vec<f32> =
            view.data().chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect();
        for ((layer, projection), LowRank { rank, scale, a, b }) in &adapter.modules {
            let module = format!("model.layers.{layer}.");
            if !tensor.starts_with(&module) || !tensor.ends_with(&format!("{}.weight", projection.name())) {
                continue;
            }
            let cols = view.shape()[1];
            assert_eq!(values.len(), b.len() / rank * cols, "{tensor}");
            for (at, value) in values.iter_mut().enumerate() {
                let (row, col) = (at / cols, at % cols);
                *value += scale * (0..*rank).map(|j| b[row * rank + j] * a[j * cols + col]).sum::<f32>();
            }
        }
        merged.push((tensor.to_owned(), view.shape().to_vec(), values.iter().flat_map(|x| x.to_le_bytes()).collect()));
    }
    let view = |(name, shape, bytes): &'static (String, Vec<usize>, Vec<u8>)| {
        (name, safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.clone(), bytes).unwrap())
    };
    let merged: &'static [_] = merged.leak();
    let bytes = safetensors::serialize(merged.iter().map(view), None).unwrap();
    std::fs::write(folder.path().join("model.safetensors"), bytes).unwrap();
    folder
}

#[test]
fn an_adapter_gives_the_logits_of_merged_weights_and_on_quantised_ones_loses_no_more_than_they_do() {
    for name in ["llama", "qwen2_tied", "qwen3"] {
        let mut dense = base(name, Precision::Stored);
        let adapter = Adapter::open_for(&golden("lora_serving").join(name), dense.spec()).unwrap();
        let merged = load(merge(name, &adapter).path(), Precision::Stored);
        let tokens: Vec<u32> = (0..60).map(|i| (i * i * 31 + 7 * i) % 250).collect();
        let of = |decoder: &Decoder, adapter: Option<usize>| run(decoder, &[(&tokens, adapter)]).remove(0);
        let want = of(&merged, None);
        let worst = |got: &[Vec<f32>]| {
            let pairs = got.iter().flatten().zip(want.iter().flatten());
            pairs.map(|(a, b)| (a - b).abs()).fold(0f32, f32::max)
        };
        let number = dense.adapt(&adapter).unwrap();
        let apart = worst(&of(&dense, Some(number)));
        assert!(apart <= 1e-4, "{name}: {apart}");
        let mut small = base(name, Precision::Quantised(Quantisation::Q8_0));
        let quantised = difference(&of(&small, None), &of(&dense, None));
        let number = small.adapt(&adapter).unwrap();
        let adapted = difference(&of(&small, Some(number)), &want);
        println!("{name}: quantisation {quantised:e}, with the adapter {adapted:e}");
        // The adapter is not quantised; its inputs pass on the error of the layers before, which it amplifies at most so much.
        assert!(adapted <= 2.0 * quantised && quantised > 0.0, "{name}: {adapted} against {quantised}");
    }
}

/// An adapter with other values.
fn other(adapter: &Adapter, factor: f32) -> Adapter {
    let mut other = adapter.clone();
    other.modules.values_mut().for_each(|module| module.scale *= factor);
    other
}

#[test]
fn a_batch_with_several_adapters_gives_each_sequence_the_bits_that_it_has_alone() {
    for precision in [Precision::Stored, Precision::Quantised(Quantisation::Q8_0)] {
        let mut decoder = base("llama", precision);
        let first = Adapter::open_for(&golden("lora_serving/llama"), decoder.spec()).unwrap();
        // Another one changes other modules only.
        let mut second = other(&first, -0.5);
        second.modules.retain(|(layer, projection), _| *layer == 1 && *projection != Projection::Gate);
        let [first, second] = [&first, &second].map(|adapter| decoder.adapt(adapter).unwrap());
        let sequence = |len: u32, seed: u32| -> Vec<u32> { (0..len).map(|i| (i * 31 + seed * 17) % 250).collect() };
        let tokens = [sequence(50, 1), sequence(1, 2), sequence(33, 3), sequence(7, 4), sequence(2, 5)];
        let adapters = [Some(first), None, Some(second), None, Some(first)];
        let together: Vec<_> = tokens.iter().map(Vec::as_slice).zip(adapters).collect();
        let batch = run(&decoder, &together);
        for (alone, together) in together.iter().zip(&batch) {
            assert!(bits(&run(&decoder, &[*alone])[0]) == bits(together), "company changes bits");
        }
        // Without any adapter the network takes another way through the feed-forward block.
        let plain: Vec<_> = tokens.iter().map(|tokens| (tokens.as_slice(), None)).collect();
        let plain = run(&decoder, &plain);
        for (index, adapter) in adapters.iter().enumerate() {
            assert_eq!(bits(&plain[index]) == bits(&batch[index]), adapter.is_none(), "sequence {index}");
        }
    }
}

#[test]
fn an_adapter_for_another_model_is_refused_with_the_module_at_fault() {
    let spec = base("llama", Precision::Stored).spec().clone();
    let fails = |path: &Path| Adapter::open_for(path, &spec).unwrap_err();
    let error = fails(&golden("lora_serving/qwen3"));
    assert!(matches!(error, ModelError::AdapterMisfit { .. }), "{error}");
    assert!(error.to_string().contains("model.layers.0.self_attn."), "{error}");
    let mut adapter = Adapter::open_for(&golden("lora_serving/llama"), &spec).unwrap();
    let module = adapter.modules[&(0, Projection::Query)].clone();
    adapter.modules.insert((9, Projection::Query), module);
    let error = adapter.check(&spec).unwrap_err().to_string();
    assert!(error.contains("model.layers.9.self_attn.q_proj") && error.contains("2 layers"), "{error}");
    let wide = LowRank { rank: 600, scale: 1.0, a: vec![0.0; 600 * 64], b: vec![0.0; 600 * 128] };
    let wide = Adapter { modules: [((0, Projection::Query), wide)].into() };
    let error = wide.check(&spec).unwrap_err().to_string();
    assert!(error.contains("rank 600") && error.contains("at most 512"), "{error}");
    let error = fails(&golden("decoder/llama")).to_string();
    assert!(error.contains("holds no adapter") && error.contains("adapter_config.json"), "{error}");
    let mut other = spec.clone();
    other.architecture = "qwen2".into();
    let error = Adapter::open_for(&golden("lora_serving/llama.gguf"), &other).unwrap_err().to_string();
    assert!(error.contains("llama") && error.contains("qwen2"), "{error}");
}
