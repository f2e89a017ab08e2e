//! GET /v1/corpora/{corpus}/graph: the graph that a method has built, whole or around a node, with its source spans in
//! the documents.
#![allow(unused_qualifications, reason = "utoipa writes out the type of query parameters")]

use std::collections::BTreeMap;

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use memory::graph_view::{Format, GraphKind, GraphView};
use memory::methods;
use serde::Deserialize;
use serde_json::Value;
use store::DocId;
use utoipa::IntoParams;

use crate::admitted::Admitted;
use crate::blocking::run_blocking;
use crate::body::Params;
use crate::error::{Result, ServerError};
use crate::tenant::CurrentTenant;

/// Which graph, and which part of it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphQuery {
    /// `mindgraph` (by default), `comorag` or `lightrag`.
    graph: Option<String>,
    /// The question for which MindGraph built it; by default any.
    question: Option<String>,
    /// `json` (by default), `graphml` or `dot`.
    format: Option<String>,
    /// The id of a node: only its neighbourhood.
    node: Option<String>,
    /// Maximum distance in edges; 1 by default.
    hops: Option<usize>,
    /// Maximum number of nodes; without `node` those with the most edges. 50 by default around a node, else all.
    limit: Option<usize>,
}

const DEFAULT_HOPS: usize = 1;
const MAX_HOPS: usize = 8;
const DEFAULT_NODES: usize = 50;

/// Show the graph of a corpus. It covers the `read` of `of` passages that the method has processed so far.
#[utoipa::path(get, path = "/v1/corpora/{corpus}/graph", tag = "Memory", params(("corpus" = String, Path), GraphQuery),
    responses((status = 200, body = Value), (status = 400), (status = 404, description = "No such corpus or node"),
        (status = 429)))]
pub(super) async fn show(
    Extension(tenant): CurrentTenant,
    Path(corpus): Path<String>,
    Params(view): Params<GraphQuery>,
    Admitted(permit): Admitted,
) -> Result<Response> {
    let (_, kind) = methods::graph(view.graph.as_deref()).map_err(|reason| ServerError::invalid(reason, "graph"))?;
    let format: Format = named(view.format.as_deref(), "format")?;
    let hops = view.hops.unwrap_or(DEFAULT_HOPS);
    if hops > MAX_HOPS {
        return Err(ServerError::invalid(format!("`hops` must be 0 to {MAX_HOPS}"), "hops"));
    }
    if view.limit == Some(0) {
        return Err(ServerError::invalid("`limit` must be 1 or more", "limit"));
    }
    run_blocking(move || {
        // The work does not end with the request.
        let _permit = permit;
        let corpus = tenant.open(&corpus)?;
        let paths: BTreeMap<DocId, String> =
            corpus.documents()?.into_iter().map(|document| (document.id, document.path)).collect();
        let whole = (kind.view)(&corpus, view.question.as_deref())?;
        let part = match (&view.node, view.limit) {
            (Some(id), limit) => whole
                .around(id, hops, limit.unwrap_or(DEFAULT_NODES))
                .ok_or_else(|| ServerError::NotFound(format!("node {id}")))?,
            (None, Some(limit)) => whole.largest(limit),
            (None, None) => whole.clone(),
        };
        Ok(match format {
            Format::Json => Json(json(&part, &whole, kind, &paths)).into_response(),
            Format::Graphml => {
                ([(header::CONTENT_TYPE, "application/graphml+xml")], part.graphml(&paths)).into_response()
            }
            Format::Dot => ([(header::CONTENT_TYPE, "text/vnd.graphviz")], part.dot(kind.name)).into_response(),
        })
    })
    .await
}

/// A part of a graph, with the size of the whole.
fn json(part: &GraphView, whole: &GraphView, kind: &GraphKind, paths: &BTreeMap<DocId, String>) -> Value {
    let mut shown = part.json(paths);
    shown["graph"] = kind.name.into();
    shown["all_nodes"] = whole.nodes.len().into();
    shown["all_edges"] = whole.edges.len().into();
    shown["read"] = whole.read.into();
    shown["of"] = whole.of.into();
    shown
}

fn named<T: Default + std::str::FromStr<Err = String>>(name: Option<&str>, param: &str) -> Result<T> {
    name.map_or_else(|| Ok(T::default()), str::parse).map_err(|reason| ServerError::invalid(reason, param))
}
