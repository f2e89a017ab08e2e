//! Errors of requests and their status codes: one table from causes to codes, in OpenAI's JSON format.

use std::io::ErrorKind;
use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use calls::CallError;
use memory::MemoryError;
use serde_json::{Value, json};

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    // Errors of the client.
    #[error("{message}")]
    Invalid { message: String, param: Option<String> },
    #[error("the model `{0}` does not exist; GET /v1/models lists those that do")]
    UnknownModel(String),
    /// The model is here and does other work.
    #[error("{0}")]
    OtherWork(String),
    #[error("there is no {0}")]
    NotFound(String),
    #[error("{0}")]
    Conflict(String),
    #[error("corpus {0} is locked by a job")]
    CorpusLocked(String),
    #[error("conversation {0} is being continued; try again when that has ended")]
    ConversationLocked(String),
    #[error("this server keeps no threads")]
    NoThreads,
    #[error("only the operator may do this")]
    OperatorOnly,
    #[error("a model is being fetched")]
    Pulling,
    #[error("{message}")]
    Pull { message: String, hint: Option<String> },
    #[error("{message}")]
    Shelf { message: String, hint: Option<String> },
    #[error("the model `{0}` is on this disk, but this server loads no models while it runs")]
    ModelsFixed(String),
    #[error("the server was started with the model `{0}`, which it keeps")]
    Fixed(String),
    #[error("{waiting} requests wait for a model to be loaded already")]
    LoadsWaiting { waiting: usize },
    #[error(
        "the model `{model}` does not fit into memory: it needs {} MiB, and {} MiB are free or used by models that can be \
         unloaded", needed >> 20, free >> 20
    )]
    NoRoom { model: String, needed: u64, free: u64 },
    #[error("the model `{model}` cannot be loaded: {message}")]
    Load { model: String, message: String, hint: Option<String> },
    #[error("an API key is needed: `Authorization: Bearer KEY`")]
    NoKey,
    #[error("the API key is not known here")]
    WrongKey,
    #[error("this server runs with the adapter of a private corpus, and may not serve the holders of keys")]
    PrivateAdapter,
    #[error("requests from {0} are refused: this server answers its own page and programs on this machine")]
    CrossSite(String),
    #[error("the request is larger than {limit_bytes} bytes")]
    TooLarge { limit_bytes: usize },
    #[error("the request did not come within {} s", .0.as_secs_f64())]
    RequestTimeout(Duration),
    #[error("{method} is not allowed here")]
    Method { method: String, allowed: Vec<String> },
    // Errors of the server.
    #[error("{running} of your requests are being answered already; try again when one of them has ended")]
    Busy { running: usize },
    #[error("too many requests in a minute; the next may come in {pause_seconds} s")]
    RateLimited { pause_seconds: u64 },
    #[error("the request took longer than {} s and was cancelled", .0.as_secs())]
    DeadlineExceeded(Duration),
    #[error("the server is stopping")]
    Stopping,
    #[error("the engine has ended and nothing can be answered any more")]
    EngineEnded,
    #[error("the database of --vectors does not answer")]
    NoDatabase,
    #[error("a worker has failed: {0}")]
    Worker(String),
    #[error("the system starts no further thread")]
    Thread(#[source] std::io::Error),
    #[error("a file of the data folder cannot be written")]
    DataFolder(#[from] std::io::Error),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Memory(MemoryError),
}

/// Result with the error of this crate.
pub type Result<T> = std::result::Result<T, ServerError>;

impl From<MemoryError> for ServerError {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Call(error) => ServerError::Call(error),
            MemoryError::Store(error) => ServerError::Store(error),
            other => ServerError::Memory(other),
        }
    }
}

impl ServerError {
    /// An invalid request, with the field at fault.
    pub(crate) fn invalid(message: impl Into<String>, param: &str) -> Self {
        ServerError::Invalid { message: message.into(), param: Some(param.to_owned()) }
    }

