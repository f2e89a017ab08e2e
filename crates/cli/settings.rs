//! Settings of a method, from its flags.

use std::path::Path;

use anyhow::{Context, Result};
use memory::{Settings, comorag, memcot, mindgraph};

use crate::args::{Ask, MethodChoice};

/// The settings of `memlocal ask`.
///
/// # Errors
/// If the file of questions cannot be read.
pub fn of_ask(ask: &Ask) -> Result<Settings> {
    let chosen = of_method(&ask.method)?;
    let settings = Settings {
        output: ask.search.output,
        evidence_tokens: ask.search.evidence_tokens,
        memcot: memcot::Options { window: ask.search.window, ..chosen.memcot },
        options: ask.options.clone(),
        keep_prefixes: ask.cache.keep_prefixes,
        ..chosen
    };
    let mut settings = settings.with_k(ask.search.k).with_rounds(ask.search.max_iterations);
    settings.mindgraph.questions.push(ask.question.clone());
    Ok(settings)
}

/// The settings of the method flags.
///
/// # Errors
/// If the file of questions cannot be read.
pub fn of_method(choice: &MethodChoice) -> Result<Settings> {
    let questions = choice.questions.as_deref().map_or_else(|| Ok(Vec::new()), lines)?;
    Ok(Settings {
        method: choice.method,
        layout: choice.layout,
        page_tokens: choice.page_tokens,
        temperature: choice.temperature,
        seed: choice.seed,
        memcot: memcot::Options { store: choice.memcot_store, ..memcot::Options::default() },
        comorag: comorag::Options { layers: choice.layers.clone(), ..comorag::Options::default() },
        mindgraph: mindgraph::Options { focus: choice.focus, questions, ..mindgraph::Options::default() },
        ..Settings::default()
    })
}

/// The lines of a file that are not blank.
fn lines(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
