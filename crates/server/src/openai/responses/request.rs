//! Requests of the Responses API, and what they ask for.

use calls::{Call, OutputFormat, Priority};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::super::metadata::Metadata;
use super::super::params::{GenerationParams, OutputLength, RawParams, refuse_if};
use super::super::thinking::{self, Effort};
use super::consultation::Consultation;
use super::conversations::Named;
use super::file_search::{FileSearch, RESULTS};
use super::items::{Input, Items};
use super::kept::Record;
use super::output::Frame;
use super::tools::{self, Offer, ResponseToolChoice};
use crate::app::{App, fresh_id, is_of_batch, since_1970};
use crate::error::{Result, ServerError};
use crate::ollama::with_preset;
use crate::recall::{Address, CorpusModel, Question, Wishes, warn_of_unused};
use crate::tenant::Tenant;
use crate::warnings::Warnings;

/// A request for a response. `footnotes` is an extension.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "fields that have no effect on the output are accepted")]
pub(super) struct ResponseRequest {
    pub model: String,
    pub input: Input,
    /// The system message; not that of a previous response.
    instructions: Option<String>,
    text: Option<TextOptions>,
    pub stream: Option<bool>,
    stream_options: Option<Value>,
    max_output_tokens: Option<usize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    /// Functions, alone or in namespaces, and `file_search` over vector stores; other tools that run at OpenAI are ignored with a warning.
    tools: Option<Vec<Value>>,
    tool_choice: Option<ResponseToolChoice>,
    /// False allows one call in a reply.
    parallel_tool_calls: Option<bool>,
    /// A stored response whose input and output come before this input.
    pub previous_response_id: Option<String>,
    /// A conversation whose items come before this input, and to which input and output are added.
    conversation: Option<Named>,
    /// Answer at once with the status `in_progress` and continue without the client.
    pub background: Option<bool>,
    reasoning: Option<Reasoning>,
    /// Only `disabled`: input is never truncated.
    truncation: Option<String>,
    include: Option<Vec<String>>,
    metadata: Option<Metadata>,
    /// Whether the response can be retrieved and continued; true by default, but in a batch.
    pub store: Option<bool>,
    /// Whether the sources of an answer from a corpus follow its text; true by default.
    footnotes: Option<bool>,
    user: Option<String>,
    service_tier: Option<String>,
    safety_identifier: Option<String>,
    prompt_cache_key: Option<String>,
    prompt_cache_retention: Option<String>,
    client_metadata: Option<Value>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ResponseTextOptions)]
struct TextOptions {
    format: Option<TextFormat>,
    /// `verbosity` and others are ignored with a warning.
    #[serde(flatten)]
    #[schema(ignore)]
    unknown: Map<String, Value>,
}

/// The output format.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
#[allow(dead_code, reason = "answers keep to the schema in any case")]
#[schema(as = ResponseTextFormat)]
enum TextFormat {
    Text,
    JsonObject,
    JsonSchema { name: String, description: Option<String>, schema: Value, strict: Option<bool> },
}

/// How much the model thinks.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ResponseReasoning)]
struct Reasoning {
    effort: Option<Effort>,
}

/// What answers.
pub(super) enum Source {
    /// A model; the limits of the call are not fitted into the context yet.
    Model {
        call: Box<Call>,
        length: OutputLength,
        thinking_tokens: usize,
    },
    Corpora(Consultation),
}

/// A validated request.
pub(super) struct Asked {
    pub frame: Frame,
    pub source: Source,
    /// The items of this request.
    pub input: Vec<Value>,
    /// Whether a response that cannot be stored is an error.
    pub must_be_stored: bool,
}

impl Asked {
    /// What is kept of it, without its response.
    pub fn record(&self, previous: Option<String>, corpora: Vec<String>) -> Record {
        let (id, created) = (self.frame.id.clone(), self.frame.created);
        Record { id, created, answered: None, previous, corpora, input: self.input.clone(), response: Value::Null }
    }
}

/// What of `include` is there in any case, or never.
const INCLUDED: [&str; 2] = ["reasoning.encrypted_content", RESULTS];

