//! Failing disks and power cuts: after every operation that can fail or be the last one, a corpus has all that was
//! acknowledged and nothing in part, and the work can continue.
//!
//! `MEMLOCAL_POWER_CUTS=N` makes N images of each moment, `MEMLOCAL_POWER_EVERY=1` lets every single operation fail.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use store::{
    Bond, Corpora, Corpus, CorpusName, Digest, Error, Layer, NewDerived, NewDocument, PassageId, Repaired, Writer,
};

use crate::scratch::{Outcome, author, lines, put_lines, whole};
use crate::upgrade::fixture;

use disk::{Disk, Fault, Image};

mod disk;

const CUTS: usize = 1;
const EVERY: usize = 17;
/// For one of this many images the work is continued to its end.
const WHOLE: usize = 8;
/// The corpus that most steps change.
const SCRATCH: &str = "scratch";
const SECRET: &str = "the third stone hides the key";

thread_local! {
    /// What is in corpora that were read before, by the digest of their files.
    static READ: RefCell<HashMap<blake3::Hash, String>> = RefCell::default();
}

/// A folder of corpora on its way through [`STEPS`].
struct Work {
    folder: PathBuf,
    corpora: Corpora,
    writer: Option<Writer>,
}

type Step = fn(&mut Work) -> store::Result<()>;

/// Each is done completely or not at all.
const STEPS: [(&str, Step); 17] = [
    ("create", |work| {
        work.writer = Some(work.corpora.create(SCRATCH)?);
        Ok(())
    }),
    ("ingest", |work| put(work.writer()?, 1)),
    ("note", |work| note(work.writer()?, 0)),
    ("note again", |work| note(work.writer()?, 1)),
    ("embed", |work| {
        let writer = work.writer()?;
        let pages = writer.passages(Layer::Page)?;
        let vectors: Vec<_> = pages.iter().map(|page| (page.id, whole(page, &[1.0, 0.5, 0.25]))).collect();
        writer.put_vectors("tiny", &vectors)
    }),
    ("derive", |work| derive(work.writer()?)),
    ("ingest a secret", |work| put_lines(work.writer()?, "secret.txt", &format!("{SECRET}\n").repeat(300)).map(drop)),
    ("keep", |work| work.writer()?.keep("words", &Digest::of(&["documents"]), SECRET.as_bytes())),
    ("delete", |work| {
        let writer = work.writer()?;
        let secret = writer.document_at("secret.txt")?;
        secret.map_or(Ok(()), |secret| writer.remove_document(secret.id))
    }),
    ("replace", |work| put(work.writer()?, 2)),
    ("note anew", |work| note(work.writer()?, 0)),
    ("back up", |work| {
        let file = work.folder.join("backup.sqlite");
        work.writer()?.back_up(&file)
    }),
    ("close", |work| {
        work.writer = None;
        Ok(())
    }),
    ("restore", |work| work.corpora.restore("again", &work.folder.join("backup.sqlite")).map(drop)),
    ("remove", |work| work.corpora.remove("again")),
    ("upgrade", |work| work.corpora.open_writer("old").map(drop)),
    ("repair", |work| match work.corpora.repair("broken")? {
        Repaired::Without(loss) => {
            assert_eq!(loss.documents, ["lost.txt"]);
            Ok(())
        }
        Repaired::Sound => Ok(()),
        Repaired::Fetched { .. } => panic!("it is not shared"),
    }),
];

/// The steps after which the secret is nowhere.
const FORGETTING: std::ops::RangeInclusive<usize> = 9..=STEPS.len();

