//! The router of all APIs, with the middleware around them.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, MatchedPath, OriginalUri};
use axum::http::Method;
use axum::routing::get;
use axum::{Router, middleware};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::config::Config;
use crate::error::ServerError;
use crate::query::Parameters;
use crate::{
    anthropic, api, bench, body, corpora, docs, engine, guard, health, mcp, ollama, openai, operator, page, query,
    shelf,
};

/// All routes.
pub(crate) fn router(app: &App) -> Router {
    let (documented, openapi) = documented(&app.config).split_for_parts();
    let openapi = api::with_error_responses(openapi);
    let known = Parameters::of(&openapi);
    let documented = documented.route_layer(middleware::from_fn_with_state(Arc::clone(&known), query::check));
    let mcp = Router::new()
        .route_service("/mcp", mcp::over_http(app))
        .layer(middleware::from_fn_with_state(Arc::clone(app), body::buffer));
    let private = documented
        .route("/metrics", get(health::metrics))
        .merge(mcp)
        .route_layer(middleware::from_fn_with_state(Arc::clone(app), guard::authenticate));
    let public = Router::new()
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .merge(docs::routes(openapi))
        .merge(page::routes());
    private
        .merge(public)
        .fallback(|uri: OriginalUri| async move { ServerError::NoPath(uri.path().to_owned()) })
        .method_not_allowed_fallback(move |path: Option<MatchedPath>, method: Method| {
            let allowed = known.methods(path.as_ref().map(MatchedPath::as_str).unwrap_or_default());
            async move { ServerError::Method { method: method.to_string(), allowed } }
        })
        .layer(DefaultBodyLimit::max(app.config.max_body_bytes))
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard::refuse_cross_site))
        .layer(middleware::from_fn(ollama::compatible))
        .layer(middleware::from_fn(anthropic::errors))
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard::allow_origins))
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard::log_and_count))
        .with_state(Arc::clone(app))
}

/// The routes that /openapi.json documents.
fn documented(config: &Config) -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(api::document())
        .merge(openai::routes(config))
        .merge(anthropic::routes())
        .merge(ollama::routes())
        .merge(corpora::routes(config))
        .merge(engine::routes())
        .merge(bench::routes())
        .merge(shelf::routes())
        .merge(operator::routes())
}
