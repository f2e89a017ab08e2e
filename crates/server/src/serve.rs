//! A running server: it listens, and on shutdown drains open responses.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use calls::{Caller, Embedder};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::app::{App, Shared};
use crate::config::Config;
use crate::connections::accept;
use crate::corpora::resume_interrupted;
use crate::error::{Result, ServerError};
use crate::ollama::blobs::delete_abandoned;
use crate::openai::resume_batches;
use crate::router::router;
use crate::{engine, mcp, status};

/// A configured server that does not listen yet.
#[derive(Clone)]
pub struct Server {
    app: App,
}

impl Server {
    /// A server for these models. Deletes unfinished uploads of models that earlier servers left.
    pub fn new(caller: Arc<dyn Caller>, embedder: Arc<dyn Embedder>, config: Config) -> Server {
        delete_abandoned(&config);
        Server { app: Shared::new(caller, embedder, config) }
    }

    /// Serves requests until `stop` is ready or the engine has ended; then waits for open responses and jobs, at most
    /// for the configured drain time. Jobs are interrupted: their finished work is durable, and the next server resumes
    /// them.
    ///
    /// # Errors
    /// [`ServerError::EngineEnded`] if the engine has ended.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let app = self.app;
        resume_jobs(&app);
        let open = GracefulShutdown::new();
        let outcome = tokio::select! {
            never = accept(listener, router(&app), app.config.read_timeout, &open) => match never {},
            never = app.residents.expire() => match never {},
            never = engine::sample(&app) => match never {},
            () = stop => Ok(()),
            () = engine_ended(&*app.fixed) => Err(ServerError::EngineEnded),
        };
        app.stopping.store(true, Ordering::Relaxed);
        app.tenants.stop();
        let drained = async { tokio::join!(open.shutdown(), app.tenants.drained()) };
        if timeout(app.config.drain, drained).await.is_err() {
            tracing::warn!("responses were still open at the end of the drain time");
        }
        outcome
    }

    /// Serves MCP over standard input and output until the input ends.
    ///
    /// # Errors
    /// If the client does not speak MCP.
    pub async fn serve_stdio(self) -> Result<()> {
        resume_jobs(&self.app);
        mcp::over_stdio(&self.app).await
    }
}

/// Resumes the jobs and batches that earlier servers left unfinished.
fn resume_jobs(app: &App) {
    for tenant in app.tenants.all() {
        resume_interrupted(app, &tenant);
        resume_batches(app, &tenant);
    }
}

/// Interval of the engine's liveness check.
const LIVENESS_INTERVAL: Duration = Duration::from_millis(500);

/// Ready when the engine has ended.
async fn engine_ended(caller: &dyn Caller) {
    while status::is_alive(caller) {
        sleep(LIVENESS_INTERVAL).await;
    }
}
