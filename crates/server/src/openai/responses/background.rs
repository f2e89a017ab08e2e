//! Responses that continue without their client.

use std::sync::Arc;

use serde_json::Value;

use super::generation::Generation;
use super::output::lock;
use super::stored;
use crate::admission::Permit;
use crate::app::App;
use crate::error::Result;
use crate::tenant::Tenant;

/// Starts a response and returns it as it is now: in progress.
pub(super) async fn start(app: App, tenant: Arc<Tenant>, generation: Generation, permit: Permit) -> Result<Value> {
    let begun = generation.asked.frame.object("in_progress", &[], None);
    let Some(record) = generation.record.clone() else { return Ok(begun) };
    let id = generation.asked.frame.id.clone();
    stored::put(&tenant, record.with_response(begun.clone()), generation.states.clone()).await?;
    let owner = Arc::clone(&tenant);
    let work = {
        let id = id.clone();
        async move {
            let _permit = permit;
            if let Err(error) = generation.run(&app, &tenant).await {
                error.log();
                let failed = generation.asked.frame.failed(&error, lock(&generation.output).finished());
                if let Err(error) = stored::put(&tenant, record.with_response(failed), generation.states).await {
                    tracing::error!(%error, "cannot keep a response");
                }
            }
            tenant.responses.ended(&id);
        }
    };
    owner.responses.start(id, work);
    Ok(begun)
}
