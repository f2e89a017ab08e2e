//! The config file: defaults of flags. The command line overrides the environment, the environment overrides the file,
//! and the file overrides the defaults of a bundle, which override built-in defaults.
//!
//! ```toml
//! threads = 4                  # flags of every command
//! gpu = "auto"
//!
//! [models]                     # which model plays which agent, for the commands that run, train or bundle models
//! model = "qwen2.5-7b-instruct"
//! memorizer = "qwen2.5-1.5b-instruct"
//!
//! [serve]                      # flags of one command
//! port = 8080
//! ```
//!
//! The names are those of the flags. The values become the flags' defaults, so this module knows no flag by name. A value whose
//! flag conflicts with one that is given elsewhere is overridden by it: with `--model` the file's `engine` has no effect. A
//! command takes a setting of `[models]` if it has the flag under the heading of models and the flag takes the value; a setting
//! that no command takes is an error. Sections are for the commands of `memlocal`; `memlocal-bench` reads the flags of every
//! command only.

mod defaults;
mod file;
mod given;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Command, FromArgMatches};

use crate::failure::refusal;
use crate::{home, usage};
use defaults::with_bundle;
use file::File;
pub use file::Sections;
use given::{Given, with_effective_variables};

/// Its name in the data folder.
const FILE: &str = "config.toml";

/// Parses the command line, with the config file's values as defaults.
///
/// # Errors
/// If the file has a setting that is no flag, or a value that its flag does not take; if the bundle is none.
pub fn parse<A: FromArgMatches>(command: Command, sections: Sections) -> Result<A> {
    let (command, given) = with_effective_variables(command, &words());
    let command = match home::bundle_of(typed(&command, "bundle").as_deref())? {
        Some(bundle) => with_bundle(command, &bundle, &given),
        None => command,
    };
    let command = match find(&command)? {
        Some(path) => {
            let text = text_of(&path)?;
            File { path: &path, text: &text, given: &given }.apply(command, sections)?
        }
        None => command,
    };
    Ok(usage::parse(command))
}

/// Parses the command line alone, without the config file. Without a result it is wrong too: what it lacks may be what the file
/// was to say.
pub fn parse_without_file<A: FromArgMatches>(command: Command) -> Option<A> {
    usage::try_parse(with_effective_variables(command, &words()).0).ok()
}

/// The words of the command line.
fn words() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// Whether the command line itself gives this argument to its command.
pub fn types(command: &Command, argument: &str) -> bool {
    Given::of(command, std::env::args_os()).typed.iter().any(|id| id == argument)
}

/// The file that the command line names, or the one in the data folder if there is one.
///
/// # Errors
/// If this user has no home folder.
pub fn find(command: &Command) -> Result<Option<PathBuf>> {
    if let Some(named) = typed(command, "config") {
        return Ok(Some(named));
    }
    let known = home::folder_of(typed(command, "data_dir").as_deref())?.join(FILE);
    // A link whose target is gone is a file that cannot be read, not a file that is not there.
    Ok(known.symlink_metadata().is_ok().then_some(known))
}

/// The text of the file.
fn text_of(path: &Path) -> Result<String> {
    let unreadable = |reason: String| {
        let cause = format!("cannot read the config file {}: {reason}", path.display());
        refusal(cause, "--config or MEMLOCAL_CONFIG names it")
    };
    let bytes = fs::read(path).map_err(|error| unreadable(error.to_string()))?;
    String::from_utf8(bytes).map_err(|_| unreadable("it is not text in UTF-8".into()))
}

/// The path that the command line gives to a flag, before the command line is checked.
fn typed(command: &Command, flag: &str) -> Option<PathBuf> {
    let matches = command.clone().ignore_errors(true).try_get_matches().ok()?;
    matches.try_get_one::<PathBuf>(flag).ok().flatten().cloned()
}
