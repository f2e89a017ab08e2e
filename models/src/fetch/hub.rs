//! The Hugging Face Hub, through hf-hub.
//!
//! hf-hub 0.5 sets no time limits, does not compare what it receives with the length and digest that it was promised, and
//! appends whatever an answer holds when it resumes. So requests run on threads that are given up when nothing comes, into a
//! cache of our own, where a blob's name is the promised digest. A download that breaks off is resumed as long as it
//! advances; files that are whole, and beginnings of files, are kept for the next try.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use hf_hub::api::sync::{Api, ApiBuilder, ApiError};
use hf_hub::{Cache, Repo, RepoType};
use serde_json::Value;

use super::digest::digest_file;
use super::hub_cache::etag_digest;
use super::installation::Installation;
use super::repository::{RepoFile, Repository};
use super::{FetchError, FetchOptions, Progress, Receipt, ReceiptFile, Report, SourceUsed};
use crate::manifest::{FileSpec, Sha256Hex};

/// How long a download may bring nothing.
const SILENCE: Duration = Duration::from_mins(1);
/// Interval of progress reports.
const REPORT_EVERY_BYTES: u64 = 1 << 20;
/// How often a broken download is resumed without advancing.
const MAX_IDLE_TRIES: usize = 2;
/// Delay before a broken download is resumed.
const PAUSE: Duration = Duration::from_millis(500);

/// Downloads every file, then checks and installs them.
pub(super) fn bring(
    repo: &str,
    revision: &str,
    specs: &[FileSpec],
    installation: &Installation,
    options: &FetchOptions,
    report: &mut Report<'_>,
) -> Result<Receipt, FetchError> {
    let hub = Hub::connect(repo, &installation.incoming().join("hub"), options)?;
    let is_commit = revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    let commit = if is_commit { revision.to_owned() } else { hub.look_up(revision)?.commit };
    let mut downloads = Vec::with_capacity(specs.len());
    for spec in specs {
        downloads.push(hub.download(&spec.name, &commit, report)?);
    }
    let mut files = Vec::with_capacity(specs.len());
    for (spec, download) in specs.iter().zip(&downloads) {
        files.push(install(spec, download, installation, report)?);
    }
    Ok(Receipt::new(SourceUsed::Hub { repo: repo.to_owned(), revision: commit }, files))
}

/// What a repository holds at a revision; `cache` is a folder that may be written.
pub(super) fn look_up(
    repo: &str,
    revision: &str,
    cache: &Path,
    options: &FetchOptions,
) -> Result<Repository, FetchError> {
    Hub::connect(repo, cache, options)?.look_up(revision)
}

/// One repository of the hub.
struct Hub<'a> {
    api: Api,
    cache: Cache,
    repo: &'a str,
    first_patience: Duration,
}

