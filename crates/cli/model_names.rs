//! The names that clients gave to models, in one file of the data folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use server::Refused;
use store::private;

/// The folder of uploaded files.
pub const BLOBS: &str = "blobs";

const FILE: &str = "model-names.json";

/// Characters of a name, beyond which no client shows it whole.
const MAX_CHARS: usize = 128;

/// Names with the models that they mean: a known name, a name on the hub, or an absolute path.
#[derive(Debug)]
pub struct Names {
    path: PathBuf,
    writing: Mutex<()>,
}

impl Names {
    /// Those of a data folder.
    pub fn in_folder(folder: &Path) -> Names {
        Names { path: folder.join(FILE), writing: Mutex::default() }
    }

    /// All names; none if the file cannot be read, which is reported where it is written.
    pub fn all(&self) -> BTreeMap<String, String> {
        self.read().unwrap_or_default()
    }

    /// Adds a name, or gives it another meaning.
    ///
    /// # Errors
    /// If it is no name, or the file cannot be written.
    pub fn add(&self, name: &str, of: &str) -> Result<(), Refused> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
        let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins || !name.chars().all(is_plain) || name.len() > MAX_CHARS || name.to_lowercase().ends_with(".gguf") {
            let rule = "use up to 128 letters, digits, `-`, `_`, `.`, `:` and `/`, beginning with a letter or digit";
            return Err((format!("`{name}` cannot be the name of a model"), Some(rule.to_owned())));
        }
        self.change(|names| names.insert(name.to_owned(), of.to_owned())).map(drop)
    }

    /// Removes a name and returns what it meant; `None` if it was not given.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn remove(&self, name: &str) -> Result<Option<String>, Refused> {
        if !self.all().contains_key(name) {
            return Ok(None);
        }
        self.change(|names| names.remove(name))
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> Result<T, Refused> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error: io::Error| (format!("{} cannot be changed: {error}", self.path.display()), None);
        let mut names = self.read().map_err(failed)?;
        let changed = change(&mut names);
        let text = serde_json::to_string_pretty(&names).map_err(|error| failed(error.into()))?;
        private::write(&self.path, text).map_err(failed)?;
        Ok(changed)
    }

    fn read(&self) -> io::Result<BTreeMap<String, String>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }
}
