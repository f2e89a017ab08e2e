//! Finds the files to read under the paths given by a user: walks folders and reports what is skipped.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::Gitignore;

use crate::kind::is_temporary;
use crate::{Cause, Kind, Selection, SourceError, mailbox};

/// The contents of the given paths.
#[derive(Debug, Default)]
pub struct Found {
    /// The files to read: in the order given, within a folder sorted by name, and after them what only links lead to.
    pub files: Vec<PathBuf>,
    /// The other entries of the folders.
    pub skipped: Vec<Skipped>,
    /// Given paths that cannot be read, folders that cannot be listed, entries of folders that cannot be examined, and files
    /// without an extension that cannot be opened to see whether they are mailboxes.
    pub errors: Vec<SourceError>,
}

/// An entry of a folder that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its path.
    pub path: PathBuf,
    /// Why it is not read.
    pub reason: SkipReason,
}

/// Why an entry of a folder is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its name starts with a dot.
    Hidden,
    /// Its extension is that of no supported file type; without one, it is no mailbox.
    UnknownKind,
    /// A device, a socket or a pipe.
    NotAFile,
    /// The same file or folder was found before: given twice, or a link.
    Repeated,
    /// A symbolic link to something outside the folder that was given.
    LinkOutside,
    /// A `.gitignore` file says so.
    Ignored,
    /// Not selected by the patterns that were given.
    Excluded,
    /// A file of an exported chat that holds no messages.
    NoMessages,
    /// A lock or another file that programs leave beside documents: `~$report.docx`, `Thumbs.db`.
    Temporary,
}

/// Files beside the conversations of ChatGPT's, Claude's and Slack's exports.
const BESIDE_CHATS: [&str; 16] = [
    "canvases.json",
    "channels.json",
    "chat.html",
    "dms.json",
    "file_conversations.json",
    "groups.json",
    "integration_logs.json",
    "memories.json",
    "message_feedback.json",
    "model_comparisons.json",
    "mpims.json",
    "projects.json",
    "shared_conversations.json",
    "user.json",
    "user_settings.json",
    "users.json",
];

/// Lists the files to read under `paths`, walking folders, each file and folder once.
///
/// Files of folders must be of a supported type or, without an extension, mailboxes, and `.gitignore` files are honoured, also those above a given folder up to
/// its repository. A file that is itself one of `paths` may be of any type.
///
/// A symbolic link within a folder is followed only if its target is inside that folder: reading a folder must not read
/// files that another user linked into it. What a folder has under a name of its own has that name, whatever links to it. A link
/// that is itself one of `paths` is followed.
///
/// A given path that does not exist becomes an error entry.
pub fn find(paths: &[PathBuf]) -> Found {
    find_selected(paths, &Selection::default())
}

/// The same for files of folders that are selected. Files that are themselves in `paths` are selected by that.
pub fn find_selected(paths: &[PathBuf], selection: &Selection) -> Found {
    let mut search = Search {
        found: Found::default(),
        selection,
        reached: HashSet::new(),
        given: PathBuf::new(),
        root: PathBuf::new(),
        ignores: Vec::new(),
        links: Vec::new(),
    };
    for path in paths {
        search.given(path);
    }
    search.found
}

struct Search<'a> {
    found: Found,
    selection: &'a Selection,
    /// Canonical paths of the files and folders already found; this also ends loops of links.
    reached: HashSet<PathBuf>,
    /// The given folder that is being walked, and its canonical path.
    given: PathBuf,
    root: PathBuf,
    /// The `.gitignore` files of the folders that are open, outermost first.
    ignores: Vec<Gitignore>,
    /// Links within the given folder, each with `ignores` there; they are followed once the folder has been walked.
    links: Vec<(PathBuf, Vec<Gitignore>)>,
}

