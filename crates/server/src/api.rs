//! The OpenAPI document: head and common error responses; the paths come from the handlers.

use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr, ResponseBuilder};
use utoipa::{OpenApi as _, ToSchema};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "memlocal", description = "A long memory over private documents and conversations, on your own machine."),
    components(schemas(Refusal, PlainRefusal, MessagesRefusal)),
    tags(
        (name = "OpenAI", description = "OpenAI's API; unknown fields are ignored with a warning."),
        (name = "Anthropic", description = "Anthropic's API; unknown fields are ignored."),
        (name = "Memory", description = "Corpora, ingest, search, questions, traces."),
        (name = "Engine", description = "State of the engine, and benchmark reports."),
        (name = "Ollama", description = "Ollama's API.")
    )
)]
struct Document;

/// The body of error responses, in OpenAI's format.
#[derive(ToSchema)]
#[allow(dead_code, reason = "it describes what `ServerError::body` writes")]
struct Refusal {
    /// `error`, for requests with the header `anthropic-version`; absent for others.
    r#type: Option<String>,
    error: Reason,
}

/// The body of error responses in Ollama's API.
#[derive(ToSchema)]
#[allow(dead_code, reason = "it describes what `ollama::compatible` writes")]
struct PlainRefusal {
    error: String,
}

#[derive(ToSchema)]
#[allow(dead_code, reason = "it describes what `ServerError::body` writes")]
struct Reason {
    /// What failed. The hint, if there is one, is its last line.
    message: String,
    r#type: String,
    /// The field at fault, if any.
    param: Option<String>,
    code: String,
    /// What the client may do about it, if that is known.
    hint: Option<String>,
}

/// The body of error responses in Anthropic's API.
#[derive(ToSchema)]
#[allow(dead_code, reason = "it describes what `anthropic::errors` writes")]
struct MessagesRefusal {
    /// `error`.
    r#type: String,
    error: Reason,
}

/// The document without paths.
pub(crate) fn document() -> OpenApi {
    let mut document = Document::openapi();
    document.info.version = env!("CARGO_PKG_VERSION").into();
    let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().security_schemes.insert("key".to_owned(), scheme.into());
    // A key is required only if the operator has created some.
    document.security = Some(vec![SecurityRequirement::default(), SecurityRequirement::new::<_, _, String>("key", [])]);
    document
}

/// Adds the error responses to every operation.
pub(crate) fn with_error_responses(mut document: OpenApi) -> OpenApi {
    for (name, path) in &mut document.paths.paths {
        let schema = match name.as_str() {
            name if name.starts_with("/api/") => "PlainRefusal",
            name if name.starts_with("/v1/messages") => "MessagesRefusal",
            _ => "Refusal",
        };
        let error_body = || Content::new(Some(Ref::from_schema_name(schema)));
        for operation in
            [&mut path.get, &mut path.head, &mut path.post, &mut path.patch, &mut path.delete].into_iter().flatten()
        {
            let responses = &mut operation.responses.responses;
            for (status, response) in responses.iter_mut() {
                if let RefOr::T(response) = response
                    && status.starts_with(['4', '5'])
                {
                    response.content.insert("application/json".to_owned(), error_body().into());
                }
            }
            let other = ResponseBuilder::new().description("Error").content("application/json", error_body());
            responses.insert("default".to_owned(), other.build().into());
        }
    }
    document
}
