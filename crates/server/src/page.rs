//! The web pages, compiled into the binary; fonts, scripts and images are loaded from nowhere else.

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;

/// Path, content type and content of each file.
const FILES: [(&str, &str, &str); 20] = [
    ("/", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("/page/style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("/page/theme.js", "text/javascript; charset=utf-8", include_str!("../page/theme.js")),
    ("/page/page.js", "text/javascript; charset=utf-8", include_str!("../page/page.js")),
    ("/page/core.js", "text/javascript; charset=utf-8", include_str!("../page/core.js")),
    ("/page/markdown.js", "text/javascript; charset=utf-8", include_str!("../page/markdown.js")),
    ("/page/answer.js", "text/javascript; charset=utf-8", include_str!("../page/answer.js")),
    ("/page/found.js", "text/javascript; charset=utf-8", include_str!("../page/found.js")),
    ("/page/source.js", "text/javascript; charset=utf-8", include_str!("../page/source.js")),
    ("/page/files.js", "text/javascript; charset=utf-8", include_str!("../page/files.js")),
    ("/page/talk.js", "text/javascript; charset=utf-8", include_str!("../page/talk.js")),
    ("/page/suggest.js", "text/javascript; charset=utf-8", include_str!("../page/suggest.js")),
    ("/page/notes.js", "text/javascript; charset=utf-8", include_str!("../page/notes.js")),
    ("/page/graph.js", "text/javascript; charset=utf-8", include_str!("../page/graph.js")),
    ("/page/engine.js", "text/javascript; charset=utf-8", include_str!("../page/engine.js")),
    ("/page/models.js", "text/javascript; charset=utf-8", include_str!("../page/models.js")),
    ("/page/settings.js", "text/javascript; charset=utf-8", include_str!("../page/settings.js")),
    ("/page/bench.js", "text/javascript; charset=utf-8", include_str!("../page/bench.js")),
    ("/docs", "text/html; charset=utf-8", include_str!("../page/docs.html")),
    ("/page/docs.js", "text/javascript; charset=utf-8", include_str!("../page/docs.js")),
];

/// Content security policy: load and run only what this server delivers.
const POLICY: &str =
    "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

pub(crate) fn routes() -> Router<App> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, content)| {
        router.route(path, get(move || async move { file(kind, content) }))
    })
}

fn file(kind: &'static str, content: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, content).into_response()
}
