//! The folder of corpora: names, locks, lists, removal, read-only folders.

use std::fs;
use std::sync::Arc;
use std::thread;

use store::{Corpora, CorpusName, Counts, Error};

use crate::scratch::{Outcome, Scratch, author, put_lines};

#[test]
fn a_corpus_is_never_listed_without_its_title() {
    let scratch = Scratch::new();
    let create = || drop(scratch.corpora.create_titled("A B", |name| name == "a-b-2").unwrap());
    thread::scope(|scope| {
        let created = scope.spawn(|| (0..100).for_each(|_| create()));
        while !created.is_finished() {
            for listing in scratch.corpora.list().unwrap() {
                assert_eq!(listing.title, "A B", "{}", listing.name);
            }
        }
    });
    assert!(matches!(scratch.corpora.open("a-b-2"), Err(Error::UnknownCorpus { .. })), "its name was taken");
    drop(scratch.corpora.create_named("other", "Other").unwrap());
    assert!(matches!(scratch.corpora.create_named("refused", "a\nb"), Err(Error::InvalidTitle { .. })));
    let titles = scratch.corpora.list().unwrap().into_iter().map(|listing| listing.title);
    assert_eq!(titles.filter(|title| title != "A B").collect::<Vec<_>>(), ["Other"]);
}

#[test]
fn only_plain_names_name_corpora() {
    let scratch = Scratch::new();
    let check = |name: &str, valid: bool| {
        let created = scratch.corpora.create(name);
        match created {
            Ok(_) => assert!(valid, "{name:?} was taken"),
            Err(Error::InvalidName { .. }) => assert!(!valid, "{name:?} was refused"),
            Err(other) => panic!("{name:?}: {other}"),
        }
    };
    for valid in ["a", "0", "notes-2024_v1.2", "x..y", &"n".repeat(64)] {
        check(valid, true);
    }
    for invalid in [
        "",
        ".",
        "..",
        ".hidden",
        "-x",
        "_x",
        "A",
        "a b",
        "a/b",
        "a\\b",
        "../x",
        "/x",
        "é",
        "a\0",
        "a\n",
        &"n".repeat(65),
    ] {
        check(invalid, false);
        assert!(CorpusName::like(invalid).to_string().parse::<CorpusName>().is_ok(), "{invalid:?}");
    }
    assert_eq!(CorpusName::like("Magi").to_string(), "magi");
}

#[test]
fn opening_creates_nothing_and_suggests_names() -> Outcome {
    let scratch = Scratch::new();
    let check = |name: &str, expected: &[&str]| {
        for outcome in [
            scratch.corpora.open(name).map(drop),
            scratch.corpora.open_writer(name).map(drop),
            scratch.corpora.remove(name),
        ] {
            match outcome {
                Err(Error::UnknownCorpus { nearest, .. }) => assert_eq!(nearest, expected, "suggestions for {name}"),
                other => panic!("{name}: {other:?}"),
            }
        }
    };
    check("letters", &[]);
    assert_eq!(fs::read_dir(scratch.folder.path())?.count(), 0);
    for name in ["letters", "letters-2023", "novels"] {
        scratch.corpora.create(name)?;
    }
    check("leters", &["letters"]);
    check("letter", &["letters", "letters-2023"]);
    check("novel", &["novels"]);
    check("minutes", &[]);
    assert_eq!(scratch.corpora.list()?.len(), 3);
    let message = scratch.corpora.open("letter").map(drop).map_err(|error| error.to_string());
    assert_eq!(message, Err("there is no corpus `letter`; is it `letters` or `letters-2023`?".to_owned()));
    Ok(())
}

#[test]
fn a_corpus_is_created_once() -> Outcome {
    let scratch = Scratch::new();
    scratch.corpora.create("once")?;
    assert!(matches!(scratch.corpora.create("once"), Err(Error::CorpusExists { .. })));
    Ok(())
}

