//! A running server: it listens, and when it is told to stop it lets answers that are being written come to their end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use calls::{Caller, Embedder};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::app::{App, Shared, router};
use crate::config::Config;
use crate::error::Result;
use crate::mcp;

/// A server that is set up but does not listen yet.
#[derive(Clone)]
pub struct Server {
    app: App,
}

impl Server {
    /// A server in front of these models.
    pub fn new(caller: Arc<dyn Caller>, embedder: Arc<dyn Embedder>, config: Config) -> Server {
        Server { app: Shared::new(caller, embedder, config) }
    }

    /// Answers requests until `stop` is ready and answers that are being written have ended, or the time for that is over.
    /// Jobs are stopped at once: what they have finished is on the disk, and they can be taken up again.
    ///
    /// # Errors
    /// If connections cannot be accepted.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let (drained, draining) = oneshot::channel::<()>();
        let app = Arc::clone(&self.app);
        let stopping = async move {
            stop.await;
            app.stopping.store(true, Ordering::Relaxed);
            app.tenants.stop();
            let _ = drained.send(());
        };
        let serving = axum::serve(listener, router(&self.app)).with_graceful_shutdown(stopping);
        let drain = self.app.config.drain;
        let too_long = async {
            // Without a signal there is nothing to wait for but the server itself.
            if draining.await.is_err() {
                std::future::pending::<()>().await;
            }
            let _ = timeout(drain, std::future::pending::<()>()).await;
        };
        tokio::select! {
            served = serving => Ok(served?),
            () = too_long => {
                tracing::warn!("answers were still being written when the time to stop was over");
                Ok(())
            }
        }
    }

    /// Speaks MCP over standard input and output until the input ends.
    ///
    /// # Errors
    /// If the other side does not speak MCP.
    pub async fn serve_stdio(self) -> Result<()> {
        mcp::over_stdio(&self.app).await
    }
}
