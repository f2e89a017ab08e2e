//! XML functions shared by the readers of archives. Namespace prefixes are ignored: each reader has one schema.
//!
//! Entities that a document defines for itself are never expanded.

use quick_xml::XmlVersion;
use quick_xml::events::attributes::Attribute;
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
        let found = self.find(|attribute| attribute.key.into_inner().ends_with(b":id"))?;
        Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
    }

    /// The value of an attribute, by its name without prefix.
    pub fn attribute(&self, name: &str) -> Option<String> {
        let found = self.find(|attribute| attribute.key.local_name().into_inner() == name.as_bytes())?;
        Some(found.normalized_value(XmlVersion::Implicit1_0).ok()?.into_owned())
    }

    fn find(&self, is_wanted: impl FnMut(&Attribute<'_>) -> bool) -> Option<Attribute<'_>> {
        let mut attributes = self.start.attributes();
        // The first of several of a name is taken; looking for repeated ones takes memory for each attribute.
        attributes.with_checks(false).flatten().find(is_wanted)
    }
}

/// Calls `each` with the start tags of a document, in order, until it returns `false`.
///
/// # Errors
/// [`Cause::Damaged`] for XML that is not well formed, [`Limit::Nesting`], and those of `each`.
pub(crate) fn each_tag(
    xml: &str,
    kind: Kind,
    mut each: impl FnMut(&Tag<'_>) -> Result<bool, Limit>,
) -> Result<(), Cause> {
    let mut reader = Reader::from_str(xml);
    let mut depth = 0;
    loop {
        let event = reader.read_event().map_err(|error| invalid(&reader, kind, &error))?;
        depth = depth_after(depth, &event)?;
        let tag = match event {
            Event::Start(start) | Event::Empty(start) => Tag::new(start),
            Event::Eof => return Ok(()),
            _ => continue,
        };
        if !each(&tag)? {
            return Ok(());
        }
    }
}

/// The number of open elements after an event, of which the parser keeps the names.
fn depth_after(depth: usize, event: &Event<'_>) -> Result<usize, Limit> {
    match event {
        Event::Start(_) if depth == NESTING => Err(Limit::Nesting(NESTING)),
        Event::Start(_) => Ok(depth + 1),
        Event::End(_) => Ok(depth.saturating_sub(1)),
        _ => Ok(depth),
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
    let mut depth = 0;
    // The depth around the element that is left out.
    let mut left_out: Option<usize> = None;
    loop {
        let event = reader.read_event().map_err(|error| invalid(&reader, kind, &error))?;
        let around = depth;
        depth = depth_after(depth, &event)?;
        match event {
            Event::Eof => return Ok(()),
            Event::End(_) if left_out == Some(depth) => left_out = None,
            _ if left_out.is_some() => {}
            Event::Start(start) => {
                let is_read = each(Node::Open(&Tag::new(start)))?;
                left_out = (!is_read).then_some(around);
            }
            Event::End(end) => drop(each(Node::Close(end.local_name().into_inner()))?),
            Event::Text(text) => drop(each(Node::Text(&text.xml10_content().unwrap_or_default()))?),
            Event::CData(text) => drop(each(Node::Text(&text.xml10_content().unwrap_or_default()))?),
            Event::GeneralRef(entity) => {
                if let Some(character) = character(&entity) {
                    each(Node::Text(character.encode_utf8(&mut [0; 4])))?;
                }
            }
            _ => {}
        }
    }
}

/// The text of the first element of a name, white space trimmed; `None` if there is no such element or it is blank.
pub(crate) fn text_of(xml: &str, name: &str, kind: Kind) -> Result<Option<String>, Cause> {
    let mut reader = Reader::from_str(xml);
    let mut text = String::new();
    let (mut depth, mut inside) = (0, false);
    loop {
        let event = reader.read_event().map_err(|error| invalid(&reader, kind, &error))?;
        depth = depth_after(depth, &event)?;
        match event {
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

/// What to do about a part that is damaged.
pub(crate) const ADVICE: &str = "open the file in the program that made it and save it anew, or get another copy";

/// A parser's error, with its byte offset.
pub(crate) fn invalid(reader: &Reader<&[u8]>, kind: Kind, error: &quick_xml::Error) -> Cause {
    Cause::damaged(kind, format!("invalid XML at byte {}: {error}; {ADVICE}", reader.error_position()))
}