    /// Status and error code.
    pub(crate) fn status(&self) -> (StatusCode, &'static str) {
        use CallError as C;
        use StatusCode as S;
        use store::Error as E;
        match self {
            Self::Invalid { .. } | Self::Shelf { .. } => (S::BAD_REQUEST, "invalid_value"),
            Self::UnknownModel(_) | Self::OtherWork(_) => (S::NOT_FOUND, "model_not_found"),
            Self::NotFound(_) => (S::NOT_FOUND, "not_found"),
            Self::Conflict(_) | Self::CorpusLocked(_) | Self::NoThreads | Self::Pulling | Self::Fixed(_) => {
                (S::CONFLICT, "conflict")
            }
            Self::ConversationLocked(_) => (S::CONFLICT, "conversation_locked"),
            Self::OperatorOnly => (S::FORBIDDEN, "operator_only"),
            Self::ModelsFixed(_) => (S::FORBIDDEN, "models_fixed"),
            Self::NoRoom { .. } => (S::INSUFFICIENT_STORAGE, "out_of_memory"),
            Self::Load { .. } => (S::INTERNAL_SERVER_ERROR, "load_failed"),
            Self::Pull { .. } => (S::BAD_GATEWAY, "pull_failed"),
            Self::NoKey | Self::WrongKey => (S::UNAUTHORIZED, "invalid_api_key"),
            Self::PrivateAdapter => (S::FORBIDDEN, "private_adapter"),
            Self::CrossSite(_) => (S::FORBIDDEN, "foreign_origin"),
            Self::TooLarge { .. } => (S::PAYLOAD_TOO_LARGE, "request_too_large"),
            Self::RequestTimeout(_) => (S::REQUEST_TIMEOUT, "request_timeout"),
            Self::Method { .. } => (S::METHOD_NOT_ALLOWED, "method_not_allowed"),
            Self::Busy { .. } | Self::LoadsWaiting { .. } => (S::TOO_MANY_REQUESTS, "overloaded"),
            Self::RateLimited { .. } => (S::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
            Self::DeadlineExceeded(_) => (S::GATEWAY_TIMEOUT, "deadline"),
            Self::Stopping => (S::SERVICE_UNAVAILABLE, "stopping"),
            Self::EngineEnded => (S::SERVICE_UNAVAILABLE, "engine_ended"),
            Self::NoDatabase => (S::SERVICE_UNAVAILABLE, "database"),
            Self::Thread(_) => (S::SERVICE_UNAVAILABLE, "overloaded"),
            Self::DataFolder(error) if is_full(error) => (S::INSUFFICIENT_STORAGE, "disk_full"),
            Self::DataFolder(error) if is_protected(error) => (S::INSUFFICIENT_STORAGE, "read_only"),
            Self::Worker(_) | Self::DataFolder(_) => (S::INTERNAL_SERVER_ERROR, "internal"),
            Self::Call(error) => match error {
                C::TooLong { .. } | C::TooLongToEmbed { .. } => (S::BAD_REQUEST, "context_length_exceeded"),
                C::OutputFormat { .. } => (S::BAD_REQUEST, "invalid_schema"),
                C::Unsupported { .. } | C::Sampling { .. } | C::Infill { .. } => (S::BAD_REQUEST, "invalid_value"),
                C::Template { .. } => (S::BAD_REQUEST, "invalid_messages"),
                C::NoModel { .. } => (S::NOT_FOUND, "model_not_found"),
                C::Overloaded { .. } | C::Busy { .. } => (S::TOO_MANY_REQUESTS, "overloaded"),
                C::NoConnection { .. }
                | C::Unreachable { .. }
                | C::Refused { .. }
                | C::OutOfForm { .. }
                | C::CutOff { .. } => (S::BAD_GATEWAY, "endpoint"),
                C::Cancelled | C::Closed => (S::SERVICE_UNAVAILABLE, "stopping"),
                _ => (S::INTERNAL_SERVER_ERROR, "internal"),
            },
            Self::Store(error) => match error {
                E::InvalidName { .. } | E::InvalidTitle { .. } => (S::BAD_REQUEST, "invalid_value"),
                E::UnknownCorpus { .. } | E::UnknownDocument(_) | E::UnknownPassage(_) => (S::NOT_FOUND, "not_found"),
                E::CorpusExists { .. }
                | E::CorpusBusy { .. }
                | E::Locked { .. }
                | E::Differs { .. }
                | E::Overtaken { .. } => (S::CONFLICT, "conflict"),
                E::TextTooLong { .. } => (S::PAYLOAD_TOO_LARGE, "request_too_large"),
                E::DiskFull { .. } => (S::INSUFFICIENT_STORAGE, "disk_full"),
                E::NotPermitted { .. } => (S::INSUFFICIENT_STORAGE, "read_only"),
                E::Postgres { .. } => (S::SERVICE_UNAVAILABLE, "database"),
                _ => (S::INTERNAL_SERVER_ERROR, "internal"),
            },
            Self::Memory(error) => match error {
                MemoryError::EmptyQuestion => (S::BAD_REQUEST, "invalid_value"),
                MemoryError::EmptyCorpus { .. } | MemoryError::NotReady { .. } | MemoryError::NoVectors { .. } => {
                    (S::CONFLICT, "not_ready")
                }
                _ => (S::INTERNAL_SERVER_ERROR, "internal"),
            },
        }
    }

    /// What the client may do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        use CallError as C;
        use store::Error as E;
        Some(match self {
            Self::CorpusLocked(_) => "GET /v1/jobs lists the jobs; try again when the current one has ended".into(),
            Self::NoThreads => "ask without `thread`, or start the server without --no-threads".into(),
            Self::OperatorOnly => "start the server with --operator NAME, the name of your key".into(),
            Self::Pulling => "try again when it is there: GET /v1/shelf shows the models".into(),
            Self::Pull { hint, .. } | Self::Shelf { hint, .. } | Self::Load { hint, .. } => return hint.clone(),
            Self::ModelsFixed(name) => {
                format!("start the server with --load-models, or with --model {name}")
            }
            Self::Fixed(name) => {
                format!("start the server without --model {name}, and have it loaded by a request that names it")
            }
            Self::LoadsWaiting { .. } => "try again when the model is loaded; GET /v1/shelf shows it".into(),
            Self::NoRoom { .. } => "choose a smaller model, or a smaller KV cache with --kv-tokens".into(),
            Self::CrossSite(source) if source.contains("://") => {
                format!("to let pages of this origin ask, start the server with --allow-origin {source}")
            }
            Self::CrossSite(origin) if origin == "null" => {
                "open the page from this server: a file, or a page without an origin, may not ask".into()
            }
            Self::CrossSite(host) => {
                format!(
                    "to serve under this host name, as behind a proxy, start the server with --allow-origin https://{host}"
                )
            }
            Self::EngineEnded => "start the server again; its log has the cause".into(),
            Self::NoDatabase => "check that PostgreSQL runs and that this machine reaches it".into(),
            Self::Call(C::NoConnection { .. }) => {
                "start the server that --engine names, or start this one with another URL".into()
            }
            Self::NoKey | Self::WrongKey => "`memlocal keys add NAME` creates a key".into(),
            Self::PrivateAdapter => "start the server again without this --adapter".into(),
            Self::Method { allowed, .. } => format!("send {}", allowed.join(" or ")),
            Self::TooLarge { .. } => {
                "send less at once, or start the server with a larger --max-body or --max-upload".into()
            }
            Self::Busy { .. } | Self::Call(C::Overloaded { .. } | C::Busy { .. }) => {
                "try again when other requests have ended".into()
            }
            Self::DeadlineExceeded(_) => {
                "start the server with a longer --deadline, or use a method with fewer calls".into()
            }
            Self::Call(C::TooLong { step: "answer", .. }) => {
                "use a method that retrieves what it needs, such as rag".into()
            }
            Self::Call(C::TooLong { .. }) => "shorten the prompt, ask for fewer tokens, or use a longer context".into(),
            Self::Store(E::UnknownCorpus { .. }) => {
                "GET /v1/corpora lists all corpora, POST /v1/corpora creates one".into()
            }
            Self::Store(E::InvalidName { name }) => format!("`{}` is a valid name", store::CorpusName::like(name)),
            Self::Store(E::CorpusBusy { .. }) => {
                "wait until that process is done, or stop it: its finished work is stored".into()
            }
            Self::Store(E::Locked { .. }) => "try again when that process is done".into(),
            Self::Thread(_) => {
                "try again when other requests have ended, or allow the server more threads (ulimit -u)".into()
            }
            Self::Store(E::DiskFull { .. }) => "free some space; nothing was lost".into(),
            Self::DataFolder(error) if is_full(error) => "free some space; nothing was lost".into(),
            Self::Store(E::NotPermitted { .. }) => {
                "let the user that runs the server read and write its data folder; nothing was lost".into()
            }
            Self::DataFolder(error) if is_protected(error) => {
                "let the user that runs the server write to its data folder; nothing was lost".into()
            }
            Self::Memory(MemoryError::EmptyCorpus { corpus }) => {
                format!("add documents: POST /v1/corpora/{corpus}/documents, or the tool `remember` of MCP")
            }
            Self::Memory(MemoryError::NotReady { corpus, method, .. }) => {
                format!("prepare it: POST /v1/corpora/{corpus}/prepare with the method {method}")
            }
            Self::Memory(MemoryError::NoVectors { corpus, .. }) => {
                format!("search by words (bm25), or prepare it: POST /v1/corpora/{corpus}/prepare with the method rag")
            }
            _ => return None,
        })
    }

