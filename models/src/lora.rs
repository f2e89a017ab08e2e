//! An adapter on the device of a decoder: its changes, stacked as the decoder stacks its projections.

use std::ops::Range;

use candle_core::Device;
use kernels::low_rank::Change;
use kernels::matmul::LowRankPart;

use crate::adapter::{Adapter, Projection};
use crate::error::Result;
use crate::spec::DecoderSpec;

/// An adapter, ready to run with the decoder that loaded it.
#[derive(Debug)]
pub(crate) struct LoadedAdapter {
    first_layer: usize,
    layers: Vec<LayerChanges>,
}

/// The changes of one block, for each of its stacks of projections.
#[derive(Debug)]
struct LayerChanges {
    qkv: Option<Change>,
    output: Option<Change>,
    gate_up: Option<Change>,
    down: Option<Change>,
}

/// Rows of a batch that run with an adapter.
#[derive(Debug, Clone)]
pub struct AdaptedRows {
    /// The number that loading it gave.
    pub adapter: usize,
    /// Their numbers in the batch; no row has two adapters.
    pub rows: Vec<u32>,
}

/// Projections that a decoder computes in one product.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stack {
    Qkv,
    Output,
    GateUp,
    Down,
}

impl Stack {
    fn projections(self) -> &'static [Projection] {
        match self {
            Stack::Qkv => &[Projection::Query, Projection::Key, Projection::Value],
            Stack::Output => &[Projection::Output],
            Stack::GateUp => &[Projection::Gate, Projection::Up],
            Stack::Down => &[Projection::Down],
        }
    }
}

impl LoadedAdapter {
    /// Loads an adapter for layers of a network on a device.
    ///
    /// # Errors
    /// As [`Adapter::check`]; if the device is out of memory.
    pub fn load(adapter: &Adapter, spec: &DecoderSpec, layers: Range<usize>, device: &Device) -> Result<LoadedAdapter> {
        adapter.check(spec)?;
        let change = |layer: usize, stack: Stack| change(adapter, layer, stack, spec, device);
        let first_layer = layers.start;
        let layers = layers.map(|layer| {
            Ok(LayerChanges {
                qkv: change(layer, Stack::Qkv)?,
                output: change(layer, Stack::Output)?,
                gate_up: change(layer, Stack::GateUp)?,
                down: change(layer, Stack::Down)?,
            })
        });
        Ok(LoadedAdapter { first_layer, layers: layers.collect::<Result<_>>()? })
    }

    /// Bytes of its matrices.
    pub fn bytes(&self) -> usize {
        let all = |layer: &LayerChanges| {
            let stacks = [&layer.qkv, &layer.output, &layer.gate_up, &layer.down];
            stacks.into_iter().flatten().map(Change::bytes).sum::<usize>()
        };
        self.layers.iter().map(all).sum()
    }

    fn change(&self, layer: usize, stack: Stack) -> Option<&Change> {
        let layer = self.layers.get(layer - self.first_layer)?;
        match stack {
            Stack::Qkv => layer.qkv.as_ref(),
            Stack::Output => layer.output.as_ref(),
            Stack::GateUp => layer.gate_up.as_ref(),
            Stack::Down => layer.down.as_ref(),
        }
    }
}

/// The changes of a stack of a block, with the rows that each is for.
pub(crate) fn changes<'a>(
    adapters: &'a [LoadedAdapter],
    adapted: &'a [AdaptedRows],
    layer: usize,
    stack: Stack,
) -> Vec<(&'a Change, &'a [u32])> {
    let change = |adapted: &'a AdaptedRows| Some((adapters[adapted.adapter].change(layer, stack)?, &adapted.rows[..]));
    adapted.iter().filter_map(change).collect()
}

fn change(
    adapter: &Adapter,
    layer: usize,
    stack: Stack,
    spec: &DecoderSpec,
    device: &Device,
) -> Result<Option<Change>> {
    let (mut parts, mut width, mut cols) = (Vec::new(), 0, 0);
    for projection in stack.projections() {
        let (rows, inputs) = projection.shape(spec);
        if let Some(module) = adapter.modules.get(&(layer, *projection)) {
            let (rank, scale) = (module.rank, module.scale);
            parts.push(LowRankPart { first: width, rank, scale, a: &module.a, b: &module.b });
        }
        (width, cols) = (width + rows, inputs);
    }
    if parts.is_empty() {
        return Ok(None);
    }
    Ok(Some(Change::load(cols, width, &parts, device)?))
}
