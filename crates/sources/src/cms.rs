//! The content of signed messages of S/MIME, which is within their signature: CMS (RFC 5652) in BER (X.690).
//!
//! Only the elements before the content are read, so this is a parser of a few tags and not a crate for ASN.1: `der` and `cms`, which
//! are not among the dependencies, read no indefinite lengths and no strings in segments, as mail programs write them. Signatures
//! are not verified.

use std::borrow::Cow;

/// What a CMS message holds.
#[derive(Debug, PartialEq)]
pub(crate) enum Content<'a> {
    /// What was signed.
    Signed(Cow<'a, [u8]>),
    Encrypted,
    /// Certificates alone, a signature of a text elsewhere, compressed content.
    Other,
}

/// The tags of elements.
const END: u8 = 0x00;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OID: u8 = 0x06;
const SEGMENTS: u8 = 0x24;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const CONTEXT_0: u8 = 0xA0;
/// The bit of a tag whose content is elements.
const CONSTRUCTED: u8 = 0x20;

/// The types of content: 1.2.840.113549.1.7.1, .2, .3, .6, and 1.2.840.113549.1.9.16.1.23.
const DATA: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x01];
const SIGNED: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02];
const ENVELOPED: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x03];
const ENCRYPTED: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x06];
const AUTH_ENVELOPED: &[u8] = &[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x10, 0x01, 0x17];

/// The most strings in segments within one another.
const MAX_DEPTH: usize = 16;

/// The content of a CMS message; `None` if it is damaged or none. It takes at most as much memory as the message.
pub(crate) fn content(message: &[u8]) -> Option<Content<'_>> {
    let mut ber = Ber { rest: message };
    ber.enter(SEQUENCE)?;
    match ber.value(OID)? {
        SIGNED => {}
        ENVELOPED | ENCRYPTED | AUTH_ENVELOPED => return Some(Content::Encrypted),
        _ => return Some(Content::Other),
    }
    ber.enter(CONTEXT_0)?;
    ber.enter(SEQUENCE)?;
    ber.value(INTEGER)?;
    ber.skip(SET)?;
    ber.enter(SEQUENCE)?;
    let is_data = ber.value(OID)? == DATA;
    if !is_data || ber.rest.first() != Some(&CONTEXT_0) {
        return Some(Content::Other);
    }
    ber.enter(CONTEXT_0)?;
    ber.octets().map(Content::Signed)
}

/// Elements that are read one after another.
struct Ber<'a> {
    rest: &'a [u8],
}

/// The start of an element: its tag, and the length of its content unless an `END` ends it.
struct Header {
    tag: u8,
    length: Option<usize>,
}

impl<'a> Ber<'a> {
    fn header(&mut self) -> Option<Header> {
        let [tag, first, rest @ ..] = self.rest else { return None };
        self.rest = rest;
        let length = match *first {
            0x80 if tag & CONSTRUCTED == 0 => return None,
            0x80 => None,
            short @ 0..0x80 => Some(usize::from(short)),
            long => {
                let bytes = self.take(usize::from(long & 0x7F))?;
                let length = bytes.iter().try_fold(0_usize, |length, byte| {
                    length.checked_mul(256).map(|length| length | usize::from(*byte))
                });
                Some(length?)
            }
        };
        Some(Header { tag: *tag, length })
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    /// Continues within an element of a tag. What follows it is not read, nor the end of one of indefinite length.
    fn enter(&mut self, tag: u8) -> Option<()> {
        let header = self.header().filter(|header| header.tag == tag)?;
        if let Some(length) = header.length {
            self.rest = self.take(length)?;
        }
        Some(())
    }

    /// The content of an element of a tag.
    fn value(&mut self, tag: u8) -> Option<&'a [u8]> {
        let header = self.header().filter(|header| header.tag == tag)?;
        self.take(header.length?)
    }

    /// Passes over an element of a tag.
    fn skip(&mut self, tag: u8) -> Option<()> {
        if self.rest.first() != Some(&tag) {
            return None;
        }
        // How many elements of indefinite length are open.
        let mut open = 0_usize;
        loop {
            let header = self.header()?;
            match header.length {
                None => open += 1,
                Some(0) if header.tag == END => open = open.checked_sub(1)?,
                Some(length) => {
                    self.take(length)?;
                }
            }
            if open == 0 {
                return Some(());
            }
        }
    }

