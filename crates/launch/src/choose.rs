//! The first run: without a configured model, proposes the best known language model that fits this machine. Only a terminal
//! is asked; anywhere else the small default is used.

use std::io::{BufRead, Write};

use anyhow::Result;
use indicatif::{BinaryBytes, HumanBytes};
use models::fetch::{FetchOptions, State, list, list_named};
use models::manifest::{Choice, Kind, Manifest, built_in};

use crate::confirmation::{can_ask, is_confirmed_by};
use crate::flags::{DEFAULT_MODEL, EndpointFlags, GlobalFlags, ModelFlags};
use crate::memory_budget::free_bytes;
use crate::{eprintln, fetching, home};

/// Part of the free memory that a proposed model may take: embedder, documents and other programs need the rest.
const PART: (u64, u64) = (3, 4);

/// Replaces the default model by the one that the user accepts, after fetching it. Does nothing where a model is named, one
/// is here already, none can be fetched, or there is no terminal to ask. `is_typed`: the command line names the model,
/// which may be the default.
///
/// # Errors
/// If this user has no home folder, or the terminal cannot be read.
pub fn first_run(
    models: &mut ModelFlags,
    endpoint: &EndpointFlags,
    is_typed: bool,
    global: &GlobalFlags,
) -> Result<()> {
    if is_chosen(models, endpoint, is_typed) || !can_ask() {
        return Ok(());
    }
    let options = home::fetching(global)?;
    let Some(free) = free_bytes().filter(|_| !options.offline && !has_language_model(&options)) else { return Ok(()) };
    let Some(best) = best_fit(free).filter(|best| best.manifest.name != DEFAULT_MODEL) else { return Ok(()) };
    if !accepts(best, free, &mut std::io::stdin().lock(), &mut std::io::stderr())? {
        return Ok(());
    }
    match fetching::bring(best, &options) {
        Ok(_) => {
            models.model = best.to_string();
            eprintln!("to use it from now on, set MEMLOCAL_MODEL={best}, or put into config.toml in the data folder:");
            eprintln!("  [models]\n  model = \"{best}\"");
        }
        Err(error) => {
            eprintln!("{best} cannot be fetched, so {DEFAULT_MODEL} is used: {}", crate::failure::in_one_line(&error));
        }
    }
    Ok(())
}

/// Whether the user has chosen what answers.
fn is_chosen(models: &ModelFlags, endpoint: &EndpointFlags, is_typed: bool) -> bool {
    is_typed || models.model != DEFAULT_MODEL || endpoint.engine.is_some()
}

fn has_language_model(options: &FetchOptions) -> bool {
    let is_language = |choice: Choice<'_>| matches!(choice.manifest.kind, Kind::Decoder { .. });
    list(options).iter().any(|listed| is_language(listed.choice) && listed.state != State::Absent)
        || list_named(options).iter().any(|named| named.kind == "language")
}

/// The default variant of the known language model that takes the most memory of those that fit.
fn best_fit(free_bytes: u64) -> Option<Choice<'static>> {
    let room = free_bytes / PART.1 * PART.0;
    let decoders = built_in().iter().filter(|manifest| matches!(manifest.kind, Kind::Decoder { .. }));
    let fitting = decoders.filter_map(Manifest::choose_default);
    fitting.filter(|choice| choice.variant.memory_mib << 20 <= room).max_by_key(|choice| choice.variant.memory_mib)
}

/// Proposes a model and reads the answer.
fn accepts(best: Choice<'_>, free: u64, answers: &mut impl BufRead, out: &mut impl Write) -> Result<bool> {
    let bytes: Option<u64> = best.variant.files.iter().map(|file| file.bytes).sum();
    let size = bytes.map_or_else(|| "of unknown size".to_owned(), |bytes| HumanBytes(bytes).to_string());
    let memory = BinaryBytes(best.variant.memory_mib << 20);
    let licence = &best.manifest.licence;
    writeln!(out, "no model is configured. The best known one for this machine is {best}:")?;
    writeln!(out, "  download {size}, memory {memory} of {} that are free, licence {licence}", BinaryBytes(free))?;
    Ok(is_confirmed_by(format_args!("fetch and use it instead of the small {DEFAULT_MODEL}?"), answers, out)?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::tests::Flags;

    #[test]
    fn a_model_that_is_named_is_not_replaced() {
        let is_chosen = |words: &[&str], is_typed: bool| {
            let words = ["memlocal"].into_iter().chain(words.iter().copied());
            let Flags { models, endpoint, .. } = Flags::try_parse_from(words).unwrap();
            is_chosen(&models, &endpoint, is_typed)
        };
        assert!(!is_chosen(&[], false));
        assert!(is_chosen(&["--model", DEFAULT_MODEL], true), "the default, by its name");
        assert!(is_chosen(&["--model", "qwen2.5-0.5b-instruct"], true));
        assert!(is_chosen(&["--engine", "http://127.0.0.1:8000/v1"], false));
    }

    #[test]
    fn the_largest_model_that_leaves_a_quarter_of_memory_free_is_proposed() {
        let best = |gib: u64| best_fit(gib << 30).map(|choice| choice.to_string());
        assert_eq!(best(0), None);
        assert_eq!(best(1).as_deref(), Some("qwen2.5-0.5b-instruct:q4_k_m"));
        assert_eq!(best(6).as_deref(), Some("qwen2.5-3b-instruct:q4_k_m"));
        assert_eq!(best(8).as_deref(), Some("qwen2.5-7b-instruct:q4_k_m"));
        assert_eq!(best(64).as_deref(), Some("qwen2.5-32b-instruct:q4_k_m"));
    }

    #[test]
    fn a_proposal_states_size_memory_and_licence_and_only_yes_accepts_it() {
        let answer = |typed: &str| {
            let mut out = Vec::new();
            let best = best_fit(8 << 30).unwrap();
            let accepted = accepts(best, 8 << 30, &mut typed.as_bytes(), &mut out).unwrap();
            (accepted, String::from_utf8(out).unwrap())
        };
        let (accepted, shown) = answer("y\n");
        assert!(accepted);
        assert!(
            shown.contains("download 4.36 GiB, memory 5.06 GiB of 8.00 GiB that are free, licence Apache-2.0"),
            "{shown}"
        );
        for no in ["", "\n", "n\n", "maybe\n"] {
            assert!(!answer(no).0, "{no:?}");
        }
        assert!(answer(" YES \n").0);
    }
}
