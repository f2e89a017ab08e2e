//! The models that a request may name.

use calls::reading;

use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::Result;
use crate::pulling::ShelfModel;
use crate::served::{NO_ADAPTER, agents};

/// The names of all models: language models first, each as it is configured and with each of its adapters, then the embedder.
pub(crate) fn names(app: &App) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: String| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    for agent in agents() {
        add(app.caller.models().model(agent).to_owned());
    }
    for agent in agents() {
        let base = app.caller.models().base_model(agent);
        // A reader knows one prompt, which is not that of a client.
        let adapters = app.caller.models().adapters(agent).into_iter().filter(|adapter| adapter != reading::ADAPTER);
        adapters.for_each(|adapter| add(format!("{base}:{adapter}")));
        if app.caller.models().model(agent) != base {
            add(format!("{base}:{NO_ADAPTER}"));
        }
    }
    if app.embedder.dims() > 0 {
        add(app.embedder.name().to_owned());
    }
    names
}

/// The language models on this disk that a request may name besides those of [`names`]; none if the server loads none.
pub(crate) async fn loadable(app: &App) -> Result<Vec<ShelfModel>> {
    let Some(shelf) = app.config.shelf.clone().filter(|_| app.loads_models()) else { return Ok(Vec::new()) };
    let fixed = names(app);
    run_blocking(move || {
        let usable = |model: &ShelfModel| model.here && model.kind == "language" && !fixed.contains(&model.name);
        Ok(shelf.list().into_iter().filter(usable).collect())
    })
    .await
}
