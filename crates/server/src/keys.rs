//! API keys: a file of names and digests. Keys themselves are not stored; each has 256 random bits, so a fast digest
//! protects them as well as a slow one.
//!
//! A line is `NAME DIGEST`; text after `#` is a comment, `# created DATE` the day on which the key was made. A running server reloads the file when it has changed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use store::{CorpusName, private};

use crate::fresh::since_1970;
use crate::time::rfc3339;

/// The names of keys with their digests.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    holders: Vec<(String, blake3::Hash)>,
    /// Names with the days on which their keys were made, where the file says.
    created: HashMap<String, String>,
}

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    #[error("the key file cannot be read or written")]
    Io(#[from] io::Error),
    #[error("it is a link to {}, which is not there", .target.display())]
    Link { target: PathBuf },
    #[error("line {line} of the key file is not `NAME DIGEST`")]
    Line { line: usize },
    #[error(
        "`{name}` is not a valid key name: use 1 to 64 of a-z, 0-9, `.`, `_` and `-`, beginning with a letter or digit"
    )]
    Name { name: String },
    #[error("`{name}` has a key already")]
    Taken { name: String },
    #[error("`{name}` has no key")]
    Unknown { name: String },
    #[error("no random bytes from the operating system: {0}")]
    Random(String),
}

impl Keys {
    /// Reads a key file.
    ///
    /// # Errors
    /// A [`KeysError`] with the invalid line.
    pub fn read(path: &Path) -> Result<Keys, KeysError> {
        Keys::parse(&fs::read_to_string(target(path)?)?)
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
                    if let Some((_, day)) = content.split_once("# created ") {
                        keys.created.insert(name.to_owned(), day.trim().to_owned());
                    }
                }
                _ => return Err(KeysError::Line { line }),
            }
        }
        Ok(keys)
    }

    /// Creates a key, adds its digest to the file, and returns the key, which cannot be displayed again.
    ///
    /// # Errors
    /// A [`KeysError`]; the file is unchanged then, unless only synchronising its folder failed.
    pub fn add(path: &Path, name: &str) -> Result<String, KeysError> {
        let path = &target(path)?;
        let _one = lock(path)?;
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
        let now = rfc3339(since_1970().as_secs());
        text.extend([name, " ", &digest.to_hex(), " # created ", &now[..10], "\n"]);
        private::replace(path, text)?;
        Ok(key)
    }

    /// Removes a key from the file; its tenant's corpora are kept.
    ///
    /// # Errors
    /// A [`KeysError`]; the file is unchanged then, unless only synchronising its folder failed.
    pub fn remove(path: &Path, name: &str) -> Result<(), KeysError> {
        let path = &target(path)?;
        let _one = lock(path)?;
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(KeysError::Unknown { name: name.to_owned() });
            }
            text => text?,
        };
        Keys::parse(&text)?;
        let is_named = |line: &str| line.split('#').next().unwrap_or_default().split_whitespace().next() == Some(name);
        let rest: String = text.split_inclusive('\n').filter(|line| !is_named(line)).collect();
        if rest == text {
            return Err(KeysError::Unknown { name: name.to_owned() });
        }
        Ok(private::replace(path, rest)?)
    }

    /// Checks the name of a key: it is also the name of a folder, under the same rules as that of a corpus.
    ///
    /// # Errors
    /// [`KeysError::Name`].
    pub fn check_name(name: &str) -> Result<(), KeysError> {
        name.parse::<CorpusName>().map(drop).map_err(|_| KeysError::Name { name: name.to_owned() })
    }

    fn insert(&mut self, name: &str, digest: blake3::Hash) -> Result<(), KeysError> {
        Keys::check_name(name)?;
        if self.holders.iter().any(|(known, _)| known == name) {
            return Err(KeysError::Taken { name: name.to_owned() });
        }
        self.holders.push((name.to_owned(), digest));
        Ok(())
    }

    /// The names of all keys.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.holders.iter().map(|(name, _)| name.as_str())
    }

    /// The day on which the key of this name was made (2026-01-31), if it is known.
    pub(crate) fn created(&self, name: &str) -> Option<&str> {
        self.created.get(name).map(String::as_str)
    }

    /// The name of a key, if it is known. Digests are compared in constant time.
    pub(crate) fn holder(&self, key: &str) -> Option<&str> {
        let digest = blake3::hash(key.as_bytes());
        self.holders.iter().find(|(_, known)| *known == digest).map(|(name, _)| name.as_str())
    }
}

/// A key file that is reloaded when it changes.
#[derive(Debug, Clone)]
pub struct KeysFile {
    path: PathBuf,
    cached: Arc<Mutex<CachedKeys>>,
}

/// The last known state of a key file.
#[derive(Debug)]
struct CachedKeys {
    stamp: Option<Stamp>,
    /// `None` until the file exists for the first time.
    keys: Option<Arc<Keys>>,
}

