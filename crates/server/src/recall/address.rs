//! The address under which a client reaches this server, for links to the page.

use std::convert::Infallible;
use std::fmt::Write;

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::http::uri::Authority;

/// `http://HOST:PORT` as the request names it.
#[derive(Debug, Clone)]
pub(crate) struct Address(String);

impl<S: Sync> FromRequestParts<S> for Address {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        // A proxy that ends TLS names the scheme that its client used.
        let scheme = if text("x-forwarded-proto") == Some("https") { "https" } else { "http" };
        let host = text(header::HOST.as_str()).or_else(|| parts.uri.authority().map(Authority::as_str));
        Ok(Address(host.map_or_else(String::new, |host| format!("{scheme}://{host}"))))
    }
}

impl Address {
    #[cfg(test)]
    pub fn of(base: &str) -> Address {
        Address(base.to_owned())
    }

    /// The page with a document of a corpus, at these characters. Names of corpora need no escapes.
    pub fn of_source(&self, corpus: &str, document: Option<i64>, start: u32, end: u32) -> String {
        let mut url = format!("{}/#/c/{corpus}/sources", self.0);
        if let Some(document) = document {
            let _ = write!(url, "/{document}/{start}-{end}");
        }
        url
    }
}
