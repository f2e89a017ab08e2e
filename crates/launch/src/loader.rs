//! From the names of models to a running engine: models are found or fetched (`fetching`), checked against free memory, and
//! loaded.

use std::collections::HashMap;

use anyhow::{Context, Result};
use engine::{Config, Engine, Models};
use models::manifest::{Choice, Kind};
use models::{ComputedBy, EmbeddingModel, Footprint, LoadOptions, Precision, Quantisation};

use crate::adapters::{self, Assigned};
use crate::device::{Computing, computed_by};
use crate::failure::refusal;
use crate::fetching::{found, path_of};
use crate::flags::{EmbedderFormat, GlobalFlags, Gpu, ModelFlags};
use crate::memory_budget::{self, Loading};
use crate::typed_model::{embedder_precision, embedder_quantisation, name, quantised_name};

/// Fetches and loads the models and starts the engine. `with_embedder` is false where nothing will be embedded.
pub fn start(flags: &ModelFlags, with_embedder: bool, global: &GlobalFlags) -> Result<Engine> {
    let computing = Computing::of(global)?;
    let assigned = Assigned::of(flags)?;
    let names = &assigned.models;
    let paths = names.iter().map(|typed| path_of(typed, global)).collect::<Result<Vec<_>>>()?;
    let loading = |typed: &str| format!("cannot load {typed}");
    let options = load_options(flags);
    let mut footprints = Vec::new();
    for (typed, path) in names.iter().zip(&paths) {
        let footprint = Footprint::of(path, options).with_context(|| loading(typed))?;
        footprints.push((name(typed), footprint.computed_by(computed_by(global))));
    }
    let embedder = with_embedder.then(|| path_of(&flags.embedder, global)).transpose()?;
    let embedder_bytes = embedder.as_ref().map(|path| {
        let precision = embedder_precision(&flags.embedder, flags.quantise_embedder);
        let (by, is_gpu) = (computed_by(global), !computing.device.is_cpu());
        let bytes = EmbeddingModel::weight_bytes(path, precision, by, is_gpu);
        let bytes = bytes.with_context(|| loading(&flags.embedder))?;
        anyhow::Ok((name(&flags.embedder), bytes))
    });
    let embedder_bytes = embedder_bytes.transpose()?;
    let plan = Loading::of(&footprints, embedder_bytes.as_ref(), global);
    let plan = plan.with_fitting_kv(memory_budget::free_bytes(), &computing, global);
    let placements = plan.placements(&computing)?;
    let mut language = Vec::new();
    for (index, (typed, path)) in names.iter().zip(&paths).enumerate() {
        let placement = placements.as_ref().map(|placements| &placements[index]);
        language.push((name(typed), computing.load(path, options, placement).with_context(|| loading(typed))?));
    }
    let load_embedder = || embedder_on(&computing, &flags.embedder, flags.quantise_embedder, global);
    let embedder = with_embedder.then(load_embedder).transpose()?;
    let config = memory_budget::config(&computing, &plan, placements.as_deref())?;
    let max_draft_tokens = global.draft_tokens.unwrap_or(config.max_draft_tokens);
    let config = Config { max_draft_tokens, kv_precision: plan.kv, ..config };
    let adapters = adapters::load(flags, &assigned, &language, global)?;
    let models = Models { language, agents: assigned.agents, embedder };
    Ok(Engine::start_with(models, adapters, config, flags.shared_prompt.clone())?)
}

