//! The encoding of a text: UTF-8, unless a byte order mark or invalid bytes say otherwise.
//!
//! UTF-16 is recognised by its mark, an encoding of before Unicode by its letters (chardetng, which browsers use). Nothing
//! is replaced: a text that its encoding cannot decode is refused, and so is damaged UTF-8.

use std::io::{self, Read};
use std::mem;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::Cause;

/// How much of a text is read at once.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// A decoded text.
pub(crate) struct Decoded {
    pub text: String,
    pub encoding: Option<&'static str>,
}

/// Decodes a whole text. The byte order mark of UTF-8 is kept.
///
/// # Errors
/// As [`detect`].
pub(crate) fn decode(bytes: Vec<u8>) -> Result<Decoded, Cause> {
    let encoding = detect(|| Ok(&*bytes))?;
    let text = match encoding {
        encoding if encoding == UTF_8 => decode_utf8(bytes)?,
        encoding => Pieces::new(&*bytes, encoding).collect::<Result<_, _>>()?,
    };
    Ok(Decoded { text, encoding: name(encoding) })
}

/// The same for a page of HTML, in the encoding that it declares if its bytes are valid in it.
///
/// # Errors
/// As [`detect`].
pub(crate) fn decode_html(bytes: Vec<u8>) -> Result<Decoded, Cause> {
    // A declaration as UTF-16 or ISO-2022 could not be read before the encoding is known.
    let declared = declared(&bytes).filter(|encoding| encoding.is_ascii_compatible());
    if let Some(encoding) = declared
        && utf16(&bytes).is_none()
        && str::from_utf8(&bytes).is_err()
        && let Ok(text) = Pieces::new(&*bytes, encoding).collect::<Result<String, Cause>>()
    {
        return Ok(Decoded { text, encoding: name(encoding) });
    }
    decode(bytes)
}

/// The encoding that a page of HTML declares in its first 1,024 bytes, as browsers look for it.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    const KEY: &[u8] = b"charset=";
    let head = bytes[..bytes.len().min(1024)].to_ascii_lowercase();
    let value = head[memchr::memmem::find(&head, KEY)? + KEY.len()..].iter().copied();
    let label: Vec<u8> =
        value.skip_while(|byte| b"\"' ".contains(byte)).take_while(|byte| !b"\"' ;/>".contains(byte)).collect();
    Encoding::for_label(&label)
}

/// Decodes a text that must be UTF-8.
///
/// # Errors
/// [`Cause::Utf16`], [`Cause::Binary`] or [`Cause::InvalidUtf8`].
pub(crate) fn decode_utf8(bytes: Vec<u8>) -> Result<String, Cause> {
    if utf16(&bytes).is_some() {
        return Err(Cause::Utf16);
    }
    if let Some(offset_bytes) = memchr::memchr(0, &bytes) {
        return Err(Cause::Binary { offset_bytes });
    }
    String::from_utf8(bytes).map_err(|error| Cause::InvalidUtf8 { offset_bytes: error.utf8_error().valid_up_to() })
}

/// The name of an encoding, if it is not UTF-8.
pub(crate) fn name(encoding: &'static Encoding) -> Option<&'static str> {
    (encoding != UTF_8).then(|| encoding.name())
}

/// The encoding of a text, which is valid in it.
///
/// # Errors
/// [`Cause::Binary`], [`Cause::Utf16`] or [`Cause::InvalidUtf8`], with offsets in the file; [`Cause::Io`].
pub(crate) fn detect<R: Read>(open: impl Fn() -> io::Result<R>) -> Result<&'static Encoding, Cause> {
    let check = |encoding| Pieces::new(open().map_err(Cause::Io)?, encoding).try_for_each(|piece| piece.map(drop));
    let Err(cause) = check(UTF_8) else { return Ok(UTF_8) };
    let encoding = match cause {
        Cause::Utf16 => {
            let mut mark = Vec::new();
            open().and_then(|input| input.take(2).read_to_end(&mut mark)).map_err(Cause::Io)?;
            utf16(&mark)
        }
        Cause::InvalidUtf8 { .. } => guess(open().map_err(Cause::Io)?)?,
        _ => None,
    };
    match encoding.map(|encoding| (encoding, check(encoding))) {
        Some((encoding, Ok(()))) => Ok(encoding),
        Some((_, Err(error @ (Cause::Io(_) | Cause::Binary { .. })))) => Err(error),
        _ => Err(cause),
    }
}

/// The variant of UTF-16 whose byte order mark a text starts with.
fn utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    match bytes {
        [0xFF, 0xFE, ..] => Some(UTF_16LE),
        [0xFE, 0xFF, ..] => Some(UTF_16BE),
        _ => None,
    }
}

