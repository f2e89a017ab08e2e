//! The encoder against transformers (torch, f32) on tiny random checkpoints; `tests/golden/encoder_random.py` made the
//! goldens.

use std::path::{Path, PathBuf};

use candle_core::Device;
use models::{Encoder, EncoderTokenizer, Heads, Pooling, Spec, Weights, lexical_score, max_sim, ranges, represent};
use serde_json::{Value, json};

fn check(name: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/encoder").join(name);
    let read = |file: &str| -> Value { serde_json::from_slice(&std::fs::read(folder.join(file)).unwrap()).unwrap() };
    let Spec::Encoder(spec) = Spec::from_config(&read("config.json")).unwrap() else { panic!("no encoder") };
    let weights = Weights::open_folder(&folder).unwrap();
    let encoder = Encoder::load(&spec, &weights, &Device::Cpu).unwrap();
    let outputs = read("outputs.json");
    let cases = outputs["cases"].as_array().unwrap();
    let sequences: Vec<Vec<u32>> = cases
        .iter()
        .map(|case| case["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect())
        .collect();
    let together = encoder.forward(&sequences).unwrap().to_vec2::<f32>().unwrap();
    let mut worst = 0f32;
    for ((case, sequence), range) in cases.iter().zip(&sequences).zip(ranges(&sequences)) {
        let want = case["last_hidden_state"].as_array().unwrap();
        for (got, want) in together[range.clone()].iter().zip(want) {
            for (got, want) in got.iter().zip(want.as_array().unwrap()) {
                worst = worst.max((got - want.as_f64().unwrap() as f32).abs());
            }
        }
        let alone = encoder.forward(std::slice::from_ref(sequence)).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(alone, together[range], "{name}: a sequence depends on its neighbours");
    }
    println!("{name}: largest difference {worst:e}");
    assert!(worst <= 2e-5, "{name}: {worst}");
}

/// The three heads of BGE-M3 by the published formulae, from `.pt` files and from safetensors, with the weights from
/// `pytorch_model.bin` as BAAI publishes them.
#[test]
fn bge_m3_heads() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/encoder/xlm_roberta");
    let outputs: Value = serde_json::from_slice(&std::fs::read(golden.join("outputs.json")).unwrap()).unwrap();
    for (weights, heads) in [("pytorch_model.bin", "pt"), ("model.safetensors", "safetensors")] {
        let folder = tempfile::tempdir().unwrap();
        let heads = ["sparse_linear", "colbert_linear"].map(|name| format!("{name}.{heads}"));
        for file in ["config.json", weights, &heads[0], &heads[1]] {
            std::fs::copy(golden.join(file), folder.path().join(file)).unwrap();
        }
        check_heads(folder.path(), &outputs);
        std::fs::remove_file(folder.path().join(&heads[1])).unwrap();
        let error = Heads::load(folder.path(), 64, &Device::Cpu).unwrap_err();
        assert!(error.to_string().contains("colbert_linear"), "{error}");
    }
}

fn check_heads(folder: &Path, outputs: &Value) {
    let config = serde_json::from_slice(&std::fs::read(folder.join("config.json")).unwrap()).unwrap();
    let Spec::Encoder(spec) = Spec::from_config(&config).unwrap() else { panic!("no encoder") };
    let encoder = Encoder::load(&spec, &Weights::open_folder(folder).unwrap(), &Device::Cpu).unwrap();
    let heads = Heads::load(folder, spec.hidden, &Device::Cpu).unwrap().unwrap();
    for case in outputs["cases"].as_array().unwrap() {
        let ids: Vec<u32> = case["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
        let texts = std::slice::from_ref(&ids);
        let hidden = encoder.forward(texts).unwrap();
        let said = represent(&hidden, texts, Pooling::Cls, Some(&heads), &[0, 1, 2, 3]).unwrap().remove(0);
        close(&said.dense, &floats(&case["dense"]));
        let sparse = said.sparse.unwrap();
        let want = case["sparse"].as_object().unwrap();
        assert_eq!(sparse.len(), want.len());
        sparse.iter().for_each(|(id, weight)| close(&[*weight], &[want[&id.to_string()].as_f64().unwrap() as f32]));
        let colbert = said.colbert.unwrap();
        colbert.iter().zip(case["colbert"].as_array().unwrap()).for_each(|(got, want)| close(got, &floats(want)));
        assert_eq!(colbert.len(), ids.len() - 1, "the first token is dropped, the last is kept");
    }
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

fn close(got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len());
    got.iter().zip(want).for_each(|(a, b)| assert!((a - b).abs() < 1e-5, "{a} for {b}"));
}

/// All positions that BGE-M3 has, beside a short text in the same batch.
#[test]
fn bge_m3_heads_of_8192_tokens() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/encoder/xlm_roberta_long");
    let read = |file: &str| -> Value { serde_json::from_slice(&std::fs::read(folder.join(file)).unwrap()).unwrap() };
    let Spec::Encoder(spec) = Spec::from_config(&read("config.json")).unwrap() else { panic!("no encoder") };
    let encoder = Encoder::load(&spec, &Weights::open_folder(&folder).unwrap(), &Device::Cpu).unwrap();
    let heads = Heads::load(&folder, spec.hidden, &Device::Cpu).unwrap().unwrap();
    let middle = (0..8190u32).map(|i| (i * i + 3 * i) % 40 + 104);
    let ids: Vec<u32> = std::iter::once(0).chain(middle).chain([2]).collect();
    let texts = [vec![0, 110, 2], ids];
    let hidden = encoder.forward(&texts).unwrap();
    let said = represent(&hidden, &texts, Pooling::Cls, Some(&heads), &[0, 1, 2, 3]).unwrap().remove(1);
    let want = read("outputs.json");
    close(&said.dense, &floats(&want["dense"]));
    let sparse = said.sparse.unwrap();
    assert_eq!(sparse.len(), want["sparse"].as_object().unwrap().len());
    sparse
        .iter()
        .for_each(|(id, weight)| close(&[*weight], &[want["sparse"][id.to_string()].as_f64().unwrap() as f32]));
    let colbert = said.colbert.unwrap();
    assert_eq!(colbert.len(), 8191);
    for (row, want) in want["colbert"].as_object().unwrap() {
        close(&colbert[row.parse::<usize>().unwrap()], &floats(want));
    }
}

/// transformers counts them with `cumsum(ids != pad) * (ids != pad) + pad`; here `pad` is 1.
#[test]
fn a_padding_token_in_a_text_is_not_counted_as_a_position() {
    let config = include_str!("../../tests/golden/encoder/xlm_roberta/config.json");
    let Spec::Encoder(spec) = Spec::from_config(&serde_json::from_str(config).unwrap()).unwrap() else { panic!() };
    let texts = [vec![0, 110, 1, 120, 1, 1, 2], vec![0, 1, 2]];
    assert_eq!(spec.positions_of(&texts).unwrap(), [2, 3, 1, 4, 1, 1, 5, 2, 1, 3]);
}

/// FlagEmbedding drops cls, eos, pad and unk.
#[test]
fn of_the_special_tokens_only_the_mask_has_a_lexical_weight() {
    let specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"];
    let added = specials.iter().enumerate().map(|(id, token)| {
        json!({ "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            "special": true })
    });
    let vocab = json!({ "<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "word": 5 });
    let added: Vec<Value> = added.collect();
    let tokenizer = json!({ "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": null, "pre_tokenizer": { "type": "WhitespaceSplit" }, "post_processor": null, "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocab, "unk_token": "<unk>" } });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, tokenizer.to_string()).unwrap();
    let tokenizer = EncoderTokenizer::from_file(&path).unwrap();
    assert_eq!(tokenizer.encode("word <mask> <pad>").unwrap(), [5, 4, 1]);
    let mut unweighted = tokenizer.unweighted().to_vec();
    unweighted.sort_unstable();
    assert_eq!(unweighted, [0, 1, 2, 3]);
}

#[test]
fn scores_of_the_heads() {
    assert_eq!(lexical_score(&[(1, 0.5), (7, 2.0)], &[(2, 3.0), (7, 0.25)]), 0.5);
    let (x, y) = (vec![1.0, 0.0], vec![0.0, 1.0]);
    assert_eq!(max_sim(&[x.clone(), y.clone()], &[x.clone(), vec![0.6, 0.8]]), 0.9);
}

#[test]
fn bert() {
    check("bert");
}

#[test]
fn xlm_roberta_with_positions_from_two() {
    check("xlm_roberta");
}