    /// True if the disk of the data folder has no room, or it cannot be written to.
    pub(crate) fn is_of_disk(&self) -> bool {
        matches!(self, Self::DataFolder(error) if is_full(error) || is_protected(error))
    }

    /// Message and hint as one text.
    pub(crate) fn text(&self) -> String {
        self.hint().map_or_else(|| self.to_string(), |hint| format!("{self}\nhint: {hint}"))
    }

    /// Message and hint for clients of MCP, who have tools in place of paths.
    pub(crate) fn tool_text(&self) -> String {
        use store::Error as E;
        let hint = match self {
            Self::Store(E::UnknownCorpus { .. }) => "list_corpora lists all corpora, remember makes one",
            Self::Memory(MemoryError::EmptyCorpus { .. }) => "add documents with remember",
            Self::Memory(MemoryError::NotReady { .. } | MemoryError::NoVectors { .. }) => "prepare it with prepare",
            other => return other.text(),
        };
        format!("{self}\nhint: {hint}")
    }

    /// Message and hint for clients of Ollama's API.
    pub(crate) fn ollama_text(&self) -> String {
        match self {
            Self::UnknownModel(name) => format!("model '{name}' not found"),
            error => error.text(),
        }
    }

    /// Writes a failure of the server to the log, with its cause: the client receives the message.
    pub(crate) fn log(&self) {
        let (status, code) = self.status();
        if status.is_server_error() {
            let cause = std::error::Error::source(self).map(ToString::to_string).unwrap_or_default();
            tracing::error!(code, error = %self, cause, "a request failed");
        }
    }