impl Work {
    /// A folder with a corpus of an earlier schema, and a damaged one.
    fn new(folder: &Path) -> Result<Work, Box<dyn std::error::Error>> {
        let corpora = Corpora::new(folder);
        let mut broken = corpora.create("broken")?;
        put_lines(&mut broken, "kept.txt", "these words are kept\n")?;
        put_lines(&mut broken, "lost.txt", "these words are lost\n")?;
        drop(broken);
        let path = folder.join("corpora/broken/memory.sqlite");
        let mut bytes = fs::read(&path)?;
        let place = bytes.windows(20).position(|at| at == b"these words are lost").ok_or("the text is in the file")?;
        bytes[place] ^= 1;
        fs::write(path, bytes)?;
        fs::create_dir(folder.join("corpora/old"))?;
        fs::copy(fixture("schema2.sqlite"), folder.join("corpora/old/memory.sqlite"))?;
        Ok(Work::at(folder))
    }

    /// A folder with corpora.
    fn at(folder: &Path) -> Work {
        Work { folder: folder.to_path_buf(), corpora: Corpora::new(folder), writer: None }
    }

    fn writer(&mut self) -> store::Result<&mut Writer> {
        let opened = match self.writer.take() {
            Some(writer) => writer,
            None => self.corpora.open_writer(SCRATCH)?,
        };
        Ok(self.writer.insert(opened))
    }
}

/// Copies all that is in a folder to another one.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            fs::create_dir(&to)?;
            copy(&from, &to)?;
        } else {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

fn put(writer: &mut Writer, edition: usize) -> store::Result<()> {
    let page = |page| format!("page {page}, edition {edition}, {}\n", "and so on ".repeat(300));
    let text = (0..6).map(page).collect::<Vec<_>>().concat();
    let passages = [lines(Layer::Page, &text), lines(Layer::Turn, &text)].concat();
    let document = NewDocument { path: "a.txt", kind: "text", title: "a", text: &text, passages: &passages };
    writer.put_document(&document).map(drop)
}

fn note(writer: &mut Writer, page: usize) -> store::Result<()> {
    let page = writer.passages(Layer::Page)?[page].id;
    writer.put_notes(page, &[("abstract", &"words ".repeat(900)), ("header", "a line")], &author())
}

fn derive(writer: &mut Writer) -> store::Result<()> {
    let sources: Vec<PassageId> = writer.passages(Layer::Page)?.into_iter().map(|page| page.id).collect();
    let (text, author) = ("a tale", author());
    let key = Digest::of(&[text]);
    writer.put_derived(&[NewDerived {
        kind: "tale",
        key,
        text,
        sources: &sources,
        bond: Bond::All,
        author: &author,
    }])?;
    Ok(())
}

/// All that is stored, for comparison.
fn state(folder: &Path) -> store::Result<String> {
    let mut state = Vec::new();
    for name in names(folder) {
        let read = || read(folder, &name);
        let found = if name == SCRATCH { read() } else { once(&folder.join("corpora").join(&name), read) };
        state.push(format!("{name}: {}", found?));
    }
    let copies =
        [("backup", folder.join("backup.sqlite")), ("earlier", folder.join("corpora/old/memory.schema2.sqlite"))];
    for (name, path) in copies.into_iter().filter(|(_, path)| path.exists()) {
        let found = once(&path, || read_copy(&path))?;
        // The copy of an earlier schema is made before the upgrade, and not counted.
        if name == "backup" {
            state.push(format!("{name}: {found}"));
        }
    }
    Ok(state.join("\n"))
}

/// The names of all corpora, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("corpora")).into_iter().flatten().flatten();
    let corpora = entries.filter(|entry| entry.path().join("memory.sqlite").exists());
    let mut names: Vec<CorpusName> = corpora.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    names.sort();
    names.iter().map(CorpusName::to_string).collect()
}

/// What is in a corpus, which is checked.
fn read(folder: &Path, name: &str) -> store::Result<String> {
    let corpus = Corpora::new(folder).open(name)?;
    match corpus.verify() {
        Err(Error::Damaged { .. }) if name == "broken" => Ok("damaged".to_owned()),
        verified => verified.and_then(|()| content(&corpus)),
    }
}

/// What is in a copy of a corpus's database, which is checked.
fn read_copy(path: &Path) -> store::Result<String> {
    let place = tempfile::tempdir().expect("the system has a folder for temporary files");
    fs::create_dir_all(place.path().join("corpora/copy")).expect("it takes a folder");
    fs::copy(path, place.path().join("corpora/copy/memory.sqlite")).expect("it takes a file");
    let copy = Corpora::new(place.path()).open("copy")?;
    copy.verify()?;
    content(&copy)
}

