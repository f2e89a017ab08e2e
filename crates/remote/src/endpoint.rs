//! Communication with the endpoint: requests, timeouts and retries, and the meaning of error responses.

use std::error::Error;
use std::time::{Duration, Instant};

use calls::{Call, CallError, OutputFormat};
use hyper::StatusCode;
use hyper::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::answer::{Answer, message};
use crate::client::{Client, MAX_BODY_BYTES, Response, connection_failure, words};
use crate::request::Request;
use crate::{Address, RemoteError, tokens};

/// Delay before a retry if an overloaded endpoint gives none.
const A_MOMENT: Duration = Duration::from_secs(1);
/// The shortest delay before a retry.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
/// How many characters of an error response without JSON are shown.
const SHOWN: usize = 300;
/// Limit on the bytes of a stream for each token that is requested: a chunk has its token in JSON of some hundred bytes.
const MAX_BYTES_PER_TOKEN: usize = 4 << 10;

/// One endpoint.
pub(crate) struct Endpoint {
    pub address: Address,
    client: Client,
    /// How long requests to an overloaded endpoint are retried.
    pub patience: Duration,
}

impl Endpoint {
    pub fn new(address: Address, key: Option<&str>, patience: Duration) -> Result<Endpoint, RemoteError> {
        let client = Client::new(&address, key)?;
        Ok(Endpoint { address, client, patience })
    }

    /// The models that it serves.
    pub async fn models(&self) -> Result<Vec<Value>, CallError> {
        let response = self.client.get(self.address.of("models")).await.map_err(|error| self.lost(&*error))?;
        let status = response.status();
        let text = response.text().await.map_err(|error| self.lost(&*error))?;
        let mut list: Value = serde_json::from_str(&text).unwrap_or_default();
        match list.get_mut("data").map(Value::take) {
            Some(Value::Array(models)) if status.is_success() => Ok(models),
            _ if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                let (endpoint, reason) = (self.address.to_string(), said(&text).0);
                Err(CallError::Refused { step: "models", endpoint, status: status.as_u16(), reason })
            }
            _ => Err(self.unreachable(format!("asked for its models, it says {status}: {}", said(&text).0))),
        }
    }

    /// Sends a request and reads the answer to its end.
    pub async fn ask(&self, request: &Request, call: &Call, context_tokens: usize) -> Result<Answer, CallError> {
        let mut response = self.admitted(request, call, context_tokens).await?;
        response.max_bytes = max_stream_bytes(call.limits.reply_tokens());
        let mut answer = Answer::default();
        // A choice is passed on only once it is known to be valid.
        let on_text = call.on_text.as_ref().filter(|_| !matches!(call.output_format, OutputFormat::Choice(_)));
        while let Some(bytes) = response.chunk().await.map_err(|error| self.lost(&*error))? {
            answer.take(&bytes, on_text).map_err(|problem| self.unreachable(problem))?;
        }
        answer.end(on_text).map_err(|problem| self.unreachable(problem))?;
        Ok(answer)
    }

    /// The response head, after as many attempts as an overloaded endpoint requires.
    async fn admitted(&self, request: &Request, call: &Call, context_tokens: usize) -> Result<Response, CallError> {
        let started = Instant::now();
        loop {
            let response = self.client.post(self.address.of(request.resource), request.body.clone());
            let response = response.await.map_err(|error| self.lost(&*error))?;
            let status = response.status();
            if status.is_success() {
                return Ok(response);
            }
            if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
                let text = response.text().await.map_err(|error| self.lost(&*error))?;
                return Err(self.refused(status, &text, call, context_tokens));
            }
            let pause = pause(response.headers());
            if pause > self.patience.saturating_sub(started.elapsed()) {
                return Err(CallError::Busy { endpoint: self.address.to_string(), pause_seconds: pause.as_secs() });
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Converts an error response to an error.
    fn refused(&self, status: StatusCode, text: &str, call: &Call, context_tokens: usize) -> CallError {
        let (reason, code) = said(text);
        let (step, about) = (call.step, format!("{code} {reason}").to_lowercase());
        let names = |words: &[&str]| status.is_client_error() && words.iter().any(|word| about.contains(word));
        let (estimate, max_output_tokens) = (tokens::of_prompt(call), call.limits.reply_tokens());
        let is_too_long = names(&["context_length", "context length", "context size", "context window"]);
        if is_too_long || names(&["context"]) && estimate + max_output_tokens > context_tokens {
            // The endpoint counts the tokens of the prompt, which are only estimated here.
            let prompt_tokens = estimate.max((context_tokens + 1).saturating_sub(max_output_tokens));
            return CallError::TooLong { step, prompt_tokens, max_output_tokens, context_tokens };
        }
        let endpoint = self.address.to_string();
        if call.output_format != OutputFormat::Text
            && names(&["schema", "grammar", "response_format", "guided", "structured"])
        {
            return CallError::OutputFormat { step, reason: format!("{endpoint} says: {reason}") };
        }
        CallError::Refused { step, endpoint, status: status.as_u16(), reason }
    }

    fn lost(&self, error: &(dyn Error + 'static)) -> CallError {
        match connection_failure(error, &self.address) {
            Some(reason) => CallError::NoConnection { endpoint: self.address.to_string(), reason },
            None => self.unreachable(words(error)),
        }
    }

    fn unreachable(&self, reason: String) -> CallError {
        CallError::Unreachable { endpoint: self.address.to_string(), reason }
    }
}

/// The limit on a streamed answer, all its framing included.
fn max_stream_bytes(tokens: usize) -> usize {
    tokens.saturating_mul(MAX_BYTES_PER_TOKEN).saturating_add(MAX_BODY_BYTES)
}

/// The delay that an overloaded endpoint requests, in seconds (the form that such servers send).
fn pause(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    seconds.map_or(A_MOMENT, Duration::from_secs).max(SHORTEST_PAUSE)
}

/// The message of an error response, and its code or type.
fn said(text: &str) -> (String, String) {
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    let error = if body["error"].is_null() { &body } else { &body["error"] };
    if error.is_null() {
        return (text.chars().take(SHOWN).collect(), String::new());
    }
    let name = |field: &str| error[field].as_str().unwrap_or_default();
    (message(error), format!("{} {}", name("code"), name("type")))
}
