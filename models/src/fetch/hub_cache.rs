//! The cache that the Hugging Face tools share: read in place, never written, no network.
//! Layout: `models--<owner>--<name>/{refs/<revision>, snapshots/<commit>/<file>}`, the files mostly being links to
//! `blobs/<etag>`, where the etag of a large file is its SHA-256 digest.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::digest::check_size;
use super::name::HubName;
use super::repository::{RepoFile, Repository};
use super::{FetchError, Fetched, FetchedFile, SourceUsed};
use crate::manifest::{Choice, FileSpec, Sha256Hex};

/// Finds the cache as the Hugging Face tools do: `HF_HUB_CACHE`, `HUGGINGFACE_HUB_CACHE`, `HF_HOME/hub`,
/// `XDG_CACHE_HOME/huggingface/hub`, `~/.cache/huggingface/hub`.
pub fn hub_cache_dir() -> PathBuf {
    let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    cache_named_by(named).unwrap_or_else(|| env::home_dir().unwrap_or_default().join(".cache/huggingface/hub"))
}

fn cache_named_by(named: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    named("HF_HUB_CACHE")
        .or_else(|| named("HUGGINGFACE_HUB_CACHE"))
        .or_else(|| Some(named("HF_HOME")?.join("hub")))
        .or_else(|| Some(named("XDG_CACHE_HOME")?.join("huggingface/hub")))
}

/// Opens a variant from the cache: the snapshot of the revision, or else any snapshot that has all the files.
pub(super) fn open(choice: Choice<'_>, repo: &str, revision: &str, cache: &Path) -> Result<Fetched, FetchError> {
    let folder = cache.join(format!("models--{}", repo.replace('/', "--")));
    let mut failure = None;
    for snapshot in snapshots(&folder, revision) {
        match files_in(&snapshot, &choice.variant.files) {
            Ok(files) => {
                let source = SourceUsed::HubCache { repo: repo.to_owned(), folder: snapshot };
                return Ok(Fetched { files, format: choice.variant.format, source });
            }
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    let first = || FetchError::NotCached { lacking: choice.variant.files[0].name.clone() };
    Err(failure.unwrap_or_else(first))
}

/// Opens what a name means in the cache, if its revision is there with all the files.
pub(super) fn open_named(name: &HubName, cache: &Path) -> Option<Fetched> {
    let folder = cache.join(format!("models--{}", name.repo.replace('/', "--")));
    let commit = fs::read_to_string(folder.join("refs").join(name.revision()));
    let commit = commit.map_or_else(|_| name.revision().to_owned(), |commit| commit.trim().to_owned());
    let snapshot = folder.join("snapshots").join(&commit);
    let mut files = Vec::new();
    list_files(&snapshot, "", &mut files);
    let (format, specs) = Repository { commit, licence: None, files }.select(name).ok()?;
    let files = specs.into_iter().map(|spec| FetchedFile { role: spec.role, path: snapshot.join(spec.name) }).collect();
    Some(Fetched { files, format, source: SourceUsed::HubCache { repo: name.repo.clone(), folder: snapshot } })
}

/// Adds the files of a folder and of its subfolders, which may be links; a broken link is no file.
fn list_files(folder: &Path, prefix: &str, files: &mut Vec<RepoFile>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match fs::metadata(entry.path()) {
            Ok(found) if found.is_dir() => list_files(&entry.path(), &format!("{name}/"), files),
            Ok(found) => files.push(RepoFile { name, bytes: Some(found.len()), sha256: None }),
            Err(_) => {}
        }
    }
}

/// Lists the snapshots of a repository, the one that `revision` means first.
fn snapshots(repo_folder: &Path, revision: &str) -> Vec<PathBuf> {
    let meant = fs::read_to_string(repo_folder.join("refs").join(revision));
    let meant = repo_folder.join("snapshots").join(meant.as_deref().unwrap_or(revision).trim());
    let Ok(entries) = fs::read_dir(repo_folder.join("snapshots")) else { return Vec::new() };
    let mut snapshots: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    snapshots.sort_by_key(|snapshot| (*snapshot != meant, snapshot.clone()));
    snapshots
}

fn files_in(snapshot: &Path, wanted: &[FileSpec]) -> Result<Vec<FetchedFile>, FetchError> {
    let find = |spec: &FileSpec| {
        let path = snapshot.join(&spec.name);
        let Ok(metadata) = fs::metadata(&path) else {
            return Err(FetchError::NotCached { lacking: spec.name.clone() });
        };
        check_size(&path, spec.bytes, metadata.len())?;
        check_etag(&path, spec)?;
        Ok(FetchedFile { role: spec.role, path })
    };
    wanted.iter().map(find).collect()
}

/// Holds the etag in a blob's name, where it is a digest, against the manifest.
fn check_etag(path: &Path, spec: &FileSpec) -> Result<(), FetchError> {
    match (&spec.sha256, etag_digest(path)) {
        (Some(expected), Some(found)) if *expected != found => {
            Err(FetchError::WrongDigest { path: path.to_owned(), expected: expected.clone(), found })
        }
        _ => Ok(()),
    }
}

/// Reads a file's digest off the name of the blob that it links to; small files and copies have none.
pub(super) fn etag_digest(path: &Path) -> Option<Sha256Hex> {
    let blob = fs::read_link(path).ok()?;
    Sha256Hex::try_from(blob.file_name()?.to_str()?.to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_cache() {
        let check = |variables: &[(&str, &str)], expected: Option<&str>| {
            let named = |wanted: &str| {
                let found = variables.iter().find(|(variable, _)| *variable == wanted);
                found.map(|(_, value)| PathBuf::from(value))
            };
            assert_eq!(cache_named_by(named).as_deref(), expected.map(Path::new));
        };
        check(&[], None);
        check(&[("XDG_CACHE_HOME", "/x")], Some("/x/huggingface/hub"));
        check(&[("XDG_CACHE_HOME", "/x"), ("HF_HOME", "/h")], Some("/h/hub"));
        check(&[("HF_HOME", "/h"), ("HUGGINGFACE_HUB_CACHE", "/old")], Some("/old"));
        check(&[("HUGGINGFACE_HUB_CACHE", "/old"), ("HF_HUB_CACHE", "/c")], Some("/c"));
    }
}
