//! Published data sets, read in the form in which they are published.
//!
//! All of them are converted to [`Collection`]s of passages with their queries.

pub(crate) mod beir;
pub(crate) mod files;
pub(crate) mod locomo;
pub(crate) mod multihop;
pub(crate) mod musique;
pub(crate) mod squad;
pub(crate) mod xquad;

mod pool;
pub(crate) mod records;

use std::ops::Range;
use std::path::PathBuf;

/// One suite's data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dataset {
    /// Each is searched alone.
    pub collections: Vec<Collection>,
    /// Corrections and omissions in the files, with reasons.
    pub notes: Vec<String>,
    /// The files that were read.
    pub files: Vec<PathBuf>,
}

/// Passages that are searched together, and their queries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Collection {
    /// Unique in its data set.
    pub name: String,
    pub passages: Vec<Passage>,
    /// Each has at least one relevant passage.
    pub queries: Vec<Query>,
    /// Ranges of consecutive passages, if the data set has them: the sessions of a conversation.
    pub sessions: Vec<Range<usize>>,
}

/// A text to retrieve.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    /// Unique in its collection, without white space.
    pub id: String,
    /// Empty if passages have no title.
    pub title: String,
    pub text: String,
}

/// A question with its wanted passages.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Unique in its collection.
    pub id: String,
    pub text: String,
    /// The groups of queries for which numbers are reported by themselves.
    pub groups: Vec<String>,
    /// At least one, none twice.
    pub wanted: Vec<Wanted>,
}

/// A passage that is relevant to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Its index among the collection's passages.
    pub place: usize,
    /// The relevance grade; at least 1.
    pub grade: u32,
}

impl Dataset {
    /// Keeps the first `most` queries and their collections; notes what is left out.
    pub fn limit(&mut self, most: usize) {
        let all = self.queries();
        if most < all {
            self.notes.push(format!("only the first {most} of {all} queries are asked"));
        }
        let mut left = most;
        for collection in &mut self.collections {
            collection.queries.truncate(left);
            left -= collection.queries.len();
        }
        self.collections.retain(|collection| !collection.queries.is_empty());
    }

    /// The number of queries.
    pub fn queries(&self) -> usize {
        self.collections.iter().map(|collection| collection.queries.len()).sum()
    }
}

impl Passage {
    /// Title and text in one, which the tools search.
    pub fn whole(&self) -> String {
        format!("{} {}", self.title, self.text).trim().to_owned()
    }
}

impl Wanted {
    /// A query to which some passages are relevant with equal grades, each once.
    pub(crate) fn all(places: impl IntoIterator<Item = usize>) -> Vec<Wanted> {
        let places: std::collections::BTreeSet<usize> = places.into_iter().collect();
        places.into_iter().map(|place| Wanted { place, grade: 1 }).collect()
    }
}
