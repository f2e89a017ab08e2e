//! Parses a command line and reports wrong usage.

use std::error::Error;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command, FromArgMatches};

use crate::output::{error_has_colours, print_styled_error};

/// The arguments of the command line. Wrong usage is reported and ends the program.
pub fn parse<A: FromArgMatches>(command: Command) -> A {
    let known = command.clone();
    try_parse(command).unwrap_or_else(|error| exit_with_usage(error, &known))
}

/// The arguments, or what is wrong with them. Help that was requested is printed, and ends the program.
pub(crate) fn try_parse<A: FromArgMatches>(command: Command) -> Result<A, clap::Error> {
    let parsed = command.try_get_matches().and_then(|matches| A::from_arg_matches(&matches));
    parsed.map_err(|error| if error.use_stderr() { error } else { error.exit() })
}

/// Reports wrong usage and exits. A command without arguments gets its help.
fn exit_with_usage(mut error: clap::Error, command: &Command) -> ! {
    // The help has no secrets, but an example of an address with a password, which stays as it is.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let hint = take_hint(&mut error, command, &words);
    let message = error.render();
    let message = if error_has_colours() { message.ansi().to_string() } else { message.to_string() };
    print_styled_error(in_plain_words(without_reference(&message).trim_end()));
    print_styled_error(format_args!("hint: {hint}"));
    std::process::exit(error.exit_code())
}

/// The hint what to correct. clap's suggestions are removed from the error.
fn take_hint(error: &mut clap::Error, command: &Command, words: &[OsString]) -> String {
    let suggestion = take_suggestion(error);
    hint(error, command, words).or(suggestion).unwrap_or_else(|| {
        let what = if error.kind() == ErrorKind::InvalidSubcommand { "commands" } else { "arguments" };
        format!("{} --help shows its {what}", path_of(command, words))
    })
}

/// A suggestion of clap. Those of subcommands are dropped, since `nearest` has better ones, flags that the word does not
/// resemble, and that an unknown flag may have been meant as a value.
fn take_suggestion(error: &mut clap::Error) -> Option<String> {
    let given = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    let mut take = |kind| error.remove(kind).map(|value| value.to_string()).filter(|text| !text.is_empty());
    take(ContextKind::SuggestedSubcommand);
    let [argument, value, other] =
        [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::Suggested].map(&mut take);
    let begins_as = |meant: &String| given.get(.."--abc".len()).is_some_and(|start| meant.starts_with(start));
    let argument = argument.filter(|meant| begins_as(meant) || similar(&given, [meant.as_str()].into_iter()).is_some());
    let other = other.filter(|hint| !hint.starts_with("to pass '--"));
    argument.or(value).map(|meant| format!("did you mean `{meant}`?")).or(other)
}

/// The hint where clap has none, or one that is worse.
fn hint(error: &clap::Error, command: &Command, words: &[OsString]) -> Option<String> {
    match error.kind() {
        ErrorKind::UnknownArgument if is_unquoted_question(error, command, words) => {
            Some("put the question in quotes after `ask`".into())
        }
        ErrorKind::InvalidSubcommand => {
            let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else { return None };
            nearest(given, command, words).map(|name| format!("did you mean `{name}`?"))
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let variable = flag_of(error).and_then(|flag| variable_of(&flag, command, words));
            let is_of = |name| format!("this is the value of the environment variable {name}");
            variable.map(is_of).or_else(|| meant_value(error))
        }
        _ => None,
    }
}

/// The names of the program and of the command that the words name: `memlocal corpus show`.
fn path_of(command: &Command, words: &[OsString]) -> String {
    let matches = command.clone().ignore_errors(true).try_get_matches_from(words).ok();
    let mut names = vec![command.get_name()];
    let mut named = matches.as_ref().and_then(ArgMatches::subcommand);
    while let Some((name, matches)) = named {
        names.push(name);
        named = matches.subcommand();
    }
    names.join(" ")
}

