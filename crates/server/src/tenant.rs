//! Tenants: one per API key with its own corpora, jobs and traces, or a single anonymous one if no keys are required.

use std::collections::HashMap;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Extension;
use calls::TenantId;
use store::{Corpora, Corpus, private};
use tokio::sync::{Notify, OwnedMutexGuard};

use crate::config::Config;
use crate::corpora::jobs::list::Jobs;
use crate::corpora::trace_list::Traces;
use crate::error::{Result, ServerError};
use crate::forget::Forget;
use crate::keys::KeysFile;
use crate::openai::batches::kept::Batches;
use crate::openai::responses::kept::Responses;
use crate::openai::stored_files::Files;
use crate::uploads::Uploads;

/// The tenant of a request.
pub(crate) type CurrentTenant = Extension<Arc<Tenant>>;

/// Exclusive permission to change a corpus.
pub(crate) type CorpusLock = OwnedMutexGuard<()>;

/// All tenants.
pub(crate) struct Tenants {
    anonymous: Arc<Tenant>,
    /// Tenants by key name, including those whose key was removed, since their jobs may still run.
    named: Mutex<HashMap<String, Arc<Tenant>>>,
    /// Those whose jobs were not resumed yet.
    new: Mutex<Vec<Arc<Tenant>>>,
    added: Notify,
}

/// One tenant.
pub(crate) struct Tenant {
    /// Namespace of caches, so that no other tenant's calls match.
    pub id: TenantId,
    /// The name of the key; `None` if no key is required.
    pub name: Option<String>,
    /// True for the operator, who sees the counts of all tenants.
    pub is_operator: bool,
    pub corpora: Corpora,
    pub jobs: Jobs,
    pub traces: Arc<Traces>,
    pub responses: Arc<Responses>,
    pub forget: Forget,
    pub files: Files,
    pub batches: Batches,
    pub uploads: Uploads,
    /// Held while files are added to a corpus, so that no two of them get one name, and while a file is deleted.
    pub attaching: Arc<tokio::sync::Mutex<()>>,
    /// One job changes a corpus at a time. Readers need no lock: the store gives them a snapshot.
    locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Tenants {
    pub fn new(config: &Config) -> Tenants {
        let folder = &config.data_folder;
        // Without keys the only user is the operator.
        let corpora_here = corpora(folder, config).with_bundle(config.bundle.clone());
        let anonymous = Tenant::new(None, true, folder, corpora_here, config);
        let new = Mutex::new(vec![Arc::clone(&anonymous)]);
        let tenants = Tenants { anonymous, named: Mutex::default(), new, added: Notify::new() };
        for name in config.keys.as_ref().and_then(KeysFile::keys).iter().flat_map(|keys| keys.names()) {
            tenants.named(name, config);
        }
        tenants
    }

    /// The tenant of requests when no key is required.
    pub fn anonymous(&self) -> Arc<Tenant> {
        Arc::clone(&self.anonymous)
    }

    /// The tenant of a key; keys may be added while the server runs.
    pub fn named(&self, name: &str, config: &Config) -> Arc<Tenant> {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let tenant = || {
            let folder = config.data_folder.join("tenants").join(name);
            let is_operator = config.operator.as_deref() == Some(name);
            let corpora = corpora(&folder, config).of_holder(name);
            let tenant = Tenant::new(Some(name), is_operator, &folder, corpora, config);
            self.new.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&tenant));
            self.added.notify_one();
            tenant
        };
        Arc::clone(named.entry(name.to_owned()).or_insert_with(tenant))
    }

    /// The tenants that became known since the last call: all at first, then those of keys that were added.
    pub fn take_new(&self) -> Vec<Arc<Tenant>> {
        take(&mut *self.new.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ready when there may be new tenants.
    pub async fn added(&self) {
        self.added.notified().await;
    }

    /// Interrupts all jobs.
    pub fn stop(&self) {
        self.all().iter().for_each(|tenant| tenant.jobs.stop());
    }

    /// Waits until all jobs have ended.
    pub async fn drained(&self) {
        for tenant in self.all() {
            tenant.jobs.drained().await;
        }
    }

    /// All tenants known so far.
    pub fn all(&self) -> Vec<Arc<Tenant>> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.values().chain([&self.anonymous]).cloned().collect()
    }
}

