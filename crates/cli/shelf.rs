//! The models that this machine can serve: the built-in ones, those of the hub that were fetched, files that were named, and
//! the names that clients gave. The server lists, fetches, loads and removes them here.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use calls::{Caller, ModelDetails};
use launch::failure::{hint_of, in_one_line};
use launch::flags::GlobalFlags;
use launch::memory_budget;
use launch::one_model::OneModel;
use launch::plan::ModelBytes;
use models::Quantisation;
use models::fetch::{
    FetchOptions, Fetched, Progress, Receipt, Resolved, State, fetch, fetch_named, list, list_named, locate,
    locate_named, remove, remove_named, resolve,
};
use models::manifest::{Kind, Role};
use server::{Given, ModelMemory, Preset, PullProgress, Refused, Shelf, ShelfModel};

use crate::model_names::{BLOBS, Named, Names};

/// The models folder of a data folder, and the files and names beside it.
#[derive(Debug)]
pub struct LocalModels {
    options: FetchOptions,
    global: GlobalFlags,
    quantise: Option<Quantisation>,
    /// Names of files that were given at start.
    files: Vec<(String, PathBuf)>,
    names: Names,
    folder: PathBuf,
    inspected: Mutex<HashMap<String, Inspected>>,
}

/// What is known of a model on the disk, while its files have this time and size.
#[derive(Debug, Clone)]
struct Inspected {
    stamp: Option<(SystemTime, u64)>,
    context_tokens: usize,
    memory: ModelMemory,
    details: ModelDetails,
}

impl LocalModels {
    /// The models of this data folder; `files` are names of further ones with their paths.
    pub fn new(
        options: FetchOptions,
        global: &GlobalFlags,
        quantise: Option<Quantisation>,
        files: Vec<(String, PathBuf)>,
        folder: PathBuf,
    ) -> LocalModels {
        let (global, inspected) = (global.clone(), Mutex::default());
        LocalModels { options, global, quantise, files, names: Names::in_folder(&folder), folder, inspected }
    }

    /// The built-in models.
    fn built_in(&self) -> Vec<ShelfModel> {
        let model = |listed: models::fetch::Listed| {
            let (manifest, variant) = (listed.choice.manifest, listed.choice.variant);
            let is_language = matches!(manifest.kind, Kind::Decoder { .. });
            let digest = match &listed.state {
                State::Installed(receipt) => digest_of(receipt),
                _ => variant
                    .files
                    .iter()
                    .find(|file| file.role == Role::Weights)
                    .and_then(|file| file.sha256.as_ref())
                    .map(ToString::to_string),
            };
            let model = ShelfModel {
                name: listed.choice.to_string(),
                kind: if is_language { "language" } else { "embedding" },
                context_tokens: manifest.context_tokens,
                download_bytes: variant.files.iter().map(|file| file.bytes).sum(),
                memory: ModelMemory::undivided(variant.memory_mib << 20),
                licence: manifest.licence.clone(),
                here: listed.state != State::Absent,
                digest: digest.unwrap_or_default(),
                ..ShelfModel::default()
            };
            if is_language { self.with_details(model, locate(listed.choice, &self.options)) } else { model }
        };
        list(&self.options).into_iter().map(model).collect()
    }

    /// Models of the hub that were fetched by their names.
    fn of_hub(&self) -> Vec<ShelfModel> {
        let model = |named: models::fetch::Named| {
            let bytes = named.receipt.files.iter().map(|file| file.bytes).sum();
            let model = ShelfModel {
                name: named.name.to_string(),
                kind: named.kind,
                download_bytes: Some(bytes),
                memory: ModelMemory::undivided(bytes),
                licence: named.receipt.licence.clone().unwrap_or_default(),
                here: true,
                digest: digest_of(&named.receipt).unwrap_or_default(),
                ..ShelfModel::default()
            };
            let fetched = locate_named(&named.name, &self.options);
            if named.kind == "language" { self.with_details(model, fetched) } else { model }
        };
        list_named(&self.options).into_iter().map(model).collect()
    }

