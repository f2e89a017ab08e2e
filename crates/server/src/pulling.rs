//! The models that this machine could serve: listing, fetching, naming and loading them.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use calls::{Caller, ModelDetails};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::served::matches_name;

/// Why something cannot be done with a model, and what to do about it.
pub type Refused = (String, Option<String>);

/// Known models and the disk that they are fetched to.
pub trait Shelf: fmt::Debug + Send + Sync {
    /// The models in the order in which they are shown; what is here comes with its details.
    fn list(&self) -> Vec<ShelfModel>;

    /// A name that was given with [`Shelf::alias`], exactly; the disk is not listed for it.
    fn given(&self, name: &str) -> Option<Given>;

    /// Memory that models can use now, in bytes; `None` if the system does not report it.
    fn free_bytes(&self) -> Option<u64>;

    /// The name under which a model that is to be fetched would be listed; `None` if there is no such model.
    fn fetchable(&self, name: &str) -> Option<String>;

    /// Fetches a model ([`Shelf::fetchable`]), and reports how far it is. Blocks until it is on the disk.
    ///
    /// # Errors
    /// Why it cannot be fetched.
    fn pull(&self, name: &str, report: &mut dyn FnMut(PullProgress)) -> Result<(), Refused>;

    /// Loads a language model of the list that is here into `memory_bytes`, which leave room for what the loaded models have
    /// not used yet. Dropping the caller gives its memory back.
    ///
    /// # Errors
    /// Why it cannot be loaded; nothing of it is left in memory then.
    fn load(&self, name: &str, memory_bytes: u64) -> Result<Arc<dyn Caller>, Refused>;

    /// Gives the memory that dropped models have left back to the system.
    fn release(&self) {}

    /// Gives a model another name, with a preset: one of the list, or the one at the path of a GGUF file.
    ///
    /// # Errors
    /// If the name cannot be given, or there is no such model.
    fn alias(&self, name: &str, of: &str, preset: &Preset) -> Result<(), Refused>;

    /// Removes a name that was given, with the uploaded file that no other name uses, or a fetched model from the disk.
    ///
    /// # Errors
    /// If it cannot be removed.
    fn remove(&self, name: &str) -> Result<(), Refused>;

    /// Where an uploaded file with this digest (64 hexadecimal digits) is kept.
    fn blob(&self, sha256: &str) -> PathBuf;
}

/// The language models that the server was started with. They are unloaded and loaded again; what callers know of them stays.
pub trait Preloaded: fmt::Debug + Send + Sync {
    /// Their names, with the memory that each takes.
    fn models(&self) -> Vec<(String, ModelMemory)>;

    /// Gives the memory of the model of this index back. Blocks until it is free.
    ///
    /// # Errors
    /// If calls of it run.
    fn unload(&self, model: usize) -> Result<(), Refused>;

    /// Loads the model of this index again.
    ///
    /// # Errors
    /// Why it cannot be loaded; nothing of it is left in memory then.
    fn load(&self, model: usize) -> Result<(), Refused>;
}

/// What a model takes of the memory of its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelMemory {
    /// Bytes of weights and a usual KV cache.
    pub whole: u64,
    /// As far as it can be made smaller to fit: bytes of the smallest part with which a GPU can share it with the CPU, or with
    /// keys and values in 8 bits.
    pub least: u64,
}

impl ModelMemory {
    /// Of a model that is not divided.
    pub fn undivided(bytes: u64) -> ModelMemory {
        ModelMemory { whole: bytes, least: bytes }
    }
}

/// A model of the shelf.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ShelfModel {
    pub name: String,
    /// `language`, `embedding` or `adapter`.
    pub kind: &'static str,
    pub context_tokens: usize,
    pub download_bytes: Option<u64>,
    #[serde(skip)]
    pub memory: ModelMemory,
    pub licence: String,
    /// Whether it is on this disk.
    pub here: bool,
    /// The model that it is another name of.
    pub alias_of: Option<String>,
    /// What its name brings along.
    #[serde(skip)]
    pub preset: Preset,
    /// What its files say, if it is here.
    #[serde(skip)]
    pub details: ModelDetails,
    /// The digest of its files, if it is known: 64 hexadecimal digits.
    #[serde(skip)]
    pub digest: String,
}

/// A name that was given to a model.
#[derive(Debug, Clone)]
pub struct Given {
    pub name: String,
    /// The name of the model, or the path of its file.
    pub of: String,
    pub preset: Preset,
}

/// What requests for a name use where they say nothing else.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Preset {
    /// The system message; none if it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// Options by the names that Ollama has for them.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

impl Preset {
    /// This preset, with what it lacks from that of the model which it is a name of.
    pub(crate) fn over(self, base: Preset) -> Preset {
        let system = if self.system.is_empty() { base.system } else { self.system };
        Preset { system, parameters: merged(base.parameters, self.parameters) }
    }
}

/// Options of a preset, replaced by those of a request.
pub(crate) fn merged(mut preset: Map<String, Value>, given: Map<String, Value>) -> Map<String, Value> {
    preset.extend(given.into_iter().filter(|(_, value)| !value.is_null()));
    preset
}

/// The language model on this disk that a request names.
pub(crate) fn find_named(shelf: &dyn Shelf, requested: &str) -> Option<ShelfModel> {
    find_in(&here(shelf), shelf, requested).cloned()
}

/// The language model on this disk that a request means: another name of a listed model means that model.
pub(crate) fn find_meant(shelf: &dyn Shelf, requested: &str) -> Option<Meant> {
    let here = here(shelf);
    let named = find_in(&here, shelf, requested)?;
    let of = named.alias_of.as_ref().and_then(|of| here.iter().find(|model| model.name == *of));
    Some(Meant { name: named.name.clone(), preset: named.preset.clone(), model: of.unwrap_or(named).clone() })
}

/// A model, and the name by which a request knows it.
pub(crate) struct Meant {
    pub name: String,
    pub preset: Preset,
    pub model: ShelfModel,
}

fn here(shelf: &dyn Shelf) -> Vec<ShelfModel> {
    shelf.list().into_iter().filter(|model| model.here && model.kind == "language").collect()
}

fn find_in<'a>(here: &'a [ShelfModel], shelf: &dyn Shelf, requested: &str) -> Option<&'a ShelfModel> {
    let canonical = shelf.fetchable(requested);
    let exact = |model: &&ShelfModel| model.name == requested || canonical.as_ref() == Some(&model.name);
    here.iter().find(exact).or_else(|| here.iter().find(|model| matches_name(&model.name, requested)))
}

/// How far the download of one file is.
#[derive(Debug, Clone, Serialize)]
pub struct PullProgress {
    pub file: String,
    pub done_bytes: u64,
    pub total_bytes: Option<u64>,
}

/// One model is fetched at a time.
#[derive(Debug, Default)]
pub(crate) struct Pulling(pub Mutex<()>);
