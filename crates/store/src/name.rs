//! Names of corpora.

use std::fmt;
use std::str::FromStr;

use crate::{Error, Result, title};

/// A valid name: 1 to 64 of a-z, 0-9, `.`, `_`, `-`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CorpusName(pub(crate) String);

impl FromStr for CorpusName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let letter_or_digit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let valid = (1..=64).contains(&name.len())
            && name.bytes().next().is_some_and(letter_or_digit)
            && name.bytes().all(|byte| letter_or_digit(byte) || b"._-".contains(&byte));
        if valid { Ok(Self(name.to_owned())) } else { Err(Error::InvalidName { name: name.to_owned() }) }
    }
}

impl CorpusName {
    /// A valid name in place of one that may be none: `magi` for `Magi`.
    pub fn like(name: &str) -> CorpusName {
        CorpusName(title::names(name).next().expect("there is a name for each title"))
    }
}

impl fmt::Display for CorpusName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
