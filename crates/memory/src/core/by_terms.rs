//! Citations by words: the sentences of pages that share most terms with a text.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use store::{Corpus, DocId, PassageId, Span, analyze};

use crate::core::cite::Citation;
use crate::core::error::Result;
use crate::core::quotable::{Units, units};

/// A candidate for a citation.
struct Candidate {
    page: PassageId,
    span: Span,
    quote: String,
    /// In a fixed order, so that sums of floats are the same in every run.
    terms: BTreeSet<String>,
}

/// At most `most` sentences (in conversations turns) of `pages`, best first, ranked by the terms that they share with the
/// answer and the question, weighted by inverse frequency. That a sentence supports the answer is not checked.
pub(crate) fn cite(
    question: &str,
    answer: &str,
    pages: &[PassageId],
    most: usize,
    corpus: &Corpus,
) -> Result<Vec<Citation>> {
    let candidates = candidates(pages, corpus)?;
    let mut frequency: HashMap<&str, f64> = HashMap::new();
    for term in candidates.iter().flat_map(|candidate| &candidate.terms) {
        *frequency.entry(term).or_default() += 1.0;
    }
    let rarity = |term: &str| ((candidates.len() as f64 + 1.0) / frequency.get(term).copied().unwrap_or(1.0)).ln();
    // Terms of the answer weigh more than those of the question.
    let weights: HashMap<String, f64> = analyze(question)
        .into_iter()
        .map(|term| (term, 1.0))
        .chain(analyze(answer).into_iter().map(|term| (term, 2.0)))
        .map(|(term, weight)| (term.clone(), weight * rarity(&term)))
        .collect();
    let score = |candidate: &Candidate| {
        let shared: f64 = candidate.terms.iter().filter_map(|term| weights.get(term)).sum();
        shared / (1.0 + candidate.terms.len() as f64).ln().max(1.0)
    };
    let mut scored: Vec<(f64, Candidate)> =
        candidates.iter().map(&score).collect::<Vec<_>>().into_iter().zip(candidates).collect();
    scored.retain(|(score, _)| *score > 0.0);
    // Candidates of a few words support nothing, unless there are no others.
    if scored.iter().any(|(_, candidate)| candidate.terms.len() >= MIN_TERMS) {
        scored.retain(|(_, candidate)| candidate.terms.len() >= MIN_TERMS);
    }
    // The sort is stable: equal scores keep the order of the pages.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.truncate(most);
    scored.into_iter().map(|(_, candidate)| citation(candidate, corpus)).collect()
}

/// Distinct terms that a citation should have.
const MIN_TERMS: usize = 4;

fn citation(candidate: Candidate, corpus: &Corpus) -> Result<Citation> {
    let page = corpus.passage(candidate.page)?;
    let path = corpus.document(page.document)?.path;
    let Span { start_char: start, end_char: end, .. } = candidate.span;
    Ok(Citation { path, page: page.id.0, label: page.meta.label, start, end, quote: candidate.quote })
}

fn candidates(pages: &[PassageId], corpus: &Corpus) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    let mut known: HashMap<DocId, Vec<(Span, String)>> = HashMap::new();
    let mut seen = HashSet::new();
    for id in pages {
        let page = corpus.passage(*id)?;
        let quotable = match known.entry(page.document) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(quotable(page.document, corpus)?),
        };
        // A sentence may cross the end of a page: it is quoted whole, once.
        let on_page = |span: &Span| span.start_byte < page.span.end_byte && page.span.start_byte < span.end_byte;
        for (span, quote) in quotable.iter().filter(|(span, _)| on_page(span)) {
            if seen.insert((page.document, span.start_byte)) {
                candidates.push(Candidate::new(*id, *span, quote.clone()));
            }
        }
    }
    Ok(candidates)
}

fn quotable(document: DocId, corpus: &Corpus) -> Result<Vec<(Span, String)>> {
    let Units { text, spans, .. } = units(document, corpus)?;
    Ok(spans.into_iter().map(|span| (span, text[span.bytes()].to_owned())).collect())
}

impl Candidate {
    fn new(page: PassageId, span: Span, quote: String) -> Candidate {
        Candidate { page, span, terms: analyze(&quote).into_iter().collect(), quote }
    }
}
