//! The address of an endpoint.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use hyper::Uri;
use hyper::http::uri::Authority;

use crate::RemoteError;

/// The address of an OpenAI-compatible API, such as `http://10.0.0.5:8000/v1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address(Uri);

impl Address {
    /// Whether all connections to it stay on this machine.
    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    pub(crate) fn host(&self) -> &str {
        self.0.host().unwrap_or_default()
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port_u16().unwrap_or(if self.is_https() { 443 } else { 80 })
    }

    /// Whether its connections are encrypted.
    pub(crate) fn is_https(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// The URL of one of its resources.
    pub(crate) fn of(&self, resource: &str) -> String {
        format!("{self}/{resource}")
    }
}

impl FromStr for Address {
    type Err = RemoteError;

    fn from_str(typed: &str) -> Result<Address, RemoteError> {
        let wrong = |problem: String| RemoteError::Address { problem };
        let uri: Uri = typed.parse().map_err(|error| wrong(format!("{error}")))?;
        let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
        if !matches!(uri.scheme_str(), Some("http" | "https")) || authority.is_empty() {
            return Err(wrong("it must begin with http:// or https:// and name a host".to_owned()));
        }
        // The input is not repeated in the error: it may contain a password. Parsing drops what follows a #.
        if uri.query().is_some() || typed.contains('#') || authority.contains('@') {
            return Err(wrong(
                "it may have a host, a port and a path, and nothing else; MEMLOCAL_ENGINE_KEY holds a key".to_owned(),
            ));
        }
        Ok(Address(uri))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_string().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let check = |typed: &str, want: Option<(&str, bool)>| {
            let found = typed.parse::<Address>().ok().map(|address| (address.of("models"), address.is_loopback()));
            assert_eq!(found, want.map(|(models, loopback)| (models.to_owned(), loopback)), "{typed}");
        };
        check("http://127.0.0.1:8000/v1", Some(("http://127.0.0.1:8000/v1/models", true)));
        check("http://localhost:8000/v1/", Some(("http://localhost:8000/v1/models", true)));
        check("http://[::1]:8000/v1", Some(("http://[::1]:8000/v1/models", true)));
        check("https://box.home/api/v1", Some(("https://box.home/api/v1/models", false)));
        check("http://10.0.0.5:8000/v1", Some(("http://10.0.0.5:8000/v1/models", false)));
        check("http://localhost.evil.example/v1", Some(("http://localhost.evil.example/v1/models", false)));
        check("10.0.0.5:8000/v1", None);
        check("ftp://10.0.0.5/v1", None);
        check("http://ann:secret@10.0.0.5/v1", None);
        check("http://10.0.0.5/v1?key=1", None);
        check("http://10.0.0.5/v1#key", None);
        check("http://", None);
    }
}
