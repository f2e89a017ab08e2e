//! Plain text, source code and Markdown, which are kept byte for byte if they are UTF-8.

use crate::encoding::Decoded;
use crate::source::first_heading;
use crate::{Cause, Kind, Source};

/// A `.txt` file.
pub(crate) fn text(path: &str, file: Decoded) -> Result<Source, Cause> {
    Source::whole(path, Kind::Text, None, file.text)
}

/// A file of source code.
pub(crate) fn code(path: &str, file: Decoded) -> Result<Source, Cause> {
    Source::whole(path, Kind::Code, None, file.text)
}

/// A `.md` file; its title is its first heading.
pub(crate) fn markdown(path: &str, file: Decoded) -> Result<Source, Cause> {
    let title = first_heading(&file.text);
    Source::whole(path, Kind::Markdown, title, file.text)
}
