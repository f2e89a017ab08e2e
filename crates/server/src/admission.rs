//! Requests that use models: they are admitted once their body has arrived.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
pub(crate) use calls::Permit;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::body::Body;
use crate::error::{Result, ServerError};
use crate::tenant::Tenant;

/// A JSON body with a permit, which is acquired after the body has arrived: a slow client blocks no others.
pub(crate) struct AdmittedJson<T>(pub T, pub Permit);

impl<T: DeserializeOwned> FromRequest<App> for AdmittedJson<T> {
    type Rejection = ServerError;

    async fn from_request(request: Request, app: &App) -> Result<Self> {
        let tenant = request.extensions().get::<Arc<Tenant>>().ok_or(ServerError::NoKey)?.id;
        let Body(body) = Body::from_request(request, app).await?;
        Ok(AdmittedJson(body, app.admission.acquire(tenant)?))
    }
}
