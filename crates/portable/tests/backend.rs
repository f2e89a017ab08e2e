//! The portable backend against the kernels and the goldens of transformers: logits of batches, shared prefixes, adapters, and
//! embeddings.

use std::path::{Path, PathBuf};

use candle_core::Device;
use models::adapter::Adapter;
use models::{
    AdaptedRows, Backend, Batch, Checkpoint, DecoderNetwork, EncoderNetwork, Kernels, KvCache, KvPrecision,
    LoadOptions, PAGE_TOKENS, PagedSequence, Precision, Quantisation, Spec, Weights,
};
use portable::Portable;
use serde_json::Value;

/// Tokens of a sequence that are computed now, those before them, and its pages.
type Part<'a> = (&'a [u32], usize, &'a [u32]);

const PORTABLE: Portable = Portable { device: Device::Cpu };
const KERNELS: Kernels = Kernels { device: Device::Cpu };

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

/// A copy of a checkpoint, since the kernels keep packed weights beside it.
fn copied(name: &str) -> PathBuf {
    let (from, to) = (golden("decoder").join(name), PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copy = to.join(path.file_name().unwrap());
        // An earlier run may have left another.
        if std::fs::read(&copy).ok() != std::fs::read(&path).ok() {
            // Whole at once, as other tests may copy it too.
            let partial = tempfile::NamedTempFile::new_in(&to).unwrap();
            std::fs::copy(&path, partial.path()).unwrap();
            partial.persist(copy).unwrap();
        }
    }
    to
}

fn decoder(name: &str, precision: Precision, backend: &dyn Backend) -> Box<dyn DecoderNetwork> {
    let folder = copied(name);
    let Spec::Decoder(spec) = Spec::from_config(&read(&folder.join("config.json"))).unwrap() else {
        panic!("no decoder")
    };
    backend.decoder(&spec, Weights::open_folder(&folder).unwrap().in_precision(precision)).unwrap()
}

fn cache(network: &dyn DecoderNetwork, precision: KvPrecision) -> KvCache {
    network.kv_cache(24, precision).unwrap()
}

