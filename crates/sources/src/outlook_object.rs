//! The properties of Outlook's messages, recipients and attachments (MS-OXMSG, MS-OXPROPS): those of a fixed size in
//! one stream, each other in a stream that is named after its number and type.

use encoding_rs::{Encoding, UTF_16LE};

use crate::code_page::encoding_of_page;
use crate::compound::Compound;
use crate::email::one_line;
use crate::encoding::{self, Decoded};
use crate::limit::check_text;
use crate::{Cause, Limit};

/// The stream of the properties of a fixed size; every object has one.
pub(crate) const PROPERTIES: &str = "__properties_version1.0";

/// What an object is: the stream of its properties starts with a header, whose length differs.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// The message of the file.
    File,
    /// A message that is attached to another.
    Attached,
    /// A recipient or an attachment.
    Part,
}

impl Place {
    fn header_bytes(self) -> usize {
        match self {
            Place::File => 32,
            Place::Attached => 24,
            Place::Part => 8,
        }
    }
}

/// A message, a recipient or an attachment.
pub(crate) struct Object {
    /// Its storage.
    pub path: String,
    /// The encoding of its texts of 8-bit characters, if it is known.
    pub encoding: Option<&'static Encoding>,
    /// The properties of a fixed size, of [`PROPERTY_BYTES`] each.
    fixed: Vec<u8>,
}

/// Two bytes of type, two of number, four of flags, eight of value.
const PROPERTY_BYTES: usize = 16;

/// The types of properties.
const INTEGER: u16 = 0x0003;
const BOOLEAN: u16 = 0x000B;
const TIME: u16 = 0x0040;
const STRING_8: u16 = 0x001E;
const STRING: u16 = 0x001F;
const BINARY: u16 = 0x0102;

/// The code page of a message's texts.
const MESSAGE_CODE_PAGE: u16 = 0x3FFD;
/// The code page of a message on its way, and of its HTML.
const INTERNET_CODE_PAGE: u16 = 0x3FDE;

impl Object {
    /// The object in a storage; `encoding` is that of the message it is part of.
    ///
    /// # Errors
    /// [`Cause::Damaged`], [`Limit::Time`].
    pub fn open(
        file: &mut Compound<'_>,
        path: String,
        place: Place,
        encoding: Option<&'static Encoding>,
    ) -> Result<Self, Cause> {
        let mut fixed = file.stream(&format!("{path}/{PROPERTIES}"))?.unwrap_or_default();
        fixed.drain(..place.header_bytes().min(fixed.len()));
        let mut object = Object { path, encoding, fixed };
        let own = object.page(MESSAGE_CODE_PAGE).or_else(|| object.page(INTERNET_CODE_PAGE));
        object.encoding = own.or(encoding);
        Ok(object)
    }

    /// The encoding of the HTML, if it is known.
    pub fn html_encoding(&self) -> Option<&'static Encoding> {
        self.page(INTERNET_CODE_PAGE)
    }

    fn page(&self, number: u16) -> Option<&'static Encoding> {
        encoding_of_page(self.integer(number)?.cast_signed())
    }

    /// An integer.
    pub fn integer(&self, number: u16) -> Option<u32> {
        self.fixed(number, INTEGER).map(|value| value as u32)
    }

    /// Whether a property is there and true.
    pub fn is_set(&self, number: u16) -> bool {
        self.fixed(number, BOOLEAN).is_some_and(|value| value & 0xFF != 0)
    }

    /// A time, in seconds since 1970.
    pub fn seconds(&self, number: u16) -> Option<i64> {
        /// From 1601 to 1970.
        const BEFORE: i64 = 11_644_473_600;
        let ticks = self.fixed(number, TIME)?;
        i64::try_from(ticks / 10_000_000).ok().map(|seconds| seconds - BEFORE)
    }

    fn fixed(&self, number: u16, kind: u16) -> Option<u64> {
        let tag = ((u32::from(number) << 16) | u32::from(kind)).to_le_bytes();
        let property = self.fixed.chunks_exact(PROPERTY_BYTES).find(|property| property.starts_with(&tag))?;
        property[8..].try_into().ok().map(u64::from_le_bytes)
    }

    /// A text; `None` if the object has none of this number, or a blank one.
    ///
    /// # Errors
    /// [`Cause::Damaged`], [`Limit::Time`], [`Limit::TextBytes`].
    pub fn text(&self, file: &mut Compound<'_>, number: u16) -> Result<Option<String>, Cause> {
        let mut text = match self.variable(file, number, STRING)? {
            Some(bytes) => UTF_16LE.decode_without_bom_handling(&bytes).0.into_owned(),
            None => match self.variable(file, number, STRING_8)? {
                Some(bytes) => decoded(bytes, self.encoding, encoding::decode)?,
                None => return Ok(None),
            },
        };
        text.truncate(text.trim_end_matches('\0').len());
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    }

    /// A text on one line.
    ///
    /// # Errors
    /// As [`Self::text`].
    pub fn line(&self, file: &mut Compound<'_>, number: u16) -> Result<Option<String>, Cause> {
        Ok(self.text(file, number)?.and_then(|text| one_line(&text)))
    }

    /// A property of any bytes.
    ///
    /// # Errors
    /// [`Cause::Damaged`], [`Limit::Time`].
    pub fn bytes(&self, file: &mut Compound<'_>, number: u16) -> Result<Option<Vec<u8>>, Cause> {
        self.variable(file, number, BINARY)
    }

    fn variable(&self, file: &mut Compound<'_>, number: u16, kind: u16) -> Result<Option<Vec<u8>>, Cause> {
        file.stream(&format!("{}/__substg1.0_{number:04X}{kind:04X}", self.path))
    }
}

/// Decodes a text of 8-bit characters. Bytes that do not fit its encoding appear as U+FFFD. Without a known encoding, a
/// text that is not UTF-8 is in that which `detect` finds.
///
/// # Errors
/// [`Limit::TextBytes`].
pub(crate) fn decoded(
    mut bytes: Vec<u8>,
    encoding: Option<&'static Encoding>,
    detect: fn(Vec<u8>) -> Result<Decoded, Cause>,
) -> Result<String, Limit> {
    bytes.truncate(bytes.len() - bytes.iter().rev().take_while(|byte| **byte == 0).count());
    if let Some(encoding) = encoding {
        let mut text = encoding.decode(&bytes).0.into_owned();
        drop(bytes);
        check_text(text.len())?;
        // Decoding takes memory for the longest text that the bytes could be.
        text.shrink_to_fit();
        return Ok(text);
    }
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error.into_bytes(),
    };
    // A byte becomes at most three bytes of text.
    check_text(3 * bytes.len())?;
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(detect(bytes.clone()).map_or_else(|_| lossy(&bytes), |decoded| decoded.text))
}
