//! The download of one file. What has come is kept as `<file>.<etag>.part`, so that a later try resumes it only while the
//! hub has the same content.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use reqwest::StatusCode;
use reqwest::header::CONTENT_RANGE;
use tokio::time::{sleep, timeout};

use super::super::{FetchError, Progress, Report};
use super::client::{ATTEMPTS, Hub, Promise, failed, is_passing, lost, pause_after};

/// Interval of progress reports.
const REPORT_EVERY_BYTES: u64 = 1 << 20;

/// A file that has come whole, still to be checked.
pub(super) struct Download {
    pub path: PathBuf,
    /// The length that the hub promised, unless it promised none.
    pub bytes: Option<u64>,
    pub etag: Option<String>,
    pub commit: Option<String>,
}

/// Why a transfer ended before the end of the file.
enum Broken {
    /// The next request may get the rest.
    Passing(FetchError),
    Final(FetchError),
}

impl Hub {
    /// Downloads a file into a folder, or the rest of it.
    pub fn download(
        &self,
        revision: &str,
        file: &str,
        folder: &Path,
        report: &mut Report<'_>,
    ) -> Result<Download, FetchError> {
        self.runtime.block_on(self.download_file(revision, file, folder, report))
    }

    async fn download_file(
        &self,
        revision: &str,
        file: &str,
        folder: &Path,
        report: &mut Report<'_>,
    ) -> Result<Download, FetchError> {
        let promise = self.promise(revision, file).await?;
        // A branch may move between two requests; a commit does not.
        let revision = promise.commit.as_deref().unwrap_or(revision);
        let path = part_file(folder, file, promise.etag.as_deref())?;
        let from_disk = |error| FetchError::from_disk(&path, error);
        let mut part = File::options().create(true).append(true).open(&path).map_err(from_disk)?;
        let mut attempt = 0;
        loop {
            let before = part.metadata().map_err(from_disk)?.len();
            if promise.bytes == Some(before) {
                report(Progress { file, done_bytes: before, total_bytes: promise.bytes });
                break;
            }
            match self.transfer(revision, file, &promise, &mut part, &path, report).await {
                Ok(()) => break,
                Err(Broken::Final(error)) => return Err(error),
                Err(Broken::Passing(error)) => {
                    let progressed = part.metadata().map_err(from_disk)?.len() > before;
                    attempt = if progressed { 1 } else { attempt + 1 };
                    if attempt >= ATTEMPTS {
                        return Err(error);
                    }
                    sleep(pause_after(attempt)).await;
                }
            }
        }
        Ok(Download { bytes: promise.bytes, etag: promise.etag.clone(), commit: promise.commit.clone(), path })
    }

    /// Requests what is missing and appends what comes.
    async fn transfer(
        &self,
        revision: &str,
        file: &str,
        promise: &Promise,
        part: &mut File,
        path: &Path,
        report: &mut Report<'_>,
    ) -> Result<(), Broken> {
        let from_disk = |error| Broken::Final(FetchError::from_disk(path, error));
        let mut done = part.seek(SeekFrom::End(0)).map_err(from_disk)?;
        if promise.bytes.is_some_and(|bytes| done > bytes) {
            done = restart(part).map_err(from_disk)?;
        }
        let response = self.content(revision, file, done).await;
        let mut response = response.map_err(|error| match error {
            FetchError::HubFailed { .. } => Broken::Passing(error),
            silent => Broken::Final(silent),
        })?;
        let status = response.status();
        if status == StatusCode::RANGE_NOT_SATISFIABLE {
            restart(part).map_err(from_disk)?;
            return Err(Broken::Passing(failed(format!("no bytes of {file} from {done} on"))));
        }
        if is_passing(status) {
            return Err(Broken::Passing(failed(format!("{status} for {file}"))));
        }
        response = self.accepted(response, file).map_err(Broken::Final)?;
        let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
        if status == StatusCode::PARTIAL_CONTENT && range.and_then(first_byte) != Some(done) {
            restart(part).map_err(from_disk)?;
            let range = range.unwrap_or("no range").to_owned();
            return Err(Broken::Passing(failed(format!("{file} came as {range}, not from byte {done} on"))));
        }
        if status != StatusCode::PARTIAL_CONTENT && done > 0 {
            // The server sends the whole file, whatever was requested.
            done = restart(part).map_err(from_disk)?;
        }
        let mut reported = done;
        loop {
            let chunk = timeout(self.silence, response.chunk()).await;
            let chunk = chunk.map_err(|_| Broken::Passing(FetchError::HubSilent { waited: self.silence }))?;
            let Some(chunk) = chunk.map_err(|error| Broken::Passing(lost(error)))? else { break };
            done += chunk.len() as u64;
            if let Some(expected_bytes) = promise.bytes.filter(|bytes| done > *bytes) {
                restart(part).map_err(from_disk)?;
                let path = path.to_owned();
                return Err(Broken::Final(FetchError::WrongSize { path, expected_bytes, found_bytes: done }));
            }
            part.write_all(&chunk).map_err(from_disk)?;
            if done >= reported + REPORT_EVERY_BYTES {
                reported = done;
                report(Progress { file, done_bytes: done, total_bytes: promise.bytes });
            }
        }
        match promise.bytes {
            Some(bytes) if done < bytes => {
                Err(Broken::Passing(failed(format!("{file} ended after {done} of {bytes} bytes"))))
            }
            _ => {
                report(Progress { file, done_bytes: done, total_bytes: promise.bytes });
                Ok(())
            }
        }
    }
}

/// The file for what has come; those of another content of the same file are removed.
fn part_file(folder: &Path, file: &str, etag: Option<&str>) -> Result<PathBuf, FetchError> {
    let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-'), "--");
    let stem = format!("{}.", plain(file));
    let name = format!("{stem}{}.part", plain(etag.unwrap_or("unknown")));
    let from_disk = |error| FetchError::from_disk(folder, error);
    for entry in fs::read_dir(folder).map_err(from_disk)? {
        let entry = entry.map_err(from_disk)?;
        let other = entry.file_name().to_string_lossy().into_owned();
        let of_this_file = other.strip_prefix(&stem).and_then(|rest| rest.strip_suffix(".part"));
        let is_other_content =
            of_this_file.is_some_and(|rest| !rest.contains('.')) && (other != name || etag.is_none());
        if is_other_content {
            fs::remove_file(entry.path()).map_err(from_disk)?;
        }
    }
    Ok(folder.join(name))
}

fn restart(part: &mut File) -> std::io::Result<u64> {
    part.set_len(0)?;
    part.seek(SeekFrom::Start(0))
}

/// The first byte of `bytes 5-9/10`.
fn first_byte(range: &str) -> Option<u64> {
    range.trim().strip_prefix("bytes ")?.split('-').next()?.trim().parse().ok()
}
