//! Middleware of every request: checks of host, origin, key and rate, and a log line and metrics without content.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use calls::TenantId;
use hyper::body::{Frame, SizeHint};

use crate::app::App;
use crate::connections::Peer;
use crate::error::{Result, ServerError};
use crate::keys::KeysFile;
use crate::metrics::Quantity;
use crate::tenant::Tenant;

/// Counts and logs a request until its response has ended.
pub(crate) async fn log_and_count(State(app): State<App>, request: Request, next: Next) -> Response {
    let route =
        request.extensions().get::<MatchedPath>().map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let mut log = RequestLog::new(app, method_label(request.method()), route);
    let response = next.run(request).await;
    log.respond(response.status(), response.extensions().get().copied().unwrap_or_default());
    response.map(|body| Body::new(LoggedBody { body, _log: log }))
}

/// The method's name as a label; unknown methods share one, which bounds the number of labels.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

/// A request until its response has ended or the client has disconnected.
struct RequestLog {
    app: App,
    started: Instant,
    method: &'static str,
    route: String,
    /// None until the response's status is known.
    status: Option<StatusCode>,
    tenant: TenantId,
}

impl RequestLog {
    fn new(app: App, method: &'static str, route: String) -> RequestLog {
        app.metrics.add(TenantId::LOCAL, Quantity::InFlight, String::new(), 1.0);
        RequestLog { app, started: Instant::now(), method, route, status: None, tenant: TenantId::LOCAL }
    }

    fn respond(&mut self, status: StatusCode, tenant: TenantId) {
        (self.status, self.tenant) = (Some(status), tenant);
        self.app.metrics.add(tenant, Quantity::Requests, self.labels(status), 1.0);
    }

    fn labels(&self, status: StatusCode) -> String {
        format!("method=\"{}\",route=\"{}\",status=\"{}\"", self.method, self.route, status.as_u16())
    }
}

impl Drop for RequestLog {
    fn drop(&mut self) {
        self.app.metrics.add(TenantId::LOCAL, Quantity::InFlight, String::new(), -1.0);
        let Some(status) = self.status else { return };
        self.app.metrics.add_duration(
            self.tenant,
            Quantity::RequestSeconds,
            self.labels(status),
            self.started.elapsed(),
        );
        let milliseconds = self.started.elapsed().as_millis() as u64;
        tracing::info!(method = self.method, route = self.route, status = status.as_u16(), milliseconds, "request");
    }
}

/// The body of a response that is being sent.
struct LoggedBody {
    body: Body,
    _log: RequestLog,
}

impl HttpBody for LoggedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Refuses cross-site requests: a foreign `Origin`, or a foreign `Host` that was resolved to this machine (DNS
/// rebinding). The host of an allowed origin is not foreign: a proxy passes it on.
pub(crate) async fn refuse_cross_site(State(app): State<App>, request: Request, next: Next) -> Response {
    match cross_site_source(request.headers(), app.config.loopback_only, &app.config.allow_origins) {
        Some(source) => ServerError::CrossSite(source).into_response(),
        None => next.run(request).await,
    }
}

/// Lets scripts of allowed origins send requests and read the responses (CORS).
pub(crate) async fn allow_origins(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(origin) = allowed_origin(request.headers(), &app.config.allow_origins).cloned() else {
        return next.run(request).await;
    };
    let is_preflight =
        request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = if is_preflight { preflight(request.headers()) } else { next.run(request).await };
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if !is_preflight {
        let exposed = HeaderValue::from_static("retry-after, warning, www-authenticate");
        response.headers_mut().insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response.headers_mut().append(header::VARY, HeaderValue::from_static("origin"));
    response
}

/// The response to a preflight request of an allowed origin: all requested headers are allowed. Clients in browsers
/// send headers of their own (`x-stainless-os`, `mcp-protocol-version`), and the server ignores those that it does not
/// read.
fn preflight(headers: &HeaderMap) -> Response {
    const HEADERS: [(HeaderName, &str); 3] = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, PATCH, DELETE"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
        (header::VARY, "access-control-request-headers"),
    ];
    let default = || HeaderValue::from_static("authorization, content-type");
    let requested = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned().unwrap_or_else(default);
    (StatusCode::NO_CONTENT, HEADERS, [(header::ACCESS_CONTROL_ALLOW_HEADERS, requested)]).into_response()
}

/// The origin of a request, if it is in the list of allowed ones.
fn allowed_origin<'a>(headers: &'a HeaderMap, allowed: &[String]) -> Option<&'a HeaderValue> {
    headers.get(header::ORIGIN).filter(|origin| allowed.iter().any(|known| known.as_bytes() == origin.as_bytes()))
}

