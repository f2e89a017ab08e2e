//! Views of candle's storage.

use crate::attention::Pages;
use candle_core::{CpuStorage, DType, Layout, Result, Storage, bail};

/// The CPU works in `f32` throughout.
pub(super) fn stays(to: DType) -> Result<()> {
    if to == DType::F32 { Ok(()) } else { bail!("on this device kernels give f32, not {to:?}") }
}

pub(super) fn floats<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&values[start..end]),
        _ => bail!("kernels take contiguous f32 tensors"),
    }
}

pub(super) fn on_host<'a>(storage: &'a Storage, layout: &Layout) -> Result<&'a [f32]> {
    match storage {
        Storage::Cpu(storage) => floats(storage, layout),
        _ => bail!("no implementation for this device"),
    }
}

pub(super) fn pages<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<Pages<'a>> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F16(values), Some((start, end))) => Ok(Pages::F16(&values[start..end])),
        (CpuStorage::F32(values), Some((start, end))) => Ok(Pages::F32(&values[start..end])),
        (CpuStorage::BF16(values), Some((start, end))) => Ok(Pages::Bf16(&values[start..end])),
        (CpuStorage::U8(bytes), Some((start, end))) => Ok(Pages::Q8(&bytes[start..end])),
        _ => bail!("pages are contiguous tensors of f16, bf16, f32 or bytes"),
    }
}
