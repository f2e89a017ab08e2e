//! Uploaded files in a corpus: which document each became, as OpenAI's vector stores list them. The record of a file is
//! beside the corpus and is removed with it; how far its ingest is follows from its job and its document.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use store::{Corpus, Document};

use super::attachment::{self, Attached};
use super::documents::{in_use_here, reading, remove_document};
use super::ingest::{check_corpus, temporary_name};
pub(crate) use super::jobs::Progress;
use super::jobs::{NewJob, Upload, start_now};
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
/// If the corpus is unknown or has one of the files already, or no job can be started; nothing is left of the files then.
pub(crate) async fn attach(
    app: &App,
    tenant: &Arc<Tenant>,
    corpus: String,
    new: Vec<NewFile>,
    batch: Option<String>,
) -> Result<()> {
    check_corpus(tenant, &corpus).await?;
    let (app, tenant) = (Arc::clone(app), Arc::clone(tenant));
    let one = Arc::clone(&tenant.attaching).lock_owned().await;
    // Records and job are one step: a client that disconnects stops none of it.
    run_blocking(move || {
        let _one = one;
        let open = tenant.open(&corpus)?;
        let known = kept::all::<Attached>(&open)?;
        if let Some(NewFile { id, .. }) = new.iter().find(|file| known.iter().any(|known| known.id == file.id)) {
            return Err(ServerError::invalid(format!("{id} is in the vector store {corpus} already"), "file_id"));
        }
        let (folder, job) = (tenant.uploads.create()?, fresh_id("job")?);
        let mut taken: Vec<String> = open.documents()?.into_iter().map(|document| document.path).collect();
        taken.extend(known.into_iter().map(|record| record.document));
        let (mut records, mut uploads) = (Vec::new(), Vec::new());
        for NewFile { id, name, path, bytes, attributes } in new {
            let document = free_name(&name, &taken);
            taken.push(document.clone());
            let file = temporary_name(uploads.len(), &name);
            let copy = folder.path().join(&file);
            match std::fs::copy(path, &copy) {
                // It was deleted since it was chosen.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(ServerError::NotFound(format!("file {id}")));
                }
                copied => copied?,
            };
            std::fs::File::open(copy)?.sync_all()?;
            uploads.push(Upload { name: document.clone(), file });
            let (created, job) = (since_1970().as_secs(), Ok(job.clone()));
            records.push(Attached { id, document, created, bytes, job, batch: batch.clone(), attributes });
        }
        let new = NewJob::new(job, corpus, method(Some(METHOD))?, uploads, Vec::new(), folder);
        // Before the job is kept: a document that is there has its record.
        let written = records.iter().try_for_each(|record| kept::write(&open, record));
        let Err(refused) = written.and_then(|()| start_now(&app, &tenant, new)) else { return Ok(()) };
        // Files whose job was not started can be added again.
        for Attached { id, .. } in &records {
            match attachment::delete(&open, id) {
                Ok(()) | Err(ServerError::NotFound(_)) => {}
                Err(error) => tracing::warn!(%error, "cannot delete the record of a file that was not added"),
            }
        }
        Err(refused)
    })
    .await
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
    reading(tenant, corpus, move |corpus| attachment::set_attributes(corpus, &id, attributes)).await
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
        attachment::delete(corpus, &id)
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
                Err(error) if is_temporary(&error) => return Err(in_use_here(error)),
                // One that is gone or damaged has no files to remove.
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

/// Whether a corpus that cannot be opened now may be opened later: it is in use, or its database or disk cannot be reached.
fn is_temporary(error: &ServerError) -> bool {
    error.obstacle().is_some() || matches!(error.status().0.as_u16(), 409 | 503)
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
    use super::*;
    use crate::app::Shared;

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let taken = ["a.txt", "a (2).txt", "b"].map(str::to_owned);
        let names = ["a.txt", "b", "c.md"].map(|name| free_name(name, &taken));
        assert_eq!(names, ["a (3).txt", "b (2)", "c.md"]);
    }

    #[test]
    fn only_what_is_damaged_or_gone_has_no_files_to_remove() {
        use store::Error as E;
        let path = || PathBuf::from("corpus.db");
        for (error, temporary) in [
            (E::CorpusBusy { name: "pell".into(), holder: None }, true),
            (E::Locked { path: path(), source: "it is locked".into() }, true),
            (E::Postgres { place: "here".into(), source: "it does not answer".into() }, true),
            (E::NotPermitted { path: path(), source: "no".into() }, true),
            (E::DiskFull { path: path(), source: "no".into() }, true),
            (E::NotACorpus { path: path() }, false),
            (E::UnknownCorpus { name: "pell".into(), nearest: Vec::new() }, false),
        ] {
            let error = ServerError::Store(error);
            assert_eq!(is_temporary(&error), temporary, "{error}");
        }
    }

    #[tokio::test]
    async fn a_file_that_was_deleted_since_it_was_chosen_is_unknown() {
        let (app, data) = Shared::scripted();
        let tenant = app.tenants.anonymous();
        drop(tenant.corpora.create("pell").expect("a corpus"));
        let file = NewFile {
            id: format!("file-{:032x}", 1),
            name: "wall.txt".to_owned(),
            path: data.path().join("gone"),
            bytes: 1,
            attributes: Value::Null,
        };
        let refused = attach(&app, &tenant, "pell".to_owned(), vec![file], None).await;
        assert!(matches!(refused, Err(ServerError::NotFound(_))), "{refused:?}");
        assert!(entries(&tenant, "pell".to_owned()).await.expect("they can be listed").is_empty());
    }
}
