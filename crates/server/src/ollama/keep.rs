//! `keep_alive` of chat and generate: which corpus or model a request uses, and how long the model stays loaded.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::app::App;
use crate::error::Result;
use crate::loading::KeepAlive;
use crate::recall::{CorpusModel, find};
use crate::tenant::Tenant;
use crate::warnings::Warnings;

/// What a request says of its model.
pub(super) struct Asked<'a> {
    pub name: &'a str,
    pub keep_alive: Option<&'a Value>,
    /// True if the request has no prompt: it loads or unloads the model.
    pub is_empty: bool,
}

/// What it is answered with.
pub(super) enum Asking {
    /// By a loaded model, with its name, or from a corpus.
    Loaded(App, String, Option<CorpusModel>),
    /// The model has been unloaded, or is as soon as no request uses it.
    Unloaded(String),
}

impl Asked<'_> {
    /// Finds the corpus of this name, else loads or unloads the model.
    ///
    /// # Errors
    /// If `keep_alive` is none, no corpus or model has this name, or the model cannot be loaded.
    pub async fn answering(&self, app: &App, tenant: &Arc<Tenant>, warnings: &Warnings) -> Result<Asking> {
        if let Some(corpus) = find(app, tenant, self.name).await? {
            return Ok(Asking::Loaded(Arc::clone(app), corpus.name(), Some(corpus)));
        }
        let mut keep_alive = self.keep_alive.map(KeepAlive::of_request).transpose()?;
        if keep_alive.is_some() && !tenant.is_operator {
            warnings.add("`keep_alive` is the operator's to choose on a server with keys".to_owned());
            keep_alive = None;
        }
        if self.is_empty && keep_alive == Some(KeepAlive::For(Duration::ZERO)) {
            return self.unload(app, warnings).await.map(Asking::Unloaded);
        }
        let app = app.serving_for(self.name, keep_alive).await?;
        let name = app.served(self.name)?.name;
        Ok(Asking::Loaded(app, name, None))
    }

    /// Unloads the model, and returns its name.
    async fn unload(&self, app: &App, warnings: &Warnings) -> Result<String> {
        let meant = app.meant(self.name).await?;
        let model = meant.as_ref().map_or(self.name, |meant| &meant.model.name);
        let (is_unloaded, served) = (app.unload(model).await?, app.served(model));
        match (meant, served) {
            (Some(meant), Err(_)) => Ok(meant.name),
            (_, Ok(fixed)) => {
                if !is_unloaded {
                    warnings.add("models that the server was started with stay loaded".to_owned());
                }
                Ok(fixed.name)
            }
            (None, Err(_)) if is_unloaded => Ok(self.name.to_owned()),
            (None, Err(unknown)) => Err(unknown),
        }
    }
}
