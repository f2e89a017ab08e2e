//! Requests to the hub: what a repository holds, what it promises of a file, and what its refusals mean.

use std::env;
use std::fmt;
use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderMap, HeaderName, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use super::super::published::Entry;
use super::super::{FetchError, FetchOptions, Token};
use crate::manifest::Sha256Hex;

const ENDPOINT: &str = "https://huggingface.co";
/// How often a request is sent before a failure of the network or the server is final.
pub(super) const ATTEMPTS: u32 = 3;
/// Pause before the second attempt; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(300);
/// How many redirects are followed.
const REDIRECTS: usize = 5;

const COMMIT: HeaderName = HeaderName::from_static("x-repo-commit");
const LINKED_ETAG: HeaderName = HeaderName::from_static("x-linked-etag");
const LINKED_SIZE: HeaderName = HeaderName::from_static("x-linked-size");
const ERROR_CODE: HeaderName = HeaderName::from_static("x-error-code");

/// One repository of the hub or of a mirror.
pub(super) struct Hub {
    pub repo: String,
    endpoint: Url,
    token: Option<Token>,
    /// Follows redirects, without the token where they lead to another host or port.
    client: Client,
    /// Follows none: what is promised of a file is in the hub's own answer.
    direct: Client,
    pub runtime: Runtime,
    /// How long the hub may take to answer.
    patience: Duration,
    /// How long it may send nothing after that.
    pub silence: Duration,
}

/// What a repository holds.
pub(super) struct Listing {
    pub commit: Option<String>,
    pub licence: Option<String>,
    pub entries: Vec<Entry>,
}

/// What the hub promises of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Promise {
    pub commit: Option<String>,
    pub etag: Option<String>,
    pub bytes: Option<u64>,
}

#[derive(Deserialize)]
struct Model {
    sha: Option<String>,
    #[serde(default)]
    siblings: Vec<Sibling>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(rename = "cardData", default)]
    card: Value,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: Option<Sha256Hex>,
    size: Option<u64>,
}