/// Detects changes of the file: modification time and length in bytes.
type Stamp = (SystemTime, u64);

impl KeysFile {
    /// Reads a key file. It need not exist yet: until it does, no key is required.
    ///
    /// # Errors
    /// A [`KeysError`] with the invalid line.
    pub fn open(path: impl Into<PathBuf>) -> Result<KeysFile, KeysError> {
        let path = path.into();
        let stamp = stamp(&path);
        let keys = match Keys::read(&path) {
            Err(KeysError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
            keys => Some(Arc::new(keys?)),
        };
        Ok(KeysFile { path, cached: Arc::new(Mutex::new(CachedKeys { stamp, keys })) })
    }

    /// The current keys; `None` if no key is required. If the file becomes unreadable or is removed, the error is
    /// logged and the previous keys remain valid.
    pub fn keys(&self) -> Option<Arc<Keys>> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.path);
        if cached.stamp != stamp {
            cached.stamp = stamp;
            match Keys::read(&self.path) {
                Ok(keys) => {
                    tracing::info!(holders = keys.holders.len(), "reloaded the key file");
                    cached.keys = Some(Arc::new(keys));
                }
                Err(error) => tracing::error!(%error, "cannot use the key file; the previous keys remain valid"),
            }
        }
        cached.keys.clone()
    }
}

/// Call it before reading the file, so that a change during reading is detected the next time.
fn stamp(path: &Path) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

/// The key file that a path names: the target of a link, so that a change does not replace the link.
///
/// # Errors
/// [`KeysError::Link`] if the target is missing, as on a drive that is not mounted: this does not mean that no key is required.
fn target(path: &Path) -> Result<PathBuf, KeysError> {
    if !path.is_symlink() {
        return Ok(path.to_owned());
    }
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(KeysError::Link { target: fs::read_link(path)? }),
        found => Ok(found?),
    }
}

/// Locks a key file for a change by one process at a time: a key that one removes must not come back with the change of
/// another. The lock is on a file beside it, since a change replaces the file.
fn lock(path: &Path) -> Result<File, KeysError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder
        && !folder.exists()
    {
        private::folder(folder)?;
    }
    let lock = private::create(&path.with_added_extension("lock"))?;
    lock.lock()?;
    Ok(lock)
}

/// 256 random bits with a prefix that identifies leaked keys.
fn new_key() -> Result<String, KeysError> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| KeysError::Random(error.to_string()))?;
    Ok(format!("ml-{}", blake3::Hash::from_bytes(bytes).to_hex()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::sync::Arc;

    use super::{Keys, KeysError, KeysFile};

    #[test]
    fn changes_at_the_same_time_lose_no_key_and_revive_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        for round in 0..4 {
            let revoked = format!("old{round}");
            Keys::add(&path, &revoked).expect("a new key");
            std::thread::scope(|scope| {
                (0..8).for_each(|n| {
                    let path = &path;
                    scope.spawn(move || Keys::add(path, &format!("new{round}-{n}")).expect("a new key"));
                });
                scope.spawn(|| Keys::remove(&path, &revoked).expect("it is there"));
            });
        }
        let keys = Keys::read(&path).expect("it is valid");
        let mut names: Vec<&str> = keys.names().collect();
        names.sort_unstable();
        let expected: Vec<String> = (0..4).flat_map(|round| (0..8).map(move |n| format!("new{round}-{n}"))).collect();
        assert_eq!(names, expected);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_whose_target_is_missing_does_not_mean_that_no_key_is_required() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        assert!(KeysFile::open(&path).expect("there is no file").keys().is_none());
        std::os::unix::fs::symlink(folder.path().join("missing"), &path).expect("a link");
        let is_of_link = |error: KeysError| matches!(error, KeysError::Link { target } if target.ends_with("missing"));
        assert!(KeysFile::open(&path).is_err_and(is_of_link));
        assert!(Keys::add(&path, "ann").is_err_and(is_of_link));
        assert!(Keys::remove(&path, "ann").is_err_and(is_of_link));
        assert!(path.is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn a_change_through_a_link_is_made_in_its_target() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, shared] = ["keys", "shared"].map(|name| folder.path().join(name));
        Keys::add(&shared, "ann").expect("a new key");
        std::os::unix::fs::symlink("shared", &path).expect("a link");
        Keys::add(&path, "bob").expect("a new key");
        Keys::remove(&path, "ann").expect("it is there");
        let names: Vec<String> = Keys::read(&shared).expect("it is valid").names().map(str::to_owned).collect();
        assert_eq!((names, path.is_symlink()), (vec!["bob".to_owned()], true));
    }

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
        assert!(said.contains("ERROR") && said.contains("line 1 of the key file"), "{said}");
    }
}
