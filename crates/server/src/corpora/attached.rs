//! Uploaded files in a corpus: which document each became, as OpenAI's vector stores list them. The record of a file is
//! beside the corpus and is removed with it; how far its ingest is follows from its job and its document.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use store::{Corpus, Document};

use super::attachment::Attached;
use super::documents::{reading, remove_document};
use super::ingest::{check_corpus, temporary_name};
pub(crate) use super::jobs::Progress;
use super::jobs::{Job, Upload, start};
use super::kept;
use super::settings::method;
use crate::app::{App, since_1970};
use crate::blocking::run_blocking;
use crate::error::{Result, ServerError};
use crate::tenant::Tenant;

/// Files are prepared for one search and one answer, without calls of a model.
const METHOD: &str = "rag";

/// A file to add to a corpus.
pub(crate) struct NewFile {
    pub id: String,
    pub name: String,
    pub path: PathBuf,
    pub bytes: u64,
    pub attributes: Value,
}

/// A document of a corpus, or a file that is to become one.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The id of the file; `CORPUS/DOCUMENT` for a document that was added otherwise.
    pub id: String,
    pub document: String,
    pub created: u64,
    pub bytes: u64,
    pub batch: Option<String>,
    pub attributes: Value,
    pub progress: Progress,
}

/// Adds files to a corpus by one job.
///
/// # Errors
/// If the corpus is unknown, or no job can be started.
pub(crate) async fn attach(
    app: &App,
    tenant: &Arc<Tenant>,
    corpus: String,
    new: Vec<NewFile>,
    batch: Option<String>,
) -> Result<()> {
    check_corpus(tenant, &corpus).await?;
    let folder = tenant.uploads.create()?;
    let (owner, name) = (Arc::clone(tenant), corpus.clone());
    let (folder, mut records, uploads) = run_blocking(move || {
        let open = owner.open(&name)?;
        let mut taken: Vec<String> = open.documents()?.into_iter().map(|document| document.path).collect();
        taken.extend(kept::all::<Attached>(&open)?.into_iter().map(|record| record.document));
        let (mut records, mut uploads) = (Vec::new(), Vec::new());
        for NewFile { id, name, path, bytes, attributes } in new {
            let document = free_name(&name, &taken);
            taken.push(document.clone());
            let file = temporary_name(uploads.len(), &name);
            let copy = folder.path().join(&file);
            std::fs::copy(path, &copy)?;
            std::fs::File::open(copy)?.sync_all()?;
            uploads.push(Upload { name: document.clone(), file });
            let job = Ok(String::new());
            let created = since_1970().as_secs();
            records.push(Attached { id, document, created, bytes, job, batch: batch.clone(), attributes });
        }
        Ok((folder, records, uploads))
    })
    .await?;
    let job = if uploads.is_empty() {
        None
    } else {
        Some(Job::new(corpus.clone(), method(Some(METHOD))?, uploads, Vec::new(), folder).await?)
    };
    for record in &mut records {
        if let (Ok(id), Some(job)) = (&mut record.job, &job) {
            job.id().clone_into(id);
        }
    }
    // Before the job starts: a document that is there has its record.
    let ids: Vec<String> = records.iter().map(|record| record.id.clone()).collect();
    let (owner, name) = (Arc::clone(tenant), corpus.clone());
    run_blocking(move || {
        let corpus = owner.open(&name)?;
        records.iter().try_for_each(|record| kept::write(&corpus, record))
    })
    .await?;
    let Some(Err(refused)) = job.map(|job| start(app, tenant, job)) else { return Ok(()) };
    // A file whose job is refused can be added again.
    let owner = Arc::clone(tenant);
    run_blocking(move || {
        let corpus = owner.open(&corpus)?;
        ids.iter().try_for_each(|id| kept::delete::<Attached>(&corpus, id))
    })
    .await?;
    Err(refused)
}

/// The name, with a number if a document has it already.
fn free_name(name: &str, taken: &[String]) -> String {
    let is_free = |name: &str| taken.iter().all(|taken| taken != name);
    if is_free(name) {
        return name.to_owned();
    }
    let path = Path::new(name);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
    let extension = path.extension().and_then(|kind| kind.to_str()).map_or_else(String::new, |kind| format!(".{kind}"));
    let numbered = |number| format!("{stem} ({number}){extension}");
    (2..=taken.len() + 2).map(numbered).find(|name| is_free(name)).unwrap_or_else(|| name.to_owned())
}

/// The documents of a corpus and the files that are to become some, the earliest first.
pub(crate) async fn entries(tenant: &Arc<Tenant>, corpus: String) -> Result<Vec<Entry>> {
    let owner = Arc::clone(tenant);
    reading(tenant, corpus, move |corpus| entries_of(&owner, corpus)).await
}

pub(crate) fn entries_of(tenant: &Tenant, corpus: &Corpus) -> Result<Vec<Entry>> {
    let documents = corpus.documents()?;
    let records = kept::all::<Attached>(corpus)?;
    let mut entries: Vec<Entry> = Vec::new();
    for document in documents.iter().filter(|document| records.iter().all(|record| !record.is_of(document))) {
        let bytes = corpus.text_pieces(document.id).map(|piece| Ok(piece?.len() as u64)).sum::<Result<u64>>()?;
        entries.push(Entry {
            id: format!("{}/{}", corpus.name(), document.id.0),
            document: document.path.clone(),
            created: u64::try_from(document.created_seconds).unwrap_or_default(),
            bytes,
            batch: None,
            attributes: Value::Object(serde_json::Map::new()),
            progress: Progress::Done,
        });
    }
    for record in records {
        let progress = record.progress(tenant, documents.iter().any(|document| record.is_of(document)));
        let Attached { id, document, created, bytes, batch, attributes, .. } = record;
        entries.push(Entry { id, document, created, bytes, batch, attributes, progress });
    }
    entries.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    Ok(entries)
}

