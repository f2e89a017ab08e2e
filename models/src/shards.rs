//! The files that the weights of one checkpoint are in, and the tensors in a safetensors file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use kernels::matmul::Format;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use crate::error::{ModelError, Result};
use crate::files;
use crate::location::Location;
use crate::mapped::MappedFile;

/// Adds the tensors of a safetensors file; those of integers are named in `integers`.
///
/// # Errors
/// [`ModelError::Damaged`] or [`ModelError::Unsupported`].
pub(crate) fn read_safetensors(
    file: &MappedFile,
    index: usize,
    tensors: &mut HashMap<String, Location>,
    integers: &mut Vec<String>,
) -> Result<()> {
    let damaged = |reason: String| ModelError::Damaged { path: file.path().to_owned(), reason };
    let (head_bytes, metadata) = SafeTensors::read_metadata(file).map_err(|error| damaged(error.to_string()))?;
    let data = head_bytes + 8; // an eight-byte length goes before the head
    for (name, info) in metadata.tensors() {
        let format = match info.dtype {
            Dtype::F32 => Format::F32,
            Dtype::F16 => Format::F16,
            Dtype::BF16 => Format::Bf16,
            Dtype::I64 | Dtype::I32 | Dtype::U8 | Dtype::BOOL => {
                integers.push(name);
                continue;
            }
            other => return Err(ModelError::Unsupported { what: format!("tensor type {other:?} of `{name}`") }),
        };
        let (start, end) = info.data_offsets;
        if data + end > file.len() {
            return Err(damaged(format!(
                "it ends after {} bytes, but tensor `{name}` needs {}",
                file.len(),
                data + end
            )));
        }
        let location = Location { file: index, bytes: data + start..data + end, format, shape: info.shape.clone() };
        tensors.insert(name, location);
    }
    Ok(())
}

/// The files of a folder's weights: those of the index, or the only one.
///
/// # Errors
/// [`ModelError::NotACheckpoint`] or [`ModelError::Damaged`].
pub(crate) fn weight_paths(folder: &Path) -> Result<Vec<PathBuf>> {
    let index = folder.join("model.safetensors.index.json");
    if !files::is_file(&index) {
        let whole = ["model.safetensors", "pytorch_model.bin"].map(|name| folder.join(name));
        let missing = || ModelError::NotACheckpoint { path: folder.to_owned(), missing: "model.safetensors".into() };
        return whole.into_iter().find(|path| files::is_file(path)).map(|path| vec![path]).ok_or_else(missing);
    }
    let damaged = |reason: String| ModelError::Damaged { path: index.clone(), reason };
    let index_json: Value =
        serde_json::from_slice(&files::read(&index)?).map_err(|error| damaged(error.to_string()))?;
    let map = index_json.get("weight_map").and_then(Value::as_object);
    let map = map.ok_or_else(|| damaged("`weight_map` is missing".into()))?;
    let mut names: Vec<&str> = map.values().filter_map(Value::as_str).collect();
    names.sort_unstable();
    names.dedup();
    if let Some(name) = names.iter().find(|name| name.contains(['/', '\\'])) {
        return Err(damaged(format!("part `{name}` is outside the folder")));
    }
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// `a-00001-of-00003.gguf` names all three parts; any other name one file.
pub(crate) fn shard_paths(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let count = name.strip_suffix(".gguf").and_then(|stem| {
        let (rest, count) = stem.rsplit_once("-of-")?;
        let stem = rest.strip_suffix("-00001")?;
        Some((stem, count, count.parse::<usize>().ok()?))
    });
    let Some((stem, suffix, count)) = count else { return vec![path.to_owned()] };
    (1..=count).map(|i| path.with_file_name(format!("{stem}-{i:05}-of-{suffix}.gguf"))).collect()
}
