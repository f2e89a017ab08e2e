//! Plain text and Markdown, which are kept byte for byte, and the check that bytes are text.

use crate::source::first_heading;
use crate::{Cause, Kind, Source};

/// A `.txt` file.
pub(crate) fn text(path: &str, text: String) -> Result<Source, Cause> {
    Source::whole(path, Kind::Text, None, text)
}

/// A `.md` file; its title is its first heading.
pub(crate) fn markdown(path: &str, text: String) -> Result<Source, Cause> {
    let title = first_heading(&text);
    Source::whole(path, Kind::Markdown, title, text)
}

/// Decodes bytes as UTF-8. A byte order mark is kept.
///
/// # Errors
/// [`Cause::Utf16`], [`Cause::Binary`] or [`Cause::InvalidUtf8`].
pub(crate) fn decode(bytes: Vec<u8>) -> Result<String, Cause> {
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err(Cause::Utf16);
    }
    if let Some(offset_bytes) = bytes.iter().position(|&byte| byte == 0) {
        return Err(Cause::Binary { offset_bytes });
    }
    String::from_utf8(bytes).map_err(|error| Cause::InvalidUtf8 { offset_bytes: error.utf8_error().valid_up_to() })
}
