//! All turns of a corpus in the order of their documents, with their sessions: the windows around turns.

use std::collections::{BTreeSet, HashMap};

use store::{Corpus, DocId, Layer, Passage, PassageId};

use crate::core::error::Result;

/// Turns by their place: documents in the order of their ids, turns in the order of the text.
#[derive(Debug)]
pub struct Timeline {
    turns: Vec<Turn>,
    places: HashMap<PassageId, usize>,
}

/// A turn and its position.
#[derive(Debug)]
pub(crate) struct Turn {
    pub passage: Passage,
    /// The page that it begins on.
    pub page: PassageId,
    /// The same number for the turns of one session, and no others.
    session: usize,
    /// The session's name in the source.
    pub session_label: Option<String>,
}

impl Timeline {
    /// Reads the places of all turns.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn of(corpus: &Corpus) -> Result<Timeline> {
        let mut turns = Vec::new();
        let mut sessions = 0;
        for document in corpus.documents()? {
            sessions = add(document.id, sessions, corpus, &mut turns)?;
        }
        let places = turns.iter().enumerate().map(|(place, turn)| (turn.passage.id, place)).collect();
        Ok(Timeline { turns, places })
    }

    /// The position of a turn; none if the passage is no turn.
    pub fn place(&self, turn: PassageId) -> Option<usize> {
        self.places.get(&turn).copied()
    }

    pub(crate) fn turn(&self, place: usize) -> &Turn {
        &self.turns[place]
    }

    /// The id of the turn at a place.
    ///
    /// # Panics
    /// If there is no such place.
    pub fn id(&self, place: usize) -> PassageId {
        self.turns[place].passage.id
    }

    /// Whether two turns belong to one session.
    pub(crate) fn together(&self, a: usize, b: usize) -> bool {
        self.turns[a].session == self.turns[b].session
    }

    /// The turns at most `window` away from `anchors` in their sessions, each once: the anchors first, then the nearest.
    pub fn around(&self, anchors: &[usize], window: usize) -> Vec<usize> {
        let mut around = Vec::new();
        let mut seen = BTreeSet::new();
        for distance in 0..=window {
            for anchor in anchors {
                let ends = [anchor.checked_sub(distance), anchor.checked_add(distance)];
                for place in ends.into_iter().flatten().filter(|place| *place < self.turns.len()) {
                    if self.together(*anchor, place) && seen.insert(place) {
                        around.push(place);
                    }
                }
            }
        }
        around
    }
}

/// Adds the turns of a document; returns how many sessions there are now.
///
/// A session of a conversation is a run of pages under one heading; in any other text each page is one.
fn add(document: DocId, sessions: usize, corpus: &Corpus, turns: &mut Vec<Turn>) -> Result<usize> {
    let passages = corpus.passages_of(document, Layer::Turn)?;
    let talk = passages.iter().any(|turn| turn.meta.speaker.is_some());
    let pages = corpus.passages_of(document, Layer::Page)?;
    let mut session_of_page = Vec::with_capacity(pages.len());
    let mut session = sessions;
    for (number, page) in pages.iter().enumerate() {
        let goes_on = talk && number > 0 && pages[number - 1].meta.label == page.meta.label;
        session += usize::from(!goes_on);
        session_of_page.push(session);
    }
    for passage in passages {
        let after = pages.partition_point(|page| page.span.start_byte <= passage.span.start_byte);
        // Every document has a page, and its first page begins with its first words.
        let Some(number) = after.checked_sub(1) else { continue };
        let (page, session_label) = (pages[number].id, pages[number].meta.label.clone());
        turns.push(Turn { passage, page, session: session_of_page[number], session_label });
    }
    Ok(session)
}
