//! Uploads: a job turns files or texts into documents of a corpus.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::{Extension, Json};
use memory::Method;
use serde::Deserialize;
use serde_json::Value;
use sources::{Cause, Kind};
use store::private;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::{FailedFile, Job, NewJob, Upload, hint, start};
use super::settings::method;
use crate::app::App;
use crate::body::{Body, with_read_timeout};
use crate::config::Config;
use crate::error::{Result, ServerError};
use crate::fresh::fresh_id;
use crate::tenant::{CurrentTenant, Tenant};

pub(super) fn routes(config: &Config) -> OpenApiRouter<App> {
    let uploads = OpenApiRouter::new().routes(routes!(upload));
    uploads.layer(DefaultBodyLimit::max(config.max_upload_bytes)).routes(routes!(prepare))
}

/// A text to ingest.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TextUpload {
    /// The name of the document, which may begin with folders (`notes/may.md`). A document of the same name is replaced.
    pub name: String,
    pub text: String,
    /// The method to prepare for; `auto` by default.
    pub method: Option<String>,
}

/// The method to prepare a corpus for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Preparation {
    /// `auto` by default.
    method: Option<String>,
}

/// Files to ingest.
#[derive(ToSchema)]
#[allow(dead_code, reason = "it describes what `receive` reads")]
struct FileUpload {
    /// Parts with a file name, under any name of a field.
    #[schema(value_type = Vec<String>, format = Binary)]
    file: Vec<String>,
    /// The method to prepare for; `auto` by default.
    method: Option<String>,
}

/// Ingest documents: files as multipart/form-data (with a field `method`), or one text as JSON.
#[utoipa::path(post, path = "/v1/corpora/{corpus}/documents", tag = "Memory", params(("corpus" = String, Path)),
    request_body(content((TextUpload = "application/json"), (FileUpload = "multipart/form-data"))), responses((status = 202, body = Value, description = "The job"),
        (status = 404), (status = 413), (status = 429)))]
async fn upload(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
    mut request: Request,
) -> Result<(StatusCode, Json<Value>)> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("multipart/form-data") {
        DefaultBodyLimit::max(app.config.max_body_bytes).apply(&mut request);
        let Body(text) = Body::from_request(request, &app).await?;
        let job = ingest_text(&app, &tenant, corpus, text).await?;
        return Ok(accepted(&job));
    }
    let form =
        Multipart::from_request(request, &app).await.map_err(|refused| ServerError::refused(refused.to_string()))?;
    check_corpus(&tenant, &corpus).await?;
    let _permit = app.uploads.acquire(tenant.id)?;
    let folder = tenant.uploads.create()?;
    let Received { files, refused, method } = app.with_deadline(receive(form, &folder, &app)).await?;
    if files.is_empty() {
        let Some(FailedFile { name, reason }) = refused.first() else {
            return Err(ServerError::refused("the form has no files"));
        };
        let message = format!("none of the files can be read; `{name}`: {reason}");
        return Err(ServerError::Invalid { message, param: None, hint: hint(&refused) });
    }
    let job = start(&app, &tenant, NewJob::new(fresh_id("job")?, corpus, method, files, refused, folder)).await?;
    Ok(accepted(&job))
}

/// Run a method's outstanding preparation of a corpus; this also resumes what was interrupted.
#[utoipa::path(post, path = "/v1/corpora/{corpus}/prepare", tag = "Memory", params(("corpus" = String, Path)),
    request_body = Preparation, responses((status = 202, body = Value), (status = 404)))]
async fn prepare(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
    Body(preparation): Body<Preparation>,
) -> Result<(StatusCode, Json<Value>)> {
    let job = start_preparation(&app, &tenant, corpus, preparation.method.as_deref()).await?;
    Ok(accepted(&job))
}

/// Starts a job that prepares a corpus for a method.
pub(crate) async fn start_preparation(
    app: &App,
    tenant: &Arc<Tenant>,
    corpus: String,
    name: Option<&str>,
) -> Result<Arc<Job>> {
    check_corpus(tenant, &corpus).await?;
    let (method, folder) = (method(name)?, tenant.uploads.create()?);
    start(app, tenant, NewJob::new(fresh_id("job")?, corpus, method, Vec::new(), Vec::new(), folder)).await
}

fn accepted(job: &Job) -> (StatusCode, Json<Value>) {
    (StatusCode::ACCEPTED, Json(job.to_json()))
}

