//! /v1/files: files that a holder has uploaded, for vector stores and batches, and those that batches have written.

use std::fs::File;
use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Path, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::Stream;
use futures_util::stream::try_unfold;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::paging::{Part, listed};
use super::stored_files::{Files, StoredFile};
use crate::app::App;
use crate::blocking::run_blocking;
use crate::body::{Params, with_read_timeout};
use crate::config::Config;
use crate::corpora::attached::detach_everywhere;
use crate::corpora::{create_file, file_name, form_error, read_field, skip_field, too_large};
use crate::error::{Result, ServerError};
use crate::tenant::{CurrentTenant, Tenant};
use crate::warnings::Warnings;

pub(super) fn routes(config: &Config) -> OpenApiRouter<App> {
    let uploads = OpenApiRouter::new().routes(routes!(upload, list));
    uploads
        .layer(DefaultBodyLimit::max(config.max_upload_bytes))
        .routes(routes!(retrieve, delete))
        .routes(routes!(content))
}

/// What a client may upload a file for.
const PURPOSES: [&str; 3] = ["assistants", "batch", "user_data"];

/// Runs a task on the files of a tenant.
pub(super) async fn with<T: Send + 'static>(
    tenant: &Arc<Tenant>,
    work: impl FnOnce(&Files) -> Result<T> + Send + 'static,
) -> Result<T> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || work(&tenant.files)).await
}

/// A form with a file.
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "it describes what `upload` reads")]
struct NewFile {
    #[schema(format = Binary)]
    file: String,
    /// `assistants`, `user_data` or `batch`.
    purpose: String,
}

/// Upload a file.
#[utoipa::path(post, path = "/v1/files", tag = "OpenAI", request_body(content = NewFile, content_type = "multipart/form-data"),
    responses((status = 200, body = Value), (status = 413), (status = 429)))]
async fn upload(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    request: Request,
) -> Result<Json<Value>> {
    let mut form =
        Multipart::from_request(request, &app).await.map_err(|refused| ServerError::refused(refused.to_string()))?;
    let _permit = app.uploads.acquire(tenant.id)?;
    let folder = tenant.uploads.create()?;
    let place = folder.path().join("content");
    let receive = async {
        let (mut name, mut purpose, mut left) = (None, None, app.config.max_upload_bytes);
        while let Some(mut field) =
            with_read_timeout(form.next_field(), &app).await?.map_err(|error| form_error(&error, &app))?
        {
            match field.name().unwrap_or_default().to_owned().as_str() {
                "file" if name.is_none() => {
                    name = Some(file_name(field.file_name().unwrap_or("file"))?);
                    let mut file = create_file(&place).await?;
                    while let Some(chunk) =
                        with_read_timeout(field.chunk(), &app).await?.map_err(|error| form_error(&error, &app))?
                    {
                        left = left.checked_sub(chunk.len()).ok_or_else(|| too_large(&app))?;
                        file.write_all(&chunk).await?;
                    }
                    file.flush().await?;
                    file.sync_all().await?;
                }
                "file" => return Err(ServerError::invalid("a form has one file", "file")),
                "purpose" => {
                    purpose = Some(read_field(&mut field, &mut left, &app).await?);
                }
                // A file that is to be deleted later must not stay.
                other if other.starts_with("expires_after") => {
                    return Err(ServerError::invalid("`expires_after` is not supported here", "expires_after"));
                }
                other => {
                    warnings.add(format!("ignored fields: {other}"));
                    skip_field(&mut field, &mut left, &app).await?;
                }
            }
        }
        Ok((name, purpose))
    };
    let (name, purpose) = app.with_deadline(receive).await?;
    let name = name.ok_or_else(|| ServerError::invalid("the form has no `file`", "file"))?;
    let purpose = purpose.filter(|purpose| PURPOSES.contains(&purpose.as_str()));
    let wanted = || ServerError::invalid(format!("`purpose` is one of {}", PURPOSES.join(", ")), "purpose");
    let purpose = purpose.ok_or_else(wanted)?;
    let file = with(&tenant, move |files| files.keep(name, &purpose, place)).await?;
    Ok(Json(file.to_json()))
}

/// List the files.
#[utoipa::path(get, path = "/v1/files", tag = "OpenAI", params(Part), responses((status = 200, body = Value)))]
async fn list(Extension(tenant): CurrentTenant, Params(part): Params<Part>) -> Result<Json<Value>> {
    let mut files = with(&tenant, Files::all).await?;
    files.retain(|file| part.purpose.as_ref().is_none_or(|purpose| file.purpose == *purpose));
    files.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
    Ok(Json(listed(files.iter().map(StoredFile::to_json).collect(), &part, (10_000, 10_000))?))
}

