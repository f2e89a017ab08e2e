//! A checkpoint on disk: weights, spec, tokenizer and chat template, from a GGUF file or a Hugging Face folder.

use std::path::{Path, PathBuf};

use candle_core::Device;
use kernels::memory::release_unused;
use serde_json::Value;

use crate::backend::{Backend, DecoderNetwork, EncoderNetwork, Kernels};
use crate::chat::ChatTemplate;
use crate::decoder::Decoder;
use crate::encoder::Encoder;
use crate::encoder_tokenizer::EncoderTokenizer;
use crate::error::{ModelError, Result};
use crate::files;
use crate::gguf::{Metadata, format_name};
use crate::heads::Heads;
use crate::inventory;
use crate::json_file::{read_json, required};
use crate::manifest::Pooling;
use crate::sentence::SentenceConfig;
use crate::source::{Labels, LoadOptions, Source, file_type};
use crate::spec::{DecoderSpec, EncoderSpec, Spec};
use crate::special_tokens::{folder_eos, folder_special_tokens, gguf_eos, gguf_special_tokens, lacks_bos};
use crate::split::{Part, SplitDecoder};
use crate::tokenizer::Tokenizer;
use crate::weights::{ComputedBy, Precision, Weights};

/// A language model, ready to run.
#[derive(Debug)]
pub struct LanguageModel {
    pub network: Box<dyn DecoderNetwork>,
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
        let (spec, weights, description) = open_decoder(path, options)?;
        let tokenizer = description.tokenizer()?;
        let (template, eos) = (description.template()?, description.eos(&tokenizer));
        Ok(Checkpoint { spec, weights, tokenizer, template, eos })
    }
}

/// What a checkpoint has besides weights: a GGUF file's metadata, or a folder with its `config.json`.
pub(crate) enum Description {
    Gguf(PathBuf, Metadata),
    Folder(PathBuf, Value),
}

/// The spec and the weights of a decoder, which fit each other: every tensor of the checkpoint is read.
pub(crate) fn open_decoder(path: &Path, options: LoadOptions) -> Result<(DecoderSpec, Weights, Description)> {
    let (spec, weights, description) = if files::is_dir(path) {
        let config = read_json(path, "config.json")?;
        (Spec::from_config(&config)?, Weights::open_folder(path)?, Description::Folder(path.to_owned(), config))
    } else {
        let (weights, metadata) = Weights::open_gguf(path)?;
        (Spec::from_gguf(&metadata, &weights)?, weights, Description::Gguf(path.to_owned(), metadata))
    };
    let Spec::Decoder(spec) = spec else {
        return Err(ModelError::Unsupported { what: "an encoder as a language model".into() });
    };
    inventory::check_decoder(&spec, &weights)?;
    Ok((options.apply(spec)?, weights.in_precision(options.precision), description))
}

/// The spec and the weights of an encoder, which fit each other: every tensor of the checkpoint is read.
fn open_encoder(folder: &Path, precision: Precision) -> Result<(EncoderSpec, Weights)> {
    if files::is_file(folder) {
        return Err(ModelError::Unsupported { what: "a GGUF file as an embedding model".into() });
    }
    let Spec::Encoder(spec) = Spec::from_config(&read_json(folder, "config.json")?)? else {
        return Err(ModelError::Unsupported { what: "a decoder as an embedding model".into() });
    };
    let weights = Weights::open_folder(folder)?.in_precision(precision);
    inventory::check_encoder(&spec, &weights)?;
    Ok((spec, weights))
}

impl Description {
    fn tokenizer(&self) -> Result<Tokenizer> {
        match self {
            Description::Gguf(_, metadata) => Tokenizer::from_gguf(metadata),
            Description::Folder(folder, _) => Tokenizer::from_file(&required(folder, "tokenizer.json")?),
        }
    }

    fn template(&self) -> Result<ChatTemplate> {
        let template = ChatTemplate::new(&self.template_text()?)?;
        Ok(template.with_tokens(match self {
            Description::Gguf(_, metadata) => gguf_special_tokens(metadata)?,
            Description::Folder(folder, _) => folder_special_tokens(folder)?,
        }))
    }

