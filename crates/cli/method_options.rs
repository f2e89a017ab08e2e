//! Flags for the options of methods, generated from the methods' declarations.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use launch::failure::refusal;
use memory::{Method, OptionKind, OptionSpec, Settings, Stage, methods};
use serde_json::{Map, Value};

/// Options that have an effect while a corpus is prepared.
#[derive(Debug, Clone, Default)]
pub struct PrepareOptions(Typed);

/// Options that have an effect while a question is answered.
#[derive(Debug, Clone, Default)]
pub struct AskOptions(Typed);

/// Options as given on the command line or in the config file.
#[derive(Debug, Clone, Default)]
struct Typed {
    values: Map<String, Value>,
    /// Options whose values are the lines of a file.
    files: Vec<(&'static str, PathBuf)>,
    /// The options that the command line itself gives, not the config file.
    given: Vec<&'static str>,
}

impl Typed {
    /// Sets the options in the settings, for every method that has them.
    fn apply(&self, settings: &mut Settings) -> Result<()> {
        let mut values = self.values.clone();
        for (name, path) in &self.files {
            values.insert((*name).to_owned(), lines(path)?.into());
        }
        methods::set_options(&values, settings).map_err(anyhow::Error::msg)
    }

    /// Checks that what the command line gives has an effect on one of the methods.
    fn check(&self, asked: &[&'static dyn Method]) -> Result<()> {
        let Some((name, having)) = methods::without_effect(self.given.iter().copied(), asked) else { return Ok(()) };
        let asked = asked.iter().map(|method| method.name()).collect::<Vec<_>>().join(", ");
        let cause = format!("--{} has no effect on the method {asked}", name.replace('_', "-"));
        Err(refusal(cause, format!("leave it out, or choose a method that has it: {having}")))
    }

    fn read(matches: &ArgMatches, stage: Stage) -> Typed {
        let mut typed = Typed::default();
        for (spec, _) in specs(stage) {
            let name = spec.name.to_owned();
            if matches.value_source(spec.name) == Some(ValueSource::CommandLine) {
                typed.given.push(spec.name);
            }
            match spec.kind {
                OptionKind::Integer { .. } => {
                    typed.values.extend(matches.get_one::<usize>(spec.name).map(|number| (name, (*number).into())));
                }
                OptionKind::Name(_) => {
                    typed.values.extend(matches.get_one::<String>(spec.name).map(|value| (name, value.clone().into())));
                }
                OptionKind::Names(_) => {
                    let names = matches.get_many::<String>(spec.name);
                    typed.values.extend(names.map(|names| (name, names.cloned().collect::<Vec<_>>().into())));
                }
                OptionKind::Lines => {
                    typed.files.extend(matches.get_one::<PathBuf>(spec.name).map(|path| (spec.name, path.clone())));
                }
            }
        }
        typed
    }
}

/// The lines of a file that are not blank.
fn lines(path: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let cause = format!("cannot read {}: {error}", path.display());
        refusal(cause, "give a file of text in UTF-8, with one entry a line")
    })?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn specs(stage: Stage) -> impl Iterator<Item = (&'static OptionSpec, Vec<&'static dyn Method>)> {
    methods::option_specs().into_iter().filter(move |(spec, _)| spec.stage == stage)
}

fn augment(command: Command, stage: Stage) -> Command {
    specs(stage).fold(command, |command, (spec, methods)| command.arg(flag(spec, &methods)))
}

fn flag(spec: &'static OptionSpec, methods: &[&'static dyn Method]) -> Arg {
    let arg = Arg::new(spec.name)
        .long(spec.name.replace('_', "-"))
        .value_name(spec.value_name)
        .help_heading("Method")
        .help(format!("{}{}", spec.help, default(spec.name, methods)));
    let arg = match spec.required_with {
        Some((other, value)) => arg.required_if_eq(other, value),
        None => arg,
    };
    let one_of = |names: &'static [&'static str]| {
        move |text: &str| match names.contains(&text) {
            true => Ok(text.to_owned()),
            false => Err(format!("`{text}` is not one of {}", names.join(", "))),
        }
    };
    match spec.kind {
        OptionKind::Integer { min } => arg.value_parser(move |text: &str| match text.parse::<usize>() {
            Ok(number) if number < min => Err(format!("it must be {min} or more")),
            Ok(number) => Ok(number),
            Err(error) => Err(error.to_string()),
        }),
        OptionKind::Name(names) => arg.value_parser(one_of(names)),
        OptionKind::Names(names) => arg.value_parser(one_of(names)).value_delimiter(',').action(ArgAction::Append),
        OptionKind::Lines => arg.value_parser(clap::value_parser!(PathBuf)),
    }
}

/// The default of an option in its help text: one value, or one for each method if they differ.
fn default(name: &str, methods: &[&'static dyn Method]) -> String {
    let shown = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let of = |method: &&'static dyn Method| (method.name(), shown(method.options(&Settings::new(*method)).get(name)));
    let defaults: Vec<(&str, String)> = methods.iter().map(of).collect();
    match &defaults[..] {
        [(_, first), rest @ ..] if rest.iter().all(|(_, value)| value == first) => match first.as_str() {
            "" => String::new(),
            value => format!(" [default: {value}]"),
        },
        several => {
            let each = several.iter().map(|(method, value)| format!("{method} {value}")).collect::<Vec<_>>();
            format!(" [default: {}]", each.join(", "))
        }
    }
}

/// Lets clap flatten a struct of options of one stage.
macro_rules! flags {
    ($type:ident: $stage:expr) => {
        impl $type {
            /// Sets the options in the settings, for every method that has them.
            ///
            /// # Errors
            /// If a file that a flag names cannot be read.
            pub fn apply(&self, settings: &mut Settings) -> Result<()> {
                self.0.apply(settings)
            }

            /// Checks that those of the command line have an effect on one of the methods.
            ///
            /// # Errors
            /// Names an option that has none, and the methods that have it.
            pub fn check(&self, methods: &[&'static dyn Method]) -> Result<()> {
                self.0.check(methods)
            }
        }

        impl clap::Args for $type {
            fn augment_args(command: Command) -> Command {
                augment(command, $stage)
            }

            fn augment_args_for_update(command: Command) -> Command {
                augment(command, $stage)
            }
        }

        impl clap::FromArgMatches for $type {
            fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
                Ok($type(Typed::read(matches, $stage)))
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
                *self = <Self as clap::FromArgMatches>::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}

flags!(PrepareOptions: Stage::Prepare);
flags!(AskOptions: Stage::Ask);
