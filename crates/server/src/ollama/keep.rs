//! `keep_alive` of chat and generate: which model a request uses, and how long it stays loaded.

use serde_json::Value;

use crate::app::App;
use crate::error::Result;
use crate::loading::KeepAlive;
use crate::openai::{matches_name, served};
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
    /// By a loaded model, with its name.
    Model(App, String),
    /// The model has been unloaded, or is as soon as no request uses it.
    Unloaded(String),
}

impl Asked<'_> {
    /// Loads or unloads the model.
    ///
    /// # Errors
    /// If `keep_alive` is none, no model has this name, or it cannot be loaded.
    pub async fn serving(&self, app: &App, tenant: &Tenant, warnings: &Warnings) -> Result<Asking> {
        let mut keep_alive = self.keep_alive.map(KeepAlive::of_request).transpose()?;
        if keep_alive.is_some() && !tenant.is_operator {
            warnings.add("`keep_alive` is the operator's to choose on a server with keys".to_owned());
            keep_alive = None;
        }
        let unloads = self.is_empty && keep_alive == Some(KeepAlive::For(std::time::Duration::ZERO));
        if unloads && let Some(name) = self.loaded(app) {
            app.residents.unload(|known| known == name).await?;
            return Ok(Asking::Unloaded(name));
        }
        if unloads {
            // One that was started with, or one that is not loaded; an unknown one is an error.
            return match served(app, self.name) {
                Ok(fixed) => {
                    warnings.add("models that the server was started with stay loaded".to_owned());
                    Ok(Asking::Unloaded(fixed.name))
                }
                Err(unknown) => app.is_here(self.name).await?.map(Asking::Unloaded).ok_or(unknown),
            };
        }
        let app = app.serving_for(self.name, keep_alive).await?;
        let name = served(&app, self.name)?.name;
        Ok(Asking::Model(app, name))
    }

    /// The name of the model that was loaded on demand.
    fn loaded(&self, app: &App) -> Option<String> {
        let mut loaded = app.residents.all().into_iter().map(|resident| resident.name);
        loaded.find(|name| matches_name(name, self.name))
    }
}
