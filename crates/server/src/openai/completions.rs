//! POST /v1/completions: continues a text without a chat template.

use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use calls::{Call, OnText, OutputFormat, Priority, Prompt, Reply, TenantId, Usage};
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::chat::{StreamOptions, closing_reason};
use super::params::{GenerationParams, OneOrMany, RawParams};
use super::{logprobs, usage};
use crate::admitted::AdmittedJson;
use crate::app::{App, fresh_id, since_1970};
use crate::error::{Result, ServerError};
use crate::limits::{MAX_CHOICES, check_top};
use crate::ollama::with_preset;
use crate::served::Served;
use crate::stream::{Framing, Sink, respond};
use crate::tenant::{CurrentTenant, Tenant};

/// A request for a completion. `top_k`, `min_p` and `repetition_penalty` are extensions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "fields that have no effect on the output are accepted")]
pub(super) struct CompletionRequest {
    model: String,
    prompt: OneOrMany,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    logprobs: Option<usize>,
    max_tokens: Option<usize>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<usize>,
    min_p: Option<f32>,
    seed: Option<i64>,
    stop: Option<OneOrMany>,
    n: Option<usize>,
    best_of: Option<usize>,
    echo: Option<bool>,
    suffix: Option<String>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    repetition_penalty: Option<f32>,
    logit_bias: Option<Map<String, Value>>,
    user: Option<String>,
}

/// A validated request.
struct Completion {
    id: String,
    created: u64,
    tenant: TenantId,
    served: Served,
    prompts: Vec<String>,
    /// The text behind the place to fill in.
    suffix: Option<String>,
    params: GenerationParams,
    logprobs: Option<usize>,
    /// True if choices begin with their prompt.
    echo: bool,
    /// Held while a choice is submitted.
    order: tokio::sync::Mutex<()>,
}

/// OpenAI's limit and default.
const MAX_LOGPROBS: usize = 5;
const DEFAULT_OUTPUT_TOKENS: usize = 16;

/// Continue a text.
#[utoipa::path(post, path = "/v1/completions", tag = "OpenAI", request_body = CompletionRequest,
    responses((status = 200, description = "A completion, or its chunks as server-sent events",
            content((Value = "application/json"), (String = "text/event-stream"))),
        (status = 400, description = "Refused; a prompt that does not fit is reported with both numbers")))]
pub(super) async fn complete(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    AdmittedJson(request, permit): AdmittedJson<CompletionRequest>,
) -> Result<Response> {
    let streams = request.stream.unwrap_or(false);
    let include_usage = StreamOptions::include_usage(request.stream_options, streams)?;
    let app = app.serving(&request.model).await?;
    let completion = Completion::read(request, &tenant, &app)?;
    completion.check_lengths(&app).await?;
    if !streams {
        let replies = (0..completion.choices()).map(|choice| completion.generate(choice, None, &app));
        let replies = app.with_deadline(try_join_all(replies)).await?;
        return Ok(Json(completion.to_json(&replies)).into_response());
    }
    respond(Framing::Events, |sink| async move {
        let _permit = permit;
        app.with_deadline(completion.stream(sink, include_usage, &app)).await
    })
    .await
}

impl Completion {
    fn read(request: CompletionRequest, tenant: &Tenant, app: &App) -> Result<Completion> {
        let served = app.served(&request.model)?;
        let n = request.n.unwrap_or(1);
        if let Some(best_of) = request.best_of.filter(|best_of| *best_of != n) {
            let message = format!("`best_of` is {best_of} and `n` is {n}; only equal numbers are supported");
            return Err(ServerError::invalid(message, "best_of"));
        }
        let echo = request.echo.unwrap_or(false);
        if echo && request.logprobs.is_some() {
            let message = "`echo` returns the prompt as text, without log-probabilities: omit it or `logprobs`";
            return Err(ServerError::invalid(message, "echo"));
        }
        check_top(request.logprobs, MAX_LOGPROBS, "logprobs")?;
        let prompts = request.prompt.into_vec();
        if !(1..=MAX_CHOICES).contains(&prompts.len()) || prompts.iter().any(String::is_empty) {
            return Err(ServerError::invalid(
                format!("`prompt` takes 1 to {MAX_CHOICES} strings, none empty"),
                "prompt",
            ));
        }
        let params = RawParams {
            temperature: request.temperature,
            top_p: request.top_p,
            top_k: request.top_k,
            min_p: request.min_p,
            seed: request.seed,
            stop: request.stop,
            n: request.n,
            max_tokens: request.max_tokens,
            frequency_penalty: request.frequency_penalty,
            presence_penalty: request.presence_penalty,
            repetition_penalty: request.repetition_penalty,
            logit_bias: request.logit_bias,
            ..RawParams::default()
        };
        let params = with_preset(app, params, &OutputFormat::Text)?;
        let max_tokens = params.max_tokens.or(Some(DEFAULT_OUTPUT_TOKENS));
        let params = RawParams { max_tokens, ..params }.read()?;
        if prompts.len() * params.n > MAX_CHOICES {
            let choices = prompts.len() * params.n;
            let message =
                format!("{choices} choices are requested, `n` for each prompt; at most {MAX_CHOICES} are allowed");
            return Err(ServerError::invalid(message, "n"));
        }
        Ok(Completion {
            id: fresh_id("cmpl")?,
            created: since_1970().as_secs(),
            tenant: tenant.id,
            served,
            prompts,
            suffix: request.suffix.filter(|suffix| !suffix.is_empty()),
            params,
            logprobs: request.logprobs,
            echo,
            order: tokio::sync::Mutex::default(),
        })
    }

