//! The ranks of a question's evidence among what a method retrieved.

use std::collections::BTreeSet;
use std::ops::Range;

use memory::Event;
use memory::comorag::Knowledge;
use store::{Corpus, PassageId};

use super::case::{Case, Evidence};
use crate::Result;

/// A span of one of a case's texts.
pub(super) type Stretch = (usize, Range<usize>);

/// The passages that searches and MemCoT's zoom-out retrieved, in order.
pub(super) fn brought(case: &Case, corpus: &Corpus, events: &[Event]) -> Result<Vec<Stretch>> {
    let mut seen = BTreeSet::new();
    let documents = corpus.documents()?;
    let mut brought = Vec::new();
    for page in events.iter().flat_map(passages).filter(|page| seen.insert(*page)) {
        let passage = corpus.passage(PassageId(page))?;
        let path = documents.iter().find(|document| document.id == passage.document).map(|document| &document.path);
        let source = case.sources.iter().position(|source| Some(&source.path) == path);
        // A passage of no text of the case contains no evidence, but has its rank.
        brought.push((source.unwrap_or(usize::MAX), passage.span.bytes()));
    }
    Ok(brought)
}

/// The sessions of the passages, each once.
pub(super) fn sessions(case: &Case, passages: &[Stretch]) -> Vec<Stretch> {
    let mut sessions: Vec<Stretch> = Vec::new();
    for (source, bytes) in passages {
        let sections = case.sources.get(*source).map_or(&[][..], |source| &source.sections);
        for section in sections.iter().filter(|section| overlap(&section.span, bytes)) {
            let session = (*source, section.span.clone());
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
    }
    sessions
}

/// The ranks, from 1, of the first retrieved passages with each piece of evidence; `None` if there is no evidence.
pub(super) fn ranks(evidence: &[Evidence], brought: &[Stretch]) -> Option<Vec<Option<usize>>> {
    let rank = |wanted: &Evidence| {
        let is_it = |(source, bytes): &Stretch| *source == wanted.source && overlap(bytes, &wanted.bytes);
        brought.iter().position(is_it).map(|place| place + 1)
    };
    (!evidence.is_empty()).then(|| evidence.iter().map(rank).collect())
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The passages that an event retrieved. ComoRAG's summaries are not passages: their ids are of another kind.
fn passages(event: &Event) -> Vec<i64> {
    let is_summary =
        |tool: &str| [Knowledge::Semantic, Knowledge::Episodic].iter().any(|layer| layer.to_string() == tool);
    match event {
        Event::Search { tool, hits, .. } if !is_summary(tool) => hits.iter().map(|hit| hit.page).collect(),
        Event::Evidence { step, pages, .. } if step == "memcot.zoom_out" => pages.clone(),
        _ => Vec::new(),
    }
}