    fn template_text(&self) -> Result<String> {
        match self {
            Description::Gguf(path, metadata) => {
                let template = metadata.optional_text("tokenizer.chat_template")?.ok_or_else(|| no_template(path))?;
                let bos = if lacks_bos(metadata, template)? { "{{ bos_token }}" } else { "" };
                Ok(format!("{bos}{template}"))
            }
            Description::Folder(folder, _) => chat_template(folder),
        }
    }

    pub(crate) fn labels(&self, weights: &Weights) -> Result<Labels> {
        let (format, stored) = match self {
            Description::Gguf(_, metadata) => {
                ("gguf", metadata.optional_number("general.file_type")?.and_then(file_type))
            }
            Description::Folder(..) => ("safetensors", None),
        };
        Ok(Labels { format, quantisation: running(weights, stored), template: self.template_text()? })
    }

    fn eos(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        match self {
            Description::Gguf(_, metadata) => gguf_eos(metadata, tokenizer),
            Description::Folder(folder, config) => folder_eos(folder, config, tokenizer),
        }
    }
}

/// An embedding model, ready to run.
#[derive(Debug)]
pub struct EmbeddingModel {
    pub network: Box<dyn EncoderNetwork>,
    pub tokenizer: EncoderTokenizer,
    pub pooling: Pooling,
    /// BGE-M3's further heads, if the checkpoint has them.
    pub heads: Option<Heads>,
    /// Tokens that one text may have, special ones included.
    pub window: usize,
    /// Where all of it came from.
    pub source: Source,
}

/// The name of the precision in which weights run; `stored` is the file's own name for it.
fn running(weights: &Weights, stored: Option<&'static str>) -> String {
    match weights.precision {
        Precision::Stored => stored.or(weights.main_format().map(format_name)).unwrap_or_default().to_owned(),
        Precision::F32 => "F32".to_owned(),
        Precision::Quantised(quantisation) => quantisation.to_string().to_uppercase(),
    }
}

impl LanguageModel {
    /// Loads a `.gguf` file, or a folder with `config.json`, safetensors and `tokenizer.json`.
    ///
    /// # Errors
    /// Any [`ModelError`]; a checkpoint without a chat template cannot serve chats.
    pub fn load(path: &Path, device: &Device) -> Result<LanguageModel> {
        Self::load_with(path, LoadOptions::default(), device)
    }

    /// Loads with the weights in another precision than they are stored in, or with a longer context.
    ///
    /// # Errors
    /// As [`LanguageModel::load`]; for options that the checkpoint does not bear.
    pub fn load_with(path: &Path, options: LoadOptions, device: &Device) -> Result<LanguageModel> {
        Self::load_on(path, options, &Kernels { device: device.clone() })
    }

    /// Loads with the network on some backend.
    ///
    /// # Errors
    /// As [`LanguageModel::load_with`].
    pub fn load_on(path: &Path, options: LoadOptions, backend: &dyn Backend) -> Result<LanguageModel> {
        Self::load_by(path, options, |spec, weights| backend.decoder(spec, weights))
    }

    /// Loads with each part of the network on its backend.
    ///
    /// # Errors
    /// As [`LanguageModel::load_with`] and [`SplitDecoder::load`].
    pub fn load_split(path: &Path, options: LoadOptions, parts: &[(&dyn Backend, Part)]) -> Result<LanguageModel> {
        Self::load_by(path, options, |spec, weights| Ok(Box::new(SplitDecoder::load(spec, &weights, parts)?)))
    }