    /// A file or folder under a name.
    fn at_path(&self, name: String, path: &Path) -> ShelfModel {
        let typed = path.to_string_lossy();
        let fetched = match resolve(&typed) {
            Ok(Resolved::Local(fetched)) => Some(fetched),
            _ => None,
        };
        let digest = path.file_stem().and_then(|stem| stem.to_str()?.strip_prefix("sha256-")).unwrap_or_default();
        let model =
            ShelfModel { name, kind: "language", here: true, digest: digest.to_owned(), ..ShelfModel::default() };
        self.with_details_of(&typed, model, fetched)
    }

    fn with_details(&self, model: ShelfModel, fetched: Option<Fetched>) -> ShelfModel {
        let typed = model.name.clone();
        self.with_details_of(&typed, model, fetched)
    }

    /// Adds what the files say; a model whose files cannot be read is not here.
    fn with_details_of(&self, typed: &str, mut model: ShelfModel, fetched: Option<Fetched>) -> ShelfModel {
        if !model.here {
            return model;
        }
        match fetched.and_then(|fetched| self.inspect(typed, &fetched)) {
            Some(Inspected { context_tokens, memory, details, .. }) => {
                model = ShelfModel { context_tokens, memory, details, ..model };
            }
            None => model.here = false,
        }
        model
    }

    fn inspect(&self, typed: &str, fetched: &Fetched) -> Option<Inspected> {
        let stamp = fetched.entry().and_then(|entry| entry.metadata().ok());
        let stamp = stamp.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len())));
        let mut inspected = self.inspected.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = inspected.get(typed).filter(|known| known.stamp == stamp) {
            return Some(known.clone());
        }
        let model = OneModel::find(typed, self.quantise, &self.global).ok()?;
        let inspection = model.inspect().ok()?;
        let (footprint, source) = (inspection.footprint, inspection.source);
        let modified = source.modified().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        let details = ModelDetails {
            bytes: source.bytes(),
            modified_seconds: modified.as_secs(),
            format: source.labels.format.to_owned(),
            family: inspection.architecture,
            parameters: footprint.shape.parameters(),
            quantisation: source.labels.quantisation,
            template: source.labels.template,
            ..ModelDetails::default()
        };
        let memory = memory(model.memory(footprint));
        let found = Inspected { stamp, context_tokens: footprint.context, memory, details };
        inspected.insert(typed.to_owned(), found.clone());
        Some(found)
    }

    /// What a name of the list is loaded from.
    fn typed(&self, name: &str) -> Option<String> {
        let file = self.files.iter().find(|(known, _)| known == name);
        let file = file.map(|(_, path)| path.to_string_lossy().into_owned());
        file.or_else(|| self.names.all().remove(name).map(|named| named.of)).or_else(|| self.fetchable(name))
    }
}

/// What a model takes, as the server reckons with it.
pub fn memory(ModelBytes { whole, least }: ModelBytes) -> ModelMemory {
    ModelMemory { whole, least }
}

/// The digest of the first file of weights.
fn digest_of(receipt: &Receipt) -> Option<String> {
    receipt.files.iter().find(|file| file.role == Role::Weights).map(|file| file.sha256.to_string())
}

/// Why something failed, as clients of the server read it.
pub fn refused(error: &anyhow::Error) -> Refused {
    (in_one_line(error), hint_of(error))
}

impl Shelf for LocalModels {
    fn list(&self) -> Vec<ShelfModel> {
        let mut models: Vec<ShelfModel> = self.built_in().into_iter().chain(self.of_hub()).collect();
        models.extend(self.files.iter().map(|(name, path)| self.at_path(name.clone(), path)));
        for (name, Named { of, preset }) in self.names.all() {
            let known = models.iter().find(|model| model.name == of && model.alias_of.is_none()).cloned();
            let named = match known {
                Some(model) => ShelfModel { name, preset, alias_of: Some(of), ..model },
                None => ShelfModel { preset, alias_of: Some(of.clone()), ..self.at_path(name, Path::new(&of)) },
            };
            models.push(named);
        }
        models
    }