/// The encoding of a text that is not valid UTF-8; `None` for damaged UTF-8, which has as many valid
/// characters beyond ASCII as invalid bytes, or more.
fn guess(mut input: impl Read) -> Result<Option<&'static Encoding>, Cause> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let (mut valid, mut invalid) = (0_u64, 0_u64);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if (&mut input).take(PIECE_BYTES as u64).read_to_end(&mut bytes).map_err(Cause::Io)? == 0 {
            break;
        }
        for chunk in bytes.utf8_chunks() {
            valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count() as u64;
            invalid += u64::from(!chunk.invalid().is_empty());
        }
        detector.feed(&bytes, false);
    }
    detector.feed(&[], true);
    Ok((valid < invalid).then(|| detector.guess(None, Utf8Detection::Deny)))
}

/// A text in pieces of whole characters, each of [`PIECE_BYTES`] of the file at most.
pub(crate) struct Pieces<R> {
    input: R,
    /// `None` for UTF-8.
    decoder: Option<Decoder>,
    /// The offset of the next piece in the file.
    offset_bytes: usize,
    /// The beginning of a character whose end was not read yet.
    carry: Vec<u8>,
    is_ended: bool,
}

impl<R: Read> Pieces<R> {
    pub fn new(input: R, encoding: &'static Encoding) -> Self {
        let decoder = (encoding != UTF_8).then(|| encoding.new_decoder_with_bom_removal());
        Pieces { input, decoder, offset_bytes: 0, carry: Vec::new(), is_ended: false }
    }

    fn piece(&mut self) -> Result<String, Cause> {
        let mut bytes = mem::take(&mut self.carry);
        let most = (PIECE_BYTES - bytes.len()) as u64;
        (&mut self.input).take(most).read_to_end(&mut bytes).map_err(Cause::Io)?;
        self.is_ended = bytes.len() < PIECE_BYTES;
        match &mut self.decoder {
            None => self.utf8(bytes),
            Some(decoder) => {
                let text = decoded(decoder, &bytes, self.is_ended, self.offset_bytes)?;
                self.offset_bytes += bytes.len();
                Ok(text)
            }
        }
    }

    fn utf8(&mut self, bytes: Vec<u8>) -> Result<String, Cause> {
        if self.offset_bytes == 0 && utf16(&bytes).is_some() {
            return Err(Cause::Utf16);
        }
        if let Some(at) = memchr::memchr(0, &bytes) {
            return Err(Cause::Binary { offset_bytes: self.offset_bytes + at });
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let (valid, is_cut) = (error.utf8_error().valid_up_to(), error.utf8_error().error_len().is_none());
                if self.is_ended || !is_cut {
                    return Err(Cause::InvalidUtf8 { offset_bytes: self.offset_bytes + valid });
                }
                let mut bytes = error.into_bytes();
                self.carry = bytes.split_off(valid);
                String::from_utf8(bytes).map_err(|_| Cause::InvalidUtf8 { offset_bytes: self.offset_bytes })?
            }
        };
        self.offset_bytes += text.len();
        Ok(text)
    }
}

impl<R: Read> Iterator for Pieces<R> {
    type Item = Result<String, Cause>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_ended {
            match self.piece() {
                Ok(text) if text.is_empty() => {}
                Ok(text) => return Some(Ok(text)),
                Err(cause) => {
                    self.is_ended = true;
                    return Some(Err(cause));
                }
            }
        }
        None
    }
}

/// Decodes a piece of a text that is not UTF-8.
fn decoded(decoder: &mut Decoder, bytes: &[u8], is_last: bool, offset_bytes: usize) -> Result<String, Cause> {
    let is_utf16 = [UTF_16LE, UTF_16BE].contains(&decoder.encoding());
    if !is_utf16 && let Some(at) = memchr::memchr(0, bytes) {
        return Err(Cause::Binary { offset_bytes: offset_bytes + at });
    }
    let invalid = if is_utf16 { Cause::Utf16 } else { Cause::InvalidUtf8 { offset_bytes } };
    let Some(most) = decoder.max_utf8_buffer_length_without_replacement(bytes.len()) else { return Err(invalid) };
    let mut text = String::with_capacity(most);
    let (result, _) = decoder.decode_to_string_without_replacement(bytes, &mut text, is_last);
    // Escape starts the colours of logs; other control characters are no text in any encoding.
    let is_control =
        |c: char| c.is_control() && !c.is_ascii_whitespace() && !matches!(c, '\u{b}' | '\u{1b}' | '\u{85}');
    if result != DecoderResult::InputEmpty || text.contains(is_control) {
        return Err(invalid);
    }
    Ok(text)
}
