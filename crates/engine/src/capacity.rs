//! KV cache capacity and batch sizes for a device, once the models are loaded.
//!
//! On the CPU the KV cache has the size that the caller asks for. On a GPU it takes all memory that is free beside the
//! weights, less what the largest step takes, unless the caller asks for a size.

use candle_core::{Device, Error as DeviceError};
use models::{Footprint, KvPrecision};

use crate::config::Config;

/// GPU memory beside weights, KV cache, activations and logits: a pass of the embedding model, slices of expanded weights, cuBLAS,
/// logits of known tokens, and what the driver rounds up. An estimate: models have run with 3 GiB free beside them
/// (`docs/gpu.md`).
pub const GPU_OVERHEAD: u64 = 1 << 30;

/// The minimum useful KV cache on a GPU, in tokens.
pub const MIN_KV_TOKENS: u64 = 2048;

/// Why a device cannot hold a KV cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The free memory of the GPU is too small.
    #[error(
        "there is no room on the GPU for keys and values of {tokens} tokens: {:.2} GiB are free beside the models, of which \
         {:.2} GiB are kept for computing, and a token takes {:.1} KiB",
        gib(*.free_bytes), gib(*.step_bytes), *.bytes_per_token as f64 / 1024.0
    )]
    OutOfMemory {
        /// The requested size, or [`MIN_KV_TOKENS`].
        tokens: u64,
        /// Free memory of the GPU.
        free_bytes: u64,
        /// What of it a step takes.
        step_bytes: u64,
        /// Keys and values of one token, over all models.
        bytes_per_token: u64,
    },
    /// The device did not report its free memory.
    #[error("the free memory of the GPU is unknown")]
    Device(#[source] DeviceError),
}

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

impl Config {
    /// Sizes on a GPU, which computes many rows as fast as few. One sequence and all draft tokens are 16 rows, which products
    /// with quantised weights compute in the time of 9.
    pub fn on_gpu() -> Config {
        let default = Config::default();
        Config { step_tokens: 2048, max_draft_tokens: 15, embedding_tokens: 8192, max_running: 64, ..default }
    }

    /// Sizes on a device.
    pub fn on(device: &Device) -> Config {
        if device.is_cuda() { Config::on_gpu() } else { Config::default() }
    }

    /// Bytes of activations and logits of the largest step of a model.
    pub fn workspace_bytes(&self, model: &Footprint) -> u64 {
        let logits = (self.max_running + self.max_draft_tokens) * model.shape.vocab * size_of::<f32>();
        self.step_tokens as u64 * model.shape.row_bytes() + logits as u64
    }

    /// Sizes for a device on which these models are loaded. `requested` is the KV cache size in tokens that the user asks
    /// for, `default_tokens` the size on a CPU, and `kv` how keys and values are kept.
    ///
    /// # Errors
    /// If the KV cache does not fit on the GPU.
    #[cfg_attr(not(feature = "cuda"), expect(unused_variables))]
    pub fn for_device<'a>(
        device: &Device,
        models: impl IntoIterator<Item = &'a Footprint>,
        requested: Option<usize>,
        default_tokens: usize,
        kv: KvPrecision,
    ) -> Result<Config, CapacityError> {
        #[cfg(feature = "cuda")]
        if device.is_cuda() {
            let free = kernels::cuda::device::device_info(device).map_err(CapacityError::Device)?.free as u64;
            let models: Vec<&Footprint> = models.into_iter().collect();
            let bytes_per_token = bytes_per_token(models.iter().map(|model| model.kv_bytes_per_token), kv);
            let kv_tokens = gpu_kv_tokens(free, gpu_step_bytes(models), bytes_per_token, requested)?;
            return Ok(Config { kv_tokens, kv_precision: kv, ..Config::on_gpu() });
        }
        Ok(Config { kv_tokens: requested.unwrap_or(default_tokens), kv_precision: kv, ..Config::default() })
    }
}

/// GPU memory that the steps of these models take, which run one after the other.
pub fn gpu_step_bytes<'a>(models: impl IntoIterator<Item = &'a Footprint>) -> u64 {
    let largest = models.into_iter().map(|model| Config::on_gpu().workspace_bytes(model)).max();
    GPU_OVERHEAD + largest.unwrap_or(0)
}

/// The bytes of one token's keys and values in `kv`, given the bytes that each model needs for them in half precision.
#[cfg(any(feature = "cuda", test))]
fn bytes_per_token(halves_per_token: impl Iterator<Item = u64>, kv: KvPrecision) -> u64 {
    halves_per_token.map(|halves| kv.bytes(halves)).sum()
}

