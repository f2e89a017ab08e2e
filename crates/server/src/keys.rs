//! API keys: a file of names and digests. The keys themselves are nowhere; each has 256 random bits, so that a fast digest
//! hides them as well as a slow one.
//!
//! A line is `NAME DIGEST`; what follows `#` is a remark. A server reads the file again when it has changed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use store::{CorpusName, private};

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

    /// Takes a holder's key out of the file; the corpora of its holder stay.
    ///
    /// # Errors
    /// A [`KeysError`]; the file is as it was then.
    pub fn remove(path: &Path, name: &str) -> Result<(), KeysError> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(KeysError::Unknown { name: name.to_owned() });
            }
            text => text?,
        };
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

/// A file of keys as it is now.
#[derive(Debug, Clone)]
pub struct KeysFile {
    path: PathBuf,
    last: Arc<Mutex<Last>>,
}

/// What a file of keys held when it was last looked at.
#[derive(Debug)]
struct Last {
    stamp: Option<Stamp>,
    /// None as long as the file has never been there.
    keys: Option<Arc<Keys>>,
}

/// Changes when the file does: time and bytes.
type Stamp = (SystemTime, u64);

impl KeysFile {
    /// Reads a file of keys, which need not be there yet: nobody needs a key until it is.
    ///
    /// # Errors
    /// A [`KeysError`] with the line at fault.
    pub fn open(path: impl Into<PathBuf>) -> Result<KeysFile, KeysError> {
        let path = path.into();
        let stamp = stamp(&path);
        let keys = match Keys::read(&path) {
            Err(KeysError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
            keys => Some(Arc::new(keys?)),
        };
        Ok(KeysFile { path, last: Arc::new(Mutex::new(Last { stamp, keys })) })
    }

    /// The keys that are asked for; `None` if nobody needs one. A file that cannot be read any more, or is gone, changes
    /// nothing: that is logged, and the keys before it go on.
    pub fn keys(&self) -> Option<Arc<Keys>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.path);
        if last.stamp != stamp {
            last.stamp = stamp;
            match Keys::read(&self.path) {
                Ok(keys) => {
                    tracing::info!(holders = keys.holders.len(), "the keys have been read again");
                    last.keys = Some(Arc::new(keys));
                }
                Err(error) => tracing::error!(%error, "the file of keys cannot be used; the keys before it go on"),
            }
        }
        last.keys.clone()
    }
}

/// The stamp is taken before the file is read, so that what changes meanwhile is seen the next time.
fn stamp(path: &Path) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

/// Writes the file whole or not at all, readable by its owner only.
fn write(path: &Path, text: &str) -> Result<(), KeysError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.exists() {
        private::folder(folder)?;
    }
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

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::sync::Arc;

    use super::{Keys, KeysFile};

    #[test]
    fn a_damaged_file_is_logged_once_and_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, log] = ["keys", "log"].map(|name| folder.path().join(name));
        Keys::add(&path, "ann").expect("a new key");
        let file = KeysFile::open(&path).expect("it is right");
        let names = || file.keys().iter().flat_map(|keys| keys.names()).map(str::to_owned).collect::<Vec<_>>();
        let lines = Arc::new(File::create(&log).expect("a file"));
        let logger = tracing_subscriber::fmt().with_ansi(false).with_writer(lines).finish();
        tracing::subscriber::with_default(logger, || {
            fs::write(&path, "ann short").expect("it can be written");
            assert_eq!([names(), names()], [["ann"], ["ann"]]);
        });
        let said = fs::read_to_string(&log).expect("it is there");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("ERROR") && said.contains("line 1 of the keys"), "{said}");
    }
}
