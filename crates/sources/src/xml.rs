//! XML functions shared by the readers of archives. Namespace prefixes are ignored: each reader has one schema.
//!
//! Entities that a document defines for itself are never expanded.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use crate::limit::NESTING;
use crate::{Cause, Kind, Limit};

/// A start tag: its local name and its attributes.
pub(crate) struct Tag<'a> {
    start: BytesStart<'a>,
}

impl<'a> Tag<'a> {
    /// Wraps a start tag.
    pub fn new(start: BytesStart<'a>) -> Self {
        Tag { start }
    }

    /// The name without its prefix.
    pub fn name(&self) -> &[u8] {
        self.start.local_name().into_inner()
    }

    /// The name with its prefix.
    pub fn full_name(&self) -> &[u8] {
        self.start.name().into_inner()
    }

    /// The attribute `r:id`, whose prefix tells it from `id`.
    pub fn relation(&self) -> Option<String> {
        let mut attributes = self.start.attributes().flatten();
        let found = attributes.find(|attribute| attribute.key.into_inner().ends_with(b":id"))?;
        Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
    }

    /// The value of an attribute, by its name without prefix.
    pub fn attribute(&self, name: &str) -> Option<String> {
        let mut attributes = self.start.attributes().flatten();
        let found = attributes.find(|attribute| attribute.key.local_name().into_inner() == name.as_bytes())?;
        let value = found.normalized_value(XmlVersion::Implicit1_0).ok()?;
        Some(value.into_owned())
    }
}

/// Calls `each` with the start tags of a document, in order, until it returns `false`.
///
/// # Errors
/// [`Cause::Damaged`] for XML that is not well formed.
pub(crate) fn each_tag(xml: &str, kind: Kind, mut each: impl FnMut(&Tag<'_>) -> bool) -> Result<(), Cause> {
    let mut reader = Reader::from_str(xml);
    loop {
        let tag = match reader.read_event().map_err(|error| invalid(&reader, kind, &error))? {
            Event::Start(start) | Event::Empty(start) => Tag::new(start),
            Event::Eof => return Ok(()),
            _ => continue,
        };
        if !each(&tag) {
            return Ok(());
        }
    }
}

/// The result of [`walk`].
pub(crate) enum Node<'a> {
    Open(&'a Tag<'a>),
    /// The end of an element, by its name without prefix.
    Close(&'a [u8]),
    Text(&'a str),
}

/// Calls `each` with all tags and texts of a document, in order. If it returns `false` for a start tag, the element is left
/// out to its end.
///
/// # Errors
/// [`Cause::Damaged`] for XML that is not well formed, [`Limit::Nesting`], and those of `each`.
pub(crate) fn walk(xml: &str, kind: Kind, mut each: impl FnMut(Node<'_>) -> Result<bool, Cause>) -> Result<(), Cause> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    let mut depth = 0_usize;
    loop {
        match reader.read_event().map_err(|error| invalid(&reader, kind, &error))? {
            Event::Start(start) => {
                let tag = Tag::new(start);
                if !each(Node::Open(&tag))? {
                    reader.read_to_end(tag.start.name()).map_err(|error| invalid(&reader, kind, &error))?;
                    continue;
                }
                depth += 1;
                if depth > NESTING {
                    return Err(Limit::Nesting(NESTING).into());
                }
            }
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                each(Node::Close(end.local_name().into_inner()))?;
            }
            Event::Text(text) => drop(each(Node::Text(&text.xml10_content().unwrap_or_default()))?),
            Event::CData(text) => drop(each(Node::Text(&text.xml10_content().unwrap_or_default()))?),
            Event::GeneralRef(entity) => {
                if let Some(character) = character(&entity) {
                    each(Node::Text(character.encode_utf8(&mut [0; 4])))?;
                }
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// The text of the first element of a name, white space trimmed; `None` if there is no such element or it is blank.
pub(crate) fn text_of(xml: &str, name: &str, kind: Kind) -> Result<Option<String>, Cause> {
    let mut reader = Reader::from_str(xml);
    let mut text = String::new();
    let mut inside = false;
    loop {
        match reader.read_event().map_err(|error| invalid(&reader, kind, &error))? {
            Event::Start(start) if start.local_name().into_inner() == name.as_bytes() => inside = true,
            Event::Text(words) if inside => text.push_str(&words.xml10_content().unwrap_or_default()),
            Event::GeneralRef(entity) if inside => text.extend(character(&entity)),
            Event::End(end) if inside && end.local_name().into_inner() == name.as_bytes() => break,
            Event::Eof => break,
            _ => {}
        }
    }
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// The character behind `&amp;` or `&#8217;`; `None` for an entity that XML does not define.
pub(crate) fn character(entity: &BytesRef<'_>) -> Option<char> {
    if let Ok(Some(character)) = entity.resolve_char_ref() {
        return Some(character);
    }
    match &**entity {
        b"amp" => Some('&'),
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        _ => None,
    }
}

/// A parser's error, with its byte offset.
pub(crate) fn invalid(reader: &Reader<&[u8]>, kind: Kind, error: &quick_xml::Error) -> Cause {
    Cause::damaged(kind, format!("XML at byte {}: {error}", reader.error_position()))
}
