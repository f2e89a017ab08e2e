//! The base model of a run, loaded for training on the processor.

use std::path::Path;

use candle_core::Device;
use models::adapter::{Adapter, LowRank};
use models::{Checkpoint, LoadOptions};
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
    /// Loads a GGUF file or a folder with safetensors. Without `arithmetic`, products with frozen weights are in bf16 on
    /// processors with a unit for it, otherwise in f32. From then on this process keeps what it frees
    /// ([`kernels::memory::keep_everything`]).
    ///
    /// # Errors
    /// If the model cannot be read, or the environment names kernels that this processor does not have.
    pub fn load(model: &Path, longest: usize, arithmetic: Option<Arithmetic>) -> Result<Base> {
        kernels::cpu::select_isa().map_err(|reason| TrainError::Settings(format!("MEMLOCAL_CPU: {reason}")))?;
        kernels::memory::keep_everything();
        let half = kernels::cpu::active_isa().multiplies_bf16();
        let arithmetic = arithmetic.unwrap_or(if half { Arithmetic::Half } else { Arithmetic::Fused });
        let checkpoint = Checkpoint::open(model, LoadOptions::default())?;
        let network = Network::load(&checkpoint.spec, &checkpoint.weights, longest, &Device::Cpu)?;
        Ok(Base { network: network.with_arithmetic(arithmetic)?, checkpoint, longest })
    }

    /// Converts text to this model's tokens.
    pub fn reader(&self) -> Reader<'_> {
        let Checkpoint { tokenizer, template, eos, .. } = &self.checkpoint;
        Reader { tokenizer, template, eos, longest: self.longest }
    }

    /// An adapter to start from, whose rank and scale must be those of the run.
    ///
    /// # Errors
    /// If it cannot be read, does not fit this model, or has another rank or scale.
    pub fn start_from(&self, path: &Path, rank: usize, alpha: f32) -> Result<Adapter> {
        let adapter = Adapter::open_for(path, &self.checkpoint.spec)?;
        let scale = alpha / rank as f32;
        let fits = |module: &LowRank| module.rank == rank && (module.scale - scale).abs() < 1e-6;
        if !adapter.modules.values().all(fits) {
            let reason = format!("{} has another rank or scale than --rank and --alpha", path.display());
            return Err(TrainError::Settings(reason));
        }
        Ok(adapter)
    }
}
