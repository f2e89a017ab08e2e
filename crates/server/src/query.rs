//! The parameters of paths and queries. The names of query parameters are checked against the description of the routes:
//! memlocal's own API refuses unknown ones, in other APIs they are ignored as unknown fields are.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{MatchedPath, Query, RawPathParams, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::{Operation, ParameterIn};
use utoipa::openapi::{OpenApi, PathItem, RefOr};

use crate::error::ServerError;

/// The tags of routes that other APIs define.
const OTHER_APIS: [&str; 3] = ["OpenAI", "Anthropic", "Ollama"];

/// The query parameters that the routes take, by method and path.
pub(crate) struct Parameters(HashMap<(Method, String), Taken>);

struct Taken {
    names: BTreeSet<String>,
    ignores_others: bool,
}

/// Query parameters that a request has and its route does not take.
#[derive(Debug, Clone)]
pub(crate) struct Ignored(pub Vec<String>);

impl Parameters {
    /// Those of the routes that a document describes.
    pub fn of(document: &OpenApi) -> Arc<Parameters> {
        let routes = document.paths.paths.iter().flat_map(|(path, item)| {
            operations(item).map(|(method, operation)| ((method, path.clone()), Taken::of(operation)))
        });
        Arc::new(Parameters(routes.collect()))
    }

    /// The methods of a path, in alphabetical order. Paths that the document does not describe are pages, which are only read.
    pub fn methods(&self, path: &str) -> Vec<String> {
        let of_path = self.0.keys().filter(|(_, known)| known == path).map(|(method, _)| method.to_string());
        let methods: BTreeSet<String> = of_path.collect();
        if methods.is_empty() { vec![Method::GET.to_string()] } else { methods.into_iter().collect() }
    }
}

impl Taken {
    fn of(operation: &Operation) -> Taken {
        let in_query = operation.parameters.iter().flatten().filter_map(|parameter| match parameter {
            RefOr::T(parameter) if parameter.parameter_in == ParameterIn::Query => Some(parameter.name.clone()),
            _ => None,
        });
        let mut tags = operation.tags.iter().flatten();
        Taken { names: in_query.collect(), ignores_others: tags.any(|tag| OTHER_APIS.contains(&tag.as_str())) }
    }

    fn refusal(&self, unknown: &str) -> ServerError {
        let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        ServerError::invalid(format!("there is no query parameter `{unknown}` here; known: {names}"), unknown)
    }
}

fn operations(item: &PathItem) -> impl Iterator<Item = (Method, &Operation)> {
    let PathItem { get, put, post, delete, head, patch, .. } = item;
    let all = [
        (Method::GET, get),
        (Method::PUT, put),
        (Method::POST, post),
        (Method::DELETE, delete),
        (Method::HEAD, head),
        (Method::PATCH, patch),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

/// Refuses a path that is no text, and unknown query parameters or passes their names on as [`Ignored`].
pub(crate) async fn check(
    State(known): State<Arc<Parameters>>,
    path: Result<RawPathParams, RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Response {
    if path.is_err() {
        return ServerError::refused("the path is not valid UTF-8").into_response();
    }
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let Some(taken) = known.0.get(&(request.method().clone(), path)) else { return next.run(request).await };
    let Ok(Query(given)) = Query::<Vec<(String, String)>>::try_from_uri(request.uri()) else {
        return next.run(request).await;
    };
    let mut unknown: Vec<String> = given.into_iter().map(|(name, _)| name).collect();
    unknown.retain(|name| !taken.names.contains(name));
    match unknown.first() {
        None => {}
        Some(first) if !taken.ignores_others => return taken.refusal(first).into_response(),
        Some(_) => drop(request.extensions_mut().insert(Ignored(unknown))),
    }
    next.run(request).await
}