/// Starts a job that ingests a text.
pub(crate) async fn ingest_text(app: &App, tenant: &Arc<Tenant>, corpus: String, text: TextUpload) -> Result<Arc<Job>> {
    check_corpus(tenant, &corpus).await?;
    let name = text_name(&text.name)?;
    // Any other extension is read as plain text.
    let extension = if Kind::of(FilePath::new(&name)) == Some(Kind::Markdown) { "md" } else { "txt" };
    let folder = tenant.uploads.create()?;
    let file = format!("0.{extension}");
    let mut out = create_file(&folder.path().join(&file)).await?;
    out.write_all(text.text.as_bytes()).await?;
    out.flush().await?;
    out.sync_all().await?;
    let (method, files) = (method(text.method.as_deref())?, vec![Upload { name, file }]);
    start(app, tenant, NewJob::new(fresh_id("job")?, corpus, method, files, Vec::new(), folder)).await
}

/// Refuses a text with an invalid name or an unknown method before anything is stored.
pub(crate) fn check_text(text: &TextUpload) -> Result<()> {
    text_name(&text.name)?;
    method(text.method.as_deref()).map(drop)
}

/// Refuses an unknown corpus before anything is stored.
pub(crate) async fn check_corpus(tenant: &Arc<Tenant>, corpus: &str) -> Result<()> {
    let (tenant, corpus) = (Arc::clone(tenant), corpus.to_owned());
    crate::blocking::run_blocking(move || match tenant.open(&corpus) {
        // A busy corpus exists: the job may wait for the current writer.
        Ok(_) | Err(ServerError::Store(store::Error::CorpusBusy { .. })) => Ok(()),
        Err(error) => Err(error),
    })
    .await
}

/// What a form has brought.
struct Received {
    files: Vec<Upload>,
    /// Files that cannot become documents; they do not prevent the others.
    refused: Vec<FailedFile>,
    method: &'static dyn Method,
}

/// Writes the files of a form into a folder under numbers; their names are kept separately.
async fn receive(mut form: Multipart, folder: &TempDir, app: &App) -> Result<Received> {
    let (mut files, mut refused, mut asked, mut left) = (Vec::new(), Vec::new(), None, app.config.max_upload_bytes);
    while let Some(mut field) =
        with_read_timeout(form.next_field(), app).await?.map_err(|error| form_error(&error, app))?
    {
        let Some(name) = field.file_name().map(file_name).transpose()? else {
            let value = read_field(&mut field, &mut left, app).await?;
            match field.name() {
                Some("method") => asked = Some(value),
                other => {
                    return Err(ServerError::refused(format!(
                        "`{}` is neither a file nor `method`",
                        other.unwrap_or_default()
                    )));
                }
            }
            continue;
        };
        if files.len() + refused.len() == MAX_FILES {
            return Err(ServerError::refused(format!(
                "a form holds at most {MAX_FILES} files; send the others in another form"
            )));
        }
        if files.iter().any(|file: &Upload| file.name == name) {
            let reason = "another file has this name, and one document would replace the other: rename one of them";
            refused.push(FailedFile { name, reason: reason.to_owned() });
            skip_field(&mut field, &mut left, app).await?;
            continue;
        }
        let place = temporary_name(files.len(), &name);
        let mut chunk = with_read_timeout(field.chunk(), app).await?.map_err(|error| form_error(&error, app))?;
        // A file of an unknown kind is refused before it is stored; its content is checked when it is read.
        if Kind::of(FilePath::new(&name)).is_none() && !chunk.as_ref().is_some_and(|chunk| begins_as_text(chunk)) {
            refused.push(FailedFile::new(name, &Cause::UnknownKind));
            skip_field(&mut field, &mut left, app).await?;
            continue;
        }
        let mut file = create_file(&folder.path().join(&place)).await?;
        while let Some(bytes) = chunk {
            left = left.checked_sub(bytes.len()).ok_or_else(|| too_large(app))?;
            file.write_all(&bytes).await?;
            chunk = with_read_timeout(field.chunk(), app).await?.map_err(|error| form_error(&error, app))?;
        }
        file.flush().await?;
        file.sync_all().await?;
        files.push(Upload { name, file: place });
    }
    Ok(Received { files, refused, method: method(asked.as_deref())? })
}

/// Whether these first bytes of a file may be those of a text in UTF-8, whose last character may be cut.
fn begins_as_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

/// Creates a file that only its owner may read.
pub(crate) async fn create_file(path: &FilePath) -> Result<tokio::fs::File> {
    Ok(tokio::fs::OpenOptions::from(private::creating()).open(path).await?)
}

/// Reads a part without keeping it: the read timeout is that of each chunk, however long the part is.
pub(crate) async fn skip_field(field: &mut Field<'_>, left: &mut usize, app: &App) -> Result<()> {
    while let Some(chunk) = with_read_timeout(field.chunk(), app).await?.map_err(|error| form_error(&error, app))? {
        *left = left.checked_sub(chunk.len()).ok_or_else(|| too_large(app))?;
    }
    Ok(())
}

/// Maximum bytes of a part of a form that is not a file: it is in memory as a whole.
const MAX_FIELD_BYTES: usize = 64 << 10;

