//! Adapters as GGUF files: `blk.3.attn_q.weight.lora_a` is A, `.lora_b` is B, and one alpha serves all modules.

use std::collections::BTreeMap;
use std::path::Path;

use super::low_rank::{Adapter, Factor, LowRank, Projection, module_name};
use crate::error::{ModelError, Result};
use crate::gguf::{self, Metadata};
use crate::interleaved::interleaved_row;
use crate::location::Location;
use crate::mapped::MappedFile;
use crate::spec::DecoderSpec;

pub(super) fn open(path: &Path, spec: &DecoderSpec) -> Result<Adapter> {
    let file = MappedFile::open(path)?;
    let (metadata, tensors) = gguf::read(&file, 0)?;
    let damaged = |reason: String| ModelError::Damaged { path: path.to_owned(), reason };
    if metadata.text("general.type").ok() != Some("adapter") {
        let missing = "`general.type` = adapter".into();
        return Err(ModelError::NotAnAdapter { path: path.to_owned(), missing });
    }
    match metadata.text("adapter.type")? {
        "lora" => {}
        other => return Err(ModelError::AdapterUnsupported { what: format!("`adapter.type` = {other}") }),
    }
    refuse_unused_keys(&metadata)?;
    let architecture = metadata.text("general.architecture")?;
    if architecture != gguf_architecture(spec) {
        let reason = format!("it is made for the architecture {architecture}, the model's is {}", spec.architecture);
        return Err(ModelError::AdapterMisfit { reason });
    }
    let alpha = metadata.float("adapter.lora.alpha")?;
    let mut found: BTreeMap<(usize, Projection), [Option<Factor>; 2]> = BTreeMap::new();
    for (name, at) in &tensors {
        let place = place(name).ok_or_else(|| ModelError::AdapterUnsupported { what: format!("tensor `{name}`") })?;
        let &[rows, cols] = &at.shape[..] else { return Err(damaged(format!("`{name}` is no matrix"))) };
        let (layer, projection, second) = place;
        let values = floats(&file, at, cols);
        found.entry((layer, projection)).or_default()[usize::from(second)] = Some(Factor { rows, cols, values });
    }
    let mut modules = BTreeMap::new();
    for ((layer, projection), factors) in found {
        let module = module_name(layer, projection);
        let [Some(a), Some(mut b)] = factors else {
            return Err(damaged(format!("`{module}` lacks one of its matrices")));
        };
        let rank = a.rows;
        if b.cols != rank || rank == 0 {
            return Err(damaged(format!("`{module}` is of rank {rank} and {}", b.cols)));
        }
        // Llama's query and key rows are ordered for neighbouring pairs in these files.
        if architecture == "llama" && matches!(projection, Projection::Query | Projection::Key) {
            if !b.rows.is_multiple_of(spec.heads.dim) {
                let reason = format!("`{module}` has {} rows, heads have {}", b.rows, spec.heads.dim);
                return Err(ModelError::AdapterMisfit { reason });
            }
            let row = |row: usize| b.values[interleaved_row(row, spec.heads.dim) * rank..][..rank].to_vec();
            b.values = (0..b.rows).flat_map(row).collect();
        }
        // As llama.cpp: without an alpha the change is not scaled.
        let scale = if alpha == 0.0 { 1.0 } else { alpha / rank as f32 };
        modules.insert((layer, projection), LowRank { rank, scale, a: a.values, b: b.values });
    }
    if modules.is_empty() {
        return Err(damaged("it holds no module".into()));
    }
    Ok(Adapter { modules })
}

/// Refuses keys of adapters that have no effect here: an activated LoRA changes only the tokens after its invocation.
fn refuse_unused_keys(metadata: &Metadata) -> Result<()> {
    // The last two describe the adapter.
    const KNOWN: [&str; 4] = ["type", "lora.alpha", "lora.task_name", "lora.prompt_prefix"];
    let is_unused = |key: &&str| key.strip_prefix("adapter.").is_some_and(|name| !KNOWN.contains(&name));
    match metadata.keys().filter(is_unused).min() {
        Some(key) => Err(ModelError::AdapterUnsupported { what: format!("`{key}`") }),
        None => Ok(()),
    }
}

/// What llama.cpp's converter calls the architecture of a model: it writes `llama` for Mistral.
fn gguf_architecture(spec: &DecoderSpec) -> &str {
    if spec.architecture == "mistral" { "llama" } else { &spec.architecture }
}

/// `general.license` of a file.
pub(super) fn licence(path: &Path) -> Option<String> {
    let file = MappedFile::open(path).ok()?;
    let (metadata, _) = gguf::read(&file, 0).ok()?;
    metadata.text("general.license").ok().map(str::to_owned)
}

/// Layer, projection, and whether it is the second matrix (B).
fn place(tensor: &str) -> Option<(usize, Projection, bool)> {
    let (layer, rest) = tensor.strip_prefix("blk.")?.split_once('.')?;
    let (part, factor) = rest.split_once(".weight.")?;
    let projection = match part {
        "attn_q" => Projection::Query,
        "attn_k" => Projection::Key,
        "attn_v" => Projection::Value,
        "attn_output" => Projection::Output,
        "ffn_gate" => Projection::Gate,
        "ffn_up" => Projection::Up,
        "ffn_down" => Projection::Down,
        _ => return None,
    };
    let second = match factor {
        "lora_a" => false,
        "lora_b" => true,
        _ => return None,
    };
    Some((layer.parse().ok()?, projection, second))
}

fn floats(file: &MappedFile, at: &Location, cols: usize) -> Vec<f32> {
    let bytes = &file[at.bytes.clone()];
    let Some(row_bytes) = at.format.row_bytes(cols).filter(|bytes| *bytes > 0) else { return Vec::new() };
    let mut values = vec![0f32; bytes.len() / row_bytes * cols];
    for (row, values) in bytes.chunks_exact(row_bytes).zip(values.chunks_exact_mut(cols)) {
        at.format.dequantise(row, values);
    }
    values
}
