//! Searching a vector store.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::super::params::refuse_if;
use crate::admitted::AdmittedJson;
use crate::app::App;
use crate::corpora::attached::files_by_document;
use crate::corpora::{SearchRequest, search_pages};
use crate::error::{Result, ServerError};
use crate::limits::count;
use crate::tenant::{CurrentTenant, Tenant};

/// A search.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VectorStoreSearch {
    #[schema(value_type = Value)]
    query: Query,
    /// 1 to 50; 10 by default.
    max_num_results: Option<usize>,
    filters: Option<Value>,
    /// `score_threshold` is the least score of a result; rankers are ignored.
    ranking_options: Option<Ranking>,
    rewrite_query: Option<bool>,
}

/// A query, or several of which each is searched for.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
enum Query {
    One(String),
    Some(Vec<String>),
}

#[derive(Debug, Deserialize, ToSchema)]
pub(in crate::openai) struct Ranking {
    pub score_threshold: Option<f64>,
}

/// Most queries of one search.
const MAX_QUERIES: usize = 32;
/// Maximum results of one search.
pub(in crate::openai) const MAX_RESULTS: usize = 50;

/// The pages that a search finds in a store, as `file_search_call.results` and search results have them, best first.
pub(in crate::openai) async fn found(
    app: &App,
    tenant: &Arc<Tenant>,
    store: &str,
    query: &str,
    k: usize,
) -> Result<Vec<Value>> {
    let request = SearchRequest { query: query.to_owned(), tool: None, k: Some(k) };
    let hits = search_pages(app, tenant, store.to_owned(), request).await?;
    let files = files_by_document(tenant, store.to_owned()).await?;
    let result = |hit: Value| {
        let file = hit["name"].as_str().and_then(|name| files.get(name));
        let id = file.map_or_else(|| format!("{store}/{}", hit["document"]), |file| file.id.clone());
        let attributes = file.map_or_else(|| json!({}), |file| file.attributes.clone());
        json!({ "file_id": id, "filename": hit["name"], "score": hit["score"], "attributes": attributes,
            "text": hit["text"] })
    };
    Ok(hits.into_iter().map(result).collect())
}

/// Search a vector store.
#[utoipa::path(post, path = "/v1/vector_stores/{vector_store_id}/search", tag = "OpenAI",
    params(("vector_store_id" = String, Path)), request_body = VectorStoreSearch,
    responses((status = 200, body = Value), (status = 404)))]
pub(super) async fn search(
    State(app): State<App>,
    Extension(tenant): CurrentTenant,
    Path(store): Path<String>,
    AdmittedJson(request, _permit): AdmittedJson<VectorStoreSearch>,
) -> Result<Json<Value>> {
    refuse_if(request.filters.is_some(), "filters")?;
    refuse_if(request.rewrite_query == Some(true), "rewrite_query")?;
    let k = count(request.max_num_results.unwrap_or(10), MAX_RESULTS, "max_num_results")?;
    let queries = match request.query {
        Query::One(query) => vec![query],
        Query::Some(queries) => queries,
    };
    if !(1..=MAX_QUERIES).contains(&queries.len()) {
        return Err(ServerError::invalid(format!("`query` has 1 to {MAX_QUERIES} texts"), "query"));
    }
    let least = request.ranking_options.and_then(|ranking| ranking.score_threshold);
    let mut all: Vec<Value> = Vec::new();
    for query in &queries {
        for result in found(&app, &tenant, &store, query, k).await? {
            if all.iter().all(|known| (&known["text"], &known["file_id"]) != (&result["text"], &result["file_id"])) {
                all.push(result);
            }
        }
    }
    let score = |result: &Value| result["score"].as_f64().unwrap_or_default();
    all.retain(|result| least.is_none_or(|least| score(result) >= least));
    all.sort_by(|one, other| score(other).total_cmp(&score(one)));
    all.truncate(k);
    for result in &mut all {
        let text = result["text"].take();
        result["content"] = json!([{ "type": "text", "text": text }]);
        result.as_object_mut().map(|fields| fields.remove("text"));
    }
    Ok(Json(json!({ "object": "vector_store.search_results.page", "search_query": queries, "data": all,
        "has_more": false, "next_page": null })))
}
