//! A checkpoint on disk: weights, spec, tokenizer and chat template, from a GGUF file or a Hugging Face folder.

use std::path::Path;

use candle_core::Device;
use kernels::memory::release_unused;
use serde_json::Value;

use crate::chat::ChatTemplate;
use crate::decoder::{Decoder, KvCache, KvPrecision, PAGE_TOKENS};
use crate::encoder::Encoder;
use crate::encoder_tokenizer::EncoderTokenizer;
use crate::error::{ModelError, Result};
use crate::gguf::Metadata;
use crate::heads::Heads;
use crate::manifest::Pooling;
use crate::source::{LoadOptions, Source};
use crate::spec::{DecoderSpec, Spec};
use crate::tokenizer::Tokenizer;
use crate::weights::{Precision, Weights};

/// A language model, ready to run.
#[derive(Debug)]
pub struct LanguageModel {
    pub network: Decoder,
    pub tokenizer: Tokenizer,
    pub template: ChatTemplate,
    /// Tokens that end a reply.
    pub eos: Vec<u32>,
    /// Where all of it came from.
    pub source: Source,
}

/// The parts of a language model without a network: for those that build one of their own.
#[derive(Debug)]
pub struct Checkpoint {
    pub spec: DecoderSpec,
    pub weights: Weights,
    pub tokenizer: Tokenizer,
    pub template: ChatTemplate,
    /// Tokens that end a reply.
    pub eos: Vec<u32>,
}

impl Checkpoint {
    /// Opens a `.gguf` file, or a folder with `config.json`, safetensors and `tokenizer.json`.
    ///
    /// # Errors
    /// As [`LanguageModel::load`].
    pub fn open(path: &Path, options: LoadOptions) -> Result<Checkpoint> {
        if path.is_dir() {
            let config = read_json(path, "config.json")?;
            let Spec::Decoder(spec) = Spec::from_config(&config)? else {
                return Err(ModelError::Unsupported { what: "an encoder as a language model".into() });
            };
            let tokenizer = Tokenizer::from_file(&required(path, "tokenizer.json")?)?;
            let weights = Weights::open_folder(path)?.in_precision(options.precision);
            let template = ChatTemplate::new(&chat_template(path)?)?;
            let eos = folder_eos(path, &config, &tokenizer);
            return Ok(Checkpoint { spec: options.apply(spec)?, weights, template, eos, tokenizer });
        }
        let (weights, metadata) = Weights::open_gguf(path)?;
        let Spec::Decoder(spec) = Spec::from_gguf(&metadata, |name| weights.has_gguf(name))? else {
            return Err(ModelError::Unsupported { what: "an encoder in a GGUF file".into() });
        };
        let tokenizer = Tokenizer::from_gguf(&metadata)?;
        let template = metadata.text("tokenizer.chat_template").map_err(|_| no_template(path))?;
        let (template, eos) = (ChatTemplate::new(template)?, gguf_eos(&metadata, &tokenizer));
        let weights = weights.in_precision(options.precision);
        Ok(Checkpoint { spec: options.apply(spec)?, weights, template, eos, tokenizer })
    }
}

/// An embedding model, ready to run.
#[derive(Debug)]
pub struct EmbeddingModel {
    pub network: Encoder,
    pub tokenizer: EncoderTokenizer,
    pub pooling: Pooling,
    /// BGE-M3's further heads, if the checkpoint has them.
    pub heads: Option<Heads>,
    /// Tokens that one text may have, special ones included.
    pub window: usize,
}

/// What a language model takes in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Of the packed weights, about.
    pub weight_bytes: u64,
    /// In half precision.
    pub kv_bytes_per_token: u64,
    /// Tokens that prompt and answer may have together.
    pub context: usize,
}

impl Footprint {
    /// Measures a checkpoint without loading it.
    ///
    /// # Errors
    /// Any [`ModelError`].
    pub fn of(path: &Path, options: LoadOptions) -> Result<Footprint> {
        let (spec, weights) = if path.is_dir() {
            (Spec::from_config(&read_json(path, "config.json")?)?, Weights::open_folder(path)?)
        } else {
            let (weights, metadata) = Weights::open_gguf(path)?;
            (Spec::from_gguf(&metadata, |name| weights.has_gguf(name))?, weights)
        };
        let Spec::Decoder(spec) = spec else {
            return Err(ModelError::Unsupported { what: "an encoder as a language model".into() });
        };
        let spec = options.apply(spec)?;
        let page_bytes = KvCache::page_bytes(&spec, KvPrecision::F16);
        Ok(Footprint {
            weight_bytes: weights.in_precision(options.precision).packed_bytes(),
            kv_bytes_per_token: (page_bytes / PAGE_TOKENS) as u64,
            context: spec.context,
        })
    }
}

