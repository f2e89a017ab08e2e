//! Tokenizers and chat templates of folders and GGUF files: what they take from the checkpoint besides the weights.

use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{self, Value};
use models::{ChatTemplate, Checkpoint, LoadOptions, LocalTime};
use serde_json::json;

/// Bytes as GPT-2's alphabet writes them, for letters; then a word that no merge leads to, and three special tokens.
const TOKENS: [&str; 9] = ["h", "e", "l", "o", "he", "hello", "<|bos|>", "<|end|>", "<|pad|>"];

/// A GGUF file of a network without tensors, which nothing here runs.
fn gguf(pre: &str, template: &str) -> (tempfile::TempDir, PathBuf) {
    gguf_with(pre, template, &[])
}

fn gguf_with(pre: &str, template: &str, extra: &[(&str, Value)]) -> (tempfile::TempDir, PathBuf) {
    let text = |text: &str| Value::String(text.to_owned());
    let texts = |texts: &[&str]| Value::Array(texts.iter().map(|token| text(token)).collect());
    let kinds = TOKENS.iter().map(|token| Value::I32(if token.starts_with('<') { 3 } else { 1 })).collect();
    let metadata = [
        ("general.architecture", text("llama")),
        ("llama.block_count", Value::U32(0)),
        ("llama.embedding_length", Value::U32(64)),
        ("llama.feed_forward_length", Value::U32(64)),
        ("llama.context_length", Value::U32(64)),
        ("llama.attention.head_count", Value::U32(2)),
        ("llama.attention.layer_norm_rms_epsilon", Value::F32(1e-6)),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text(pre)),
        ("tokenizer.ggml.tokens", texts(&TOKENS)),
        ("tokenizer.ggml.token_type", Value::Array(kinds)),
        ("tokenizer.ggml.merges", texts(&["h e"])),
        ("tokenizer.ggml.bos_token_id", Value::U32(6)),
        ("tokenizer.ggml.eos_token_id", Value::U32(7)),
        ("tokenizer.ggml.padding_token_id", Value::U32(8)),
        ("tokenizer.chat_template", text(template)),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let metadata: Vec<(&str, &Value)> = metadata.iter().chain(extra).map(|(key, value)| (*key, value)).collect();
    gguf_file::write(&mut File::create(&path).unwrap(), &metadata, &[]).unwrap();
    (folder, path)
}

fn open(path: &Path) -> Checkpoint {
    Checkpoint::open(path, LoadOptions::default()).unwrap()
}

const TURNS: [(&str, &str); 1] = [("user", "hello")];

fn rendered(template: &ChatTemplate) -> String {
    template.render(&TURNS.map(|(role, content)| json!({ "role": role, "content": content }))).unwrap()
}

#[test]
fn a_word_that_is_a_token_of_llama_3_is_not_merged_from_its_parts() {
    let tokens = |pre: &str| {
        let (_folder, path) = gguf(pre, "{{ messages[0].content }}");
        open(&path).tokenizer.encode("hello").unwrap()
    };
    assert_eq!(tokens("llama-bpe"), [5]);
    assert_eq!(tokens("qwen2"), [4, 2, 2, 3]);
}

#[test]
fn templates_write_the_special_tokens_of_a_gguf_file() {
    let template = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ pad_token }}{{ unk_token }}";
    let (_folder, path) = gguf("llama-bpe", template);
    let checkpoint = open(&path);
    let prompt = rendered(&checkpoint.template);
    assert_eq!(prompt, "<|bos|>hello<|end|><|pad|>");
    assert_eq!(checkpoint.tokenizer.encode_prompt(&prompt, &[]).unwrap(), [6, 5, 7, 8]);
}

#[test]
fn a_prompt_begins_with_the_token_that_a_gguf_file_demands_and_its_template_leaves_out() {
    let begins = |template: &str, add_bos: Option<bool>| {
        let extra = add_bos.map(|flag| ("tokenizer.ggml.add_bos_token", Value::Bool(flag)));
        let (_folder, path) = gguf_with("llama-bpe", template, extra.as_slice());
        rendered(&open(&path).template)
    };
    let template = "{{ messages[0].content }}";
    assert_eq!(begins(template, Some(true)), "<|bos|>hello");
    assert_eq!(begins(template, Some(false)), "hello");
    assert_eq!(begins(template, None), "hello");
    assert_eq!(begins("{{ bos_token }}{{ messages[0].content }}", Some(true)), "<|bos|>hello");
    assert_eq!(begins("<|bos|>{{ messages[0].content }}", Some(true)), "<|bos|>hello");
}

#[test]
fn templates_write_the_special_tokens_of_a_folder() {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/decoder/llama");
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        std::fs::copy(golden.join(name), folder.path().join(name)).unwrap();
    }
    let config = json!({
        "bos_token": { "content": "<|im_start|>", "lstrip": false },
        "eos_token": "<|im_end|>",
        "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ pad_token }}",
    });
    let map = json!({ "eos_token": "another", "pad_token": { "content": "<|endoftext|>" } });
    std::fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    std::fs::write(folder.path().join("special_tokens_map.json"), map.to_string()).unwrap();
    assert_eq!(rendered(&open(folder.path()).template), "<|im_start|>hello<|im_end|><|endoftext|>");
}

#[test]
fn templates_know_the_date_and_that_there_are_no_tools() {
    let render = |source: &str| rendered(&ChatTemplate::new(source).unwrap());
    let today = render("{% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% endif %}");
    let parts: Vec<&str> = today.split(' ').collect();
    let [day, month, year] = parts[..] else { panic!("{today}") };
    assert_eq!((day.len(), month.len()), (2, 3), "{today}");
    assert!(day.parse::<u32>().is_ok_and(|day| (1..=31).contains(&day)), "{today}");
    assert!(year.parse::<u32>().is_ok_and(|year| year >= 2024), "{today}");
    assert_eq!(render("{{ tools is none }} {{ tools is defined }} {{ documents is none }}"), "True True True");
    let time: LocalTime = "2024-02-29T23:59:59.25+01:00".parse().unwrap();
    let fixed = ChatTemplate::new("{{ strftime_now('%d %b %Y %H:%M:%S%.3f %z') }}").unwrap().at(time);
    assert_eq!(rendered(&fixed), "29 Feb 2024 23:59:59.250 +0100");
    assert_eq!(time.to_string().parse(), Ok(time));
    assert!("today".parse::<LocalTime>().is_err());
    let invalid = ChatTemplate::new("{{ strftime_now('%Q') }}").unwrap();
    let error = invalid.render(&[json!({})]).unwrap_err().to_string();
    assert!(error.contains("`%Q` is no format of a date"), "{error}");
}
