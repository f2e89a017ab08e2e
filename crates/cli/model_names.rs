//! The names that clients gave to models, in one file of the data folder.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use server::{Preset, Refused};
use store::private;

/// The folder of uploaded files.
pub const BLOBS: &str = "blobs";

const FILE: &str = "model-names.json";

/// Characters of a name, beyond which no client shows it whole.
const MAX_CHARS: usize = 128;

/// What a name means: a known name, a name on the hub, or an absolute path; with what it brings along.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Named {
    pub of: String,
    #[serde(flatten)]
    pub preset: Preset,
}

/// As it is in the file: older versions wrote the model alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Alone(String),
    With {
        of: String,
        #[serde(flatten)]
        preset: Preset,
    },
}

impl From<Written> for Named {
    fn from(written: Written) -> Named {
        match written {
            Written::Alone(of) => Named { of, preset: Preset::default() },
            Written::With { of, preset } => Named { of, preset },
        }
    }
}

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
    pub fn all(&self) -> BTreeMap<String, Named> {
        self.read().unwrap_or_default()
    }

    /// Adds a name, or gives it another meaning.
    ///
    /// # Errors
    /// If it is no name, or the file cannot be written.
    pub fn add(&self, name: &str, named: Named) -> Result<(), Refused> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
        let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !begins || !name.chars().all(is_plain) || name.len() > MAX_CHARS || name.to_lowercase().ends_with(".gguf") {
            let rule = "use up to 128 letters, digits, `-`, `_`, `.`, `:` and `/`, beginning with a letter or digit";
            return Err((format!("`{name}` cannot be the name of a model"), Some(rule.to_owned())));
        }
        self.change(|names| names.insert(name.to_owned(), named)).map(drop)
    }

    /// Removes a name and returns what it meant; `None` if it was not given.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn remove(&self, name: &str) -> Result<Option<Named>, Refused> {
        if !self.all().contains_key(name) {
            return Ok(None);
        }
        self.change(|names| names.remove(name))
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Named>) -> T) -> Result<T, Refused> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error: io::Error| {
            let hint = match error.kind() {
                ErrorKind::InvalidData => Some("restore the file or delete it"),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                    Some("free some space; the names are as they were")
                }
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    Some("let the user that runs the server write to its data folder")
                }
                _ => None,
            };
            (format!("{} cannot be changed: {error}", self.path.display()), hint.map(str::to_owned))
        };
        // Other servers on this data folder change it too.
        let guard = private::create(&self.path.with_extension("lock")).map_err(failed)?;
        guard.lock().map_err(failed)?;
        let mut names = self.read().map_err(failed)?;
        let changed = change(&mut names);
        let text = serde_json::to_string_pretty(&names).map_err(|error| failed(error.into()))?;
        private::replace(&self.path, text).map_err(failed)?;
        Ok(changed)
    }

    fn read(&self) -> io::Result<BTreeMap<String, Named>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(serde_json::from_str(&text)
                .map_err(|error| io::Error::new(ErrorKind::InvalidData, format!("it is damaged: {error}")))?),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn names_are_read_as_they_were_written_by_this_and_older_versions() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        fs::write(folder.path().join(FILE), r#"{ "old": "smollm2-135m-instruct" }"#).expect("it is written");
        let parameters = Map::from_iter([("top_k".to_owned(), json!(7))]);
        let named = Named { of: "/a.gguf".to_owned(), preset: Preset { system: "Be brief.".to_owned(), parameters } };
        Names::in_folder(folder.path()).add("mine", named.clone()).expect("it is a name");
        let all = Names::in_folder(folder.path()).all();
        let old = Named { of: "smollm2-135m-instruct".to_owned(), preset: Preset::default() };
        assert_eq!(all, BTreeMap::from([("mine".to_owned(), named), ("old".to_owned(), old)]));
    }

    #[test]
    fn a_damaged_file_of_names_is_reported_and_not_overwritten() {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let path = folder.path().join(FILE);
        fs::write(&path, r#"{ "old": "smollm2"#).expect("it is written");
        let named = Named { of: "/a.gguf".to_owned(), preset: Preset::default() };
        let (message, hint) = Names::in_folder(folder.path()).add("mine", named).expect_err("it is damaged");
        assert!(message.contains("model-names.json cannot be changed: it is damaged: EOF"), "{message}");
        assert_eq!(hint.as_deref(), Some("restore the file or delete it"));
        assert_eq!(fs::read_to_string(&path).expect("it is there"), r#"{ "old": "smollm2"#);
    }
}
