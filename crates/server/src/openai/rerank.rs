//! POST /v1/rerank: ranks texts by relevance to a query, in the format of Jina and Cohere.
//!
//! With a ColBERT head the score is MaxSim averaged over the query's tokens (for each, its best match in the text);
//! otherwise it is the cosine of the dense vectors.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use calls::{Embedding, Heads, TenantId};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::embeddings::batches;
use crate::admitted::AdmittedJson;
use crate::app::App;
use crate::blocking::run_blocking;
use crate::error::{Result, ServerError};
use crate::tenant::CurrentTenant;

/// A request to rank texts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RerankRequest {
    model: String,
    query: String,
    documents: Vec<RerankDocument>,
    /// At least 1; all by default.
    top_n: Option<usize>,
    #[serde(default)]
    return_documents: bool,
}

/// A text to rank.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a string or {\"text\": ...}")]
enum RerankDocument {
    Text(String),
    Object { text: String },
}

const MAX_DOCUMENTS: usize = 1024;

/// Rank texts by relevance to a query.
#[utoipa::path(post, path = "/v1/rerank", tag = "OpenAI", request_body = RerankRequest, responses((status = 200, body = Value)))]
pub(super) async fn rerank(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    AdmittedJson(request, _permit): AdmittedJson<RerankRequest>,
) -> Result<Json<Value>> {
    app.check_embedder(&request.model)?;
    let document = |document: RerankDocument| match document {
        RerankDocument::Text(text) | RerankDocument::Object { text } => text,
    };
    let documents: Vec<String> = request.documents.into_iter().map(document).collect();
    if !(1..=MAX_DOCUMENTS).contains(&documents.len()) || documents.iter().any(String::is_empty) {
        return Err(ServerError::invalid(
            format!("`documents` takes 1 to {MAX_DOCUMENTS} texts, none empty"),
            "documents",
        ));
    }
    if request.query.is_empty() {
        return Err(ServerError::invalid("the query is empty", "query"));
    }
    if request.top_n == Some(0) {
        return Err(ServerError::invalid("`top_n` must be at least 1", "top_n"));
    }
    let (query, texts) =
        (app.with_token_counts(vec![request.query]).await?, app.with_token_counts(documents.clone()).await?);
    let tokens: usize = query.iter().chain(&texts).map(|(_, tokens)| tokens).sum();
    let scores = app.with_deadline(scores(&app, tenant.id, query, texts)).await?;
    let mut scored: Vec<(usize, f32)> = scores.into_iter().enumerate().collect();
    // The sort is stable: texts with equal scores keep their order.
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    scored.truncate(request.top_n.unwrap_or(usize::MAX));
    let result = |(index, score): (usize, f32)| {
        let mut result = json!({ "index": index, "relevance_score": score });
        if request.return_documents {
            result["document"] = json!({ "text": documents[index] });
        }
        result
    };
    let results: Vec<Value> = scored.into_iter().map(result).collect();
    // Clients of Voyage's format, such as Continue, read `data`.
    let (usage, data) = (json!({ "total_tokens": tokens }), results.clone());
    Ok(Json(json!({ "model": app.embedder.name(), "usage": usage, "results": results, "data": data })))
}

/// The score of each text. Token vectors are large, so only those of one group of texts are held at a time.
async fn scores(
    app: &App,
    tenant: TenantId,
    query: Vec<(String, usize)>,
    texts: Vec<(String, usize)>,
) -> Result<Vec<f32>> {
    let query = app.encode(tenant, query.into_iter().map(|(text, _)| text).collect(), Heads::All).await?;
    let [query] = &query[..] else {
        return Err(ServerError::Worker("the embedder returned no vector for the query".into()));
    };
    let query = Arc::new(query.clone());
    let mut scores = Vec::new();
    for batch in batches(texts) {
        let (query, texts) = (Arc::clone(&query), app.encode(tenant, batch, Heads::All).await?);
        scores.extend(
            run_blocking(move || Ok(texts.iter().map(|text| score(&query, text)).collect::<Vec<f32>>())).await?,
        );
    }
    Ok(scores)
}

fn score(query: &Embedding, text: &Embedding) -> f32 {
    match (&query.colbert, &text.colbert) {
        (Some(query), Some(text)) if !query.is_empty() && !text.is_empty() => {
            let best =
                |token: &Vec<f32>| text.iter().map(|other| cosine(token, other)).fold(f32::NEG_INFINITY, f32::max);
            query.iter().map(best).sum::<f32>() / query.len() as f32
        }
        _ => cosine(&query.dense, &text.dense),
    }
}

/// The cosine of two vectors of length 1, which rounding could carry beyond [-1, 1].
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>().clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cosine_is_at_most_one() {
        // The length of this vector is above 1, as rounding leaves it.
        let long = [1.000_001, 0.0];
        assert_eq!((cosine(&long, &long), cosine(&long, &[-1.000_001, 0.0])), (1.0, -1.0));
        assert_eq!(cosine(&[0.6, 0.8], &[1.0, 0.0]), 0.6);
        let dense = Embedding { dense: long.to_vec(), sparse: None, colbert: None };
        let colbert = Embedding { colbert: Some(vec![long.to_vec(); 2]), ..dense.clone() };
        assert_eq!((score(&dense, &dense), score(&colbert, &colbert)), (1.0, 1.0));
    }
}
