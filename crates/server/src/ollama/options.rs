//! The options of a request, and what else selects how a reply is generated.

use calls::{Call, OutputFormat, Priority, Prompt, Sampling, ToolUse};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::app::{App, random};
use crate::error::{Result, ServerError};
use crate::limits::{MAX_TOP_LOGPROBS, SHARE, TEMPERATURE, check_stops, check_top, in_range};
use crate::openai::params::{OneOrMany, OutputLength, RawParams, output_limit, penalties};
use crate::pulling::merged;
use crate::served::Served;
use crate::warnings::Warnings;

/// The options that are supported. Those that only place or size the computation (`num_gpu`, `num_thread` and others) have no
/// effect; unknown ones are ignored with a warning.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct Options {
    pub temperature: Option<f32>,
    top_p: Option<f32>,
    /// 0 or less keeps all tokens.
    top_k: Option<i64>,
    min_p: Option<f32>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    /// Of all tokens of the prompt and the answer; 1 unless given.
    repeat_penalty: Option<f32>,
    pub seed: Option<i64>,
    /// Maximum output tokens; 0 or a negative value allows as many as fit.
    num_predict: Option<i64>,
    /// Beyond the model's context it has no effect but a warning.
    num_ctx: Option<i64>,
    stop: Option<OneOrMany>,
}

/// Options that place or size the computation, which is done when models are loaded.
const WITHOUT_EFFECT: [&str; 12] = [
    "f16_kv",
    "low_vram",
    "main_gpu",
    "num_batch",
    "num_gpu",
    "num_keep",
    "num_thread",
    "numa",
    "use_mlock",
    "use_mmap",
    "vocab_only",
    "logits_all",
];

/// The form of the reply that a request asks for.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    pub format: Option<Value>,
    pub options: Option<Map<String, Value>>,
    pub think: Option<Value>,
    pub logprobs: Option<bool>,
    pub top_logprobs: Option<usize>,
}

impl Wishes {
    /// Whether `think` asks for a thought.
    pub fn thinks(&self) -> bool {
        match &self.think {
            None | Some(Value::Bool(false)) => false,
            Some(think) => think != "",
        }
    }
}

/// Ollama's defaults.
const USUAL_TEMPERATURE: f32 = 0.8;
const USUAL_TOP_P: f32 = 0.9;
const USUAL_TOP_K: i64 = 40;

/// Maximum tokens of a thought, by level; `true` is medium. A thought gets at most half of what the prompt leaves.
const THOUGHTS: [(&str, usize); 3] = [("low", 512), ("medium", 2048), ("high", 8192)];

/// The call of a request.
pub(super) async fn call(
    served: &Served,
    prompt: Prompt,
    tools: Option<ToolUse>,
    wishes: Wishes,
    warnings: &Warnings,
    app: &App,
) -> Result<Call> {
    let output_format = match wishes.format {
        None => OutputFormat::Text,
        Some(Value::String(name)) if name.is_empty() => OutputFormat::Text,
        Some(Value::String(name)) if name == "json" => OutputFormat::Json(json!({ "type": "object" })),
        Some(schema @ Value::Object(_)) => OutputFormat::Json(schema),
        Some(_) => return Err(ServerError::invalid("`format` is `json` or a JSON schema", "format")),
    };
    let given = wishes.options.unwrap_or_default();
    let stops = given.get("stop").is_some_and(|stop| !stop.is_null());
    let mut options = Options::read(Some(merged(app.preset.parameters.clone(), given)), warnings)?;
    if !stops && output_format != OutputFormat::Text {
        // The stop strings of a name are for free text.
        options.stop = None;
    }
    let context_tokens = app.caller.tokens().context_tokens(served.agent);
    if let Some(asked) = options.num_ctx.filter(|asked| usize::try_from(*asked).is_ok_and(|n| n > context_tokens)) {
        warnings.add(format!("num_ctx {asked}: the context of {} has {context_tokens} tokens", served.name));
    }
    let stop = options.stop.clone().map_or_else(Vec::new, OneOrMany::into_vec);
    if !stop.is_empty() && output_format != OutputFormat::Text {
        return Err(ServerError::invalid("`stop` ends free text only: omit it or `format`", "options.stop"));
    }
    let asked = match options.num_predict.map(usize::try_from) {
        None => OutputLength::Default,
        Some(Err(_) | Ok(0)) => OutputLength::Rest,
        Some(Ok(tokens)) => OutputLength::Tokens(tokens),
    };
    let sampling = options.sampling()?;
    let logprobs = logprobs(wishes.logprobs, wishes.top_logprobs)?;
    let mut call = Call {
        output_format,
        sampling,
        stop,
        logprobs,
        tools,
        priority: Priority::Interactive,
        ..served.call("ollama", prompt, 1)
    };
    // The prompt opens the thought, if there is one.
    let budget = thought_tokens(served, wishes.think.as_ref(), app)?;
    call.limits.thinking_tokens = budget;
    let prompt_tokens = app.prompt_tokens(&call).await?;
    if budget > 0 {
        let left = context_tokens.saturating_sub(prompt_tokens);
        call.limits.thinking_tokens = budget.min(left / 2).max(1);
    }
    let before_answer = prompt_tokens.saturating_add(call.limits.thinking_tokens);
    call.limits.max_output_tokens = output_limit(app, &call, before_answer, asked)?;
    Ok(call)
}

impl Options {
    /// Reads the options of a request.
    pub fn read(options: Option<Map<String, Value>>, warnings: &Warnings) -> Result<Options> {
        Options::read_at("options.", options.unwrap_or_default(), warnings)
    }