    fn choices(&self) -> usize {
        self.prompts.len() * self.params.n
    }

    /// Refuses prompts that do not fit before any generation starts; each prompt is tokenised once for all its choices.
    async fn check_lengths(&self, app: &App) -> Result<()> {
        for prompt in 0..self.prompts.len() {
            let call = self.call(prompt * self.params.n);
            self.params.output_tokens(app, &call, app.prompt_tokens(&call).await?)?;
        }
        Ok(())
    }

    /// What a choice begins with.
    fn echoed(&self, choice: usize) -> &str {
        if self.echo { &self.prompts[choice / self.params.n] } else { "" }
    }

    async fn generate(&self, choice: usize, on_text: Option<OnText>, app: &App) -> Result<Reply> {
        app.call_in_order(self.tenant, || Call { on_text, ..self.call(choice) }, &self.order).await
    }

    fn call(&self, choice: usize) -> Call {
        let (prompt, draw) = (&self.prompts[choice / self.params.n], choice % self.params.n);
        let prompt = match &self.suffix {
            None => Prompt::bare(prompt.as_str()),
            Some(suffix) => Prompt::infill(prompt.as_str(), suffix.as_str()),
        };
        let max_output_tokens = self.params.max_output_tokens.unwrap_or(DEFAULT_OUTPUT_TOKENS);
        Call {
            sampling: self.params.sampling_for(draw),
            priority: Priority::Interactive,
            stop: self.params.stop.clone(),
            logprobs: self.logprobs,
            ..self.served.call("completion", prompt, max_output_tokens)
        }
    }

    fn to_json(&self, replies: &[Reply]) -> Value {
        let choice = |(index, reply): (usize, &Reply)| {
            let logprobs = self.logprobs.map(|_| logprobs::of_completion(&reply.logprobs));
            let text = self.echoed(index).to_owned() + &reply.text;
            json!({ "index": index, "text": text, "logprobs": logprobs, "finish_reason": closing_reason(reply.finish) })
        };
        let mut object = self.frame(replies.iter().enumerate().map(choice).collect());
        object["usage"] = usage(self.usage_of(replies.iter().map(|reply| reply.usage)));
        object
    }

    async fn stream(&self, sink: Sink, include_usage: bool, app: &App) -> Result<()> {
        let replies = (0..self.choices()).map(|choice| self.stream_choice(choice, &sink, app));
        let usages = try_join_all(replies).await?;
        if include_usage {
            let mut last = self.frame(Vec::new());
            last["usage"] = usage(self.usage_of(usages));
            sink.json(&last);
        }
        sink.done();
        Ok(())
    }

    async fn stream_choice(&self, index: usize, sink: &Sink, app: &App) -> Result<Usage> {
        let (frame, out) = (self.frame(Vec::new()), sink.clone());
        // The first piece follows the prompt.
        let echoed = Arc::new(Mutex::new(self.echoed(index).to_owned()));
        let unsent = |echoed: &Mutex<String>| take(&mut *echoed.lock().unwrap_or_else(PoisonError::into_inner));
        let prompt = Arc::clone(&echoed);
        let on_text = OnText::new(move |text| {
            let text = unsent(&prompt) + text;
            let mut chunk = frame.clone();
            chunk["choices"] = json!([{ "index": index, "text": text, "logprobs": null, "finish_reason": null }]);
            out.json(&chunk);
        });
        let reply = self.generate(index, Some(on_text), app).await?;
        let logprobs = self.logprobs.map(|_| logprobs::of_completion(&reply.logprobs));
        let end = json!({ "index": index, "text": unsent(&echoed), "logprobs": logprobs, "finish_reason": closing_reason(reply.finish) });
        sink.json(&self.frame(vec![end]));
        Ok(reply.usage)
    }

    fn frame(&self, choices: Vec<Value>) -> Value {
        json!({ "id": self.id, "object": "text_completion", "created": self.created, "model": self.served.name, "choices": choices })
    }

    /// Each prompt's tokens are counted once, whatever the number of choices.
    fn usage_of(&self, usages: impl IntoIterator<Item = Usage>) -> Usage {
        let mut sum = Usage::default();
        for (choice, mut usage) in usages.into_iter().enumerate() {
            if choice % self.params.n != 0 {
                (usage.prompt_tokens, usage.cached_tokens) = (0, 0);
            }
            sum += usage;
        }
        sum
    }
}
