//! The names under which corpora are offered as chat models: each corpus, and each of its depths.

use std::sync::Arc;

use calls::Agent;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::{Result, ServerError};
use crate::openai::loadable;
use crate::served::{LATEST, matches_name};
use crate::tenant::Tenant;

/// How deep an answer goes, with the names of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Depth {
    name: &'static str,
    title: &'static str,
    method: &'static str,
}

/// `DEPTHS` of the page, in `talk.js`.
const DEPTHS: [Depth; 3] = [
    Depth { name: "quick", title: "Quick", method: "rag" },
    Depth { name: "thorough", title: "Thorough", method: "gam" },
    Depth { name: "whole", title: "Whole text", method: "direct" },
];

/// A corpus as a chat model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CorpusModel {
    pub corpus: String,
    /// `auto` chooses the method without one.
    depth: Option<Depth>,
    /// How people call it.
    pub title: String,
}

impl CorpusModel {
    /// `CORPUS`, or `CORPUS:DEPTH`.
    pub fn name(&self) -> String {
        self.depth.map_or_else(|| self.corpus.clone(), |depth| format!("{}:{}", self.corpus, depth.name))
    }

    /// The method that answers; `None` leaves the choice.
    pub fn method(&self) -> Option<&'static str> {
        self.depth.map(|depth| depth.method)
    }

    /// Tokens that the model that answers reads.
    pub fn context_tokens(app: &App) -> usize {
        app.caller.tokens().context_tokens(Agent::Responder)
    }

    /// 64 hexadecimal digits that differ from those of other names.
    pub fn digest(&self) -> String {
        blake3::hash(format!("corpus {}", self.name()).as_bytes()).to_hex().to_string()
    }
}

/// The corpora of a tenant, each with its depths. A corpus never shadows a model, loaded or not.
pub(crate) async fn names(app: &App, tenant: &Arc<Tenant>) -> Result<Vec<CorpusModel>> {
    let tenant = Arc::clone(tenant);
    let listings = run_blocking(move || Ok(tenant.corpora.list()?)).await?;
    let loadable = loadable(app).await?;
    let is_model = |name: &str| is_model(app, name) || loadable.iter().any(|model| matches_name(&model.name, name));
    let mut models = Vec::new();
    for listing in listings {
        let plain = CorpusModel { corpus: listing.name.to_string(), depth: None, title: listing.title };
        let deep = DEPTHS.map(|depth| CorpusModel {
            depth: Some(depth),
            title: format!("{} ({})", plain.title, depth.title),
            ..plain.clone()
        });
        models.extend([plain].into_iter().chain(deep).filter(|model| !is_model(&model.name())));
    }
    Ok(models)
}

/// The corpus that a request names as its model; `None` if it names a model, or nothing that is here.
pub(crate) async fn find(app: &App, tenant: &Arc<Tenant>, name: &str) -> Result<Option<CorpusModel>> {
    if is_model(app, name) {
        return Ok(None);
    }
    let name = name.strip_suffix(LATEST).unwrap_or(name);
    let (corpus, depth) = match name.split_once(':') {
        None => (name, None),
        Some((corpus, depth)) => match DEPTHS.iter().find(|known| known.name == depth) {
            Some(depth) => (corpus, Some(*depth)),
            None => return Ok(None),
        },
    };
    let (tenant, corpus) = (Arc::clone(tenant), corpus.to_owned());
    let found = run_blocking(move || match tenant.corpora.open(&corpus) {
        Ok(_) => Ok(Some(CorpusModel { title: corpus.clone(), corpus, depth })),
        Err(store::Error::UnknownCorpus { .. } | store::Error::InvalidName { .. }) => Ok(None),
        Err(error) => Err(ServerError::from(error)),
    })
    .await?;
    // The disk is listed only where there is a corpus of this name.
    Ok(if found.is_some() && is_on_disk(app, name).await? { None } else { found })
}

/// Whether a request would have a model of this name loaded.
async fn is_on_disk(app: &App, name: &str) -> Result<bool> {
    let meant = app.meant(name).await?;
    Ok(meant.is_some_and(|meant| app.loads_models() || app.served(&meant.model.name).is_ok()))
}

/// These corpora, at the depth of one search and one answer.
///
/// # Errors
/// [`ServerError::Store`] for one that is unknown.
pub(crate) async fn quick(tenant: &Arc<Tenant>, corpora: Vec<String>) -> Result<Vec<CorpusModel>> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || {
        let model = |corpus: String| {
            tenant.corpora.open(&corpus)?;
            Ok(CorpusModel { title: corpus.clone(), corpus, depth: Some(DEPTHS[0]) })
        };
        corpora.into_iter().map(model).collect()
    })
    .await
}

fn is_model(app: &App, name: &str) -> bool {
    app.served(name).is_ok() || app.check_embedder(name).is_ok()
}
