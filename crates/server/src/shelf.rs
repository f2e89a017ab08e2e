//! /v1/shelf: the models that this machine could serve; fetching, loading and unloading them.

use std::sync::{Arc, TryLockError};

use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{App, since_1970};
use crate::blocking::run_blocking;
use crate::body::Body;
use crate::error::{Result, ServerError};
use crate::loading::{KeepAlive, Presence, Resident, Room};
use crate::offered::names;
use crate::pulling::{ModelMemory, PullProgress, Shelf, ShelfModel};
use crate::stream::{Framing, Sink, respond};
use crate::tenant::{CurrentTenant, Tenant};
use crate::time::rfc3339;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(pull)).routes(routes!(load)).routes(routes!(unload))
}

/// A model of the shelf.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OneModel {
    /// A name of `GET /v1/shelf`; to fetch, also `hf:OWNER/REPO[:FILE|QUANT][@REVISION]`.
    model: String,
}

/// The model to load.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct LoadRequest {
    /// A name of `GET /v1/shelf`.
    model: String,
    /// How long it stays loaded after its last request: seconds, or a time such as `5m`; a negative time keeps it.
    keep_alive: Option<Value>,
}

/// Show the models that this machine could serve: which are loaded and on the disk, and which would fit beside what is loaded
/// (`fits`), or after unloading idle models (`fits_after_unloading`). Empty where models come from elsewhere.
#[utoipa::path(get, path = "/v1/shelf", tag = "Engine", responses((status = 200, body = Value)))]
async fn show(State(app): State<App>, Extension(tenant): CurrentTenant) -> Result<Json<Value>> {
    let may_pull = tenant.is_operator;
    run_blocking(move || {
        let Some(shelf) = &app.config.shelf else {
            return Ok(Json(json!({ "models": [], "free_bytes": null, "may_pull": false, "may_load": false })));
        };
        let room = app.residents.room(shelf.free_bytes());
        let models: Vec<Value> = shelf.list().into_iter().map(|model| line(&app, &model, &room)).collect();
        let may_load = may_pull && app.loads_models();
        Ok(Json(json!({ "models": models, "free_bytes": room.free, "may_pull": may_pull, "may_load": may_load })))
    })
    .await
}

fn line(app: &App, model: &ShelfModel, room: &Room) -> Value {
    let mut line = json!(model);
    // Another name of a listed model is loaded with it.
    let is_meant = |name: &String| *name == model.name || Some(name) == model.alias_of.as_ref();
    let resident = app.residents.all().into_iter().find(|resident| is_meant(&resident.name));
    let fixed = names(app).into_iter().find(is_meant);
    // The embedder is one of these too, and stays.
    let presence = fixed.map(|name| app.presence(&name).unwrap_or(Presence::Always));
    let status = presence.and_then(Presence::status).or_else(|| resident.as_ref().map(Resident::status));
    let stays = matches!(presence, Some(Presence::Always)) || presence.is_some() && !app.loads_models();
    line["loaded"] = (stays || status.is_some()).into();
    line["stays"] = stays.into();
    let ModelMemory { whole, least } = model.memory;
    line["memory_bytes"] = whole.into();
    line["fits"] = room.free.map(|free| whole <= free).into();
    // A GPU may share it with the CPU then.
    line["fits_after_unloading"] = room.free.map(|free| least <= free.saturating_add(room.idle)).into();
    if let Some(status) = status {
        line["in_use"] = status.in_use.into();
        line["expires_at"] = status.expires_in.map(|time| rfc3339((since_1970() + time).as_secs())).into();
    }
    line
}

/// The shelf, for the operator of a server that has one.
pub(crate) fn shelf_of(app: &App, tenant: &Tenant) -> Result<Arc<dyn Shelf>> {
    if !tenant.is_operator {
        return Err(ServerError::OperatorOnly);
    }
    app.config.shelf.clone().ok_or_else(|| ServerError::NotFound("shelf of models".into()))
}

/// Fetch a model to this disk: events `progress`, then `done`. The download continues if the client disconnects.
#[utoipa::path(post, path = "/v1/shelf/pull", tag = "Engine", request_body = OneModel,
    responses((status = 200, body = String, content_type = "text/event-stream"), (status = 403), (status = 404),
        (status = 409, description = "A model is being fetched")))]
async fn pull(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Body(request): Body<OneModel>,
) -> Result<Response> {
    let shelf = shelf_of(&app, &tenant)?;
    respond(Framing::Events, |sink: Sink| async move {
        let progress = sink.clone();
        let name = fetch(app, shelf, request.model, move |at| progress.event("progress", &at)).await?;
        sink.event("done", &json!({ "model": name }));
        Ok(())
    })
    .await
}

/// Fetches a model and returns the name by which it is listed.
///
/// # Errors
/// [`ServerError::NotFound`] for an unknown name, [`ServerError::Pulling`] while another is fetched, and why it failed.
pub(crate) async fn fetch(
    app: App,
    shelf: Arc<dyn Shelf>,
    model: String,
    mut report: impl FnMut(PullProgress) + Send + 'static,
) -> Result<String> {
    run_blocking(move || {
        let unknown = || ServerError::NotFound(format!("model {model} on the shelf"));
        let name = shelf.fetchable(&model).ok_or_else(unknown)?;
        let _one = match app.pulling.0.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(ServerError::Pulling),
            Ok(one) => one,
            Err(TryLockError::Poisoned(one)) => one.into_inner(),
        };
        shelf.pull(&name, &mut report).map_err(|(message, hint)| ServerError::Pull { message, hint })?;
        Ok(name)
    })
    .await
}

/// Load a model that is on this disk; idle ones are unloaded if it takes their memory, the least recently used first.
#[utoipa::path(post, path = "/v1/shelf/load", tag = "Engine", request_body = LoadRequest,
    responses((status = 200, body = Value), (status = 403), (status = 404), (status = 507, description = "It does not fit")))]
async fn load(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Body(request): Body<LoadRequest>,
) -> Result<Json<Value>> {
    shelf_of(&app, &tenant)?;
    let keep_alive = request.keep_alive.as_ref().map(KeepAlive::of_request).transpose()?;
    let app = app.serving_for(&request.model, keep_alive).await?;
    Ok(Json(json!({ "model": app.served(&request.model)?.name, "loaded": true })))
}

/// Unload a model, as soon as no request uses it. One that the server was started with comes back with its next call.
#[utoipa::path(post, path = "/v1/shelf/unload", tag = "Engine", request_body = OneModel,
    responses((status = 200, body = Value), (status = 403), (status = 404), (status = 409, description = "It stays loaded")))]
async fn unload(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Body(request): Body<OneModel>,
) -> Result<Json<Value>> {
    shelf_of(&app, &tenant)?;
    let meant = app.meant(&request.model).await?;
    let name = meant.map_or_else(|| request.model.clone(), |meant| meant.model.name);
    if app.unload(&name).await? {
        let is_here = app.presence(&name).is_some_and(|presence| !presence.has_left());
        let is_loaded = is_here || app.residents.all().iter().any(|resident| resident.name == name);
        return Ok(Json(json!({ "model": name, "loaded": is_loaded })));
    }
    if app.served(&name).is_ok() {
        return Err(ServerError::Fixed(name));
    }
    Err(ServerError::NotFound(format!("loaded model {}", request.model)))
}
