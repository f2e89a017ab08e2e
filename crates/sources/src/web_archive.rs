//! Web pages that a browser has saved in one file (`.mht`, `.mhtml`): a message of MIME parts (RFC 2557). Read are the
//! page and the pages in its frames; pictures and styles are left out.

use mail_parser::{HeaderName, PartType};

use crate::html::Deadline;
use crate::limit::check_text;
use crate::source::first_heading;
use crate::{Cause, Kind, Source, email, html};

/// A `.mht` or `.mhtml` file.
pub(crate) fn source(path: &str, bytes: &[u8], deadline: Deadline) -> Result<Source, Cause> {
    let no_page = || Cause::damaged(Kind::WebArchive, "it has no page in HTML");
    let message = email::parsed(bytes)?.ok_or_else(no_page)?;
    let (mut title, mut text, mut has_page) = (None, String::new(), false);
    for part in &message.parts {
        let PartType::Html(words) = &part.body else { continue };
        has_page = true;
        let page = html::page(&email::words_of(&message, part, words)?, deadline)?;
        title = title.or(page.title);
        text.extend([if text.is_empty() { "" } else { "\n\n" }, page.text.trim()]);
        check_text(text.len())?;
    }
    if !has_page {
        return Err(no_page());
    }
    let title = title.or_else(|| email::header(&message, HeaderName::Subject)).or_else(|| first_heading(&text));
    Source::whole(path, Kind::WebArchive, title, text)
}