    fn load_by(
        path: &Path,
        options: LoadOptions,
        network: impl FnOnce(&DecoderSpec, Weights) -> Result<Box<dyn DecoderNetwork>> + Send,
    ) -> Result<LanguageModel> {
        let mut source = Source::new(path, options)?;
        let (spec, weights, description) = open_decoder(path, options)?;
        let template = description.template()?;
        source.labels = description.labels(&weights)?;
        // The tokenizer is read beside the weights: both take a good part of the time to the first token.
        let (tokenizer, network) = rayon::join(|| description.tokenizer(), || network(&spec, weights));
        let (tokenizer, network) = (tokenizer?, network?);
        release_unused();
        let eos = description.eos(&tokenizer);
        Ok(LanguageModel { network, tokenizer, template, eos, source })
    }

    /// Packs the weights of a checkpoint into the file that a later start maps if it is beside the checkpoint.
    ///
    /// # Errors
    /// As [`LanguageModel::load`]; if the file cannot be written.
    pub fn pack(path: &Path, into: &Path) -> Result<DecoderSpec> {
        let (spec, weights, _) = open_decoder(path, LoadOptions::default())?;
        let weights = weights.packing_into(into)?;
        Decoder::load(&spec, &weights, spec.context, &Device::Cpu)?;
        weights.write_packed()?;
        Ok(spec)
    }

    /// What this checkpoint is.
    pub fn spec(&self) -> &DecoderSpec {
        self.network.spec()
    }
}

impl EmbeddingModel {
    /// Bytes that the weights of a folder take in the memory of a CPU or a GPU, about, without loading them.
    ///
    /// # Errors
    /// As [`EmbeddingModel::load`].
    pub fn weight_bytes(folder: &Path, precision: Precision, by: ComputedBy, is_gpu: bool) -> Result<u64> {
        if files::is_file(folder) {
            return Err(ModelError::Unsupported { what: "a GGUF file as an embedding model".into() });
        }
        Ok(Weights::open_folder(folder)?.in_precision(precision).loaded_bytes(by.processor(is_gpu)))
    }

    /// Packs the weights of a folder, in a precision, as [`LanguageModel::pack`] does.
    ///
    /// # Errors
    /// As [`EmbeddingModel::load`]; if the file cannot be written.
    pub fn pack(folder: &Path, precision: Precision, into: &Path) -> Result<()> {
        let (spec, weights) = open_encoder(folder, precision)?;
        let weights = weights.packing_into(into)?;
        Encoder::load(&spec, &weights, &Device::Cpu)?;
        weights.write_packed()
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
        Self::load_on(folder, precision, &Kernels { device: device.clone() })
    }

    /// Loads with the network on some backend.
    ///
    /// # Errors
    /// As [`EmbeddingModel::load_with`].
    pub fn load_on(folder: &Path, precision: Precision, backend: &dyn Backend) -> Result<EmbeddingModel> {
        let (spec, weights) = open_encoder(folder, precision)?;
        let mut source = Source::new(folder, LoadOptions { precision, yarn: None })?;
        let quantisation = running(&weights, None);
        source.labels = Labels { format: "safetensors", quantisation, template: String::new() };
        let tokenizer = EncoderTokenizer::from_file(&required(folder, "tokenizer.json")?)?;
        let SentenceConfig { pooling, limit } = SentenceConfig::read(folder, &spec.architecture, &tokenizer)?;
        let window = spec.context().min(limit.unwrap_or(usize::MAX));
        let network = backend.encoder(&spec, weights)?;
        let heads = Heads::load(folder, spec.hidden, network.output_device())?;
        Ok(EmbeddingModel { network, tokenizer, pooling, heads, window, source })
    }
}

fn chat_template(folder: &Path) -> Result<String> {
    let path = folder.join("chat_template.jinja");
    if files::is_file(&path) {
        let damaged = |_| ModelError::Damaged { path: path.clone(), reason: "it is not UTF-8".into() };
        return String::from_utf8(files::read(&path)?).map_err(damaged);
    }
    let config = read_json(folder, "tokenizer_config.json")?;
    config["chat_template"].as_str().map(str::to_owned).ok_or_else(|| no_template(folder))
}

fn no_template(path: &Path) -> ModelError {
    ModelError::Template { reason: format!("{} has none, so it is no instruction-tuned model", path.display()) }
}
