//! Lists in parts, as OpenAI's and Anthropic's clients page through them.
#![allow(unused_qualifications, reason = "utoipa writes out the type of query parameters")]

use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;

use crate::error::{Result, ServerError};
use crate::limits::count;

/// A part of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// 1 to 100 (10,000 for files); 20 by default.
    limit: Option<usize>,
    /// `desc` (by default: the latest first) or `asc`.
    order: Option<String>,
    /// The id of the entry before the part.
    after: Option<String>,
    /// The id of the entry after the part.
    before: Option<String>,
    /// Of files: only those with this purpose.
    pub purpose: Option<String>,
    /// Of the files of a vector store: only those with this status.
    pub filter: Option<String>,
}

/// A part of the list of models, by the names that Anthropic's clients have for it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ModelsPart {
    /// 1 to 1,000; all by default.
    limit: Option<usize>,
    /// The id of the model before the part.
    after_id: Option<String>,
    /// The id of the model after the part.
    before_id: Option<String>,
}

/// Anthropic's limit.
const MAX_MODELS: usize = 1000;

/// The part of entries, which are given the earliest first, as a list.
///
/// # Errors
/// [`ServerError::Invalid`] with `limit` or `order`, and as [`cut`].
pub(crate) fn listed(mut entries: Vec<Value>, part: &Part, (default, most): (usize, usize)) -> Result<Value> {
    let limit = count(part.limit.unwrap_or(default), most, "limit")?;
    match part.order.as_deref() {
        None | Some("desc") => entries.reverse(),
        Some("asc") => {}
        Some(other) => return Err(ServerError::invalid(format!("`{other}` is not one of asc, desc"), "order")),
    }
    cut(entries, limit, ("after", part.after.as_deref()), ("before", part.before.as_deref()))
}

/// The part of the models as a list.
///
/// # Errors
/// [`ServerError::Invalid`] with `limit`, and as [`cut`].
pub(super) fn listed_models(models: Vec<Value>, part: &ModelsPart) -> Result<Value> {
    let limit = part.limit.map_or(Ok(models.len()), |limit| count(limit, MAX_MODELS, "limit"))?;
    cut(models, limit, ("after_id", part.after_id.as_deref()), ("before_id", part.before_id.as_deref()))
}

/// The entries between two, each given by its parameter and its id, as a list.
///
/// # Errors
/// [`ServerError::Invalid`] if there is no such entry, which may have been deleted: an empty part would hide the rest from the
/// client.
fn cut(
    mut entries: Vec<Value>,
    limit: usize,
    after: (&str, Option<&str>),
    before: (&str, Option<&str>),
) -> Result<Value> {
    let place = |(param, id): (&str, Option<&str>)| {
        let Some(id) = id else { return Ok(None) };
        let found = entries.iter().position(|entry| entry["id"] == id);
        found.map(Some).ok_or_else(|| ServerError::invalid(format!("the list has no entry `{id}`"), param))
    };
    let start = place(after)?.map_or(0, |at| at + 1);
    let end = place(before)?.unwrap_or(entries.len()).max(start);
    let (start, has_more) = match (before.1, after.1) {
        // The entries just before it.
        (Some(_), None) => (end.saturating_sub(limit), end > limit),
        _ => (start, end - start > limit),
    };
    let data: Vec<Value> = entries.drain(start..end).take(limit).collect();
    let id = |entry: Option<&Value>| entry.map(|entry| entry["id"].clone());
    Ok(json!({ "object": "list", "first_id": id(data.first()), "last_id": id(data.last()), "has_more": has_more,
        "data": data }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_beside_an_entry_that_was_deleted_is_refused() {
        let entries = || ["a", "b", "c"].map(|id| json!({ "id": id })).to_vec();
        let part = |after: Option<&str>, before: Option<&str>| {
            let part = Part { after: after.map(str::to_owned), before: before.map(str::to_owned), ..Part::default() };
            listed(entries(), &part, (20, 100)).map(|list| list["data"].clone())
        };
        assert_eq!(part(Some("b"), None).ok(), Some(json!([{ "id": "a" }])));
        assert_eq!(part(None, Some("b")).ok(), Some(json!([{ "id": "c" }])));
        for (after, before, param) in [(Some("d"), None, "after"), (None, Some("d"), "before")] {
            let refused = part(after, before).expect_err("there is no such entry");
            assert_eq!(refused.body()["error"]["param"], param, "{refused}");
        }
    }
}
