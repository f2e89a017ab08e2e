//! Uploaded files in a corpus: which document each became, as OpenAI's vector stores list them. The record of a file is
//! beside the corpus and is removed with it; how far its ingest is follows from its job and its document.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use store::{Corpus, Document};

use super::attachment::Attached;
use super::documents::{in_use_here, reading, remove_document};
use super::ingest::{check_corpus, temporary_name};
pub(crate) use super::jobs::Progress;
use super::jobs::{Job, Upload, start};
use super::kept;
use super::settings::method;
use crate::app::{App, fresh_id, since_1970};
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
    pub created: u64,
    pub bytes: u64,
    pub batch: Option<String>,
    pub attributes: Value,
    pub progress: Progress,
}

/// Adds files to a corpus by one job.
///
/// # Errors
/// If the corpus is unknown, or no job can be started; nothing is left of the files then.
pub(crate) async fn attach(
    app: &App,
    tenant: &Arc<Tenant>,
    corpus: String,
    new: Vec<NewFile>,
    batch: Option<String>,
) -> Result<()> {
    check_corpus(tenant, &corpus).await?;
    let (folder, job) = (tenant.uploads.create()?, fresh_id("job")?);
    let (owner, name, job_id) = (Arc::clone(tenant), corpus.clone(), job.clone());
    let (folder, records, uploads) = run_blocking(move || {
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
            let (created, job) = (since_1970().as_secs(), Ok(job_id.clone()));
            records.push(Attached { id, document, created, bytes, job, batch: batch.clone(), attributes });
        }
        Ok((folder, records, uploads))
    })
    .await?;
    let ids: Vec<String> = records.iter().map(|record| record.id.clone()).collect();
    let (owner, name) = (Arc::clone(tenant), corpus.clone());
    let started = async {
        // Before the job is kept: a document that is there has its record.
        run_blocking(move || {
            let corpus = owner.open(&name)?;
            records.iter().try_for_each(|record| kept::write(&corpus, record))
        })
        .await?;
        let method = method(Some(METHOD))?;
        start(app, tenant, Job::with_id(job, corpus.clone(), method, uploads, Vec::new(), folder).await?)
    };
    let Err(refused) = started.await else { return Ok(()) };
    // Files whose job was not started can be added again.
    let owner = Arc::clone(tenant);
    let deleted = run_blocking(move || {
        let corpus = owner.open(&corpus)?;
        ids.iter().map(|id| kept::delete::<Attached>(&corpus, id)).try_for_each(|deleted| match deleted {
            Err(ServerError::NotFound(_)) => Ok(()),
            deleted => deleted,
        })
    });
    if let Err(error) = deleted.await {
        tracing::warn!(%error, "cannot delete the records of files that were not added");
    }
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
    let records = kept::all::<Attached>(corpus)?;
    let by_name = ByName::of(&records);
    let (mut entries, mut read): (Vec<Entry>, HashSet<&str>) = (Vec::new(), HashSet::new());
    for document in corpus.documents()? {
        if let Some(record) = by_name.file_of(&document) {
            read.insert(&record.id);
            continue;
        }
        entries.push(Entry {
            id: format!("{}/{}", corpus.name(), document.id.0),
            created: u64::try_from(document.created_seconds).unwrap_or_default(),
            bytes: corpus.text_bytes(document.id)? as u64,
            batch: None,
            attributes: Value::Object(serde_json::Map::new()),
            progress: Progress::Done,
        });
    }
    for record in &records {
        let progress = record.progress(tenant, read.contains(record.id.as_str()));
        let Attached { id, created, bytes, batch, attributes, .. } = record.clone();
        entries.push(Entry { id, created, bytes, batch, attributes, progress });
    }
    entries.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    Ok(entries)
}

/// The ids of the files of a corpus.
pub(crate) async fn file_ids(tenant: &Arc<Tenant>, corpus: String) -> Result<HashSet<String>> {
    let id = |record: Attached| record.id;
    reading(tenant, corpus, move |corpus| Ok(kept::all::<Attached>(corpus)?.into_iter().map(id).collect())).await
}

