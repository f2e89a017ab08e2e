//! Configuration: limits of size and time, folders and keys.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bundle::Bundle;
use sources::PdfChild;
use store::Postgres;

use crate::keys::KeysFile;
use crate::loading::keep_alive::KeepAlive;
use crate::pulling::{Preloaded, Shelf};

/// When models are loaded and unloaded while the server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadModels {
    /// While it serves this machine alone: it listens on a loopback address and requires no keys.
    Alone,
    /// Whatever a request names.
    Always,
    Never,
}

/// Configuration of a server.
#[expect(clippy::struct_excessive_bools, reason = "independent switches")]
#[derive(Debug, Clone)]
pub struct Config {
    /// Folder of corpora and uploads; each tenant with a key has a folder below it.
    pub data_folder: PathBuf,
    /// Accepted API keys; `None` admits every client that can reach the port.
    pub keys: Option<KeysFile>,
    /// The name of the key whose tenant sees the counts of all tenants; the others see their own. Without keys every
    /// client sees all.
    pub operator: Option<String>,
    /// True if the models run with an adapter that was trained on one user's documents, whose words its replies may contain:
    /// as soon as keys are required, requests are refused.
    pub private_adapter: bool,
    /// True if the server listens on a loopback address: requests must then name a loopback host, or that of an allowed
    /// origin, which prevents DNS rebinding.
    pub loopback_only: bool,
    /// Time limit for a request's head and for its body, and for a pause in an upload.
    pub read_timeout: Duration,
    /// Origins (`https://chat.example`) allowed besides the server's own; requests may name their hosts.
    pub allow_origins: Vec<String>,
    /// True if prompts are written to the log.
    pub log_prompts: bool,
    /// Maximum bytes of a JSON body.
    pub max_body_bytes: usize,
    /// Maximum bytes of an upload, all its files together.
    pub max_upload_bytes: usize,
    /// Maximum concurrent file uploads.
    pub max_uploads: usize,
    /// Rate limit in POST requests and graphs per minute, per key, or per address if no keys are required.
    pub rate: Option<NonZeroU32>,
    /// Maximum concurrent requests that use models or read a graph, including those waiting in the engine.
    pub max_requests: usize,
    /// Deadline of a request.
    pub deadline: Duration,
    /// How long a question waits until its corpus is prepared, at most half of the deadline; then it is answered from what
    /// is ready.
    pub preparation: Duration,
    /// Tokens of an answer where the request does not say.
    pub default_output_tokens: usize,
    /// Maximum bytes of retained traces per tenant; the oldest are dropped first.
    pub max_trace_bytes: usize,
    /// True if threads (questions with their answers) and responses are stored.
    pub keep_threads: bool,
    /// How long shutdown waits for open responses.
    pub drain: Duration,
    /// True if KV snapshots of prompt prefixes are stored beside each corpus.
    pub keep_prefixes: bool,
    /// Folder of benchmark runs whose reports are served.
    pub bench_runs: Option<PathBuf>,
    /// The models that could be served, if they can be fetched here.
    pub shelf: Option<Arc<dyn Shelf>>,
    /// The models that the server was started with, if they can be unloaded.
    pub preloaded: Option<Arc<dyn Preloaded>>,
    /// When models of the shelf are loaded on demand.
    pub load_models: LoadModels,
    /// How long a model that was loaded on demand stays after its last request, unless a request says.
    pub keep_alive: KeepAlive,
    /// Maximum requests that wait until their model is loaded; further ones are refused.
    pub max_load_waits: usize,
    /// Settings that the server was started with, as the page shows them: name and value, without secrets.
    pub settings: Vec<(String, String)>,
    /// The program that runs as the child process for PDFs.
    pub pdf_child: Option<PdfChild>,
    /// Database of shared corpora, if any. A tenant shares with tenants of the same name.
    pub vectors: Option<Arc<Postgres>>,
    /// Bundle with corpora that requests without a key may read.
    pub bundle: Option<Arc<Bundle>>,
}

impl Config {
    /// The defaults, with this data folder.
    pub fn new(data_folder: impl Into<PathBuf>) -> Config {
        Config {
            data_folder: data_folder.into(),
            keys: None,
            operator: None,
            private_adapter: false,
            loopback_only: true,
            allow_origins: Vec::new(),
            log_prompts: false,
            read_timeout: Duration::from_mins(1),
            max_body_bytes: 8 << 20,
            max_upload_bytes: 256 << 20,
            max_uploads: 8,
            rate: None,
            max_requests: 128,
            deadline: Duration::from_mins(30),
            preparation: Duration::from_mins(1),
            default_output_tokens: 1024,
            max_trace_bytes: 64 << 20,
            keep_threads: true,
            drain: Duration::from_secs(30),
            keep_prefixes: false,
            bench_runs: None,
            shelf: None,
            preloaded: None,
            load_models: LoadModels::Alone,
            keep_alive: KeepAlive::For(Duration::from_mins(5)),
            max_load_waits: 32,
            settings: Vec::new(),
            pdf_child: None,
            vectors: None,
            bundle: None,
        }
    }
}
