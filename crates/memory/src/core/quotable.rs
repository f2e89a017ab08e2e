//! The evidence of an answer as texts whose spans can be cited.
//!
//! A unit of quotation is a sentence, or a turn of a conversation. A text is a run of units of one page, so a sentence
//! that crosses the end of a page is whole, and is in one text only. So is a paragraph that ends on the next page, if that is part of
//! the evidence too.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use chrono::NaiveDate;
use store::{Corpus, DocId, Layer, Offsets, Passage, PassageId, Span};

use crate::core::cite::{Citation, sentences};
use crate::core::error::Result;
use crate::grounding::{self, Place, Stating, paragraphs};

/// Texts of the evidence, in the order of the pages that they come from.
#[derive(Debug, Default)]
pub(crate) struct Quotable {
    texts: Vec<Run>,
}

#[derive(Debug)]
struct Run {
    path: String,
    heading: String,
    /// As the document has it.
    original: String,
    /// Index of its first character in the document.
    start_char: u32,
    /// The same, in a conversation with blank lines between turns, so that no sentence runs from one into the next.
    text: String,
    units: Vec<Unit>,
}

/// A unit of quotation.
#[derive(Debug)]
struct Unit {
    /// Bytes in the text.
    text: Range<usize>,
    /// Bytes in the original.
    original: Range<usize>,
    page: Begins,
    /// The day on which a turn, or a page such as a message of a mailbox, was written.
    day: Option<NaiveDate>,
}

/// The page that a unit begins on.
#[derive(Debug, Clone, Default)]
struct Begins {
    page: i64,
    label: Option<String>,
}

/// A document with its units of quotation.
pub(crate) struct Units {
    pub path: String,
    /// The document's name in words.
    name: String,
    pub text: String,
    pub spans: Vec<Span>,
    pages: Vec<Begins>,
    /// The day of each turn, or else of its page, if it is known.
    days: Vec<Option<NaiveDate>>,
    pub is_conversation: bool,
}

impl Quotable {
    /// The units of pages, or of other passages, each once.
    pub fn of_pages(pages: &[PassageId], corpus: &Corpus) -> Result<Quotable> {
        let mut runs: Vec<(Passage, Vec<Part>)> = Vec::new();
        let mut known: HashMap<DocId, Units> = HashMap::new();
        let mut seen = HashSet::new();
        for id in pages {
            let page = corpus.passage(*id)?;
            let document = match known.entry(page.document) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(units(page.document, corpus)?),
            };
            let on_page = |span: &Span| span.start_byte < page.span.end_byte && page.span.start_byte < span.end_byte;
            let mut new = Vec::new();
            for (at, span) in document.spans.iter().enumerate() {
                if on_page(span) && seen.insert((page.document, span.start_byte)) {
                    new.push(Part { at, span: *span });
                }
            }
            runs.extend(new.chunk_by(|before, part| part.at == before.at + 1).map(|run| (page.clone(), run.to_vec())));
        }
        join_paragraphs(&mut runs, &known);
        let runs = runs.iter().filter(|(_, run)| !run.is_empty());
        let texts = runs.map(|(page, run)| Run::new(page.meta.time.as_deref(), &known[&page.document], run)).collect();
        Ok(Quotable { texts })
    }

    /// The units that parts of documents touch, given by their bytes; each unit once.
    pub fn around(parts: &[(DocId, Range<usize>)], corpus: &Corpus) -> Result<Quotable> {
        let mut texts = Vec::new();
        let mut known: HashMap<DocId, Units> = HashMap::new();
        let mut seen = HashSet::new();
        for (document, bytes) in parts {
            let units = match known.entry(*document) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(units(*document, corpus)?),
            };
            let mut new = Vec::new();
            for (at, span) in units.spans.iter().enumerate() {
                let unit = span.bytes();
                if unit.start < bytes.end && bytes.start < unit.end && seen.insert((*document, at)) {
                    new.push(Part { at, span: *span });
                }
            }
            for run in new.chunk_by(|before, part| part.at == before.at + 1) {
                texts.push(Run::new(None, units, run));
            }
        }
        Ok(Quotable { texts })
    }

    /// The texts; a [`Place`] is a span of one of them.
    pub fn texts(&self) -> Vec<&str> {
        self.texts.iter().map(|text| text.text.as_str()).collect()
    }

    /// The path of each text's document.
    pub fn paths(&self) -> Vec<&str> {
        self.texts.iter().map(|text| text.path.as_str()).collect()
    }

    /// What a text is headed by where it is shown: the time of a conversation's page, else the name of the document.
    pub fn heading(&self, text: usize) -> &str {
        &self.texts[text].heading
    }

    /// The texts, each with its heading.
    pub fn headed(&self) -> Vec<(&str, &str)> {
        self.texts.iter().map(|text| (text.heading.as_str(), text.text.as_str())).collect()
    }

    /// An answer at a place, with the units that it touches as the quote.
    pub fn stating(&self, place: Place) -> Stating<'_> {
        let (text, heading) = (self.texts[place.text].text.as_str(), self.heading(place.text));
        Stating { text, heading, quote: self.unit(place), answer: place.start..place.end }
    }

    /// The day on which the unit was written that a place begins in, if it is known.
    pub fn day(&self, place: Place) -> Option<NaiveDate> {
        self.touched(place).next()?.day
    }

    /// The bytes of the units that a place touches, in its text.
    pub fn unit(&self, place: Place) -> Range<usize> {
        let touched = self.touched(place).map(|unit| unit.text.clone());
        touched.reduce(|all, unit| all.start..unit.end).unwrap_or(place.start..place.end)
    }

    fn touched(&self, place: Place) -> impl Iterator<Item = &Unit> {
        let units = self.texts[place.text].units.iter();
        units.filter(move |unit| unit.text.start < place.end && place.start < unit.text.end)
    }

    /// The citation of the units that a place touches.
    pub fn citation(&self, place: Place) -> Citation {
        let Run { path, original, start_char, .. } = &self.texts[place.text];
        let Begins { page, label } = self.touched(place).next().map(|unit| unit.page.clone()).unwrap_or_default();
        let (start, end) = self
            .touched(place)
            .map(|unit| &unit.original)
            .fold((original.len(), 0), |(start, end), unit| (start.min(unit.start), end.max(unit.end)));
        let quote = original.get(start..end).unwrap_or_default().to_owned();
        let chars = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let first = start_char + chars(&original[..start]);
        Citation { path: path.clone(), page, label, start: first, end: first + chars(&quote), quote }
    }
}