#[test]
fn one_writer_beside_many_readers() -> Outcome {
    let scratch = Scratch::new();
    let corpora = &scratch.corpora;
    let busy = |outcome: store::Result<()>| match outcome {
        Err(Error::CorpusBusy { holder, .. }) => {
            let holder = holder.expect("the holder has written who it is");
            assert_eq!(holder.pid, std::process::id());
            assert!(holder.command.contains("tests"), "{holder}");
        }
        other => panic!("{other:?} instead of busy"),
    };
    let mut writer = scratch.writer();
    busy(corpora.open_writer("scratch").map(drop));
    busy(corpora.remove("scratch"));
    assert_eq!(corpora.list()?.len(), 1, "corpora are listed while one is open for writing");
    let readers = (corpora.open("scratch")?, corpora.open("scratch")?);
    put_lines(&mut writer, "a", "one\ntwo\n")?;
    busy(writer.remove_document(writer.documents()?[0].id));
    drop(writer);
    busy(corpora.remove("scratch"));
    drop(readers);
    let mut writer = corpora.open_writer("scratch")?;
    writer.remove_document(writer.documents()?[0].id)?;
    Ok(())
}

#[test]
fn a_reader_sees_the_corpus_as_it_was_when_it_was_opened() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    put_lines(&mut writer, "a", "one\n")?;
    let (before, first) = (scratch.corpora.open("scratch")?, writer.documents()?[0].id);
    put_lines(&mut writer, "a", "another\n")?;
    put_lines(&mut writer, "b", "two\n")?;
    let after = scratch.corpora.open("scratch")?;
    drop(writer);
    assert_eq!((before.counts()?.documents, before.document_text(first)?), (1, "one\n".to_owned()));
    assert_eq!(after.counts()?.documents, 2);
    assert!(matches!(after.document(first), Err(Error::UnknownDocument(_))), "it was replaced");
    Ok(())
}

#[test]
fn a_list_counts_what_corpora_hold() -> Outcome {
    let scratch = Scratch::new();
    assert!(Corpora::new(scratch.folder.path().join("nowhere")).list()?.is_empty());
    let mut writer = scratch.writer();
    put_lines(&mut writer, "a", "one\ntwo\n")?;
    put_lines(&mut writer, "b", "three\n")?;
    let page = writer.passages(store::Layer::Page)?[0].id;
    writer.put_notes(page, &[("abstract", "1")], &author())?;
    scratch.corpora.create("empty")?;
    let list = scratch.corpora.list()?;
    let names: Vec<String> = list.iter().map(|listing| listing.name.to_string()).collect();
    assert_eq!(names, ["empty", "scratch"]);
    assert!(matches!(list[0].counts, Ok(Counts { documents: 0, passages: 0, pending: 0 })));
    assert!(matches!(list[1].counts, Ok(Counts { documents: 2, passages: 3, pending: 2 })), "{:?}", list[1].counts);
    assert!(list.iter().all(|listing| listing.bytes > 4096));
    Ok(())
}

#[test]
fn a_removed_corpus_is_gone() -> Outcome {
    let scratch = Scratch::new();
    put_lines(&mut scratch.writer(), "a", "one\n")?;
    scratch.corpora.create("kept")?;
    scratch.corpora.remove("scratch")?;
    assert_eq!(scratch.corpora.list()?.len(), 1);
    assert_eq!(fs::read_dir(scratch.folder.path().join("corpora"))?.count(), 1);
    assert_eq!(scratch.writer().documents()?, [], "the name can be used again");
    Ok(())
}