impl ResponseRequest {
    /// Validates the request. `earlier` are the items of the responses before it.
    pub fn read(
        self,
        (corpora, address): (Vec<CorpusModel>, Address),
        search: Option<FileSearch>,
        earlier: &[Value],
        (app, tenant): (&App, &Tenant),
        warnings: &Warnings,
    ) -> Result<Asked> {
        refuse_if(self.truncation.as_ref().is_some_and(|how| how != "disabled"), "truncation")?;
        let (background, streams) = (self.background.unwrap_or(false), self.stream.unwrap_or(false));
        if background && (streams || !self.stores(app)) {
            let message = "`background` needs a stored response that is not streamed";
            return Err(ServerError::invalid(message, "background"));
        }
        for included in self.include.iter().flatten().filter(|name| !INCLUDED.contains(&name.as_str())) {
            warnings.add(format!("`include` of {included} has no effect"));
        }
        let stores = self.stores(app);
        let text_format = match self.text {
            None => None,
            Some(TextOptions { format, unknown }) => {
                warnings.ignore(&unknown, "text.")?;
                format
            }
        };
        let (output_format, format) = output_format(text_format);
        let parallel = self.parallel_tool_calls.unwrap_or(true);
        let choice = self.tool_choice.as_ref().map_or_else(|| json!("auto"), ResponseToolChoice::to_json);
        let requires_a_call = self.tool_choice.as_ref().is_some_and(ResponseToolChoice::requires_a_call);
        let definitions = self.tools.unwrap_or_default();
        let has_functions = definitions.iter().any(|tool| tool["type"] != "file_search");
        let offer = if search.is_some() {
            Offer::default()
        } else {
            tools::read(&definitions, self.tool_choice, parallel, warnings)?
        };
        let params = RawParams {
            temperature: self.temperature,
            top_p: self.top_p,
            max_tokens: self.max_output_tokens,
            max_tokens_field: Some("max_output_tokens"),
            ..RawParams::default()
        };
        let params: GenerationParams = with_preset(app, params, &output_format)?.read()?;
        let thinking_tokens = thinking::budget(self.reasoning.and_then(|reasoning| reasoning.effort), &Map::new())?;
        let input = self.input.into_items()?;
        let all: Vec<&Value> = earlier.iter().chain(&input).collect();
        let prompt = Items::read(&all, warnings)?.prompt(self.instructions.as_deref())?;
        let (source, model) = if let Some(first) = corpora.first() {
            refuse_if(output_format != OutputFormat::Text, "text.format")?;
            refuse_if(requires_a_call && search.is_none(), "tool_choice")?;
            // The name of the corpus, or of the model that reads what is found.
            let name = if search.is_some() { app.served(&self.model)?.name } else { first.name() };
            let wishes = Wishes {
                temperature: self.temperature,
                seed: None,
                footnotes: self.footnotes.or(search.as_ref().map(|_| false)),
                pages: search.as_ref().and_then(|search| search.most),
                max_output_tokens: self.max_output_tokens,
            };
            let question = |model| {
                let (prompt, address, wishes) = (prompt.clone(), address.clone(), wishes.clone());
                Question { model, prompt, address, wishes }
            };
            let questions: Vec<Question> = corpora.into_iter().map(question).collect();
            let unused = [
                ("tools", has_functions),
                ("max_output_tokens", self.max_output_tokens.is_some() && !questions.iter().all(Question::is_task)),
                ("top_p", self.top_p.is_some_and(|top_p| top_p < 1.0)),
                ("reasoning", thinking_tokens > 0),
            ];
            warn_of_unused(&unused, warnings);
            (Source::Corpora(Consultation { questions, search }), name)
        } else {
            let served = app.served(&self.model)?;
            let mut call = Call {
                sampling: params.sampling_for(0),
                priority: Priority::Interactive,
                tenant: tenant.id,
                output_format,
                tools: offer.tool_use,
                stop: params.stop.clone(),
                ..served.call("response", prompt.or_system(&app.preset.system).with_tools(offer.functions), 1)
            };
            call.limits.thinking_tokens = thinking_tokens;
            let length = params.max_output_tokens.map_or(OutputLength::Default, OutputLength::Tokens);
            (Source::Model { call: Box::new(call), length, thinking_tokens }, served.name)
        };
        let fields = json!({
            "background": background, "instructions": self.instructions, "max_output_tokens": params.max_output_tokens,
            "metadata": self.metadata.unwrap_or_default().0, "parallel_tool_calls": parallel,
            "previous_response_id": self.previous_response_id, "temperature": decimal(params.sampling.temperature),
            "top_p": decimal(params.sampling.top_p), "text": { "format": format }, "tool_choice": choice,
            "tools": definitions, "truncation": "disabled", "store": stores,
            "conversation": self.conversation.as_ref().map(|named| json!({ "id": named.id() })),
        });
        let (id, created) = (fresh_id("resp")?, since_1970().as_secs());
        let frame = Frame { id, created, model, namespaces: offer.namespaces, fields };
        let must_be_stored = background || self.store == Some(true);
        Ok(Asked { frame, source, input, must_be_stored })
    }

    /// The id of the conversation that the response is part of.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] if a previous response is named too.
    pub fn conversation(&self) -> Result<Option<String>> {
        if self.conversation.is_some() && self.previous_response_id.is_some() {
            let message = "a request has `conversation` or `previous_response_id`, not both";
            return Err(ServerError::invalid(message, "conversation"));
        }
        Ok(self.conversation.as_ref().map(|named| named.id().to_owned()))
    }

    /// The search of files that the request asks for.
    pub fn file_search(&self, warnings: &Warnings) -> Result<Option<FileSearch>> {
        let (tools, include) = (self.tools.as_deref().unwrap_or_default(), self.include.as_deref().unwrap_or_default());
        FileSearch::read(tools, self.tool_choice.as_ref(), include, warnings)
    }

    /// Whether the response is kept. Those of a batch are in its file, and would take the places of others.
    pub fn stores(&self, app: &App) -> bool {
        app.config.keep_threads && self.store.unwrap_or_else(|| !is_of_batch())
    }
}

/// A number with the digits that the request has, not with those of the equal number of 64 bits.
fn decimal(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// The output format, and the `format` field of the response.
fn output_format(format: Option<TextFormat>) -> (OutputFormat, Value) {
    match format {
        None | Some(TextFormat::Text) => (OutputFormat::Text, json!({ "type": "text" })),
        Some(TextFormat::JsonObject) => {
            (OutputFormat::Json(json!({ "type": "object" })), json!({ "type": "json_object" }))
        }
        Some(TextFormat::JsonSchema { name, description, schema, strict: _ }) => {
            let format = json!({ "type": "json_schema", "name": name, "description": description, "schema": schema,
                "strict": true });
            (OutputFormat::Json(schema), format)
        }
    }
}
