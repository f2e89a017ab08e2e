//! What every request passes: is it from here, whose is it, and how did it end. Logs and counts hold no content.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::{Result, ServerError};
use crate::metrics::Quantity;
use crate::tenant::Tenant;

/// Counts and logs a request.
pub(crate) async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = known(request.method());
    let route =
        request.extensions().get::<MatchedPath>().map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let in_flight = InFlight::new(&app);
    let response = next.run(request).await;
    drop(in_flight);
    let status = response.status().as_u16();
    let labels = format!("method=\"{method}\",route=\"{route}\",status=\"{status}\"");
    app.metrics.time(Quantity::RequestSeconds, labels.clone(), started.elapsed());
    app.metrics.add(Quantity::Requests, labels, 1.0);
    let milliseconds = started.elapsed().as_millis() as u64;
    tracing::info!(method, route, status, milliseconds, "request");
    response
}

/// A method's name; strangers share one, so that nobody can make up new ones without end.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// Counts down also when the client goes away.
struct InFlight<'a>(&'a App);

impl InFlight<'_> {
    fn new(app: &App) -> InFlight<'_> {
        app.metrics.add(Quantity::InFlight, String::new(), 1.0);
        InFlight(app)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.metrics.add(Quantity::InFlight, String::new(), -1.0);
    }
}

/// Refuses what a web page of somebody else sends: browsers name the page's origin, and a name that was made to point to
/// this machine is not one of its own.
pub(crate) async fn from_here(State(app): State<App>, request: Request, next: Next) -> Response {
    match foreign(request.headers(), app.config.loopback_only) {
        Some(whose) => ServerError::Foreign(whose).into_response(),
        None => next.run(request).await,
    }
}

fn foreign(headers: &HeaderMap, loopback_only: bool) -> Option<String> {
    let value = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = value(header::HOST).unwrap_or_default();
    if loopback_only && !host.is_empty() && !is_loopback(host) {
        return Some(host.to_owned());
    }
    let origin = value(header::ORIGIN)?;
    let same = origin.split_once("://").is_some_and(|(_, authority)| authority == host);
    (!same).then(|| origin.to_owned())
}

fn is_loopback(host: &str) -> bool {
    let name = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
        .map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Lets in who has a key, where keys are asked for, and says whose corpora they see.
pub(crate) async fn with_key(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match tenant(&app, request.headers()) {
        Ok(tenant) => {
            request.extensions_mut().insert(tenant);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

fn tenant(app: &App, headers: &HeaderMap) -> Result<Arc<Tenant>> {
    let Some(keys) = &app.config.keys else { return Ok(app.tenants.anonymous()) };
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or(ServerError::NoKey)?;
    let (scheme, key) = value.split_once(' ').ok_or(ServerError::NoKey)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(ServerError::NoKey);
    }
    let name = keys.holder(key.trim()).ok_or(ServerError::WrongKey)?;
    Ok(app.tenants.named(name))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::foreign;

    #[test]
    fn other_peoples_pages_are_refused() {
        let check = |host: &'static str, origin: &'static str, loopback_only, refused: bool| {
            let mut headers = HeaderMap::new();
            headers.insert("host", HeaderValue::from_static(host));
            if !origin.is_empty() {
                headers.insert("origin", HeaderValue::from_static(origin));
            }
            assert_eq!(foreign(&headers, loopback_only).is_some(), refused, "{host} {origin}");
        };
        check("localhost:8080", "", true, false);
        check("127.0.0.1:8080", "http://127.0.0.1:8080", true, false);
        check("[::1]:8080", "http://[::1]:8080", true, false);
        check("localhost", "http://localhost", true, false);
        check("127.0.0.1:8080", "http://evil.example", true, true);
        check("127.0.0.1:8080", "null", true, true);
        check("127.0.0.1:8080", "http://127.0.0.1:9090", true, true);
        check("evil.example:8080", "", true, true);
        check("box.home:8080", "http://box.home:8080", false, false);
        check("box.home:8080", "http://evil.example", false, true);
    }
}
