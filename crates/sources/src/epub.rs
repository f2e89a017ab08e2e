//! E-books: the container names the package, the package's spine gives the order of the chapters, each chapter is a
//! page of HTML.
//!
//! EPUB 2 and 3 (<https://www.w3.org/TR/epub-33/>). A chapter that is missing or damaged is named in its place. Left out: the table
//! of contents, pictures, and books with copy protection.

use std::collections::{HashMap, HashSet};

use quick_xml::events::Event;
use quick_xml::reader::Reader;

use crate::archive::{Archive, resolve};
use crate::html::Deadline;
use crate::limit::{check_entries, check_text};
use crate::source::{Part, first_heading};
use crate::{Cause, Kind, Source, html, xml};

/// HTML elements that never have an end tag.
const VOID: [&[u8]; 13] =
    [b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"source", b"track", b"wbr"];

/// A `.epub` file: one section a chapter.
pub(crate) fn source(path: &str, bytes: &[u8], deadline: Deadline) -> Result<Source, Cause> {
    let mut archive = Archive::open(bytes, Kind::Epub)?;
    let package_name = package_name(&mut archive)?;
    let package = archive.text(&package_name)?;
    let title = xml::text_of(&package, "title", Kind::Epub).map_err(|cause| cause.in_part(&package_name))?;
    let locked = locked_parts(&mut archive)?;

    let (mut parts, mut length) = (Vec::new(), 0);
    let (mut left_out, mut first_cause) = (0, None);
    for (i, name) in chapters(&package, &package_name)?.into_iter().enumerate() {
        if name.as_ref().is_ok_and(|name| locked.contains(name)) {
            return Err(Cause::Encrypted);
        }
        let chapter = match name.and_then(|name| archive.text(&name)) {
            Ok(chapter) => chapter,
            Err(cause @ Cause::Damaged { .. }) => {
                let text = format!("[chapter {} is left out: {cause}]", i + 1);
                length += text.len();
                check_text(length)?;
                parts.push(Part { text, ..Part::default() });
                left_out += 1;
                first_cause = first_cause.or(Some(cause));
                continue;
            }
            Err(cause) => return Err(cause),
        };
        html::check_size(&chapter)?;
        let page = html::page(&with_end_tags(&chapter), deadline)?;
        length += page.text.len();
        check_text(length)?;
        let heading = first_heading(&page.text).or_else(|| page.title.filter(|found| Some(found) != title.as_ref()));
        parts.push(Part { title: heading, text: page.text, ..Part::default() });
    }
    match first_cause {
        Some(cause) if left_out == parts.len() => Err(cause),
        _ => Source::joined(path, Kind::Epub, title, parts),
    }
}

/// The name of the part that lists all others.
fn package_name(archive: &mut Archive<'_>) -> Result<String, Cause> {
    const CONTAINER: &str = "META-INF/container.xml";
    let mut name = None;
    let read = xml::each_tag(&archive.text(CONTAINER)?, Kind::Epub, |tag| {
        name = tag.attribute("full-path");
        Ok(name.is_none())
    });
    read.map_err(|cause| cause.in_part(CONTAINER))?;
    name.ok_or_else(|| Cause::damaged(Kind::Epub, "it names no package").in_part(CONTAINER))
}