/// Fetches and loads the embedding model and starts an engine for it alone.
pub fn start_embedder(flags: &ModelFlags, global: &GlobalFlags) -> Result<Engine> {
    let computing = Computing::of(global)?;
    let embedder = Some(embedder_on(&computing, &flags.embedder, flags.quantise_embedder, global)?);
    let models = Models { language: Vec::new(), agents: HashMap::new(), embedder };
    Ok(Engine::start(models, Config::on(&computing.device))?)
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

/// How the language models of the flags are loaded.
pub(crate) fn load_options(flags: &ModelFlags) -> LoadOptions {
    LoadOptions { precision: precision_of(flags.quantise), yarn: flags.yarn }
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
    Ok((name(typed), footprint.computed_by(computed_by(global))))
}

/// The bytes of an embedding model's weights, without fetching or loading it, by the name that says how they are quantised.
///
/// # Errors
/// If it is no embedding model, or is neither here nor known.
pub fn embedder_bytes(typed: &str, global: &GlobalFlags) -> Result<(String, u64)> {
    let quantise = embedder_quantisation(typed, None);
    let (by, is_gpu) = (computed_by(global), global.gpu() != Gpu::None);
    let bytes = match found(typed, global)? {
        Ok(path) => EmbeddingModel::weight_bytes(&path, precision_of(quantise), by, is_gpu)
            .with_context(|| format!("cannot measure {typed}"))?,
        Err(choice) => stated_embedder_bytes(choice, quantise, by, is_gpu).ok_or_else(|| {
            refusal(format!("{choice} is a language model"), "name an embedding model with --embedder, such as bge-m3")
        })?,
    };
    Ok((quantised_name(typed, quantise), bytes))
}

/// What the manifest of an embedding model says of its bytes; none of a language model. The kernels for GPUs keep the token table
/// in 16 bits, and the manifest does not say its size: what is quantised beside it is counted as if all were in 16 bits.
fn stated_embedder_bytes(
    Choice { manifest, variant }: Choice<'_>,
    quantise: Option<Quantisation>,
    by: ComputedBy,
    is_gpu: bool,
) -> Option<u64> {
    let Kind::Encoder { .. } = manifest.kind else { return None };
    let stored = variant.weight_bytes().unwrap_or(variant.memory_mib << 20);
    // Of a weight, in half bits.
    let stored_size = match variant.name.as_str() {
        "f32" => 64,
        "f16" | "bf16" => 32,
        _ => return Some(stored),
    };
    let size = match (quantise, by) {
        (_, ComputedBy::Kernels) if is_gpu => 32,
        (Some(Quantisation::Q8_0), _) => 17,
        (Some(Quantisation::Q4K), _) => 9,
        (None, ComputedBy::Portable) => 64,
        (None, ComputedBy::Kernels | ComputedBy::PortableOnMetal) => stored_size,
    };
    Some(stored * size / stored_size)
}

/// Tokens in the KV cache of each language model, unless the user or a GPU's memory decides.
pub fn default_kv_tokens<'a>(models: impl IntoIterator<Item = &'a Footprint>) -> usize {
    let longest = models.into_iter().map(|model| model.context).max().unwrap_or(0);
    longest.max(Config::default().kv_tokens)
}

#[cfg(test)]
mod tests {
    use models::manifest::built_in;

    use super::*;

    #[test]
    fn an_embedding_model_that_is_not_here_has_the_bytes_that_its_manifest_and_its_precision_say() {
        let bytes = |name: &str, variant: &str, quantise, by, is_gpu| {
            let manifest = built_in().iter().find(|manifest| manifest.name == name).unwrap();
            stated_embedder_bytes(manifest.choose(variant).unwrap(), quantise, by, is_gpu)
        };
        let bge = |quantise, by, is_gpu| bytes("bge-m3", "f32", quantise, by, is_gpu);
        let (stored, q8_0) = (2_271_145_830, Some(Quantisation::Q8_0));
        assert_eq!(bge(None, ComputedBy::Kernels, false), Some(stored));
        assert_eq!(bge(None, ComputedBy::Kernels, true), Some(stored / 2));
        assert_eq!(bge(None, ComputedBy::Portable, true), Some(stored));
        assert_eq!(bge(q8_0, ComputedBy::Kernels, false), Some(stored * 17 / 64));
        assert_eq!(bge(q8_0, ComputedBy::Portable, false), Some(stored * 17 / 64));
        assert_eq!(bge(q8_0, ComputedBy::Kernels, true), Some(stored / 2), "as if the token table were all of it");
        assert_eq!(bytes("qwen2.5-7b-instruct", "bf16", None, ComputedBy::Kernels, false), None);
    }
}
