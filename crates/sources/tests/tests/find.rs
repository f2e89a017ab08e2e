//! Which files are found, in what order, and how the other entries are reported.

use std::fs;
use std::path::{Path, PathBuf};

use sources::{Cause, Changes, Found, ReadOptions, Selection, SkipReason, Watch, find, find_selected, open, read};
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
    // Whether a file of an unknown type is a text is seen when it is read.
    assert_eq!(names(&root, &found.files), "b.txt a.txt pic.png .hidden.md");
    assert_eq!(names(&root, found.errors.iter().map(|error| &error.path)), "missing.txt");
    assert!(matches!(found.errors[0].cause, Cause::Io(_)));
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
    assert_eq!(names(&root, &found.files), "a/1.md a/b/2.md a/c/3.md");
    assert_eq!(names(&root, found.errors.iter().map(|error| &error.path)), "a/broken.md a/self.md");
    assert_eq!(skipped(&root, &found, SkipReason::Repeated), "a/b/linked a/b/loop a/same.md");
    assert_eq!(skipped(&root, &found, SkipReason::LinkOutside), "");
}

#[cfg(unix)]
#[test]
fn a_file_keeps_its_own_name_whatever_links_to_it() {
    use std::os::unix::fs::symlink;
    let root = tree(&["a/c/3.md", "a/z.md", "a/.kept/4.md", "a/.kept/5.md"]);
    symlink("z.md", root.path().join("a/0.md")).unwrap();
    symlink("c", root.path().join("a/b")).unwrap();
    symlink(".kept", root.path().join("a/k")).unwrap();
    fs::write(root.path().join("a/.kept/.gitignore"), "5.md\n").unwrap();
    let found = find_in(&root, &["a"]);
    assert_eq!(names(&root, &found.files), "a/c/3.md a/z.md a/k/4.md");
    assert_eq!(skipped(&root, &found, SkipReason::Repeated), "a/0.md a/b");
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
fn links_that_are_left_out_are_not_reported_wherever_they_lead() {
    use std::os::unix::fs::symlink;
    let root = tree(&["a/1.md", "out/2.md"]);
    for name in ["a/result", "a/bazel-out", "a/kept"] {
        symlink(root.path().join("out"), root.path().join(name)).unwrap();
    }
    symlink("../out/2.md", root.path().join("a/2.md")).unwrap();
    for name in ["a/result-lib", "a/bazel-bin.md", "a/broken.txt"] {
        symlink("nowhere", root.path().join(name)).unwrap();
    }
    fs::write(root.path().join("a/.gitignore"), "result*\n").unwrap();
    let check = |exclude: &str, ignored: &str, excluded: &str| {
        let selection = Selection::new(&["*.md".to_owned()], &[exclude.to_owned()]).unwrap();
        let found = find_selected(&[root.path().join("a")], &selection);
        assert_eq!(names(&root, &found.files), "a/1.md");
        assert_eq!(skipped(&root, &found, SkipReason::Ignored), ignored);
        assert_eq!(skipped(&root, &found, SkipReason::Excluded), excluded);
        // The file and the folder could hold what is included.
        assert_eq!(skipped(&root, &found, SkipReason::LinkOutside), "a/2.md a/kept");
        assert!(found.errors.is_empty(), "{:?}", found.errors);
    };
    check("bazel-*", "a/result a/result-lib", "a/bazel-bin.md a/bazel-out a/broken.txt");
    // Patterns for folders, and patterns that are taken back for folders: to git a link is a file.
    fs::write(root.path().join("a/.gitignore"), "bazel-*/\n*.txt\nresult*\n!result*/\n").unwrap();
    check("none", "a/bazel-bin.md a/bazel-out a/broken.txt a/result a/result-lib", "");
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
    let error = read(&pipe, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error.cause, Cause::NotAFile));
}

