//! Plain text, Markdown and source code as streams: checked once, then read piece by piece as often as needed.

use std::fs::File;
use std::mem;
use std::path::{Path, PathBuf};

use encoding_rs::{Encoding, UTF_8};

use crate::encoding::{self, Pieces};
use crate::source::Headings;
use crate::{Cause, Kind};

/// A longer line is no heading.
const HEADING_BYTES: usize = 1 << 20;

/// A file whose text is its content, every byte of it if it is UTF-8. It was valid when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFile {
    /// The file's path as it was given; a server gives the document another name.
    pub path: String,
    /// [`Kind::Text`], [`Kind::Markdown`] or [`Kind::Code`]; [`Kind::Table`] inside this crate.
    pub kind: Kind,
    /// The first heading of a Markdown file.
    pub title: Option<String>,
    /// The length of the text in UTF-8.
    pub bytes: usize,
    encoding: &'static Encoding,
    file: PathBuf,
}

impl TextFile {
    /// Reads the whole file once to check it, and again if it is not UTF-8.
    ///
    /// # Errors
    /// [`Cause::Utf16`], [`Cause::Binary`], [`Cause::InvalidUtf8`], [`Cause::NoText`], [`Cause::Io`].
    pub(crate) fn open(path: &Path, kind: Kind) -> Result<Self, Cause> {
        match Self::open_as(UTF_8, path, kind) {
            Err(Cause::Utf16 | Cause::InvalidUtf8 { .. }) => {
                Self::open_as(encoding::detect(|| File::open(path))?, path, kind)
            }
            opened => opened,
        }
    }

    /// The same for a file that must be in an encoding.
    pub(crate) fn open_as(encoding: &'static Encoding, path: &Path, kind: Kind) -> Result<Self, Cause> {
        let (file, path) = (path.to_owned(), path.to_string_lossy().into_owned());
        let mut text = TextFile { path, kind, title: None, bytes: 0, encoding, file };
        let mut first_heading = FirstHeading::default();
        let mut is_blank = true;
        for piece in text.pieces()? {
            let piece = piece?;
            let words = if text.bytes == 0 { piece.trim_start_matches('\u{feff}') } else { &piece };
            is_blank &= words.trim().is_empty();
            if kind == Kind::Markdown {
                first_heading.add(words);
            }
            text.bytes += piece.len();
        }
        if is_blank {
            return Err(Cause::NoText);
        }
        text.title = first_heading.finish();
        Ok(text)
    }

    /// Reads the text from its beginning, in pieces.
    ///
    /// # Errors
    /// Those of opening, and [`Cause::Io`].
    pub fn pieces(&self) -> Result<impl Iterator<Item = Result<String, Cause>> + use<>, Cause> {
        let file = File::open(&self.file).map_err(Cause::Io)?;
        Ok(Pieces::new(file, self.encoding))
    }

    /// The encoding of the file, if it is not UTF-8.
    pub fn encoding(&self) -> Option<&'static str> {
        encoding::name(self.encoding)
    }
}

/// Finds the first heading of a text that comes in pieces.
#[derive(Default)]
struct FirstHeading {
    headings: Headings,
    /// The line whose end was not read yet.
    line: String,
    is_too_long: bool,
    found: Option<String>,
}

impl FirstHeading {
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
            self.found = line.lines().next().and_then(|line| self.headings.of(line));
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
    use crate::encoding::{PIECE_BYTES, decode};
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
        let after_code = "---\n# a\n---\n```\n# b\n```\n# c";
        let after_line = format!("{no_heading}# End");
        for text in texts.into_iter().chain([after_long.as_str(), &after_line, after_code]) {
            let decoded = decode(text.as_bytes().to_vec()).expect("it is a text");
            let whole = plain::markdown("text", decoded).expect("it is a text");
            let (file, streamed) = open(text.as_bytes(), Kind::Markdown).expect("it is a text");
            assert!(streamed == text && file.bytes == text.len());
            assert_eq!(file.title, whole.title);
        }
    }

    #[test]
    fn a_stream_is_decoded_and_refused_as_the_whole_file_is() {
        let at_a_border = |bytes: &[u8]| [&vec![b'a'; PIECE_BYTES - 1][..], bytes].concat();
        let utf16 = |text: &str| [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let (latin, wide): (Vec<u8>, Vec<u8>) = (at_a_border(b" caf\xe9 cr\xe8me"), utf16(&"né≈😀 ".repeat(60_000)));
        for bytes in [latin.clone(), wide.clone(), wide[..wide.len() - 1].to_vec(), utf16("a\0b"), latin[..].to_vec()] {
            let whole = decode(bytes.clone()).map(|decoded| decoded.text);
            let streamed = open(&bytes, Kind::Text).map(|(_, text)| text);
            assert!(format!("{whole:?}") == format!("{streamed:?}"));
        }
        for bytes in [
            b"\xff\xfea".to_vec(),
            b"a\0b".to_vec(),
            b"a\xff\0b".to_vec(),
            b" \n\t".to_vec(),
            "é \u{e9}".as_bytes()[..4].to_vec(),
            at_a_border(b"x\0"),
        ] {
            let whole = decode(bytes.clone()).and_then(|decoded| plain::text("text", decoded)).map(drop);
            let streamed = open(&bytes, Kind::Text).map(drop);
            assert_eq!(format!("{whole:?}"), format!("{streamed:?}"));
            assert!(whole.is_err());
        }
    }
}
