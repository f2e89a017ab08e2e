//! Extractors of requests that are admitted: they have a permit of [`Admission`](crate::admission::Admission).

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::admission::Permit;
use crate::app::App;
use crate::body::Body;
use crate::error::{Result, ServerError};
use crate::guard::check_rate;
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

/// A permit for heavy work that is requested without a body. It counts against the rate, as every POST request does.
pub(crate) struct Admitted(pub Permit);

impl FromRequestParts<App> for Admitted {
    type Rejection = ServerError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let tenant = parts.extensions.get::<Arc<Tenant>>().ok_or(ServerError::NoKey)?;
        check_rate(app, tenant.name.clone(), &parts.extensions)?;
        Ok(Admitted(app.admission.acquire(tenant.id)?))
    }
}
