//! POST /v1/embeddings: dense vectors, and as extensions the sparse and ColBERT representations of models that have them.

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use calls::{Embedding, Wanted};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::knobs::OneOrMany;
use super::models;
use crate::app::App;
use crate::body::Body;
use crate::error::{Result, ServerError};
use crate::gate::Place;

/// A request for embeddings. `sparse` and `colbert` are extensions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "`user` is accepted, as at OpenAI")]
pub(super) struct EmbeddingRequest {
    model: String,
    input: OneOrMany,
    #[serde(default)]
    encoding_format: Encoding,
    dimensions: Option<usize>,
    user: Option<String>,
    /// Also the weights of tokens.
    #[serde(default)]
    sparse: bool,
    /// Also a vector for each token.
    #[serde(default)]
    colbert: bool,
}

/// How the dense vector is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Float,
    /// Little-endian 32-bit floats.
    Base64,
}

/// OpenAI's limit.
const MOST_TEXTS: usize = 2048;

/// Turn texts into vectors.
#[utoipa::path(post, path = "/v1/embeddings", tag = "OpenAI", request_body = EmbeddingRequest,
    responses((status = 200, body = Value), (status = 400, description = "Refused; a text is never cut")))]
pub(super) async fn embed(
    State(app): State<App>,
    _place: Place,
    Body(request): Body<EmbeddingRequest>,
) -> Result<Json<Value>> {
    models::embedder(&app, &request.model)?;
    let dims = app.embedder.dims();
    if request.dimensions.is_some_and(|asked| asked != dims) {
        return Err(ServerError::invalid(format!("vectors of this model have {dims} dimensions"), "dimensions"));
    }
    let texts = request.input.into_vec();
    if !(1..=MOST_TEXTS).contains(&texts.len()) || texts.iter().any(String::is_empty) {
        return Err(ServerError::invalid(format!("`input` takes 1 to {MOST_TEXTS} strings, none empty"), "input"));
    }
    let tokens: usize = texts.iter().map(|text| app.embedder.token_spans(text).len()).sum();
    let wanted = if request.sparse || request.colbert { Wanted::All } else { Wanted::Dense };
    let embeddings = app.in_time(async { Ok(app.embedder.represent(texts, wanted).await?) }).await?;
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
