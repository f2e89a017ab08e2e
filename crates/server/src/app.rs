//! State shared by all requests.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use calls::{Call, Caller, Embedder, Embedding, Heads, Priority, Reply, TenantId};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::blocking::{run_blocking, start_blocking};
use crate::config::Config;
use crate::error::{Result, ServerError};
use crate::metered::Metered;
use crate::metrics::Metrics;
use crate::permits::Admission;
use crate::pulling::Pulling;
use crate::rate::Rate;
use crate::tenant::Tenants;

pub(crate) use crate::fresh::{fresh_id, random, since_1970};

tokio::task_local! {
    /// The priority of all calls of a task, instead of their own.
    pub(crate) static PRIORITY: Priority;
}

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
        let priority = PRIORITY.try_with(|priority| *priority).unwrap_or(call.priority);
        let (caller, call) = (Arc::clone(&self.caller), Call { tenant, priority, ..call });
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
