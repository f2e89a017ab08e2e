//! Whose corpora, jobs and traces: one tenant for each holder of a key, or one for all where no keys are asked for.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use calls::TenantId;
use store::{Corpora, private};
use tokio::sync::OwnedMutexGuard;

use crate::config::Config;
use crate::corpora::{Jobs, Traces};
use crate::error::{Result, ServerError};
use crate::keys::KeysFile;
use crate::uploads::Uploads;

/// Leave to change a corpus.
pub(crate) type Change = OwnedMutexGuard<()>;

/// All tenants.
pub(crate) struct Tenants {
    anonymous: Arc<Tenant>,
    /// Holders of keys, those whose key is gone included: their jobs may still run.
    named: Mutex<HashMap<String, Arc<Tenant>>>,
}

/// One tenant.
pub(crate) struct Tenant {
    /// Marks calls, so that caches never serve another tenant.
    pub id: TenantId,
    /// True for the operator, who may see counts of the whole server.
    pub is_operator: bool,
    pub corpora: Corpora,
    pub jobs: Jobs,
    pub traces: Traces,
    pub uploads: Uploads,
    /// One job changes a corpus at a time. Who reads needs no leave: the store shows them what was there when they came.
    locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Tenants {
    pub fn new(config: &Config) -> Tenants {
        let folder = &config.data_folder;
        // Where no key is asked for, the only user is the operator.
        let anonymous = Tenant::new(TenantId::LOCAL, true, folder, corpora(folder, config), config);
        let tenants = Tenants { anonymous, named: Mutex::default() };
        for name in config.keys.as_ref().and_then(KeysFile::keys).iter().flat_map(|keys| keys.names()) {
            tenants.named(name, config);
        }
        tenants
    }

    /// The one for whom no key is asked.
    pub fn anonymous(&self) -> Arc<Tenant> {
        Arc::clone(&self.anonymous)
    }

    /// The holder of a key; keys are also made while the server runs.
    pub fn named(&self, name: &str, config: &Config) -> Arc<Tenant> {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let tenant = || {
            let folder = config.data_folder.join("tenants").join(name);
            let is_operator = config.operator.as_deref() == Some(name);
            Tenant::new(id_of(name), is_operator, &folder, corpora(&folder, config).of_holder(name), config)
        };
        Arc::clone(named.entry(name.to_owned()).or_insert_with(tenant))
    }

    /// Stops all jobs.
    pub fn stop(&self) {
        self.all().iter().for_each(|tenant| tenant.jobs.stop());
    }

    /// Waits until all jobs have ended.
    pub async fn drained(&self) {
        for tenant in self.all() {
            tenant.jobs.drained().await;
        }
    }

    /// Every tenant that is known by now.
    pub fn all(&self) -> Vec<Arc<Tenant>> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.values().chain([&self.anonymous]).cloned().collect()
    }
}

/// Makes what older versions have left readable for others private to the owner of the data folder.
fn tighten(folder: &Path, config: &Config) {
    let of_holders = config.data_folder.join("tenants");
    let all = [of_holders.as_path(), folder, &folder.join("corpora"), &folder.join("uploads")];
    // The data folder itself may hold models that others share.
    for path in all.into_iter().filter(|path| *path != config.data_folder) {
        if let Err(error) = private::tighten(path) {
            tracing::warn!(%error, path = %path.display(), "permissions cannot be changed");
        }
    }
}

/// The same in every process, since saved prefixes bear it.
fn id_of(holder: &str) -> TenantId {
    let digest = blake3::hash(format!("tenant {holder}").as_bytes());
    let (number, _) = digest.as_bytes().split_first_chunk().expect("a digest has 32 bytes");
    TenantId::new(u64::from_le_bytes(*number))
}

fn corpora(folder: &Path, config: &Config) -> Corpora {
    Corpora::new(folder).with_vectors(config.vectors.clone())
}

impl Tenant {
    fn new(id: TenantId, is_operator: bool, folder: &Path, corpora: Corpora, config: &Config) -> Arc<Tenant> {
        tighten(folder, config);
        if let Err(error) = corpora.clear_removed() {
            tracing::warn!(%error, "what is left of a removed corpus cannot be deleted");
        }
        let uploads = Uploads::new(folder.join("uploads"));
        let left = uploads.take_over().unwrap_or_else(|error| {
            tracing::warn!(%error, "the uploads of servers before this one cannot be taken over");
            Vec::new()
        });
        Arc::new(Tenant {
            id,
            is_operator,
            uploads,
            corpora,
            jobs: Jobs::left_in(left),
            traces: Traces::new(config.max_trace_bytes),
            locks: Mutex::default(),
        })
    }

    /// Leave to change a corpus.
    ///
    /// # Errors
    /// [`ServerError::Conflict`] while a job changes it or waits to.
    pub fn changing(&self, corpus: &str) -> Result<Change> {
        self.lock(corpus).try_lock_owned().map_err(|_| being_changed(corpus))
    }

    /// The same, once all others are done.
    pub async fn changing_later(&self, corpus: &str) -> Change {
        self.lock(corpus).lock_owned().await
    }

    fn lock(&self, corpus: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        // Names of corpora that are gone, and of some that never were.
        locks.retain(|name, lock| name == corpus || Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(corpus.to_owned()).or_default())
    }
}

fn being_changed(corpus: &str) -> ServerError {
    ServerError::Conflict(format!("corpus {corpus} is being changed; GET /v1/jobs shows what is being done to it"))
}