#[test]
fn a_corpus_that_is_removed_while_it_is_opened_is_unknown() {
    let scratch = Scratch::new();
    let (corpora, folder) = (&scratch.corpora, scratch.folder.path().join("corpora/scratch/cache/a/b"));
    thread::scope(|scope| {
        let removed = scope.spawn(|| {
            // The other thread may have it open.
            let retry = |change: &dyn Fn() -> store::Result<()>| {
                while let Err(error) = change() {
                    assert!(matches!(error, Error::CorpusBusy { .. }), "{error:?}");
                }
            };
            for _ in 0..60 {
                retry(&|| corpora.create("scratch").map(drop));
                fs::create_dir_all(&folder).unwrap();
                retry(&|| corpora.remove("scratch"));
            }
        });
        while !removed.is_finished() {
            for opened in [corpora.open("scratch").map(drop), corpora.open_writer("scratch").map(drop)] {
                let expected = matches!(opened, Ok(()) | Err(Error::UnknownCorpus { .. } | Error::CorpusBusy { .. }));
                assert!(expected, "{opened:?}");
            }
        }
    });
}

/// Permissions do not restrict root, so as root the test runs itself again as another user.
#[cfg(unix)]
#[test]
fn a_read_only_folder_can_be_read() -> Outcome {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    const FOLDER: &str = "MEMLOCAL_STORE_READ_ONLY";
    const UNPRIVILEGED: u32 = 65534;

    fn read(folder: &Path) -> Outcome {
        let corpora = Corpora::new(folder);
        assert_eq!(corpora.open("scratch")?.documents()?.len(), 1);
        assert!(matches!(corpora.list()?[0].counts, Ok(Counts { documents: 1, .. })));
        for outcome in
            [corpora.open_writer("scratch").map(drop), corpora.remove("scratch"), corpora.create("new").map(drop)]
        {
            assert!(matches!(outcome, Err(Error::NotPermitted { .. })), "{outcome:?}");
        }
        fs::metadata(folder.join("corpora/unclean/memory.sqlite-wal"))?;
        let unclean = corpora.open("unclean");
        assert!(matches!(unclean, Err(Error::Unrecovered { .. })), "{unclean:?}");
        Ok(())
    }

    if let Some(folder) = std::env::var_os(FOLDER) {
        return read(Path::new(&folder));
    }
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    put_lines(&mut writer, "a", "one\n")?;
    // A copy made while a writer has the corpus open: its committed data is still in the log.
    let unclean = scratch.folder.path().join("corpora/unclean");
    fs::create_dir(&unclean)?;
    for file in ["memory.sqlite", "memory.sqlite-wal"] {
        fs::copy(scratch.file(file), unclean.join(file))?;
    }
    drop(writer);
    let folders =
        ["", "corpora", "corpora/scratch", "corpora/unclean"].map(|folder| scratch.folder.path().join(folder));
    let set_mode = |mode: u32| {
        folders.iter().try_for_each(|folder: &PathBuf| fs::set_permissions(folder, fs::Permissions::from_mode(mode)))
    };
    for file in [
        scratch.file("memory.sqlite"),
        scratch.file("lock"),
        unclean.join("memory.sqlite"),
        unclean.join("memory.sqlite-wal"),
    ] {
        fs::set_permissions(file, fs::Permissions::from_mode(0o444))?;
    }
    set_mode(0o555)?;
    let outcome = if fs::metadata("/proc/self")?.uid() == 0 {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--exact", "corpora::a_read_only_folder_can_be_read"])
            .env(FOLDER, scratch.folder.path())
            .uid(UNPRIVILEGED)
            .gid(UNPRIVILEGED);
        match command.status() {
            Ok(status) => assert!(status.success(), "reading as an unprivileged user failed"),
            Err(reason) => println!("not tested: the test binary cannot be run as another user: {reason}"),
        }
        Ok(())
    } else {
        read(scratch.folder.path())
    };
    set_mode(0o755)?;
    outcome
}

