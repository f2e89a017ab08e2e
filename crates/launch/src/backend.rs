//! The backend that answers calls and embeds texts: this machine's engine, or a remote endpoint for the calls.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use calls::Caller;
use engine::Engine;
use remote::{Address, Remote, Setup};

use crate::failure::refusal;
use crate::flags::{EndpointFlags, GlobalFlags, ModelFlags};
use crate::local_embedder::LocalEmbedder;
use crate::preloaded::PreloadedModels;
use crate::{home, loader, typed_model};

/// The environment variable with the endpoint's key: other users of the machine can see command lines.
const KEY: &str = "MEMLOCAL_ENGINE_KEY";

/// How long calls to an overloaded endpoint are retried.
const RETRY_LIMIT: Duration = Duration::from_mins(10);

/// What answers calls, and what embeds texts.
pub struct Backend {
    /// The embedding model of this machine.
    pub embedder: LocalEmbedder,
    caller: Arc<dyn Caller>,
    /// This machine's engine, if it has the language models.
    local: Option<Engine>,
}

impl Backend {
    /// Loads models, or connects to the endpoint and loads the embedding model alone. `with_embedder` is false where nothing
    /// will be embedded.
    pub fn start(
        models: &ModelFlags,
        endpoint: &EndpointFlags,
        with_embedder: bool,
        global: &GlobalFlags,
    ) -> Result<Backend> {
        let Some(remote) = connect(endpoint, global)? else {
            let engine = loader::start(models, with_embedder, global)?;
            let caller = Arc::new(engine.clone());
            return Ok(Backend { embedder: LocalEmbedder(Some(engine.clone())), caller, local: Some(engine) });
        };
        let embedder = with_embedder.then(|| loader::start_embedder(models, global)).transpose()?;
        Ok(Backend { embedder: LocalEmbedder(embedder), caller: Arc::new(remote), local: None })
    }

    /// The caller that answers calls.
    pub fn caller(&self) -> &dyn Caller {
        &*self.caller
    }

    /// The language models of this machine's engine, which are unloaded and loaded again; none with an endpoint.
    ///
    /// # Errors
    /// If their files cannot be read.
    pub fn preloaded(&self, models: &ModelFlags, global: &GlobalFlags) -> Result<Option<PreloadedModels>> {
        self.local.as_ref().map(|engine| PreloadedModels::of(engine, models, global)).transpose()
    }

    /// The same caller, shared.
    pub fn shared_caller(&self) -> Arc<dyn Caller> {
        Arc::clone(&self.caller)
    }
}

/// Connects to the endpoint that is named, if any.
///
/// # Errors
/// If it is not allowed ([`check_allowed`]), or only its model or its context is given.
fn connect(endpoint: &EndpointFlags, global: &GlobalFlags) -> Result<Option<Remote>> {
    let Some(address) = &endpoint.engine else {
        if endpoint.engine_model.is_none() && endpoint.engine_context.is_none() {
            return Ok(None);
        }
        return Err(refusal("--engine-model and --engine-context are of --engine", "add --engine URL"));
    };
    check_allowed(address, global)?;
    let address: Address = address.parse()?;
    let key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
    let (model, context_tokens) = (endpoint.engine_model.clone(), endpoint.engine_context);
    Ok(Some(Remote::connect(Setup { address, model, context_tokens, key, patience: RETRY_LIMIT })?))
}

/// Checks that a server may be asked.
///
/// # Errors
/// Offline, unless it is on this machine's loopback: that opens a socket, but nothing leaves the machine.
pub fn check_allowed(url: &str, global: &GlobalFlags) -> Result<()> {
    if !home::is_offline(global) {
        return Ok(());
    }
    let address: Address = url.parse()?;
    if address.is_loopback() {
        return Ok(());
    }
    Err(refusal(
        format!("offline, and {address} is not on this machine"),
        "offline only endpoints on this machine's loopback may be asked, such as http://127.0.0.1:8000/v1",
    ))
}

/// The error where `--keep-prefixes` and `--engine` are given together.
pub fn prefixes_need_local_engine() -> anyhow::Error {
    let hint = "omit --keep-prefixes; a remote endpoint manages its own cache";
    refusal("the KV cache of a remote endpoint cannot be saved", hint)
}

/// The error where `--shared-prompt` and `--engine` are given together.
pub fn shared_prompt_needs_local_engine() -> anyhow::Error {
    let hint = "omit --shared-prompt; a remote endpoint has one cache for all tenants";
    refusal("the KV cache of a remote endpoint cannot keep a prompt", hint)
}

/// The name of a model in results; an endpoint's model has the endpoint's address in it.
pub fn model_name(typed: &str, endpoint: &EndpointFlags) -> String {
    match (&endpoint.engine, &endpoint.engine_model) {
        (Some(address), Some(model)) => store::without_secrets(&format!("{model} at {address}")),
        (Some(address), None) => store::without_secrets(address),
        (None, _) => typed_model::name(typed),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use calls::{Agent, CallError, Embedder};
    use clap::Parser;

    use super::*;
    use crate::flags::tests::Flags;
    use crate::wait_for;

    /// The address of a server that lists one model.
    fn endpoint() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let models = r#"{"data":[{"id":"m","max_model_len":4096}]}"#;
                let _ = stream.read(&mut [0; 4096]);
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n", models.len());
                let _ = write!(stream, "{head}\r\n{models}");
            }
        });
        url
    }

    #[test]
    fn offline_only_this_machine_is_asked() {
        let global = |words: &[&str]| Flags::try_parse_from(["memlocal"].iter().chain(words)).unwrap().global;
        let offline = global(&["--offline"]);
        for url in ["http://127.0.0.1:8000", "http://localhost:8000/v1", "http://[::1]:8000"] {
            check_allowed(url, &offline).unwrap();
        }
        let error = check_allowed("http://10.1.2.3:8000", &offline).unwrap_err().to_string();
        assert_eq!(error, "offline, and http://10.1.2.3:8000 is not on this machine");
    }

    #[test]
    fn an_endpoint_needs_no_embedding_model_where_nothing_is_embedded() {
        let (url, folder) = (endpoint(), tempfile::tempdir().unwrap());
        let data = folder.path().to_str().unwrap();
        let words = ["memlocal", "--offline", "--cpu", "--data-dir", data, "--engine", &url];
        let Flags { models, endpoint, global } = Flags::try_parse_from(words).unwrap();
        let backend = Backend::start(&models, &endpoint, false, &global).unwrap();
        assert_eq!(backend.caller().models().model(Agent::Responder), "m");
        assert!(backend.preloaded(&models, &global).unwrap().is_none());
        assert_eq!((backend.embedder.dims(), backend.embedder.name()), (0, "none"));
        let refused = wait_for(backend.embedder.embed(vec!["a lamp".into()])).unwrap_err();
        assert_eq!(refused.downcast_ref(), Some(&CallError::NoModel { what: "embedding".into() }));
        let missing = Backend::start(&models, &endpoint, true, &global).err().expect("there is no embedding model");
        assert!(format!("{missing:#}").contains("all-minilm-l6-v2"), "{missing:#}");
    }
}