/// Reads a part that is not a file.
///
/// # Errors
/// If it, or the form, is too large.
pub(crate) async fn read_field(field: &mut Field<'_>, left: &mut usize, app: &App) -> Result<String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = with_read_timeout(field.chunk(), app).await?.map_err(|error| form_error(&error, app))? {
        *left = left.checked_sub(chunk.len()).ok_or_else(|| too_large(app))?;
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_FIELD_BYTES {
            let name = field.name().unwrap_or_default();
            let message = format!("`{name}` is not a file and has more than {MAX_FIELD_BYTES} bytes");
            return Err(ServerError::invalid(message, name));
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The temporary file name of an upload. One of an unknown type has no extension: it is read if it is a text.
pub(super) fn temporary_name(number: usize, name: &str) -> String {
    let extension = FilePath::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let known = Kind::EXTENSIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
    let Some((extension, _)) = known else { return number.to_string() };
    // WhatsApp's export is a text file with this name.
    let mark = if Kind::of(FilePath::new(name)) == Some(Kind::WhatsApp) { "_chat" } else { "" };
    format!("{number}{mark}.{extension}")
}

/// Maximum files of one form.
const MAX_FILES: usize = 1000;

const MAX_NAME_BYTES: usize = 255;

/// The last component of a client's file name.
///
/// # Errors
/// If it is not a valid name.
pub(crate) fn file_name(name: &str) -> Result<String> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    let usable =
        !matches!(name, "" | "." | "..") && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control);
    let rule = "a document needs a name of 1 to 255 bytes, without control characters and other than `.` and `..`";
    if usable { Ok(name.to_owned()) } else { Err(ServerError::refused(rule)) }
}

/// The name that a client gives to a text, with its folders: texts of one name in two folders are two documents.
///
/// # Errors
/// If it, or the name of a folder, is not valid.
fn text_name(name: &str) -> Result<String> {
    let parts = name.split(['/', '\\']).filter(|part| !part.trim().is_empty());
    let name = parts.map(file_name).collect::<Result<Vec<String>>>()?.join("/");
    if name.is_empty() || name.len() > MAX_NAME_BYTES { file_name("") } else { Ok(name) }
}

pub(crate) fn form_error(error: &MultipartError, app: &App) -> ServerError {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        too_large(app)
    } else {
        ServerError::refused(error.body_text())
    }
}

pub(crate) fn too_large(app: &App) -> ServerError {
    ServerError::TooLarge { limit_bytes: app.config.max_upload_bytes }
}

#[cfg(test)]
mod tests {
    use sources::Kind;

    use super::{begins_as_text, file_name, temporary_name, text_name};

    #[test]
    fn a_text_whose_last_character_is_cut_is_still_a_text() {
        let text = "Größe".as_bytes();
        (1..=text.len()).for_each(|end| assert!(begins_as_text(&text[..end]), "{end}"));
        assert!(!begins_as_text(b"Gr\xf6\xdfe") && !begins_as_text(b"a\0b"));
    }

    #[test]
    fn the_page_offers_every_type_of_file() {
        let page = include_str!("../../page/index.html");
        let kinds: Vec<String> = Kind::EXTENSIONS.iter().map(|(extension, _)| format!(".{extension}")).collect();
        assert!(page.contains(&format!("multiple accept=\"{}\"", kinds.join(","))));
    }

    #[test]
    fn the_file_of_an_upload_has_the_type_of_its_name() {
        let check = |name: &str, file: &str| assert_eq!(temporary_name(3, name), file);
        check("notes.MD", "3.md");
        check("WhatsApp Chat with Ann.txt", "3_chat.txt");
        check("Makefile", "3");
        check("lamp.jpg", "3");
    }

    #[test]
    fn a_text_may_be_in_a_folder_but_not_above_one() {
        let check = |typed: &str, want: Option<&str>| assert_eq!(text_name(typed).ok().as_deref(), want, "{typed:?}");
        check("notes/may.md", Some("notes/may.md"));
        check("/home//ann/ may.md ", Some("home/ann/may.md"));
        check("C:\\ann\\may.md", Some("C:/ann/may.md"));
        check("../may.md", None);
        check("a/..", None);
        check("/", None);
        check("a/b\u{0}", None);
        check(&"x/".repeat(128), Some(&"x/".repeat(128)[..255]));
        check(&"x/".repeat(129), None);
    }

    #[test]
    fn a_name_is_never_a_path() {
        let check = |typed: &str, want: Option<&str>| assert_eq!(file_name(typed).ok().as_deref(), want, "{typed:?}");
        check("notes.md", Some("notes.md"));
        check("../../etc/passwd", Some("passwd"));
        check("C:\\Users\\ann\\a b.txt", Some("a b.txt"));
        check("/", None);
        check("..", None);
        check("a\u{0}b", None);
        check(&"x".repeat(256), None);
    }
}
