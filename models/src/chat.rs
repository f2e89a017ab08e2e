//! Chat templates: from turns to the exact text that a model was trained on.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use chrono::{DateTime, FixedOffset, Local};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde};
use minijinja::{Environment, Error, ErrorKind, Value, context};
use serde::Serialize;

use crate::error::{ModelError, Result};

/// Steps that a template may take; a real one needs some hundreds.
const FUEL: u64 = 1_000_000;

/// A checkpoint's Jinja template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
}

/// What a template reads besides the messages.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChatOptions<'a> {
    /// Definitions of the tools that the model may call, as an array.
    pub tools: Option<&'a serde_json::Value>,
    /// Whether the model is to think before it answers, for templates that ask (`enable_thinking`, as Qwen3's does).
    pub thinks: Option<bool>,
    /// Opens the assistant's turn.
    pub opens_turn: bool,
    /// Further variables of the template.
    pub variables: Option<&'a serde_json::Map<String, serde_json::Value>>,
}

/// A date and time of day with its distance from UTC, written as RFC 3339 has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime(DateTime<FixedOffset>);

const NAME: &str = "chat";

impl ChatTemplate {
    /// Compiles a template as Hugging Face tokenizers do it.
    ///
    /// # Errors
    /// If it is no valid template.
    pub fn new(source: &str) -> Result<ChatTemplate> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(template_error)?;
        environment.set_syntax(syntax);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", to_json);
        environment.add_function("raise_exception", |message: String| -> std::result::Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_function("strftime_now", |format: &str| written(LocalTime::now(), format));
        // What Hugging Face tokenizers pass where there are none.
        environment.add_global("tools", Value::from(()));
        environment.add_global("documents", Value::from(()));
        environment.add_template_owned(NAME, source.to_owned()).map_err(template_error)?;
        Ok(ChatTemplate { environment })
    }

    /// The same template with the names of special tokens that it may write: `bos_token`, `eos_token` and others.
    #[must_use]
    pub fn with_tokens(mut self, tokens: impl IntoIterator<Item = (&'static str, String)>) -> ChatTemplate {
        for (name, token) in tokens {
            self.environment.add_global(name, token);
        }
        self
    }

    /// The same template for which it is always this time.
    #[must_use]
    pub fn at(mut self, time: LocalTime) -> ChatTemplate {
        self.environment.add_function("strftime_now", move |format: &str| written(time, format));
        self
    }

    /// Renders turns (`{"role", "content"}` each) and opens the assistant's.
    ///
    /// # Errors
    /// If the template refuses these turns.
    pub fn render(&self, messages: &[impl Serialize]) -> Result<String> {
        self.render_with(messages, None, true)
    }

    /// Renders turns with these options.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`].
    pub fn render_chat(&self, messages: &[impl Serialize], options: ChatOptions<'_>) -> Result<String> {
        let ChatOptions { tools, thinks, opens_turn, variables } = options;
        let none = serde_json::Map::new();
        let mut context = context! {
            messages => Value::from(Serde(messages)),
            tools => tools.map(|tools| Value::from(Serde(tools))),
            add_generation_prompt => opens_turn,
            ..Value::from(Serde(variables.unwrap_or(&none)))
        };
        if let Some(thinks) = thinks {
            context = context! { enable_thinking => thinks, ..context };
        }
        self.rendered(context)
    }

    /// Renders turns with the JSON descriptions of tools that the model may call; opens the assistant's turn if asked to.
    ///
    /// # Errors
    /// As [`ChatTemplate::render`].
    pub fn render_with(
        &self,
        messages: &[impl Serialize],
        tools: Option<&serde_json::Value>,
        opens_turn: bool,
    ) -> Result<String> {
        self.render_chat(messages, ChatOptions { tools, opens_turn, ..ChatOptions::default() })
    }

    fn rendered(&self, context: Value) -> Result<String> {
        let template = self.environment.get_template(NAME).map_err(template_error)?;
        template.render(context).map_err(template_error)
    }
}

impl LocalTime {
    /// The date and time now, where this machine is.
    pub fn now() -> LocalTime {
        LocalTime(Local::now().fixed_offset())
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339())
    }
}

impl FromStr for LocalTime {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<LocalTime, String> {
        DateTime::parse_from_rfc3339(text)
            .map(LocalTime)
            .map_err(|error| format!("`{text}` is no date and time: {error}"))
    }
}

/// A date and time in a format. Templates that write it (Llama 3.1 and later) give another prompt every day.
fn written(time: LocalTime, format: &str) -> std::result::Result<String, Error> {
    let mut text = String::new();
    let written = write!(text, "{}", time.0.format(format));
    written.map_err(|_| Error::new(ErrorKind::InvalidOperation, format!("`{format}` is no format of a date")))?;
    Ok(text)
}

/// `json.dumps` with Python's separators, as Hugging Face's filter writes it: nothing but JSON is escaped. `indent` puts
/// every value on a line of its own.
fn to_json(value: Value, options: Kwargs) -> std::result::Result<String, Error> {
    struct PythonStyle;
    impl serde_json::ser::Formatter for PythonStyle {
        fn begin_array_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W, first: bool) -> std::io::Result<()> {
            if first { Ok(()) } else { out.write_all(b", ") }
        }

        fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, out: &mut W, first: bool) -> std::io::Result<()> {
            if first { Ok(()) } else { out.write_all(b", ") }
        }

        fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
            out.write_all(b": ")
        }
    }
    let indent = options.get::<Option<usize>>("indent")?;
    options.assert_all_used()?;
    let mut out = Vec::new();
    let invalid = |error: String| Error::new(ErrorKind::BadSerialization, error);
    let written = match indent {
        None => value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, PythonStyle)),
        Some(spaces) => {
            let spaces = " ".repeat(spaces);
            let lines = serde_json::ser::PrettyFormatter::with_indent(spaces.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, lines))
        }
    };
    written.map_err(|error| invalid(error.to_string()))?;
    String::from_utf8(out).map_err(|error| invalid(error.to_string()))
}

fn template_error(error: Error) -> ModelError {
    ModelError::Template { reason: error.to_string() }
}
