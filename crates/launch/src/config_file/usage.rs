//! Reports wrong usage.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use crate::output::{error_has_colours, print_styled_error};

/// Reports wrong usage and exits. A command without arguments gets its help.
pub(super) fn exit_with_usage(mut error: clap::Error, command: &Command) -> ! {
    // The help has no secrets, but an example of an address with a password, which stays as it is.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand).cloned()
        && let Some(nearest) = nearest(&given, command)
    {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![nearest]));
    }
    let message = error.render();
    let message = if error_has_colours() { message.ansi().to_string() } else { message.to_string() };
    print_styled_error(in_plain_words(message.trim_end()));
    if let Some(hint) = hint(&error, command, &std::env::args_os().collect::<Vec<_>>()) {
        print_styled_error(format_args!("hint: {hint}"));
    }
    std::process::exit(error.exit_code())
}

/// The hint where clap does not say what is to be corrected.
fn hint(error: &clap::Error, command: &Command, words: &[OsString]) -> Option<String> {
    match error.kind() {
        ErrorKind::UnknownArgument if is_unquoted_question(error, command, words) => {
            Some("put the question in quotes after `ask`".into())
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let name = variable_of(&flag_of(error)?, command, words)?;
            Some(format!("this is the value of the environment variable {name}"))
        }
        _ => None,
    }
}

/// Whether `ask` has more words than its question.
fn is_unquoted_question(error: &clap::Error, command: &Command, words: &[OsString]) -> bool {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return false };
    let matches = command.clone().ignore_errors(true).try_get_matches_from(words);
    !word.starts_with('-') && matches.is_ok_and(|matches| matches.subcommand_name() == Some("ask"))
}

/// The name of the flag whose value is wrong, without its dashes.
pub(super) fn flag_of(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = argument.strip_prefix("--")?.split([' ', '[', '=']).next()?;
    Some(name.to_owned())
}

/// The variable of the environment that sets a flag, if the flag is not typed.
fn variable_of(flag: &str, command: &Command, words: &[OsString]) -> Option<String> {
    let is_flag = |word: &OsString| {
        let rest = word.to_str().and_then(|word| word.strip_prefix("--")?.strip_prefix(flag));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    if words.iter().any(is_flag) {
        return None;
    }
    let arguments = command.get_arguments().chain(command.get_subcommands().flat_map(Command::get_arguments));
    let mut variables = arguments.filter(|argument| argument.get_long() == Some(flag)).filter_map(Arg::get_env);
    let set = variables.find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    set.map(|name| name.to_string_lossy().into_owned())
}

/// A message of clap without the terms of Rust for what is no number.
pub(super) fn in_plain_words(message: &str) -> String {
    [
        ("invalid digit found in string", "expected a whole number"),
        ("cannot parse integer from empty string", "expected a whole number"),
        ("number too large to fit in target type", "the number is too large"),
        ("invalid float literal", "expected a number"),
        ("cannot parse float from empty string", "expected a number"),
        ("invalid IP address syntax", "expected an IP address such as 127.0.0.1 or ::1"),
        (" is not in 0..=", " is not in 0 to "),
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
