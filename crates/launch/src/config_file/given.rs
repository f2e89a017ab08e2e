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

/// The command without variables of the environment that are empty, as `MEMLOCAL_MODEL=${MODEL}` in the file of a service may be:
/// they count as unset.
pub(super) fn without_empty_variables(command: Command) -> Command {
    let ids = command
        .get_arguments()
        .filter(|argument| argument.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty()));
    let ids: Vec<clap::Id> = ids.map(|argument| argument.get_id().clone()).collect();
    let command =
        ids.into_iter().fold(command, |command, id| command.mut_arg(id, |argument| argument.env(None::<&'static str>)));
    command.mut_subcommands(without_empty_variables)
}

/// The command without the variables of the environment that typed arguments override: with `--engine` `MEMLOCAL_MODEL`
/// has no effect.
pub(super) fn without_overridden_variables(command: Command, given: &Given) -> Command {
    let Some(of) = command.find_subcommand(&given.command) else { return command };
    let is_overridden = |argument: &&Arg| argument.get_env().is_some() && given.types_instead(argument, of);
    let ids: Vec<String> =
        of.get_arguments().filter(is_overridden).map(|argument| argument.get_id().to_string()).collect();
    let without = |of: Command, id: String| of.mut_arg(id, |argument| argument.env(None::<&'static str>));
    command.mut_subcommand(given.command.clone(), |of| ids.into_iter().fold(of, without))
}