/// The KV cache size on a GPU, in tokens.
#[cfg(any(feature = "cuda", test))]
fn gpu_kv_tokens(
    free_bytes: u64,
    step_bytes: u64,
    bytes_per_token: u64,
    requested: Option<usize>,
) -> Result<usize, CapacityError> {
    let room = free_bytes.saturating_sub(step_bytes) / bytes_per_token.max(1);
    let tokens = requested.map_or(MIN_KV_TOKENS, |tokens| tokens as u64);
    if bytes_per_token > 0 && room < tokens {
        return Err(CapacityError::OutOfMemory { tokens, free_bytes, step_bytes, bytes_per_token });
    }
    Ok(requested.unwrap_or(usize::try_from(room).unwrap_or(usize::MAX)))
}

#[cfg(test)]
mod tests {
    use models::manifest::built_in;

    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_kv_cache_takes_what_is_free_but_for_the_largest_step() {
        assert_eq!(gpu_kv_tokens(11 * GIB, 3 * GIB, 1 << 20, None).unwrap(), 8192);
        assert_eq!(gpu_kv_tokens(11 * GIB, 3 * GIB, 1 << 20, Some(4096)).unwrap(), 4096, "unless a size is requested");
    }

    #[test]
    fn the_models_of_an_engine_share_the_memory_of_their_steps() {
        let footprint = |name: &str| {
            let manifest = built_in().iter().find(|manifest| manifest.name == name).unwrap();
            Footprint::of_manifest(manifest.choose("q4_k_m").unwrap()).unwrap()
        };
        let [small, large] = ["qwen2.5-0.5b-instruct", "qwen2.5-32b-instruct"].map(footprint);
        // 2,048 rows of twice the residual stream, gate, up and product; logits of 64 sequences and 15 draft tokens.
        let of_large = 2048 * 4 * (2 * 5120 + 3 * 27_648) + 79 * 4 * 152_064;
        assert_eq!(gpu_step_bytes([&small, &large]), GPU_OVERHEAD + of_large);
        assert!(gpu_step_bytes([&small]) < gpu_step_bytes([&large]));
    }

    #[test]
    fn a_gpu_computes_more_draft_tokens_in_a_step_and_more_tokens_in_an_embedding_pass() {
        let (cpu, gpu) = (Config::on(&Device::Cpu), Config::on_gpu());
        assert_eq!((cpu.max_draft_tokens, cpu.embedding_tokens), (8, 1024));
        assert_eq!((gpu.max_draft_tokens, gpu.embedding_tokens), (15, 8192));
        assert!((1 + gpu.max_draft_tokens).is_power_of_two(), "as many rows as a kernel of `quantised_product` has");
    }

    #[test]
    fn a_kv_cache_that_does_not_fit_is_refused_with_the_numbers() {
        let error = gpu_kv_tokens(11 * GIB, 3 * GIB, 1 << 20, Some(8193)).unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no room on the GPU for keys and values of 8193 tokens: 11.00 GiB are free beside the models, of \
             which 3.00 GiB are kept for computing, and a token takes 1024.0 KiB"
        );
        assert!(gpu_kv_tokens(4 * GIB, 3 * GIB, 1 << 20, None).is_err(), "fewer tokens than are of use");
    }

    #[test]
    fn a_kv_cache_in_f32_has_half_the_tokens_of_one_in_f16_and_one_in_8_bits_about_twice() {
        let per_token = |kv| bytes_per_token([1 << 19, 1 << 19].into_iter(), kv);
        let tokens = |kv| gpu_kv_tokens(11 * GIB, 3 * GIB, per_token(kv), None).unwrap();
        assert_eq!(tokens(KvPrecision::F16), 8192);
        assert_eq!(tokens(KvPrecision::Bf16), 8192);
        assert_eq!(tokens(KvPrecision::F32), 4096);
        assert_eq!(tokens(KvPrecision::Q8_0), 8192 * 64 / 34);
    }

    #[test]
    fn on_the_cpu_the_size_that_is_asked_for_goes_before_the_default() {
        let config = |requested| Config::for_device(&Device::Cpu, [], requested, 7, KvPrecision::F32).unwrap();
        assert_eq!((config(None).kv_tokens, config(Some(9)).kv_tokens), (7, 9));
        assert_eq!(config(None).kv_precision, KvPrecision::F32);
    }
}
