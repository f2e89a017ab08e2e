//! From the names of models to a running engine.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::PathBuf;

use anyhow::{Context, Result};
use calls::Role;
use candle_core::Device;
use engine::{Config, Engine, Models};
use models::fetch::{FetchOptions, Fetched, Resolved, fetch, locate, resolve};
use models::manifest::Choice;
use models::{EmbeddingModel, Footprint, LanguageModel, LoadOptions, Precision, Quantisation};

use crate::args::{Machine, ModelChoice};
use crate::progress::Downloads;
use crate::{budget, card, home};

/// Fetches and loads the models and starts the engine. `with_embedder` is false where nothing will be embedded.
pub fn start(choice: &ModelChoice, with_embedder: bool, machine: &Machine) -> Result<Engine> {
    let device = card::device(machine.gpu())?;
    let (names, roles) = assign(choice);
    let paths = names.iter().map(|typed| path_of(typed, machine)).collect::<Result<Vec<_>>>()?;
    let loading = |typed: &str| format!("cannot load {typed}");
    let options = LoadOptions { precision: precision_of(choice.quantise), yarn: choice.yarn };
    let mut footprints = Vec::new();
    for (typed, path) in names.iter().zip(&paths) {
        footprints.push((name(typed), Footprint::of(path, options).with_context(|| loading(typed))?));
    }
    let longest = footprints.iter().map(|(_, model)| model.context).max().unwrap_or(0);
    let kv_tokens = machine.kv_tokens.unwrap_or(longest.max(Config::default().kv_tokens));
    let embedder = with_embedder.then(|| path_of(&choice.embedder, machine)).transpose()?;
    let embedder_bytes = embedder.as_ref().map(|path| {
        let precision = precision_of(choice.quantise_embedder);
        let bytes = EmbeddingModel::weight_bytes(path, precision).with_context(|| loading(&choice.embedder))?;
        anyhow::Ok((name(&choice.embedder), bytes))
    });
    let embedder_bytes = embedder_bytes.transpose()?;
    if device.is_cpu() {
        budget::check(&footprints, embedder_bytes.as_ref(), kv_tokens)?;
    }
    let mut language = Vec::new();
    for (typed, path) in names.iter().zip(&paths) {
        let model = LanguageModel::load_with(path, options, &device).with_context(|| loading(typed))?;
        language.push((name(typed), model));
    }
    let load_embedder = || embedder_on(&device, &choice.embedder, choice.quantise_embedder, machine);
    let embedder = with_embedder.then(load_embedder).transpose()?;
    let config = card::config(&device, &footprints, machine.kv_tokens, kv_tokens)?;
    let config = Config { most_guesses: machine.guesses, ..config };
    Ok(Engine::start(Models { language, roles, embedder }, config)?)
}

/// The different language models as typed, and which of them serves a role; the first serves all others.
fn assign(choice: &ModelChoice) -> (Vec<&str>, HashMap<Role, usize>) {
    let mut names = vec![choice.model.as_str()];
    let mut index_of = |typed| {
        let known = names.iter().position(|known| name(known) == name(typed));
        known.unwrap_or_else(|| {
            names.push(typed);
            names.len() - 1
        })
    };
    let mut roles = HashMap::new();
    if let Some(memorizer) = &choice.memorizer {
        roles.insert(Role::Memorizer, index_of(memorizer));
    }
    if let Some(researcher) = &choice.researcher {
        let index = index_of(researcher);
        roles.extend([Role::Researcher, Role::Judge, Role::Builder].map(|role| (role, index)));
    }
    for (role, model) in [(Role::Judge, &choice.judge), (Role::Builder, &choice.builder)] {
        if let Some(model) = model {
            roles.insert(role, index_of(model));
        }
    }
    (names, roles)
}

/// Fetches and loads an embedding model. Its name says how it was quantised: the vectors are not those of the original.
pub fn load_embedder(
    typed: &str,
    quantise: Option<Quantisation>,
    machine: &Machine,
) -> Result<(String, EmbeddingModel)> {
    embedder_on(&card::device(machine.gpu())?, typed, quantise, machine)
}

fn embedder_on(
    device: &Device,
    typed: &str,
    quantise: Option<Quantisation>,
    machine: &Machine,
) -> Result<(String, EmbeddingModel)> {
    let path = path_of(typed, machine)?;
    let model = EmbeddingModel::load_with(&path, precision_of(quantise), device);
    Ok((quantised_name(typed, quantise), model.with_context(|| format!("cannot load {typed}"))?))
}

/// What a model is called that may have been made smaller, in results and beside the vectors that it made.
pub fn quantised_name(typed: &str, quantise: Option<impl Display>) -> String {
    quantise.map_or_else(|| name(typed), |quantise| format!("{}+{quantise}", name(typed)))
}

fn precision_of(quantise: Option<Quantisation>) -> Precision {
    quantise.map_or(Precision::Stored, Precision::Quantised)
}

/// Where a model's weights are, after fetching them if need be.
fn path_of(typed: &str, machine: &Machine) -> Result<PathBuf> {
    let fetched = fetched(typed, machine)?;
    fetched.entry().map(ToOwned::to_owned).with_context(|| format!("{typed} has no weights"))
}

/// A model's files, after fetching them if need be.
pub fn fetched(typed: &str, machine: &Machine) -> Result<Fetched> {
    match resolve(typed)? {
        Resolved::Local(fetched) => Ok(fetched),
        Resolved::Known(choice) => known(choice, &home::fetching(machine)?),
    }
}

/// Finds a known model on this disk, or fetches it and says where it came from.
fn known(choice: Choice<'_>, options: &FetchOptions) -> Result<Fetched> {
    if let Some(fetched) = locate(choice, options) {
        return Ok(fetched);
    }
    let fetched = bring(choice, options)?;
    eprintln!("fetched {choice} {}", fetched.source);
    Ok(fetched)
}

/// Fetches a model, with progress.
pub fn bring(choice: Choice<'_>, options: &FetchOptions) -> Result<Fetched> {
    if !options.offline {
        eprintln!("fetching {choice}");
    }
    let mut downloads = Downloads::default();
    Ok(fetch(choice, options, &mut |progress| downloads.report(progress))?)
}

/// What a model is called in results: its manifest's name and variant, or the path as typed.
pub fn name(typed: &str) -> String {
    match resolve(typed) {
        Ok(Resolved::Known(choice)) => choice.to_string(),
        _ => typed.to_owned(),
    }
}
