//! POST /api/embed, and /api/embeddings for older clients.

use std::time::Instant;

use axum::extract::State;
use axum::{Extension, Json};
use calls::{Heads, TenantId};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::options::Options;
use crate::admitted::AdmittedJson;
use crate::app::App;
use crate::error::{Result, ServerError};
use crate::openai::params::OneOrMany;
use crate::openai::{MAX_TEXTS, at_most, shorten};
use crate::tenant::CurrentTenant;
use crate::warnings::Warnings;

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct OllamaEmbed {
    model: String,
    input: Option<OneOrMany>,
    /// Cut texts that are longer than the model reads (by default, with a warning), or refuse them.
    truncate: Option<bool>,
    /// Shorten the vectors to this length; they are normalised again.
    dimensions: Option<usize>,
    /// No option has an effect on vectors.
    #[serde(rename = "options")]
    #[schema(value_type = Option<Options>)]
    _options: Option<Map<String, Value>>,
    /// Models stay loaded while the server runs.
    #[serde(rename = "keep_alive")]
    _keep_alive: Option<Value>,
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct OllamaEmbedOne {
    model: String,
    #[serde(default)]
    prompt: String,
    /// No option has an effect on vectors.
    #[serde(rename = "options")]
    #[schema(value_type = Option<Options>)]
    _options: Option<Map<String, Value>>,
    /// Models stay loaded while the server runs.
    #[serde(rename = "keep_alive")]
    _keep_alive: Option<Value>,
}

/// Embed texts.
#[utoipa::path(post, path = "/api/embed", tag = "Ollama", request_body = OllamaEmbed, responses((status = 200, body = Value)))]
pub(super) async fn embed(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    AdmittedJson(request, _permit): AdmittedJson<OllamaEmbed>,
) -> Result<Json<Value>> {
    app.check_embedder(&request.model)?;
    let started = Instant::now();
    let texts = match request.input {
        // Ollama's clients ask in this way whether the model is there.
        Some(OneOrMany::One(text)) if text.is_empty() => Vec::new(),
        input => input.map_or_else(Vec::new, OneOrMany::into_vec),
    };
    if texts.len() > MAX_TEXTS {
        let message = format!("`input` takes at most {MAX_TEXTS} texts and has {}", texts.len());
        return Err(ServerError::invalid(message, "input"));
    }
    shorten(&mut vec![0.0; app.embedder.dims()], request.dimensions.filter(|wanted| *wanted > 0))?;
    let (vectors, tokens) =
        vectors(&app, tenant.id, texts, request.truncate.unwrap_or(true), request.dimensions, &warnings).await?;
    let nanoseconds = started.elapsed().as_nanos() as u64;
    Ok(Json(
        json!({ "model": app.embedder.name(), "embeddings": vectors, "total_duration": nanoseconds, "load_duration": 0, "prompt_eval_count": tokens }),
    ))
}

/// Embed one text.
#[utoipa::path(post, path = "/api/embeddings", tag = "Ollama", request_body = OllamaEmbedOne, responses((status = 200, body = Value)))]
pub(super) async fn embed_one(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Extension(warnings): Extension<Warnings>,
    AdmittedJson(request, _permit): AdmittedJson<OllamaEmbedOne>,
) -> Result<Json<Value>> {
    app.check_embedder(&request.model)?;
    let texts = if request.prompt.is_empty() { Vec::new() } else { vec![request.prompt] };
    let (mut vectors, _) = vectors(&app, tenant.id, texts, true, None, &warnings).await?;
    Ok(Json(json!({ "embedding": vectors.pop().unwrap_or_default() })))
}

/// The vectors of texts, and how many tokens they have together.
async fn vectors(
    app: &App,
    tenant: TenantId,
    mut texts: Vec<String>,
    truncate: bool,
    dimensions: Option<usize>,
    warnings: &Warnings,
) -> Result<(Vec<Vec<f32>>, usize)> {
    if truncate {
        texts = at_most(app, texts, app.embedder.window_tokens(), warnings).await?;
    }
    let (texts, counts): (Vec<String>, Vec<usize>) = app.with_token_counts(texts).await?.into_iter().unzip();
    let embeddings = app.with_deadline(app.encode(tenant, texts, Heads::Dense)).await?;
    let mut vectors: Vec<Vec<f32>> = embeddings.into_iter().map(|embedding| embedding.dense).collect();
    for vector in &mut vectors {
        shorten(vector, dimensions.filter(|wanted| *wanted > 0))?;
    }
    Ok((vectors, counts.into_iter().sum()))
}