    /// A string of octets, which may be in segments.
    fn octets(&mut self) -> Option<Cow<'a, [u8]>> {
        let Header { tag, length } = self.header()?;
        match (tag, length) {
            (OCTETS, Some(length)) => self.take(length).map(Cow::Borrowed),
            (SEGMENTS, length) => self.segments(length).map(Cow::Owned),
            _ => None,
        }
    }

    /// The octets of a string in segments, each of which may be in segments itself.
    fn segments(&mut self, length: Option<usize>) -> Option<Vec<u8>> {
        let bytes = self.rest.len();
        // Octets that grow would be copied into twice their size.
        let mut octets = Vec::with_capacity(length.unwrap_or(bytes).min(bytes));
        let mut open = vec![self.end(length)?];
        while let Some(end) = open.last().copied() {
            match end {
                End::Before(bytes) if self.rest.len() == bytes => drop(open.pop()),
                End::Before(bytes) if self.rest.len() < bytes => return None,
                _ => {
                    let Header { tag, length } = self.header()?;
                    match (tag, length, end) {
                        (END, Some(0), End::Marked) => drop(open.pop()),
                        (OCTETS, Some(length), _) => octets.extend_from_slice(self.take(length)?),
                        (SEGMENTS, length, _) if open.len() < MAX_DEPTH => open.push(self.end(length)?),
                        _ => return None,
                    }
                }
            }
        }
        Some(octets)
    }

    /// Where an element of this length ends whose content comes next.
    fn end(&self, length: Option<usize>) -> Option<End> {
        match length {
            Some(length) => self.rest.len().checked_sub(length).map(End::Before),
            None => Some(End::Marked),
        }
    }
}

/// Where an element ends.
#[derive(Clone, Copy)]
enum End {
    /// Before the last bytes, of this number.
    Before(usize),
    /// At an `END`.
    Marked,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element of definite length.
    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let start =
            if length < 128 { vec![tag, length as u8] } else { vec![tag, 0x82, (length >> 8) as u8, length as u8] };
        [&start[..], content].concat()
    }

    /// An element of indefinite length.
    fn open_element(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, 0x80][..], content, &[0, 0]].concat()
    }

    type Element = fn(u8, &[u8]) -> Vec<u8>;

    /// A signed message with this content, which is an element, or none.
    fn signed(element_of: Element, content: &[u8]) -> Vec<u8> {
        let algorithms = element_of(SET, &element_of(SEQUENCE, &element(OID, &[1, 2, 3])));
        let content = if content.is_empty() { Vec::new() } else { element_of(CONTEXT_0, content) };
        let inner = element_of(SEQUENCE, &[element(OID, DATA), content].concat());
        let certificates = element(CONTEXT_0, b"any bytes");
        let data = element_of(SEQUENCE, &[element(INTEGER, &[1]), algorithms, inner, certificates].concat());
        element_of(SEQUENCE, &[element(OID, SIGNED), element_of(CONTEXT_0, &data)].concat())
    }

    #[test]
    fn the_content_of_a_signed_message_is_found_in_every_form() {
        let check = |message: &[u8]| assert_eq!(content(message), Some(Content::Signed(b"one two".into())));
        let inner =
            [element(OCTETS, b"one"), element(SEGMENTS, &element(OCTETS, b" ")), element(OCTETS, b"two")].concat();
        for element_of in [element as Element, open_element] {
            check(&signed(element_of, &element(OCTETS, b"one two")));
            check(&signed(element_of, &element(SEGMENTS, &inner)));
            check(&signed(element_of, &open_element(SEGMENTS, &inner)));
            check(&signed(element_of, &open_element(SEGMENTS, &open_element(SEGMENTS, &inner))));
        }
        let long = vec![b'x'; 1000];
        assert_eq!(content(&signed(element, &element(OCTETS, &long))), Some(Content::Signed(long.into())));
    }

    #[test]
    fn other_messages_are_told_apart() {
        assert_eq!(content(&signed(element, b"")), Some(Content::Other));
        for kind in [ENVELOPED, ENCRYPTED, AUTH_ENVELOPED] {
            assert_eq!(content(&open_element(SEQUENCE, &element(OID, kind))), Some(Content::Encrypted));
        }
        assert_eq!(content(&element(SEQUENCE, &element(OID, DATA))), Some(Content::Other));
    }

    #[test]
    fn damaged_messages_have_no_signed_content() {
        for element_of in [element as Element, open_element] {
            let whole = signed(element_of, &element(SEGMENTS, &element(OCTETS, b"one two")));
            let end = whole.windows(3).position(|window| window == b"two").expect("it is there") + 3;
            let is_signed = |length: usize| matches!(content(&whole[..length]), Some(Content::Signed(_)));
            assert!(!(0..end).any(is_signed));
        }
        assert_eq!(content(b"words"), None);
        // A length of more bytes than a number has, a primitive element of indefinite length, and segments without end.
        assert_eq!(content(&[&[SEQUENCE, 0x89][..], &[0xFF; 20]].concat()), None);
        assert_eq!(content(&[SEQUENCE, 0x80, OID, 0x80, 0, 0]), None);
        let deep = signed(open_element, &[SEGMENTS, 0x80].repeat(1000));
        assert_eq!(content(&deep), None);
        // A segment that is longer than the string.
        let long = signed(element, &[SEGMENTS, 4, OCTETS, 3, b'a', b'b', b'c']);
        assert_eq!(content(&long), None);
    }
}
