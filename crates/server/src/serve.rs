//! A running server: it listens, and on shutdown drains open responses.

use std::convert::Infallible;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use calls::{Caller, Embedder};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::app::{App, Shared};
use crate::blocking::run_blocking;
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
            never = resume_jobs_of_new_holders(&app) => match never {},
            () = stop => Ok(()),
            () = engine_ended(&*app.fixed) => Err(ServerError::EngineEnded),
        };
        end(&app, open.shutdown()).await;
        outcome
    }

    /// Serves MCP over standard input and output until the input ends or `stop` is ready. Jobs end as in [`Server::serve`].
    ///
    /// # Errors
    /// If the client does not speak MCP.
    pub async fn serve_stdio(self, stop: impl Future<Output = ()>) -> Result<()> {
        let (read, write) = rmcp::transport::stdio();
        self.serve_lines(read, write, stop).await
    }

    async fn serve_lines<R, W>(self, read: R, write: W, stop: impl Future<Output = ()>) -> Result<()>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let app = self.app;
        resume_jobs(&app);
        // It is dropped after the jobs have ended: a call that is dropped before cancels its job for good.
        let mut serving = pin!(mcp::over_lines(&app, read, write));
        let outcome = tokio::select! {
            outcome = &mut serving => outcome,
            () = stop => Ok(()),
        };
        end(&app, ready(())).await;
        outcome
    }
}

/// Interrupts jobs and batches, and waits for them and for open responses, at most for the drain time.
async fn end(app: &App, open: impl Future<Output = ()>) {
    app.stopping.store(true, Ordering::Relaxed);
    app.tenants.stop();
    let drained = async { tokio::join!(open, app.tenants.drained()) };
    if timeout(app.config.drain, drained).await.is_err() {
        tracing::warn!("responses were still open at the end of the drain time");
    }
}

/// Resumes the jobs and batches that earlier servers left unfinished.
fn resume_jobs(app: &App) {
    for tenant in app.tenants.take_new() {
        resume_interrupted(app, &tenant);
        resume_batches(app, &tenant);
    }
}

/// The same for holders whose keys are added while the server runs.
async fn resume_jobs_of_new_holders(app: &App) -> Infallible {
    loop {
        app.tenants.added().await;
        let app = Arc::clone(app);
        let resumed = run_blocking(move || {
            resume_jobs(&app);
            Ok(())
        });
        if let Err(error) = resumed.await {
            tracing::warn!(%error, "cannot resume the jobs of a new holder of a key");
        }
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::future::pending;

    use calls::ScriptedEmbedder;
    use serde_json::{Value, json};
    use store::Corpora;
    use test_support::thinker::Thinker;
    use tokio::io::{duplex, split};

    use super::*;

    #[tokio::test]
    async fn a_job_that_the_end_of_the_input_interrupts_does_not_count_as_the_cause_of_a_crash() {
        let data = tempfile::tempdir().expect("the system has a folder for temporary files");
        drop(Corpora::new(data.path()).create("pell").expect("a corpus"));
        let uploads = data.path().join("uploads");
        let upload = uploads.join("server-killed/1");
        fs::create_dir_all(&upload).expect("a folder can be made");
        let journal = json!({ "id": "job-1", "corpus": "pell", "method": "gam", "error": null,
            "files": [{ "name": "wall.txt", "file": "0.txt" }], "interruptions": 2 });
        fs::write(upload.join("job.json"), journal.to_string()).expect("it can be written");
        fs::write(upload.join("0.txt"), "The wall broke.").expect("it can be written");
        let thinker = Thinker::default();
        let server = Server::new(Arc::new(thinker.clone()), Arc::new(ScriptedEmbedder), Config::new(data.path()));
        let (client, ours) = duplex(1 << 16);
        let (read, write) = split(ours);
        let disconnect = async {
            while thinker.begun() == 0 {
                sleep(Duration::from_millis(5)).await;
            }
            drop(client);
        };
        let both = async { tokio::join!(server.serve_lines(read, write, pending()), disconnect) };
        let (served, ()) = timeout(Duration::from_mins(1), both).await.expect("the memorizer is asked");
        served.expect("the input has ended");
        let processes = fs::read_dir(&uploads).expect("it can be read");
        let mut journals = processes.map(|process| process.expect("an entry").path().join("1/job.json"));
        let journal = journals.find_map(|journal| fs::read(journal).ok()).expect("it is resumed later");
        let journal: Value = serde_json::from_slice(&journal).expect("it is JSON");
        assert_eq!((&journal["interruptions"], &journal["cancelled"]), (&json!(0), &json!(false)));
    }
}
