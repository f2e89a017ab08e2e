//! Embedding models as sentence-transformers and FlagEmbedding publish them: folders open as they are, and a step that is not
//! done here is an error.

use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use models::{EmbeddingModel, Pooling};
use serde_json::{Value, json};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/encoder").join(name)
}

/// A tokenizer of single characters, which makes letters small if asked to.
fn tokenizer(lowercase: bool) -> Value {
    let words = ["[UNK]", "a", "A", "ä", "Ä"];
    let vocab: serde_json::Map<String, Value> =
        words.iter().enumerate().map(|(id, word)| ((*word).to_owned(), json!(id))).collect();
    json!({
        "version": "1.0",
        "added_tokens": [],
        "normalizer": lowercase.then(|| json!({ "type": "Lowercase" })),
        "pre_tokenizer": { "type": "Whitespace" },
        "model": { "type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]" },
    })
}

/// A copy of some files of a golden, with a tokenizer.
fn folder(name: &str, files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        std::fs::copy(golden(name).join(file), folder.path().join(file)).unwrap();
    }
    write(folder.path(), "tokenizer.json", &tokenizer(true));
    folder
}

fn write(folder: &Path, name: &str, content: &Value) {
    std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
    std::fs::write(folder.join(name), content.to_string()).unwrap();
}

fn load(folder: &Path) -> Result<EmbeddingModel, String> {
    EmbeddingModel::load(folder, &Device::Cpu).map_err(|error| error.to_string())
}

/// BGE-M3's own files: a pickled network, two pickled heads, and the settings of sentence-transformers.
#[test]
fn bge_m3_opens_as_it_is_published() {
    let files = ["config.json", "pytorch_model.bin", "sparse_linear.pt", "colbert_linear.pt"];
    let pickled = folder("xlm_roberta", &files);
    let module = |kind: &str| json!({ "type": format!("sentence_transformers.models.{kind}") });
    let modules = ["Transformer", "Pooling", "Normalize"].map(module);
    write(pickled.path(), "modules.json", &json!(modules));
    write(pickled.path(), "sentence_bert_config.json", &json!({ "max_seq_length": 60, "do_lower_case": false }));
    write(
        pickled.path(),
        "1_Pooling/config.json",
        &json!({ "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false }),
    );
    let model = load(pickled.path()).unwrap();
    assert_eq!((model.pooling, model.window), (Pooling::Cls, 60));
    assert!(model.heads.is_some());
    let files = ["config.json", "model.safetensors"];
    let stored = load(folder("xlm_roberta", &files).path()).unwrap();
    let hidden = |model: &EmbeddingModel| model.network.forward(&[vec![0, 9, 8, 2]]).unwrap().to_vec2::<f32>().unwrap();
    assert_eq!(hidden(&model), hidden(&stored));
}

#[test]
fn steps_behind_or_before_the_network_that_are_not_done_are_named() {
    let check = |name: &str, content: Value, expected: Option<&str>| {
        let folder = folder("bert", &["config.json", "model.safetensors"]);
        write(folder.path(), name, &content);
        let found = load(folder.path()).err();
        let fits = match (&found, expected) {
            (Some(found), Some(expected)) => found.contains(expected),
            (found, expected) => found.is_none() && expected.is_none(),
        };
        assert!(fits, "{content}: {found:?} is not {expected:?}");
    };
    let dense = json!([{ "type": "sentence_transformers.models.Dense" }]);
    check("modules.json", dense, Some("module \"sentence_transformers.models.Dense\""));
    check("1_Pooling/config.json", json!({ "pooling_mode_max_tokens": true }), Some("max_tokens"));
    let both = json!({ "pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true });
    check("1_Pooling/config.json", both, Some("neither CLS nor mean"));
    check("1_Pooling/config.json", json!({ "pooling_mode": "mean" }), None);
    check(
        "config_sentence_transformers.json",
        json!({ "default_prompt_name": "query" }),
        Some("`default_prompt_name`"),
    );
    check("config_sentence_transformers.json", json!({ "default_prompt_name": null }), None);
    check("sentence_bert_config.json", json!({ "max_seq_length": "long" }), Some("`max_seq_length` is \"long\""));
    check("sentence_bert_config.json", json!({ "do_lower_case": true }), None);
}

#[test]
fn small_letters_that_the_tokenizer_does_not_make_are_an_error() {
    let folder = folder("bert", &["config.json", "model.safetensors"]);
    write(folder.path(), "tokenizer.json", &tokenizer(false));
    assert!(load(folder.path()).is_ok());
    write(folder.path(), "sentence_bert_config.json", &json!({ "do_lower_case": true }));
    assert!(load(folder.path()).unwrap_err().contains("`do_lower_case` = true"));
}

#[test]
fn tensors_of_a_classifier_are_named_and_those_of_pre_training_are_ignored() {
    let check = |tensor: &str, is_refused: bool| {
        let folder = folder("bert", &["config.json"]);
        let mut all = candle_core::safetensors::load(golden("bert").join("model.safetensors"), &Device::Cpu).unwrap();
        all.insert(tensor.to_owned(), Tensor::ones(64, DType::F32, &Device::Cpu).unwrap());
        candle_core::safetensors::save(&all, folder.path().join("model.safetensors")).unwrap();
        let found = load(folder.path()).err();
        assert_eq!(found.is_some(), is_refused, "{tensor}: {found:?}");
        assert!(found.is_none_or(|found| found.contains(tensor)));
    };
    check("classifier.dense.weight", true);
    check("encoder.layer.2.output.dense.bias", true);
    check("cls.predictions.transform.dense.bias", false);
    check("embeddings.position_ids", false);
}
