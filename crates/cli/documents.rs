//! The documents of files and folders, and a corpus that is filled with them.

use std::collections::HashSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::Result;
use launch::eprintln;
use launch::failure::refusal;
use launch::output::{counted, print_line, printable};
use launch::progress::Steps;
use launch::{absolute, pdf_child, shown, wait_for};
use memory::{Session, add, add_text, prepare};
use server::Forget;
use sources::{Cause, Kind, Opened, ReadOptions, Selection, SkipReason, SlackUsers, Source, Sources, TextFile};
use store::{Change, Corpus, Layer, Writer};

/// The documents in files and folders, opened one at a time, so that only one is in memory. Unreadable inputs are
/// reported on standard error and counted.
pub struct Documents {
    files: std::vec::IntoIter<PathBuf>,
    /// The file that is being read: one of conversations and a mailbox hold several documents.
    open: Option<OpenFile>,
    /// The document that was read and not yet returned.
    next: Option<Document>,
    /// The names in exports of Slack under the given paths.
    slack_users: SlackUsers,
    skipped: usize,
    /// Whether a file of an unsupported type was skipped since the supported types were named.
    has_unsupported: bool,
    /// Why entries of the folders were left out that were not reported.
    left_out: Vec<SkipReason>,
    /// The absolute paths of files and folders that could not be read.
    pub failed: Vec<PathBuf>,
    /// The absolute paths of the files that were read, and the paths of their documents.
    pub read: HashSet<String>,
    pub paths: HashSet<String>,
}

/// A file of which documents may follow.
struct OpenFile {
    file: PathBuf,
    /// Its absolute path.
    path: PathBuf,
    name: String,
    sources: Sources,
}

/// A document that was opened.
pub enum Document {
    /// A plain text in its file.
    Text(TextFile),
    /// An extracted text.
    Source(Source),
}

impl Document {
    fn path(&self) -> &str {
        match self {
            Document::Text(text) => &text.path,
            Document::Source(source) => &source.path,
        }
    }

    /// The encoding of its file, if it is not UTF-8.
    fn encoding(&self) -> Option<&'static str> {
        match self {
            Document::Text(text) => text.encoding(),
            Document::Source(source) => source.encoding,
        }
    }
}

impl Documents {
    /// Lists the files and reads the first readable one.
    ///
    /// # Errors
    /// If paths are given and no file under them can be read.
    pub fn find(paths: &[PathBuf]) -> Result<Documents> {
        let mut documents = Self::list(paths, &Selection::default());
        if paths.is_empty() || documents.has_next() {
            return Ok(documents);
        }
        Err(documents.none_in(paths))
    }

    /// Whether there is another document. If there is none, all files were tried.
    pub fn has_next(&mut self) -> bool {
        self.read_on();
        self.next.is_some()
    }

    /// The error where no file under `paths` could be read.
    pub fn none_in(&self, paths: &[PathBuf]) -> anyhow::Error {
        match self.skipped {
            0 => refusal(format!("there are no documents in {}", listed(paths)), self.what_is_read()),
            _ => refusal(
                "none of the inputs could be read",
                "the `skipped` lines above say why; correct these files, or give others",
            ),
        }
    }

    /// The types of files that are read, and how many entries were left out for which reason.
    fn what_is_read(&self) -> String {
        let mut hint = format!("files of these types are read: {} and source code", Kind::document_extensions());
        let reasons = [
            (SkipReason::Hidden, "hidden (the name begins with a dot)"),
            (SkipReason::Ignored, "named in .gitignore"),
            (SkipReason::Temporary, "locks and temporary files of other programs"),
            (SkipReason::Excluded, "not selected by --include or --exclude"),
        ];
        for (reason, words) in reasons {
            let number = self.left_out.iter().filter(|left_out| **left_out == reason).count();
            if number > 0 {
                hint = format!("{hint}; {number} skipped: {words}");
            }
        }
        hint
    }

    /// Lists the files that are selected, of which there may be none.
    pub fn list(paths: &[PathBuf], selection: &Selection) -> Documents {
        let found = sources::find_selected(paths, selection);
        found.errors.iter().for_each(|error| eprintln!("skipped {}", printable(error)));
        let mut documents = Self::of(found.files, paths);
        documents.skipped = found.errors.len();
        documents.failed = found.errors.iter().map(|error| absolute(&error.path)).collect();
        for entry in &found.skipped {
            let path = printable(entry.path.display());
            match entry.reason {
                // Files of a folder that are no documents are not failures.
                SkipReason::UnknownKind => eprintln!("skipped {path}: not a document"),
                SkipReason::NoMessages => eprintln!("skipped {path}: part of an export of chats without messages"),
                SkipReason::LinkOutside => {
                    eprintln!("skipped {path}: a link to outside the folder; give its target by name to read it");
                    documents.skipped += 1;
                }
                reason => documents.left_out.push(reason),
            }
        }
        documents
    }

