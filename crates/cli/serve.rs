//! `memlocal serve` and `memlocal mcp`: serve other programs and users.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use launch::eprintln;
use launch::failure::refusal;
use launch::flags::{EndpointFlags, GlobalFlags, ModelFlags};
use launch::output::{Log, error_has_colours, print_line};
use launch::preloaded::PreloadedModels;
use launch::{Backend, corpus_adapter, home, pdf_child, prefixes_need_local_engine, shared_prompt_needs_local_engine};
use server::{Config, Keys, KeysError, KeysFile, LoadModels, ModelMemory, Refused, Server};
use tokio::runtime::{Builder, Runtime};

use crate::args::{Keys as KeysCommand, LoadChoice, Mcp, Serve};
use crate::shelf::{LocalModels, memory, refused};

/// Threads for socket I/O: the other cores are for the models.
const SOCKET_THREADS: usize = 2;

pub fn run(serve: &Serve, global: &GlobalFlags) -> Result<ExitCode> {
    log(serve.log_json);
    let keys = keys(serve, global)?;
    if keys.keys().is_none() && !serve.host.is_loopback() {
        return Err(refusal(
            format!("{} is reachable from other machines, and no key is required", serve.host),
            "make a key with `memlocal keys add NAME`, or serve on 127.0.0.1",
        ));
    }
    if let Some(name) = &serve.operator {
        Keys::check_name(name).map_err(|error| invalid_name(&error, name))?;
    }
    let has_no_key = |name: &&String| keys.keys().is_some_and(|keys| keys.names().all(|known| known != name.as_str()));
    if let Some(name) = serve.operator.as_ref().filter(has_no_key) {
        eprintln!("note: {name} has no key yet, so this server has no operator: memlocal keys add {name}");
    }
    let private_adapter = corpus_adapter::private(&serve.models, global)?;
    if let Some(path) = private_adapter.filter(|_| keys.keys().is_some()) {
        return Err(refusal(
            format!("{} was trained on a private corpus, and every holder of a key would ask with it", path.display()),
            "serve without keys on 127.0.0.1, or without this --adapter",
        ));
    }
    if serve.engine.engine.is_some() && serve.keep_prefixes {
        return Err(prefixes_need_local_engine());
    }
    if serve.engine.engine.is_some() && serve.shared_prompt.is_some() {
        return Err(shared_prompt_needs_local_engine());
    }
    let shared_prompt = serve.shared_prompt.as_deref().map(shared_prompt).transpose()?;
    // A port in use is an error before any model is loaded.
    let address = SocketAddr::from((serve.host, serve.port));
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    listener.set_nonblocking(true).context("the socket cannot be set up")?;
    let config = Config {
        loopback_only: serve.host.is_loopback(),
        keys: Some(keys),
        operator: serve.operator.clone(),
        private_adapter: private_adapter.is_some(),
        max_requests: serve.max_requests,
        rate: serve.rate,
        max_body_bytes: serve.max_body,
        max_upload_bytes: serve.max_upload,
        allow_origins: serve.allow_origins.clone(),
        log_prompts: serve.log_prompts,
        deadline: Duration::from_secs(serve.deadline),
        preparation: Duration::from_secs(serve.prepare_wait),
        keep_prefixes: serve.keep_prefixes,
        keep_threads: !serve.no_threads,
        bench_runs: serve.bench_runs.clone(),
        shelf: Some(Arc::new(shelf(serve, global)?)),
        load_models: match serve.load_models {
            LoadChoice::Always => LoadModels::Always,
            // Where another machine answers, this one may have no memory for models.
            LoadChoice::Auto if serve.engine.engine.is_none() => LoadModels::Alone,
            LoadChoice::Auto | LoadChoice::Never => LoadModels::Never,
        },
        keep_alive: serve.keep_alive,
        settings: settings(serve, global)?,
        ..config(global)?
    };
    let models = ModelFlags { shared_prompt, ..serve.models.clone() };
    let server = server(&models, &serve.engine, config, global)?;
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).context("the socket cannot be set up")?;
        print_line(format_args!("memlocal listens on http://{}", listener.local_addr()?))?;
        Ok::<(), anyhow::Error>(server.serve(listener, told_to_stop()).await?)
    });
    // Aborted work may still occupy a thread.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

/// The system message in a file, without a byte order mark, and without white space at its end, such as an editor's last line break.
fn shared_prompt(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        refusal(format!("cannot read {}: {error}", path.display()), "give --shared-prompt a text file in UTF-8")
    })?;
    let system = text.trim_start_matches('\u{feff}').trim_end();
    if system.is_empty() {
        let hint = "write a system message into it, or omit --shared-prompt";
        return Err(refusal(format!("{} is empty", path.display()), hint));
    }
    Ok(system.to_owned())
}