/// The archive names of the chapters in reading order, or why a chapter has none.
fn chapters(package: &str, package_name: &str) -> Result<Vec<Result<String, Cause>>, Cause> {
    let mut items: HashMap<String, Item> = HashMap::new();
    let mut spine: Vec<String> = Vec::new();
    let read = xml::each_tag(package, Kind::Epub, |tag| {
        let attribute = |name| tag.attribute(name).unwrap_or_default();
        match tag.name() {
            b"item" => {
                let is_contents = attribute("properties").split(' ').any(|property| property == "nav");
                let media_type = attribute("media-type");
                // The second is that of older books.
                let is_chapter = ["html", "oeb1-document"].iter().any(|kind| media_type.contains(kind)) && !is_contents;
                if let Some(id) = tag.attribute("id") {
                    items.insert(id, Item { is_chapter, href: attribute("href") });
                }
            }
            b"itemref" => spine.push(attribute("idref")),
            _ => {}
        }
        check_entries(items.len().max(spine.len()))?;
        Ok(true)
    });
    read.map_err(|cause| cause.in_part(package_name))?;
    let mut chapters = Vec::new();
    for id in spine {
        match items.get(&id) {
            Some(item) if item.is_chapter => chapters.push(Ok(resolve(package_name, &item.href))),
            Some(_) => {}
            None => {
                let detail = format!("its spine refers to {id}, which is not in its manifest");
                chapters.push(Err(Cause::damaged(Kind::Epub, detail)));
            }
        }
    }
    Ok(chapters)
}

/// An entry of the manifest.
struct Item {
    is_chapter: bool,
    href: String,
}

/// The archive names of the parts that are encrypted. Fonts often are, and are not read.
fn locked_parts(archive: &mut Archive<'_>) -> Result<HashSet<String>, Cause> {
    const ENCRYPTION: &str = "META-INF/encryption.xml";
    let Some(encryption) = archive.text_if_any(ENCRYPTION)? else { return Ok(HashSet::new()) };
    let mut locked = HashSet::new();
    let read = xml::each_tag(&encryption, Kind::Epub, |tag| {
        locked.extend(tag.attribute("URI").map(|uri| resolve("", &uri)));
        check_entries(locked.len())?;
        Ok(true)
    });
    read.map_err(|cause| cause.in_part(ENCRYPTION))?;
    Ok(locked)
}

/// XHTML with `<title/>` written `<title></title>`: a parser of HTML reads the former as a start tag, and swallows
/// the page.
fn with_end_tags(xhtml: &str) -> String {
    let mut reader = Reader::from_str(xhtml);
    reader.config_mut().check_end_names = false;
    reader.config_mut().allow_unmatched_ends = true;
    reader.config_mut().allow_dangling_amp = true;
    let mut html = String::with_capacity(xhtml.len());
    let mut copied = 0;
    // What follows invalid XML is left to the HTML parser, which accepts everything.
    while let Ok(event) = reader.read_event() {
        let end = usize::try_from(reader.buffer_position()).unwrap_or(xhtml.len());
        match event {
            Event::Eof => break,
            Event::Empty(tag) if !VOID.contains(&tag.local_name().into_inner()) => {
                html.push_str(xhtml[copied..end].trim_end_matches("/>"));
                html.push_str("></");
                html.push_str(&String::from_utf8_lossy(tag.name().into_inner()));
                html.push('>');
            }
            _ => html.push_str(&xhtml[copied..end]),
        }
        copied = end;
    }
    html + &xhtml[copied..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limit;
    use crate::limit::HTML_TIME;

    #[test]
    fn chapters_share_a_deadline() {
        let book = std::fs::read("tests/fixtures/book.epub").expect("it is a fixture");
        let late = source("book.epub", &book, Deadline::passed());
        assert!(matches!(late, Err(Cause::LimitExceeded(Limit::Time(HTML_TIME)))), "{late:?}");
    }

    #[test]
    fn self_closed_elements_get_end_tags() {
        fn check(xhtml: &str, expect: &str) {
            assert_eq!(with_end_tags(xhtml), expect);
        }
        check("<head><title/></head>", "<head><title></title></head>");
        check("<p>a<br/>b<i class='x' /></p>", "<p>a<br/>b<i class='x' ></i></p>");
        check("<p>1 & 2 <b/>3", "<p>1 & 2 <b></b>3");
        check("<p>é<a/>ü</b>", "<p>é<a></a>ü</b>");
        check("<p>a</p", "<p>a</p");
    }
}
