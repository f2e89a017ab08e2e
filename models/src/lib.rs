//! A decoder and an encoder network, and the manifests of the checkpoints that they run.
//!
//! A model is a *spec*, not a file: [`DecoderSpec`] and [`EncoderSpec`] say everything in which checkpoints of one network
//! differ. Precision is a property of [`Linear`]; the key/value cache is an argument of the network, never a field.
//! candle-transformers is an oracle for tests, not the runtime.
//!
//! Not here: when what is computed, sampling, threads (`engine`); the arithmetic itself (`kernels`).

pub mod adapter;
mod backend;
mod block_norms;
mod chat;
mod checkpoint;
mod decoder;
mod encoder;
mod encoder_tokenizer;
mod error;
mod experts;
pub mod fetch;
mod fields;
mod files;
mod footprint;
mod gguf;
mod heads;
mod interleaved;
mod inventory;
mod json_file;
mod kv_cache;
mod linear;
mod location;
mod lora;
pub mod manifest;
mod mapped;
mod packed;
mod placing;
mod pytorch;
mod quantise;
mod rotary;
mod sentence;
mod shape;
mod shards;
mod source;
mod spec;
mod special_tokens;
mod split;
mod tensor_file;
mod tokenizer;
mod weights;

pub use backend::{Backend, DecoderNetwork, EncoderNetwork, Kernels};
pub use block_norms::{BlockNorms, PostNorms, last_norm};
pub use chat::{ChatOptions, ChatTemplate, LocalTime};
pub use checkpoint::{Checkpoint, EmbeddingModel, LanguageModel};
pub use decoder::{Batch, Decoder, Output};
pub use encoder::{Encoder, Pass, ranges};
pub use encoder_tokenizer::EncoderTokenizer;
pub use error::{ModelError, Result};
pub use files::replace as replace_file;
pub use footprint::{Footprint, Inspection, WeightBytes};
pub use gguf::Metadata;
pub use heads::{Heads, Representation, lexical_score, max_sim, represent};
pub use interleaved::interleaved_row;
pub use kv_cache::{KvCache, KvPrecision, PAGE_TOKENS};
pub use linear::{Bias, Linear};
pub use lora::AdaptedRows;
pub use manifest::Pooling;
pub use mapped::MappedFile;
pub use packed::packed_beside;
pub use quantise::Quantisation;
pub use rotary::table as rope_table;
pub use shape::Shape;
pub use source::{Labels, LoadOptions, Source, files_of};
pub use spec::{Activation, DecoderSpec, EncoderSpec, Rope, Routing, Scaling, SlidingWindow, Spec, Yarn};
pub use split::{DecoderPart, Part, SplitDecoder};
pub use tensor_file::header as safetensors_header;
pub use tokenizer::Tokenizer;
pub use weights::{ComputedBy, Precision, Weights};

// What a batch is made of, and what is asked of its logits.
pub use kernels::attention::{PagedSequence, Texts};
pub use kernels::cpu::{Numerics, active_isa};
pub use kernels::sample;
