//! Where models are looked for, and what is allowed on the way.

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::hub_cache::hub_cache_dir;

/// Where to look for models and what is allowed on the way.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// The folder that holds the installed models, `<name>/<variant>/` each.
    pub models_dir: PathBuf,
    /// Whether only this disk may be asked.
    pub offline: bool,
    /// A file or folder given by the user, to be copied; where it is set, nothing else is asked.
    pub local: Option<PathBuf>,
    /// The bundle whose models come first.
    pub bundle: Option<PathBuf>,
    /// The Hugging Face cache, which is read and never written.
    pub hub_cache: PathBuf,
    /// Another hub than the one that `HF_ENDPOINT` names.
    pub hub_endpoint: Option<String>,
    /// What the hub is shown for repositories that not everyone may read.
    pub hub_token: Option<HubToken>,
    /// How long the hub may take to say that it has a file.
    pub hub_patience: Duration,
    /// The Python interpreters whose pip may be asked for wheels, best first.
    pub pythons: Vec<PathBuf>,
}

impl FetchOptions {
    /// Allows every source, with the Hugging Face cache and the Python that this machine has.
    pub fn new(models_dir: impl Into<PathBuf>) -> Self {
        Self {
            models_dir: models_dir.into(),
            offline: false,
            local: None,
            bundle: None,
            hub_cache: hub_cache_dir(),
            hub_endpoint: None,
            hub_token: HubToken::of_environment(),
            hub_patience: Duration::from_secs(10),
            pythons: vec!["python3".into(), "python".into()],
        }
    }
}

/// A token of the Hugging Face Hub. It is never printed.
#[derive(Clone)]
pub struct HubToken(
    #[cfg_attr(not(feature = "hub"), expect(dead_code, reason = "only the hub is shown it"))] pub(super) String,
);

impl HubToken {
    /// A token as the hub's website shows it.
    pub fn new(token: impl Into<String>) -> HubToken {
        HubToken(token.into())
    }

    /// Finds it as the Hugging Face tools do: `HF_TOKEN`, or the file `HF_TOKEN_PATH` or `token` in their folder.
    fn of_environment() -> Option<HubToken> {
        let named = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty());
        let file = || {
            let home = named("HF_HOME").map(PathBuf::from);
            let home = home.or_else(|| Some(env::home_dir()?.join(".cache/huggingface")));
            let path = named("HF_TOKEN_PATH").map(PathBuf::from).or_else(|| Some(home?.join("token")))?;
            std::fs::read_to_string(path).ok()
        };
        let token = env::var("HF_TOKEN").ok().filter(|token| !token.is_empty()).or_else(file)?;
        Some(token.trim().to_owned()).filter(|token| !token.is_empty()).map(HubToken)
    }
}

impl fmt::Debug for HubToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HubToken")
    }
}
