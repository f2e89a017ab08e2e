//! POST /api/pull, /api/create, /api/copy and DELETE /api/delete: the models on this disk. Only the operator changes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::blobs::sha256_of;
use super::models::OllamaModel;
use super::options::Options;
use crate::app::App;
use crate::blocking::run_blocking;
use crate::body::Body;
use crate::error::{Result, ServerError};
use crate::pulling::{Preset, PullProgress, Refused, Shelf, ShelfModel, find_named};
use crate::recall::check_model_name;
use crate::served::LATEST;
use crate::shelf::{fetch, shelf_of};
use crate::stream::{Framing, Sink, respond};
use crate::tenant::{CurrentTenant, Tenant};
use crate::warnings::Warnings;

/// Fetch a model: a name that `memlocal models list` shows, `hf:OWNER/REPO[:QUANT]` or `hf.co/OWNER/REPO[:QUANT]`. One that
/// is here is not fetched again.
#[utoipa::path(post, path = "/api/pull", tag = "Ollama", request_body = OllamaModel,
    responses((status = 200, content((Value = "application/json"), (String = "application/x-ndjson")))))]
pub(super) async fn pull(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Body(request): Body<OllamaModel>,
) -> Result<Response> {
    let (name, streams) = (request.name()?.to_owned(), request.stream.unwrap_or(true));
    let bring = async move |report: Box<dyn FnMut(PullProgress) + Send>| {
        if app.is_fixed(&name) || app.meant(&name).await?.is_some() {
            return Ok(());
        }
        let shelf = shelf_of(&app, &tenant)?;
        fetch(app, shelf, name, report).await.map(drop)
    };
    if !streams {
        bring(Box::new(|_| {})).await?;
        return Ok(Json(json!({ "status": "success" })).into_response());
    }
    respond(Framing::Lines, |sink: Sink| async move {
        let lines = sink.clone();
        let report = move |PullProgress { file, done_bytes, total_bytes }: PullProgress| {
            let mut line = json!({ "status": format!("pulling {file}"), "digest": file, "completed": done_bytes });
            if let Some(total) = total_bytes {
                line["total"] = total.into();
            }
            lines.json(&line);
        };
        sink.json(&json!({ "status": "pulling manifest" }));
        bring(Box::new(report)).await?;
        sink.json(&json!({ "status": "success" }));
        Ok(())
    })
    .await
}

/// A model to be named.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct CreateRequest {
    model: Option<String>,
    /// The older form of `model`.
    name: Option<String>,
    /// A model, or the path of a GGUF file on the server.
    from: Option<String>,
    /// One uploaded GGUF file by its name, with its digest: `sha256:...`.
    files: Option<BTreeMap<String, String>>,
    stream: Option<bool>,
    /// The system message of chats that begin with none.
    system: Option<String>,
    /// Options where a request gives none.
    #[schema(value_type = Option<Options>)]
    parameters: Option<Map<String, Value>>,
    /// Refused unless empty, as the fields below: a model is named, not changed.
    template: Option<Value>,
    messages: Option<Value>,
    adapters: Option<Value>,
    quantize: Option<Value>,
    modelfile: Option<Value>,
    /// A name needs none.
    #[serde(rename = "license")]
    _license: Option<Value>,
}

/// Give a model a name: another model, or a GGUF file that was uploaded or is on the server.
#[utoipa::path(post, path = "/api/create", tag = "Ollama", request_body = CreateRequest,
    responses((status = 200, content((Value = "application/json"), (String = "application/x-ndjson"))),
        (status = 409, description = "A model of the start or a corpus has the name")))]