    fn given(&self, name: &str) -> Option<Given> {
        let Named { of, preset } = self.names.all().remove(name)?;
        Some(Given { name: name.to_owned(), of, preset })
    }

    fn free_bytes(&self) -> Option<u64> {
        memory_budget::free_for(&self.global)
    }

    fn fetchable(&self, name: &str) -> Option<String> {
        let of_hub = ["hf.co/", "huggingface.co/"].into_iter().find_map(|host| name.strip_prefix(host));
        let name = of_hub.map_or_else(|| name.to_owned(), |rest| format!("hf:{rest}"));
        match resolve(name.strip_suffix(":latest").unwrap_or(&name)).ok()? {
            Resolved::Known(choice) => Some(choice.to_string()),
            Resolved::Named(name) => Some(name.to_string()),
            Resolved::Local(_) => None,
        }
    }

    fn pull(&self, name: &str, report: &mut dyn FnMut(PullProgress)) -> Result<(), Refused> {
        let report = &mut |at: Progress<'_>| {
            report(PullProgress { file: at.file.to_owned(), done_bytes: at.done_bytes, total_bytes: at.total_bytes });
        };
        let fetched = match resolve(name) {
            Ok(Resolved::Known(choice)) => fetch(choice, &self.options, report).map(drop),
            Ok(Resolved::Named(name)) => fetch_named(&name, &self.options, report).map(drop),
            Ok(Resolved::Local(_)) => return Err((format!("there is no model {name}"), None)),
            Err(error) => Err(error),
        };
        fetched.map_err(|error| (error.to_string(), error.hint()))
    }

    fn load(&self, name: &str, memory_bytes: u64) -> Result<Arc<dyn Caller>, Refused> {
        let typed = self.typed(name).ok_or_else(|| (format!("there is no model {name}"), None))?;
        let found = OneModel::find(&typed, self.quantise, &self.global);
        let loaded = found.and_then(|model| model.load(name, memory_bytes));
        loaded.map(|engine| Arc::new(engine) as Arc<dyn Caller>).map_err(|error| refused(&error))
    }

    fn release(&self) {
        memory_budget::release(&self.global);
    }

    fn alias(&self, name: &str, of: &str, preset: &Preset) -> Result<(), Refused> {
        let is_taken = self.fetchable(name).is_some() || self.files.iter().any(|(known, _)| known == name);
        if is_taken {
            return Err((format!("`{name}` is the name of another model"), Some("choose another name".to_owned())));
        }
        let of = self.typed(of).unwrap_or_else(|| of.to_owned());
        // A relative path would mean another file after the next start.
        if self.fetchable(&of).is_none() && !Path::new(&of).is_absolute() {
            return Err((
                format!("there is no model {of}"),
                Some("name a model that is here, or an absolute path".to_owned()),
            ));
        }
        let model = OneModel::find(&of, self.quantise, &self.global).and_then(|model| model.inspect());
        model.map_err(|error| refused(&error))?;
        self.names.add(name, Named { of, preset: preset.clone() })
    }

    fn remove(&self, name: &str) -> Result<(), Refused> {
        if let Some(Named { of, .. }) = self.names.remove(name)? {
            let is_upload = Path::new(&of).starts_with(self.folder.join(BLOBS));
            if is_upload && !self.names.all().values().any(|other| other.of == of) {
                std::fs::remove_file(&of).map_err(|error| (format!("{of} cannot be removed: {error}"), None))?;
                // The packed weights beside it, if it was ever loaded.
                let _ = std::fs::remove_file(format!("{of}.packed"));
            }
            return Ok(());
        }
        let removed = match resolve(name) {
            Ok(Resolved::Known(choice)) => remove(choice, &self.options),
            Ok(Resolved::Named(name)) => remove_named(&name, &self.options),
            Ok(Resolved::Local(_)) => {
                return Err((format!("`{name}` is a file that the server was started with"), None));
            }
            Err(error) => Err(error),
        };
        removed.map_err(|error| (error.to_string(), error.hint()))
    }

    fn blob(&self, sha256: &str) -> PathBuf {
        self.folder.join(BLOBS).join(format!("sha256-{sha256}.gguf"))
    }
}