/// The files of a corpus, by the names of the documents that they became.
pub(crate) async fn files_by_document(tenant: &Arc<Tenant>, corpus: String) -> Result<HashMap<String, Attached>> {
    reading(tenant, corpus, |corpus| {
        let records = kept::all::<Attached>(corpus)?;
        if records.is_empty() {
            return Ok(HashMap::new());
        }
        let by_name = ByName::of(&records);
        let file_of = |document: Document| {
            let file = by_name.file_of(&document)?.clone();
            Some((document.path, file))
        };
        Ok(corpus.documents()?.into_iter().filter_map(file_of).collect())
    })
    .await
}

/// The records of files, by the names of their documents.
struct ByName<'a>(HashMap<&'a str, &'a Attached>);

impl<'a> ByName<'a> {
    fn of(records: &'a [Attached]) -> ByName<'a> {
        ByName(records.iter().map(|record| (record.document.as_str(), record)).collect())
    }

    /// The file that became a document, alone or with others.
    fn file_of(&self, document: &Document) -> Option<&'a Attached> {
        let path = document.path.as_str();
        let ends = path.match_indices('#').map(|(end, _)| end).chain([path.len()]);
        let mut named = ends.filter_map(|end| self.0.get(&path[..end]).copied());
        named.find(|record| record.is_of(document))
    }
}

/// Changes the attributes of a file.
pub(crate) async fn set_attributes(tenant: &Arc<Tenant>, corpus: String, id: String, attributes: Value) -> Result<()> {
    reading(tenant, corpus, move |corpus| {
        let (record, _) = kept::read::<Attached>(corpus, &id)?;
        kept::write(corpus, &Attached { attributes, ..record })
    })
    .await
}

/// The texts of a file's documents.
pub(crate) async fn texts(tenant: &Arc<Tenant>, corpus: String, id: String) -> Result<Vec<String>> {
    reading(tenant, corpus, move |corpus| {
        let (_, documents) = find(corpus, &id)?;
        if documents.is_empty() {
            return Err(ServerError::NotFound(format!("text of file {id}")));
        }
        documents.iter().map(|document| Ok(corpus.document_text(document.id)?)).collect()
    })
    .await
}

/// The record of a file, if it has one, and its documents.
///
/// # Errors
/// [`ServerError::NotFound`] if the corpus has no such file.
fn find(corpus: &Corpus, id: &str) -> Result<(Option<Attached>, Vec<Document>)> {
    let record = match kept::read::<Attached>(corpus, id) {
        Ok((record, _)) => Some(record),
        Err(ServerError::NotFound(_)) => None,
        Err(error) => return Err(error),
    };
    let name = corpus.name().to_string();
    let number = id.strip_prefix(&name).and_then(|rest| rest.strip_prefix('/'));
    let is_meant = |document: &Document| match &record {
        Some(record) => record.is_of(document),
        None => number == Some(document.id.0.to_string().as_str()),
    };
    let documents: Vec<Document> = corpus.documents()?.into_iter().filter(is_meant).collect();
    if record.is_none() && documents.is_empty() {
        return Err(ServerError::NotFound(format!("file {id}")));
    }
    Ok((record, documents))
}

/// Removes a file from a corpus: its document with what was derived from it, its record, and what is left of its job.
///
/// # Errors
/// [`ServerError::NotFound`], and [`ServerError::CorpusLocked`] while a job changes the corpus.
pub(crate) async fn detach(tenant: &Arc<Tenant>, corpus: String, id: String) -> Result<()> {
    let wanted = id.clone();
    let (documents, job) = reading(tenant, corpus.clone(), move |corpus| {
        let (record, documents) = find(corpus, &wanted)?;
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
            let corpus = match owner.open(&name) {
                Ok(corpus) => corpus,
                // It may have the file.
                Err(busy @ ServerError::Store(store::Error::CorpusBusy { .. })) => return Err(in_use_here(busy)),
                // One that cannot be read has no files to remove.
                Err(_) => continue,
            };
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
