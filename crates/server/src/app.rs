//! State shared by all requests, and the router.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::{DefaultBodyLimit, OriginalUri};
use axum::http::Method;
use axum::routing::get;
use axum::{Router, middleware};
use calls::{Call, Caller, Embedder, Embedding, Heads, Reply, TenantId};
use tokio::sync::Mutex;
use tokio::time::timeout;
use utoipa_axum::router::OpenApiRouter;

use crate::admission::Admission;
use crate::blocking::{run_blocking, start_blocking};
use crate::config::Config;
use crate::error::{Result, ServerError};
use crate::metered::Metered;
use crate::metrics::Metrics;
use crate::rate::Rate;
use crate::shelf::Pulling;
use crate::tenant::Tenants;
use crate::{anthropic, api, bench, body, corpora, docs, engine, guard, health, mcp, ollama, openai, page, shelf};

/// A handle to the shared state.
pub(crate) type App = Arc<Shared>;

/// State shared by all requests.
pub(crate) struct Shared {
    pub caller: Arc<dyn Caller>,
    pub embedder: Arc<dyn Embedder>,
    pub config: Config,
    pub metrics: Arc<Metrics>,
    pub admission: Admission,
    /// Bounds concurrent file uploads.
    pub uploads: Admission,
    pub rate: Option<Rate>,
    pub tenants: Tenants,
    pub pulling: Pulling,
    /// Start time in seconds since 1970.
    pub started_seconds: u64,
    pub stopping: AtomicBool,
}

impl Shared {
    pub fn new(caller: Arc<dyn Caller>, embedder: Arc<dyn Embedder>, config: Config) -> App {
        let metrics = Arc::new(Metrics::default());
        Arc::new(Shared {
            caller: Arc::new(Metered { inner: caller, metrics: Arc::clone(&metrics), log_prompts: config.log_prompts }),
            embedder: Arc::new(Metered { inner: embedder, metrics: Arc::clone(&metrics), log_prompts: false }),
            admission: Admission::new(config.max_requests),
            uploads: Admission::new(config.max_uploads),
            rate: config.rate.map(Rate::new),
            tenants: Tenants::new(&config),
            pulling: Pulling::default(),
            metrics,
            config,
            started_seconds: since_1970().as_secs(),
            stopping: AtomicBool::new(false),
        })
    }

    /// Runs a tenant's call.
    pub async fn call(&self, tenant: TenantId, call: Call) -> Result<Reply> {
        self.call_in_order(tenant, call, &Mutex::new(())).await
    }

    /// Runs one of several calls; they are submitted one after the other, in the order of these requests.
    pub async fn call_in_order(&self, tenant: TenantId, call: Call, order: &Mutex<()>) -> Result<Reply> {
        let (caller, call) = (Arc::clone(&self.caller), Call { tenant, ..call });
        let submitted = {
            let _order = order.lock().await;
            start_blocking(async move { caller.call(call).await }).await?
        };
        Ok(submitted.await?)
    }

    /// Number of tokens of a call's prompt.
    pub async fn prompt_tokens(&self, call: &Call) -> Result<usize> {
        let (caller, call) = (Arc::clone(&self.caller), call.clone());
        run_blocking(move || Ok(caller.prompt_tokens(&call))).await
    }

    /// The requested representations of texts.
    pub async fn encode(&self, texts: Vec<String>, heads: Heads) -> Result<Vec<Embedding>> {
        let embedder = Arc::clone(&self.embedder);
        Ok(start_blocking(async move { embedder.encode(texts, heads).await }).await?.await?)
    }

    /// Texts with their token counts.
    pub async fn with_token_counts(&self, texts: Vec<String>) -> Result<Vec<(String, usize)>> {
        let embedder = Arc::clone(&self.embedder);
        let count = move |text: String| {
            let tokens = embedder.token_spans(&text).len();
            (text, tokens)
        };
        run_blocking(move || Ok(texts.into_iter().map(count).collect())).await
    }

    /// Runs work until the deadline.
    ///
    /// # Errors
    /// [`ServerError::DeadlineExceeded`] after the deadline, and the errors of the work.
    pub async fn with_deadline<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let deadline = self.config.deadline;
        timeout(deadline, work).await.map_err(|_| ServerError::DeadlineExceeded(deadline))?
    }
}

/// A unique random id with this prefix; it does not reveal how many others exist.
pub(crate) fn fresh_id(prefix: &str) -> Result<String> {
    Ok(format!("{prefix}-{:016x}{:016x}", random()?, random()?))
}

/// A random number: the seed of a request without one, or the id of a workflow.
pub(crate) fn random() -> Result<u64> {
    getrandom::u64().map_err(|error| ServerError::Worker(format!("no random bytes from the operating system: {error}")))
}

/// Time since 1970.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// All routes.
pub(crate) fn router(app: &App) -> Router {
    let (documented, openapi) = documented(&app.config).split_for_parts();
    let openapi = api::with_error_responses(openapi);
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
        .fallback(|uri: OriginalUri| async move { ServerError::NotFound(format!("page {}", uri.path())) })
        .method_not_allowed_fallback(|method: Method| async move { ServerError::Method(method.to_string()) })
        .layer(DefaultBodyLimit::max(app.config.max_body_bytes))
        .layer(middleware::from_fn(ollama::compatible))
        .layer(middleware::from_fn(anthropic::errors))
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard::refuse_cross_site))
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard::log_and_count))
        .with_state(Arc::clone(app))
}

/// The routes that /openapi.json documents.
fn documented(config: &Config) -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(api::document())
        .merge(openai::routes())
        .merge(anthropic::routes())
        .merge(ollama::routes())
        .merge(corpora::routes(config))
        .merge(engine::routes())
        .merge(bench::routes())
        .merge(shelf::routes())
}
