//! What the command line and the environment give already: arguments that override the file, and variables.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// The command whose arguments are given, and their ids.
#[derive(Debug, Default)]
pub(super) struct Given {
    command: String,
    pub typed: Vec<String>,
    from_environment: Vec<String>,
}

impl Given {
    /// What these words and the environment give, before they are checked.
    pub fn of(command: &Command, words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Given {
        let matches = command.clone().ignore_errors(true).try_get_matches_from(words).ok();
        let Some((name, matches)) = matches.as_ref().and_then(ArgMatches::subcommand) else { return Given::default() };
        let from = |source| {
            let ids = matches.ids().filter(|id| matches.value_source(id.as_str()) == Some(source));
            ids.map(ToString::to_string).collect()
        };
        Given {
            command: name.to_owned(),
            typed: from(ValueSource::CommandLine),
            from_environment: from(ValueSource::EnvVariable),
        }
    }

    /// Whether an argument that conflicts with this one is typed.
    fn types_instead(&self, argument: &Arg, of: &Command) -> bool {
        of.get_name() == self.command && self.typed.iter().any(|id| conflict(argument, id, of))
    }

    /// The same, or set by a variable.
    pub fn has_instead(&self, argument: &Arg, of: &Command) -> bool {
        let set = || self.from_environment.iter().any(|id| conflict(argument, id, of));
        self.types_instead(argument, of) || of.get_name() == self.command && set()
    }
}

/// Whether two arguments of a command cannot be given together.
fn conflict(argument: &Arg, other: &str, of: &Command) -> bool {
    let Some(other) = of.get_arguments().find(|known| *known.get_id() == other) else { return false };
    let refuses = |a: &Arg, b: &Arg| of.get_arg_conflicts_with(a).iter().any(|known| known.get_id() == b.get_id());
    let excludes = || {
        of.get_groups().any(|group| {
            let has = |argument: &Arg| group.get_args().any(|id| id == argument.get_id());
            has(argument) && has(other) && !group.clone().is_multiple()
        })
    };
    argument.get_id() != other.get_id() && (refuses(argument, other) || refuses(other, argument) || excludes())
}

/// The command with those variables of the environment only that have an effect beside these words, and what the words and the
/// variables give. An empty variable counts as unset, and one that typed arguments override is not read.
pub(super) fn with_effective_variables(command: Command, words: &[OsString]) -> (Command, Given) {
    let command = without_empty_variables(command);
    let typed = Given::of(&command, words).typed;
    let command = typed.iter().fold(command, |command, flag| without_variable_of_global(command, flag));
    // A wrong variable that is overridden would hide the others, so they are read after it is removed.
    let given = Given::of(&command, words);
    (without_overridden_variables(command, &given), given)
}

/// The command without variables of the environment that are empty, as `MEMLOCAL_MODEL=${MODEL}` in the file of a service may be.
fn without_empty_variables(command: Command) -> Command {
    let ids = command
        .get_arguments()
        .filter(|argument| argument.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty()));
    let ids: Vec<clap::Id> = ids.map(|argument| argument.get_id().clone()).collect();
    let command = ids.into_iter().fold(command, without_variable);
    command.mut_subcommands(without_empty_variables)
}

/// The command and its subcommands without the variable of a flag, if that is a flag of every command. clap would read the
/// variable although the flag is typed: every command has the flag, and only one has the value that is typed.
fn without_variable_of_global(command: Command, flag: &str) -> Command {
    let is_global = command.get_arguments().any(|known| *known.get_id() == flag && known.is_global_set());
    if is_global { without_variable_everywhere(command, flag) } else { command }
}

fn without_variable_everywhere(command: Command, flag: &str) -> Command {
    let id = command.get_arguments().map(Arg::get_id).find(|id| *id == flag).cloned();
    let command = id.into_iter().fold(command, without_variable);
    command.mut_subcommands(|of| without_variable_everywhere(of, flag))
}

/// The command without the variable of one of its arguments.
fn without_variable(command: Command, id: clap::Id) -> Command {
    command.mut_arg(id, |argument| argument.env(None::<&'static str>))
}

/// The command without the variables of the environment that conflict with typed arguments: with `--engine` `MEMLOCAL_MODEL`
/// has no effect.
pub(super) fn without_overridden_variables(command: Command, given: &Given) -> Command {
    let Some(of) = command.find_subcommand(&given.command) else { return command };
    let is_overridden = |argument: &&Arg| argument.get_env().is_some() && given.types_instead(argument, of);
    let overridden = of.get_arguments().filter(is_overridden);
    let ids: Vec<clap::Id> = overridden.map(|argument| argument.get_id().clone()).collect();
    command.mut_subcommand(given.command.clone(), |of| ids.into_iter().fold(of, without_variable))
}