/// Standard output carries the protocol only.
pub fn run_mcp(mcp: &Mcp, global: &GlobalFlags) -> Result<ExitCode> {
    log(false);
    let server = server(&mcp.models, &mcp.engine, config(global)?, global)?;
    let runtime = runtime()?;
    let served = runtime.block_on(server.serve_stdio(told_to_stop()));
    runtime.shutdown_background();
    served?;
    Ok(ExitCode::SUCCESS)
}

pub fn run_keys(command: &KeysCommand, global: &GlobalFlags) -> Result<ExitCode> {
    let path = |keys: &Option<PathBuf>| keys.clone().map_or_else(|| keys_file(global), Ok);
    match command {
        KeysCommand::Add { name, keys } => {
            let path = path(keys)?;
            let key = Keys::add(&path, name).map_err(|error| match error {
                KeysError::Taken { .. } => {
                    refusal(error.to_string(), format!("for a new one, take it away first: memlocal keys rm {name}"))
                }
                KeysError::Name { .. } => invalid_name(&error, name),
                error => of_file(error, &path),
            })?;
            print_line(&key)?;
            eprintln!("this is the key of {name}; it is not stored and cannot be displayed again");
        }
        KeysCommand::List { keys: named } => {
            let path = path(named)?;
            if !is_there(&path) {
                if named.is_some() {
                    return Err(no_key_file(&path));
                }
                eprintln!("there are no keys, and none is required: memlocal keys add NAME makes the first");
                return Ok(ExitCode::SUCCESS);
            }
            let keys = Keys::read(&path).map_err(|error| unusable(error, &path))?;
            keys.names().try_for_each(print_line)?;
            report_none_left(&keys, &path);
        }
        KeysCommand::Rm { name, keys } => {
            let path = path(keys)?;
            Keys::remove(&path, name).map_err(|error| match error {
                KeysError::Unknown { .. } => refusal(error.to_string(), "memlocal keys list shows all names"),
                error => of_file(error, &path),
            })?;
            print_line(format_args!("removed the key of {name}"))?;
            report_none_left(&Keys::read(&path).map_err(|error| unusable(error, &path))?, &path);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says that a key file without keys lets no request in.
fn report_none_left(keys: &Keys, path: &Path) {
    if keys.names().next().is_none() {
        eprintln!(
            "there are no keys, but a server requires one while {} is there: memlocal keys add NAME makes one",
            path.display()
        );
    }
}

/// The error of a name that no key can have.
fn invalid_name(error: &KeysError, name: &str) -> anyhow::Error {
    refusal(error.to_string(), format!("`{}` is a valid name", store::CorpusName::like(name)))
}

/// An error of changing a key file; one about the file names it.
fn of_file(error: KeysError, path: &Path) -> anyhow::Error {
    match error {
        KeysError::Io(_) | KeysError::Link { .. } | KeysError::Line { .. } => unusable(error, path),
        error => error.into(),
    }
}

/// The error of a key file that cannot be used.
fn unusable(error: KeysError, path: &Path) -> anyhow::Error {
    let error = match error {
        KeysError::Link { .. } => refusal(error.to_string(), "mount the drive that has it, or remove the link"),
        KeysError::Line { .. } => {
            refusal(error.to_string(), "correct or remove this line; `memlocal keys add NAME` makes a new key")
        }
        KeysError::Io(source) => refusal(
            format!("the key file cannot be read or written: {source}"),
            "choose a file that you may read and write: --keys FILE, or MEMLOCAL_KEYS",
        ),
        error => error.into(),
    };
    error.context(format!("cannot use {}", path.display()))
}

fn server(models: &ModelFlags, endpoint: &EndpointFlags, config: Config, global: &GlobalFlags) -> Result<Server> {
    let backend = Backend::start(models, endpoint, true, global)?;
    let preloaded = backend.preloaded(models, global)?;
    let preloaded = preloaded.map(|models| Arc::new(Preloaded(models)) as Arc<dyn server::Preloaded>);
    let config = Config { preloaded, ..config };
    Ok(Server::new(backend.shared_caller(), Arc::new(backend.embedder), config))
}

/// The models that the server was started with.
#[derive(Debug)]
struct Preloaded(PreloadedModels);

impl server::Preloaded for Preloaded {
    fn models(&self) -> Vec<(String, ModelMemory)> {
        self.0.models().into_iter().map(|(name, bytes)| (name, memory(bytes))).collect()
    }

    fn unload(&self, model: usize) -> Result<(), Refused> {
        self.0.unload(model).map_err(|error| refused(&error))
    }

    fn load(&self, model: usize) -> Result<(), Refused> {
        self.0.load(model).map_err(|error| refused(&error))
    }
}

fn config(global: &GlobalFlags) -> Result<Config> {
    Ok(Config {
        pdf_child: pdf_child(),
        vectors: home::vectors(global)?,
        bundle: home::bundle(global)?,
        ..Config::new(home::folder(global)?)
    })
}

fn shelf(serve: &Serve, global: &GlobalFlags) -> Result<LocalModels> {
    let (options, folder) = (home::fetching(global)?, home::folder(global)?);
    Ok(LocalModels::new(options, global, serve.models.quantise, serve.model_files.clone(), launch::absolute(&folder)))
}

/// What the page shows of the configuration: names of flags with their values, without secrets.
fn settings(serve: &Serve, global: &GlobalFlags) -> Result<Vec<(String, String)>> {
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let given = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    let shown = |name: &str, value: String| (name.to_owned(), store::without_secrets(&value));
    let models = &serve.models;
    Ok(vec![
        shown("version", env!("CARGO_PKG_VERSION").to_owned()),
        shown("data-dir", home::folder(global)?.display().to_string()),
        shown("host", serve.host.to_string()),
        shown("port", serve.port.to_string()),
        shown("operator", given(serve.operator.clone())),
        shown("model", given(Some(models.model.clone()).filter(|_| serve.engine.engine.is_none()))),
        shown("engine", given(serve.engine.engine.clone())),
        shown("embedder", models.embedder.clone()),
        shown("gpu", global.gpu().to_string()),
        shown(
            "kv-tokens",
            global.kv_tokens.map_or_else(|| "the model's context".to_owned(), |tokens| tokens.to_string()),
        ),
        shown("kv", global.kv().to_string() + if global.kv_is_auto() { " (CPU: q8_0 if only that fits)" } else { "" }),
        shown("load-models", format!("{:?}", serve.load_models).to_lowercase()),
        shown("keep-alive", serve.keep_alive.to_string()),
        shown("max-requests", serve.max_requests.to_string()),
        shown("rate", given(serve.rate.map(|rate| rate.to_string()))),
        shown("max-body", serve.max_body.to_string()),
        shown("max-upload", serve.max_upload.to_string()),
        shown("deadline", serve.deadline.to_string()),
        shown("prepare-wait", serve.prepare_wait.to_string()),
        shown("threads kept", yes(!serve.no_threads)),
        shown("keep-prefixes", yes(serve.keep_prefixes)),
        shown("shared-prompt", given(serve.shared_prompt.as_ref().map(|path| path.display().to_string()))),
        shown("log-prompts", yes(serve.log_prompts)),
        shown("allow-origin", given(Some(serve.allow_origins.join(" ")).filter(|origins| !origins.is_empty()))),
        shown("vectors", given(global.vectors.clone())),
        shown("offline", yes(home::is_offline(global))),
    ])
}

fn keys_file(global: &GlobalFlags) -> Result<PathBuf> {
    Ok(home::folder(global)?.join("keys"))
}

/// Whether there is a file or a link with this name. A link whose target is gone, as on a drive that is not mounted, is a
/// key file that cannot be read: it does not mean that no key is required.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// The error where a key file that is named does not exist.
fn no_key_file(path: &Path) -> anyhow::Error {
    let hint = format!("make it with its first key: memlocal keys add NAME --keys {}", path.display());
    refusal(format!("there is no key file {}", path.display()), hint)
}

/// The key file that is named, which must exist, or the one in the data folder.
fn keys(serve: &Serve, global: &GlobalFlags) -> Result<KeysFile> {
    let path = serve.keys.clone().map_or_else(|| keys_file(global), Ok)?;
    if serve.keys.is_some() && !is_there(&path) {
        return Err(no_key_file(&path));
    }
    KeysFile::open(&path).map_err(|error| unusable(error, &path))
}

fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().worker_threads(SOCKET_THREADS).enable_all().build().context("no runtime")
}

/// Completes when the process receives a request to end.
async fn told_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Logs are written to standard error; RUST_LOG filters them.
fn log(json: bool) {
    use tracing_subscriber::EnvFilter;
    const USUAL: &str = "info,rmcp=warn";
    let asked = std::env::var("RUST_LOG").ok().filter(|asked| !asked.is_empty());
    let filter = EnvFilter::try_new(asked.as_deref().unwrap_or(USUAL)).unwrap_or_else(|error| {
        eprintln!("RUST_LOG is not used, logs are filtered by {USUAL}: {error}");
        EnvFilter::new(USUAL)
    });
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Log);
    let _ = if json { lines.json().try_init() } else { lines.with_ansi(error_has_colours()).try_init() };
}