impl<'a> Hub<'a> {
    fn connect(repo: &'a str, cache: &Path, options: &FetchOptions) -> Result<Hub<'a>, FetchError> {
        let cache = Cache::new(cache.to_owned());
        let builder = ApiBuilder::from_cache(cache.clone()).with_progress(false);
        let builder = builder.with_token(options.hub_token.as_ref().map(|token| token.0.clone()));
        let named = options.hub_endpoint.clone().or_else(|| env::var("HF_ENDPOINT").ok());
        let builder = match named.filter(|endpoint| !endpoint.is_empty()) {
            Some(endpoint) => builder.with_endpoint(checked(&endpoint)?.to_owned()),
            None => builder,
        };
        let api = builder.build().map_err(|error| FetchError::HubFailed { source: error.into() })?;
        Ok(Hub { api, cache, repo, first_patience: options.hub_patience })
    }

    fn at(&self, revision: &str) -> Repo {
        Repo::with_revision(self.repo.to_owned(), RepoType::Model, revision.to_owned())
    }

    fn look_up(&self, revision: &str) -> Result<Repository, FetchError> {
        let repository = self.api.repo(self.at(revision));
        let ask = move |_: Sender<Event<Value>>| {
            let mut response = repository.info_request().query("blobs", "true").call().map_err(Box::new)?;
            Ok(response.body_mut().read_json::<Value>().map_err(Box::new)?)
        };
        let answer = watch(self.first_patience, ask, |_, _| {})?;
        let answer = answer.map_err(|error| self.failed(&format!("{} at {revision}", self.repo), error))?;
        read_answer(&answer).ok_or_else(|| FetchError::HubFailed { source: "its answer makes no sense".into() })
    }

    /// Downloads a file into the cache, unless an earlier try has.
    fn download(&self, file: &str, commit: &str, report: &mut Report<'_>) -> Result<Download, FetchError> {
        if let Some(pointer) = self.cache.repo(self.at(commit)).get(file) {
            return Ok(Download { pointer, promised_bytes: None });
        }
        let (mut furthest, mut idle_tries, mut is_restarted) = (0, 0, false);
        loop {
            let mut transfer: Option<Transfer> = None;
            let (repository, name) = (self.api.repo(self.at(commit)), file.to_owned());
            let ask = move |events| repository.download_with_progress(&name, Reporter { events, done: 0, total: 0 });
            let result = watch(self.first_patience, ask, |done, total| {
                let seen = transfer.get_or_insert(Transfer { start: done, done, reported: 0, total });
                seen.done = done;
                if done >= seen.reported + REPORT_EVERY_BYTES || done == total {
                    seen.reported = done;
                    report(Progress { file, done_bytes: done, total_bytes: (total > 0).then_some(total) });
                }
            })?;
            match result {
                Ok(pointer) if !is_restarted && transfer.as_ref().is_some_and(|seen| seen.is_spoilt(&pointer)) => {
                    let blob = fs::canonicalize(&pointer).and_then(fs::remove_file);
                    blob.map_err(|error| FetchError::from_disk(&pointer, error))?;
                    (furthest, is_restarted) = (0, true);
                }
                Ok(pointer) => {
                    let promised_bytes = transfer.map(|seen| seen.total).filter(|bytes| *bytes > 0);
                    return Ok(Download { pointer, promised_bytes });
                }
                Err(error) if !is_restarted && is_beyond_the_end(&error) => {
                    self.remove_parts(commit);
                    (furthest, is_restarted) = (0, true);
                }
                Err(error) => {
                    let done = transfer.map_or(0, |seen| seen.done);
                    idle_tries = if done > furthest { 0 } else { idle_tries + 1 };
                    furthest = furthest.max(done);
                    if furthest == 0 || idle_tries > MAX_IDLE_TRIES || !is_transient(&error) {
                        return Err(self.failed(&format!("{file} in {}", self.repo), error));
                    }
                    thread::sleep(PAUSE);
                }
            }
        }
    }

    /// Removes the beginnings of files.
    fn remove_parts(&self, commit: &str) {
        let blobs = self.cache.path().join(self.at(commit).folder_name()).join("blobs");
        for path in fs::read_dir(blobs).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "part") {
                // If it stays, the next try fails in the same way and says so.
                let _ = fs::remove_file(path);
            }
        }
    }

    /// What an error of the hub means for the user; `what` was asked for.
    fn failed(&self, what: &str, error: ApiError) -> FetchError {
        match error {
            ApiError::IoError(error) if is_of_disk(&error) => FetchError::from_disk(Path::new(what), error),
            ApiError::RequestError(error) => match *error {
                ureq::Error::StatusCode(status @ (401 | 403)) => {
                    FetchError::HubRefused { repo: self.repo.to_owned(), status }
                }
                ureq::Error::StatusCode(404) => FetchError::NotOnHub { what: what.to_owned() },
                error => FetchError::HubFailed { source: error.into() },
            },
            error => FetchError::HubFailed { source: error.into() },
        }
    }
}

/// The address of a hub, without a slash at its end.
///
/// # Errors
/// [`FetchError::HubAddress`].
fn checked(address: &str) -> Result<&str, FetchError> {
    let uri = address.parse::<ureq::http::Uri>().ok();
    let is_web = |uri: &ureq::http::Uri| matches!(uri.scheme_str(), Some("http" | "https"));
    if uri.filter(is_web).is_some_and(|uri| uri.host().is_some_and(|host| !host.is_empty())) {
        return Ok(address.trim_end_matches('/'));
    }
    // A user and a password may be in front of the host.
    let (_, shown) = address.rsplit_once('@').unwrap_or(("", address));
    Err(FetchError::HubAddress { address: shown.to_owned() })
}

/// A file in our private cache.
struct Download {
    /// `<cache>/models--.../snapshots/<commit>/<file>`, on most systems a link to `blobs/<etag>`.
    pointer: PathBuf,
    /// The length that the hub promised, unless it promised none.
    promised_bytes: Option<u64>,
}

