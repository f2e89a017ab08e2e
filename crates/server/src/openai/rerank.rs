//! POST /v1/rerank: texts in the order in which they answer a query, in the form that Jina and Cohere share.
//!
//! With a ColBERT head a text scores as the mean over the query's tokens of the best match among its own (MaxSim); else as
//! the cosine of the dense vectors.

use axum::Json;
use axum::extract::State;
use calls::{Embedding, Wanted};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::models;
use crate::app::App;
use crate::body::Body;
use crate::error::{Result, ServerError};
use crate::gate::Place;

/// A request to rank texts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RerankRequest {
    model: String,
    query: String,
    documents: Vec<RerankDocument>,
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

const MOST_DOCUMENTS: usize = 1024;

/// Rank texts by how well they answer a query.
#[utoipa::path(post, path = "/v1/rerank", tag = "OpenAI", request_body = RerankRequest, responses((status = 200, body = Value)))]
pub(super) async fn rerank(
    State(app): State<App>,
    _place: Place,
    Body(request): Body<RerankRequest>,
) -> Result<Json<Value>> {
    models::embedder(&app, &request.model)?;
    let document = |document: RerankDocument| match document {
        RerankDocument::Text(text) | RerankDocument::Object { text } => text,
    };
    let documents: Vec<String> = request.documents.into_iter().map(document).collect();
    if !(1..=MOST_DOCUMENTS).contains(&documents.len()) || documents.iter().any(String::is_empty) {
        return Err(ServerError::invalid(
            format!("`documents` takes 1 to {MOST_DOCUMENTS} texts, none empty"),
            "documents",
        ));
    }
    if request.query.is_empty() {
        return Err(ServerError::invalid("the query is empty", "query"));
    }
    let texts: Vec<String> = [request.query].into_iter().chain(documents.iter().cloned()).collect();
    let tokens: usize = texts.iter().map(|text| app.embedder.token_spans(text).len()).sum();
    let embeddings = app.in_time(async { Ok(app.embedder.represent(texts, Wanted::All).await?) }).await?;
    let Some((query, texts)) = embeddings.split_first() else {
        return Err(ServerError::Worker("the embedder gave nothing".into()));
    };
    let mut scored: Vec<(usize, f32)> = texts.iter().map(|text| score(query, text)).enumerate().collect();
    // The sort is stable: equal ones stay in their order.
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
    Ok(Json(json!({ "model": app.embedder.name(), "usage": { "total_tokens": tokens }, "results": results })))
}

fn score(query: &Embedding, text: &Embedding) -> f32 {
    match (&query.colbert, &text.colbert) {
        (Some(query), Some(text)) if !query.is_empty() && !text.is_empty() => {
            let best = |token: &Vec<f32>| text.iter().map(|other| dot(token, other)).fold(f32::NEG_INFINITY, f32::max);
            query.iter().map(best).sum::<f32>() / query.len() as f32
        }
        _ => dot(&query.dense, &text.dense),
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
