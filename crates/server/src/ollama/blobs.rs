//! HEAD and POST /api/blobs/DIGEST: GGUF files that Ollama's clients upload before they create a model.

use std::io::Write;

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use futures_util::StreamExt;
use sha2::{Digest, Sha256};
use store::private;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::body::with_read_timeout;
use crate::corpora::CurrentTenant;
use crate::error::{Result, ServerError};
use crate::shelf::shelf_of;

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
    let mut file = run_blocking(move || {
        private::folder(&folder)?;
        Ok(tempfile::NamedTempFile::new_in(&folder)?)
    })
    .await?;
    let (mut chunks, mut hasher) = (request.into_body().into_data_stream(), Sha256::new());
    while let Some(chunk) = with_read_timeout(chunks.next(), &app).await? {
        let broken = |error| ServerError::Invalid { message: format!("the file broke off: {error}"), param: None };
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
        Ok(StatusCode::CREATED)
    })
    .await
}
