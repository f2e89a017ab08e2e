//! A pool of passages that is filled from questions, each of which brings its own.

use std::collections::HashMap;

use crate::Passage;

/// Passages, none twice, numbered in the order in which they came.
#[derive(Default)]
pub(crate) struct Pool {
    places: HashMap<(String, String), usize>,
    pub passages: Vec<Passage>,
}

impl Pool {
    /// The place of a passage, which is added if it is new.
    pub fn put(&mut self, title: &str, text: &str) -> usize {
        let (title, text) = (title.to_owned(), text.to_owned());
        let next = self.passages.len();
        let place = *self.places.entry((title.clone(), text.clone())).or_insert(next);
        if place == next {
            self.passages.push(Passage { id: next.to_string(), title, text });
        }
        place
    }
}