#[cfg(unix)]
#[test]
fn what_this_user_may_not_read_is_reported_as_such() {
    use std::io::ErrorKind;
    use std::os::unix::fs::PermissionsExt;
    let root = tree(&["a/1.md", "a/Inbox", "a/closed/2.md", "a/open.md", "a/other"]);
    let allow = |name: &str, mode| {
        fs::set_permissions(root.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    let closed = ["a/1.md", "a/Inbox", "a/closed"];
    closed.iter().for_each(|name| allow(name, 0));
    if fs::read(root.path().join("a/1.md")).is_ok() {
        return eprintln!("skipped: this user may read everything");
    }
    let found = find_in(&root, &["a"]);
    let file = read(&root.path().join("a/1.md"), &ReadOptions::default()).unwrap_err();
    closed.iter().for_each(|name| allow(name, 0o700));
    assert_eq!(names(&root, &found.files), "a/1.md a/open.md");
    assert_eq!(names(&root, found.errors.iter().map(|error| &error.path)), "a/Inbox a/closed");
    assert_eq!(skipped(&root, &found, SkipReason::UnknownKind), "a/other");
    let is_denied = |cause: &Cause| matches!(cause, Cause::Io(error) if error.kind() == ErrorKind::PermissionDenied);
    assert!(found.errors.iter().chain([&file]).all(|error| is_denied(&error.cause)), "{found:?}");
}

#[test]
fn gitignore_files_are_honoured_up_to_the_repository() {
    let root = tree(&[
        "repo/docs/a.md",
        "repo/docs/draft.md",
        "repo/docs/keep/draft.md",
        "repo/docs/build/b.md",
        "repo/docs/deep/c.md",
        "repo/docs/deep/c.txt",
    ]);
    let write = |file: &str, text: &str| fs::write(root.path().join(file), text).unwrap();
    write(".gitignore", "a.md\n");
    fs::create_dir(root.path().join("repo/.git")).unwrap();
    write("repo/.gitignore", "draft.md\n/docs/build/\n");
    write("repo/docs/keep/.gitignore", "!draft.md\n");
    write("repo/docs/deep/.gitignore", "*.txt\n");
    let found = find_in(&root, &["repo/docs"]);
    assert_eq!(names(&root, &found.files), "repo/docs/a.md repo/docs/deep/c.md repo/docs/keep/draft.md");
    assert_eq!(skipped(&root, &found, SkipReason::Ignored), "repo/docs/build repo/docs/deep/c.txt repo/docs/draft.md");
    // A folder that is named is read, even if its repository ignores it.
    assert_eq!(names(&root, &find_in(&root, &["repo/docs/build"]).files), "repo/docs/build/b.md");
}

#[test]
fn patterns_select_files_and_leave_out_folders() {
    let root = tree(&["a.md", "b.txt", "notes/a.md", "notes/old/a.md", "old/a.md", "x/notes/a.md"]);
    let check = |include: &[&str], exclude: &[&str], expect: &str| {
        let strings = |patterns: &[&str]| patterns.iter().map(ToString::to_string).collect::<Vec<_>>();
        let selection = Selection::new(&strings(include), &strings(exclude)).unwrap();
        let found = find_selected(&[root.path().to_owned()], &selection);
        assert_eq!(names(&root, &found.files), expect, "{include:?} {exclude:?}");
    };
    check(&["*.md"], &[], "a.md notes/a.md notes/old/a.md old/a.md x/notes/a.md");
    check(&["notes/*.md"], &[], "notes/a.md");
    check(&["notes/**"], &["old"], "notes/a.md");
    check(&[], &["/old/", "*.txt", "x/**"], "a.md notes/a.md notes/old/a.md");
    check(&["*.{txt,rst}"], &[], "b.txt");
    let error = Selection::new(&["[a".to_owned()], &[]).unwrap_err();
    assert_eq!(error.to_string(), "`[a` is no pattern: unclosed character class; missing ']'");
    // A file that is named is read.
    let selection = Selection::new(&["*.md".to_owned()], &[]).unwrap();
    assert_eq!(find_selected(&[root.path().join("b.txt")], &selection).files.len(), 1);
}

#[test]
fn files_beside_exported_chats_are_passed_over() {
    let root = tree(&["slack/users.json", "slack/channels.json", "slack/news/2024-05-01.json", "other/users.json"]);
    let found = find_in(&root, &[""]);
    assert_eq!(names(&root, &found.files), "other/users.json slack/news/2024-05-01.json");
    assert_eq!(skipped(&root, &found, SkipReason::NoMessages), "slack/channels.json slack/users.json");
}

#[test]
fn files_that_programs_leave_beside_documents_are_passed_over() {
    let root = tree(&["a.docx", "~$a.docx", "b/.~lock.a.odt#", "b/Thumbs.db", ".DS_Store", "desktop.ini"]);
    let found = find_in(&root, &[""]);
    assert_eq!(names(&root, &found.files), "a.docx");
    let left = ".DS_Store b/.~lock.a.odt# b/Thumbs.db desktop.ini ~$a.docx";
    assert_eq!(skipped(&root, &found, SkipReason::Temporary), left);
    let options = ReadOptions::default();
    for name in left.split(' ') {
        let path = root.path().join(name);
        let causes = [open(&path, &options).unwrap_err().cause, read(&path, &options).unwrap_err().cause];
        assert!(causes.iter().all(|cause| matches!(cause, Cause::Temporary)), "{name}: {causes:?}");
    }
}

#[test]
fn a_watch_reports_files_once_they_have_settled() {
    let root = tree(&["a.md", "b.md"]);
    let path = |name: &str| root.path().join(name);
    let mut watch = Watch::new(&[root.path().to_owned()], Selection::default());
    let changed =
        |names: &[&str]| Changes { changed: names.iter().map(|name| path(name)).collect(), ..Changes::default() };
    assert_eq!(watch.look(), Changes::default());
    // A file that grows is reported when it has stopped growing.
    for text in ["x", "xy", "xyz"] {
        fs::write(path("new.md"), text).unwrap();
        assert_eq!(watch.look(), Changes::default());
    }
    assert_eq!(watch.look(), changed(&["new.md"]));
    assert_eq!(watch.look(), Changes::default());
    // An editor moves a file away and another in its place.
    fs::rename(path("a.md"), path("a.md~")).unwrap();
    assert_eq!(watch.look(), Changes::default());
    fs::write(path(".a.swp"), "another text").unwrap();
    fs::rename(path(".a.swp"), path("a.md")).unwrap();
    assert_eq!(watch.look(), Changes::default());
    assert_eq!(watch.look(), changed(&["a.md"]));
    fs::remove_file(path("b.md")).unwrap();
    assert_eq!(watch.look(), Changes::default());
    assert_eq!(watch.look(), Changes { removed: vec![path("b.md")], ..Changes::default() });
    assert_eq!(watch.look(), Changes::default());
}

#[cfg(unix)]
#[test]
fn a_watch_reports_no_file_as_gone_while_its_folder_cannot_be_read() {
    use std::os::unix::fs::symlink;
    let root = tree(&["a/1.md", "a/2.md", "b.md"]);
    let path = |name: &str| root.path().join(name);
    let mut watch = Watch::new(&[root.path().to_owned()], Selection::default());
    fs::rename(path("a"), path(".a")).unwrap();
    symlink("a", path("a")).unwrap();
    fs::remove_file(path("b.md")).unwrap();
    let gone =
        |names: &[&str]| Changes { removed: names.iter().map(|name| path(name)).collect(), ..Changes::default() };
    assert_eq!([watch.look(), watch.look(), watch.look()], [gone(&[]), gone(&["b.md"]), gone(&[])]);
    // When it can be read again, what is not there is gone.
    fs::remove_file(path("a")).unwrap();
    fs::rename(path(".a"), path("a")).unwrap();
    fs::remove_file(path("a/2.md")).unwrap();
    assert_eq!([watch.look(), watch.look()], [gone(&[]), gone(&["a/2.md"])]);
}
