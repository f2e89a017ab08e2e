//! The memory pool (section 2.3): the evidence of each retrieval, and the cue written from it.

use std::collections::HashSet;

use super::knowledge::Knowledge;
use super::pack::{Packed, Piece};
use super::vectors::{dot, vectors_of};
use crate::core::error::Result;
use crate::core::session::Session;

/// The evidence of one probe from one layer.
#[derive(Debug, Clone)]
pub(super) struct Evidence {
    pub probe: String,
    pub layer: Knowledge,
    pub found: Packed,
}

/// A memory unit: probe, evidence, cue.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub evidence: Evidence,
    /// Empty if the evidence did not help, or the reply about it was invalid.
    pub cue: String,
}

impl Unit {
    /// The cue in the form that a prompt shows.
    pub fn piece(&self, id: usize) -> Option<Piece> {
        let id = i64::try_from(id).unwrap_or(i64::MAX);
        let mut sources: Vec<_> =
            self.evidence.found.pieces.iter().flat_map(|piece| piece.sources.iter().copied()).collect();
        sources.sort_unstable();
        sources.dedup();
        (!self.cue.is_empty()).then(|| Piece { id, place: (id, 0), text: self.cue.clone(), sources })
    }
}

/// All units so far.
#[derive(Debug, Default)]
pub(super) struct Pool {
    units: Vec<(Unit, Vec<f32>)>,
    held: HashSet<(Knowledge, i64)>,
}

/// The part of the pool that is fused (appendix B.4: mem-fuse threshold).
const FUSED_SHARE: usize = 2;

impl Pool {
    /// Mem-update (equation 4): adds units with their vectors.
    pub async fn update(&mut self, units: Vec<Unit>, session: &Session<'_>) -> Result<()> {
        let texts = units.iter().map(|unit| format!("{} {}", unit.evidence.probe, unit.cue));
        let vectors = vectors_of(texts, session).await?;
        for unit in units.iter().filter(|unit| !unit.cue.is_empty()) {
            let layer = unit.evidence.layer;
            self.held.extend(unit.evidence.found.pieces.iter().map(|piece| (layer, piece.id)));
        }
        self.units.extend(units.into_iter().zip(vectors));
        Ok(())
    }

    /// Whether a cue was written from a piece of a layer. A piece without one may help another probe.
    pub fn holds(&self, layer: Knowledge, id: i64) -> bool {
        self.held.contains(&(layer, id))
    }

    /// The better half of the cues by similarity to the question, at least one, best first.
    pub fn related(&self, question: &[f32]) -> Vec<Piece> {
        let mut cues: Vec<(f32, Piece)> = Vec::new();
        for (id, (unit, vector)) in self.units.iter().enumerate() {
            cues.extend(unit.piece(id).map(|piece| (dot(question, vector), piece)));
        }
        cues.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.id.cmp(&b.1.id)));
        let most = (cues.len() / FUSED_SHARE).max(1);
        cues.into_iter().take(most).map(|(_, piece)| piece).collect()
    }
}