/// A unit of the evidence.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Its index among the units of the document.
    at: usize,
    span: Span,
}

/// Moves the end of a paragraph to the page that it begins on. Pages of different times are different messages.
fn join_paragraphs(runs: &mut [(Passage, Vec<Part>)], known: &HashMap<DocId, Units>) {
    let mut in_order: Vec<&mut (Passage, Vec<Part>)> = runs.iter_mut().collect();
    in_order.sort_by_key(|(page, run)| (page.document, run[0].at));
    let mut in_order = in_order.into_iter();
    let Some(mut before) = in_order.next() else { return };
    for next in in_order {
        let ((page, run), (next_page, rest)) = (&mut *before, &mut *next);
        let document = &known[&page.document];
        let is_adjacent = next_page.document == page.document && rest[0].at == run[run.len() - 1].at + 1;
        if is_adjacent && next_page.meta.time == page.meta.time && !document.is_conversation {
            let from = run[0].span.start_byte;
            let border = (rest[0].span.start_byte - from) as usize;
            let cut = paragraphs(&document.text[from as usize..rest[rest.len() - 1].span.end_byte as usize]);
            if let Some(cut) = cut.into_iter().find(|cut| cut.start < border && border < cut.end) {
                let moved = rest.iter().take_while(|part| ((part.span.start_byte - from) as usize) < cut.end).count();
                run.extend(rest.drain(..moved));
            }
        }
        if !next.1.is_empty() {
            before = next;
        }
    }
}

impl Run {
    /// Adjacent units of a document, those of a page of this time.
    fn new(time: Option<&str>, document: &Units, run: &[Part]) -> Run {
        let (first, last) = (run[0].span, run[run.len() - 1].span);
        let from = first.start_byte as usize;
        let original = document.text[from..last.end_byte as usize].to_owned();
        let mut text = String::new();
        let mut units = Vec::new();
        for Part { at, span } in run.iter().copied() {
            let place = span.bytes().start - from..span.bytes().end - from;
            let (page, day) = (document.pages[at].clone(), document.days[at]);
            if document.is_conversation {
                text.push_str(if text.is_empty() { "" } else { "\n\n" });
                units.push(Unit { text: text.len()..text.len() + place.len(), original: place.clone(), page, day });
                text.push_str(&original[place]);
            } else {
                units.push(Unit { text: place.clone(), original: place, page, day });
            }
        }
        if !document.is_conversation {
            text.clone_from(&original);
        }
        let (path, start_char) = (document.path.clone(), first.start_char);
        let heading = time.unwrap_or(&document.name).to_owned();
        Run { path, heading, original, start_char, text, units }
    }
}

/// The turns of a conversation, the sentences of any other document.
pub(crate) fn units(document: DocId, corpus: &Corpus) -> Result<Units> {
    let (stored, text) = (corpus.document(document)?, corpus.document_text(document)?);
    let turns = corpus.passages_of(document, Layer::Turn)?;
    // A turn without a speaker is a passage of prose.
    let is_conversation = turns.iter().any(|turn| turn.meta.speaker.is_some());
    let day_of = |passage: &Passage| passage.meta.time.as_deref().and_then(grounding::day_of);
    let (spans, own_days): (Vec<Span>, Vec<Option<NaiveDate>>) = if is_conversation {
        turns.iter().map(|turn| (turn.span, day_of(turn))).unzip()
    } else {
        let offsets = Offsets::new(&text);
        sentences(&text).into_iter().filter_map(|range| Some((offsets.span(range)?, None))).unzip()
    };
    let cut = corpus.passages_of(document, Layer::Page)?;
    let begins_on = |span: &Span| {
        let after = cut.partition_point(|page| page.span.start_byte <= span.start_byte);
        cut.get(after.saturating_sub(1))
    };
    let days_of_pages: HashMap<PassageId, Option<NaiveDate>> = cut.iter().map(|page| (page.id, day_of(page))).collect();
    let (mut pages, mut days) = (Vec::new(), Vec::new());
    for (span, day) in spans.iter().zip(own_days) {
        let page = begins_on(span);
        let begins = |page: &Passage| Begins { page: page.id.0, label: page.meta.label.clone() };
        pages.push(page.map(begins).unwrap_or_default());
        days.push(day.or_else(|| page.and_then(|page| days_of_pages[&page.id])));
    }
    Ok(Units { name: stored.name(), path: stored.path, text, spans, pages, days, is_conversation })
}
