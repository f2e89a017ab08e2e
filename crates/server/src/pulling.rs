//! The models that this machine could serve, and the disk that they are fetched to.

use std::fmt;
use std::sync::Mutex;

use serde::Serialize;

/// Known models and the disk that they are fetched to.
pub trait Shelf: fmt::Debug + Send + Sync {
    fn list(&self) -> Vec<ShelfModel>;

    /// Memory that models can use now, in bytes; `None` if the system does not report it.
    fn free_bytes(&self) -> Option<u64>;

    /// Fetches a model of the list, and reports how far it is. Blocks until it is on the disk.
    ///
    /// # Errors
    /// Why it cannot be fetched, with what to do about it.
    fn pull(&self, name: &str, report: &mut dyn FnMut(PullProgress)) -> Result<(), (String, Option<String>)>;
}

/// A model of the shelf.
#[derive(Debug, Clone, Serialize)]
pub struct ShelfModel {
    pub name: String,
    /// `language` or `embedding`.
    pub kind: &'static str,
    pub context_tokens: usize,
    pub download_bytes: Option<u64>,
    /// Memory of weights and a usual KV cache.
    pub memory_bytes: u64,
    pub licence: String,
    /// Whether it is on this disk.
    pub here: bool,
}

/// How far the download of one file is.
#[derive(Debug, Clone, Serialize)]
pub struct PullProgress {
    pub file: String,
    pub done_bytes: u64,
    pub total_bytes: Option<u64>,
}

/// One model is fetched at a time.
#[derive(Debug, Default)]
pub(crate) struct Pulling(pub Mutex<()>);