/// Show a file.
#[utoipa::path(get, path = "/v1/files/{file_id}", tag = "OpenAI", params(("file_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404)))]
async fn retrieve(Extension(tenant): CurrentTenant, Path(id): Path<String>) -> Result<Json<Value>> {
    Ok(Json(with(&tenant, move |files| files.read(&id)).await?.to_json()))
}

/// How much of a file is read at once.
const PIECE_BYTES: usize = 256 << 10;

/// The content of a file.
#[utoipa::path(get, path = "/v1/files/{file_id}/content", tag = "OpenAI", params(("file_id" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), (status = 404)))]
async fn content(Extension(tenant): CurrentTenant, Path(id): Path<String>) -> Result<Response> {
    let (file, bytes) = with(&tenant, move |files| files.open(&id)).await?;
    // A browser that is given the address must not run what a client has uploaded.
    let heads = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_LENGTH, HeaderValue::from(bytes)),
    ];
    Ok((heads, Body::from_stream(pieces(file))).into_response())
}

/// The content of a file in pieces. One is read when the client has taken the one before.
fn pieces(file: File) -> impl Stream<Item = io::Result<Bytes>> {
    try_unfold(tokio::fs::File::from_std(file), |mut file| async move {
        let mut piece = vec![0; PIECE_BYTES];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        Ok::<_, io::Error>((read > 0).then(|| (Bytes::from(piece), file)))
    })
}

/// Delete a file, also from all vector stores.
#[utoipa::path(delete, path = "/v1/files/{file_id}", tag = "OpenAI", params(("file_id" = String, Path)),
    responses((status = 200, body = Value), (status = 404), (status = 409, description = "A vector store is in use")))]
async fn delete(Extension(tenant): CurrentTenant, Path(id): Path<String>) -> Result<Json<Value>> {
    // Otherwise a vector store could get the file between the two steps.
    let one = Arc::clone(&tenant.attaching).lock_owned().await;
    let wanted = id.clone();
    with(&tenant, move |files| files.read(&wanted)).await?;
    detach_everywhere(&tenant, &id).await?;
    let deleted = json!({ "id": id, "object": "file", "deleted": true });
    with(&tenant, move |files| {
        let _one = one;
        files.delete(&id)
    })
    .await?;
    Ok(Json(deleted))
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;
    use tokio::runtime::Builder;

    use super::*;
    use crate::app::Shared;

    #[tokio::test]
    async fn the_content_of_a_file_is_sent_in_pieces() {
        let (app, data) = Shared::scripted();
        let tenant = app.tenants.anonymous();
        let (place, bytes) = (data.path().join("content"), b"The wall broke. ".repeat(PIECE_BYTES / 8));
        std::fs::write(&place, &bytes).expect("it can be written");
        let id = tenant.files.keep("wall.txt".to_owned(), "user_data", place).expect("it is kept").id;
        let answer = content(Extension(tenant), Path(id)).await.expect("it is there");
        assert_eq!(answer.headers()[header::CONTENT_LENGTH], bytes.len().to_string());
        let pieces: Vec<Bytes> = answer.into_body().into_data_stream().try_collect().await.expect("it can be read");
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES), "{} pieces", pieces.len());
        assert_eq!(pieces.concat(), bytes);
    }

    #[test]
    fn a_file_that_is_being_added_to_a_vector_store_is_deleted_after_that() {
        let (app, data) = Shared::scripted();
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().expect("a runtime");
        runtime.block_on(async {
            let tenant = app.tenants.anonymous();
            let content = data.path().join("content");
            std::fs::write(&content, "The wall broke.").expect("it can be written");
            let id = tenant.files.keep("wall.txt".to_owned(), "user_data", content).expect("it is kept").id;
            let adding = Arc::clone(&tenant.attaching).lock_owned().await;
            let mut deleting = Box::pin(delete(Extension(Arc::clone(&tenant)), Path(id.clone())));
            // The only thread for blocking work takes turns: a deletion that did not wait would end meanwhile.
            let turns = async {
                for _ in 0..16 {
                    run_blocking(|| Ok(())).await.expect("it runs");
                }
            };
            tokio::select! {
                biased;
                _ = &mut deleting => panic!("it is being added"),
                () = turns => {}
            }
            drop(adding);
            assert!(deleting.await.is_ok());
            assert!(matches!(tenant.files.read(&id), Err(ServerError::NotFound(_))));
        });
    }
}
