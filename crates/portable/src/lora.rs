//! Trainable low-rank changes of a network's projections (LoRA, arXiv 2106.09685).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use candle_core::{Device, Result, Tensor, Var};
use models::DecoderSpec;
use models::adapter::{Adapter, LowRank, Projection};

/// Shape and scale of an adapter.
#[derive(Debug, Clone, PartialEq)]
pub struct LoraSettings {
    /// r
    pub rank: usize,
    /// The change is scaled by alpha / r.
    pub alpha: f32,
    pub targets: Vec<Projection>,
}

/// The adapter of a whole network.
#[derive(Debug)]
pub struct Lora {
    pub settings: LoraSettings,
    pub layers: Vec<LoraLayer>,
}

/// The adapter of one block; `None` where none of the stacked projections is a target.
#[derive(Debug)]
pub struct LoraLayer {
    pub qkv: Option<LoraPair>,
    pub output: Option<LoraPair>,
    pub gate_up: Option<LoraPair>,
    pub down: Option<LoraPair>,
}

/// The matrices for projections that are stacked on each other.
#[derive(Debug)]
pub struct LoraPair {
    /// `[parts · r, in]`: the A of each part.
    pub a: Var,
    /// `[rows of all parts, r]`: the B of each part.
    pub b: Var,
    pub parts: Arc<[Part]>,
    pub rank: usize,
    pub scale: f32,
}

/// One projection of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub projection: Projection,
    /// Its rows in the stack.
    pub rows: Range<usize>,
    /// Its first row in B.
    pub b_row: usize,
}

const QKV: [Projection; 3] = [Projection::Query, Projection::Key, Projection::Value];
const GATE_UP: [Projection; 2] = [Projection::Gate, Projection::Up];

impl Lora {
    /// A new adapter: A from `uniform` (numbers from -1 to 1) times `1 / √in` as PEFT does (Kaiming with a = √5), B zero.
    ///
    /// # Errors
    /// If the device refuses the variables.
    pub fn new(
        spec: &DecoderSpec,
        settings: LoraSettings,
        device: &Device,
        mut uniform: impl FnMut() -> f32,
    ) -> Result<Lora> {
        let rank = settings.rank;
        Lora::build(spec, settings, device, |_, projection| fresh(spec, projection, rank, &mut uniform))
    }

    /// An adapter with given matrices; modules that it lacks are as in [`Lora::new`], so they have no effect at the start and
    /// can be trained. Modules outside the targets are left out.
    ///
    /// # Errors
    /// If the device refuses the variables.
    pub fn from_adapter(
        spec: &DecoderSpec,
        settings: LoraSettings,
        adapter: &Adapter,
        device: &Device,
        mut uniform: impl FnMut() -> f32,
    ) -> Result<Lora> {
        let rank = settings.rank;
        Lora::build(spec, settings, device, |layer, projection| match adapter.modules.get(&(layer, projection)) {
            Some(module) => (module.a.clone(), module.b.clone()),
            None => fresh(spec, projection, rank, &mut uniform),
        })
    }

    fn build(
        spec: &DecoderSpec,
        settings: LoraSettings,
        device: &Device,
        mut matrices: impl FnMut(usize, Projection) -> (Vec<f32>, Vec<f32>),
    ) -> Result<Lora> {
        let mut layers = Vec::with_capacity(spec.layers);
        for layer in 0..spec.layers {
            let mut pair = |stack: &[Projection]| -> Result<Option<LoraPair>> {
                let (mut parts, mut a, mut b) = (Vec::new(), Vec::new(), Vec::new());
                let mut from = 0;
                for projection in stack {
                    let rows = projection.shape(spec).0;
                    if settings.targets.contains(projection) {
                        let b_row = b.len() / settings.rank;
                        parts.push(Part { projection: *projection, rows: from..from + rows, b_row });
                        let (own_a, own_b) = matrices(layer, *projection);
                        a.extend(own_a);
                        b.extend(own_b);
                    }
                    from += rows;
                }
                if parts.is_empty() {
                    return Ok(None);
                }
                let (rank, cols, b_rows) = (settings.rank, stack[0].shape(spec).1, b.len() / settings.rank);
                Ok(Some(LoraPair {
                    a: Var::from_tensor(&Tensor::from_vec(a, (parts.len() * rank, cols), device)?)?,
                    b: Var::from_tensor(&Tensor::from_vec(b, (b_rows, rank), device)?)?,
                    parts: parts.into(),
                    rank,
                    scale: settings.alpha / rank as f32,
                }))
            };
            layers.push(LoraLayer {
                qkv: pair(&QKV)?,
                output: pair(&[Projection::Output])?,
                gate_up: pair(&GATE_UP)?,
                down: pair(&[Projection::Down])?,
            });
        }
        Ok(Lora { settings, layers })
    }

    /// All variables, layer by layer.
    pub fn variables(&self) -> Vec<&Var> {
        self.layers.iter().flat_map(LoraLayer::variables).collect()
    }

    /// The current values of the adapter.
    ///
    /// # Errors
    /// If a variable cannot be read.
    pub fn adapter(&self) -> Result<Adapter> {
        let mut modules = BTreeMap::new();
        for (layer, pairs) in self.layers.iter().enumerate() {
            for pair in pairs.pairs() {
                for (at, part) in pair.parts.iter().enumerate() {
                    let a = pair.a.narrow(0, at * pair.rank, pair.rank)?.flatten_all()?.to_vec1()?;
                    let b = pair.b.narrow(0, part.b_row, part.rows.len())?.flatten_all()?.to_vec1()?;
                    modules.insert((layer, part.projection), LowRank { rank: pair.rank, scale: pair.scale, a, b });
                }
            }
        }
        Ok(Adapter { modules })
    }
}

/// A and B of a module that changes nothing yet.
fn fresh(
    spec: &DecoderSpec,
    projection: Projection,
    rank: usize,
    uniform: &mut impl FnMut() -> f32,
) -> (Vec<f32>, Vec<f32>) {
    let (rows, cols) = projection.shape(spec);
    let bound = 1.0 / (cols as f32).sqrt();
    ((0..rank * cols).map(|_| uniform() * bound).collect(), vec![0.0; rows * rank])
}

impl LoraLayer {
    fn pairs(&self) -> impl Iterator<Item = &LoraPair> {
        [&self.qkv, &self.output, &self.gate_up, &self.down].into_iter().flatten()
    }

    /// A and B of every stack.
    pub fn variables(&self) -> impl Iterator<Item = &Var> {
        self.pairs().flat_map(|pair| [&pair.a, &pair.b])
    }
}
