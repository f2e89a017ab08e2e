//! Whose corpora, jobs and traces: one tenant for each holder of a key, or one for all where no keys are asked for.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use store::Corpora;
use tempfile::TempDir;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::config::Config;
use crate::corpora::{Jobs, Traces};
use crate::error::{Result, ServerError};
use crate::keys::Keys;

/// All tenants.
pub(crate) struct Tenants {
    anonymous: Arc<Tenant>,
    named: HashMap<String, Arc<Tenant>>,
}

/// One tenant.
pub(crate) struct Tenant {
    pub corpora: Corpora,
    pub jobs: Jobs,
    pub traces: Traces,
    uploads: PathBuf,
    /// One job writes to a corpus at a time, and not while somebody reads it.
    locks: Mutex<HashMap<String, Arc<RwLock<()>>>>,
}

impl Tenants {
    pub fn new(config: &Config) -> Tenants {
        let folder = &config.data_folder;
        let holders = config.keys.iter().flat_map(Keys::names);
        let tenant = |name: &str| (name.to_owned(), Tenant::new(folder.join("tenants").join(name), config));
        Tenants { anonymous: Tenant::new(folder.clone(), config), named: holders.map(tenant).collect() }
    }

    /// The one for whom no key is asked.
    pub fn anonymous(&self) -> Arc<Tenant> {
        Arc::clone(&self.anonymous)
    }

    /// The holder of a key.
    pub fn named(&self, name: &str) -> Arc<Tenant> {
        Arc::clone(self.named.get(name).unwrap_or(&self.anonymous))
    }

    /// Stops all jobs.
    pub fn stop(&self) {
        self.named.values().chain([&self.anonymous]).for_each(|tenant| tenant.jobs.stop());
    }
}

impl Tenant {
    fn new(folder: PathBuf, config: &Config) -> Arc<Tenant> {
        let uploads = folder.join("uploads");
        // What a server that was killed has left behind; nobody could take it up again.
        let _ = fs::remove_dir_all(&uploads);
        Arc::new(Tenant {
            corpora: Corpora::new(folder).with_vectors(config.vectors.clone()),
            jobs: Jobs::default(),
            traces: Traces::new(config.max_trace_bytes),
            uploads,
            locks: Mutex::default(),
        })
    }

    /// A folder for one upload, which goes with the value.
    pub fn upload_folder(&self) -> Result<TempDir> {
        fs::create_dir_all(&self.uploads)?;
        Ok(TempDir::new_in(&self.uploads)?)
    }

    /// Leave to read a corpus, beside other readers.
    ///
    /// # Errors
    /// [`ServerError::Conflict`] while a job writes to it or waits to.
    pub fn reading(&self, corpus: &str) -> Result<OwnedRwLockReadGuard<()>> {
        self.lock(corpus).try_read_owned().map_err(|_| being_written(corpus))
    }

    /// Leave to change a corpus, alone.
    ///
    /// # Errors
    /// [`ServerError::Conflict`] while anybody uses it.
    pub fn changing(&self, corpus: &str) -> Result<OwnedRwLockWriteGuard<()>> {
        self.lock(corpus).try_write_owned().map_err(|_| being_written(corpus))
    }

    /// The same, once all others are done.
    pub async fn changing_later(&self, corpus: &str) -> OwnedRwLockWriteGuard<()> {
        self.lock(corpus).write_owned().await
    }

    fn lock(&self, corpus: &str) -> Arc<RwLock<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        // Names of corpora that are gone, and of some that never were.
        locks.retain(|name, lock| name == corpus || Arc::strong_count(lock) > 1);
        Arc::clone(locks.entry(corpus.to_owned()).or_default())
    }
}

fn being_written(corpus: &str) -> ServerError {
    ServerError::Conflict(format!("corpus {corpus} is in use; GET /v1/jobs shows what is being done to it"))
}
