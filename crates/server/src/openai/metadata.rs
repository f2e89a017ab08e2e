//! Metadata of responses, conversations, vector stores and batches: texts by names, for the client's own use.

use std::collections::BTreeMap;

use serde::Deserialize;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// OpenAI's limits, which hold for attributes too.
const MAX_KEYS: usize = 16;
const MAX_KEY_CHARS: usize = 64;
const MAX_VALUE_CHARS: usize = 512;

/// The metadata of a request.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
pub(super) struct Metadata(pub BTreeMap<String, String>);

impl TryFrom<BTreeMap<String, String>> for Metadata {
    type Error = String;

    fn try_from(pairs: BTreeMap<String, String>) -> Result<Metadata, String> {
        check("metadata", pairs.iter().map(|(key, value)| (key, Some(value.as_str()))))?;
        Ok(Metadata(pairs))
    }
}

/// Checks pairs of a field, whose values are texts or have no limit.
///
/// # Errors
/// A message with both numbers of a limit.
pub(super) fn check<'a>(
    field: &str,
    pairs: impl ExactSizeIterator<Item = (&'a String, Option<&'a str>)>,
) -> Result<(), String> {
    let keys = pairs.len();
    if keys > MAX_KEYS {
        return Err(format!("`{field}` has {keys} keys; at most {MAX_KEYS} are allowed"));
    }
    for (key, value) in pairs {
        let chars = key.chars().count();
        if chars > MAX_KEY_CHARS {
            return Err(format!("a key of `{field}` has {chars} characters; at most {MAX_KEY_CHARS} are allowed"));
        }
        let chars = value.map_or(0, |value| value.chars().count());
        if chars > MAX_VALUE_CHARS {
            return Err(format!("`{field}.{key}` has {chars} characters; at most {MAX_VALUE_CHARS} are allowed"));
        }
    }
    Ok(())
}

impl PartialSchema for Metadata {
    fn schema() -> RefOr<Schema> {
        let text = |most| ObjectBuilder::new().schema_type(Type::String).max_length(Some(most));
        let pairs = ObjectBuilder::new().property_names(Some(text(MAX_KEY_CHARS)));
        pairs.additional_properties(Some(text(MAX_VALUE_CHARS))).max_properties(Some(MAX_KEYS)).into()
    }
}

impl ToSchema for Metadata {}