    /// The documents in files that were found under `paths`.
    pub fn of(files: Vec<PathBuf>, paths: &[PathBuf]) -> Documents {
        Documents {
            files: files.into_iter(),
            open: None,
            next: None,
            slack_users: SlackUsers::below(paths),
            skipped: 0,
            has_unsupported: false,
            left_out: Vec::new(),
            failed: Vec::new(),
            read: HashSet::new(),
            paths: HashSet::new(),
        }
    }

    /// Number of inputs that could not be read so far.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Reads on until there is a document to return, or no more files.
    fn read_on(&mut self) {
        while self.next.is_none() {
            if let Some(open) = self.open.take() {
                self.read_source(open);
            } else if let Some(file) = self.files.next() {
                self.open_file(file);
            } else {
                self.name_supported();
                return;
            }
        }
    }

    /// Names the supported types, once for all files of others.
    fn name_supported(&mut self) {
        if std::mem::take(&mut self.has_unsupported) {
            let types = Kind::document_extensions();
            eprintln!("hint: files of these types are read: {types}, source code, and any text in UTF-8");
        }
    }

    fn open_file(&mut self, file: PathBuf) {
        // A document is identified by its absolute path, independent of the working directory.
        let path = absolute(&file);
        let Some(name) = path.to_str().map(str::to_owned) else {
            // Several such paths would be one when they are written in UTF-8.
            self.skip(&file, "its path is not valid UTF-8; rename the file or its folder");
            return;
        };
        let slack_users = self.slack_users.clone();
        let options = ReadOptions { pdf_child: pdf_child(), slack_users, ..ReadOptions::default() };
        match sources::open(&path, &options) {
            Ok(Opened::Text(text)) => {
                self.read.insert(name);
                self.keep(Document::Text(text));
            }
            Ok(Opened::Sources(sources)) => self.open = Some(OpenFile { file, path, name, sources }),
            Err(error) => {
                self.skip_unopened(&file, error.cause);
                self.failed.push(path);
            }
        }
    }

    fn read_source(&mut self, mut open: OpenFile) {
        match open.sources.next() {
            Some(Ok(source)) => {
                self.keep(Document::Source(source));
                self.open = Some(open);
            }
            Some(Err(cause)) => {
                let in_part = if self.paths.contains(&open.name) { "only its beginning was read: " } else { "" };
                self.skip(&open.file, format_args!("{in_part}{cause}"));
                self.failed.push(open.path);
            }
            None => {
                self.read.insert(open.name);
            }
        }
    }

    fn keep(&mut self, document: Document) {
        self.paths.insert(document.path().to_owned());
        self.next = Some(document);
    }

    fn skip_unopened(&mut self, file: &Path, cause: Cause) {
        match cause {
            Cause::UnknownKind => {
                self.has_unsupported = true;
                self.skip(file, "unsupported file type");
            }
            cause => self.skip(file, cause),
        }
    }

    fn skip(&mut self, file: &Path, why: impl Display) {
        eprintln!("skipped {}: {why}", printable(file.display()));
        self.skipped += 1;
    }
}

impl Iterator for Documents {
    type Item = Document;

    fn next(&mut self) -> Option<Document> {
        self.read_on();
        self.next.take()
    }
}

/// The paths in one line.
pub fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| printable(path.display())).collect::<Vec<_>>().join(", ")
}

/// Stores documents in a corpus and prepares it for the session's method, with progress bars.
pub fn fill(writer: &mut Writer, documents: &mut Documents, session: &Session<'_>) -> Result<()> {
    put(writer, documents, session)?;
    prepare_corpus(writer, session)
}

/// Stores documents in a corpus. What was derived from those that they replace is removed.
pub fn put(writer: &mut Writer, documents: &mut Documents, session: &Session<'_>) -> Result<()> {
    Forget::beside(writer).change(writer, |_| true, |writer| put_each(writer, documents, session))
}

fn put_each(writer: &mut Writer, documents: &mut Documents, session: &Session<'_>) -> Result<()> {
    for document in documents {
        let added = match &document {
            Document::Text(text) => add_text(text, writer, session)?,
            Document::Source(source) => add(source, writer, session)?,
        };
        let what = match added.change {
            Change::Added => "added",
            Change::Replaced => "replaced",
            Change::Recut => "cut anew",
            Change::Unchanged => continue,
        };
        let encoding = document.encoding().map_or_else(String::new, |encoding| format!(", decoded from {encoding}"));
        eprintln!("{what} {} ({}{encoding})", shown(document.path()), counted(added.pages, "page"));
    }
    Ok(())
}

/// Prepares the corpus for the session's method, with progress bars.
pub fn prepare_corpus(writer: &mut Writer, session: &Session<'_>) -> Result<()> {
    let mut steps = Steps::default();
    wait_for(prepare(writer, session, &mut |progress| steps.report_with(progress, session.trace.usage())))
}

/// Prints what a corpus holds.
pub fn print_content(writer: &Writer) -> Result<()> {
    print_line(format_args!("{}: {}", writer.name(), content(writer)?))
}

/// The numbers of a corpus's documents and pages.
pub fn content(corpus: &Corpus) -> Result<String> {
    let (documents, pages) = (corpus.documents()?.len(), corpus.count(Layer::Page)?);
    Ok(format!("{}, {}", counted(documents, "document"), counted(pages, "page")))
}
