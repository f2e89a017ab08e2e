//! What a sentence-transformers folder says about an encoder: pooling, the longest input, and modules behind the network.

use std::path::Path;

use serde_json::Value;

use crate::encoder_tokenizer::EncoderTokenizer;
use crate::error::{ModelError, Result};
use crate::files;
use crate::json_file::{optional_json, read_json};
use crate::manifest::Pooling;

/// Where a folder says how vectors are pooled.
pub(crate) const POOLING: &str = "1_Pooling/config.json";

/// Pooling and limit of an embedding model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SentenceConfig {
    pub pooling: Pooling,
    /// Tokens that one text may have, special ones included.
    pub limit: Option<usize>,
}

impl SentenceConfig {
    /// Reads `modules.json`, `1_Pooling/config.json`, `sentence_bert_config.json` and `config_sentence_transformers.json`,
    /// each of which may be missing.
    ///
    /// # Errors
    /// If one is damaged, or asks for a step that is not done here.
    pub fn read(folder: &Path, architecture: &str, tokenizer: &EncoderTokenizer) -> Result<SentenceConfig> {
        check_modules(folder)?;
        if let Some(config) = optional_json(folder, "config_sentence_transformers.json")?
            && let prompt @ Value::String(_) = &config["default_prompt_name"]
        {
            return Err(ModelError::unused_field("default_prompt_name".into(), prompt));
        }
        let sentence = optional_json(folder, "sentence_bert_config.json")?.unwrap_or_default();
        // Most tokenizers of such models make letters small by themselves.
        if sentence["do_lower_case"] == true && tokenizer.encode("A Ä")? != tokenizer.encode("a ä")? {
            return Err(ModelError::unused_field("do_lower_case".into(), &true));
        }
        let limit = match &sentence["max_seq_length"] {
            Value::Null => None,
            limit => {
                let number = limit.as_u64().and_then(|limit| usize::try_from(limit).ok());
                Some(number.ok_or_else(|| ModelError::config(format!("`max_seq_length` is {limit}")))?)
            }
        };
        Ok(SentenceConfig { pooling: pooling(folder, architecture)?, limit })
    }
}

/// Vectors are always normalised; a missing `Normalize` changes lengths, which no search here uses.
fn check_modules(folder: &Path) -> Result<()> {
    let Some(modules) = optional_json(folder, "modules.json")? else { return Ok(()) };
    let kind = |module: &Value| module["type"].as_str().and_then(|kind| kind.rsplit('.').next()).map(str::to_owned);
    for module in modules.as_array().into_iter().flatten() {
        match kind(module).as_deref() {
            Some("Transformer" | "Pooling" | "Normalize") => {}
            _ => return Err(ModelError::Unsupported { what: format!("module {} of modules.json", module["type"]) }),
        }
    }
    Ok(())
}

fn pooling(folder: &Path, architecture: &str) -> Result<Pooling> {
    if !files::is_file(&folder.join(POOLING)) {
        return Ok(if architecture == "xlm-roberta" { Pooling::Cls } else { Pooling::Mean });
    }
    let config = read_json(folder, POOLING)?;
    // Older files have a flag for each mode, newer ones its name.
    let flags = config
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, value)| name.starts_with("pooling_mode_") && **value == true);
    let named = config["pooling_mode"].as_str().map(str::to_owned);
    let modes: Vec<String> = flags.map(|(name, _)| name.replacen("pooling_mode_", "", 1)).chain(named).collect();
    match modes.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["cls_token" | "cls"] => Ok(Pooling::Cls),
        ["mean_tokens" | "mean"] => Ok(Pooling::Mean),
        ref other => Err(ModelError::Unsupported { what: format!("pooling {other:?}, neither CLS nor mean,") }),
    }
}
