//! Where a model came from and how it was loaded: what its numbers depend on.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{ModelError, Result};
use crate::mapped::MappedFile;
use crate::spec::{DecoderSpec, Scaling, Yarn};
use crate::weights::Precision;

/// How a language model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LoadOptions {
    pub precision: Precision,
    /// Reach so many times the checkpoint's context by YaRN (arXiv 2309.00071). It changes short texts too, a little.
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
        spec.rope.scaling = Scaling::Yarn(Yarn::new(factor, spec.context));
        #[allow(clippy::cast_sign_loss, reason = "the factor is more than 1")]
        let context = (spec.context as f64 * f64::from(factor)).round() as usize;
        spec.context = context;
        Ok(spec)
    }
}

/// The files of a checkpoint and how they were loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub path: PathBuf,
    pub options: LoadOptions,
    /// Sizes and times of the files when they were loaded.
    stamps: Vec<(PathBuf, u64, SystemTime)>,
}

impl Source {
    /// Of what is about to be loaded.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub(crate) fn new(path: &Path, options: LoadOptions) -> Result<Source> {
        Ok(Source { path: path.to_owned(), options, stamps: stamps(path)? })
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
        for path in files(&self.path)? {
            let file = MappedFile::open(&path)?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
            hasher.update(&(file.len() as u64).to_le_bytes()).update(&file);
        }
        Ok(*hasher.finalize().as_bytes())
    }
}

fn stamps(path: &Path) -> Result<Vec<(PathBuf, u64, SystemTime)>> {
    let stamp = |file: PathBuf| {
        let metadata = file.metadata().and_then(|metadata| Ok((metadata.len(), metadata.modified()?)));
        match metadata {
            Ok((bytes, modified)) => Ok((file, bytes, modified)),
            Err(source) => Err(ModelError::Io { path: file, source }),
        }
    };
    files(path)?.into_iter().map(stamp).collect()
}

/// The files that a checkpoint is loaded from, in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(crate::weights::shard_paths(path));
    }
    let io = |source| ModelError::Io { path: path.to_owned(), source };
    let loaded = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| ["json", "jinja", "safetensors", "bin", "pt"].iter().any(|e| extension == *e))
    };
    let entries = std::fs::read_dir(path).map_err(io)?;
    let paths = entries.map(|entry| Ok(entry.map_err(io)?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let mut files: Vec<PathBuf> = paths.into_iter().filter(|path| path.is_file() && loaded(path)).collect();
    files.sort();
    Ok(files)
}
