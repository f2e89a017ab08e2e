//! Reports wrong usage.

use clap::Command;
use clap::error::{ContextKind, ContextValue};

use crate::output::{error_has_colours, print_styled_error};

/// Reports wrong usage and exits.
pub(super) fn exit_with_usage(mut error: clap::Error, command: &Command) -> ! {
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand).cloned()
        && let Some(nearest) = nearest(&given, command)
    {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![nearest]));
    }
    let message = error.render();
    let message = if error_has_colours() { message.ansi().to_string() } else { message.to_string() };
    print_styled_error(in_plain_words(message.trim_end()));
    std::process::exit(error.exit_code())
}

/// A message of clap without the terms of Rust for what is no number.
pub(super) fn in_plain_words(message: &str) -> String {
    [
        ("invalid digit found in string", "expected a whole number"),
        ("cannot parse integer from empty string", "expected a whole number"),
        ("number too large to fit in target type", "the number is too large"),
        ("invalid float literal", "expected a number"),
        ("cannot parse float from empty string", "expected a number"),
    ]
    .into_iter()
    .fold(message.to_owned(), |message, (theirs, ours)| message.replace(theirs, ours))
}

/// The subcommand that a word most likely misspells, at its position on the command line.
fn nearest(given: &str, command: &Command) -> Option<String> {
    let words = std::env::args_os().skip(1).take_while(|word| word != given);
    let parent = words.fold(command, |parent, word| parent.find_subcommand(word).unwrap_or(parent));
    let names = parent.get_subcommands().filter(|known| !known.is_hide_set()).map(Command::get_name);
    let edits = names.map(|name| (strsim::damerau_levenshtein(given, name), name));
    edits.filter(|(edits, _)| *edits <= 2).min().map(|(_, name)| name.to_owned())
}
