//! Sampling parameters that chat completions and completions share.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use calls::{Call, CallError, Sampling};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::{App, random};
use crate::error::{Result, ServerError};
use crate::limits::{MAX_CHOICES, PENALTY, REPETITION_PENALTY, SHARE, TEMPERATURE, check_stops, count, in_range};

/// The parameters as received; both endpoints fill them in.
#[derive(Debug, Default)]
pub(crate) struct RawParams {
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    pub top_k: Option<usize>,
    pub min_p: Option<f32>,
    pub seed: Option<i64>,
    pub stop: Option<OneOrMany>,
    /// The stop strings of the model's name, if the request has none.
    pub usual_stop: Vec<String>,
    pub n: Option<usize>,
    pub max_tokens: Option<usize>,
    /// The name of that field in the request, if it is another.
    pub max_tokens_field: Option<&'static str>,
    pub frequency_penalty: Option<f32>,
    pub presence_penalty: Option<f32>,
    pub repetition_penalty: Option<f32>,
    pub logit_bias: Option<serde_json::Map<String, serde_json::Value>>,
}

/// The validated parameters.
#[derive(Debug, Clone)]
pub(crate) struct GenerationParams {
    pub sampling: Sampling,
    pub stop: Vec<String>,
    pub n: usize,
    /// Maximum output tokens, if the request sets them.
    pub max_output_tokens: Option<usize>,
}

/// One string or several.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub fn count(&self) -> usize {
        match self {
            OneOrMany::One(_) => 1,
            OneOrMany::Many(texts) => texts.len(),
        }
    }

    pub fn into_vec(self) -> Vec<String> {
        match self {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        }
    }
}

/// OpenAI's limit.
const BIAS: RangeInclusive<f32> = -100.0..=100.0;
/// Maximum number of tokens that a request may bias.
const MAX_BIASES: usize = 1024;

impl RawParams {
    /// Validates every field; defaults are OpenAI's: temperature 1, a random seed.
    pub fn read(self) -> Result<GenerationParams> {
        let temperature = in_range(self.temperature, 1.0, TEMPERATURE, "temperature")?;
        let top_p = in_range(self.top_p, 1.0, SHARE, "top_p")?;
        let min_p = in_range(self.min_p, 0.0, SHARE, "min_p")?;
        let penalties = penalties(
            (self.frequency_penalty, "frequency_penalty"),
            (self.presence_penalty, "presence_penalty"),
            (self.repetition_penalty, "repetition_penalty"),
        )?;
        let logit_bias = biases(self.logit_bias.unwrap_or_default())?;
        let stop = self.stop.map_or(self.usual_stop, OneOrMany::into_vec);
        check_stops(stop.len(), "stop")?;
        if stop.iter().any(String::is_empty) {
            return Err(ServerError::invalid("strings of `stop` must not be empty", "stop"));
        }
        let n = count(self.n.unwrap_or(1), MAX_CHOICES, "n")?;
        if self.max_tokens == Some(0) {
            let field = self.max_tokens_field.unwrap_or("max_tokens");
            return Err(ServerError::invalid(format!("`{field}` must be at least 1"), field));
        }
        let seed = self.seed.map_or_else(random, |seed| Ok(seed.cast_unsigned()))?;
        let top_k = self.top_k.unwrap_or(0);
        let sampling = Sampling { temperature, top_p, top_k, min_p, logit_bias, seed, ..penalties };
        Ok(GenerationParams { sampling, stop, n, max_output_tokens: self.max_tokens })
    }
}

impl GenerationParams {
    /// The sampling parameters of one of several choices.
    pub fn sampling_for(&self, choice: usize) -> Sampling {
        Sampling { seed: self.sampling.seed.wrapping_add(choice as u64), ..self.sampling.clone() }
    }

    /// Maximum output tokens for a prompt: as requested, otherwise what the context leaves, at most the server's
    /// default.
    ///
    /// # Errors
    /// As [`output_limit`].
    pub fn output_tokens(&self, app: &App, call: &Call, prompt_tokens: usize) -> Result<usize> {
        output_limit(
            app,
            call,
            prompt_tokens,
            self.max_output_tokens.map_or(OutputLength::Default, OutputLength::Tokens),
        )
    }
}

/// The requested output length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputLength {
    Tokens(usize),
    /// What the context leaves, at most the server's default.
    Default,
    /// What the context leaves.
    Rest,
}

/// A prompt that exceeds the context this many times does so even if its tokens were overestimated.
const SURELY_TOO_LONG: usize = 2;

/// Maximum output tokens for a prompt with this many tokens.
///
/// # Errors
/// [`CallError::TooLong`] if the context cannot hold both under any estimate.
pub(crate) fn output_limit(app: &App, call: &Call, prompt_tokens: usize, asked: OutputLength) -> Result<usize> {
    let context_tokens = app.caller.tokens().context_tokens(call.agent);
    let left = context_tokens.saturating_sub(prompt_tokens);
    let max_output_tokens = match asked {
        OutputLength::Tokens(tokens) => tokens,
        OutputLength::Default => left.min(app.config.default_output_tokens).max(1),
        OutputLength::Rest => left.max(1),
    };
    // The call counts exactly and reports why a prompt cannot be counted; for a remote endpoint tokens are
    // overestimated.
    let counted = prompt_tokens != usize::MAX;
    if max_output_tokens > context_tokens || counted && prompt_tokens / SURELY_TOO_LONG > context_tokens {
        return Err(CallError::TooLong { step: call.step, prompt_tokens, max_output_tokens, context_tokens }.into());
    }
    Ok(max_output_tokens)
}

/// A penalty as a request states it, and the name of its field.
pub(crate) type Penalty<'a> = (Option<f32>, &'a str);

/// Greedy sampling with these penalties, each within its range.
pub(crate) fn penalties(frequency: Penalty<'_>, presence: Penalty<'_>, repetition: Penalty<'_>) -> Result<Sampling> {
    Ok(Sampling {
        frequency_penalty: in_range(frequency.0, 0.0, PENALTY, frequency.1)?,
        presence_penalty: in_range(presence.0, 0.0, PENALTY, presence.1)?,
        repetition_penalty: in_range(repetition.0, 1.0, REPETITION_PENALTY, repetition.1)?,
        ..Sampling::GREEDY
    })
}

/// Biases by token id.
fn biases(fields: serde_json::Map<String, serde_json::Value>) -> Result<BTreeMap<u32, f32>> {
    let refused = |message: String| ServerError::invalid(message, "logit_bias");
    if fields.len() > MAX_BIASES {
        return Err(refused(format!("`logit_bias` has {} tokens; at most {MAX_BIASES} are allowed", fields.len())));
    }
    let bias = |(token, bias): (String, serde_json::Value)| {
        let id = token.parse::<u32>();
        let id = id.map_err(|_| refused(format!("`logit_bias` maps token ids to numbers; `{token}` is not an id")))?;
        let number = bias.as_f64().map(|bias| bias as f32).filter(|bias| BIAS.contains(bias));
        let number = number
            .ok_or_else(|| refused(format!("`logit_bias` of token {id} must be {} to {}", BIAS.start(), BIAS.end())))?;
        Ok((id, number))
    };
    fields.into_iter().map(bias).collect()
}

/// Refuses a field that is not supported.
pub(crate) fn refuse_if(used: bool, param: &str) -> Result<()> {
    if used { Err(ServerError::invalid(format!("`{param}` is not supported here"), param)) } else { Ok(()) }
}
