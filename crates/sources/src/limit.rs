//! The resource limits under which files are read, and the words for each when it is exceeded.
//!
//! | reader | limits |
//! |---|---|
//! | all | [`FILE_BYTES`] of file, by default |
//! | plain text, Markdown | [`TEXT_BYTES`] of file, which is not read into memory |
//! | JSON | [`JSON_BYTES`] of file, [`RECORDS`] objects |
//! | HTML | [`HTML_BYTES`], [`HTML_NODES`] nodes, [`NESTING`] levels, [`HTML_TIME`] |
//! | DOCX, EPUB | [`UNPACKED_BYTES`] of all unpacked parts, [`ARCHIVE_ENTRIES`], [`NESTING`] levels; each chapter as HTML |
//! | PDF | memory and time of the child process ([`crate::PdfChild`]), [`PDF_PAGE_BYTES`] a page, [`PDF_TEXT_BYTES`] of text |
//!
//! They keep the memory of any one file below 400 MiB, but for PDFs, whose child process has a limit of its own.

use std::fmt;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// The default size of the largest file that is read.
pub(crate) const FILE_BYTES: u64 = 256 * MIB;
/// The largest `.txt` or `.md` file that is read as a stream: positions in a text have 32 bits.
pub(crate) const TEXT_BYTES: u64 = u32::MAX as u64;
/// The largest `.json` or `.jsonl` file.
pub(crate) const JSON_BYTES: u64 = 64 * MIB;
/// The most objects in a JSON file.
pub(crate) const RECORDS: usize = 500_000;
/// The largest HTML file or EPUB chapter.
pub(crate) const HTML_BYTES: u64 = 32 * MIB;
/// The most nodes in the tree of an HTML page. Unclosed formatting elements make a parser create many more nodes than
/// there are tags.
pub(crate) const HTML_NODES: u64 = 1_000_000;
/// How long the parser may take for one HTML page: the time for some invalid pages is quadratic in their length.
pub(crate) const HTML_TIME: Duration = Duration::from_mins(1);
/// The depth of nested elements; that of browsers for HTML.
pub(crate) const NESTING: usize = 512;
/// The most entries in the directory of an archive.
pub(crate) const ARCHIVE_ENTRIES: usize = 20_000;
/// The largest total unpacked size of the parts read from one archive.
pub(crate) const UNPACKED_BYTES: u64 = 128 * MIB;
/// The largest content of one PDF page, decompressed.
pub(crate) const PDF_PAGE_BYTES: u64 = 64 * MIB;
/// The longest text of a PDF.
pub(crate) const PDF_TEXT_BYTES: u64 = 256 * MIB;
/// The default memory of the process that reads a PDF.
pub(crate) const PDF_MEMORY_BYTES: u64 = 1024 * MIB;
/// The default time of the process that reads a PDF.
pub(crate) const PDF_TIME: Duration = Duration::from_mins(2);

/// A resource limit that a file exceeds, with its value. `Display` says what was exceeded, the limit, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The size of the file in bytes.
    FileBytes(u64),
    /// The unpacked size of a DOCX or EPUB archive in bytes.
    UnpackedBytes(u64),
    /// The number of entries in an archive.
    ArchiveEntries(usize),
    /// The size of an HTML page in bytes.
    HtmlBytes(u64),
    /// The number of nodes in the tree of an HTML page.
    HtmlNodes(u64),
    /// The depth of nested elements.
    Nesting(usize),
    /// The number of objects in a JSON file.
    Records(usize),
    /// The memory of the process that reads a PDF, in bytes.
    PdfMemoryBytes(u64),
    /// The decompressed content of one PDF page, in bytes.
    PdfPageBytes(u64),
    /// The text of a PDF in bytes.
    PdfTextBytes(u64),
    /// The time for reading one file.
    Time(Duration),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Limit::FileBytes(bytes) => {
                write!(f, "the file is larger than the limit of {}; split it", Size(bytes))
            }
            Limit::UnpackedBytes(bytes) => {
                write!(f, "the file unpacks to more than the limit of {}; split it or save it as text", Size(bytes))
            }
            Limit::ArchiveEntries(entries) => {
                write!(f, "the archive has more entries than the limit of {entries}; save the document anew or as text")
            }
            Limit::HtmlBytes(bytes) => {
                write!(f, "the HTML is larger than the limit of {}; split it or save it as text", Size(bytes))
            }
            Limit::HtmlNodes(nodes) => {
                write!(f, "the HTML has more nodes than the limit of {nodes}; split it or save it as text")
            }
            Limit::Nesting(depth) => {
                write!(f, "its elements are nested deeper than the limit of {depth}; save it as text")
            }
            Limit::Records(records) => {
                write!(f, "the file has more JSON objects than the limit of {records}; split it")
            }
            Limit::PdfMemoryBytes(bytes) => {
                write!(
                    f,
                    "reading the PDF needs more memory than the limit of {}; split it or convert it to text",
                    Size(bytes)
                )
            }
            Limit::PdfPageBytes(bytes) => {
                write!(f, "a page of the PDF has more content than the limit of {}; convert it to text", Size(bytes))
            }
            Limit::PdfTextBytes(bytes) => {
                write!(f, "the PDF has more text than the limit of {}; split it", Size(bytes))
            }
            Limit::Time(time) => {
                write!(
                    f,
                    "reading it takes longer than the limit of {} s; split it or convert it to text",
                    time.as_secs_f32()
                )
            }
        }
    }
}

/// A number of bytes in the largest binary unit that divides it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("GiB", 1024 * MIB), ("MiB", MIB), ("KiB", 1024)];
        match units.into_iter().find(|(_, unit)| self.0 >= *unit && self.0.is_multiple_of(*unit)) {
            Some((name, unit)) => write!(f, "{} {name}", self.0 / unit),
            None => write!(f, "{} bytes", self.0),
        }
    }
}
