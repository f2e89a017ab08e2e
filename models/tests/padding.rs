//! A padded vocabulary in a GGUF file: padding ids have no bytes.

use std::collections::HashMap;
use std::fs::File;

use candle_core::quantized::gguf_file::{self, Value};
use models::{Tokenizer, Weights};

#[test]
fn unused_tokens_of_a_gguf_file_have_no_bytes() {
    const NORMAL: i32 = 1;
    const CONTROL: i32 = 3;
    const UNUSED: i32 = 5;
    let tokens = [("a", NORMAL), ("b", NORMAL), ("ab", NORMAL), ("<|end|>", CONTROL), ("[PAD4]", UNUSED)];
    let texts = |texts: &[&str]| Value::Array(texts.iter().map(|text| Value::String((*text).to_owned())).collect());
    let metadata = HashMap::from([
        ("tokenizer.ggml.model", Value::String("gpt2".into())),
        ("tokenizer.ggml.pre", Value::String("gpt-2".into())),
        ("tokenizer.ggml.tokens", texts(&tokens.map(|(token, _)| token))),
        ("tokenizer.ggml.merges", texts(&["a b"])),
        ("tokenizer.ggml.token_type", Value::Array(tokens.iter().map(|(_, kind)| Value::I32(*kind)).collect())),
    ]);
    let path = tempfile::tempdir().unwrap().keep().join("padded.gguf");
    let pairs: Vec<(&str, &Value)> = metadata.iter().map(|(key, value)| (*key, value)).collect();
    gguf_file::write(&mut File::create(&path).unwrap(), &pairs, &[]).unwrap();
    let (_, metadata) = Weights::open_gguf(&path).unwrap();
    let tokenizer = Tokenizer::from_gguf(&metadata).unwrap();
    assert_eq!(tokenizer.encode("ab").unwrap(), [2]);
    let bytes: Vec<&[u8]> = (0..5).map(|token| tokenizer.bytes(token)).collect();
    assert_eq!(bytes, [b"a".as_slice(), b"b", b"ab", b"<|end|>", b""]);
    assert_eq!(tokenizer.specials().collect::<Vec<_>>(), [3]);
}
