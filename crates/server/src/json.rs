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
    ServerError::Invalid { message: format!("the body cannot be used: {error}"), param }
}