impl LanguageModel {
    /// Loads a `.gguf` file, or a folder with `config.json`, safetensors and `tokenizer.json`.
    ///
    /// # Errors
    /// Any [`ModelError`]; a checkpoint without a chat template cannot be asked anything.
    pub fn load(path: &Path, device: &Device) -> Result<LanguageModel> {
        Self::load_with(path, LoadOptions::default(), device)
    }

    /// Loads with the weights in another precision than they are stored in, or with a longer context.
    ///
    /// # Errors
    /// As [`LanguageModel::load`]; for options that the checkpoint does not bear.
    pub fn load_with(path: &Path, options: LoadOptions, device: &Device) -> Result<LanguageModel> {
        let load = if path.is_dir() { Self::from_folder } else { Self::from_gguf };
        let model = load(path, options, device)?;
        release_unused();
        Ok(model)
    }

    fn from_gguf(path: &Path, options: LoadOptions, device: &Device) -> Result<LanguageModel> {
        let (weights, metadata) = Weights::open_gguf(path)?;
        let source = Source::new(path, options)?;
        let weights = weights.in_precision(options.precision);
        let Spec::Decoder(spec) = Spec::from_gguf(&metadata, |name| weights.has_gguf(name))? else {
            return Err(ModelError::Unsupported { what: "an encoder in a GGUF file".into() });
        };
        let spec = options.apply(spec)?;
        let (tokenizer, network) = beside(|| Tokenizer::from_gguf(&metadata), &spec, weights, device)?;
        let template = metadata.text("tokenizer.chat_template").map_err(|_| no_template(path))?;
        let eos = gguf_eos(&metadata, &tokenizer);
        Ok(LanguageModel { network, template: ChatTemplate::new(template)?, eos, tokenizer, source })
    }

    fn from_folder(folder: &Path, options: LoadOptions, device: &Device) -> Result<LanguageModel> {
        let config = read_json(folder, "config.json")?;
        let Spec::Decoder(spec) = Spec::from_config(&config)? else {
            return Err(ModelError::Unsupported { what: "an encoder as a language model".into() });
        };
        let spec = options.apply(spec)?;
        let weights = Weights::open_folder(folder)?.in_precision(options.precision);
        let source = Source::new(folder, options)?;
        let tokenizer_path = required(folder, "tokenizer.json")?;
        let template = chat_template(folder)?;
        let (tokenizer, network) = beside(|| Tokenizer::from_file(&tokenizer_path), &spec, weights, device)?;
        let eos = folder_eos(folder, &config, &tokenizer);
        Ok(LanguageModel { network, template: ChatTemplate::new(&template)?, eos, tokenizer, source })
    }

    /// What this checkpoint is.
    pub fn spec(&self) -> &DecoderSpec {
        self.network.spec()
    }
}

/// Reads the tokenizer beside the weights, whose digest is checked meanwhile: both take a good part of the time to the first
/// token.
fn beside(
    tokenizer: impl FnOnce() -> Result<Tokenizer> + Send,
    spec: &DecoderSpec,
    weights: Weights,
    device: &Device,
) -> Result<(Tokenizer, Decoder)> {
    let load = || {
        let weights = weights.with_packed(device);
        let network = Decoder::load(spec, &weights, spec.context, device)?;
        Result::Ok((weights, network))
    };
    let (tokenizer, loaded) = rayon::join(tokenizer, load);
    let (tokenizer, (weights, network)) = (tokenizer?, loaded?);
    weights.keep_packed();
    Ok((tokenizer, network))
}

impl EmbeddingModel {
    /// Bytes that the weights of a folder take in memory, about, without loading them.
    ///
    /// # Errors
    /// As [`EmbeddingModel::load`].
    pub fn weight_bytes(folder: &Path, precision: Precision) -> Result<u64> {
        if folder.is_file() {
            return Err(ModelError::Unsupported { what: "a GGUF file as an embedding model".into() });
        }
        Ok(Weights::open_folder(folder)?.in_precision(precision).packed_bytes())
    }

    /// Loads a folder with `config.json`, safetensors and `tokenizer.json`, and, where a sentence-transformers checkpoint
    /// says so, its pooling and its shorter window.
    ///
    /// # Errors
    /// Any [`ModelError`].
    pub fn load(folder: &Path, device: &Device) -> Result<EmbeddingModel> {
        Self::load_with(folder, Precision::Stored, device)
    }

