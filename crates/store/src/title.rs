//! Titles of corpora: any text, for display. A title is in a file beside the database, so it is removed with the corpus;
//! a shared corpus has one in each data folder.

use std::fs;
use std::io;
use std::path::Path;

use crate::{CorpusName, Error, Result, private};

const TITLE_FILE: &str = "title";

/// Maximum characters of a title.
const MAX_CHARS: usize = 120;

/// Maximum bytes of a name that is made from a title; a number may follow.
const MAX_NAME_BYTES: usize = 56;

/// The name of a corpus whose title has no letter that a name may have.
const UNNAMED: &str = "corpus";

/// The title of the corpus in a folder; none if it has only a name.
pub(crate) fn read(folder: &Path) -> Result<Option<String>> {
    let path = folder.join(TITLE_FILE);
    match fs::read_to_string(&path) {
        Ok(title) => Ok(Some(title)),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::io(&path, source)),
    }
}

/// The title of the corpus in a folder, or its name if it has none or its title cannot be read.
pub(crate) fn shown(folder: &Path, name: &CorpusName) -> String {
    read(folder).ok().flatten().unwrap_or_else(|| name.to_string())
}

/// Stores the title atomically, or deletes it.
pub(crate) fn set(folder: &Path, title: Option<&str>) -> Result<()> {
    let path = folder.join(TITLE_FILE);
    let set = match title {
        Some(title) => private::replace(&path, title),
        None if path.exists() => fs::remove_file(&path),
        None => Ok(()),
    };
    set.map_err(|source| Error::io(&path, source))
}

/// A title without surrounding spaces.
///
/// # Errors
/// [`Error::InvalidTitle`] if it is empty, too long, or has control characters.
pub(crate) fn checked(title: &str) -> Result<&str> {
    let title = title.trim();
    let chars = title.chars().count();
    if (1..=MAX_CHARS).contains(&chars) && !title.chars().any(char::is_control) {
        return Ok(title);
    }
    Err(Error::InvalidTitle { chars, most: MAX_CHARS })
}

/// Names for a corpus with this title, the plain one first, then with numbers.
pub(crate) fn names(title: &str) -> impl Iterator<Item = String> {
    let mut name = String::new();
    for character in title.chars() {
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    name.truncate(MAX_NAME_BYTES);
    let name = match name.trim_end_matches('-') {
        "" => UNNAMED.to_owned(),
        name => name.to_owned(),
    };
    std::iter::once(name.clone()).chain((2..).map(move |number: u32| format!("{name}-{number}")))
}
