//! Access to a corpus while a question is answered: most methods only read, some store what they compute on the way.

use std::ops::Deref;

use store::{Corpus, Writer};

/// A corpus to read from, and perhaps to write to.
pub enum Access<'a> {
    Read(&'a Corpus),
    Write(&'a mut Writer),
}

impl Access<'_> {
    /// The same access for a shorter time.
    pub(crate) fn reborrow(&mut self) -> Access<'_> {
        match self {
            Access::Read(corpus) => Access::Read(corpus),
            Access::Write(writer) => Access::Write(writer),
        }
    }
}

impl Deref for Access<'_> {
    type Target = Corpus;

    fn deref(&self) -> &Corpus {
        match self {
            Access::Read(corpus) => corpus,
            Access::Write(writer) => writer,
        }
    }
}

impl<'a> From<&'a Corpus> for Access<'a> {
    fn from(corpus: &'a Corpus) -> Access<'a> {
        Access::Read(corpus)
    }
}

impl<'a> From<&'a Writer> for Access<'a> {
    fn from(writer: &'a Writer) -> Access<'a> {
        Access::Read(writer)
    }
}

impl<'a> From<&'a mut Writer> for Access<'a> {
    fn from(writer: &'a mut Writer) -> Access<'a> {
        Access::Write(writer)
    }
}
