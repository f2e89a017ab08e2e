//! What a request to a compatible API asks for and does not get: named in one `Warning` header of the response.
//!
//! Clients of OpenAI's and Ollama's APIs send fields of other servers and of later versions. An unknown field is ignored
//! with a warning, unless it would change the meaning of the request; the fields of memlocal's own API are all known.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use serde::de::value::Error as NoValue;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;

use crate::error::{Result, ServerError};
use crate::json::read;
use crate::query::Ignored;

/// The warnings of one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Found>>);

#[derive(Debug, Default)]
struct Found {
    ignored: Vec<String>,
    /// Each once.
    others: Vec<String>,
    more_others: usize,
}

/// Fields of other servers and versions that change what is answered: a request with one is refused by its name.
const REFUSED: [&str; 23] = [
    "audio",
    "chat_template",
    "context",
    "continue_final_message",
    "function_call",
    "functions",
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "ignore_eos",
    "json_schema",
    "min_tokens",
    "partial",
    "prefix",
    "prompt",
    "prompt_embeds",
    "structured_outputs",
    "suffix",
    "template",
    "use_beam_search",
    "web_search_options",
];

/// Fields, and other warnings, that are named in the header; of more only the number is.
const MAX_NAMED: usize = 16;

/// Collects the warnings of a request into the header of its response.
pub(crate) async fn collect(mut request: Request, next: Next) -> Response {
    let warnings = Warnings::default();
    if let Some(Ignored(names)) = request.extensions().get() {
        warnings.add(format!("ignored query parameters: {}", names.join(", ")));
    }
    request.extensions_mut().insert(warnings.clone());
    let mut response = next.run(request).await;
    warnings.write(&mut response);
    response
}

impl Warnings {
    /// Adds a warning other than an ignored field.
    pub fn add(&self, warning: String) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if found.others.contains(&warning) {
            return;
        }
        if found.others.len() < MAX_NAMED {
            found.others.push(warning);
        } else {
            found.more_others += 1;
        }
    }

    /// Reads a value whose unknown fields are ignored and whose null fields are absent. `place` comes before the names of
    /// its fields.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] with the field at fault.
    pub fn read<T: DeserializeOwned>(&self, mut value: Value, place: &str) -> Result<T> {
        if let (Value::Object(fields), Some(known)) = (&mut value, field_names::<T>()) {
            fields.retain(|_, value| !value.is_null());
            self.ignore(fields.iter().filter(|(name, _)| !known.contains(&name.as_str())), place)?;
            fields.retain(|name, _| known.contains(&name.as_str()));
        }
        read(value).map_err(|error| match error {
            ServerError::Invalid { message, param, hint } if !place.is_empty() => {
                let param =
                    param.map_or_else(|| place.trim_end_matches('.').to_owned(), |param| place.to_owned() + &param);
                ServerError::Invalid { message, param: Some(param), hint }
            }
            error => error,
        })
    }

    /// Notes unknown fields, which are ignored, unless they are off. `place` comes before their names.
    ///
    /// # Errors
    /// [`ServerError::Invalid`] with a field that changes what is answered.
    pub fn ignore<'a>(&self, unknown: impl IntoIterator<Item = (&'a String, &'a Value)>, place: &str) -> Result<()> {
        for (name, _) in unknown.into_iter().filter(|(_, value)| !is_off(value)) {
            let place = format!("{place}{name}");
            if REFUSED.contains(&name.as_str()) {
                return Err(ServerError::invalid(format!("`{place}` is not supported here"), &place));
            }
            self.0.lock().unwrap_or_else(PoisonError::into_inner).ignored.push(place);
        }
        Ok(())
    }

    /// Adds the header to a response, if there are warnings.
    pub fn write(&self, response: &mut Response) {
        if let Some(value) = self.header() {
            response.headers_mut().append(header::WARNING, value);
        }
    }

    /// `299 memlocal "ignored fields: a, b; ..."`, 299 being the code of persistent warnings.
    fn header(&self) -> Option<HeaderValue> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parts = Vec::new();
        if !found.ignored.is_empty() {
            let named: Vec<String> = found.ignored.iter().take(MAX_NAMED).map(|name| printable(name)).collect();
            let more = found.ignored.len().saturating_sub(MAX_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            parts.push(format!("ignored fields: {}{more}", named.join(", ")));
        }
        parts.extend(found.others.iter().map(|warning| printable(warning)));
        if found.more_others > 0 {
            parts.push(format!("and {} more warnings", found.more_others));
        }
        if parts.is_empty() {
            return None;
        }
        HeaderValue::from_str(&format!("299 memlocal \"{}\"", parts.join("; "))).ok()
    }
}