/// The foreign host or origin of a request, if it has one.
fn cross_site_source(headers: &HeaderMap, loopback_only: bool, allowed: &[String]) -> Option<String> {
    // Bytes beyond ASCII are compared too: a header with them is not an absent one.
    let value = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let host = value(header::HOST).unwrap_or_default();
    if loopback_only && !host.is_empty() && !is_loopback(&host) && !is_host_of(&host, allowed) {
        return Some(host.into_owned());
    }
    let origin = value(header::ORIGIN)?;
    let is_same = origin.split_once("://").is_some_and(|(_, authority)| authority == host);
    (!is_same && allowed_origin(headers, allowed).is_none()).then(|| origin.into_owned())
}

/// Whether a host, with its port, is that of one of these origins.
fn is_host_of(host: &str, origins: &[String]) -> bool {
    origins.iter().any(|origin| {
        let known = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        known.is_some_and(|known| known.eq_ignore_ascii_case(host))
    })
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

/// Authenticates a request if keys are required, and attaches its tenant.
pub(crate) async fn authenticate(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match tenant(&app, request.headers()) {
        Ok((name, tenant)) => {
            let id = tenant.id;
            let is_counted = request.method() == Method::POST;
            let counted = if is_counted { check_rate(&app, name, request.extensions()) } else { Ok(()) };
            let mut response = match counted {
                Ok(()) => {
                    request.extensions_mut().insert(tenant);
                    next.run(request).await
                }
                Err(error) => error.into_response(),
            };
            // For the metrics, which are kept by tenant.
            response.extensions_mut().insert(id);
            response
        }
        Err(error) => error.into_response(),
    }
}

/// Applies the rate limit to a key, or to an address if no keys are required.
pub(crate) fn check_rate(app: &App, holder: Option<String>, extensions: &Extensions) -> Result<()> {
    let Some(rate) = &app.rate else { return Ok(()) };
    let address = || extensions.get::<Peer>().map_or_else(String::new, |peer| peer.0.to_string());
    rate.take(holder.unwrap_or_else(address), Instant::now())
}

/// The name of the key, if one is required, and its tenant.
///
/// # Errors
/// [`ServerError::NoKey`] and [`ServerError::WrongKey`], and [`ServerError::PrivateAdapter`] for holders of keys.
pub(crate) fn tenant(app: &App, headers: &HeaderMap) -> Result<(Option<String>, Arc<Tenant>)> {
    let keys = app.config.keys.as_ref().and_then(KeysFile::keys);
    let Some(keys) = keys else { return Ok((None, app.tenants.anonymous())) };
    let name = keys.holder(key(headers).ok_or(ServerError::NoKey)?).ok_or(ServerError::WrongKey)?;
    if app.config.private_adapter {
        return Err(ServerError::PrivateAdapter);
    }
    Ok((Some(name.to_owned()), app.tenants.named(name, &app.config)))
}

/// The key of a request: a bearer token, or Anthropic's header.
fn key(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(value) = text("authorization") else { return text("x-api-key").map(str::trim) };
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::cross_site_source;

    #[test]
    fn cross_site_requests_are_refused() {
        let check = |host: &str, origin: &str, loopback_only, refused: bool| {
            let value = |text: &str| HeaderValue::from_bytes(text.as_bytes()).expect("it has no control characters");
            let mut headers = HeaderMap::new();
            headers.insert("host", value(host));
            if !origin.is_empty() {
                headers.insert("origin", value(origin));
            }
            let allowed = ["https://memory.example".to_owned(), "chrome-extension://abcdef".to_owned()];
            assert_eq!(cross_site_source(&headers, loopback_only, &allowed).is_some(), refused, "{host} {origin}");
        };
        check("localhost:8080", "", true, false);
        check("127.0.0.1:8080", "http://127.0.0.1:8080", true, false);
        check("[::1]:8080", "http://[::1]:8080", true, false);
        check("localhost", "http://localhost", true, false);
        check("127.0.0.1:8080", "http://evil.example", true, true);
        check("127.0.0.1:8080", "null", true, true);
        check("127.0.0.1:8080", "http://127.0.0.1:9090", true, true);
        check("evil.example:8080", "", true, true);
        check("ÿevil.example", "", true, true);
        check("localhost", "http://ÿevil.example", true, true);
        check("memory.example", "", true, false);
        check("Memory.Example", "https://memory.example", true, false);
        check("memory.example", "https://evil.example", true, true);
        check("memory.example:8080", "", true, true);
        check("memory.example.evil.example", "", true, true);
        check("abcdef", "", true, true);
        check("box.home:8080", "http://box.home:8080", false, false);
        check("box.home:8080", "http://evil.example", false, true);
    }
}
