//! The reader adapter that `memlocal train` keeps beside a corpus, and `--adapter corpus` and `corpus:NAME`, which name it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use calls::reading;
use serde_json::Value;
use store::Corpus;

use crate::failure::refusal;
use crate::flags::{AdapterFlag, GlobalFlags, ModelFlags};
use crate::{home, typed_model};

/// The folder of the adapter of a corpus.
pub fn reader_of(corpus: &Corpus) -> PathBuf {
    corpus.trained().join(reading::ADAPTER)
}

/// Replaces `corpus` and `corpus:NAME` by the adapters beside these corpora; `asked` is the corpus that is asked.
///
/// # Errors
/// If there is no such corpus, it has no adapter, or the adapter was trained for another model than `model`.
pub fn resolve(model: &str, adapters: &mut [AdapterFlag], asked: Option<&str>, global: &GlobalFlags) -> Result<()> {
    let model = typed_model::without_adapter(model, model, adapters).to_owned();
    for flag in adapters {
        let AdapterFlag::Corpus(named) = flag else { continue };
        let Some(name) = named.as_deref().or(asked) else {
            let hint = "name the corpus: --adapter corpus:NAME";
            return Err(refusal("`--adapter corpus` is for a command with --corpus, and none is given", hint));
        };
        let path = reader_of(&home::corpora(global)?.open(name)?);
        if !path.is_dir() {
            let hint = format!("memlocal train --corpus {name} makes one");
            return Err(refusal(format!("there is no adapter beside the corpus {name}"), hint));
        }
        check_base(&path, &model, name)?;
        *flag = AdapterFlag::At { name: reading::ADAPTER.to_owned(), path };
    }
    Ok(())
}

/// Checks that the adapter of a corpus was trained for a model.
///
/// # Errors
/// If it was trained for another one, or its configuration cannot be read.
pub fn check_base(adapter: &Path, model: &str, corpus: &str) -> Result<()> {
    let (trained_for, model) = (configuration(adapter)?["base_model_name_or_path"].clone(), typed_model::base(model));
    if trained_for == model {
        return Ok(());
    }
    let trained_for = trained_for.as_str().unwrap_or("an unknown model");
    let hint = format!(
        "--model {trained_for}, or make one for this model: memlocal train --corpus {corpus} --anew --model {model}"
    );
    Err(refusal(format!("the adapter of the corpus {corpus} is for {trained_for}, not for {model}"), hint))
}

/// The contents of an adapter's `adapter_config.json`.
///
/// # Errors
/// If the path is no folder in PEFT's format.
pub fn configuration(adapter: &Path) -> Result<Value> {
    let file = adapter.join("adapter_config.json");
    let read = || format!("cannot read {}", file.display());
    serde_json::from_slice(&fs::read(&file).with_context(read)?).with_context(read)
}

/// The first adapter of the flags that is in the folder of a corpus of this data folder: it may contain words of documents
/// that only the owner of the corpus may read.
///
/// # Errors
/// If this user has no home folder.
pub fn private<'a>(models: &'a ModelFlags, global: &GlobalFlags) -> Result<Option<&'a Path>> {
    let folder = home::folder(global)?;
    let private: Vec<PathBuf> =
        ["corpora", "tenants"].iter().filter_map(|name| fs::canonicalize(folder.join(name)).ok()).collect();
    let is_private =
        |path: &&Path| fs::canonicalize(path).is_ok_and(|path| private.iter().any(|folder| path.starts_with(folder)));
    let paths = models.adapters.iter().filter_map(|flag| match flag {
        AdapterFlag::At { path, .. } => Some(path.as_path()),
        AdapterFlag::None | AdapterFlag::Corpus(_) => None,
    });
    Ok(paths.into_iter().find(is_private))
}