/// The bytes of a file at the start of a try, now, and in all.
struct Transfer {
    start: u64,
    done: u64,
    reported: u64,
    total: u64,
}

impl Transfer {
    /// Whether a resumed file has another length than promised: its server ignores ranges.
    fn is_spoilt(&self, pointer: &Path) -> bool {
        self.start > 0 && fs::metadata(pointer).is_ok_and(|found| found.len() != self.total)
    }
}

/// Whether what an earlier try has left is as long as the file or longer.
fn is_beyond_the_end(error: &ApiError) -> bool {
    match error {
        ApiError::InvalidResume => true,
        ApiError::RequestError(error) => matches!(**error, ureq::Error::StatusCode(416)),
        _ => false,
    }
}

/// Whether the same request may succeed a moment later.
fn is_transient(error: &ApiError) -> bool {
    match error {
        ApiError::IoError(error) => !is_of_disk(error),
        ApiError::RequestError(error) => match **error {
            ureq::Error::StatusCode(status) => matches!(status, 408 | 429 | 500..=599),
            ureq::Error::Io(_) | ureq::Error::Protocol(_) | ureq::Error::ConnectionFailed => true,
            _ => false,
        },
        _ => false,
    }
}

/// Whether an error of a download is of this disk, and not of the connection.
fn is_of_disk(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let kinds = [NotADirectory, NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull];
    kinds.contains(&error.kind())
}

enum Event<T> {
    Bytes { done: u64, total: u64 },
    Done(Result<T, ApiError>),
}

/// Waits for a request that runs on a thread of its own, for as long as something comes. A thread that has been given up ends
/// with its connection, or with the process.
fn watch<T: Send + 'static>(
    first_patience: Duration,
    ask: impl FnOnce(Sender<Event<T>>) -> Result<T, ApiError> + Send + 'static,
    mut on_bytes: impl FnMut(u64, u64),
) -> Result<Result<T, ApiError>, FetchError> {
    let (sender, events) = mpsc::channel();
    thread::spawn(move || {
        let result = ask(sender.clone());
        // The receiver is gone once the request has been given up.
        let _ = sender.send(Event::Done(result));
    });
    let (mut since, mut patience) = (Instant::now(), first_patience);
    loop {
        match events.recv_timeout(patience.saturating_sub(since.elapsed())) {
            Ok(Event::Bytes { done, total }) => {
                (since, patience) = (Instant::now(), SILENCE);
                on_bytes(done, total);
            }
            Ok(Event::Done(result)) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => return Err(FetchError::HubSilent { waited: patience }),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(FetchError::HubFailed { source: "the client panicked".into() });
            }
        }
    }
}

/// Passes on the bytes of a file: where a try starts, and after each read.
struct Reporter<T> {
    events: Sender<Event<T>>,
    done: u64,
    total: u64,
}

impl<T> hf_hub::api::Progress for Reporter<T> {
    fn init(&mut self, total: usize, _: &str) {
        (self.done, self.total) = (0, total as u64);
    }

    fn update(&mut self, bytes: usize) {
        self.done += bytes as u64;
        let _ = self.events.send(Event::Bytes { done: self.done, total: self.total });
    }

    fn finish(&mut self) {}
}

/// Holds a download against the manifest, and where that is silent against what the hub promised.
fn install(
    spec: &FileSpec,
    download: &Download,
    installation: &Installation,
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

/// Reads the hub's description of a repository at a revision.
fn read_answer(answer: &Value) -> Option<Repository> {
    let file = |sibling: &Value| {
        let digest = sibling["lfs"]["sha256"].as_str().map(str::to_owned);
        Some(RepoFile {
            name: sibling["rfilename"].as_str()?.to_owned(),
            bytes: sibling["size"].as_u64(),
            sha256: digest.and_then(|digest| Sha256Hex::try_from(digest).ok()),
        })
    };
    let named = ["license_name", "license"].iter().find_map(|field| answer["cardData"][field].as_str());
    let tagged = || {
        let tags = answer["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
        tags.into_iter().find_map(|tag| tag.strip_prefix("license:"))
    };
    Some(Repository {
        commit: answer["sha"].as_str()?.to_owned(),
        licence: named.or_else(tagged).map(str::to_owned),
        files: answer["siblings"].as_array()?.iter().filter_map(file).collect(),
    })
}
