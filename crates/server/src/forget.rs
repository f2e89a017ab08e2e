//! Forgetting: what was derived from a removed or replaced document, or from a removed corpus, is removed with it. These are turns of
//! threads, saved answers, suggested questions, records of files, stored responses, conversations, replies of batches,
//! uploads of jobs that did not end, and traces.
//!
//! Nothing is forgotten before the text itself is gone. A journal is written before the change and deleted once all is forgotten:
//! after a crash or an error the next change of the corpus, or the next start of a server, forgets the rest. All of this
//! works on the data folder, so the command line needs no server for it. What other clients of a shared corpus remove is
//! forgotten when the corpus is next opened here ([`Forget::catch_up`]).
//!
//! An answer may be made from a text that is replaced meanwhile. What keeps an answer therefore compares the corpus's [`CorpusState`]
//! from before the question with that of now, under the lock that forgetting takes.

mod known;

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::json;
use store::{Corpora, Corpus, CorpusName, Document, Writer, private};

use crate::corpora::trace_list::Traces;
use crate::corpora::{attachment, kept, note, suggested, thread};
use crate::error::{Result, ServerError};
use crate::fresh::fresh_id;
use crate::lost::{CorpusState, Gone, LOST, if_there};
use crate::openai::batches::forgetting;
use crate::openai::responses::kept::Responses;
use crate::uploads::{delete_uploads_of, delete_uploads_to};
use known::Version;

/// What may be gone after a change.
#[derive(Serialize, Deserialize)]
struct Change {
    corpus: String,
    /// `None`: the whole corpus.
    documents: Option<Vec<Gone>>,
}

/// The journal of a change, locked by the process that makes it.
struct Journal {
    path: PathBuf,
    _lock: File,
}

/// Forgets what one holder of corpora keeps.
pub struct Forget {
    folder: PathBuf,
    responses: Arc<Responses>,
    traces: Arc<Traces>,
    /// The versions of shared corpora to which this process has caught up.
    caught_up: Mutex<HashMap<String, Version>>,
}

impl Forget {
    /// For the data folder of a holder.
    pub(crate) fn new(folder: &Path, responses: Arc<Responses>, traces: Arc<Traces>) -> Forget {
        Forget { folder: folder.to_owned(), responses, traces, caught_up: Mutex::default() }
    }

    /// For a data folder, without a server.
    pub fn in_folder(folder: &Path) -> Forget {
        Forget::new(folder, Arc::new(Responses::new(folder)), Arc::new(Traces::new(0)))
    }

    /// For the data folder that a corpus is in, without a server.
    pub fn beside(corpus: &Corpus) -> Forget {
        // `corpora/<name>/<file>`.
        let file = corpus.file("records");
        Forget::in_folder(file.ancestors().nth(3).unwrap_or(&file))
    }

    /// What a corpus has lost so far.
    pub(crate) fn state(&self, corpus: &str) -> Result<CorpusState> {
        let name: CorpusName = corpus.parse().map_err(ServerError::Store)?;
        CorpusState::of_folder(&self.folder.join("corpora").join(name.to_string()))
    }

    /// Makes a change that may remove or replace some of the documents of a corpus, and forgets those that it did.
    ///
    /// # Errors
    /// Those of the change, which may have been made in part, and those of forgetting, which is then repeated later.
    pub fn change<T, E: From<ServerError>>(
        &self,
        writer: &mut Writer,
        may_go: impl Fn(&Document) -> bool,
        change: impl FnOnce(&mut Writer) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let name = writer.name().to_string();
        self.finish(Some(&name))?;
        self.catch_up(writer)?;
        let documents = writer.documents().map_err(ServerError::from)?;
        let before: Vec<Gone> = documents.iter().filter(|document| may_go(document)).map(Gone::of).collect();
        if before.is_empty() {
            return change(writer);
        }
        let made = Change { corpus: name, documents: Some(before.clone()) };
        let journal = self.begin(&made)?;
        let changed = change(writer);
        let forgotten =
            self.forget_documents(writer, before).and_then(|()| self.note(writer)).and_then(|()| journal.end());
        let changed = changed?;
        forgotten?;
        Ok(changed)
    }

    /// Removes a corpus with all that is kept beside it or may quote it; also what may quote one that is gone already.
    ///
    /// # Errors
    /// As [`Corpora::remove`], and those of forgetting, which is then repeated later.
    pub fn remove_corpus(&self, corpora: &Corpora, name: &str) -> Result<()> {
        let journal = self.begin(&Change { corpus: name.to_owned(), documents: None })?;
        let removed = corpora.remove(name);
        let is_gone = match &removed {
            Ok(()) | Err(store::Error::UnknownCorpus { .. }) => true,
            Err(_) => matches!(corpora.open(name), Err(store::Error::UnknownCorpus { .. })),
        };
        if is_gone {
            corpora.clear_removed()?;
            self.forget_corpus(name)?;
            // What an earlier removal has left.
            self.finish(Some(name))?;
        }
        journal.end()?;
        Ok(removed?)
    }

