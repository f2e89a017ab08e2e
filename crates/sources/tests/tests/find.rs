//! Which files are found, in what order, and what is said of the rest.

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
fn folders_are_walked_in_order_and_the_rest_is_named() {
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
fn what_was_named_is_never_dropped() {
    let root = tree(&["b.txt", "a.txt", "pic.png", ".hidden.md"]);
    let found = find_in(&root, &["b.txt", "missing.txt", "a.txt", "pic.png", ".hidden.md"]);
    assert_eq!(names(&root, &found.files), "b.txt a.txt .hidden.md");
    assert_eq!(names(&root, found.errors.iter().map(|error| &error.path)), "missing.txt pic.png");
    assert!(matches!(found.errors[0].cause, Cause::Io(_)));
    assert!(matches!(found.errors[1].cause, Cause::UnknownKind));
}

#[test]
fn a_file_named_twice_is_found_once() {
    let root = tree(&["b/1.md", "b/2.md"]);
    let found = find_in(&root, &["b/2.md", "b", "b/../b/1.md"]);
    assert_eq!(names(&root, &found.files), "b/2.md b/1.md");
    assert_eq!(found.skipped.len(), 2);
    assert!(found.skipped.iter().all(|skipped| skipped.reason == SkipReason::Repeated));
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_their_loops_end() {
    use std::os::unix::fs::symlink;
    let root = tree(&["a/1.md", "elsewhere/2.md"]);
    symlink(root.path(), root.path().join("a/loop")).unwrap();
    symlink(root.path().join("a/1.md"), root.path().join("a/same.md")).unwrap();
    symlink(root.path().join("elsewhere"), root.path().join("a/linked")).unwrap();
    symlink(root.path().join("nowhere"), root.path().join("a/broken.md")).unwrap();
    symlink("self.md", root.path().join("a/self.md")).unwrap();
    let found = find_in(&root, &["a"]);
    assert_eq!(names(&root, &found.files), "a/1.md a/linked/2.md");
    assert_eq!(names(&root, found.errors.iter().map(|error| &error.path)), "a/broken.md a/self.md");
    assert_eq!(skipped(&root, &found, SkipReason::Repeated), "a/loop/a a/loop/elsewhere a/same.md");
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
