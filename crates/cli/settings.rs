//! Settings of a method, from its flags.

use anyhow::Result;
use memory::{Settings, methods};

use crate::args::{Ask, MethodChoice};

/// The settings of `memlocal ask`.
///
/// # Errors
/// If a file that a flag names cannot be read.
pub fn of_ask(ask: &Ask) -> Result<Settings> {
    let mut settings = Settings {
        evidence_tokens: ask.search.evidence_tokens,
        choices: ask.options.clone(),
        keep_prefixes: ask.cache.keep_prefixes,
        ..of_method(&ask.method)?
    };
    ask.search.options.apply(&mut settings)?;
    methods::ALL.iter().for_each(|method| method.expect_question(&ask.question, &mut settings));
    Ok(settings)
}

/// The settings of the method flags.
///
/// # Errors
/// If a file that a flag names cannot be read.
pub fn of_method(choice: &MethodChoice) -> Result<Settings> {
    let mut settings = Settings {
        method: choice.method,
        layout: choice.layout,
        profile: choice.profile,
        page_tokens: choice.page_tokens,
        temperature: choice.temperature,
        seed: choice.seed,
        ..Settings::default()
    };
    choice.options.apply(&mut settings)?;
    Ok(settings)
}
