//! The base model of a run, loaded for training on the processor.

use std::path::Path;

use candle_core::Device;
use models::adapter::{Adapter, LowRank, Projection};
use models::{Checkpoint, LoadOptions, LocalTime, MappedFile};
use portable::{Arithmetic, Network};

use crate::error::{Result, TrainError};
use crate::examples::Reader;

/// A base model with its tokenizer and chat template.
pub struct Base {
    pub checkpoint: Checkpoint,
    pub network: Network,
    /// The most tokens of a sequence.
    pub longest: usize,
}

impl Base {
    /// Opens a GGUF file or a folder with safetensors; its weights are not loaded yet.
    ///
    /// # Errors
    /// If the model cannot be read.
    pub fn open(model: &Path) -> Result<Checkpoint> {
        Ok(Checkpoint::open(model, LoadOptions::default())?)
    }

    /// Loads the weights of a checkpoint. Without `arithmetic`, products with frozen weights are in bf16 on
    /// processors with a unit for it, otherwise in f32. From then on this process keeps what it frees
    /// ([`kernels::memory::keep_everything`]).
    ///
    /// # Errors
    /// If the model cannot be read, or the environment names kernels that this processor does not have.
    pub fn of(checkpoint: Checkpoint, longest: usize, arithmetic: Option<Arithmetic>) -> Result<Base> {
        kernels::cpu::select_isa().map_err(|reason| TrainError::Settings(format!("MEMLOCAL_CPU: {reason}")))?;
        kernels::memory::keep_everything();
        let half = kernels::cpu::active_isa().multiplies_bf16();
        let arithmetic = arithmetic.unwrap_or(if half { Arithmetic::Half } else { Arithmetic::Fused });
        let network = Network::load(&checkpoint.spec, &checkpoint.weights, longest, &Device::Cpu)?;
        Ok(Base { network: network.with_arithmetic(arithmetic)?, checkpoint, longest })
    }

    /// The same model with a chat template for which it is always this time.
    #[must_use]
    pub fn at(mut self, time: LocalTime) -> Base {
        self.checkpoint.template = self.checkpoint.template.at(time);
        self
    }

    /// The same model with its logits divided by `temperature`.
    ///
    /// # Errors
    /// If the computation fails.
    pub fn at_temperature(self, temperature: f32) -> Result<Base> {
        Ok(Base { network: self.network.with_temperature(temperature)?, ..self })
    }

    /// Converts text to this model's tokens.
    pub fn reader(&self) -> Reader<'_> {
        let Checkpoint { tokenizer, template, eos, .. } = &self.checkpoint;
        Reader { tokenizer, template, eos, longest: self.longest }
    }

    /// An adapter to start from, whose rank and scale must be those of the run; it may lack some of the targets.
    ///
    /// # Errors
    /// If it cannot be read, does not fit this model, has another rank or scale, or changes projections that are no targets.
    pub fn start_from(&self, path: &Path, rank: usize, alpha: f32, targets: &[Projection]) -> Result<Adapter> {
        let adapter = Adapter::open_for(path, &self.checkpoint.spec)?;
        let scale = alpha / rank as f32;
        let fits = |module: &&LowRank| module.rank == rank && (module.scale - scale).abs() < 1e-6;
        if let Some(other) = adapter.modules.values().find(|module| !fits(module)) {
            let (path, its_alpha) = (path.display(), other.scale * other.rank as f32);
            return Err(TrainError::Settings(format!(
                "{path} has rank {} and alpha {its_alpha}, the run rank {rank} and alpha {alpha} (--rank, --alpha)",
                other.rank
            )));
        }
        let others = Projection::ALL.into_iter().filter(|projection| {
            !targets.contains(projection) && adapter.modules.keys().any(|(_, changed)| changed == projection)
        });
        let others: Vec<&str> = others.map(Projection::name).collect();
        if !others.is_empty() {
            return Err(TrainError::Untrained { path: path.to_owned(), projections: others.join(", ") });
        }
        Ok(adapter)
    }
}

/// A digest of the names and the bytes of all files of a base model.
///
/// # Errors
/// If a file cannot be read.
pub fn digest(model: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    for path in models::files_of(model)? {
        let file = MappedFile::open(&path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        hasher.update(&(file.len() as u64).to_le_bytes()).update_rayon(&file);
    }
    Ok(hasher.finalize().to_hex().to_string())
}