/// The ids of the files of a corpus, by the names of their documents.
pub(crate) async fn file_ids(tenant: &Arc<Tenant>, corpus: String) -> Result<HashMap<String, String>> {
    let line = |record: Attached| (record.document, record.id);
    reading(tenant, corpus, move |corpus| Ok(kept::all::<Attached>(corpus)?.into_iter().map(line).collect())).await
}

/// Changes the attributes of a file.
pub(crate) async fn set_attributes(tenant: &Arc<Tenant>, corpus: String, id: String, attributes: Value) -> Result<()> {
    reading(tenant, corpus, move |corpus| {
        let (record, _) = kept::read::<Attached>(corpus, &id)?;
        kept::write(corpus, &Attached { attributes, ..record })
    })
    .await
}

/// The text of a file's document.
pub(crate) async fn text(tenant: &Arc<Tenant>, corpus: String, id: String) -> Result<String> {
    let owner = Arc::clone(tenant);
    reading(tenant, corpus, move |corpus| {
        let entry = entries_of(&owner, corpus)?.into_iter().find(|entry| entry.id == id);
        let document = match entry {
            Some(entry) => corpus.document_at(&entry.document)?,
            None => None,
        };
        let document = document.ok_or_else(|| ServerError::NotFound(format!("text of file {id}")))?;
        Ok(corpus.document_text(document.id)?)
    })
    .await
}

/// Removes a file from a corpus: its document with what was derived from it, its record, and what is left of its job.
///
/// # Errors
/// [`ServerError::NotFound`], and [`ServerError::CorpusLocked`] while a job changes the corpus.
pub(crate) async fn detach(tenant: &Arc<Tenant>, corpus: String, id: String) -> Result<()> {
    let (place, wanted) = (corpus.clone(), id.clone());
    let (documents, job) = reading(tenant, corpus.clone(), move |corpus| {
        let record = match kept::read::<Attached>(corpus, &wanted) {
            Ok((record, _)) => Some(record),
            Err(ServerError::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        let number = wanted.strip_prefix(&place).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned);
        let is_meant = |document: &Document| {
            record.as_ref().is_some_and(|record| record.is_of(document)) || number == Some(document.id.0.to_string())
        };
        let documents: Vec<Document> = corpus.documents()?.into_iter().filter(is_meant).collect();
        if record.is_none() && documents.is_empty() {
            return Err(ServerError::NotFound(format!("file {wanted}")));
        }
        Ok((documents, record.and_then(|record| record.job.ok())))
    })
    .await?;
    if !documents.is_empty() {
        for document in documents {
            remove_document(tenant, corpus.clone(), document.id).await?;
        }
        return Ok(());
    }
    let _lock = tenant.try_lock_corpus(&corpus)?;
    let owner = Arc::clone(tenant);
    reading(tenant, corpus, move |corpus| {
        if let Some(job) = job.and_then(|job| owner.jobs.get(&job).ok()) {
            owner.jobs.delete(&job);
        }
        kept::delete::<Attached>(corpus, &id)
    })
    .await
}

/// Removes a file from every corpus of its holder.
pub(crate) async fn detach_everywhere(tenant: &Arc<Tenant>, id: &str) -> Result<()> {
    let owner = Arc::clone(tenant);
    let wanted = id.to_owned();
    let holding = run_blocking(move || {
        let mut holding = Vec::new();
        for listing in owner.corpora.list()? {
            let name = listing.name.to_string();
            // A corpus that cannot be read has no files to remove.
            let Ok(corpus) = owner.open(&name) else { continue };
            if kept::read::<Attached>(&corpus, &wanted).is_ok() {
                holding.push(name);
            }
        }
        Ok(holding)
    })
    .await?;
    for corpus in holding {
        detach(tenant, corpus, id.to_owned()).await?;
    }
    Ok(())
}

/// Cancels the jobs that ingest these files.
pub(crate) async fn cancel(tenant: &Arc<Tenant>, corpus: String, batch: String) -> Result<()> {
    let records = reading(tenant, corpus, kept::all::<Attached>).await?;
    let of_batch = records.into_iter().filter(|record| record.batch.as_ref() == Some(&batch));
    for job in of_batch.filter_map(|record| record.job.ok()) {
        if let Ok(job) = tenant.jobs.get(&job) {
            job.stop();
        }
    }
    Ok(())
}

impl Attached {
    fn progress(&self, tenant: &Tenant, has_document: bool) -> Progress {
        let job = match &self.job {
            Err(reason) => return Progress::Failed(reason.clone()),
            Ok(job) => tenant.jobs.get(job).ok(),
        };
        match job {
            Some(job) => job.progress_of(&self.document),
            None if has_document => Progress::Done,
            None => Progress::Failed("the file could not be read".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::free_name;

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let taken = ["a.txt", "a (2).txt", "b"].map(str::to_owned);
        let names = ["a.txt", "b", "c.md"].map(|name| free_name(name, &taken));
        assert_eq!(names, ["a (3).txt", "b (2)", "c.md"]);
    }
}
