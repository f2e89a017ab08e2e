//! A writer that is killed at any moment leaves complete transactions only, and a later process that continues the work
//! reaches the same final state.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use store::{Bond, Corpora, Corpus, Digest, Error, IndexText, Layer, NewDerived, NewDocument, Part, PassageId, Writer};

use crate::scratch::{Outcome, Scratch, author, lines};

const FOLDER: &str = "MEMLOCAL_STORE_CRASH";
const KILLS: u32 = 20;
const DOCUMENTS: usize = 12;
const PAGES: usize = 8;
const PARTS: usize = 3;
const NOTES: [&str; 6] = ["abstract", "header", "who", "when", "where", "why"];

/// The `edition`th text of a document: pages of about 4,000 bytes, so that a document spans several pages of the
/// database.
fn text(document: usize, edition: usize) -> String {
    let page = |page| format!("edition {edition} of {document}, page {page}, {}\n", "and so on ".repeat(400));
    (0..PAGES).map(page).collect::<Vec<_>>().concat()
}

/// Every document is put once, every third then replaced.
fn plan() -> impl Iterator<Item = (usize, usize)> {
    (0..DOCUMENTS).map(|document| (document, 1)).chain((0..DOCUMENTS).step_by(3).map(|document| (document, 2)))
}

/// Continues the plan from where an earlier process stopped.
fn remember_all(folder: &Path) -> store::Result<()> {
    let corpora = Corpora::new(folder);
    let mut writer = match corpora.open_writer("scratch") {
        Err(Error::UnknownCorpus { .. }) => corpora.create("scratch")?,
        opened => opened?,
    };
    for (document, edition) in plan() {
        remember(&mut writer, document, edition)?;
    }
    Ok(())
}

fn remember(writer: &mut Writer, document: usize, edition: usize) -> store::Result<()> {
    let (path, text) = (format!("document {document}"), text(document, edition));
    let title = format!("edition {edition}");
    if writer.document_at(&path)?.is_some_and(|known| known.title > title) {
        return Ok(());
    }
    let passages = [lines(Layer::Page, &text), lines(Layer::Turn, &text)].concat();
    writer.put_document(&NewDocument { path: &path, kind: "text", title: &title, text: &text, passages: &passages })?;
    for page in writer.pending(Layer::Page, "abstract")? {
        let content = writer.index_text(page, IndexText::Content)?;
        let notes = NOTES.map(|name| (name, &content[..30]));
        writer.put_notes(page, &notes, &author())?;
    }
    for page in writer.without_vectors(Layer::Page, "tiny")? {
        let part = Part { span: writer.passage(page)?.span, vector: vec![1.0, 0.5, 0.25] };
        writer.put_vectors("tiny", &[(page, vec![part; PARTS])])?;
    }
    derive(writer)
}

/// Derives a summary of all documents so far, which is deleted when one of them is replaced, and the words that they
/// share.
fn derive(writer: &mut Writer) -> store::Result<()> {
    let pages: Vec<PassageId> = writer.passages(Layer::Page)?.into_iter().map(|page| page.id).collect();
    let (tale, author) = (format!("a tale of {} pages", pages.len()), author());
    let item = NewDerived {
        kind: "tale",
        key: Digest::of(&[&tale]),
        text: &tale,
        sources: &pages,
        bond: Bond::All,
        author: &author,
    };
    let words = NewDerived { kind: "word", key: Digest::of(&["and"]), text: "and", bond: Bond::Any, ..item };
    let ids = writer.put_derived(&[item, words])?;
    let vectors: Vec<_> = ids.into_iter().map(|id| (id, vec![1.0, 0.5, 0.25])).collect();
    writer.put_derived_vectors("tiny", &vectors)
}

/// Checks that every transaction is present completely or not at all.
fn inspect(corpus: &Corpus) -> store::Result<()> {
    corpus.verify()?;
    for tale in corpus.derived("tale")? {
        assert_eq!(tale.text, format!("a tale of {} pages", tale.sources.len()), "the sources are torn");
    }
    for document in corpus.documents()? {
        let pages = corpus.passages_of(document.id, Layer::Page)?;
        let turns = corpus.passages_of(document.id, Layer::Turn)?;
        assert_eq!((pages.len(), turns.len()), (PAGES, PAGES), "{} is torn", document.path);
        for page in pages {
            let (notes, parts) = (corpus.notes(page.id)?.len(), corpus.vectors("tiny", page.id)?.len());
            assert!(notes == 0 || notes == NOTES.len(), "the notes on {} are torn", page.id);
            assert!(parts == 0 || parts == PARTS, "the vectors of {} are torn", page.id);
            assert!(parts == 0 || notes == NOTES.len(), "passage {} has lost notes", page.id);
        }
    }
    Ok(())
}

#[test]
fn a_killed_writer_leaves_whole_transactions() -> Outcome {
    if let Some(folder) = env::var_os(FOLDER) {
        return Ok(remember_all(Path::new(&folder))?);
    }
    let whole = Scratch::new();
    let start = Instant::now();
    remember_all(whole.folder.path())?;
    let run = start.elapsed();
    let expected = whole.corpora.open("scratch")?.digest()?;
    let mut kills = 0;
    while kills < KILLS {
        let scratch = Scratch::new();
        while killed(scratch.folder.path(), fraction_of(run, kills))? {
            kills += 1;
            match scratch.corpora.open("scratch") {
                Ok(corpus) => inspect(&corpus)?,
                Err(Error::UnknownCorpus { .. }) => {}
                Err(other) => return Err(other.into()),
            }
        }
        let corpus = scratch.corpora.open("scratch")?;
        inspect(&corpus)?;
        assert_eq!(corpus.digest()?, expected);
    }
    Ok(())
}

/// Runs the child half of this test; returns whether it had to be killed after `patience`.
fn killed(folder: &Path, patience: Duration) -> Result<bool, std::io::Error> {
    let mut command = Command::new(env::current_exe()?);
    command
        .args(["--exact", "crash::a_killed_writer_leaves_whole_transactions"])
        .env(FOLDER, folder)
        .stdout(Stdio::null());
    let mut child = command.spawn()?;
    thread::sleep(patience);
    if let Some(status) = child.try_wait()? {
        assert!(status.success(), "the writer failed by itself");
        return Ok(false);
    }
    child.kill()?;
    Ok(child.wait()?.code().is_none())
}

/// A fraction between 1/64 and 2/5 of a whole run, different for every kill; it grows when a run makes no progress.
fn fraction_of(run: Duration, kill: u32) -> Duration {
    (run / 64 + run * (kill * 7 % 20) / 50) * (1 + kill / KILLS)
}
