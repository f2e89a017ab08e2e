//! Tokenizers of GGUF files with SentencePiece's pieces against SentencePiece: `tests/golden/sentencepiece.json`, made by the
//! script beside it.

use std::fs::File;
use std::path::PathBuf;

use candle_core::quantized::gguf_file::{self, Value as Entry};
use models::{Tokenizer, Weights};
use serde_json::Value;

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
fn spans_are_those_of_the_text() {
    let text = "The watch\n was 日本  sold.";
    let tokenizer = tokenizer(&[]);
    let spans = tokenizer.spans(text).unwrap();
    assert_eq!(spans.len(), tokenizer.encode(text).unwrap().len());
    assert!(spans.iter().all(|span| text.is_char_boundary(span.start) && text.is_char_boundary(span.end)), "{spans:?}");
    assert_eq!((spans[0].start, spans.last().unwrap().end), (0, text.len()));
}