/// A message of clap without its last line, which names --help.
fn without_reference(message: &str) -> &str {
    message.split("\n\nFor more information, try ").next().unwrap_or(message)
}

/// Whether `ask` has more words than its question.
fn is_unquoted_question(error: &clap::Error, command: &Command, words: &[OsString]) -> bool {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return false };
    let matches = command.clone().ignore_errors(true).try_get_matches_from(words);
    !word.starts_with('-') && matches.is_ok_and(|matches| matches.subcommand_name() == Some("ask"))
}

/// The name of the flag whose value is wrong, without its dashes.
pub(crate) fn flag_of(error: &clap::Error) -> Option<String> {
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

/// The hint for a value that most likely misspells one of those that its parser lists.
fn meant_value(error: &clap::Error) -> Option<String> {
    let reason = error.source()?.to_string();
    let (given, names) = reason.strip_prefix('`')?.split_once("` is not one of ")?;
    similar(given, names.split(", ")).map(|name| format!("did you mean `{name}`?"))
}

/// A message of clap without the terms of Rust for what is no number.
pub(crate) fn in_plain_words(message: &str) -> String {
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
fn nearest(given: &str, command: &Command, words: &[OsString]) -> Option<String> {
    let before = words.iter().skip(1).take_while(|word| *word != given);
    let parent = before.fold(command, |parent, word| parent.find_subcommand(word).unwrap_or(parent));
    let names = parent.get_subcommands().filter(|known| !known.is_hide_set()).map(Command::get_name);
    similar(given, names).map(str::to_owned)
}

/// The name that another one most likely misspells, also with `_` for `-`.
pub(crate) fn similar<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let given = given.replace('_', "-");
    let edits = names.map(|name| (strsim::damerau_levenshtein(&given, name), name));
    edits.filter(|(edits, name)| *edits <= 2 && *edits < name.len()).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let kv = Arg::new("kv").long("kv").value_parser(["f16", "q8_0"]);
        let cpu = Arg::new("cpu").long("cpu");
        let method = Arg::new("method").long("method").value_parser(|name: &str| match name {
            "gam" | "rag" => Ok(name.to_owned()),
            _ => Err(format!("`{name}` is not one of gam, rag")),
        });
        let ask = Command::new("ask").arg(Arg::new("question")).args([method, kv, cpu]);
        let show = Command::new("show").arg(Arg::new("name").required(true));
        Command::new("memlocal").subcommand(ask).subcommand(Command::new("corpus").subcommand(show))
    }

    #[test]
    fn wrong_usage_has_one_hint() {
        let check = |words: &str, want: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            let mut error = command().try_get_matches_from(&words).unwrap_err();
            assert_eq!(take_hint(&mut error, &command(), &words), want);
            let message = error.render().to_string();
            let shown = without_reference(&message);
            assert!(!shown.contains("tip:") && !shown.contains("--help"), "{shown}");
        };
        check("memlocal aks", "did you mean `ask`?");
        check("memlocal frobnicate", "memlocal --help shows its commands");
        check("memlocal corpus shwo", "did you mean `show`?");
        check("memlocal ask --metod gam", "did you mean `--method`?");
        check("memlocal ask --meth gam", "did you mean `--method`?");
        check("memlocal ask --corpus c", "memlocal ask --help shows its arguments");
        check("memlocal ask --format json", "memlocal ask --help shows its arguments");
        check("memlocal ask -x", "to pass '-x' as a value, use '-- -x'");
        check("memlocal ask --kv q8", "did you mean `q8_0`?");
        check("memlocal ask --method gem", "did you mean `gam`?");
        check("memlocal ask --method direct", "memlocal ask --help shows its arguments");
        check("memlocal ask --kv x7", "memlocal ask --help shows its arguments");
        check("memlocal ask Who is", "put the question in quotes after `ask`");
        check("memlocal corpus show", "memlocal corpus show --help shows its arguments");
    }
}