impl Hub {
    pub fn connect(repo: &str, options: &FetchOptions) -> Result<Hub, FetchError> {
        let named = || env::var("HF_ENDPOINT").ok().filter(|endpoint| !endpoint.is_empty());
        let endpoint = options.hub_endpoint.clone().or_else(named).unwrap_or_else(|| ENDPOINT.to_owned());
        let endpoint = Url::parse(&endpoint)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| failed(format!("HF_ENDPOINT is {endpoint:?}, not an http or https address")))?;
        let builder = || {
            let agent = concat!("memlocal/", env!("CARGO_PKG_VERSION"));
            Client::builder().user_agent(agent).https_only(endpoint.scheme() == "https")
        };
        Ok(Hub {
            repo: repo.to_owned(),
            token: options.hub_token.clone(),
            client: builder().build().map_err(lost)?,
            direct: builder().redirect(Policy::none()).build().map_err(lost)?,
            runtime: Builder::new_current_thread().enable_all().build().map_err(failed)?,
            patience: options.hub_patience,
            silence: options.hub_silence,
            endpoint,
        })
    }

    /// Gives the hub's address, if it answers at all.
    pub fn reach(&self) -> Result<String, FetchError> {
        let request = self.direct.head(self.endpoint.clone());
        self.runtime.block_on(self.sent(request))?;
        // A mirror's address may hold a password.
        Ok(self.endpoint.origin().ascii_serialization())
    }

    /// Lists the files of a revision, with the licence that the repository's card states.
    pub fn list(&self, revision: &str) -> Result<Listing, FetchError> {
        let (owner, name) = self.repo.split_once('/').unwrap_or_default();
        let mut url = self.url(&["api", "models", owner, name, "revision", revision]);
        url.set_query(Some("blobs=true"));
        let model: Model = self.runtime.block_on(async {
            let response = self.answered(|| self.with_token(self.client.get(url.clone()))).await?;
            let response = self.accepted(response, revision)?;
            let body = timeout(self.silence, response.bytes())
                .await
                .map_err(|_| FetchError::HubSilent { waited: self.silence })?;
            serde_json::from_slice(&body.map_err(lost)?).map_err(failed)
        })?;
        let of_card = model.card["license"].as_str().map(str::to_owned);
        let of_tag = || model.tags.iter().find_map(|tag| tag.strip_prefix("license:")).map(str::to_owned);
        let entries = model.siblings.into_iter().map(|file| {
            let (bytes, sha256) = file.lfs.map_or((None, None), |lfs| (lfs.size, lfs.sha256));
            Entry { name: file.rfilename, bytes: bytes.or(file.size), sha256 }
        });
        Ok(Listing { commit: model.sha, licence: of_card.or_else(of_tag), entries: entries.collect() })
    }

    /// What the hub says of a file before its content, which it may keep elsewhere.
    pub async fn promise(&self, revision: &str, file: &str) -> Result<Promise, FetchError> {
        let mut url = self.file_url(revision, file);
        let mut promise = Promise::default();
        for _ in 0..=REDIRECTS {
            let request = || self.with_token_for(&url, self.direct.request(Method::HEAD, url.clone()));
            let response = self.answered(|| request().header(ACCEPT_ENCODING, "identity")).await?;
            let headers = response.headers();
            promise.commit = promise.commit.or_else(|| text(headers, &COMMIT));
            let linked = text(headers, &LINKED_ETAG);
            let next = text(headers, &LOCATION).filter(|_| response.status().is_redirection() && linked.is_none());
            if let Some(next) = next {
                url = url.join(&next).map_err(failed)?;
                continue;
            }
            let etag = linked.or_else(|| text(headers, &reqwest::header::ETAG));
            let length = || text(headers, &reqwest::header::CONTENT_LENGTH).filter(|_| response.status().is_success());
            let bytes = text(headers, &LINKED_SIZE).or_else(length);
            promise.etag = etag.map(|etag| etag.trim_start_matches("W/").trim_matches('"').to_owned());
            promise.bytes = bytes.and_then(|bytes| bytes.parse().ok());
            if !response.status().is_redirection() {
                self.accepted(response, file)?;
            }
            return Ok(promise);
        }
        Err(failed(format!("{file} is redirected more than {REDIRECTS} times")))
    }

    /// Requests a file's content from a byte on.
    pub async fn content(&self, revision: &str, file: &str, from: u64) -> Result<Response, FetchError> {
        let request = self.with_token(self.client.get(self.file_url(revision, file)));
        let request = request.header(ACCEPT_ENCODING, "identity");
        let request = if from > 0 { request.header(reqwest::header::RANGE, format!("bytes={from}-")) } else { request };
        self.sent(request).await
    }

    /// The response if it is a success.
    ///
    /// # Errors
    /// What the refusal means; `what` is the file or revision that was requested.
    pub fn accepted(&self, response: Response, what: &str) -> Result<Response, FetchError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let (repo, with_token) = (self.repo.clone(), self.token.is_some());
        let has_not = |wanted: &str| FetchError::HubHasNot { repo: repo.clone(), wanted: wanted.to_owned() };
        Err(match (text(response.headers(), &ERROR_CODE).as_deref(), status) {
            (Some("GatedRepo"), _) => FetchError::Gated { repo, with_token },
            (Some("EntryNotFound"), _) => has_not(&format!("file {what}")),
            (Some("RevisionNotFound"), _) => has_not(&format!("revision {what}")),
            (Some("RepoNotFound"), _) => FetchError::NoSuchRepository { repo, with_token },
            (None, StatusCode::NOT_FOUND) => has_not(what),
            _ => failed(format!("{status} for {what}")),
        })
    }

    /// Sends a request again where the network or the server fails.
    async fn answered(&self, request: impl Fn() -> RequestBuilder) -> Result<Response, FetchError> {
        let mut attempt = 1;
        loop {
            let sent = self.sent(request()).await;
            let is_passing = match &sent {
                Ok(response) => is_passing(response.status()),
                Err(error) => matches!(error, FetchError::HubFailed { .. }),
            };
            if !is_passing || attempt == ATTEMPTS {
                return sent;
            }
            sleep(pause_after(attempt)).await;
            attempt += 1;
        }
    }

    async fn sent(&self, request: RequestBuilder) -> Result<Response, FetchError> {
        let response = timeout(self.patience, request.send())
            .await
            .map_err(|_| FetchError::HubSilent { waited: self.patience })?;
        response.map_err(lost)
    }

    fn with_token(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.authorization()),
            None => request,
        }
    }

    /// The token is for the hub alone, not for the hosts to which it redirects.
    fn with_token_for(&self, url: &Url, request: RequestBuilder) -> RequestBuilder {
        if url.origin() == self.endpoint.origin() { self.with_token(request) } else { request }
    }

    fn file_url(&self, revision: &str, file: &str) -> Url {
        let (owner, name) = self.repo.split_once('/').unwrap_or_default();
        let parts = [owner, name, "resolve", revision].into_iter().chain(file.split('/'));
        self.url(&parts.collect::<Vec<_>>())
    }

    fn url(&self, parts: &[&str]) -> Url {
        let mut url = self.endpoint.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }
}

/// True for answers after which the same request may succeed.
pub(super) fn is_passing(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
}

pub(super) fn pause_after(attempt: u32) -> Duration {
    PAUSE * 2u32.saturating_pow(attempt.saturating_sub(1).min(6))
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

pub(super) fn failed(error: impl fmt::Display) -> FetchError {
    FetchError::HubFailed { source: error.to_string().into() }
}

/// A failure of the network; without the address, which a mirror may have put a password into.
pub(super) fn lost(error: reqwest::Error) -> FetchError {
    FetchError::HubFailed { source: error.without_url().into() }
}
