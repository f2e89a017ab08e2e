//! The HTTP client: connections to one host, timeouts, and bodies in chunks.
//!
//! Prompts are sent to the address of the endpoint only: hyper uses no proxy and follows no redirect.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::iter::successors;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, Request, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;

use crate::{Address, RemoteError};

/// Timeout of connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an unused connection is kept: vLLM's server closes one after 5 s, which could cross the next request on it.
const IDLE: Duration = Duration::from_secs(4);
/// Timeout of reading: a long prompt may take this long to its first token.
const SILENCE: Duration = Duration::from_mins(10);
/// Limit on the bytes of a body, unless another is set.
pub(crate) const MAX_BODY_BYTES: usize = 16 << 20;

/// What went wrong on the way; [`words`] gives its innermost cause.
pub(crate) type Lost = Box<dyn Error + Send + Sync>;

/// Sends requests with the headers of an endpoint.
pub(crate) struct Client {
    client: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    headers: HeaderMap,
}

impl Client {
    pub fn new(address: &Address, key: Option<&str>) -> Result<Client, RemoteError> {
        let mut http = HttpConnector::new();
        http.set_connect_timeout(Some(CONNECT));
        http.set_nodelay(true);
        http.enforce_http(false);
        let tls = ClientConfig::builder().with_root_certificates(authorities(address)?).with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(http);
        let json = HeaderValue::from_static("application/json");
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, json), (ACCEPT, HeaderValue::from_static("*/*"))]);
        if let Some(key) = key {
            let value = HeaderValue::from_str(&format!("Bearer {key}"));
            let mut value = value.map_err(|_| RemoteError::System("the key cannot stand in a header".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
        Ok(Client { client: builder.build(connector), headers })
    }

    pub async fn get(&self, url: String) -> Result<Response, Lost> {
        self.send(Method::GET, url, String::new()).await
    }

    pub async fn post(&self, url: String, body: String) -> Result<Response, Lost> {
        self.send(Method::POST, url, body).await
    }

    async fn send(&self, method: Method, url: String, body: String) -> Result<Response, Lost> {
        let mut request = Request::builder().method(method).uri(url).body(Full::from(body))?;
        request.headers_mut().clone_from(&self.headers);
        let response = timeout(SILENCE, self.client.request(request)).await.map_err(|_| silent())??;
        let (head, body) = response.into_parts();
        let (status, headers) = (head.status, head.headers);
        Ok(Response { status, headers, body, received_bytes: 0, max_bytes: MAX_BODY_BYTES })
    }
}

/// The certificate authorities of this machine; none are read for addresses without encryption.
fn authorities(address: &Address) -> Result<RootCertStore, RemoteError> {
    let mut roots = RootCertStore::empty();
    if address.is_https() {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let problem = "this machine has no certificate authorities, which https needs".to_owned();
            return Err(RemoteError::System(problem));
        }
    }
    Ok(roots)
}

/// A response whose body has not been read yet.
pub(crate) struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    received_bytes: usize,
    /// Limit on the bytes of the body.
    pub max_bytes: usize,
}

impl Response {
    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The next bytes of the body; none at its end. A body beyond its limit is an error.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Lost> {
        while let Some(frame) = timeout(SILENCE, self.body.frame()).await.map_err(|_| silent())? {
            if let Ok(bytes) = frame?.into_data() {
                self.received_bytes += bytes.len();
                if self.received_bytes > self.max_bytes {
                    return Err(format!("its answer is longer than {} bytes", self.max_bytes).into());
                }
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// The whole body.
    pub async fn text(mut self) -> Result<String, Lost> {
        let mut text = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            text.extend_from_slice(&bytes);
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn silent() -> Lost {
    format!("it sent nothing for {} minutes", SILENCE.as_secs() / 60).into()
}

/// Why there is no connection to an address, if that is the error.
pub(crate) fn connection_failure(error: &(dyn Error + 'static), address: &Address) -> Option<String> {
    let error = error.downcast_ref::<legacy::Error>().filter(|error| error.is_connect())?;
    let causes = || successors(error.source(), |&cause| cause.source());
    let (host, port) = (address.host(), address.port());
    // The type of this error is not public.
    if causes().any(|cause| cause.to_string() == "dns error") {
        return Some(format!("the host name {host} was not found"));
    }
    let kind = causes().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    Some(match kind {
        Some(ErrorKind::ConnectionRefused) => format!("{host} refused the connection on port {port}"),
        Some(ErrorKind::TimedOut) => format!("{host} did not answer on port {port} within {} s", CONNECT.as_secs()),
        _ => words(error),
    })
}

/// A network error in the words of its innermost cause, which is the most informative.
pub(crate) fn words(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    match cause.downcast_ref::<hyper::Error>() {
        Some(error) if error.is_parse() => format!("its answer is not HTTP ({error})"),
        Some(error) if error.is_incomplete_message() => {
            "it closed the connection before its answer was complete".to_owned()
        }
        _ => cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// The address of a server that closes no connection, and answers each request with the number of its connection.
    fn server() -> Address {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = format!("http://{}/v1", listener.local_addr().expect("it is bound"));
        thread::spawn(move || {
            for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                thread::spawn(move || {
                    let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                    for _ in lines.filter(String::is_empty) {
                        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
                        let _ = (&stream).write_all(answer.as_bytes());
                    }
                });
            }
        });
        address.parse().expect("an address")
    }

    #[test]
    fn a_connection_that_was_unused_for_5_s_is_not_used_again() {
        let address = server();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let connections = runtime.block_on(async {
            let client = Client::new(&address, None).expect("a client");
            let ask = || async {
                let response = client.get(address.of("models")).await.expect("a response");
                response.text().await.expect("a body")
            };
            let first = ask().await;
            tokio::time::pause();
            tokio::time::advance(Duration::from_secs(5)).await;
            tokio::time::resume();
            [first, ask().await]
        });
        assert_eq!(connections, ["0", "1"]);
    }
}
