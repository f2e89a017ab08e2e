//! Lists in parts, as OpenAI's clients page through them.
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

/// The part of entries, which are given the earliest first, as a list.
///
/// # Errors
/// [`ServerError::Invalid`] with `limit` or `order`, or with `after` or `before` if there is no such entry, which may have been
/// deleted: an empty part would hide the rest from the client.
pub(crate) fn listed(mut entries: Vec<Value>, part: &Part, (default, most): (usize, usize)) -> Result<Value> {
    let limit = count(part.limit.unwrap_or(default), most, "limit")?;
    match part.order.as_deref() {
        None | Some("desc") => entries.reverse(),
        Some("asc") => {}
        Some(other) => return Err(ServerError::invalid(format!("`{other}` is not one of asc, desc"), "order")),
    }
    let place = |id: Option<&str>, param| {
        let Some(id) = id else { return Ok(None) };
        let found = entries.iter().position(|entry| entry["id"] == id);
        found.map(Some).ok_or_else(|| ServerError::invalid(format!("the list has no entry `{id}`"), param))
    };
    let start = place(part.after.as_deref(), "after")?.map_or(0, |at| at + 1);
    let end = place(part.before.as_deref(), "before")?.unwrap_or(entries.len()).max(start);
    let (start, has_more) = match (&part.before, &part.after) {
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
