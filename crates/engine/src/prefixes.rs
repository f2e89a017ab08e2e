//! Cached prefixes as callers control them: save, restore.

use std::path::{Path, PathBuf};

use calls::{BoxFuture, Kept, Prefixes, TenantId, WorkflowId};
use models::ModelError;
use scheduler::{Namespace, PAGE_TOKENS};
use tokio::sync::oneshot;

use crate::catch_panic::with_causes;
use crate::engine::Engine;
use crate::frontend::ModelFrontend;
use crate::message::Message;
use crate::namespace::namespace;
use crate::snapshot::{CopiedPages, SnapshotError, Writing};

impl Engine {
    async fn keep(&self, tenant: TenantId, workflow: WorkflowId, folder: &Path) -> Kept {
        let mut kept = Kept::default();
        for (model, frontend) in self.frontends().iter().enumerate() {
            for adapter in frontend.variants() {
                let variant = Variant { frontend, adapter, namespace: namespace(tenant, frontend.digest_of(adapter)) };
                note(&mut kept, self.save(model, &variant, workflow, variant.file(folder)).await);
            }
        }
        kept
    }

    /// Saves a snapshot of the prefixes that the prompts of a workflow begin with, if any is new; returns their number of tokens. The file
    /// is written on this thread, which it blocks; the engine's thread copies some pages at a time.
    async fn save(
        &self,
        model: usize,
        variant: &Variant<'_>,
        workflow: WorkflowId,
        path: PathBuf,
    ) -> Result<usize, SnapshotError> {
        let (identity, namespace, page_bytes) = (variant.identity()?, variant.namespace, variant.frontend.page_bytes);
        // One after the other, so that no snapshot replaces a later one.
        let _turn = self.snapshots().lock().await;
        let Some(mut copied) = self.copy(model, namespace, workflow, 0).await? else { return Ok(0) };
        let mut writing = Writing::begin(&path, &identity, namespace, page_bytes, &copied.pages)?;
        let mut written = 0;
        loop {
            writing.copied(&copied)?;
            written += copied.count;
            if written == copied.pages.len() {
                break;
            }
            let next = self.copy(model, namespace, workflow, written).await?;
            let is_same = |next: &CopiedPages| next.pages == copied.pages;
            copied = next.filter(is_same).ok_or_else(|| SnapshotError::Evicted { path: path.clone() })?;
        }
        writing.end()?;
        Ok(written * PAGE_TOKENS)
    }

    /// Copies some of the pages that a snapshot is to have.
    async fn copy(
        &self,
        model: usize,
        namespace: Namespace,
        workflow: WorkflowId,
        from: usize,
    ) -> Result<Option<CopiedPages>, SnapshotError> {
        let (reply, receiver) = oneshot::channel();
        self.post(Message::CopyPages { model, namespace, workflow, from, reply }).ok_or(SnapshotError::Closed)?;
        receiver.await.map_err(|_| SnapshotError::Closed)?
    }

    async fn bring(&self, tenant: TenantId, folder: &Path) -> Kept {
        let mut kept = Kept::default();
        for (model, frontend) in self.frontends().iter().enumerate() {
            for adapter in frontend.variants() {
                let variant = Variant { frontend, adapter, namespace: namespace(tenant, frontend.digest_of(adapter)) };
                note(&mut kept, self.load(model, &variant, &variant.file(folder)).await);
            }
        }
        kept
    }

    async fn load(&self, model: usize, variant: &Variant<'_>, path: &Path) -> Result<usize, SnapshotError> {
        let namespace = variant.namespace;
        let (identity, page_bytes) = (|| variant.identity(), variant.frontend.page_bytes);
        let opened = variant.frontend.checked.open(path, identity, namespace, page_bytes)?;
        let Some(saved) = opened else { return Ok(0) };
        let (reply, receiver) = oneshot::channel();
        self.post(Message::Load { model, namespace, saved, reply }).ok_or(SnapshotError::Closed)?;
        receiver.await.map_err(|_| SnapshotError::Closed)?
    }
}

impl Prefixes for Engine {
    fn keep_prefixes<'a>(&'a self, tenant: TenantId, workflow: WorkflowId, folder: &'a Path) -> BoxFuture<'a, Kept> {
        Box::pin(self.keep(tenant, workflow, folder))
    }

    fn bring_prefixes<'a>(&'a self, tenant: TenantId, folder: &'a Path) -> BoxFuture<'a, Kept> {
        Box::pin(self.bring(tenant, folder))
    }
}

/// A model, with one of its adapters or without.
struct Variant<'a> {
    frontend: &'a ModelFrontend,
    adapter: Option<usize>,
    namespace: Namespace,
}

impl Variant<'_> {
    /// Its snapshot file.
    fn file(&self, folder: &Path) -> PathBuf {
        let name = self.adapter.map_or(&self.frontend.name, |adapter| &self.frontend.adapters[adapter].served_name);
        folder.join(format!("{}.kv", &blake3::hash(name.as_bytes()).to_hex()[..16]))
    }

    /// The digest of everything that keys and values depend on, the adapter included.
    fn identity(&self) -> Result<String, ModelError> {
        let model = self.frontend.identity.digest()?;
        let digest = self.frontend.digest_of(self.adapter).map(|digest| blake3::Hash::from_bytes(*digest).to_hex());
        Ok(digest.map_or_else(|| model.clone(), |digest| format!("{model}+{digest}")))
    }
}

fn note(kept: &mut Kept, outcome: Result<usize, SnapshotError>) {
    match outcome {
        Ok(tokens) => kept.tokens += tokens,
        Err(error) => kept.refused.push(with_causes(&error)),
    }
}
