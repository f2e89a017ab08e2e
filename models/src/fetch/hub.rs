//! The Hugging Face Hub, through hf-hub.
//!
//! hf-hub 1.0 sets no time limits, does not hold what it got against the digest it was promised, and takes the body of
//! a failed answer for the file. So each download runs on its own thread and is given up when nothing comes, into a
//! cache of our own, where the blob's name is the promised digest; files that are whole are kept for the next try.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use hf_hub::progress::{DownloadEvent, ProgressEvent, ProgressHandler};
use hf_hub::{HFClient, HFClientSync, HFError, HFResult};

use super::digest::digest_file;
use super::hub_cache::etag_digest;
use super::installation::Installation;
use super::{FetchError, FetchOptions, Progress, Receipt, ReceiptFile, Report, SourceUsed};
use crate::manifest::FileSpec;

/// How long a download may bring nothing.
const SILENCE: Duration = Duration::from_mins(1);
/// Interval of progress reports.
const REPORT_EVERY_BYTES: u64 = 1 << 20;

/// Downloads every file, then checks and installs them.
pub(super) fn bring(
    repo: &str,
    revision: &str,
    installation: &Installation<'_>,
    options: &FetchOptions,
    report: &mut Report<'_>,
) -> Result<Receipt, FetchError> {
    let cache = installation.incoming().join("hub");
    let client = connect(&cache, options.hub_endpoint.as_deref())?;
    let specs = &installation.choice.variant.files;
    let mut downloads = Vec::with_capacity(specs.len());
    for spec in specs {
        let events = start(&client, repo, revision, &spec.name);
        downloads.push(follow(&events, &spec.name, options.hub_patience, report)?);
    }
    let commit = commit_of(&downloads[0].pointer).unwrap_or_else(|| revision.to_owned());
    let mut files = Vec::with_capacity(specs.len());
    for (spec, download) in specs.iter().zip(&downloads) {
        files.push(install(spec, download, installation, report)?);
    }
    Ok(Receipt { source: SourceUsed::Hub { repo: repo.to_owned(), revision: commit }, files })
}

fn connect(cache: &Path, endpoint: Option<&str>) -> Result<HFClientSync, FetchError> {
    let builder = HFClient::builder().cache_dir(cache).retry_max_attempts(2);
    let builder = match endpoint {
        Some(endpoint) => builder.endpoint(endpoint),
        None => builder,
    };
    builder.build_sync().map_err(|error| hub_failed(cache, error))
}

/// A file in our private cache.
struct Download {
    /// `<cache>/models--.../snapshots/<commit>/<file>`, on most systems a link to `blobs/<etag>`.
    pointer: PathBuf,
    /// The length that the hub promised, unless it promised none.
    promised_bytes: Option<u64>,
}

enum Event {
    Bytes { done: u64, total: u64 },
    Done(HFResult<PathBuf>),
}

/// Starts to download one file, or to find that an earlier try has.
fn start(client: &HFClientSync, repo: &str, revision: &str, file: &str) -> Receiver<Event> {
    let (sender, events) = mpsc::channel();
    let (owner, name) = hf_hub::split_id(repo);
    let repository = client.model(owner, name);
    let (filename, revision) = (file.to_owned(), revision.to_owned());
    // A thread whose download has been given up ends with its connection, or with the process.
    thread::spawn(move || {
        let progress = Reporter(sender.clone());
        let result = repository.download_file().filename(filename).revision(revision).progress(progress).send();
        let _ = sender.send(Event::Done(result));
    });
    events
}

/// Waits for a download to end, for as long as something comes.
fn follow(
    events: &Receiver<Event>,
    file: &str,
    first_patience: Duration,
    report: &mut Report<'_>,
) -> Result<Download, FetchError> {
    let mut promised_bytes = None;
    let (mut seen_bytes, mut reported_bytes) = (0, 0);
    let (mut since, mut patience) = (Instant::now(), first_patience);
    loop {
        match events.recv_timeout(patience.saturating_sub(since.elapsed())) {
            Ok(Event::Bytes { done, total }) => {
                if promised_bytes.is_none() || done > seen_bytes {
                    (since, patience) = (Instant::now(), SILENCE);
                }
                promised_bytes = Some(total);
                seen_bytes = done;
                if done >= reported_bytes + REPORT_EVERY_BYTES || done == total {
                    reported_bytes = done;
                    report(Progress { file, done_bytes: done, total_bytes: (total > 0).then_some(total) });
                }
            }
            Ok(Event::Done(Ok(pointer))) => {
                return Ok(Download { pointer, promised_bytes: promised_bytes.filter(|bytes| *bytes > 0) });
            }
            Ok(Event::Done(Err(error))) => return Err(hub_failed(Path::new(file), error)),
            Err(RecvTimeoutError::Timeout) => return Err(FetchError::HubSilent { waited: patience }),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(FetchError::HubFailed { source: "the client panicked".into() });
            }
        }
    }
}

struct Reporter(Sender<Event>);

impl ProgressHandler for Reporter {
    fn on_progress(&self, event: &ProgressEvent) {
        let ProgressEvent::Download(event) = event else { return };
        let (done, total) = match event {
            DownloadEvent::Start { total_bytes, .. } => (0, *total_bytes),
            DownloadEvent::Progress { files } => match files.last() {
                Some(file) => (file.bytes_completed, file.total_bytes),
                None => return,
            },
            DownloadEvent::AggregateProgress { bytes_completed, total_bytes, .. } => (*bytes_completed, *total_bytes),
            DownloadEvent::Complete => return,
        };
        // The receiver is gone once the download has been cancelled.
        let _ = self.0.send(Event::Bytes { done, total });
    }
}

/// Holds a download against the manifest, and where that is silent against what the hub promised.
fn install(
    spec: &FileSpec,
    download: &Download,
    installation: &Installation<'_>,
    report: &mut Report<'_>,
) -> Result<ReceiptFile, FetchError> {
    let pointer = &download.pointer;
    let promised = FileSpec {
        bytes: spec.bytes.or(download.promised_bytes),
        sha256: spec.sha256.clone().or_else(|| etag_digest(pointer)),
        ..spec.clone()
    };
    let blob = fs::canonicalize(pointer).map_err(|error| FetchError::from_disk(pointer, error))?;
    let found = digest_file(&blob, &spec.name, report)?;
    installation.place(&promised, &blob, found)
}

fn commit_of(pointer: &Path) -> Option<String> {
    let mut parts = pointer.components().map(Component::as_os_str);
    parts.find(|part| *part == "snapshots")?;
    Some(parts.next()?.to_str()?.to_owned())
}

fn hub_failed(path: &Path, error: HFError) -> FetchError {
    match error {
        HFError::Io(error) => FetchError::from_disk(path, error),
        HFError::Request { source, .. } => FetchError::HubFailed { source: source.without_url().into() },
        error => FetchError::HubFailed { source: error.into() },
    }
}
