//! Which files are found, in what order, and how the other entries are reported.

use std::fs;
use std::path::{Path, PathBuf};

use sources::{Cause, Found, SkipReason, find};
use tempfile::TempDir;

fn tree(files: &[&str]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for file in files {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    root
}

fn find_in(root: &TempDir, names: &[&str]) -> Found {
    find(&names.iter().map(|name| root.path().join(name)).collect::<Vec<_>>())
}

/// Paths below the root, joined by spaces.
fn names<'a>(root: &TempDir, paths: impl IntoIterator<Item = &'a PathBuf>) -> String {
    let names = paths.into_iter().map(|path| path.strip_prefix(root.path()).unwrap_or(Path::new("")).to_str().unwrap());
    names.collect::<Vec<_>>().join(" ")
}

fn skipped(root: &TempDir, found: &Found, reason: SkipReason) -> String {
    names(root, found.skipped.iter().filter(|skipped| skipped.reason == reason).map(|skipped| &skipped.path))
}

#[test]
fn folders_are_walked_in_order_and_other_entries_are_reported() {
    let root = tree(&[
        "b/2.md",
        "b/10.md",
        "a.txt",
        "b/c/d.PDF",
        "z.jsonl",
        ".git/x.txt",
        "b/.hidden.md",
        "b/pic.png",
        "README",
    ]);
    let found = find_in(&root, &[""]);
    assert_eq!(names(&root, &found.files), "a.txt b/10.md b/2.md b/c/d.PDF z.jsonl");
    assert_eq!(skipped(&root, &found, SkipReason::Hidden), ".git b/.hidden.md");
    assert_eq!(skipped(&root, &found, SkipReason::UnknownKind), "README b/pic.png");
    assert!(found.errors.is_empty());
}

#[test]
fn every_given_path_is_found_or_an_error() {
    let root = tree(&["b.txt", "a.txt", "pic.png", ".hidden.md"]);
    let found = find_in(&root, &["b.txt", "missing.txt", "a.txt", "pic.png", ".hidden.md"]);
    assert_eq!(names(&root, &found.files), "b.txt a.txt .hidden.md");
    assert_eq!(names(&root, found.errors.iter().map(|error| &error.path)), "missing.txt pic.png");
    assert!(matches!(found.errors[0].cause, Cause::Io(_)));
    assert!(matches!(found.errors[1].cause, Cause::UnknownKind));
}

#[test]
fn a_file_given_twice_is_found_once() {
    let root = tree(&["b/1.md", "b/2.md"]);
    let found = find_in(&root, &["b/2.md", "b", "b/../b/1.md"]);
    assert_eq!(names(&root, &found.files), "b/2.md b/1.md");
    assert_eq!(found.skipped.len(), 2);
    assert!(found.skipped.iter().all(|skipped| skipped.reason == SkipReason::Repeated));
}

#[cfg(unix)]
#[test]
fn links_within_the_folder_are_followed_and_their_loops_end() {
    use std::os::unix::fs::symlink;
    let root = tree(&["a/1.md", "a/b/2.md", "a/c/3.md"]);
    symlink(root.path().join("a"), root.path().join("a/b/loop")).unwrap();
    symlink(root.path().join("a/1.md"), root.path().join("a/same.md")).unwrap();
    symlink("../c", root.path().join("a/b/linked")).unwrap();
    symlink(root.path().join("nowhere"), root.path().join("a/broken.md")).unwrap();
    symlink("self.md", root.path().join("a/self.md")).unwrap();
    let found = find_in(&root, &["a"]);
    assert_eq!(names(&root, &found.files), "a/1.md a/b/2.md a/b/linked/3.md");
    assert_eq!(names(&root, found.errors.iter().map(|error| &error.path)), "a/broken.md a/self.md");
    assert_eq!(skipped(&root, &found, SkipReason::Repeated), "a/b/loop a/c a/same.md");
    assert_eq!(skipped(&root, &found, SkipReason::LinkOutside), "");
}

#[cfg(unix)]
#[test]
fn links_that_leave_the_given_folder_are_skipped_and_reported() {
    use std::os::unix::fs::symlink;
    let root = tree(&["a/1.md", "secret/2.md", "ab/3.md"]);
    symlink(root.path(), root.path().join("a/up")).unwrap();
    symlink(root.path().join("secret"), root.path().join("a/folder")).unwrap();
    symlink("../secret/2.md", root.path().join("a/file.md")).unwrap();
    symlink("../ab/3.md", root.path().join("a/same_prefix.md")).unwrap();
    symlink(root.path().join("secret"), root.path().join("given")).unwrap();
    let found = find_in(&root, &["a", "given"]);
    assert_eq!(names(&root, &found.files), "a/1.md given/2.md");
    assert_eq!(skipped(&root, &found, SkipReason::LinkOutside), "a/file.md a/folder a/same_prefix.md a/up");
    assert!(found.errors.is_empty());
}

#[cfg(unix)]
#[test]
fn a_pipe_is_neither_opened_nor_waited_for() {
    use std::process::Command;
    let root = tree(&["a/1.md"]);
    let pipe = root.path().join("a/pipe.txt");
    if !Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped: mkfifo is missing");
    }
    let found = find_in(&root, &["a", "a/pipe.txt"]);
    assert_eq!(names(&root, &found.files), "a/1.md");
    assert_eq!(skipped(&root, &found, SkipReason::NotAFile), "a/pipe.txt");
    assert!(matches!(found.errors[0].cause, Cause::NotAFile));
    let error = sources::read(&pipe, &sources::ReadOptions::default()).unwrap_err();
    assert!(matches!(error.cause, Cause::NotAFile));
}
