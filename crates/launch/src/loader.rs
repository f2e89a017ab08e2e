//! From the names of models to a running engine: models are found or fetched (`fetching`), checked against free memory, and
//! loaded.

use anyhow::{Context, Result};
use engine::{Config, Engine, Models};
use models::manifest::Choice;
use models::{EmbeddingModel, Footprint, LoadOptions, Precision, Quantisation};

use crate::adapters::{self, Assigned};
use crate::device::Computing;
use crate::failure::refusal;
use crate::fetching::{found, path_of};
use crate::flags::{EmbedderFormat, GlobalFlags, ModelFlags};
use crate::memory_budget::{self, Loading};
use crate::typed_model::{embedder_precision, embedder_quantisation, name, quantised_name};

/// Fetches and loads the models and starts the engine. `with_embedder` is false where nothing will be embedded.
pub fn start(flags: &ModelFlags, with_embedder: bool, global: &GlobalFlags) -> Result<Engine> {
    let computing = Computing::of(global)?;
    let assigned = Assigned::of(flags)?;
    let names = &assigned.models;
    let paths = names.iter().map(|typed| path_of(typed, global)).collect::<Result<Vec<_>>>()?;
    let loading = |typed: &str| format!("cannot load {typed}");
    let options = LoadOptions { precision: precision_of(flags.quantise), yarn: flags.yarn };
    let mut footprints = Vec::new();
    for (typed, path) in names.iter().zip(&paths) {
        footprints.push((name(typed), Footprint::of(path, options).with_context(|| loading(typed))?));
    }
    let embedder = with_embedder.then(|| path_of(&flags.embedder, global)).transpose()?;
    let embedder_bytes = embedder.as_ref().map(|path| {
        let precision = embedder_precision(&flags.embedder, flags.quantise_embedder);
        let bytes = EmbeddingModel::weight_bytes(path, precision).with_context(|| loading(&flags.embedder))?;
        anyhow::Ok((name(&flags.embedder), bytes))
    });
    let embedder_bytes = embedder_bytes.transpose()?;
    let plan = Loading::of(&footprints, embedder_bytes.as_ref(), global);
    let placements = plan.placements(&computing)?;
    let mut language = Vec::new();
    for (index, (typed, path)) in names.iter().zip(&paths).enumerate() {
        let placement = placements.as_ref().map(|placements| &placements[index]);
        language.push((name(typed), computing.load(path, options, placement).with_context(|| loading(typed))?));
    }
    let load_embedder = || embedder_on(&computing, &flags.embedder, flags.quantise_embedder, global);
    let embedder = with_embedder.then(load_embedder).transpose()?;
    let config = memory_budget::config(&computing, &plan, placements.as_deref())?;
    let config = Config { max_draft_tokens: global.draft_tokens, kv_precision: plan.kv, ..config };
    let adapters = adapters::load(flags, &assigned, &language, global)?;
    let models = Models { language, agents: assigned.agents, embedder };
    Ok(Engine::start_with(models, adapters, config)?)
}

/// Fetches and loads an embedding model. Its name says how it was quantised: the vectors are not those of the original.
pub fn load_embedder(
    typed: &str,
    format: Option<EmbedderFormat>,
    global: &GlobalFlags,
) -> Result<(String, EmbeddingModel)> {
    embedder_on(&Computing::of(global)?, typed, format, global)
}

fn embedder_on(
    computing: &Computing,
    typed: &str,
    format: Option<EmbedderFormat>,
    global: &GlobalFlags,
) -> Result<(String, EmbeddingModel)> {
    let quantise = embedder_quantisation(typed, format);
    let path = path_of(typed, global)?;
    let model = EmbeddingModel::load_on(&path, precision_of(quantise), &*computing.backend);
    Ok((quantised_name(typed, quantise), model.with_context(|| format!("cannot load {typed}"))?))
}

pub(crate) fn precision_of(quantise: Option<Quantisation>) -> Precision {
    quantise.map_or(Precision::Stored, Precision::Quantised)
}

/// What a language model would take, without fetching or loading it.
pub fn footprint(typed: &str, global: &GlobalFlags) -> Result<(String, Footprint)> {
    let footprint = match found(typed, global)? {
        Ok(path) => Footprint::of(&path, LoadOptions::default()).with_context(|| format!("cannot measure {typed}"))?,
        Err(choice) => Footprint::of_manifest(choice).ok_or_else(|| {
            refusal(format!("{choice} is an embedding model"), "name it with --embedder, beside a language model")
        })?,
    };
    Ok((name(typed), footprint))
}

/// The bytes of an embedding model's weights, without fetching or loading it.
pub fn embedder_bytes(typed: &str, global: &GlobalFlags) -> Result<(String, u64)> {
    let bytes = match found(typed, global)? {
        Ok(path) => {
            let precision = embedder_precision(typed, None);
            EmbeddingModel::weight_bytes(&path, precision).with_context(|| format!("cannot measure {typed}"))?
        }
        Err(Choice { variant, .. }) => variant.weight_bytes().unwrap_or(variant.memory_mib << 20),
    };
    Ok((name(typed), bytes))
}

/// Tokens in the KV cache of each language model, unless the user or a GPU's memory decides.
pub fn default_kv_tokens<'a>(models: impl IntoIterator<Item = &'a Footprint>) -> usize {
    let longest = models.into_iter().map(|model| model.context).max().unwrap_or(0);
    longest.max(Config::default().kv_tokens)
}
