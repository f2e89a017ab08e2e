//! Reading JSON; errors name the field at fault.

use serde::de::{DeserializeOwned, Deserializer};

use crate::error::{Result, ServerError};

/// Reads JSON.
///
/// # Errors
/// [`ServerError::Invalid`] with the path of the field at fault.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = read(&mut reader)?;
    reader.end().map_err(|error| unusable(&error, None))?;
    Ok(value)
}

/// Reads a value.
///
/// # Errors
/// As [`parse`].
pub(crate) fn read<'de, T: DeserializeOwned>(reader: impl Deserializer<'de, Error = serde_json::Error>) -> Result<T> {
    serde_path_to_error::deserialize(reader).map_err(|error| {
        let path = error.path().to_string();
        let param = (path != "." && path != "?").then_some(path);
        unusable(error.inner(), param)
    })
}

fn unusable(error: &serde_json::Error, param: Option<String>) -> ServerError {
    let message = format!("the body cannot be used: {}", in_words_of_json(&error.to_string()));
    ServerError::Invalid { message, param, hint: None }
}

/// An error of serde in the words of JSON: it names types of Rust.
pub(crate) fn in_words_of_json(error: &str) -> String {
    let (what, place) = error.rfind(" at line ").map_or((error, ""), |at| error.split_at(at));
    if what.starts_with("data did not match any variant of untagged enum ") {
        return format!("the value has none of the forms that are allowed here{place}");
    }
    let Some((found, expected)) = what.rsplit_once(", expected ") else { return error.to_owned() };
    let found = match found.split_once(": ") {
        Some(("invalid type", "map")) => "invalid type: object".to_owned(),
        Some(("invalid type", "sequence")) => "invalid type: array".to_owned(),
        Some((problem, value)) => format!("{problem}: {}", value.replacen("floating point `", "number `", 1)),
        None => found.to_owned(),
    };
    let is_integer = found.starts_with("invalid value: integer `") && !found.starts_with("invalid value: integer `-");
    let expected = match expected {
        // A whole number that is not negative and still refused is too large for the type.
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i8" | "i16" | "i32" | "i64" if is_integer => {
            "a smaller number"
        }
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a sequence" => "an array",
        "a map" => "an object",
        "unit" => "null",
        "string or map" => "a string or an object",
        _ if ["struct ", "internally tagged enum ", "adjacently tagged enum "]
            .iter()
            .any(|it| expected.starts_with(it)) =>
        {
            "an object"
        }
        other => other,
    };
    format!("{found}, expected {expected}{place}")
}

/// An error of reading a number from a word, without the terms of Rust.
pub(crate) fn in_words_of_numbers(error: &str) -> String {
    [
        ("invalid digit found in string", "expected a whole number of at least 0"),
        ("cannot parse integer from empty string", "expected a whole number of at least 0"),
        ("number too large to fit in target type", "the number is too large"),
    ]
    .into_iter()
    .fold(error.to_owned(), |error, (theirs, ours)| error.replace(theirs, ours))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "it is only read")]
    struct Request {
        count: usize,
        offset: Option<i64>,
        share: f32,
        names: Vec<String>,
        inner: Option<Inner>,
        either: Option<Either>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {}

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code, reason = "it is only read")]
    enum Either {
        Text(String),
        Number(u8),
    }

    #[test]
    fn errors_do_not_name_types_of_rust() {
        let check = |body: &str, want: &str| {
            let error = parse::<Request>(body.as_bytes()).expect_err(body).to_string();
            let (error, _) = error.split_once(" at line 1 column ").expect("it has a place");
            assert_eq!(error, format!("the body cannot be used: {want}"), "{body}");
        };
        check(r#"{"count": "a"}"#, r#"invalid type: string "a", expected a whole number of at least 0"#);
        check(r#"{"count": -1}"#, "invalid value: integer `-1`, expected a whole number of at least 0");
        check(r#"{"count": 1.5}"#, "invalid type: number `1.5`, expected a whole number of at least 0");
        check(
            r#"{"offset": 9223372036854775808}"#,
            "invalid value: integer `9223372036854775808`, expected a smaller number",
        );
        check(r#"{"share": {}}"#, "invalid type: object, expected a number");
        check(r#"{"names": {}}"#, "invalid type: object, expected an array");
        check(r#"{"inner": 1}"#, "invalid type: integer `1`, expected an object");
        check(r#"{"either": []}"#, "the value has none of the forms that are allowed here");
        check("[]", "invalid length 0, expected an object");
        check(
            r#"{"count": ", expected u8"}"#,
            "invalid type: string \", expected u8\", expected a whole number of at least 0",
        );
        check("{", "EOF while parsing an object");
    }
}
