//! GET /v1/keys and GET /v1/settings: what the operator sees of keys and configuration. No secret is shown.

use axum::extract::State;
use axum::{Extension, Json};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::{Result, ServerError};
use crate::keys::KeysFile;
use crate::tenant::CurrentTenant;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(keys)).routes(routes!(settings))
}

/// List the holders of keys: names, whether a holder is the operator, and the day on which the key was made, where it is
/// known. `required` is false where no key is. A tenant other than the operator sees itself.
#[utoipa::path(get, path = "/v1/keys", tag = "Engine", responses((status = 200, body = Value)))]
async fn keys(State(app): State<App>, Extension(tenant): CurrentTenant) -> Result<Json<Value>> {
    run_blocking(move || {
        let Some(keys) = app.config.keys.as_ref().and_then(KeysFile::keys) else {
            return Ok(Json(json!({ "required": false, "keys": [] })));
        };
        let shown = |name: &&str| tenant.is_operator || tenant.name.as_deref() == Some(*name);
        let key = |name: &str| {
            let is_operator = app.config.operator.as_deref() == Some(name);
            json!({ "name": name, "operator": is_operator, "created": keys.created(name) })
        };
        let keys: Vec<Value> = keys.names().filter(shown).map(key).collect();
        Ok(Json(json!({ "required": true, "keys": keys })))
    })
    .await
}

/// Show the settings that the server was started with, as pairs of name and value, for the operator.
#[utoipa::path(get, path = "/v1/settings", tag = "Engine", responses((status = 200, body = Value), (status = 403)))]
async fn settings(State(app): State<App>, Extension(tenant): CurrentTenant) -> Result<Json<Value>> {
    if !tenant.is_operator {
        return Err(ServerError::OperatorOnly);
    }
    Ok(Json(json!({ "settings": app.config.settings })))
}
