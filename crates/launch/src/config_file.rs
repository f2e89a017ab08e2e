//! The config file: defaults of flags. The command line overrides the environment, the environment overrides the file,
//! and the file overrides the defaults of a bundle, which override built-in defaults.
//!
//! ```toml
//! threads = 4                  # flags of every command
//! gpu = "auto"
//!
//! [models]                     # which model plays which agent, for the commands that run, train or bundle models
//! model = "qwen2.5-7b-instruct"
//! memorizer = "qwen2.5-1.5b-instruct"
//!
//! [serve]                      # flags of one command
//! port = 8080
//! ```
//!
//! The names are those of the flags. The values become the flags' defaults, so this module knows no flag by name. A value whose
//! flag conflicts with one that is given elsewhere is overridden by it: with `--model` the file's `engine` has no effect. A
//! command takes a setting of `[models]` if it has the flag under the heading of models and the flag takes the value; a setting
//! that no command takes is an error. Sections are for the commands of `memlocal`; `memlocal-bench` reads the flags of every
//! command only.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bundle::Bundle;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::failure::refusal;
use crate::flags::MODELS_HEADING;
use crate::home;
use crate::output::print_styled_error;

/// Its name in the data folder.
const FILE: &str = "config.toml";

/// The section of models, and the commands to which it applies.
const MODELS: &str = "models";
const MODEL_COMMANDS: [&str; 7] = ["ask", "ingest", "serve", "mcp", "doctor", "train", "bundle"];

/// How the file's sections are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sections {
    /// They set flags of this program's commands.
    OfCommands,
    /// They belong to another program.
    Ignored,
}

/// Parses the command line, with the config file's values as defaults.
///
/// # Errors
/// If the file has a setting that is no flag, or a value that its flag does not take; if the bundle is none.
pub fn parse<A: FromArgMatches>(command: Command, sections: Sections) -> Result<A> {
    let command = without_empty_variables(command);
    let given = Given::of(&command, std::env::args_os());
    let command = without_overridden_variables(command, &given);
    let command = match home::bundle_of(typed(&command, "bundle").as_deref())? {
        Some(bundle) => with_bundle(command, &bundle, &given),
        None => command,
    };
    let command = match find(&command)? {
        Some(path) => {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            File { path: &path, text: &text, given: &given }.apply(command, sections)?
        }
        None => command,
    };
    let known = command.clone();
    Ok(parsed(command).unwrap_or_else(|error| exit_with_usage(error, &known)))
}

/// Parses the command line alone, without the config file. Without a result it is wrong too: what it lacks may be what the file
/// was to say.
pub fn parse_without_file<A: FromArgMatches>(command: Command) -> Option<A> {
    let command = without_empty_variables(command);
    let given = Given::of(&command, std::env::args_os());
    parsed(without_overridden_variables(command, &given)).ok()
}

/// Whether the command line itself gives this argument to its command.
pub fn types(command: &Command, argument: &str) -> bool {
    Given::of(command, std::env::args_os()).typed.iter().any(|id| id == argument)
}

/// The arguments, or what is wrong with them. Help that was requested is printed, and ends the program.
fn parsed<A: FromArgMatches>(command: Command) -> Result<A, clap::Error> {
    let parsed = command.try_get_matches().and_then(|matches| A::from_arg_matches(&matches));
    parsed.map_err(|error| if error.use_stderr() { error } else { error.exit() })
}

/// Reports wrong usage and exits.
fn exit_with_usage(mut error: clap::Error, command: &Command) -> ! {
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand).cloned()
        && let Some(nearest) = nearest(&given, command)
    {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![nearest]));
    }
    let message = error.render();
    let message = if std::io::stderr().is_terminal() { message.ansi().to_string() } else { message.to_string() };
    print_styled_error(in_plain_words(message.trim_end()));
    std::process::exit(error.exit_code())
}

