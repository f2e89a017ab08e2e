//! Plain text and Markdown files as streams: checked once, then read piece by piece as often as needed.

use std::fs::File;
use std::io::Read;
use std::mem;
use std::path::{Path, PathBuf};

use crate::source::heading;
use crate::{Cause, Kind};

/// How much of a file is read at once.
const PIECE_BYTES: usize = 256 << 10;
/// A longer line is no heading.
const HEADING_BYTES: usize = 1 << 20;

/// A `.txt` or `.md` file whose text is the file's content, every byte of it. It was valid when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    /// The file's path as it was given; a server gives the document another name.
    pub path: String,
    /// [`Kind::Text`] or [`Kind::Markdown`].
    pub kind: Kind,
    /// The first heading of a Markdown file.
    pub title: Option<String>,
    /// The length of the text.
    pub bytes: usize,
    file: PathBuf,
}

/// The pieces of a file: whole characters, [`PIECE_BYTES`] at most.
struct Pieces {
    file: File,
    /// The offset of the next piece.
    offset_bytes: usize,
    /// The beginning of a character whose end was not read yet.
    carry: Vec<u8>,
}

impl TextFile {
    /// Reads the whole file once to check it.
    ///
    /// # Errors
    /// [`Cause::Utf16`], [`Cause::Binary`], [`Cause::InvalidUtf8`], [`Cause::NoText`], [`Cause::Io`].
    pub(crate) fn open(path: &Path, kind: Kind) -> Result<Self, Cause> {
        let mut text =
            TextFile { path: path.to_string_lossy().into_owned(), kind, title: None, bytes: 0, file: path.to_owned() };
        let mut headings = Headings::default();
        let mut is_blank = true;
        for piece in text.pieces()? {
            let piece = piece?;
            let words = if text.bytes == 0 { piece.trim_start_matches('\u{feff}') } else { &piece };
            is_blank &= words.trim().is_empty();
            if kind == Kind::Markdown {
                headings.add(words);
            }
            text.bytes += piece.len();
        }
        if is_blank {
            return Err(Cause::NoText);
        }
        text.title = headings.finish();
        Ok(text)
    }

    /// Reads the text from its beginning, in pieces.
    ///
    /// # Errors
    /// Those of opening, and [`Cause::Io`].
    pub fn pieces(&self) -> Result<impl Iterator<Item = Result<String, Cause>> + use<>, Cause> {
        let file = File::open(&self.file).map_err(Cause::Io)?;
        let mut pieces = Pieces { file, offset_bytes: 0, carry: Vec::new() };
        Ok(std::iter::from_fn(move || pieces.next().transpose()))
    }
}

impl Pieces {
    fn next(&mut self) -> Result<Option<String>, Cause> {
        let mut bytes = mem::take(&mut self.carry);
        let most = (PIECE_BYTES - bytes.len()) as u64;
        (&mut self.file).take(most).read_to_end(&mut bytes).map_err(Cause::Io)?;
        if self.offset_bytes == 0 && (bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF])) {
            return Err(Cause::Utf16);
        }
        if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
            return Err(Cause::Binary { offset_bytes: self.offset_bytes + at });
        }
        let is_last = bytes.len() < PIECE_BYTES;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let (valid, is_cut) = (error.utf8_error().valid_up_to(), error.utf8_error().error_len().is_none());
                if is_last || !is_cut {
                    return Err(Cause::InvalidUtf8 { offset_bytes: self.offset_bytes + valid });
                }
                let mut bytes = error.into_bytes();
                self.carry = bytes.split_off(valid);
                String::from_utf8(bytes).map_err(|_| Cause::InvalidUtf8 { offset_bytes: self.offset_bytes })?
            }
        };
        self.offset_bytes += text.len();
        Ok((!text.is_empty()).then_some(text))
    }
}

/// Finds the first heading of a text that comes in pieces.
#[derive(Default)]
struct Headings {
    /// The line whose end was not read yet.
    line: String,
    is_too_long: bool,
    found: Option<String>,
}

impl Headings {
    fn add(&mut self, piece: &str) {
        for part in piece.split_inclusive('\n') {
            if self.found.is_some() {
                return;
            }
            self.is_too_long |= self.line.len() + part.len() > HEADING_BYTES;
            if !self.is_too_long {
                self.line.push_str(part);
            }
            if part.ends_with('\n') {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = mem::take(&mut self.line);
        if !mem::take(&mut self.is_too_long) {
            self.found = line.lines().next().and_then(heading);
        }
    }

    fn finish(mut self) -> Option<String> {
        if self.found.is_none() {
            self.end_line();
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain;

    /// Opens a file of these bytes.
    fn open(bytes: &[u8], kind: Kind) -> Result<(TextFile, String), Cause> {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let path = folder.path().join("text");
        std::fs::write(&path, bytes).expect("the folder takes a file");
        let file = TextFile::open(&path, kind)?;
        let pieces: Result<String, Cause> = file.pieces()?.collect();
        Ok((file, pieces?))
    }

    #[test]
    fn a_stream_has_the_text_and_title_of_the_whole_file() {
        let long = "né≈😀 ".repeat(100_000);
        let no_heading = format!("#{}\n", "x".repeat(2 * HEADING_BYTES));
        let texts = ["\u{feff}# One\ntwo", "text\n## Two ##\n", "no heading", "a\r\n# b\r\n", "#none\n# late", &long];
        let after_long = format!("{long}\n# End");
        let after_line = format!("{no_heading}# End");
        for text in texts.into_iter().chain([after_long.as_str(), &after_line]) {
            let whole = plain::markdown("text", text.to_owned()).expect("it is a text");
            let (file, streamed) = open(text.as_bytes(), Kind::Markdown).expect("it is a text");
            assert!(streamed == text && file.bytes == text.len());
            assert_eq!(file.title, whole.title);
        }
    }

    #[test]
    fn a_stream_is_refused_as_the_whole_file_is() {
        let at_a_border = |bytes: &[u8]| [&vec![b'a'; PIECE_BYTES - 1][..], bytes].concat();
        for bytes in [
            b"\xff\xfea\0".to_vec(),
            b"a\0b".to_vec(),
            b"a\xffb".to_vec(),
            b" \n\t".to_vec(),
            at_a_border(b"\xc3"),
            at_a_border(b"\xc3x"),
            at_a_border("\u{e9}".as_bytes())[..PIECE_BYTES].to_vec(),
            at_a_border(b"x\0"),
        ] {
            let whole = plain::decode(bytes.clone()).and_then(|text| plain::text("text", text)).map(drop);
            let streamed = open(&bytes, Kind::Text).map(drop);
            assert_eq!(format!("{whole:?}"), format!("{streamed:?}"));
            assert!(whole.is_err());
        }
    }
}