/// Restricts to their owner the permissions of files that older versions left readable by others.
fn restrict_permissions(folder: &Path, config: &Config) {
    let tenants = config.data_folder.join("tenants");
    let kept = ["corpora", "uploads", "responses", "conversations", "files", "batches"].map(|name| folder.join(name));
    let all = [tenants.as_path(), folder].into_iter().chain(kept.iter().map(PathBuf::as_path));
    // The data folder itself may hold models shared with other users.
    for path in all.filter(|path| *path != config.data_folder) {
        if let Err(error) = private::tighten(path) {
            tracing::warn!(%error, path = %path.display(), "cannot change permissions");
        }
    }
}

/// Stable across processes, since saved prefixes carry it.
fn tenant_id(holder: &str) -> TenantId {
    let digest = blake3::hash(format!("tenant {holder}").as_bytes());
    let (number, _) = digest.as_bytes().split_first_chunk().expect("a digest has 32 bytes");
    TenantId::new(u64::from_le_bytes(*number))
}

fn corpora(folder: &Path, config: &Config) -> Corpora {
    Corpora::new(folder).with_vectors(config.vectors.clone())
}

impl Tenant {
    fn new(name: Option<&str>, is_operator: bool, folder: &Path, corpora: Corpora, config: &Config) -> Arc<Tenant> {
        restrict_permissions(folder, config);
        if let Err(error) = corpora.clear_removed() {
            tracing::warn!(%error, "cannot delete the files of a removed corpus");
        }
        let traces = Arc::new(Traces::new(config.max_trace_bytes));
        let responses = Arc::new(Responses::new(folder));
        let forget = Forget::new(folder, Arc::clone(&responses), Arc::clone(&traces));
        // Before the jobs are taken over: one may have the upload of a document that is gone.
        if let Err(error) = forget.finish(None) {
            tracing::warn!(%error, "cannot forget what was derived from removed documents");
        }
        let uploads = Uploads::new(folder.join("uploads"));
        let left = uploads.take_over().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot take over the uploads of previous servers");
            Vec::new()
        });
        let files = Files::new(folder.join("files"));
        if let Err(error) = files.sweep() {
            tracing::warn!(%error, "cannot delete files that a previous server left");
        }
        Arc::new(Tenant {
            id: name.map_or(TenantId::LOCAL, tenant_id),
            name: name.map(ToOwned::to_owned),
            is_operator,
            uploads,
            corpora,
            jobs: Jobs::recover(left),
            traces,
            responses,
            forget,
            files,
            batches: Batches::new(folder),
            attaching: Arc::default(),
            locks: Mutex::default(),
        })
    }

    /// Opens a corpus for reading, as [`Corpora::open`]. What other clients have removed from a shared corpus is forgotten
    /// first.
    ///
    /// # Errors
    /// [`ServerError::Store`], and those of forgetting, which is repeated when the corpus is next opened.
    pub fn open(&self, corpus: &str) -> Result<Corpus> {
        match self.corpora.open(corpus) {
            Ok(open) => match self.forget.catch_up(&open) {
                // The corpus can be read without room on the disk.
                Err(error) if error.is_of_disk() => {
                    tracing::warn!(%error, corpus, "cannot forget what another client has removed");
                    Ok(open)
                }
                caught_up => caught_up.map(|()| open),
            },
            Err(error @ store::Error::UnknownCorpus { .. }) => {
                if self.forget.catch_up_removed(corpus)? {
                    self.jobs.delete_of(corpus);
                }
                Err(error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Acquires permission to change a corpus.
    ///
    /// # Errors
    /// [`ServerError::CorpusLocked`] while a job changes the corpus or waits to.
    pub fn try_lock_corpus(&self, corpus: &str) -> Result<CorpusLock> {
        self.corpus_mutex(corpus).try_lock_owned().map_err(|_| corpus_locked(corpus))
    }

    /// As [`Tenant::try_lock_corpus`], but waits for the current holder.
    pub async fn lock_corpus(&self, corpus: &str) -> CorpusLock {
        self.corpus_mutex(corpus).lock_owned().await
    }

    fn corpus_mutex(&self, corpus: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        // Entries of deleted corpora and of names that never existed.
        locks.retain(|name, lock| name == corpus || Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(corpus.to_owned()).or_default())
    }
}

fn corpus_locked(corpus: &str) -> ServerError {
    ServerError::CorpusLocked(corpus.to_owned())
}
