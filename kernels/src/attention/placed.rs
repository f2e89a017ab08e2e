//! Batch metadata that the kernels of all layers share.

use std::ops::Range;

use super::PagedSequence;
#[cfg(feature = "candle")]
use crate::rope::Placement;

/// The rows of a decoder's batch: positions, KV slots, and the pages of their sequences.
#[derive(Debug)]
pub struct Placed<'a> {
    /// `[N]`: position of each row in its sequence.
    pub positions: &'a [u32],
    /// `[N]`: page · 32 + offset at which each row's key and value are stored.
    pub slots: &'a [u32],
    /// Rows of each sequence.
    pub sequences: &'a [PagedSequence<'a>],
    #[cfg(feature = "cuda")]
    plans: crate::cuda::tensors::Plans,
}

impl<'a> Placed<'a> {
    /// Rows and sequences of one batch.
    pub fn new(positions: &'a [u32], slots: &'a [u32], sequences: &'a [PagedSequence<'a>]) -> Placed<'a> {
        Placed {
            positions,
            slots,
            sequences,
            #[cfg(feature = "cuda")]
            plans: crate::cuda::tensors::Plans::default(),
        }
    }

    #[cfg(feature = "candle")]
    pub(crate) fn placement(&self) -> Placement<'a> {
        Placement { positions: self.positions, slots: self.slots }
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn on_device(&self) -> crate::cuda::tensors::Batch<'_> {
        let Placed { positions, slots, sequences, plans } = self;
        crate::cuda::tensors::Batch { positions, slots, sequences, plans }
    }
}

/// The texts of an encoder's batch, as ranges of rows.
#[derive(Debug)]
pub struct Texts {
    ranges: Vec<Range<usize>>,
    #[cfg(feature = "cuda")]
    strips: std::cell::OnceCell<candle_core::Tensor>,
}

impl Texts {
    /// Creates the metadata of contiguous texts.
    pub fn new(ranges: Vec<Range<usize>>) -> Texts {
        Texts {
            ranges,
            #[cfg(feature = "cuda")]
            strips: std::cell::OnceCell::new(),
        }
    }

    /// The rows of each.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn strips(&self, device: &candle_core::Device) -> candle_core::Result<&candle_core::Tensor> {
        if self.strips.get().is_none() {
            let strips = crate::cuda::tensors::strips_on_device(&self.ranges, device)?;
            let _ = self.strips.set(strips);
        }
        self.strips.get().ok_or_else(|| candle_core::Error::Msg("no strips".into()))
    }
}
