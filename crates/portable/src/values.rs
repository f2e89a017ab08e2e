//! The values of tensors in main memory.

use candle_core::{Result, Storage, Tensor, bail};

/// Calls a function with the values of a contiguous `f32` tensor in main memory.
pub(crate) fn with_values<T>(tensor: &Tensor, use_them: impl FnOnce(&[f32]) -> Result<T>) -> Result<T> {
    let (storage, layout) = tensor.storage_and_layout();
    let (Storage::Cpu(storage), Some((from, to))) = (&*storage, layout.contiguous_offsets()) else {
        bail!("a fused operation on a tensor that is strided or not in main memory")
    };
    use_them(&storage.as_slice::<f32>()?[from..to])
}
