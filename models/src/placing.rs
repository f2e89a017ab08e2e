//! Weight matrices onto the device on which they are multiplied.

use candle_core::Device;
use kernels::weight::Weight;

use crate::error::{ModelError, Result};
use crate::weights::Weights;
#[cfg(feature = "cuda")]
use {
    crate::weights::Precision,
    kernels::cuda::{DeviceMatrix, Kept},
};

impl Weights {
    /// A weight matrix `[rows, cols]` on a device.
    ///
    /// # Errors
    /// If it is missing or has another shape, or the device has no room.
    pub fn weight(&self, name: &str, rows: usize, cols: usize, device: &Device) -> Result<Weight> {
        self.weight_reordered(name, rows, cols, |row| row, device)
    }

    /// A weight matrix whose row `n` is row `source(n)` of the checkpoint.
    ///
    /// # Errors
    /// As [`Weights::weight`].
    pub fn weight_reordered(
        &self,
        name: &str,
        rows: usize,
        cols: usize,
        source: impl Fn(usize) -> usize + Sync,
        device: &Device,
    ) -> Result<Weight> {
        #[cfg(feature = "cuda")]
        if device.is_cuda() {
            return self.on_device(name, rows, cols, source, device);
        }
        on_processor(device)?;
        Ok(Weight::Packed(self.matrix_reordered(name, rows, cols, source)?))
    }

    /// A weight matrix whose rows are also looked up. On a GPU it is dense, whatever it is in the file.
    ///
    /// # Errors
    /// As [`Weights::weight`].
    pub fn table(&self, name: &str, rows: usize, cols: usize, device: &Device) -> Result<Weight> {
        #[cfg(feature = "cuda")]
        if device.is_cuda() {
            let (format, bytes) = self.tensor(name, &[rows, cols])?;
            let kept = if self.precision == Precision::F32 { Kept::F32 } else { Kept::Bf16 };
            return Ok(Weight::Device(DeviceMatrix::load(format, (rows, cols), bytes, |row| row, kept, device)?));
        }
        on_processor(device)?;
        Ok(Weight::Packed(self.matrix(name, rows, cols)?))
    }

    #[cfg(feature = "cuda")]
    fn on_device(
        &self,
        name: &str,
        rows: usize,
        cols: usize,
        source: impl Fn(usize) -> usize,
        device: &Device,
    ) -> Result<Weight> {
        let (stored, bytes) = self.tensor(name, &[rows, cols])?;
        let format = match self.precision {
            Precision::Quantised(quantisation) => quantisation.of(stored, cols),
            Precision::Stored | Precision::F32 => stored,
        };
        let smaller = (format != stored).then(|| crate::weights::quantised(stored, bytes, format, cols)).transpose()?;
        let bytes = smaller.as_deref().unwrap_or(bytes);
        let kept = if self.precision == Precision::F32 { Kept::F32 } else { Kept::Stored };
        Ok(Weight::Device(DeviceMatrix::load(format, (rows, cols), bytes, source, kept, device)?))
    }
}

/// Packed weights are multiplied by the processor only.
fn on_processor(device: &Device) -> Result<()> {
    match device {
        Device::Cpu => Ok(()),
        other => Err(ModelError::Unsupported { what: format!("a network on {:?}", other.location()) }),
    }
}
