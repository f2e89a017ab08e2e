//! Special tokens of a checkpoint: those that chat templates name, and those that end a reply.

use std::path::Path;

use serde_json::Value;

use crate::error::{ModelError, Result};
use crate::gguf::Metadata;
use crate::json_file::{optional_json, read_json};
use crate::tokenizer::Tokenizer;

/// The special tokens that Hugging Face tokenizers name to templates.
const TEMPLATE_TOKENS: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// From `special_tokens_map.json`, over which `tokenizer_config.json` prevails: each a string, or an object with `content`.
pub(crate) fn folder_special_tokens(folder: &Path) -> Result<Vec<(&'static str, String)>> {
    let files = ["tokenizer_config.json", "special_tokens_map.json"];
    let files = files.map(|name| Ok(optional_json(folder, name)?.unwrap_or_default()));
    let [config, map]: [Result<Value>; 2] = files;
    let (config, map) = (config?, map?);
    let token = |name: &'static str| {
        let values = [&config[name], &config[name]["content"], &map[name], &map[name]["content"]];
        values.into_iter().find_map(Value::as_str).map(|token| (name, token.to_owned()))
    };
    Ok(TEMPLATE_TOKENS.into_iter().filter_map(token).collect())
}

pub(crate) fn gguf_special_tokens(metadata: &Metadata) -> Result<Vec<(&'static str, String)>> {
    let tokens = metadata.texts("tokenizer.ggml.tokens")?;
    let mut named = Vec::new();
    for (name, key) in [("bos_token", "bos"), ("eos_token", "eos"), ("unk_token", "unknown"), ("pad_token", "padding")]
    {
        if let Some(id) = metadata.optional_number(&format!("tokenizer.ggml.{key}_token_id"))? {
            let outside = || ModelError::config(format!("{name} {id} of a vocabulary of {}", tokens.len()));
            named.push((name, (*tokens.get(id).ok_or_else(outside)?).to_owned()));
        }
    }
    Ok(named)
}

/// True if prompts are to begin with the token that begins texts, and the template leaves that to the tokenizer.
pub(crate) fn lacks_bos(metadata: &Metadata, template: &str) -> Result<bool> {
    let flag = metadata.optional_flag("tokenizer.ggml.add_bos_token")?;
    let is_added = match flag {
        Some(flag) => flag,
        // llama.cpp's default for SentencePiece.
        None => metadata.optional_text("tokenizer.ggml.model")? == Some("llama"),
    };
    let tokens = gguf_special_tokens(metadata)?;
    let bos = tokens.iter().find(|(name, _)| *name == "bos_token");
    Ok(is_added && bos.is_some_and(|(name, token)| !template.contains(name) && !template.contains(token)))
}

pub(crate) fn gguf_eos(metadata: &Metadata, tokenizer: &Tokenizer) -> Vec<u32> {
    let eos = metadata.number("tokenizer.ggml.eos_token_id").ok().and_then(|id| u32::try_from(id).ok());
    eos_set(tokenizer, eos.into_iter().collect())
}

pub(crate) fn folder_eos(folder: &Path, config: &Value, tokenizer: &Tokenizer) -> Vec<u32> {
    let generation = read_json(folder, "generation_config.json").unwrap_or_default();
    let eos = [&generation, config].into_iter().flat_map(|json| ids(&json["eos_token_id"])).collect();
    eos_set(tokenizer, eos)
}

/// The checkpoint's own end tokens and the ends of turn that its tokenizer knows: published configurations name only
/// some of them.
fn eos_set(tokenizer: &Tokenizer, mut eos: Vec<u32>) -> Vec<u32> {
    const TURN_ENDS: [&str; 4] = ["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<end_of_turn>"];
    eos.extend(TURN_ENDS.iter().filter_map(|name| tokenizer.special(name)));
    eos.sort_unstable();
    eos.dedup();
    eos
}

fn ids(value: &Value) -> Vec<u32> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    value.as_array().map_or_else(|| id(value).into_iter().collect(), |list| list.iter().filter_map(id).collect())
}
