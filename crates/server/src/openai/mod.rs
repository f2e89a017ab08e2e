//! OpenAI's API: responses, chat completions, completions, embeddings, rerank and models.
//!
//! Fields without effect on the output (`user`, `metadata`, `store` and the like) are accepted, unknown ones are ignored
//! with a warning. A field that would change the meaning of a request and cannot be honoured is refused by name.

pub(crate) mod batches;
mod chat;
mod completions;
mod embeddings;
mod files;
mod logprobs;
mod messages;
mod metadata;
mod models;
mod paging;
pub(crate) mod params;
mod quoted;
mod records;
mod rerank;
pub(crate) mod responses;
pub(crate) mod stored_files;
pub(crate) mod thinking;
pub(crate) mod tools;
mod vector_stores;

pub(crate) use batches::resume as resume_batches;
pub(crate) use chat::closing_reason;
pub(crate) use embeddings::{MAX_TEXTS, at_most, shorten};
pub(crate) use logprobs::entries as logprob_entries;

use axum::middleware;
use calls::Usage;
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::config::Config;
use crate::warnings;

pub(crate) fn routes(config: &Config) -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(chat::complete))
        .routes(routes!(completions::complete))
        .merge(responses::routes())
        .merge(files::routes(config))
        .merge(vector_stores::routes())
        .merge(batches::routes())
        .routes(routes!(embeddings::embed))
        .routes(routes!(rerank::rerank))
        .routes(routes!(models::list))
        .routes(routes!(models::show))
        .layer(middleware::from_fn(warnings::collect))
}

/// OpenAI's `usage` object.
fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.prompt_tokens + usage.output_tokens,
        "prompt_tokens_details": { "cached_tokens": usage.cached_tokens },
    })
}

/// The usage of several choices of one prompt, which OpenAI counts once.
fn usage_of_all(all: impl IntoIterator<Item = Usage>) -> Usage {
    let sum = |mut sum: Usage, next: Usage| {
        sum.output_tokens += next.output_tokens;
        sum
    };
    all.into_iter().reduce(sum).unwrap_or_default()
}
