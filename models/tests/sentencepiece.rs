//! Tokenizers with SentencePiece's pieces: those of GGUF files against SentencePiece (`tests/golden/sentencepiece.json`, made by
//! the script beside it), those of a `tokenizer.json` against the library that it is written for.

use std::fs::{self, File};
use std::path::PathBuf;

use candle_core::quantized::gguf_file::{self, Value as Entry};
use models::{Tokenizer, Weights};
use serde_json::{Value, json};

const GOLDEN: &str = include_str!("../../tests/golden/sentencepiece.json");

fn golden() -> Value {
    serde_json::from_str(GOLDEN).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

/// The tokenizer of a GGUF file with the golden's pieces.
fn tokenizer(extra: &[(&str, Entry)]) -> Tokenizer {
    let golden = golden();
    let list = |name: &str, entry: fn(&Value) -> Entry| {
        Entry::Array(golden[name].as_array().unwrap().iter().map(entry).collect())
    };
    let mut metadata = vec![
        ("tokenizer.ggml.model", Entry::String("llama".into())),
        ("tokenizer.ggml.tokens", list("tokens", |token| Entry::String(token.as_str().unwrap().into()))),
        ("tokenizer.ggml.scores", list("scores", |score| Entry::F32(score.as_f64().unwrap() as f32))),
        ("tokenizer.ggml.token_type", list("kinds", |kind| Entry::I32(kind.as_i64().unwrap() as i32))),
    ];
    metadata.extend(extra.iter().map(|(key, entry)| (*key, entry.clone())));
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("model.gguf");
    let metadata: Vec<(&str, &Entry)> = metadata.iter().map(|(key, entry)| (*key, entry)).collect();
    gguf_file::write(&mut File::create(&path).unwrap(), &metadata, &[]).unwrap();
    let (_, metadata) = Weights::open_gguf(&path).unwrap();
    Tokenizer::from_gguf(&metadata).unwrap()
}

fn joined(tokenizer: &Tokenizer, tokens: &[u32]) -> Vec<u8> {
    tokens.iter().flat_map(|token| tokenizer.bytes(*token)).copied().collect()
}

#[test]
fn texts_have_the_ids_of_sentencepiece() {
    let (tokenizer, without) = (tokenizer(&[]), tokenizer(&[("tokenizer.ggml.add_space_prefix", Entry::Bool(false))]));
    let golden = golden();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() > 200);
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let whole = 0..text.len();
        let (prompt, plain) = (ids(&case["prompt"]), ids(&case["plain"]));
        assert_eq!(tokenizer.encode_prompt(text, std::slice::from_ref(&whole)).unwrap(), prompt, "prompt {text:?}");
        assert_eq!(without.encode_prompt(text, &[whole]).unwrap(), plain, "no prefix {text:?}");
        assert_eq!(tokenizer.encode(text).unwrap(), plain, "plain {text:?}");
        // A piece's space is a space of the text, or the character that it is written with.
        assert_eq!(joined(&tokenizer, &plain), text.replace('\u{2581}', " ").into_bytes(), "{text:?}");
    }
}

#[test]
fn special_tokens_are_tokens_where_the_template_wrote_them() {
    let tokenizer = tokenizer(&[]);
    let [bos, eos] = ["<s>", "</s>"].map(|name| tokenizer.special(name).unwrap());
    let text = |text: &str| tokenizer.encode(text).unwrap();
    // llama.cpp puts a space behind every special token that text follows.
    let want = [vec![bos], text(" of the"), vec![eos], text(" watch")].concat();
    assert_eq!(tokenizer.encode_prompt("<s>of the</s>watch", &[]).unwrap(), want);
    assert_eq!(tokenizer.encode_within("of</s>").unwrap(), [text("of"), vec![eos]].concat());
    assert_eq!(tokenizer.encode_prompt("<s>", &[]).unwrap(), [bos]);
    assert_eq!(tokenizer.bytes(bos), b"<s>");
    assert!(!tokenizer.encode("<s>").unwrap().contains(&bos));
}

#[test]
fn turns_of_gemma_are_special_whatever_the_file_calls_them_and_prompts_get_no_space() {
    let golden = golden();
    let longer = |name: &str, entry: fn(&Value) -> Entry, more: [Entry; 2]| {
        Entry::Array(golden[name].as_array().unwrap().iter().map(entry).chain(more).collect())
    };
    let names = ["<start_of_turn>", "<end_of_turn>"].map(|name| Entry::String(name.into()));
    // Later entries of a file replace earlier ones.
    let tokenizer = tokenizer(&[
        ("general.architecture", Entry::String("gemma3".into())),
        ("tokenizer.ggml.tokens", longer("tokens", |token| Entry::String(token.as_str().unwrap().into()), names)),
        (
            "tokenizer.ggml.scores",
            longer("scores", |x| Entry::F32(x.as_f64().unwrap() as f32), [0.0, 0.0].map(Entry::F32)),
        ),
        (
            "tokenizer.ggml.token_type",
            longer("kinds", |kind| Entry::I32(kind.as_i64().unwrap() as i32), [1, 1].map(Entry::I32)),
        ),
    ]);
    let [start, end] = ["<start_of_turn>", "<end_of_turn>"].map(|name| tokenizer.special(name).unwrap());
    let text = tokenizer.encode("the watch").unwrap();
    let want = [vec![start], text.clone(), vec![end]].concat();
    assert_eq!(tokenizer.encode_prompt("<start_of_turn>the watch<end_of_turn>", &[]).unwrap(), want);
    assert!(!tokenizer.encode("a <end_of_turn> of a document").unwrap().contains(&end));
}