/// A message of clap without the terms of Rust for what is no number.
fn in_plain_words(message: &str) -> String {
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

/// The file that the command line names, or the one in the data folder if there is one.
///
/// # Errors
/// If this user has no home folder.
pub fn find(command: &Command) -> Result<Option<PathBuf>> {
    if let Some(named) = typed(command, "config") {
        return Ok(Some(named));
    }
    let known = home::folder_of(typed(command, "data_dir").as_deref())?.join(FILE);
    Ok(known.exists().then_some(known))
}

/// The path that the command line gives to a flag, before the command line is checked.
fn typed(command: &Command, flag: &str) -> Option<PathBuf> {
    let matches = command.clone().ignore_errors(true).try_get_matches().ok()?;
    matches.try_get_one::<PathBuf>(flag).ok().flatten().cloned()
}

/// The command whose arguments are given, and their ids.
#[derive(Debug, Default)]
struct Given {
    command: String,
    typed: Vec<String>,
    from_environment: Vec<String>,
}

impl Given {
    /// What these words and the environment give, before they are checked.
    fn of(command: &Command, words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Given {
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
    fn has_instead(&self, argument: &Arg, of: &Command) -> bool {
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
fn without_empty_variables(command: Command) -> Command {
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
fn without_overridden_variables(command: Command, given: &Given) -> Command {
    let Some(of) = command.find_subcommand(&given.command) else { return command };
    let is_overridden = |argument: &&Arg| argument.get_env().is_some() && given.types_instead(argument, of);
    let ids: Vec<String> =
        of.get_arguments().filter(is_overridden).map(|argument| argument.get_id().to_string()).collect();
    let without = |of: Command, id: String| of.mut_arg(id, |argument| argument.env(None::<&'static str>));
    command.mut_subcommand(given.command.clone(), |of| ids.into_iter().fold(of, without))
}

/// The command with the models of a bundle as defaults.
fn with_bundle(mut command: Command, bundle: &Bundle, given: &Given) -> Command {
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

/// A config file.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
    given: &'a Given,
}

/// One setting: the name of a flag, and its values.
struct Setting<'a> {
    flag: &'a str,
    values: Vec<String>,
    line: usize,
}

impl File<'_> {
    /// The command with the file's values as defaults.
    fn apply(&self, mut command: Command, sections: Sections) -> Result<Command> {
        let parsed = DeTable::parse(self.text).map_err(|error| {
            let line = error.span().map_or(1, |span| self.line(span.start));
            self.wrong(line, format!("this is not TOML: {}", error.message()))
        })?;
        let (tables, global): (Vec<_>, Vec<_>) =
            parsed.get_ref().iter().partition(|(_, value)| matches!(value.get_ref(), DeValue::Table(_)));
        for (key, value) in global {
            let setting = self.setting(key, value)?;
            self.check(&setting, &command, None)?;
            // clap does not know of MEMLOCAL_HOME.
            if setting.flag != "data-dir" || home::from_environment().is_none() {
                command = with_default(command, &setting, self.given);
            }
        }
        if sections == Sections::Ignored {
            return Ok(command);
        }
        // A command's own section overrides the section of models.
        let (models, own): (Vec<_>, Vec<_>) = tables.into_iter().partition(|(key, _)| key.get_ref() == MODELS);
        for (section, table) in models.into_iter().chain(own) {
            let DeValue::Table(table) = table.get_ref() else { continue };
            let (section, line): (&str, usize) = (section.get_ref(), self.line(section.span().start));
            let commands: &[&str] = if section == MODELS { &MODEL_COMMANDS } else { &[section] };
            if commands.iter().any(|name| command.find_subcommand(name).is_none()) {
                return Err(self.wrong(line, format!("there is no command `{section}`")));
            }
            for (key, value) in table {
                let setting = self.setting(key, value)?;
                for name in self.takers(&setting, &command, section, commands)? {
                    command = command.mut_subcommand(name, |command| with_default(command, &setting, self.given));
                }
            }
        }
        Ok(command)
    }

    fn setting<'k>(&self, key: &'k Spanned<Cow<'_, str>>, value: &Spanned<DeValue<'_>>) -> Result<Setting<'k>> {
        let line = self.line(key.span().start);
        let values = match value.get_ref() {
            DeValue::Array(values) => values.iter().map(|value| written(value.get_ref())).collect(),
            value => written(value).map(|value| vec![value]),
        };
        let values = values
            .ok_or_else(|| self.wrong(line, format!("`{}` does not take a value of this type", key.get_ref())))?;
        Ok(Setting { flag: key.get_ref(), values, line })
    }

    /// Those of the commands that take a setting of a section.
    ///
    /// # Errors
    /// If none does.
    fn takers<'c>(
        &self,
        setting: &Setting<'_>,
        command: &Command,
        section: &str,
        commands: &[&'c str],
    ) -> Result<Vec<&'c str>> {
        let mut refused = None;
        let mut takers = Vec::new();
        for &name in commands {
            match self.check(setting, command, Some((section, name))) {
                Ok(()) => takers.push(name),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        refused.filter(|_| takers.is_empty()).map_or(Ok(takers), Err)
    }

    /// Checks with the command's own parser that the flag exists and takes the value.
    fn check(&self, setting: &Setting<'_>, command: &Command, of: Option<(&str, &str)>) -> Result<()> {
        let (flag, values, line) = (setting.flag, &setting.values, setting.line);
        let owner = of.map_or(Some(command), |(_, name)| command.find_subcommand(name));
        let argument = owner.and_then(|owner| flag_of(owner, flag));
        let may_be_set = argument.is_some_and(|argument| match of {
            None => argument.is_global_set() && flag != "config" && flag != "cpu",
            Some((MODELS, _)) => is_of_models(Some(argument)),
            Some(_) => !argument.is_required_set(),
        });
        let Some(argument) = argument.filter(|_| may_be_set) else {
            let place = of.map_or_else(String::new, |(section, _)| format!(" of [{section}]"));
            return Err(self.wrong(line, format!("there is no setting `{flag}`{place}")));
        };
        if !argument.get_action().takes_values() {
            return match &values[..] {
                [value] if value == "true" || value == "false" => Ok(()),
                _ => Err(self.wrong(line, format!("`{flag}` is true or false"))),
            };
        }
        if values.len() != 1 && !matches!(argument.get_action(), ArgAction::Append) {
            return Err(self.wrong(line, format!("`{flag}` takes one value")));
        }
        let typed = values.iter().map(|value| OsString::from(format!("--{flag}={value}")));
        let words = ["memlocal"].into_iter().chain(of.map(|(_, name)| name)).map(OsString::from).chain(typed);
        match command.clone().try_get_matches_from(words) {
            Err(error) if matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) => {
                let message = error.to_string();
                let first = message.lines().next().unwrap_or_default();
                Err(self.wrong(line, in_plain_words(first.trim_start_matches("error: "))))
            }
            // What else is required may come from the command line.
            _ => Ok(()),
        }
    }

    /// The line of a byte, from 1.
    fn line(&self, byte: usize) -> usize {
        1 + self.text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
    }

    fn wrong(&self, line: usize, what: String) -> anyhow::Error {
        refusal(
            format!("{}, line {line}: {what}", self.path.display()),
            "the names are those of the flags: memlocal COMMAND --help lists them",
        )
    }
}

/// The argument of a command with this name.
fn flag_of<'c>(command: &'c Command, name: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|argument| argument.get_long() == Some(name))
}

/// Whether `[models]` and a bundle may set an argument.
fn is_of_models(argument: Option<&Arg>) -> bool {
    argument.is_some_and(|argument| argument.get_help_heading() == Some(MODELS_HEADING))
}

/// A value as it would be typed; none for what cannot be.
fn written(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(whether) => Some(whether.to_string()),
        _ => None,
    }
}

fn with_default(command: Command, setting: &Setting<'_>, given: &Given) -> Command {
    let set = flag_of(&command, setting.flag).filter(|argument| !given.has_instead(argument, &command));
    let Some(id) = set.map(|argument| argument.get_id().clone()) else { return command };
    // A default does not count as the argument that a group requires.
    let groups = command.get_groups().filter(|group| group.is_required_set() && group.get_args().any(|of| *of == id));
    let groups: Vec<_> = groups.map(|group| group.get_id().clone()).collect();
    let command = groups.into_iter().fold(command, |command, id| command.mut_group(id, |group| group.required(false)));
    command.mut_arg(id, |argument| argument.default_values(setting.values.clone()))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::path::Path;

    use bundle::{Readers, Writer};
    use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

    use super::{File, Given, Sections, with_bundle, without_overridden_variables};
    use crate::flags::{AdapterFlag, EndpointFlags, GlobalFlags, Gpu, MODELS_HEADING, ModelFlags, bundled_adapter};

    /// The commands that a config file has sections for, with a few of their flags.
    #[derive(Debug, Parser)]
    #[command(name = "memlocal")]
    struct Args {
        #[command(subcommand)]
        command: Command,
        #[command(flatten)]
        global: GlobalFlags,
    }

    #[derive(Debug, Subcommand)]
    enum Command {
        Ask(Ask),
        Ingest(Models),
        Serve(Serve),
        Mcp(Models),
        Doctor(Models),
        Train(Train),
        Bundle(Bundle),
    }

    #[derive(Debug, clap::Args)]
    struct Train {
        #[arg(long)]
        corpus: String,
        #[arg(long, default_value = "", env = "MEMLOCAL_MODEL", help_heading = MODELS_HEADING)]
        model: String,
        #[arg(long = "adapter")]
        adapters: Vec<AdapterFlag>,
    }

    #[derive(Debug, clap::Args)]
    #[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
    struct Bundle {
        #[command(subcommand)]
        command: Option<Show>,
        #[arg(long, default_value = "", env = "MEMLOCAL_MODEL", help_heading = MODELS_HEADING)]
        model: String,
        #[arg(long = "adapter", value_parser = bundled_adapter, help_heading = MODELS_HEADING)]
        adapters: Vec<AdapterFlag>,
        #[arg(long, required = true)]
        output: Option<String>,
    }

    #[derive(Debug, Subcommand)]
    enum Show {
        Show,
    }

    #[derive(Debug, clap::Args)]
    struct Models {
        #[command(flatten)]
        models: ModelFlags,
    }

    #[derive(Debug, clap::Args)]
    struct Ask {
        #[command(flatten)]
        documents: Documents,
        #[command(flatten)]
        models: ModelFlags,
        #[command(flatten)]
        endpoint: EndpointFlags,
    }

    #[derive(Debug, clap::Args)]
    #[group(required = true, multiple = false)]
    struct Documents {
        #[arg(long)]
        corpus: Option<String>,
        #[arg(long)]
        docs: Option<String>,
    }

    #[derive(Debug, clap::Args)]
    struct Serve {
        #[arg(long, default_value_t = 8420, value_name = "N")]
        port: u16,
        #[command(flatten)]
        models: ModelFlags,
    }

    fn parse_sections(text: &str, sections: Sections) -> Result<clap::Command, String> {
        let file = File { path: Path::new("c.toml"), text, given: &Given::default() };
        file.apply(Args::command(), sections).map_err(|error| error.to_string())
    }

    fn parse(text: &str, words: &str) -> Result<Args, String> {
        let words = ["memlocal"].into_iter().chain(words.split(' '));
        let given = Given::of(&Args::command(), words.clone());
        let file = File { path: Path::new("c.toml"), text, given: &given };
        let command = without_overridden_variables(Args::command(), &given);
        let command = file.apply(command, Sections::OfCommands).map_err(|error| error.to_string())?;
        Ok(Args::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap())
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let file =
            "threads = 3\noffline = true\n[serve]\nport = 9\nmodel = \"b\"\n[models]\nmodel = \"a\"\njudge = \"j\"\n";
        let args = parse(file, "serve").unwrap();
        assert_eq!((args.global.threads.map(NonZeroUsize::get), args.global.offline), (Some(3), true));
        let Command::Serve(serve) = args.command else { panic!("{args:?}") };
        assert_eq!((serve.port, serve.models.model.as_str(), serve.models.judge.as_deref()), (9, "b", Some("j")));
        let args = parse(file, "serve --port 8 --threads 2 --model c").unwrap();
        assert_eq!(args.global.threads.map(NonZeroUsize::get), Some(2));
        let Command::Serve(serve) = args.command else { panic!("{args:?}") };
        assert_eq!((serve.port, serve.models.model.as_str()), (8, "c"));
        let Command::Mcp(mcp) = parse(file, "mcp").unwrap().command else { panic!("another command") };
        assert_eq!(mcp.models.model, "a");
        let gpu = |text: &str, words: &str| parse(text, words).unwrap().global.gpu();
        assert_eq!(gpu("gpu = 1", "mcp"), Gpu::Numbers(vec![1]));
        assert_eq!(gpu("gpu = \"auto\"", "mcp --cpu"), Gpu::None);
        assert_eq!(gpu("gpu = \"none\"", "mcp --gpu 0"), Gpu::Numbers(vec![0]));
    }

    #[test]
    fn a_setting_is_overridden_by_arguments_that_conflict_with_it() {
        let ask = |text: &str, words: &str| match parse(text, words).unwrap().command {
            Command::Ask(ask) => ask,
            other => panic!("{other:?}"),
        };
        let engine = "[ask]\nengine = \"http://10.0.0.5/v1\"\n";
        let remote = ask(engine, "ask --docs a --engine-model x").endpoint;
        assert_eq!((remote.engine.as_deref(), remote.engine_model.as_deref()), (Some("http://10.0.0.5/v1"), Some("x")));
        let local = ask(engine, "ask --docs a --model b");
        assert_eq!((local.endpoint.engine, local.models.model.as_str()), (None, "b"));
        let corpus = "[ask]\ncorpus = \"work\"\n";
        let documents = ask(corpus, "ask --docs a").documents;
        assert_eq!((documents.corpus, documents.docs.as_deref()), (None, Some("a")));
        assert_eq!(ask(corpus, "ask").documents.corpus.as_deref(), Some("work"));
    }

    #[test]
    fn a_variable_is_overridden_by_typed_arguments_that_conflict_with_it() {
        let words = ["memlocal", "ask", "--docs", "a", "--engine", "http://10.0.0.5/v1"];
        let given = Given::of(&Args::command(), words);
        let variables = |command: clap::Command| {
            let ask = command.find_subcommand("ask").unwrap();
            ask.get_arguments().filter(|argument| argument.get_env().is_some()).count()
        };
        let before = variables(Args::command());
        assert_eq!(variables(without_overridden_variables(Args::command(), &given)), before - 1);
        let local = Given::of(&Args::command(), ["memlocal", "ask", "--docs", "a"]);
        assert_eq!(variables(without_overridden_variables(Args::command(), &local)), before);
    }

    #[test]
    fn models_are_set_for_the_commands_that_have_the_flag_and_take_the_value() {
        let train = |text: &str, words: &str| match parse(text, words).unwrap().command {
            Command::Train(train) => train,
            other => panic!("{other:?}"),
        };
        let bundle = |text: &str, words: &str| match parse(text, words).unwrap().command {
            Command::Bundle(bundle) => bundle,
            other => panic!("{other:?}"),
        };
        let both = "[models]\nmodel = \"a+legal\"\njudge = \"j\"\nadapter = [\"legal=x\"]\n";
        let trained = train(both, "train --corpus c");
        assert_eq!((trained.model.as_str(), trained.adapters.len()), ("a+legal", 0), "its adapter is where it begins");
        assert_eq!(train(both, "train --corpus c --model b").model, "b");
        let own = format!("{both}[train]\nadapter = \"none\"\nmodel = \"b\"\n");
        let trained = train(&own, "train --corpus c");
        assert_eq!((trained.model.as_str(), &trained.adapters[..]), ("b", &[AdapterFlag::None][..]));
        let bundled = bundle(both, "bundle --output o");
        assert_eq!((bundled.model.as_str(), bundled.output.as_deref()), ("a+legal", Some("o")));
        assert_eq!(bundled.adapters, [AdapterFlag::At { name: "legal".into(), path: "x".into() }]);
        assert!(bundle(both, "bundle show").command.is_some(), "a default does not conflict with a subcommand");
        let corpus = "[models]\nmodel = \"a\"\nadapter = \"corpus\"\n";
        let bundled = bundle(corpus, "bundle --output o");
        assert_eq!((bundled.model.as_str(), bundled.adapters.len()), ("a", 0), "a bundle takes no adapter of a corpus");
        let Command::Ask(ask) = parse(corpus, "ask --docs a").unwrap().command else { panic!("another command") };
        assert_eq!(ask.models.adapters, [AdapterFlag::Corpus(None)]);
    }

    #[test]
    fn the_models_of_a_bundle_are_those_of_every_command_that_has_the_flag() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("office");
        let defaults = [("model", "./models/m+legal"), ("adapter", "legal=./adapters/legal"), ("embedder", "e:f32")];
        let defaults = defaults.map(|(flag, value)| (flag.to_owned(), vec![value.to_owned()])).into();
        let bundle = Writer::create(&path, "").unwrap().finish(defaults, Readers::All).unwrap();
        let parse = |words: &str| {
            let words = ["memlocal"].into_iter().chain(words.split(' '));
            let given = Given::of(&Args::command(), words.clone());
            let command = with_bundle(Args::command(), &bundle, &given);
            Args::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap().command
        };
        let model = path.join("models/m+legal").display().to_string();
        let Command::Train(train) = parse("train --corpus c") else { panic!("another command") };
        assert_eq!((train.model, train.adapters.len()), (model.clone(), 0));
        let Command::Bundle(bundled) = parse("bundle --output o") else { panic!("another command") };
        let adapter = AdapterFlag::At { name: "legal".into(), path: path.join("adapters/legal") };
        assert_eq!((bundled.model, bundled.adapters), (model.clone(), vec![adapter]));
        let Command::Mcp(mcp) = parse("mcp") else { panic!("another command") };
        assert_eq!((mcp.models.model, mcp.models.embedder.as_str()), (model, "e:f32"));
        let Command::Bundle(typed) = parse("bundle --output o --model b") else { panic!("another command") };
        assert_eq!(typed.model, "b");
    }

    #[test]
    fn a_wrong_setting_is_reported_with_its_line() {
        let check = |text: &str, want: &str| {
            let error = parse(text, "serve").map(drop).unwrap_err();
            assert!(error.starts_with("c.toml, line ") && error.contains(want), "{text}: {error}");
        };
        check("threads = 2\nprot = 3\n", "line 2: there is no setting `prot`");
        check("\n[serve]\nprot = 3", "line 3: there is no setting `prot` of [serve]");
        check("[models]\nport = 3", "line 2: there is no setting `port` of [models]");
        check("[models]\noutput = \"x\"", "line 2: there is no setting `output` of [models]");
        check("[models]\nyarn = \"far\"", "line 2: invalid value 'far' for '--yarn <FACTOR>'");
        check("[models]\nadapter = \"far\"", "line 2: invalid value 'far' for '--adapter <");
        check("[models]\nmodels = []", "line 2: there is no setting `models` of [models]");
        check("[sreve]\nport = 3", "line 1: there is no command `sreve`");
        check("port = 3", "line 1: there is no setting `port`");
        check("cpu = true", "line 1: there is no setting `cpu`");
        check("[serve]\nport = \"many\"", "line 2: invalid value 'many' for '--port <N>'");
        check("[serve]\nport = 2001-01-01", "line 2: `port` does not take a value of this type");
        check("offline = 1", "line 1: `offline` is true or false");
        check("gpu = [0, 1]", "line 1: `gpu` takes one value");
        check("[models]\nmodel = []", "line 2: `model` takes one value");
        check("[serve]\nport =", "line 2: this is not TOML");
        check("[serve]\nport = 1\nport = 2", "line 3: this is not TOML");
    }

    #[test]
    fn sections_of_another_program_are_ignored() {
        let file = "threads = 3\n[serve]\nport = \"many\"\n[other]\nx = 1\n";
        let command = parse_sections(file, Sections::Ignored).unwrap();
        let args = Args::from_arg_matches(&command.try_get_matches_from(["memlocal", "mcp"]).unwrap()).unwrap();
        assert_eq!(args.global.threads.map(NonZeroUsize::get), Some(3));
        assert!(parse_sections("port = 3", Sections::Ignored).is_err(), "what is not in a section is checked");
    }
}
