//! POST /v1/embeddings: dense vectors, and as extensions the sparse and ColBERT representations of models that have them.

use std::mem::take;

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use calls::{Embedding, Wanted};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::models;
use crate::admission::AdmittedJson;
use crate::app::App;
use crate::error::{Result, ServerError};

/// A request for embeddings. `sparse` and `colbert` are extensions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "`user` is accepted, as at OpenAI")]
pub(super) struct EmbeddingRequest {
    model: String,
    input: Input,
    #[serde(default)]
    encoding_format: Encoding,
    dimensions: Option<usize>,
    user: Option<String>,
    /// Also return lexical weights.
    #[serde(default)]
    sparse: bool,
    /// Also return a vector per token.
    #[serde(default)]
    colbert: bool,
}

/// Texts. Token ids are refused: they belong to another model's tokenizer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
enum Input {
    Text(String),
    Texts(Vec<String>),
    Tokens(#[allow(dead_code, reason = "only its form counts")] Vec<u32>),
    ManyTokens(#[allow(dead_code, reason = "only its form counts")] Vec<Vec<u32>>),
}

impl Input {
    /// The texts.
    fn texts(&mut self) -> Result<Vec<String>> {
        match self {
            Input::Text(text) => Ok(vec![take(text)]),
            Input::Texts(texts) => Ok(take(texts)),
            Input::Tokens(_) | Input::ManyTokens(_) => Err(ServerError::invalid(
                "`input` takes texts, not token ids; with LangChain's OpenAIEmbeddings set \
                 `check_embedding_ctx_length=False`",
                "input",
            )),
        }
    }
}

/// The encoding of dense vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Float,
    /// Little-endian 32-bit floats.
    Base64,
}

/// OpenAI's limit.
const MAX_TEXTS: usize = 2048;

/// Maximum token vectors held at once; a single text may exceed it.
pub(super) const MAX_VECTORS: usize = 16_384;

/// Computes only what was requested; token vectors that only sparse weights need are dropped group by group.
async fn embeddings(app: &App, texts: Vec<(String, usize)>, request: &EmbeddingRequest) -> Result<Vec<Embedding>> {
    if !request.sparse && !request.colbert {
        return app.represent(texts.into_iter().map(|(text, _)| text).collect(), Wanted::Dense).await;
    }
    let mut all = Vec::new();
    for batch in batches(texts) {
        let mut embeddings = app.represent(batch, Wanted::All).await?;
        if !request.colbert {
            embeddings.iter_mut().for_each(|embedding| embedding.colbert = None);
        }
        all.append(&mut embeddings);
    }
    Ok(all)
}

/// Groups of texts with at most [`MAX_VECTORS`] tokens, or of one text.
pub(super) fn batches(texts: Vec<(String, usize)>) -> Vec<Vec<String>> {
    let (mut batches, mut tokens_held): (Vec<Vec<String>>, usize) = (Vec::new(), 0);
    for (text, tokens) in texts {
        tokens_held += tokens;
        match batches.last_mut() {
            Some(batch) if tokens_held <= MAX_VECTORS => batch.push(text),
            _ => {
                tokens_held = tokens;
                batches.push(vec![text]);
            }
        }
    }
    batches
}

/// Embed texts.
#[utoipa::path(post, path = "/v1/embeddings", tag = "OpenAI", request_body = EmbeddingRequest,
    responses((status = 200, body = Value), (status = 400, description = "Refused; a text is never truncated")))]
pub(super) async fn embed(
    State(app): State<App>,
    AdmittedJson(mut request, _permit): AdmittedJson<EmbeddingRequest>,
) -> Result<Json<Value>> {
    models::embedder(&app, &request.model)?;
    let dims = app.embedder.dims();
    if request.dimensions.is_some_and(|requested| requested != dims) {
        return Err(ServerError::invalid(format!("vectors of this model have {dims} dimensions"), "dimensions"));
    }
    let texts = request.input.texts()?;
    if !(1..=MAX_TEXTS).contains(&texts.len()) || texts.iter().any(String::is_empty) {
        return Err(ServerError::invalid(format!("`input` takes 1 to {MAX_TEXTS} strings, none empty"), "input"));
    }
    let texts = app.with_token_counts(texts).await?;
    let tokens: usize = texts.iter().map(|(_, tokens)| tokens).sum();
    if request.colbert && tokens > MAX_VECTORS {
        let message = format!(
            "the texts have {tokens} tokens, but a response holds at most {MAX_VECTORS} token vectors; send fewer texts"
        );
        return Err(ServerError::invalid(message, "colbert"));
    }
    let embeddings = app.with_deadline(embeddings(&app, texts, &request)).await?;
    let data = embeddings.iter().enumerate().map(|(index, embedding)| {
        let mut object = json!({ "object": "embedding", "index": index, "embedding": dense(&embedding.dense, request.encoding_format) });
        if request.sparse {
            object["sparse"] = sparse(embedding)?;
        }
        if request.colbert {
            object["colbert"] = json!(embedding.colbert.as_ref().ok_or_else(|| no_head("colbert"))?);
        }
        Ok(object)
    });
    let data = data.collect::<Result<Vec<Value>>>()?;
    let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
    Ok(Json(json!({ "object": "list", "data": data, "model": app.embedder.name(), "usage": usage })))
}

fn dense(vector: &[f32], encoding: Encoding) -> Value {
    match encoding {
        Encoding::Float => json!(vector),
        Encoding::Base64 => STANDARD.encode(vector.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>()).into(),
    }
}

fn sparse(embedding: &Embedding) -> Result<Value> {
    let weights = embedding.sparse.as_ref().ok_or_else(|| no_head("sparse"))?;
    let (indices, values): (Vec<u32>, Vec<f32>) = weights.iter().copied().unzip();
    Ok(json!({ "indices": indices, "values": values }))
}

fn no_head(name: &str) -> ServerError {
    ServerError::invalid(format!("this model has no {name} representation"), name)
}