/// The result of reading a file or folder, which is read once as long as its name and content are the same: a power cut
/// changes few of the corpora.
fn once(path: &Path, read: impl FnOnce() -> store::Result<String>) -> store::Result<String> {
    let digest = digest(path).expect("its files can be read");
    if let Some(found) = READ.with_borrow(|known| known.get(&digest).cloned()) {
        return Ok(found);
    }
    let found = read()?;
    READ.with_borrow_mut(|known| known.insert(digest, found.clone()));
    Ok(found)
}

/// The digest of a file, or of all files of a folder, with their names.
fn digest(path: &Path) -> io::Result<blake3::Hash> {
    fn add(path: &Path, hasher: &mut blake3::Hasher) -> io::Result<()> {
        hasher.update(path.file_name().expect("it has a name").as_encoded_bytes());
        if path.is_dir() {
            let entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
            let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
            entries.sort();
            hasher.update(&entries.len().to_le_bytes());
            return entries.iter().try_for_each(|entry| add(entry, hasher));
        }
        let bytes = fs::read(path)?;
        hasher.update(&bytes.len().to_le_bytes()).update(&bytes);
        Ok(())
    }
    let mut hasher = blake3::Hasher::new();
    add(path, &mut hasher)?;
    Ok(hasher.finalize())
}

fn content(corpus: &Corpus) -> store::Result<String> {
    let (digest, schema) = (corpus.digest()?, corpus.schema()?);
    let bare = corpus.without_vectors(Layer::Page, "tiny")?.len();
    Ok(format!("{digest}, schema {schema}, {bare} without vectors"))
}

/// The states before the first step and after each one.
fn states() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    let mut work = Work::new(place.path())?;
    let mut states = vec![state(place.path())?];
    for (_, step) in STEPS {
        step(&mut work)?;
        states.push(state(place.path())?);
    }
    assert!(work.folder.join("corpora/old/memory.schema2.sqlite").exists());
    Ok(states)
}

fn number(name: &str, usual: usize) -> usize {
    env::var(name).map_or(usual, |value| value.parse().expect("a number"))
}

/// Whether any file below a folder contains the secret.
fn holds_secret(folder: &Path) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| match entry.path() {
        path if path.is_dir() => holds_secret(&path),
        path => fs::read(path).is_ok_and(|bytes| bytes.windows(SECRET.len()).any(|at| at == SECRET.as_bytes())),
    })
}

/// Lists all corpora, does the steps from one on, and checks the end.
fn go_on(work: &mut Work, states: &[String], from: usize) -> store::Result<()> {
    let listed: Vec<String> = work.corpora.list()?.iter().map(|listing| listing.name.to_string()).collect();
    assert_eq!(listed, names(&work.folder));
    STEPS[from..].iter().try_for_each(|(_, step)| step(work))?;
    work.writer = None;
    assert_eq!(state(&work.folder)?, states[STEPS.len()], "the end differs");
    Ok(())
}

/// What is in a state that should be another one.
fn other(found: &str, wanted: &str) -> String {
    let differs: Vec<&str> = found.lines().filter(|line| !wanted.contains(line)).collect();
    let lacks: Vec<&str> = wanted.lines().filter(|line| !found.contains(line)).collect();
    format!("has {differs:?}, lacks {lacks:?}")
}

