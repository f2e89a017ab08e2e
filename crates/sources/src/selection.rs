//! Which files of a folder are read: patterns to include and to exclude.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns in the form of `.gitignore`: `*.md` matches in every folder, `notes/*.md` from the given folder on, `**` any number
/// of folders. By default all files are selected.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    include: Option<GlobSet>,
    exclude: GlobSet,
}

/// A pattern that is none.
#[derive(Debug, thiserror::Error)]
#[error("`{pattern}` is no pattern: {reason}")]
pub struct InvalidPattern {
    pattern: String,
    reason: String,
}

impl Selection {
    /// Files that match a pattern of `include`, if there are any, and none of `exclude`; nothing in an excluded folder is read.
    ///
    /// # Errors
    /// [`InvalidPattern`].
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, InvalidPattern> {
        let include = if include.is_empty() { None } else { Some(patterns(include)?) };
        Ok(Selection { include, exclude: patterns(exclude)? })
    }

    /// Whether a file is selected, by its path below the given folder.
    pub(crate) fn has(&self, file: &Path) -> bool {
        self.include.as_ref().is_none_or(|include| include.is_match(file)) && !self.exclude.is_match(file)
    }

    /// Whether files of a folder can be selected.
    pub(crate) fn enters(&self, folder: &Path) -> bool {
        !self.exclude.is_match(folder)
    }
}

fn patterns(patterns: &[String]) -> Result<GlobSet, InvalidPattern> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let bare = pattern.strip_suffix('/').unwrap_or(pattern);
        let anchored = match bare.strip_prefix('/') {
            Some(anchored) => anchored.to_owned(),
            None if bare.contains('/') => bare.to_owned(),
            None => format!("**/{bare}"),
        };
        let invalid =
            |reason: globset::Error| InvalidPattern { pattern: pattern.clone(), reason: reason.kind().to_string() };
        set.add(GlobBuilder::new(&anchored).literal_separator(true).build().map_err(invalid)?);
    }
    set.build().map_err(|reason| InvalidPattern { pattern: patterns.join(" "), reason: reason.kind().to_string() })
}