/// As above, root is not restricted.
#[cfg(unix)]
#[test]
fn a_corpus_that_this_user_may_not_read_is_not_reported_as_missing() -> Outcome {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::Command;

    const FOLDER: &str = "MEMLOCAL_STORE_UNREADABLE";
    const UNPRIVILEGED: u32 = 65534;

    fn check(folder: &Path) -> Outcome {
        let corpora = Corpora::new(folder);
        for outcome in [
            corpora.open("scratch").map(drop),
            corpora.open_writer("scratch").map(drop),
            corpora.set_title("scratch", "Mine"),
            corpora.remove("scratch"),
        ] {
            assert!(matches!(outcome, Err(Error::NotPermitted { .. })), "{outcome:?}");
        }
        let listed = corpora.list()?;
        assert_eq!(listed.iter().map(|listing| listing.name.to_string()).collect::<Vec<_>>(), ["scratch"]);
        assert!(matches!(listed[0].counts, Err(Error::NotPermitted { .. })), "{listed:?}");
        // A file among the corpora is none of them.
        assert!(matches!(corpora.open("readme.txt"), Err(Error::UnknownCorpus { .. })));
        Ok(())
    }

    if let Some(folder) = std::env::var_os(FOLDER) {
        return check(Path::new(&folder));
    }
    let scratch = Scratch::new();
    drop(scratch.writer());
    let set_mode = |below: &str, mode: u32| {
        fs::set_permissions(scratch.folder.path().join(below), fs::Permissions::from_mode(mode))
    };
    fs::write(scratch.folder.path().join("corpora/readme.txt"), "")?;
    ["", "corpora"].iter().try_for_each(|folder| set_mode(folder, 0o755))?;
    set_mode("corpora/scratch", 0)?;
    let outcome = if fs::metadata("/proc/self")?.uid() == 0 {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--exact", "corpora::a_corpus_that_this_user_may_not_read_is_not_reported_as_missing"])
            .env(FOLDER, scratch.folder.path())
            .uid(UNPRIVILEGED)
            .gid(UNPRIVILEGED);
        match command.status() {
            Ok(status) => assert!(status.success(), "the check as an unprivileged user failed"),
            Err(reason) => println!("not tested: the test binary cannot be run as another user: {reason}"),
        }
        Ok(())
    } else {
        check(scratch.folder.path())
    };
    set_mode("corpora/scratch", 0o700)?;
    outcome
}

#[test]
fn a_database_that_another_process_keeps_locked_is_not_reported_as_damaged() -> Outcome {
    let scratch = Scratch::new();
    let mut writer = scratch.writer();
    let other = rusqlite::Connection::open(scratch.file("memory.sqlite"))?;
    other.execute_batch("BEGIN IMMEDIATE")?;
    let outcome = put_lines(&mut writer, "first", "one line\n");
    assert!(matches!(outcome, Err(Error::Locked { .. })), "{outcome:?}");
    other.execute_batch("ROLLBACK")?;
    put_lines(&mut writer, "first", "one line\n")?;
    Ok(())
}

#[test]
fn a_corpus_of_a_bundle_is_read_once() -> Outcome {
    let scratch = Scratch::new();
    let (backup, path) = (scratch.file("backup.sqlite"), scratch.file("office"));
    let mut writer = scratch.writer();
    put_lines(&mut writer, "lamp.txt", "the lamp is lit\n")?;
    writer.back_up(&backup)?;
    let mut bundle = bundle::Writer::create(&path, "MIT")?;
    bundle.add(&store::bundled_name(writer.name()), &backup, "")?;
    let bundle = Arc::new(bundle.finish(Vec::new(), bundle::Readers::Owner)?);

    let other = tempfile::tempdir()?;
    let corpora = Corpora::new(other.path()).with_bundle(Some(bundle));
    let expected = corpora.open("scratch")?.digest()?;
    // What is read again now is gone.
    fs::remove_file(&path)?;
    let corpus = corpora.open("scratch")?;
    assert_eq!(corpus.digest()?, expected);
    assert_eq!((corpus.title(), corpus.bytes()?), ("scratch".to_owned(), fs::metadata(&backup)?.len()));
    let listing = corpora.list()?.remove(0);
    assert_eq!((listing.bytes, listing.counts?.documents), (corpus.bytes()?, 1));
    Ok(())
}
