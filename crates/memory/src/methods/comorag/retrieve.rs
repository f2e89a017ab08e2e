//! Tri-retrieve (section 2.3): each probe against each layer in use.

use std::collections::HashMap;

use calls::Agent;
use futures_util::future::try_join_all;
use store::Corpus;

use super::knowledge::Knowledge;
use super::options::Options;
use super::pack::{Piece, pack};
use super::pool::{Evidence, Pool};
use super::summary_index::SummaryIndex;
use super::tree::SUMMARY;
use super::vectors::{vector_name, vectors_of};
use super::veridical::Veridical;
use super::windows::WINDOW;
use crate::core::error::Result;
use crate::core::origin::{in_brackets, shows_paths};
use crate::core::session::Session;
use crate::core::trace::{Event, HitRecord};

/// Results of a layer that are considered (released code: 50).
const MAX_HITS: usize = 50;

/// The layers in use, open for searching.
pub(super) struct Layers<'a> {
    corpus: &'a Corpus,
    /// Whether the agents are shown the paths of documents.
    with_paths: bool,
    veridical: Option<Veridical<'a>>,
    summaries: Vec<(Knowledge, SummaryIndex)>,
}

/// Tokens that each layer may have in a prompt.
pub(super) type Budgets = HashMap<Knowledge, usize>;

impl<'a> Layers<'a> {
    pub fn open(corpus: &'a Corpus, session: &Session<'_>) -> Result<Layers<'a>> {
        let (options, name) = (session.settings.options::<Options>(), vector_name(session));
        let veridical = options.uses(Knowledge::Veridical).then(|| Veridical::open(corpus, &name)).transpose()?;
        let mut summaries = Vec::new();
        for (layer, kind) in [(Knowledge::Semantic, SUMMARY), (Knowledge::Episodic, WINDOW)] {
            if options.uses(layer) {
                summaries.push((layer, SummaryIndex::open(kind, corpus, &name)?));
            }
        }
        // Both agents read the same texts.
        let with_paths =
            shows_paths(Agent::Researcher, corpus, session)? && shows_paths(Agent::Responder, corpus, session)?;
        Ok(Layers { corpus, with_paths, veridical, summaries })
    }

    /// The evidence for each probe and layer that is not in the pool yet, within the budget of its layer.
    pub async fn retrieve(
        &self,
        probes: &[String],
        pool: &Pool,
        budgets: &Budgets,
        session: &Session<'_>,
    ) -> Result<Vec<Evidence>> {
        let vectors = vectors_of(probes.iter().cloned(), session).await?;
        let searches = probes.iter().zip(&vectors).map(|(probe, vector)| self.search(probe, vector, pool, session));
        let mut evidence = Vec::new();
        for (probe, found) in probes.iter().zip(try_join_all(searches).await?) {
            for (layer, pieces) in found {
                let step = format!("comorag.{layer}");
                let found = pack(step, Agent::Responder, pieces, budgets.get(&layer).copied().unwrap_or(0), session)?;
                if !found.pieces.is_empty() {
                    evidence.push(Evidence { probe: probe.clone(), layer, found });
                }
            }
        }
        Ok(evidence)
    }

    /// The pieces of each layer for one probe, best first.
    async fn search(
        &self,
        probe: &str,
        vector: &[f32],
        pool: &Pool,
        session: &Session<'_>,
    ) -> Result<Vec<(Knowledge, Vec<Piece>)>> {
        let mut found = Vec::new();
        if let Some(veridical) = &self.veridical {
            let mut hits = veridical.search(probe, vector, session).await?;
            hits.retain(|hit| !pool.holds(Knowledge::Veridical, hit.passage.0));
            hits.truncate(MAX_HITS);
            let pieces = hits.iter().map(|hit| veridical.piece(hit.passage, self.with_paths)).collect::<Result<_>>()?;
            record(Knowledge::Veridical, probe, hits.iter().map(HitRecord::from).collect(), session)?;
            found.push((Knowledge::Veridical, pieces));
        }
        for (layer, shelf) in &self.summaries {
            let mut nearest = shelf.nearest(vector, usize::MAX);
            nearest.retain(|(piece, _)| !pool.holds(*layer, piece.id));
            nearest.truncate(MAX_HITS);
            let hits = nearest.iter().map(|(piece, score)| HitRecord { page: piece.id, score: *score }).collect();
            record(*layer, probe, hits, session)?;
            found.push((*layer, nearest.into_iter().map(|(piece, _)| self.shown(piece)).collect::<Result<_>>()?));
        }
        Ok(found)
    }

    /// A summary as evidence. It is of one document.
    fn shown(&self, summary: &Piece) -> Result<Piece> {
        let source = summary.sources.first().filter(|_| self.with_paths);
        let document = source.map(|chunk| self.corpus.document(self.corpus.passage(*chunk)?.document)).transpose()?;
        let text = match in_brackets(document.as_ref(), None) {
            Some(origin) => format!("{origin} {}", summary.text.trim_start()),
            None => summary.text.clone(),
        };
        Ok(Piece { text, ..summary.clone() })
    }
}

fn record(layer: Knowledge, probe: &str, hits: Vec<HitRecord>, session: &Session<'_>) -> Result<()> {
    session.trace.record(Event::Search { tool: layer.to_string(), queries: vec![probe.to_owned()], hits })
}