pub(super) async fn create(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    Body(request): Body<CreateRequest>,
) -> Result<Response> {
    let shelf = shelf_of(&app, &tenant)?;
    let name = request.model.or(request.name).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| ServerError::invalid("model is required", "model"))?;
    let changing = [
        ("template", request.template),
        ("messages", request.messages),
        ("adapters", request.adapters),
        ("quantize", request.quantize),
        ("modelfile", request.modelfile),
    ];
    let is_given = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(values) => !values.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    for (field, value) in changing {
        if value.as_ref().is_some_and(is_given) {
            return Err(ServerError::invalid(
                format!("`{field}` is not supported: a model is named, not changed"),
                field,
            ));
        }
    }
    let files: Vec<(String, String)> = request.files.unwrap_or_default().into_iter().collect();
    let of = match (request.from.filter(|from| !from.is_empty()), &files[..]) {
        (Some(from), []) => from,
        (None, [(_, digest)]) => {
            let path = shelf.blob(&sha256_of(digest)?);
            if !path.is_file() {
                return Err(ServerError::invalid(format!("{digest} was not uploaded"), "files"));
            }
            path.to_string_lossy().into_owned()
        }
        _ => return Err(ServerError::invalid("give `from`, or one GGUF file in `files`", "from")),
    };
    let (system, parameters) = (request.system.unwrap_or_default(), request.parameters.unwrap_or_default());
    Options::check(parameters.clone(), &warnings)?;
    name_model(&app, &tenant, shelf, (name, of), Preset { system, parameters }).await?;
    if !request.stream.unwrap_or(true) {
        return Ok(Json(json!({ "status": "success" })).into_response());
    }
    respond(Framing::Lines, |sink: Sink| async move {
        sink.json(&json!({ "status": "success" }));
        Ok(())
    })
    .await
}

/// A model and its new name.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct CopyRequest {
    source: String,
    destination: String,
}

/// Give a model on this disk another name.
#[utoipa::path(post, path = "/api/copy", tag = "Ollama", request_body = CopyRequest,
    responses((status = 200), (status = 404),
        (status = 409, description = "A model of the start or a corpus has the name")))]
pub(super) async fn copy(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Body(request): Body<CopyRequest>,
) -> Result<()> {
    let shelf = shelf_of(&app, &tenant)?;
    let found = named(&shelf, &request.source).await?;
    let source = found.ok_or_else(|| ServerError::UnknownModel(request.source.clone()))?;
    name_model(&app, &tenant, shelf, (request.destination, source.name), Preset::default()).await
}

/// Gives a model a name that no other model has, nor a corpus. The preset of a name that it is made from applies where this
/// one says nothing.
async fn name_model(
    app: &App,
    tenant: &Arc<Tenant>,
    shelf: Arc<dyn Shelf>,
    (name, of): (String, String),
    preset: Preset,
) -> Result<()> {
    let name = name.strip_suffix(LATEST).unwrap_or(&name).to_owned();
    if app.is_fixed(&name) {
        return Err(ServerError::Fixed(name));
    }
    let (tenant, renamed) = (Arc::clone(tenant), name.clone());
    run_blocking(move || {
        check_model_name(&tenant, &name)?;
        let (of, base) = match find_named(&*shelf, &of) {
            Some(model) => (model.name, model.preset),
            None => (of, Preset::default()),
        };
        shelf.alias(&name, &of, &preset.over(base)).map_err(refused)
    })
    .await?;
    // What was loaded under this name is another model now.
    app.residents.unload(|known| known == renamed).await.map(drop)
}

fn refused((message, hint): Refused) -> ServerError {
    ServerError::Invalid { message, param: None, hint }
}

/// Remove a name, or a fetched model from this disk. It is unloaded before.
#[utoipa::path(delete, path = "/api/delete", tag = "Ollama", request_body = OllamaModel,
    responses((status = 200), (status = 404), (status = 409, description = "The model is in use")))]
pub(super) async fn delete(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Body(request): Body<OllamaModel>,
) -> Result<()> {
    let shelf = shelf_of(&app, &tenant)?;
    let name = request.name()?.to_owned();
    if app.is_fixed(&name) {
        return Err(ServerError::Fixed(name));
    }
    let found = named(&shelf, &name).await?.ok_or(ServerError::UnknownModel(name))?;
    // The request may have named it in another way.
    if app.is_fixed(&found.name) {
        return Err(ServerError::Fixed(found.name));
    }
    app.residents.unload(|known| known == found.name).await?;
    if app.residents.all().iter().any(|resident| resident.name == found.name) {
        return Err(ServerError::Conflict(format!("the model `{}` is in use", found.name)));
    }
    run_blocking(move || shelf.remove(&found.name).map_err(refused)).await
}

/// The model on this disk of this name.
async fn named(shelf: &Arc<dyn Shelf>, name: &str) -> Result<Option<ShelfModel>> {
    let (shelf, name) = (Arc::clone(shelf), name.to_owned());
    run_blocking(move || Ok(find_named(&*shelf, &name))).await
}