    /// The same for fields with `place` before their names.
    fn read_at(place: &str, mut options: Map<String, Value>, warnings: &Warnings) -> Result<Options> {
        options.retain(|name, _| !WITHOUT_EFFECT.contains(&name.as_str()));
        let options: Options = warnings.read(options.into(), place)?;
        check_stops(options.stop.as_ref().map_or(0, OneOrMany::count), &format!("{place}stop"))?;
        Ok(options)
    }

    /// Checks the `parameters` that a name is to bring along; unknown ones are ignored with a warning.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] with the option.
    pub fn check(parameters: Map<String, Value>, warnings: &Warnings) -> Result<()> {
        Options::read_at("parameters.", parameters, warnings)?.sampling().map(drop)
    }

    /// Whether there are stop strings.
    pub fn stops(&self) -> bool {
        self.stop.clone().is_some_and(|stop| !stop.into_vec().is_empty())
    }

    /// Maximum tokens of a reply; none if the client sets no limit.
    pub fn max_output_tokens(&self) -> Option<usize> {
        self.num_predict.and_then(|tokens| usize::try_from(tokens).ok()).filter(|tokens| *tokens > 0)
    }

    /// The options that apply to replies of models alone, and whether they are used.
    pub fn of_generation(&self) -> [(&'static str, bool); 7] {
        [
            ("options.top_p", self.top_p.is_some()),
            ("options.top_k", self.top_k.is_some()),
            ("options.min_p", self.min_p.is_some()),
            ("options.frequency_penalty", self.frequency_penalty.is_some()),
            ("options.presence_penalty", self.presence_penalty.is_some()),
            ("options.repeat_penalty", self.repeat_penalty.is_some()),
            ("options.num_predict", self.num_predict.is_some()),
        ]
    }

    fn sampling(&self) -> Result<Sampling> {
        let penalties = penalties(
            (self.frequency_penalty, "options.frequency_penalty"),
            (self.presence_penalty, "options.presence_penalty"),
            (self.repeat_penalty, "options.repeat_penalty"),
        )?;
        Ok(Sampling {
            temperature: in_range(self.temperature, USUAL_TEMPERATURE, TEMPERATURE, "options.temperature")?,
            top_p: in_range(self.top_p, USUAL_TOP_P, SHARE, "options.top_p")?,
            top_k: usize::try_from(self.top_k.unwrap_or(USUAL_TOP_K)).unwrap_or(0),
            min_p: in_range(self.min_p, 0.0, SHARE, "options.min_p")?,
            seed: self.seed.map_or_else(random, |seed| Ok(seed.cast_unsigned()))?,
            ..penalties
        })
    }
}

/// A request of OpenAI's or Anthropic's API with the options of its model's name where it says nothing. Stop strings are for
/// free text.
///
/// # Errors
/// If the name has an option that is none.
pub(crate) fn with_preset(app: &App, request: RawParams, output_format: &OutputFormat) -> Result<RawParams> {
    if app.preset.parameters.is_empty() {
        return Ok(request);
    }
    let usual = Options::read(Some(app.preset.parameters.clone()), &Warnings::default())?;
    let most = usual.max_output_tokens();
    let mut usual_stop = usual.stop.map_or_else(Vec::new, OneOrMany::into_vec);
    usual_stop.retain(|stop| !stop.is_empty() && *output_format == OutputFormat::Text);
    Ok(RawParams {
        temperature: request.temperature.or(usual.temperature),
        top_p: request.top_p.or(usual.top_p),
        top_k: request.top_k.or(usual.top_k.map(|top_k| usize::try_from(top_k).unwrap_or(0))),
        min_p: request.min_p.or(usual.min_p),
        seed: request.seed.or(usual.seed),
        usual_stop,
        max_tokens: request.max_tokens.or(most),
        frequency_penalty: request.frequency_penalty.or(usual.frequency_penalty),
        presence_penalty: request.presence_penalty.or(usual.presence_penalty),
        repetition_penalty: request.repetition_penalty.or(usual.repeat_penalty),
        ..request
    })
}

fn logprobs(wanted: Option<bool>, top: Option<usize>) -> Result<Option<usize>> {
    check_top(top, MAX_TOP_LOGPROBS, "top_logprobs")?;
    let top = top.unwrap_or(0);
    if top > 0 && !wanted.unwrap_or(false) {
        return Err(ServerError::invalid("`top_logprobs` needs `logprobs`", "top_logprobs"));
    }
    Ok(wanted.unwrap_or(false).then_some(top))
}

/// Maximum tokens of the thought; 0 without one.
fn thought_tokens(served: &Served, think: Option<&Value>, app: &App) -> Result<usize> {
    let level = match think {
        None | Some(Value::Bool(false)) => return Ok(0),
        Some(Value::Bool(true)) => Some("medium"),
        Some(Value::String(level)) if level.is_empty() => return Ok(0),
        Some(Value::String(level)) => Some(level.as_str()),
        Some(_) => None,
    };
    let found = THOUGHTS.iter().find(|(name, _)| Some(*name) == level);
    let (_, tokens) = found
        .ok_or_else(|| ServerError::invalid("`think` is true, false, \"low\", \"medium\" or \"high\"", "think"))?;
    if app.caller.models().details(served.agent).is_some_and(|details| details.thinks) {
        return Ok(*tokens);
    }
    Err(ServerError::invalid(format!("\"{}\" does not support thinking", served.name), "think"))
}
