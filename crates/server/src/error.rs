//! Errors of requests and their status codes: one table from causes to codes, in OpenAI's JSON format.

mod hint;
mod obstacle;

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use calls::CallError;
use memory::MemoryError;
use serde_json::{Value, json};

use obstacle::Obstacle;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    // Errors of the client.
    #[error("{message}")]
    Invalid { message: String, param: Option<String>, hint: Option<String> },
    #[error("the model `{0}` does not exist; GET /v1/models lists those that do")]
    UnknownModel(String),
    /// The model is here and does other work.
    #[error("{0}")]
    OtherWork(String),
    #[error("there is no {0}")]
    NotFound(String),
    #[error("there is no path {0}")]
    NoPath(String),
    #[error("this server does not have Anthropic's API of files")]
    OpenAiFiles,
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
    #[error("{}", obstacle::message(.0))]
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
        ServerError::Invalid { message: message.into(), param: Some(param.to_owned()), hint: None }
    }

    /// An invalid request, of which no single field is at fault.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        ServerError::Invalid { message: message.into(), param: None, hint: None }
    }

    /// Status and error code.
    pub(crate) fn status(&self) -> (StatusCode, &'static str) {
        use CallError as C;
        use StatusCode as S;
        use store::Error as E;
        if let Some(obstacle) = self.obstacle() {
            return obstacle.status();
        }
        match self {
            Self::Invalid { .. } => (S::BAD_REQUEST, "invalid_value"),
            Self::UnknownModel(_) | Self::OtherWork(_) => (S::NOT_FOUND, "model_not_found"),
            Self::NotFound(_) | Self::NoPath(_) | Self::OpenAiFiles => (S::NOT_FOUND, "not_found"),
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

    /// What keeps the data folder from being read or written, if that is the cause.
    pub(crate) fn obstacle(&self) -> Option<Obstacle> {
        match self {
            Self::DataFolder(error) => Obstacle::of(error),
            Self::Store(store::Error::DiskFull { .. }) => Some(Obstacle::Full),
            // An error of SQLite does not tell a read-only disk from a missing permission.
            Self::Store(store::Error::NotPermitted { source, .. }) => {
                source.downcast_ref().and_then(Obstacle::of).or(Some(Obstacle::NotPermitted))
            }
            _ => None,
        }
    }

    /// True if a file beside the corpora cannot be read or written because of its disk or its permissions.
    pub(crate) fn is_of_disk(&self) -> bool {
        matches!(self, Self::DataFolder(_)) && self.obstacle().is_some()
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

    /// OpenAI's error object. The hint is a field, and the last line of the message too: OpenAI's clients show the message only.
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
        let mut error = json!({ "message": self.text(), "type": kind, "param": param, "code": code });
        if let Some(hint) = self.hint() {
            error["hint"] = hint.into();
        }
        json!({ "error": error })
    }
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
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn only_a_disk_that_cannot_be_written_to_is_507() {
        let write = "let the user that runs the server write to its data folder; nothing was lost";
        let read_and_write = "let the user that runs the server read and write its data folder; nothing was lost";
        for (kind, status, code, hint) in [
            (ErrorKind::StorageFull, 507, "disk_full", Some("free some space; nothing was lost")),
            (ErrorKind::ReadOnlyFilesystem, 507, "read_only", Some(write)),
            (ErrorKind::PermissionDenied, 500, "not_permitted", Some(read_and_write)),
            (ErrorKind::InvalidData, 500, "internal", None),
        ] {
            let of_store = store::Error::io("corpus.db".as_ref(), Error::from(kind));
            for error in [ServerError::from(Error::from(kind)), ServerError::Store(of_store)] {
                assert_eq!((error.status().0.as_u16(), error.status().1), (status, code), "{error}");
                assert_eq!(error.hint().as_deref(), hint, "{error}");
            }
        }
    }

    #[test]
    fn a_permission_that_sqlite_lacks_is_500() {
        let refused = store::Error::NotPermitted { path: "corpus.db".into(), source: "cannot open".into() };
        assert_eq!(ServerError::Store(refused).status(), (StatusCode::INTERNAL_SERVER_ERROR, "not_permitted"));
    }

    #[test]
    fn a_file_that_may_not_be_read_is_not_called_one_that_cannot_be_written() {
        let message = |kind: ErrorKind| ServerError::from(Error::from(kind)).to_string();
        assert!(message(ErrorKind::StorageFull).ends_with("cannot be written"));
        assert!(message(ErrorKind::PermissionDenied).contains("no permission to read or write"));
        assert!(message(ErrorKind::InvalidData).ends_with("cannot be read or written"));
    }

    #[test]
    fn clients_that_show_only_the_message_show_the_hint() {
        let body = ServerError::NoThreads.body();
        let hint = "ask without `thread`, or start the server without --no-threads";
        assert_eq!(body["error"]["hint"], hint);
        assert_eq!(body["error"]["message"], format!("this server keeps no threads\nhint: {hint}"));
        assert_eq!(ServerError::NotFound("page".into()).body()["error"]["message"], "there is no page");
    }

    #[test]
    fn hints_for_clients_of_mcp_name_tools() {
        let text = ServerError::CorpusLocked("a".into()).tool_text();
        assert_eq!(text, "corpus a is locked by a job\nhint: try again when the job has ended, which `job` shows");
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
        let thread = ServerError::Thread(Error::from(ErrorKind::WouldBlock));
        for (error, status) in [(ServerError::Store(locked), 409), (thread, 503)] {
            assert_eq!(error.status().0.as_u16(), status, "{error}");
            assert!(error.hint().is_some_and(|hint| hint.starts_with("try again")), "{error}");
        }
    }
}