#[test]
fn spans_are_those_of_the_text() {
    let text = "The watch\n was 日本  sold.";
    let tokenizer = tokenizer(&[]);
    let spans = tokenizer.spans(text).unwrap();
    assert_eq!(spans.len(), tokenizer.encode(text).unwrap().len());
    assert!(spans.iter().all(|span| text.is_char_boundary(span.start) && text.is_char_boundary(span.end)), "{spans:?}");
    assert_eq!((spans[0].start, spans.last().unwrap().end), (0, text.len()));
}

/// A `tokenizer.json` of the golden's pieces as transformers writes it, with one of the ways to handle spaces.
fn json_with(normalizer: &Value, pre_tokenizer: &Value, strips: bool) -> Value {
    let golden = golden();
    let pieces: Vec<(&str, f64, i64)> = golden["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(id, piece)| {
            (piece.as_str().unwrap(), golden["scores"][id].as_f64().unwrap(), golden["kinds"][id].as_i64().unwrap())
        })
        .collect();
    let normal = |part: &str| pieces.iter().any(|(piece, _, kind)| *piece == part && *kind == 1);
    let mut merges: Vec<(f64, &str, &str)> = Vec::new();
    for (piece, score, _) in pieces.iter().filter(|(.., kind)| *kind == 1) {
        let splits = piece.char_indices().skip(1).map(|(at, _)| piece.split_at(at));
        merges.extend(splits.filter(|(a, b)| normal(a) && normal(b)).map(|(a, b)| (*score, a, b)));
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.len().cmp(&a.1.len())));
    let added = pieces.iter().enumerate().filter(|(_, (.., kind))| matches!(kind, 2 | 3)).map(|(id, (piece, ..))| {
        json!({ "id": id, "content": piece, "special": true, "normalized": false, "single_word": false, "lstrip": false,
            "rstrip": strips })
    });
    let vocab: serde_json::Map<String, Value> =
        pieces.iter().enumerate().map(|(id, (piece, ..))| ((*piece).to_owned(), json!(id))).collect();
    let merges: Vec<Value> = merges.iter().map(|(_, a, b)| json!([a, b])).collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": normalizer, "pre_tokenizer": pre_tokenizer, "post_processor": null, "decoder": { "type": "Fuse" },
        "model": { "type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false, "vocab": vocab,
            "merges": merges },
    })
}

fn from_json(json: &Value) -> models::Result<Tokenizer> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    fs::write(&path, json.to_string()).unwrap();
    Tokenizer::from_file(&path)
}

#[test]
fn every_way_to_handle_spaces_is_that_of_the_library() {
    let replace = json!({ "type": "Replace", "pattern": { "String": " " }, "content": "\u{2581}" });
    let prepend = json!({ "type": "Prepend", "prepend": "\u{2581}" });
    let metaspace = |scheme: &str, split: bool| json!({ "type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": scheme, "split": split });
    let split =
        json!({ "type": "Split", "pattern": { "String": " " }, "behavior": "MergedWithPrevious", "invert": false });
    let ways = [
        (json!({ "type": "Sequence", "normalizers": [prepend, replace] }), Value::Null),
        (Value::Null, metaspace("first", false)),
        (Value::Null, metaspace("always", false)),
        (Value::Null, metaspace("always", true)),
        (Value::Null, metaspace("never", false)),
        (replace, split),
    ];
    for (normalizer, pre_tokenizer) in ways {
        let json = json_with(&normalizer, &pre_tokenizer, false);
        let tokenizer = from_json(&json).unwrap();
        let library: tokenizers::Tokenizer = json.to_string().parse().unwrap();
        let golden = golden();
        let texts = golden["cases"].as_array().unwrap().iter().map(|case| case["text"].as_str().unwrap().to_owned());
        let chats = ["<s>[INST] of the [/INST]", "of</s>the<s> and", "<s>", " <s>of", "a</s></s>b"].map(str::to_owned);
        for text in texts.chain(chats) {
            let want = library.encode(text.as_str(), false).unwrap();
            let got = tokenizer.encode_prompt(&text, &[]).unwrap();
            assert_eq!(got, want.get_ids(), "{normalizer} {pre_tokenizer}: {text:?}");
            let plain = tokenizer.encode(&text).unwrap();
            assert_eq!(joined(&tokenizer, &plain), text.replace('\u{2581}', " ").into_bytes(), "{text:?}");
        }
    }
}

#[test]
fn tokenizers_that_change_more_than_spaces_are_refused() {
    let refusal = |json: &Value| from_json(json).unwrap_err().to_string();
    let metaspace =
        json!({ "type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "first", "split": false });
    let with_form = json_with(&json!({ "type": "NFKC" }), &metaspace, false);
    assert!(refusal(&with_form).contains("changes texts in more than their spaces"), "{}", refusal(&with_form));
    let strips = json_with(&Value::Null, &metaspace, true);
    assert!(refusal(&strips).contains("strips spaces"), "{}", refusal(&strips));
    let mut unigram = json_with(&Value::Null, &metaspace, false);
    unigram["model"] =
        json!({ "type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]], "byte_fallback": true });
    assert!(refusal(&unigram).contains("neither byte-level nor SentencePiece's BPE"), "{}", refusal(&unigram));
}
