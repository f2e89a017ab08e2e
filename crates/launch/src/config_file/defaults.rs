//! Settings become the defaults of arguments.

use bundle::Bundle;
use clap::{Arg, Command};

use super::given::Given;
use crate::flags::MODELS_HEADING;

/// The commands to which the section of models applies.
pub(super) const MODEL_COMMANDS: [&str; 7] = ["ask", "ingest", "serve", "mcp", "doctor", "train", "bundle"];

/// One setting: the name of a flag, and its values.
pub(super) struct Setting<'a> {
    pub flag: &'a str,
    pub values: Vec<String>,
    pub line: usize,
}

/// The command with the models of a bundle as defaults.
pub(super) fn with_bundle(mut command: Command, bundle: &Bundle, given: &Given) -> Command {
    let prefix = format!("{}/", bundle.path().display());
    for (flag, values) in &bundle.contents().defaults {
        let inside = |value: &String| match value.split_once("./") {
            Some((name, path)) if name.is_empty() || name.ends_with('=') => format!("{name}{prefix}{path}"),
            _ => value.clone(),
        };
        let setting = Setting { flag, values: values.iter().map(inside).collect(), line: 0 };
        for name in MODEL_COMMANDS {
            if command.find_subcommand(name).is_some_and(|command| is_of_models(flag_of(command, flag))) {
                command = command.mut_subcommand(name, |command| with_default(command, &setting, given));
            }
        }
    }
    command
}

pub(super) fn with_default(command: Command, setting: &Setting<'_>, given: &Given) -> Command {
    let set = flag_of(&command, setting.flag).filter(|argument| !given.has_instead(argument, &command));
    let Some(id) = set.map(|argument| argument.get_id().clone()) else { return command };
    // A default does not count as the argument that a group requires.
    let groups = command.get_groups().filter(|group| group.is_required_set() && group.get_args().any(|of| *of == id));
    let groups: Vec<_> = groups.map(|group| group.get_id().clone()).collect();
    let command = groups.into_iter().fold(command, |command, id| command.mut_group(id, |group| group.required(false)));
    // The help shows defaults.
    let is_secret = setting.values.iter().any(|value| store::without_secrets(value) != *value);
    command.mut_arg(id, |argument| argument.default_values(setting.values.clone()).hide_default_value(is_secret))
}

/// The argument of a command with this name.
pub(super) fn flag_of<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|argument| argument.get_long() == Some(name))
}

/// Whether `[models]` and a bundle may set an argument.
pub(super) fn is_of_models(argument: Option<&Arg>) -> bool {
    argument.is_some_and(|argument| argument.get_help_heading() == Some(MODELS_HEADING))
}
