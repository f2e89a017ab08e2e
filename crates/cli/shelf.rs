//! The built-in models and the folder that they are fetched to, for the server.

use launch::memory_budget;
use models::fetch::{FetchOptions, State, fetch, list};
use models::manifest::Kind;
use server::{PullProgress, Shelf, ShelfModel};

/// The models folder of this data folder.
#[derive(Debug)]
pub struct BuiltIn(pub FetchOptions);

impl Shelf for BuiltIn {
    fn list(&self) -> Vec<ShelfModel> {
        let model = |listed: models::fetch::Listed| {
            let (manifest, variant) = (listed.choice.manifest, listed.choice.variant);
            ShelfModel {
                name: listed.choice.to_string(),
                kind: if matches!(manifest.kind, Kind::Decoder { .. }) { "language" } else { "embedding" },
                context_tokens: manifest.context_tokens,
                download_bytes: variant.files.iter().map(|file| file.bytes).sum(),
                memory_bytes: variant.memory_mib << 20,
                licence: manifest.licence.clone(),
                here: listed.state != State::Absent,
            }
        };
        list(&self.0).into_iter().map(model).collect()
    }

    fn free_bytes(&self) -> Option<u64> {
        memory_budget::free_bytes()
    }

    fn pull(&self, name: &str, report: &mut dyn FnMut(PullProgress)) -> Result<(), (String, Option<String>)> {
        let known = list(&self.0).into_iter().find(|listed| listed.choice.to_string() == name);
        let Some(listed) = known else { return Err((format!("there is no model {name}"), None)) };
        let report = &mut |at: models::fetch::Progress<'_>| {
            report(PullProgress { file: at.file.to_owned(), done_bytes: at.done_bytes, total_bytes: at.total_bytes });
        };
        fetch(listed.choice, &self.0, report).map(drop).map_err(|error| (error.to_string(), error.hint()))
    }
}