    /// Loads with the weights in another precision than they are stored in: [`Precision::Quantised`] is faster
    /// and gives slightly other vectors, so the two do not belong into one index.
    ///
    /// # Errors
    /// As [`EmbeddingModel::load`].
    pub fn load_with(folder: &Path, precision: Precision, device: &Device) -> Result<EmbeddingModel> {
        if folder.is_file() {
            return Err(ModelError::Unsupported { what: "a GGUF file as an embedding model".into() });
        }
        let Spec::Encoder(spec) = Spec::from_config(&read_json(folder, "config.json")?)? else {
            return Err(ModelError::Unsupported { what: "a decoder as an embedding model".into() });
        };
        let weights = Weights::open_folder(folder)?.in_precision(precision).with_packed(device);
        let tokenizer = EncoderTokenizer::from_file(&required(folder, "tokenizer.json")?)?;
        let limit = read_json(folder, "sentence_bert_config.json").unwrap_or_default();
        let limit = limit["max_seq_length"].as_u64().and_then(|n| usize::try_from(n).ok());
        let window = spec.context().min(limit.unwrap_or(usize::MAX));
        let pooling = pooling(folder, &spec.architecture)?;
        let heads = Heads::load(folder, spec.hidden, device)?;
        let network = Encoder::load(&spec, &weights, device)?;
        weights.keep_packed();
        Ok(EmbeddingModel { network, tokenizer, pooling, heads, window })
    }
}

fn pooling(folder: &Path, architecture: &str) -> Result<Pooling> {
    let Ok(config) = read_json(folder, "1_Pooling/config.json") else {
        return Ok(if architecture == "xlm-roberta" { Pooling::Cls } else { Pooling::Mean });
    };
    match (config["pooling_mode_cls_token"].as_bool(), config["pooling_mode_mean_tokens"].as_bool()) {
        (Some(true), _) => Ok(Pooling::Cls),
        (_, Some(true)) => Ok(Pooling::Mean),
        _ => Err(ModelError::Unsupported { what: "a pooling that is neither CLS nor mean".into() }),
    }
}

fn gguf_eos(metadata: &Metadata, tokenizer: &Tokenizer) -> Vec<u32> {
    let eos = metadata.number("tokenizer.ggml.eos_token_id").ok().and_then(|id| u32::try_from(id).ok());
    eos_set(tokenizer, eos.into_iter().collect())
}

fn folder_eos(folder: &Path, config: &Value, tokenizer: &Tokenizer) -> Vec<u32> {
    let generation = read_json(folder, "generation_config.json").unwrap_or_default();
    let eos = [&generation, config].into_iter().flat_map(|json| ids(&json["eos_token_id"])).collect();
    eos_set(tokenizer, eos)
}

/// The checkpoint's own end tokens and the ends of turn that its tokenizer knows: published configurations name only
/// some of them.
fn eos_set(tokenizer: &Tokenizer, mut eos: Vec<u32>) -> Vec<u32> {
    const TURN_ENDS: [&str; 3] = ["<|im_end|>", "<|endoftext|>", "<|eot_id|>"];
    eos.extend(TURN_ENDS.iter().filter_map(|name| tokenizer.special(name)));
    eos.sort_unstable();
    eos.dedup();
    eos
}

fn ids(value: &Value) -> Vec<u32> {
    let id = |value: &Value| value.as_u64().and_then(|id| u32::try_from(id).ok());
    value.as_array().map_or_else(|| id(value).into_iter().collect(), |list| list.iter().filter_map(id).collect())
}

fn chat_template(folder: &Path) -> Result<String> {
    if let Ok(template) = std::fs::read_to_string(folder.join("chat_template.jinja")) {
        return Ok(template);
    }
    let config = read_json(folder, "tokenizer_config.json")?;
    config["chat_template"].as_str().map(str::to_owned).ok_or_else(|| no_template(folder))
}

fn no_template(path: &Path) -> ModelError {
    ModelError::Template { reason: format!("{} has none, so it is no instruction-tuned model", path.display()) }
}

fn required(folder: &Path, name: &str) -> Result<std::path::PathBuf> {
    let path = folder.join(name);
    let missing = || ModelError::NotACheckpoint { path: folder.to_owned(), missing: name.to_owned() };
    path.exists().then_some(path).ok_or_else(missing)
}

fn read_json(folder: &Path, name: &str) -> Result<Value> {
    let path = required(folder, name)?;
    let bytes = std::fs::read(&path).map_err(|source| ModelError::Io { path: path.clone(), source })?;
    serde_json::from_slice(&bytes).map_err(|error| ModelError::Damaged { path, reason: error.to_string() })
}
