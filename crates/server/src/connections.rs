//! Accepts connections, limits the time for a request's head, and drains open connections on shutdown.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// The peer's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Peer(pub IpAddr);

/// Pause after an error that passes when connections end.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Accepts and serves connections forever. A connection without a request's head for `head_timeout` is closed.
pub(crate) async fn accept(
    listener: TcpListener,
    router: Router,
    head_timeout: Duration,
    open: &GracefulShutdown,
) -> Infallible {
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok((stream, address)) => (stream, Peer(address.ip())),
            Err(error) => {
                pause_after(&error).await;
                continue;
            }
        };
        let router = TowerToHyperService::new(router.clone());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer);
            router.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head_timeout)
            .serve_connection(TokioIo::new(stream), service);
        let connection = open.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection failed");
            }
        });
    }
}

/// A client that has disconnected is ignored; other errors (too many open files) pass when connections end.
async fn pause_after(error: &io::Error) {
    if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset)
    {
        return;
    }
    tracing::warn!(%error, "cannot accept a connection");
    sleep(ACCEPT_PAUSE).await;
}
