//! Provenance of results: the command line, and digests of the models.

use std::fmt::Display;
use std::path::PathBuf;

use anyhow::Result;
use eval::{FileDigest, ModelDigest};
use launch::fetching::{adapter_path, fetched};
use launch::flags::{AdapterFlag, GlobalFlags};
use launch::typed_model::quantised_name;

/// The digests of a model's files, and its name with its quantisation.
pub fn digest(typed: &str, quantise: Option<impl Display>, global: &GlobalFlags) -> Result<ModelDigest> {
    let files =
        fetched(typed, global)?.files.iter().map(|file| FileDigest::of(&file.path)).collect::<eval::Result<_>>()?;
    Ok(ModelDigest { name: quantised_name(typed, quantise), files })
}

/// The digests of an adapter's files.
pub fn adapter_digest(adapter: &AdapterFlag, global: &GlobalFlags) -> Option<Result<ModelDigest>> {
    let AdapterFlag::At { name, path } = adapter else { return None };
    let digest = |path: PathBuf| -> Result<ModelDigest> {
        let files = if path.is_dir() {
            ["adapter_config.json", "adapter_model.safetensors"].map(|file| path.join(file)).to_vec()
        } else {
            vec![path]
        };
        let files = files.iter().map(|file| FileDigest::of(file)).collect::<eval::Result<_>>()?;
        Ok(ModelDigest { name: format!("adapter {name}"), files })
    };
    Some(adapter_path(path, global).and_then(digest))
}

/// The command line.
pub fn command_line() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("memlocal-bench".to_owned()).chain(words).collect()
}
