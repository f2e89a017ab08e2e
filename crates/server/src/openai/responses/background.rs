//! Responses that continue without their client.

use std::sync::Arc;

use serde_json::Value;

use super::generation::Generation;
use super::output::lock;
use super::stored;
use crate::admission::Permit;
use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::Result;
use crate::tenant::Tenant;

/// Starts a response and returns it as it is now: in progress.
pub(super) async fn start(app: App, tenant: Arc<Tenant>, mut generation: Generation, permit: Permit) -> Result<Value> {
    let begun = generation.asked.frame.object("in_progress", &[], None);
    let Some(record) = generation.record.clone() else { return Ok(begun) };
    let kept = record.with_response(begun.clone());
    // In one step: a client that disconnects does not leave a response that is never made.
    run_blocking(move || {
        stored::put_now(&tenant, kept, &generation.states)?;
        let (owner, id) = (Arc::clone(&tenant), record.id.clone());
        let work = async move {
            let _permit = permit;
            let id = record.id.clone();
            if let Err(error) = generation.run(&app, &tenant).await {
                error.log();
                let failed = generation.asked.frame.failed(&error, lock(&generation.output).finished());
                if let Err(error) = stored::put(&tenant, record.with_response(failed), generation.states).await {
                    tracing::error!(%error, "cannot keep a response");
                }
            }
            tenant.responses.ended(&id);
        };
        owner.responses.start(id, work);
        Ok(())
    })
    .await?;
    Ok(begun)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use calls::{Scripted, ScriptedEmbedder};
    use futures_util::poll;
    use serde_json::json;
    use tokio::runtime::Builder;

    use super::super::request::ResponseRequest;
    use super::*;
    use crate::app::Shared;
    use crate::config::Config;
    use crate::recall::Address;
    use crate::warnings::Warnings;

    #[test]
    fn a_response_whose_client_disconnects_is_made() {
        let data = tempfile::tempdir().expect("the system has a folder for temporary files");
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().expect("a runtime");
        runtime.block_on(async {
            let caller = Arc::new(Scripted::new(8192).answer("response", "Yes."));
            let app = Shared::new(caller, Arc::new(ScriptedEmbedder), Config::new(data.path()));
            let tenant = app.tenants.anonymous();
            let request = json!({ "model": "scripted", "input": "Did the wall break?", "background": true });
            let request: ResponseRequest = serde_json::from_value(request).expect("a request");
            let (place, warnings) = ((Vec::new(), Address::of("")), Warnings::default());
            let asked = request.read(place, None, &[], (&app, &tenant), &warnings).expect("it is valid");
            let (id, record) = (asked.frame.id.clone(), asked.record(None, Vec::new()));
            let generation =
                Generation::new(asked, Some(record), None, Vec::new(), warnings, None).expect("there are random bytes");
            let permit = app.admission.acquire(tenant.id).expect("there is room");
            // The only thread for blocking work waits, so the response is kept after the client has disconnected.
            let (disconnect, disconnected) = mpsc::channel::<()>();
            let waiting = tokio::task::spawn_blocking(move || disconnected.recv().is_err());
            let mut started = Box::pin(start(Arc::clone(&app), Arc::clone(&tenant), generation, permit));
            assert!(poll!(started.as_mut()).is_pending());
            drop((started, disconnect));
            assert!(waiting.await.expect("it ends"));
            let completed = async {
                while tenant.responses.shown(&id).ok().is_none_or(|shown| shown["status"] != "completed") {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(Duration::from_mins(1), completed).await.expect("it is completed");
        });
    }
}