impl Search<'_> {
    fn given(&mut self, path: &Path) {
        match fs::metadata(path) {
            Err(error) => self.found.errors.push(Cause::Io(error).at(path)),
            Ok(meta) if meta.is_dir() => match fs::canonicalize(path) {
                Ok(root) => {
                    self.ignores = ignores_above(&root);
                    (self.root, self.given) = (root, path.to_owned());
                    self.folder(path);
                    self.follow_links();
                }
                Err(error) => self.found.errors.push(Cause::Io(error).at(path)),
            },
            Ok(meta) if !meta.is_file() => self.found.errors.push(Cause::NotAFile.at(path)),
            Ok(_) => self.file(path),
        }
    }

    fn folder(&mut self, path: &Path) {
        if !self.reach(path) {
            return;
        }
        let entries = fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
        let mut entries: Vec<PathBuf> = match entries {
            Ok(entries) => entries,
            Err(error) => return self.found.errors.push(Cause::Io(error).at(path)),
        };
        entries.sort();
        let ignores = self.ignores.len();
        self.ignores.extend(ignores_in(&self.place(path)));
        for entry in entries {
            self.entry(&entry);
        }
        self.ignores.truncate(ignores);
    }

    fn follow_links(&mut self) {
        while !self.links.is_empty() {
            for (link, ignores) in std::mem::take(&mut self.links) {
                self.ignores = ignores;
                match fs::metadata(&link) {
                    Ok(meta) => self.take(&link, &meta),
                    Err(error) => self.found.errors.push(Cause::Io(error).at(&link)),
                }
            }
        }
    }

    /// A path below the given folder as a path below its canonical path.
    fn place(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.given).map_or_else(|_| path.to_owned(), |below| self.root.join(below))
    }

    /// Whether the `.gitignore` files say that an entry is not to be read.
    fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        let place = self.place(path);
        // The innermost file that mentions the entry decides.
        let mut matches = self.ignores.iter().rev().map(|file| file.matched(&place, is_folder));
        matches!(matches.find(|found| !found.is_none()), Some(Match::Ignore(_)))
    }

    /// Why an entry is not selected.
    fn left_out(&self, path: &Path, is_folder: bool) -> Option<SkipReason> {
        if self.ignores(path, is_folder) {
            return Some(SkipReason::Ignored);
        }
        let below = path.strip_prefix(&self.given).unwrap_or(path);
        let is_selected = if is_folder { self.selection.enters(below) } else { self.selection.has(below) };
        (!is_selected).then_some(SkipReason::Excluded)
    }

    fn entry(&mut self, path: &Path) {
        if is_temporary(path) {
            return self.skip(path, SkipReason::Temporary);
        }
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if hidden {
            return self.skip(path, SkipReason::Hidden);
        }
        let meta = fs::metadata(path);
        let is_folder = meta.as_ref().is_ok_and(fs::Metadata::is_dir);
        if let Some(reason) = self.left_out(path, is_folder) {
            return self.skip(path, reason);
        }
        let is_link = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
        let leaves = is_link && self.leaves(path);
        // To git a link is a file. A pattern for folders means a link to a folder too, which may not be there now.
        if (leaves || meta.is_err()) && self.ignores(path, !is_folder) {
            return self.skip(path, SkipReason::Ignored);
        }
        match meta {
            _ if leaves => self.skip(path, SkipReason::LinkOutside),
            Err(error) => self.found.errors.push(Cause::Io(error).at(path)),
            Ok(_) if is_link => self.links.push((path.to_owned(), self.ignores.clone())),
            Ok(meta) => self.take(path, &meta),
        }
    }

    /// Takes an entry that is not left out.
    fn take(&mut self, path: &Path, meta: &fs::Metadata) {
        if meta.is_dir() {
            self.folder(path);
        } else if Kind::of_file(path).is_none() {
            match mailbox::check_readable(path) {
                Ok(()) => self.skip(path, SkipReason::UnknownKind),
                Err(error) => self.found.errors.push(Cause::Io(error).at(path)),
            }
        } else if is_beside_chats(path) {
            self.skip(path, SkipReason::NoMessages);
        } else if meta.is_file() {
            self.file(path);
        } else {
            self.skip(path, SkipReason::NotAFile);
        }
    }

    fn file(&mut self, path: &Path) {
        if self.reach(path) {
            self.found.files.push(path.to_owned());
        }
    }

    /// Whether a link leads to something outside the given folder. One without a target is reported as an error later.
    fn leaves(&self, link: &Path) -> bool {
        fs::canonicalize(link).is_ok_and(|target| !target.starts_with(&self.root))
    }

    /// Whether `path` was not found before.
    fn reach(&mut self, path: &Path) -> bool {
        match fs::canonicalize(path).map(|place| self.reached.insert(place)) {
            Ok(true) => return true,
            Ok(false) => self.skip(path, SkipReason::Repeated),
            Err(error) => self.found.errors.push(Cause::Io(error).at(path)),
        }
        false
    }

    fn skip(&mut self, path: &Path, reason: SkipReason) {
        self.found.skipped.push(Skipped { path: path.to_owned(), reason });
    }
}

/// The `.gitignore` file of a folder.
fn ignores_in(folder: &Path) -> Option<Gitignore> {
    let file = folder.join(".gitignore");
    // Lines that are no patterns are passed over, as git does.
    file.is_file().then(|| Gitignore::new(file).0)
}

/// The `.gitignore` files above a folder that is inside a repository, outermost first.
fn ignores_above(folder: &Path) -> Vec<Gitignore> {
    let Some(repository) = folder.ancestors().find(|above| above.join(".git").exists()) else { return Vec::new() };
    let above = folder.ancestors().skip(1).take_while(|above| above.starts_with(repository));
    let mut ignores: Vec<Gitignore> = above.filter_map(ignores_in).collect();
    ignores.reverse();
    ignores
}

/// Whether a file of an export holds no messages.
fn is_beside_chats(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let has = |name| path.with_file_name(name).is_file();
    BESIDE_CHATS.contains(&name) && (has("conversations.json") || has("users.json") && has("channels.json"))
}