/// The logits of every token of every part.
fn forward(
    network: &dyn DecoderNetwork,
    cache: &KvCache,
    parts: &[Part<'_>],
    adapted: &[AdaptedRows],
) -> Vec<Vec<Vec<f32>>> {
    let (mut tokens, mut positions, mut slots, mut sequences) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (part, past, pages) in parts {
        sequences.push(PagedSequence { rows: tokens.len()..tokens.len() + part.len(), past: *past, pages });
        tokens.extend_from_slice(part);
        for position in *past..past + part.len() {
            positions.push(position as u32);
            slots.push(pages[position / PAGE_TOKENS] * PAGE_TOKENS as u32 + (position % PAGE_TOKENS) as u32);
        }
    }
    let rows: Vec<u32> = (0..tokens.len() as u32).collect();
    let (tokens, positions, slots) = (&tokens, &positions, &slots);
    let batch = Batch { tokens, positions, slots, sequences: &sequences, logit_rows: &rows, wanted: &[] };
    let output = network.forward_adapted(batch, adapted, cache).unwrap();
    assert!(output.finite.iter().all(|finite| *finite));
    let logits = output.logits.to_vec2::<f32>().unwrap();
    sequences.iter().map(|sequence| logits[sequence.rows.clone()].to_vec()).collect()
}

fn difference(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().flatten().zip(b.iter().flatten());
    pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Checks the logits that a golden file has of every position.
fn check_golden(name: &str, logits: &[Vec<f32>], want: &Value) {
    let columns = ids(&want["columns"]);
    let mut worst = 0f32;
    for (logits, want) in logits.iter().zip(want["positions"].as_array().unwrap()) {
        let top = ids(&want["top_ids"]);
        let pairs = columns.iter().zip(numbers(&want["columns"])).chain(top.iter().zip(numbers(&want["top_logits"])));
        pairs.for_each(|(id, want)| worst = worst.max((logits[*id as usize] - want).abs()));
    }
    println!("{name}: largest difference {worst:e}");
    // f32 on both sides, summed in other orders; the kernels pass the same bound.
    assert!(worst <= 1e-4, "{name}: {worst}");
}

const DECODERS: [&str; 11] = [
    "llama",
    "qwen2_tied",
    "qwen2_sharded_bf16",
    "qwen2_yarn",
    "qwen2_window",
    "qwen3",
    "gemma3",
    "gemma3_scores",
    "llama_biases",
    "llama3",
    "qwen2_layer_types",
];

#[test]
fn logits_are_those_of_transformers_whole_and_in_chunks_on_scattered_pages() {
    for name in DECODERS {
        let network = decoder(name, Precision::Stored, &PORTABLE);
        let want = read(&golden("decoder").join(name).join("logits.json"));
        let (tokens, pages) = (ids(&want["ids"]), [7, 2, 11, 0]);
        let whole = forward(&*network, &cache(&*network, KvPrecision::F32), &[(&tokens, 0, &pages)], &[]).remove(0);
        check_golden(name, &whole, &want);
        for cuts in [vec![1, 2, 3, 40], vec![33], (1..tokens.len()).collect()] {
            let (cache, mut past, mut chunked) = (cache(&*network, KvPrecision::F32), 0, Vec::new());
            let cuts = cuts.into_iter().filter(|cut| *cut < tokens.len());
            for end in cuts.chain([tokens.len()]) {
                chunked.extend(forward(&*network, &cache, &[(&tokens[past..end], past, &pages)], &[]).remove(0));
                past = end;
            }
            let worst = difference(&chunked, &whole);
            assert!(worst <= 1e-4, "{name}: chunks change logits by {worst}");
        }
    }
}

#[test]
fn a_prefix_that_is_shared_or_copied_and_company_change_nothing_but_rounding() {
    for name in ["llama", "qwen2_window", "qwen3"] {
        let network = decoder(name, Precision::Stored, &PORTABLE);
        let vocab = network.spec().vocab as u32;
        let tokens: Vec<u32> = (0..70).map(|i| (i * i * 31 + 7 * i) % vocab).collect();
        let (pages, len, common) = ([7, 2, 11, 0], tokens.len(), PAGE_TOKENS + 9);
        let new_cache = || cache(&*network, KvPrecision::F16);
        let alone = forward(&*network, &new_cache(), &[(&tokens, 0, &pages)], &[]).remove(0);

        // A whole page of the prefix is shared, the next is copied and written on.
        let warm = new_cache();
        let other: Vec<u32> = tokens[..common].iter().chain(&tokens[..20]).copied().collect();
        forward(&*network, &warm, &[(&other, 0, &[3, 9, 15])], &[]);
        warm.copy_page(9, 4).unwrap();
        let rest = forward(&*network, &warm, &[(&tokens[common..], common, &[3, 4, 16, 17])], &[]).remove(0);
        // A difference in the last bit of f32 can be one in the last of f16 in the cache.
        let worst = difference(&rest, &alone[common..]);
        assert!(worst <= 2e-3, "{name}: a prefix that was found changes logits by {worst}");

        // One that reads its prompt, one in the middle, one that writes; each between the others.
        let reversed: Vec<u32> = tokens.iter().rev().copied().collect();
        let company = new_cache();
        let first: [Part<'_>; 2] = [(&tokens[..40], 0, &pages), (&reversed[..len - 1], 0, &[20, 21, 22, 23])];
        forward(&*network, &company, &first, &[]);
        let parts: [Part<'_>; 3] = [
            (&reversed[len - 1..], len - 1, &[20, 21, 22, 23]),
            (&tokens[40..], 40, &pages),
            (&reversed[..50], 0, &[5, 6]),
        ];
        let together = forward(&*network, &company, &parts, &[]);
        let worst = difference(&together[1], &alone[40..]);
        assert!(worst <= 2e-3, "{name}: company changes logits by {worst}");
    }
}

#[test]
fn a_page_is_restored_from_its_bytes() {
    let network = decoder("llama", Precision::Stored, &PORTABLE);
    let tokens: Vec<u32> = (0..50).map(|i| i * 5 % 250).collect();
    for kv in [KvPrecision::F16, KvPrecision::Q8_0] {
        let (from, to) = (cache(&*network, kv), cache(&*network, kv));
        forward(&*network, &from, &[(&tokens[..PAGE_TOKENS], 0, &[3])], &[]);
        let part = (&tokens[PAGE_TOKENS..], PAGE_TOKENS);
        let want = forward(&*network, &from, &[(part.0, part.1, &[3, 5])], &[]).remove(0);
        let mut bytes = Vec::new();
        from.read_page(3, &mut bytes).unwrap();
        to.write_page(8, &bytes).unwrap();
        let rest = forward(&*network, &to, &[(part.0, part.1, &[8, 1])], &[]).remove(0);
        let worst = difference(&rest, &want);
        assert!(worst <= 2e-3, "{kv}: {worst}");
    }
}

#[test]
fn keys_and_values_in_bf16_or_8_bits_lose_little() {
    let size = |rows: &[Vec<f32>]| rows.iter().flatten().map(|x| x * x).sum::<f32>().sqrt();
    for name in ["llama", "qwen3", "gemma3", "mistral_window"] {
        let network = decoder(name, Precision::Stored, &PORTABLE);
        let tokens: Vec<u32> = (0..70).map(|i| (i * i * 31 + 7 * i) % network.spec().vocab as u32).collect();
        let logits = |kv| {
            let cache = cache(&*network, kv);
            let mut rows = forward(&*network, &cache, &[(&tokens[..41], 0, &[7, 2])], &[]).remove(0);
            rows.extend(forward(&*network, &cache, &[(&tokens[41..], 41, &[7, 2, 11])], &[]).remove(0));
            rows
        };
        let exact = logits(KvPrecision::F32);
        let lost = |kv| {
            let rows = logits(kv).into_iter().zip(&exact);
            let apart: Vec<Vec<f32>> = rows.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a - b).collect()).collect();
            size(&apart) / size(&exact)
        };
        let [bytes, pairs, halves] = [KvPrecision::Q8_0, KvPrecision::Bf16, KvPrecision::F16].map(lost);
        println!("{name}: relative difference {bytes:e} in 8 bits, {pairs:e} in bf16, {halves:e} in f16");
        // The bounds of the kernels' test: random layers amplify half a step of 1/127, and a wrong scale or place gives about 1.
        assert!(halves < bytes && bytes < 0.05, "{name}: {bytes} in 8 bits, {halves} in f16");
        assert!(halves < pairs && pairs < 0.05, "{name}: {pairs} in bf16, {halves} in f16");
    }
}

#[test]
fn only_the_logits_that_are_wanted_come_out() {
    let network = decoder("llama", Precision::Stored, &PORTABLE);
    let cache = cache(&*network, KvPrecision::F32);
    let sequences = [PagedSequence { rows: 0..3, past: 0, pages: &[0] }];
    let positions = [0, 1, 2];
    let wanted = [Some(vec![4, 9]), None];
    let batch = Batch {
        tokens: &[5, 6, 7],
        positions: &positions,
        slots: &positions,
        sequences: &sequences,
        logit_rows: &[1, 2],
        wanted: &wanted,
    };
    let some = network.forward(batch, &cache).unwrap().logits.to_vec2::<f32>().unwrap();
    let all = network.forward(Batch { wanted: &[], ..batch }, &cache).unwrap().logits.to_vec2::<f32>().unwrap();
    let finite = |row: &[f32]| -> Vec<usize> { (0..row.len()).filter(|at| row[*at].is_finite()).collect() };
    assert_eq!(finite(&some[0]), [4, 9]);
    assert_eq!((some[0][4], some[0][9], &some[1]), (all[0][4], all[0][9], &all[1]));
}

#[test]
fn quantised_weights_lose_no_more_than_with_the_kernels() {
    for name in ["llama", "qwen2_tied", "qwen3"] {
        let exact = decoder(name, Precision::F32, &KERNELS);
        let tokens: Vec<u32> = (0..60).map(|i| (i * i * 31 + 7 * i) % 250).collect();
        let run = |network: &dyn DecoderNetwork| {
            forward(network, &cache(network, KvPrecision::F32), &[(&tokens, 0, &[1, 0])], &[]).remove(0)
        };
        let want = run(&*exact);
        let mean = |logits: &[Vec<f32>]| {
            let pairs = || logits.iter().flatten().zip(want.iter().flatten());
            pairs().map(|(a, b)| f64::from((a - b).abs())).sum::<f64>() / pairs().count() as f64
        };
        let precision = Precision::Quantised(Quantisation::Q8_0);
        let kernels = mean(&run(&*decoder(name, precision, &KERNELS)));
        let portable = mean(&run(&*decoder(name, precision, &PORTABLE)));
        println!("{name}: the kernels lose {kernels:e}, the portable backend {portable:e}");
        assert!(portable > 0.0 && portable <= 1.5 * kernels, "{name}: {portable} against {kernels}");
    }
}

#[test]
fn adapters_give_the_logits_of_peft_in_a_batch_with_rows_that_have_none() {
    for name in ["llama", "qwen2_tied", "qwen3"] {
        let mut network = decoder(name, Precision::Stored, &PORTABLE);
        let adapter = Adapter::open_for(&golden("lora_serving").join(name), network.spec()).unwrap();
        assert_eq!(network.adapt(&adapter).unwrap(), 0);
        let want = read(&golden("lora_serving").join(name).join("logits.json"));
        let tokens = ids(&want["ids"]);
        let len = tokens.len() as u32;
        let adapted = [AdaptedRows { adapter: 0, rows: (len..2 * len).collect() }];
        let cache = cache(&*network, KvPrecision::F32);
        let parts: [Part<'_>; 2] = [(&tokens, 0, &[0, 1, 2, 3]), (&tokens, 0, &[4, 5, 6, 7])];
        let both = forward(&*network, &cache, &parts, &adapted);
        check_golden(name, &both[1], &want);
        let plain = forward(&*network, &cache, &parts[..1], &[]);
        assert!(difference(&both[0], &plain[0]) <= 1e-4, "{name}: other rows change");
        assert!(difference(&both[0], &both[1]) > 0.05, "{name}: the adapter changes nothing");
    }
}

#[test]
fn smollm2_in_its_own_format_predicts_as_with_the_kernels() {
    let Some(path) = test_support::weights("smollm2-135m-instruct") else { return };
    let tokens: Vec<u32> = (0..70).map(|i| 1000 + i * 613 % 40_000).collect();
    let run = |backend: &dyn Backend, precision: Precision| {
        let Checkpoint { spec, weights, .. } = Checkpoint::open(&path, LoadOptions { precision, yarn: None }).unwrap();
        let network = backend.decoder(&spec, weights).unwrap();
        forward(&*network, &cache(&*network, KvPrecision::F16), &[(&tokens, 0, &[3, 1, 2])], &[]).remove(0)
    };
    let exact = run(&KERNELS, Precision::F32);
    let log_probs = |row: &[f32]| {
        let sum: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
        row.iter().map(|x| f64::from(*x) - sum.ln()).collect::<Vec<f64>>()
    };
    // The mean KL divergence from the same weights without rounding of activations; both round those to 8 bits.
    let divergence = |got: Vec<Vec<f32>>| -> f64 {
        let of_row = |(want, got): (&Vec<f32>, &Vec<f32>)| -> f64 {
            log_probs(want).iter().zip(log_probs(got)).map(|(p, q)| p.exp() * (p - q)).sum()
        };
        exact.iter().zip(&got).map(of_row).sum::<f64>() / exact.len() as f64
    };
    let [kernels, portable] = [&KERNELS as &dyn Backend, &PORTABLE].map(|on| divergence(run(on, Precision::Stored)));
    println!("the kernels diverge by {kernels:e}, the portable backend by {portable:e}");
    assert!(portable <= 2.0 * kernels, "{portable} against {kernels}");
    let expanded = divergence(run(&PORTABLE, Precision::F32));
    // The cache is f16.
    assert!(expanded < 1e-5, "{expanded}");
}

#[test]
fn a_token_or_position_out_of_range_is_refused() {
    let network = decoder("llama", Precision::Stored, &PORTABLE);
    let cache = cache(&*network, KvPrecision::F32);
    let sequences = [PagedSequence { rows: 0..1, past: 0, pages: &[0] }];
    let refused = |token: u32, position: u32| {
        let (tokens, positions) = ([token], [position]);
        let (tokens, positions, sequences) = (&tokens[..], &positions[..], &sequences[..]);
        let batch = Batch { tokens, positions, slots: &[0], sequences, logit_rows: &[], wanted: &[] };
        network.forward(batch, &cache).unwrap_err().to_string()
    };
    assert!(refused(1_000_000, 0).contains("token 1000000 of a vocabulary"));
    assert!(refused(1, 1_000_000).contains("position 1000000 of a context"));
}

fn encoder(folder: &Path, precision: Precision, backend: &dyn Backend) -> Box<dyn EncoderNetwork> {
    let Spec::Encoder(spec) = Spec::from_config(&read(&folder.join("config.json"))).unwrap() else {
        panic!("no encoder")
    };
    backend.encoder(&spec, Weights::open_folder(folder).unwrap().in_precision(precision)).unwrap()
}

#[test]
fn hidden_states_of_encoders_are_those_of_the_kernels() {
    let random = ["bert", "xlm_roberta"].map(|name| golden("encoder").join(name));
    let folders: Vec<PathBuf> = random.into_iter().chain(test_support::weights("all-minilm-l6-v2")).collect();
    for folder in folders {
        let [ours, theirs] = [&PORTABLE as &dyn Backend, &KERNELS].map(|backend| {
            let network = encoder(&folder, Precision::F32, backend);
            let vocab = network.spec().vocab as u32;
            let text = |len: u32| -> Vec<u32> { (0..len).map(|i| 5 + i * 131 % (vocab - 5)).collect() };
            let hidden = network.forward(&[text(9), text(1), text(30)]).unwrap();
            assert!(hidden.device().is_cpu() && hidden.dim(0).unwrap() == 40);
            hidden.to_vec2::<f32>().unwrap()
        });
        let worst = difference(&ours, &theirs);
        println!("{}: largest difference {worst:e}", folder.display());
        assert!(worst <= 1e-4, "{}: {worst}", folder.display());
    }
}
