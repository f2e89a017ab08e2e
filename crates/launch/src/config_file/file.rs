//! Reads a config file, and checks every setting with the parser of its command.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::defaults::{MODEL_COMMANDS, Setting, flag_of, is_of_models, with_default};
use super::given::Given;
use crate::failure::refusal;
use crate::home;
use crate::usage::{self, in_plain_words, similar};

/// The section of models.
const MODELS: &str = "models";

/// The hint for a name that is like no other.
const NAMES: &str = "the names are those of the flags: memlocal COMMAND --help lists them";

/// The hint for a value that a flag does not take.
const VALUES: &str = "the values are those of the flags: memlocal COMMAND --help describes them";

/// The hint for a file that is not TOML.
pub(super) const SYNTAX: &str =
    "a setting is a line such as `threads = 4` or `model = \"NAME\"`, a section begins with a line such as `[serve]`";

/// How the file's sections are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sections {
    /// They set flags of this program's commands.
    OfCommands,
    /// They belong to another program.
    Ignored,
}

/// A config file.
pub(super) struct File<'a> {
    pub path: &'a Path,
    pub text: &'a str,
    pub given: &'a Given,
}

impl File<'_> {
    /// The command with the file's values as defaults.
    pub fn apply(&self, mut command: Command, sections: Sections) -> Result<Command> {
        let parsed = DeTable::parse(self.text).map_err(|error| {
            let line = error.span().map_or(1, |span| self.line(span.start));
            self.refused(line, &format!("this is not TOML: {}", error.message()), SYNTAX.to_owned())
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
                let known = command.get_subcommands().map(Command::get_name).chain([MODELS]);
                let meant = similar(section, known).map(|name| format!("did you mean [{name}]?"));
                let hint = meant.unwrap_or_else(|| NAMES.to_owned());
                return Err(self.refused(line, &format!("there is no command `{section}`"), hint));
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
        let may_be_set = |argument: &&Arg| match of {
            None => argument.is_global_set() && !matches!(argument.get_long(), Some("config" | "cpu")),
            Some((MODELS, _)) => is_of_models(Some(*argument)),
            Some(_) => !argument.is_required_set(),
        };
        let Some(argument) = owner.and_then(|owner| flag_of(owner, flag)).filter(may_be_set) else {
            let place = of.map_or_else(String::new, |(section, _)| format!(" of [{section}]"));
            let known = owner.into_iter().flat_map(Command::get_arguments).filter(may_be_set);
            let hint = match (similar(flag, known.filter_map(Arg::get_long)), &sections_of(flag, command)[..]) {
                (Some(name), _) => format!("did you mean `{name}`?"),
                (None, [section]) if of.is_none() => format!("it is a setting of the section [{section}]"),
                (None, [first, rest @ ..]) if of.is_none() => {
                    format!("it is a setting of the sections [{first}] and [{}]", rest.join("] and ["))
                }
                _ => NAMES.to_owned(),
            };
            return Err(self.refused(line, &format!("there is no setting `{flag}`{place}"), hint));
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
            // A variable of the environment may be wrong too: that is reported where it is used.
            Err(error)
                if matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue)
                    && usage::flag_of(&error).is_some_and(|wrong| wrong == flag) =>
            {
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
        self.refused(line, &what, VALUES.to_owned())
    }

    fn refused(&self, line: usize, what: &str, hint: String) -> anyhow::Error {
        refusal(format!("{}, line {line}: {what}", self.path.display()), hint)
    }
}

/// The sections that a setting which is in none may be in, by name.
fn sections_of<'c>(flag: &str, command: &'c Command) -> Vec<&'c str> {
    let has = |owner: &&Command| flag_of(owner, flag).is_some_and(|argument| !argument.is_required_set());
    let owners: Vec<&Command> = command.get_subcommands().filter(has).collect();
    if owners.iter().any(|owner| is_of_models(flag_of(owner, flag))) {
        return vec![MODELS];
    }
    let mut names: Vec<&str> = owners.into_iter().map(Command::get_name).collect();
    names.sort_unstable();
    names
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