/// A text as it may be inside a quoted string of a header: anything else than plain ASCII becomes a question mark.
fn printable(text: &str) -> String {
    const MAX_CHARS: usize = 120;
    let plain = |c: char| if (c.is_ascii_graphic() || c == ' ') && !matches!(c, '"' | '\\') { c } else { '?' };
    let shown: String = text.chars().take(MAX_CHARS).map(plain).collect();
    if text.chars().count() > MAX_CHARS { shown + "..." } else { shown }
}

/// True for the values by which clients say that they do not use a field.
fn is_off(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(true) => false,
    }
}

/// The names of the fields of a struct as its deserialization expects them; `None` for other types.
fn field_names<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    let mut names = None;
    // It fails in any case: there is no value.
    let _ = T::deserialize(FieldNames(&mut names));
    names
}

/// A deserializer without a value, which notes the fields that it is asked for.
struct FieldNames<'a>(&'a mut Option<&'static [&'static str]>);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = NoValue;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> std::result::Result<V::Value, NoValue> {
        Err(NoValue::custom("there is no value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> std::result::Result<V::Value, NoValue> {
        *self.0 = Some(fields);
        self.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::Warnings;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Request {
        model: String,
        #[serde(default)]
        stream: bool,
    }

    fn read(value: serde_json::Value) -> (crate::error::Result<Request>, Option<String>) {
        let warnings = Warnings::default();
        let read = warnings.read(value, "");
        (read, warnings.header().map(|value| value.to_str().expect("it is plain").to_owned()))
    }

    #[test]
    fn unknown_fields_are_named_and_null_ones_are_absent() {
        let (request, header) =
            read(json!({ "model": "a", "stream": null, "size\u{e9}\"": 1, "seed": 2, "other": null }));
        assert_eq!(request.expect("it is read"), Request { model: "a".into(), stream: false });
        assert_eq!(header.as_deref(), Some("299 memlocal \"ignored fields: size??, seed\""));
        assert_eq!(read(json!({ "model": "a" })).1, None);
    }

    #[test]
    fn of_many_fields_the_first_are_named() {
        let mut request = json!({ "model": "a" });
        (0..20).for_each(|number| request[format!("field{number:02}")] = true.into());
        let header = read(request).1.expect("a warning");
        assert!(header.ends_with("field15 and 4 more\""), "{header}");
    }

    #[test]
    fn a_header_names_each_warning_once_and_not_too_many() {
        let warnings = Warnings::default();
        (0..100_000).for_each(|number| warnings.add(format!("ignored tool: {}", number % 20)));
        let header = warnings.header().expect("a warning");
        let header = header.to_str().expect("it is plain");
        assert_eq!(header.matches("ignored tool: ").count(), 16, "{header}");
        assert!(header.ends_with("ignored tool: 15; and 20000 more warnings\""), "{header}");
    }

    #[test]
    fn fields_that_change_the_meaning_are_refused_unless_they_are_off() {
        let refused = read(json!({ "model": "a", "guided_regex": "a+" })).0.expect_err("it is refused");
        assert_eq!(refused.to_string(), "`guided_regex` is not supported here");
        assert!(read(json!({ "model": "a", "guided_regex": "", "functions": [] })).0.is_ok());
    }
}