    /// Seconds after which a retry may succeed.
    fn retry_after_seconds(&self) -> u64 {
        match self {
            Self::RateLimited { pause_seconds } | Self::Call(CallError::Busy { pause_seconds, .. }) => {
                (*pause_seconds).max(1)
            }
            _ => 1,
        }
    }

    /// OpenAI's error object, with a hint.
    pub(crate) fn body(&self) -> Value {
        let (status, code) = self.status();
        let kind = match status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            _ => "server_error",
        };
        let param = if let Self::Invalid { param, .. } = self { param.as_deref() } else { None };
        let mut error = json!({ "message": self.to_string(), "type": kind, "param": param, "code": code });
        if let Some(hint) = self.hint() {
            error["hint"] = hint.into();
        }
        json!({ "error": error })
    }
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

fn is_protected(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// The text of an error response, for APIs whose errors are not OpenAI's objects.
#[derive(Debug, Clone)]
pub(crate) struct ErrorText(pub String);

impl IntoResponse for ServerError {
    fn into_response(self) -> Response {
        self.log();
        let (status, _) = self.status();
        let mut response = (status, Json(self.body())).into_response();
        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                response.headers_mut().insert(header::RETRY_AFTER, self.retry_after_seconds().into());
            }
            StatusCode::UNAUTHORIZED => {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response.extensions_mut().insert(ErrorText(self.ollama_text()));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_or_protected_disk_has_a_status_of_its_own() {
        for (kind, status, hint) in [
            (ErrorKind::StorageFull, 507, Some("free some space; nothing was lost")),
            (
                ErrorKind::ReadOnlyFilesystem,
                507,
                Some("let the user that runs the server write to its data folder; nothing was lost"),
            ),
            (ErrorKind::InvalidData, 500, None),
        ] {
            let error = ServerError::from(std::io::Error::from(kind));
            assert_eq!((error.status().0.as_u16(), error.hint().as_deref()), (status, hint), "{kind:?}");
        }
    }

    #[test]
    fn a_missing_permission_is_403_and_a_missing_key_401() {
        let kind = |error: ServerError| (error.status().0.as_u16(), error.body()["error"]["type"].clone());
        let (model, origin) = ("small".to_owned(), "http://elsewhere".to_owned());
        for error in [
            ServerError::OperatorOnly,
            ServerError::PrivateAdapter,
            ServerError::ModelsFixed(model),
            ServerError::CrossSite(origin),
        ] {
            assert_eq!(kind(error), (403, json!("permission_error")));
        }
        assert_eq!(kind(ServerError::NoKey), (401, json!("authentication_error")));
    }

    #[test]
    fn temporary_failures_are_no_internal_errors() {
        let locked = store::Error::Locked { path: "corpus.db".into(), source: "database is locked".into() };
        let thread = ServerError::Thread(std::io::Error::from(ErrorKind::WouldBlock));
        for (error, status) in [(ServerError::Store(locked), 409), (thread, 503)] {
            assert_eq!(error.status().0.as_u16(), status, "{error}");
            assert!(error.hint().is_some_and(|hint| hint.starts_with("try again")), "{error}");
        }
    }
}
