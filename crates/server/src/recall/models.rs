//! The names under which corpora are offered as chat models: each corpus, and each of its depths.

use std::sync::Arc;

use calls::Agent;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::{Result, ServerError};
use crate::offered::loadable;
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
    let is_model = |name: &str| app.is_fixed(name) || loadable.iter().any(|model| matches_name(&model.name, name));
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
    if app.is_fixed(name) {
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
    let (app, tenant, name, corpus) = (Arc::clone(app), Arc::clone(tenant), name.to_owned(), corpus.to_owned());
    run_blocking(move || {
        // The disk is listed only where there is a corpus of this name.
        let is_corpus = has_corpus(&tenant, &corpus)? && !app.has_on_disk(&name);
        Ok(is_corpus.then(|| CorpusModel { title: corpus.clone(), corpus, depth }))
    })
    .await
}

/// Whether a tenant has a corpus of this name.
fn has_corpus(tenant: &Tenant, name: &str) -> Result<bool> {
    match tenant.open(name) {
        Ok(_) => Ok(true),
        Err(ServerError::Store(store::Error::UnknownCorpus { .. } | store::Error::InvalidName { .. })) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Refuses the name of a new model that is that of a corpus, or would be without its variant, which requests may omit.
///
/// # Errors
/// [`ServerError::Conflict`], and those of opening the corpus.
pub(crate) fn check_model_name(tenant: &Tenant, name: &str) -> Result<()> {
    let corpus = name.split(':').next().unwrap_or(name);
    if has_corpus(tenant, corpus)? {
        return Err(ServerError::Conflict(format!("a corpus has the name `{corpus}`; give the model another")));
    }
    Ok(())
}

/// These corpora, at the depth of one search and one answer.
///
/// # Errors
/// [`ServerError::Store`] for one that is unknown.
pub(crate) async fn quick(tenant: &Arc<Tenant>, corpora: Vec<String>) -> Result<Vec<CorpusModel>> {
    let tenant = Arc::clone(tenant);
    run_blocking(move || {
        let model = |corpus: String| {
            tenant.open(&corpus)?;
            Ok(CorpusModel { title: corpus.clone(), corpus, depth: Some(DEPTHS[0]) })
        };
        corpora.into_iter().map(model).collect()
    })
    .await
}
