//! API keys: a file of names and digests. The keys themselves are nowhere; each has 256 random bits, so that a fast digest
//! hides them as well as a slow one.
//!
//! A line is `NAME DIGEST`; what follows `#` is a remark.

use std::fs;
use std::io;
use std::path::Path;

use store::CorpusName;

/// The holders of keys.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    holders: Vec<(String, blake3::Hash)>,
}

/// What is wrong with a file of keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    #[error("the keys cannot be read or written")]
    Io(#[from] io::Error),
    #[error("line {line} of the keys is not `NAME DIGEST`")]
    Line { line: usize },
    #[error(
        "`{name}` cannot name a holder: use 1 to 64 of a-z, 0-9, `.`, `_` and `-`, beginning with a letter or digit"
    )]
    Name { name: String },
    #[error("`{name}` has a key already")]
    Taken { name: String },
    #[error("`{name}` has no key")]
    Unknown { name: String },
    #[error("the system gives no random bytes: {0}")]
    Random(String),
}

impl Keys {
    /// Reads a file of keys.
    ///
    /// # Errors
    /// A [`KeysError`] with the line at fault.
    pub fn read(path: &Path) -> Result<Keys, KeysError> {
        Keys::parse(&fs::read_to_string(path)?)
    }

    fn parse(text: &str) -> Result<Keys, KeysError> {
        let mut keys = Keys::default();
        for (line, content) in (1..).zip(text.lines()) {
            let words: Vec<&str> = content.split('#').next().unwrap_or_default().split_whitespace().collect();
            match words[..] {
                [] => {}
                [name, digest] => {
                    let digest = blake3::Hash::from_hex(digest).map_err(|_| KeysError::Line { line })?;
                    keys.insert(name, digest)?;
                }
                _ => return Err(KeysError::Line { line }),
            }
        }
        Ok(keys)
    }

    /// Makes a key for a new holder, adds its digest to the file, and gives the key, which is never seen again.
    ///
    /// # Errors
    /// A [`KeysError`]; the file is as it was then.
    pub fn add(path: &Path, name: &str) -> Result<String, KeysError> {
        let mut text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        let key = new_key()?;
        let digest = blake3::hash(key.as_bytes());
        Keys::parse(&text)?.insert(name, digest)?;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.extend([name, " ", &digest.to_hex(), "\n"]);
        write(path, &text)?;
        Ok(key)
    }

    /// Takes a holder's key out of the file; the corpora of its holder stay. A server that runs goes on with the keys that
    /// it has read.
    ///
    /// # Errors
    /// A [`KeysError`]; the file is as it was then.
    pub fn remove(path: &Path, name: &str) -> Result<(), KeysError> {
        let text = fs::read_to_string(path)?;
        Keys::parse(&text)?;
        let is_theirs = |line: &str| line.split('#').next().unwrap_or_default().split_whitespace().next() == Some(name);
        let rest: String = text.split_inclusive('\n').filter(|line| !is_theirs(line)).collect();
        if rest == text {
            return Err(KeysError::Unknown { name: name.to_owned() });
        }
        write(path, &rest)
    }

    fn insert(&mut self, name: &str, digest: blake3::Hash) -> Result<(), KeysError> {
        // The name is a folder's as well, under the same rules as a corpus'.
        name.parse::<CorpusName>().map_err(|_| KeysError::Name { name: name.to_owned() })?;
        if self.holders.iter().any(|(known, _)| known == name) {
            return Err(KeysError::Taken { name: name.to_owned() });
        }
        self.holders.push((name.to_owned(), digest));
        Ok(())
    }

    /// Names of all holders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.holders.iter().map(|(name, _)| name.as_str())
    }

    /// Whose key this is. Digests are compared in constant time.
    pub(crate) fn holder(&self, key: &str) -> Option<&str> {
        let digest = blake3::hash(key.as_bytes());
        self.holders.iter().find(|(_, known)| *known == digest).map(|(name, _)| name.as_str())
    }
}

/// Writes the file whole or not at all, readable by its owner only.
fn write(path: &Path, text: &str) -> Result<(), KeysError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    io::Write::write_all(&mut file, text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// 256 random bits with a prefix by which leaked keys are recognised.
fn new_key() -> Result<String, KeysError> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| KeysError::Random(error.to_string()))?;
    Ok(format!("ml-{}", blake3::Hash::from_bytes(bytes).to_hex()))
}
