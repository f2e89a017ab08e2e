//! The sizes and times that a server works within.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sources::PdfChild;
use store::Postgres;

use crate::keys::KeysFile;

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct Config {
    /// Folder of corpora and uploads; each holder of a key has a folder below it.
    pub data_folder: PathBuf,
    /// Who may ask; `None` admits every client that can reach the port.
    pub keys: Option<KeysFile>,
    /// The holder of a key who may see counts of the whole server; the others see their own. Where no key is asked for,
    /// everybody may.
    pub operator: Option<String>,
    /// True if the port is on this machine's loopback: then requests must name it as their host, which the page of
    /// somebody else whose name was made to point here does not.
    pub loopback_only: bool,
    /// A request whose head or body takes longer to come is given up, and so is an upload that pauses for longer.
    pub read_timeout: Duration,
    /// Web pages of these origins (`https://chat.example`) may ask, beside the server's own.
    pub allow_origins: Vec<String>,
    /// True if prompts are logged.
    pub log_prompts: bool,
    /// A JSON body may have so many bytes.
    pub max_body_bytes: usize,
    /// An upload may have so many bytes, all its files together.
    pub max_upload_bytes: usize,
    /// Uploads of files that are received at once.
    pub max_uploads: usize,
    /// Requests in a minute that each holder of a key may send, or each address where no keys are asked for: those that
    /// ask for work, which are POSTs.
    pub rate: Option<NonZeroU32>,
    /// Requests that models work on at once, those that wait in the engine included.
    pub max_requests: usize,
    /// A request that takes longer is given up.
    pub deadline: Duration,
    /// How long a question waits until its corpus is prepared, at most half of the deadline; then it is answered from what
    /// is ready.
    pub preparation: Duration,
    /// Tokens of an answer where the request does not say.
    pub default_output_tokens: usize,
    /// Traces that are kept, in bytes for each holder of a key; the oldest go first.
    pub max_trace_bytes: usize,
    /// How long a stopping server waits for answers that are being written.
    pub drain: Duration,
    /// True if keys and values of what questions on a corpus begin with are kept beside it.
    pub keep_prefixes: bool,
    /// Folder of benchmark runs, whose reports may be looked at.
    pub bench_runs: Option<PathBuf>,
    /// The program that reads PDFs.
    pub pdf_child: Option<PdfChild>,
    /// Where corpora are kept that other processes share, if they do. Holders of keys share with those of the same name.
    pub vectors: Option<Arc<Postgres>>,
}

impl Config {
    /// The defaults, for data in this folder.
    pub fn new(data_folder: impl Into<PathBuf>) -> Config {
        Config {
            data_folder: data_folder.into(),
            keys: None,
            operator: None,
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
            drain: Duration::from_secs(30),
            keep_prefixes: false,
            bench_runs: None,
            pdf_child: None,
            vectors: None,
        }
    }
}
