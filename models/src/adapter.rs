//! LoRA adapters: PEFT's folders (`adapter_config.json` and `adapter_model.safetensors`) and llama.cpp's GGUF files.
//!
//! A projection `y = x Wᵀ` becomes `y = x Wᵀ + s · (x Aᵀ) Bᵀ` with `A: [r, in]`, `B: [out, r]` and `s = alpha / r`
//! (LoRA, arXiv 2106.09685), or `alpha / √r` with `use_rslora` (arXiv 2312.03732). What these files can hold and this does not
//! compute is refused by name.

mod card;
mod gguf;
mod low_rank;
mod peft;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::files;
use crate::spec::DecoderSpec;
use peft::{CONFIG, WEIGHTS};

pub use low_rank::{Adapter, LowRank, MAX_RANK, Projection};
pub use peft::{Saved, SavedPrecision};

/// The adapters in `models/adapters/`, by the model that they are trained for: configuration and weights.
const READERS: [(&str, &[u8], &[u8]); 1] = [(
    "smollm2-135m-instruct",
    include_bytes!("../adapters/smollm2-135m-instruct/adapter_config.json"),
    include_bytes!("../adapters/smollm2-135m-instruct/adapter_model.safetensors"),
)];

impl Adapter {
    /// Reads an adapter for a base model: PEFT's folder, the safetensors file in it, or a GGUF file as llama.cpp's
    /// `convert_lora_to_gguf.py` writes it.
    ///
    /// # Errors
    /// As [`Adapter::open`] and [`Adapter::check`].
    pub fn open_for(path: &Path, spec: &DecoderSpec) -> Result<Adapter> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let adapter = match (files::is_dir(path), extension) {
            (false, Some("gguf")) => gguf::open(path, spec)?,
            (false, Some("safetensors")) => {
                Adapter::open_peft(path.parent().unwrap_or(Path::new("")), path.to_owned())?
            }
            _ => Adapter::open(path)?,
        };
        adapter.check(spec)?;
        Ok(adapter)
    }

    /// Writes the adapter that a model of `manifests/` comes with to a folder, in PEFT's format; false if it has none.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write_reader_of(name: &str, folder: &Path) -> std::io::Result<bool> {
        let Some((_, config, weights)) = READERS.iter().find(|(known, ..)| *known == name) else { return Ok(false) };
        std::fs::create_dir_all(folder)?;
        files::replace(&folder.join(WEIGHTS), |file| file.write_all(weights))?;
        files::replace(&folder.join(CONFIG), |file| file.write_all(config))?;
        Ok(true)
    }

    /// The files that [`Adapter::open_for`] reads.
    pub fn files(path: &Path) -> Vec<PathBuf> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match (files::is_dir(path), extension) {
            (false, Some("safetensors")) => vec![path.with_file_name(CONFIG), path.to_owned()],
            (true, _) => [CONFIG, WEIGHTS].map(|name| path.join(name)).into(),
            (false, _) => vec![path.to_owned()],
        }
    }

    /// The licence that an adapter states: in the card of PEFT's folder (`README.md`), or in the GGUF file's metadata. `path` is
    /// as for [`Adapter::open_for`].
    pub fn licence(path: &Path) -> Option<String> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        match (files::is_dir(path), extension) {
            (false, Some("gguf")) => gguf::licence(path),
            (false, Some("safetensors")) => card::licence(path.parent().unwrap_or(Path::new(""))),
            _ => card::licence(path),
        }
    }

    /// The adapter that a model of `manifests/` comes with, which answers short questions from passages; `name` is the name
    /// of the manifest.
    ///
    /// # Errors
    /// If it does not fit the model, which is then not that of the manifest.
    pub fn reader_of(name: &str, spec: &DecoderSpec) -> Result<Option<Adapter>> {
        let Some((name, config, weights)) = READERS.iter().find(|(known, ..)| *known == name) else { return Ok(None) };
        let path = |file: &str| Path::new(name).join(file);
        let adapter = Adapter::from_peft(&path(CONFIG), config, &path(WEIGHTS), weights)?;
        adapter.check(spec)?;
        Ok(Some(adapter))
    }
}
