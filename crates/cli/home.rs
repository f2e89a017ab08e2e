//! Where data live.

use std::path::PathBuf;

use anyhow::{Context, Result};
use models::fetch::FetchOptions;
use store::Corpora;

use crate::args::Args;

/// The data folder: `--data-dir`, MEMLOCAL_HOME, or where the platform puts such things.
pub fn folder(args: &Args) -> Result<PathBuf> {
    if let Some(folder) = &args.data_dir {
        return Ok(folder.clone());
    }
    let folders = directories::ProjectDirs::from("", "", "memlocal").context("this user has no home folder")?;
    Ok(folders.data_dir().to_owned())
}

/// The corpora in the data folder.
pub fn corpora(args: &Args) -> Result<Corpora> {
    Ok(Corpora::new(folder(args)?))
}

/// How models are found: everything is allowed but what `--offline` or HF_HUB_OFFLINE forbids.
pub fn fetching(args: &Args) -> Result<FetchOptions> {
    let mut options = FetchOptions::new(folder(args)?.join("models"));
    options.offline = is_offline(args);
    Ok(options)
}

fn is_offline(args: &Args) -> bool {
    let set = |value: String| !matches!(value.to_ascii_lowercase().as_str(), "" | "0" | "false" | "no" | "off");
    args.offline || std::env::var("HF_HUB_OFFLINE").is_ok_and(set)
}
