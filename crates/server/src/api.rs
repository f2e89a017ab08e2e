//! The head of the OpenAPI document; its paths come from the handlers.

use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "memlocal", description = "A long memory over private documents and conversations, on your own machine."),
    tags(
        (name = "OpenAI", description = "OpenAI's API; what cannot be honoured is refused."),
        (name = "Memory", description = "Corpora, ingest, search, questions, traces."),
        (name = "Engine", description = "How the engine is doing, and what was measured with it."),
        (name = "Ollama", description = "Ollama's API, a thin second dialect.")
    )
)]
struct Document;

/// The document before any path is in it.
pub(crate) fn document() -> OpenApi {
    let mut document = Document::openapi();
    document.info.version = env!("CARGO_PKG_VERSION").into();
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().security_schemes.insert("key".to_owned(), scheme.into());
    // A key is needed only where the operator has made some.
    document.security = Some(vec![SecurityRequirement::default(), SecurityRequirement::new::<_, _, String>("key", [])]);
    document
}