    /// Forgets what interrupted changes have left: those of one corpus, or all.
    ///
    /// # Errors
    /// The first one; it is tried again later.
    pub(crate) fn finish(&self, corpus: Option<&str>) -> Result<()> {
        let folder = self.journals();
        if !folder.exists() {
            return Ok(());
        }
        let _guard = guard(&folder)?;
        let mut outcome = Ok(());
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_none_or(|kind| kind != "json") {
                continue;
            }
            // Its process may have ended it meanwhile.
            let Some(mut file) = if_there(File::options().read(true).write(true).open(&path))? else { continue };
            match file.try_lock() {
                Ok(()) => {}
                // Its process makes the change now.
                Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
            let mut content = Vec::new();
            file.read_to_end(&mut content)?;
            let journal = Journal { path, _lock: file };
            let finished = match serde_json::from_slice::<Change>(&content) {
                Ok(change) if corpus.is_some_and(|corpus| corpus != change.corpus) => continue,
                Ok(change) => self.forget(change).and_then(|()| journal.end()),
                // It was not written completely, so the change had not begun.
                Err(_) => journal.end(),
            };
            outcome = outcome.and(finished);
        }
        outcome
    }

    fn forget(&self, Change { corpus, documents }: Change) -> Result<()> {
        match (Corpora::new(&self.folder).open(&corpus), documents) {
            (Err(store::Error::UnknownCorpus { .. }), _) => self.forget_corpus(&corpus),
            (open, Some(documents)) => self.forget_documents(&open?, documents),
            // It was not removed, or there is another one of its name: what quotes it cannot be told apart.
            (_, None) => self.forget_answers(&corpus),
        }
    }

    /// Forgets what may quote a corpus.
    fn forget_corpus(&self, corpus: &str) -> Result<()> {
        self.traces.delete_of(corpus);
        self.forget_answers(corpus)?;
        delete_uploads_of(&self.folder, corpus)?;
        self.forget_known(corpus)
    }

    /// Forgets the answers outside its folder that may quote a corpus.
    fn forget_answers(&self, corpus: &str) -> Result<()> {
        self.responses.forget_corpus(corpus)?;
        forgetting::forget(&self.folder, corpus, None)
    }

    /// Forgets those of these documents that a corpus does not have any more.
    fn forget_documents(&self, corpus: &Corpus, before: Vec<Gone>) -> Result<()> {
        let documents = corpus.documents()?;
        let digests: HashMap<&str, String> =
            documents.iter().map(|document| (document.path.as_str(), document.digest.to_string())).collect();
        let is_gone = |document: &Gone| digests.get(document.path.as_str()) != Some(&document.digest);
        let gone: Vec<Gone> = before.into_iter().filter(is_gone).collect();
        if gone.is_empty() {
            return Ok(());
        }
        let name = corpus.name().to_string();
        {
            let _one = kept::lock(corpus)?;
            private::replace(&corpus.file(LOST), fresh_id("lost")?)?;
        }
        self.traces.delete_of(&name);
        thread::forget(corpus, &gone)?;
        note::forget(corpus, &gone)?;
        attachment::forget(corpus, &gone)?;
        suggested::forget(corpus)?;
        self.responses.forget_documents(&name, &gone)?;
        forgetting::forget(&self.folder, &name, Some(&gone))?;
        // A file of several conversations became `name#conversation`.
        let is_of = |upload: &str, path: &str| {
            path.strip_prefix(upload).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
        };
        delete_uploads_to(&self.folder, &name, |upload| gone.iter().any(|gone| is_of(upload, &gone.path)))?;
        Ok(())
    }

    fn journals(&self) -> PathBuf {
        self.folder.join("forgetting")
    }

    /// Writes the journal of a change before it is made.
    fn begin(&self, change: &Change) -> Result<Journal> {
        let folder = self.journals();
        private::folder(&folder)?;
        let _guard = guard(&folder)?;
        let path = folder.join(format!("{}.json", fresh_id("change")?));
        let mut file = private::create(&path)?;
        file.lock()?;
        file.write_all(json!(change).to_string().as_bytes())?;
        file.sync_all()?;
        private::sync_name(&path)?;
        Ok(Journal { path, _lock: file })
    }
}

impl Journal {
    /// Deletes it: there is nothing left to forget.
    fn end(self) -> Result<()> {
        if_there(fs::remove_file(&self.path))?;
        Ok(())
    }
}

/// Keeps other processes from finishing a journal that is created but not locked yet.
fn guard(folder: &Path) -> Result<File> {
    let guard = private::create(&folder.join("lock"))?;
    guard.lock()?;
    Ok(guard)
}