/// Starts a machine with what a power cut has left.
fn start_with(image: &Image, states: &[String], step: usize, is_all: bool) -> Result<(), String> {
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    for (path, content) in image {
        let path = place.path().join(path);
        let made = content.as_ref().map_or_else(|| fs::create_dir_all(&path), |content| fs::write(&path, content));
        made.map_err(|error| error.to_string())?;
    }
    let found = state(place.path()).map_err(|error| format!("{error:?}"))?;
    let at = [step, step + 1].into_iter().find(|at| states.get(*at) == Some(&found));
    let at = at.ok_or_else(|| other(&found, &states[step]))?;
    let mut work = Work::at(place.path());
    if FORGETTING.contains(&step) {
        let cleaned = work.writer().map(drop).map_err(|error| format!("{error:?}"));
        work.writer = None;
        cleaned?;
        if holds_secret(place.path()) {
            return Err("the removed text is there again".to_owned());
        }
    }
    if !is_all {
        return Ok(());
    }
    go_on(&mut work, states, at).map_err(|error| format!("cannot go on: {error:?}"))
}

#[test]
fn a_power_cut_leaves_all_that_was_acknowledged_and_nothing_by_half() -> Outcome {
    let (states, cuts) = (states()?, number("MEMLOCAL_POWER_CUTS", CUTS));
    let place = tempfile::tempdir()?;
    let mut work = Work::new(place.path())?;
    Disk::attach(place.path(), 27, cuts, None);
    let (mut images, mut lost) = (0, Vec::new());
    for (number, (name, step)) in STEPS.iter().enumerate() {
        step(&mut work)?;
        let (left, mut checked) = (Disk::images(), HashSet::new());
        for image in &left {
            images += 1;
            let is_all = images % WHOLE == 0;
            // The same image has the same end.
            if !checked.insert(image) && !is_all {
                continue;
            }
            if let Err(problem) = Disk::aside(|| start_with(image, &states, number, is_all)) {
                lost.push(format!("during {name}: {problem}"));
            }
        }
    }
    let operations = Disk::detach();
    println!("{images} power cuts in {operations} operations");
    assert!(lost.is_empty(), "{} of {images}:\n{}", lost.len(), lost[..lost.len().min(12)].join("\n"));
    assert!(operations > 100);
    Ok(())
}

#[test]
fn a_failing_disk_fails_a_step_completely_and_the_next_try_succeeds() -> Outcome {
    let (states, every) = (states()?, number("MEMLOCAL_POWER_EVERY", EVERY));
    let (mut failures, mut wrong) = (0, Vec::new());
    let begin = tempfile::tempdir()?;
    Work::new(begin.path())?;
    for (error, is_lasting) in [(libc::EIO, false), (libc::EIO, true), (libc::ENOSPC, false), (libc::ENOSPC, true)] {
        for operation in (failures % every..).step_by(every) {
            let fault = Fault { operation, error, is_lasting };
            let place = tempfile::tempdir()?;
            copy(begin.path(), place.path())?;
            let mut work = Work::at(place.path());
            Disk::attach(place.path(), 27, 0, Some(fault));
            let failed = STEPS.iter().enumerate().find_map(|(number, (name, step))| {
                let error = step(&mut work).err()?;
                Some((number, name, error))
            });
            work.writer = None;
            let operations = Disk::detach();
            failures += usize::from(failed.is_some());
            let mut check = || -> Result<(), String> {
                let found = state(&work.folder).map_err(|error| format!("{error:?}"))?;
                let Some((number, _, _)) = failed else {
                    return if found == states[STEPS.len()] { Ok(()) } else { Err(found) };
                };
                let at = [number, number + 1].into_iter().find(|at| states[*at] == found);
                let at = at.ok_or_else(|| other(&found, &states[number]))?;
                go_on(&mut work, &states, at).map_err(|error| format!("cannot go on: {error:?}"))
            };
            if let Err(problem) = check() {
                wrong.push(format!("{fault:?}, {failed:?}: {problem}"));
            }
            let is_typed =
                |error: &Error| matches!(error, Error::DiskFull { .. } | Error::Io { .. } | Error::Database { .. });
            if let Some((_, name, error)) = &failed
                && !is_typed(error)
            {
                wrong.push(format!("{fault:?} in {name} is {error:?}"));
            }
            if operations <= operation {
                break;
            }
        }
    }
    println!("{failures} failures of the disk");
    assert!(wrong.is_empty(), "{} of {failures}:\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
    assert!(failures > 50);
    Ok(())
}
