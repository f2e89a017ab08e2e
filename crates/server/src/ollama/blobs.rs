//! HEAD and POST /api/blobs/DIGEST: GGUF files that Ollama's clients upload before they create a model.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path as FilePath, PathBuf};

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use store::private;
use tempfile::NamedTempFile;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::body::with_read_timeout;
use crate::config::Config;
use crate::error::{Result, ServerError};
use crate::shelf::shelf_of;
use crate::tenant::CurrentTenant;

/// The digits of a digest of the form `sha256:...`.
///
/// # Errors
/// [`ServerError::Invalid`] for anything else.
pub(super) fn sha256_of(digest: &str) -> Result<String> {
    let digits = digest.strip_prefix("sha256:").or_else(|| digest.strip_prefix("sha256-")).unwrap_or_default();
    if digits.len() == 64 && digits.chars().all(|digit| matches!(digit, '0'..='9' | 'a'..='f')) {
        return Ok(digits.to_owned());
    }
    Err(ServerError::invalid("a digest is `sha256:` and 64 hexadecimal digits in lower case", "digest"))
}

/// Whether a file with this digest was uploaded.
#[utoipa::path(head, path = "/api/blobs/{digest}", tag = "Ollama", params(("digest" = String, Path)),
    responses((status = 200), (status = 404)))]
pub(super) async fn find(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(digest): Path<String>,
) -> Result<()> {
    let path = shelf_of(&app, &tenant)?.blob(&sha256_of(&digest)?);
    if path.is_file() { Ok(()) } else { Err(ServerError::NotFound(format!("file {digest}"))) }
}

/// Upload a GGUF file, whose digest is checked.
#[utoipa::path(post, path = "/api/blobs/{digest}", tag = "Ollama", params(("digest" = String, Path)),
    request_body(content = String, content_type = "application/octet-stream"),
    responses((status = 201), (status = 400, description = "The digest is another")))]
pub(super) async fn upload(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(digest): Path<String>,
    request: Request,
) -> Result<StatusCode> {
    let digits = sha256_of(&digest)?;
    let path = shelf_of(&app, &tenant)?.blob(&digits);
    if path.is_file() {
        return Ok(StatusCode::OK);
    }
    let folder = path.parent().ok_or_else(|| ServerError::NotFound("folder for uploads".into()))?.to_owned();
    let mut file = run_blocking(move || Ok(begin(&folder)?)).await?;
    let (mut chunks, mut hasher) = (request.into_body().into_data_stream(), Sha256::new());
    while let Some(chunk) = with_read_timeout(chunks.next(), &app).await? {
        let broken = |error| ServerError::refused(format!("the file broke off: {error}"));
        let chunk = chunk.map_err(broken)?;
        (file, hasher) = run_blocking(move || {
            hasher.update(&chunk);
            file.write_all(&chunk)?;
            Ok((file, hasher))
        })
        .await?;
    }
    let found = blake3::Hash::from_bytes(hasher.finalize().into()).to_hex();
    if found.as_str() != digits {
        return Err(ServerError::invalid(format!("the file has the digest sha256:{found}"), "digest"));
    }
    run_blocking(move || {
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        private::sync_name(&path)?;
        Ok(StatusCode::CREATED)
    })
    .await
}

/// Beginning and end of the names of uploads that are not complete.
const PARTIAL: (&str, &str) = ("upload-", ".part");

/// A locked file for an upload, deleted when the value is dropped.
fn begin(folder: &FilePath) -> io::Result<NamedTempFile> {
    private::folder(folder)?;
    let _alone = alone(folder)?;
    let file = tempfile::Builder::new().prefix(PARTIAL.0).suffix(PARTIAL.1).tempfile_in(folder)?;
    file.as_file().lock()?;
    Ok(file)
}

/// Deletes what servers that were killed had received of uploads. Those of running servers are locked.
pub(crate) fn delete_abandoned(config: &Config) {
    let folder = config.shelf.as_ref().and_then(|shelf| Some(shelf.blob("").parent()?.to_owned()));
    if let Some(Err(error)) = folder.map(|folder| sweep(&folder)) {
        tracing::warn!(%error, "cannot delete uploads that a previous server left");
    }
}

fn sweep(folder: &FilePath) -> io::Result<()> {
    let is_partial = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with(PARTIAL.0) && name.ends_with(PARTIAL.1)
    };
    let list = || -> io::Result<Vec<PathBuf>> {
        let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
        Ok(paths.collect::<io::Result<Vec<_>>>()?.into_iter().filter(is_partial).collect())
    };
    if !folder.exists() || list()?.is_empty() {
        return Ok(());
    }
    let _alone = alone(folder)?;
    for path in list()? {
        if File::open(&path)?.try_lock().is_ok() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Keeps other servers on this data folder from creating and sweeping uploads.
fn alone(folder: &FilePath) -> io::Result<File> {
    let guard = private::create(&folder.join("lock"))?;
    guard.lock()?;
    Ok(guard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uploads_of_ended_servers_are_swept() {
        let place = tempfile::tempdir().expect("the system has a folder for temporary files");
        let folder = place.path().join("blobs");
        sweep(&folder).expect("there is nothing to sweep");
        let running = begin(&folder).expect("there is room");
        let [left, whole] = ["upload-x.part", "sha256-00.gguf"].map(|name| folder.join(name));
        for path in [&left, &whole] {
            fs::write(path, "half").expect("it can be written");
        }
        sweep(&folder).expect("they can be deleted");
        assert_eq!([left.exists(), running.path().exists(), whole.exists()], [false, true, true]);
    }
}
