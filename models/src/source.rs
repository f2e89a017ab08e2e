//! Where a model came from and how it was loaded: what its numbers depend on.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{ModelError, Result};
use crate::files;
use crate::mapped::MappedFile;
use crate::sentence::POOLING;
use crate::spec::{DecoderSpec, Scaling, Yarn};
use crate::weights::Precision;

/// How a language model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LoadOptions {
    pub precision: Precision,
    /// Extend the checkpoint's context by this factor with YaRN (arXiv 2309.00071), which changes results on short texts slightly too.
    pub yarn: Option<f32>,
}

impl LoadOptions {
    /// The spec as it is to run.
    ///
    /// # Errors
    /// For a factor that does not extend, or a checkpoint that is extended already.
    pub(crate) fn apply(&self, mut spec: DecoderSpec) -> Result<DecoderSpec> {
        let Some(factor) = self.yarn else { return Ok(spec) };
        if !(factor > 1.0 && factor <= 64.0) {
            return Err(ModelError::config(format!("YaRN by {factor}; it takes more than 1 and at most 64")));
        }
        if spec.rope.scaling != Scaling::None {
            return Err(ModelError::config("YaRN for a checkpoint whose own configuration scales positions already"));
        }
        let yarn = Yarn::new(factor, spec.context);
        spec.context = yarn.context();
        spec.rope.scaling = Scaling::Yarn(yarn);
        Ok(spec)
    }
}

/// What a checkpoint says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// `gguf` or `safetensors`.
    pub format: &'static str,
    /// The precision of most weights as they run, as GGUF files name it: `Q4_K_M`, `BF16`.
    pub quantisation: String,
    /// The source of the chat template; empty for an encoder.
    pub template: String,
}

/// The files of a checkpoint and how they were loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub path: PathBuf,
    pub options: LoadOptions,
    pub labels: Labels,
    /// Sizes and times of the files when they were loaded.
    stamps: Vec<(PathBuf, u64, SystemTime)>,
}

impl Source {
    /// Of what is about to be loaded.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(crate) fn new(path: &Path, options: LoadOptions) -> Result<Source> {
        Ok(Source { path: path.to_owned(), options, labels: Labels::default(), stamps: stamps(path)? })
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.stamps.iter().map(|(_, bytes, _)| bytes).sum()
    }

    /// When the latest of the files was changed.
    pub fn modified(&self) -> Option<SystemTime> {
        self.stamps.iter().map(|(_, _, time)| *time).max()
    }

    /// A digest of everything that was loaded, computed now: gigabytes take a second each.
    ///
    /// # Errors
    /// If a file cannot be read, or has changed since it was loaded.
    pub fn digest(&self) -> Result<[u8; 32]> {
        if stamps(&self.path)? != self.stamps {
            return Err(ModelError::config(format!("{} has changed since it was loaded", self.path.display())));
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{:?}", self.options).as_bytes());
        for path in loaded(&self.path)? {
            let file = MappedFile::open(&path)?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
            hasher.update(&(file.len() as u64).to_le_bytes()).update(&file);
        }
        Ok(*hasher.finalize().as_bytes())
    }
}

/// The name of the precision that is this number in a GGUF file's `general.file_type`.
pub(crate) fn file_type(number: usize) -> Option<&'static str> {
    Some(match number {
        0 => "F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        7 => "Q8_0",
        8 => "Q5_0",
        9 => "Q5_1",
        10 => "Q2_K",
        11 => "Q3_K_S",
        12 => "Q3_K_M",
        13 => "Q3_K_L",
        14 => "Q4_K_S",
        15 => "Q4_K_M",
        16 => "Q5_K_S",
        17 => "Q5_K_M",
        18 => "Q6_K",
        21 => "Q2_K_S",
        25 => "IQ4_NL",
        30 => "IQ4_XS",
        32 => "BF16",
        _ => return None,
    })
}

fn stamps(path: &Path) -> Result<Vec<(PathBuf, u64, SystemTime)>> {
    let stamp = |file: PathBuf| {
        let (bytes, modified) = files::stamp(&file)?;
        Ok((file, bytes, modified))
    };
    loaded(path)?.into_iter().map(stamp).collect()
}

/// All files that loading a checkpoint, or an embedding model's folder, may read.
///
/// # Errors
/// If the folder cannot be read.
pub fn files_of(path: &Path) -> Result<Vec<PathBuf>> {
    let mut files = loaded(path)?;
    files.extend(Some(path.join(POOLING)).filter(|path| files::is_file(path)));
    if files.iter().any(|path| path.extension().is_some_and(|extension| extension == "safetensors")) {
        files.retain(|path| path.file_name().is_none_or(|name| name != "pytorch_model.bin"));
    }
    Ok(files)
}

/// The files that a checkpoint is loaded from, in the order of their names.
fn loaded(path: &Path) -> Result<Vec<PathBuf>> {
    if files::is_file(path) {
        return Ok(crate::shards::shard_paths(path));
    }
    let io = |source| ModelError::Io { path: path.to_owned(), source };
    let mut paths = files::in_folder(path).map_err(io)?;
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| ["json", "jinja", "safetensors", "bin", "pt"].iter().any(|e| extension == *e))
    });
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::file_type;

    #[test]
    fn precisions_are_named_as_in_gguf_files() {
        assert_eq!((file_type(3), file_type(15), file_type(99)), (Some("Q4_1"), Some("Q4_K_M"), None));
    }
}
