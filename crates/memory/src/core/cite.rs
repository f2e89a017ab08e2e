//! Citations, and the sentences of pages that share most terms with a text.
//!
//! Citations are selected, not generated, so every quote equals its source byte for byte.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use store::{Corpus, DocId, PassageId, Span, analyze};
use unicode_segmentation::UnicodeSegmentation;

use crate::core::error::Result;
use crate::core::quotable::{Units, units};

/// A span of a source.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Citation {
    /// The path of the document.
    pub path: String,
    /// The id of the page.
    pub page: i64,
    /// Index of the first character in the document.
    pub start: u32,
    /// Index after the last character.
    pub end: u32,
    /// The text of the span.
    pub quote: String,
}

/// A candidate for a citation.
struct Candidate {
    page: PassageId,
    span: Span,
    quote: String,
    terms: HashSet<String>,
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
    let path = corpus.document(corpus.passage(candidate.page)?.document)?.path;
    let Span { start_char, end_char, .. } = candidate.span;
    Ok(Citation { path, page: candidate.page.0, start: start_char, end: end_char, quote: candidate.quote })
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

/// Byte ranges of the sentences of a text, without the white space around them.
///
/// Unicode's rules (UAX 29) end a sentence at every line break, which is wrong for prose with hard line breaks. So a piece
/// without a sentence end continues in the next line, unless that line is blank, starts a heading, an item or a table row,
/// or makes the sentence too long.
pub(crate) fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut sentences: Vec<Range<usize>> = Vec::new();
    let mut open = false;
    for (start, piece) in text.split_sentence_bound_indices() {
        let trimmed = piece.trim();
        if trimmed.is_empty() {
            open = false;
            continue;
        }
        let from = start + (piece.len() - piece.trim_start().len());
        let range = from..from + trimmed.len();
        let goes_on = open && !MARKS.iter().any(|mark| trimmed.starts_with(mark));
        match sentences.last_mut() {
            Some(last) if goes_on && range.end - last.start <= LONGEST_BYTES => last.end = range.end,
            _ => sentences.push(range),
        }
        open = !trimmed.starts_with('#') && !trimmed.trim_end_matches(CLOSERS).ends_with(ENDS);
    }
    sentences
}

/// Starts of lines that do not continue the line before.
const MARKS: [&str; 5] = ["#", "- ", "* ", "> ", "| "];

/// Closing signs after the end of a sentence.
const CLOSERS: [char; 12] = ['"', '\'', '”', '’', ')', ']', '»', '_', '*', '」', '』', '）'];

/// Signs that end a sentence or an independent clause.
const ENDS: [char; 13] = ['.', '!', '?', '…', '。', '！', '？', ':', ';', '：', '；', '।', '؟'];

/// Lines without sentence ends, such as those of a log, are not joined beyond this length.
const LONGEST_BYTES: usize = 2000;

#[cfg(test)]
mod tests {
    use super::{LONGEST_BYTES, sentences};

    fn check(text: &str, want: &[&str]) {
        let got: Vec<&str> = sentences(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(got, want, "{text:?}");
    }

    #[test]
    fn sentences_survive_hard_line_breaks() {
        check("One. Two!  Three?", &["One.", "Two!", "Three?"]);
        check(
            "The hatter was the\nfirst to break the silence. `What\nday is it?' he said.",
            &["The hatter was the\nfirst to break the silence.", "`What\nday is it?'", "he said."],
        );
        check("A TITLE\n\nText begins. And ends", &["A TITLE", "Text begins.", "And ends"]);
        check("你好。再见！", &["你好。", "再见！"]);
        check("   ", &[]);
    }

    #[test]
    fn marked_lines_do_not_run_into_one_another() {
        check(
            "# Shopping\nWe need\n- two eggs\n- milk\n  and tea",
            &["# Shopping", "We need", "- two eggs", "- milk\n  and tea"],
        );
        check("| a | b\r\n| c | d", &["| a | b", "| c | d"]);
        check("「再见。」\n他走了。", &["「再见。」", "他走了。"]);
    }

    #[test]
    fn a_log_is_not_one_sentence() {
        let log = "127.0.0.1 GET /index 200\n".repeat(200);
        assert!(sentences(&log).iter().all(|range| range.len() <= LONGEST_BYTES));
    }
}
