//! A corpus while a question is asked of it: most methods only read, some keep what they work out on the way.

use std::ops::Deref;

use store::{Corpus, Writer};

/// A corpus to read from, and perhaps to write to.
pub(crate) enum Access<'a> {
    Read(&'a Corpus),
    Write(&'a mut Writer),
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
