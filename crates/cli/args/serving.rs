//! The flags of `serve` and `mcp`.

#![allow(rustdoc::bare_urls, reason = "comments of flags are the help that the terminal shows")]

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use launch::flags::{EndpointFlags, ModelFlags, at_least_one};
use server::KeepAlive;

#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// Address to listen on; one that can be reached from elsewhere needs keys
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS", env = "MEMLOCAL_HOST")]
    pub host: IpAddr,
    /// Port to listen on; 0 takes any that is free
    #[arg(long, default_value_t = 8420, value_name = "N", env = "MEMLOCAL_PORT")]
    pub port: u16,
    /// File of API keys [default: `keys` in the data folder, if it is there]
    #[arg(long, value_name = "FILE", env = "MEMLOCAL_KEYS")]
    pub keys: Option<PathBuf>,
    /// Holder of a key who may see counts of the whole server at /metrics and /v1/engine; the others see their own
    #[arg(long, value_name = "NAME")]
    pub operator: Option<String>,
    /// Maximum concurrent requests that use models or read a graph; further ones are refused with status 429
    #[arg(long, default_value_t = 128, value_name = "N", value_parser = at_least_one)]
    pub max_requests: usize,
    /// POST requests and graphs per minute per key, or per address if no keys are required
    /// [default: no limit]
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<NonZeroU32>,
    /// Maximum bytes of a JSON body
    #[arg(long, default_value_t = 8 << 20, value_name = "BYTES", value_parser = at_least_one)]
    pub max_body: usize,
    /// Maximum bytes of an upload, all its files together
    #[arg(long, default_value_t = 256 << 20, value_name = "BYTES", value_parser = at_least_one)]
    pub max_upload: usize,
    /// Allow requests from web pages of this origin, such as https://chat.example, and requests that name its host, as a
    /// proxy passes them on; may be given several times
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_parser = origin)]
    pub allow_origins: Vec<String>,
    /// Write prompts to the log, which contains none of their text otherwise
    #[arg(long)]
    pub log_prompts: bool,
    /// Deadline of a request in seconds
    #[arg(long, default_value_t = 1800, value_name = "SECONDS", value_parser = seconds)]
    pub deadline: u64,
    /// Seconds that a question waits until its corpus is prepared, at most half of the deadline; then it is answered from what
    /// is ready
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub prepare_wait: u64,
    /// Keep neither threads (questions with their answers) nor responses of /v1/responses
    #[arg(long)]
    pub no_threads: bool,
    /// Write logs as JSON objects
    #[arg(long)]
    pub log_json: bool,
    /// Save the keys and values of the beginnings of prompts beside each corpus: the first question after a restart starts
    /// sooner, for a few hundred MB of disk space
    #[arg(long)]
    pub keep_prefixes: bool,
    /// Text file with a system message that clients of all keys send: its keys and values are computed at the start and stay in the
    /// KV cache for all of them; everything else is cached for each key apart
    #[arg(long, value_name = "FILE")]
    pub shared_prompt: Option<PathBuf>,
    /// Folder of benchmark runs, whose reports the page shows
    #[arg(long, value_name = "FOLDER", value_parser = folder)]
    pub bench_runs: Option<PathBuf>,
    /// When a request may have a model loaded that is on this disk, and idle ones unloaded for it: auto (the server listens
    /// on loopback and requires no keys), always or never; without a value always
    #[arg(long, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_value = "auto", default_missing_value = "always")]
    pub load_models: LoadChoice,
    /// How long a model that a request had loaded stays after its last request, such as 90, 5m or 1h30m; 0 unloads it at once,
    /// -1 keeps it
    #[arg(long, value_name = "TIME", default_value = "5m", allow_hyphen_values = true)]
    pub keep_alive: KeepAlive,
    /// GGUF file or folder with safetensors that requests may name, once for each
    #[arg(long = "model-file", value_name = "NAME=PATH", value_parser = named_path)]
    pub model_files: Vec<(String, PathBuf)>,
    #[command(flatten)]
    pub models: ModelFlags,
    #[command(flatten)]
    pub engine: EndpointFlags,
}

/// When models are loaded on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LoadChoice {
    /// On loopback without keys.
    Auto,
    Always,
    Never,
}

/// Parses a name and a path.
fn named_path(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("it must be NAME=PATH")?;
    if name.is_empty() {
        return Err("the name is missing before `=`".into());
    }
    let path = launch::absolute(Path::new(path));
    if !path.exists() {
        return Err(format!("there is no file {}", path.display()));
    }
    Ok((name.to_owned(), path))
}

/// Parses a folder that is there.
fn folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_dir() { Ok(path) } else { Err("there is no such folder".into()) }
}

/// Parses a number of seconds from 1.
fn seconds(text: &str) -> Result<u64, String> {
    at_least_one(text).map(|seconds| seconds as u64)
}

/// Parses a number of requests per minute.
fn rate(text: &str) -> Result<NonZeroU32, String> {
    text.parse::<u32>()
        .map_err(|error| error.to_string())
        .and_then(|rate| NonZeroU32::new(rate).ok_or_else(|| "it must be 1 or more".into()))
}

/// Parses an origin as browsers send it: lower case, and nothing behind host and port.
fn origin(text: &str) -> Result<String, String> {
    let origin = text.trim_end_matches('/').to_ascii_lowercase();
    let host = origin.split_once("://").map_or("", |(_, host)| host);
    if host.is_empty() || host.contains(['/', '*', '?', '#', ' ']) {
        return Err("it must be SCHEME://HOST or SCHEME://HOST:PORT, such as https://chat.example".into());
    }
    Ok(origin)
}

#[derive(Debug, clap::Args)]
pub struct Mcp {
    #[command(flatten)]
    pub models: ModelFlags,
    #[command(flatten)]
    pub engine: EndpointFlags,
}

#[cfg(test)]
mod tests {
    use super::{named_path, origin};

    #[test]
    fn an_origin_is_what_browsers_send() {
        let check = |text: &str, want: &str| assert_eq!(origin(text).as_deref(), Ok(want), "{text}");
        check("https://chat.example", "https://chat.example");
        check("https://Chat.Example/", "https://chat.example");
        check("http://localhost:3000", "http://localhost:3000");
        check("chrome-extension://abcdef", "chrome-extension://abcdef");
        for wrong in ["*", "chat.example", "https://", "https://chat.example/app", "https://*.example"] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_of_a_model_has_a_name() {
        assert_eq!(named_path("=.").unwrap_err(), "the name is missing before `=`");
        assert!(named_path("a=./nowhere").unwrap_err().starts_with("there is no file /"));
        assert!(named_path("a=.").is_ok());
    }
}
