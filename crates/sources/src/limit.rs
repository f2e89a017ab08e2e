//! The resource limits under which files are read, and the words for each when it is exceeded.
//!
//! | reader | limits |
//! |---|---|
//! | all | [`FILE_BYTES`] of file, by default |
//! | plain text, Markdown, source code, mailboxes | [`TEXT_FILE_BYTES`] of file, which is not read into memory |
//! | tables, XLSX, ODS | [`COLUMNS`] columns, [`CELL_BYTES`] a cell, [`TEXT_BYTES`] of text |
//! | JSON, notebooks, chats | [`JSON_BYTES`] of file, [`RECORDS`] objects or turns, [`TEXT_BYTES`] of text |
//! | calendars, contacts | [`JSON_BYTES`] of file, [`RECORDS`] entries, [`TEXT_BYTES`] of text |
//! | Slack | [`SLACK_NAME_BYTES`] a user's name |
//! | e-mail, mailboxes, web archives | [`MAIL_BYTES`], [`MAIL_LINES`] and [`MAIL_PARAMETERS_BYTES`] a header in a message, [`NESTING`] levels, [`SIGNATURES`] around one another, [`TEXT_BYTES`] of text; each HTML part as HTML; a message of a mailbox beyond a limit is left out |
//! | Outlook's messages | [`MAIL_BYTES`] of file and of unpacked RTF, [`COMPOUND_ENTRIES`], [`MESSAGE_NESTING`] messages in one another, [`HTML_TIME`] in all, [`TEXT_BYTES`] of text; HTML, RTF and attached e-mails as such |
//! | mailboxes | [`MAILBOX_DOCUMENT_BYTES`] of text and [`RECORDS`] messages a document, then another begins |
//! | RTF | [`RTF_BYTES`] of file, [`RTF_WORD_BYTES`] a word, [`NESTING`] levels, [`TEXT_BYTES`] of text |
//! | HTML | [`HTML_BYTES`], [`HTML_NODES`] nodes, [`HTML_ATTRIBUTES`], [`NESTING`] levels, [`COLUMNS`] cells in a row, [`FORMULA_BYTES`] a formula, [`TEXT_BYTES`] of text; [`HTML_TIME`] for all pages in a file, in a mailbox for each [`FILE_BYTES`] |
//! | DOCX, ODT, ODP, ODS, PPTX, XLSX, EPUB | [`UNPACKED_BYTES`] of all unpacked parts, [`RECORDS`] formats of cells and lists, [`ARCHIVE_ENTRIES`], [`NESTING`] levels, [`COLUMNS`] cells in a row, [`FORMULA_BYTES`] a formula, [`TEXT_BYTES`] of text; each chapter as HTML |
//! | PDF | memory and time of the child process ([`crate::PdfChild`]), [`PDF_PAGE_BYTES`] a page, [`PDF_TEXT_BYTES`] of text |
//! | OCR | [`OCR_MEMORY_BYTES`] and [`OCR_PAGE_TIME`] of each program for a page, [`OCR_TIME`] in all |
//!
//! They keep the memory of any one file below 400 MiB, but for PDFs, whose child process has a limit of its own, and
//! for mailboxes that are not read one document after another.

use std::fmt;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// The default size of the largest file that is read.
pub(crate) const FILE_BYTES: u64 = 256 * MIB;
/// The largest plain text, Markdown or source file and the largest mailbox, which are read as streams: positions in a text
/// have 32 bits.
pub(crate) const TEXT_FILE_BYTES: u64 = u32::MAX as u64;
/// The longest extracted text of a file; of a PDF [`PDF_TEXT_BYTES`].
pub(crate) const TEXT_BYTES: usize = 96 << 20;
/// The most levels by which an item of nested lists is indented.
pub(crate) const LIST_INDENTS: usize = 12;
/// The most columns of a table, those of Excel; also of a table within a document.
pub(crate) const COLUMNS: usize = 16_384;
/// The longest cell of a table. An open quote takes everything up to the next one into its cell.
pub(crate) const CELL_BYTES: usize = 16 << 20;
/// The largest `.json`, `.jsonl`, `.ipynb`, `.ics`, `.vcf` file or chat.
pub(crate) const JSON_BYTES: u64 = 64 * MIB;
/// The most objects in a JSON file, turns in a file of chats, messages in a document of a mailbox, and entries of a
/// calendar.
pub(crate) const RECORDS: usize = 500_000;
/// The longest text of a document of a mailbox that has more than one message. Messages that are added to a mailbox
/// replace its last document, so all of that document is prepared anew.
pub(crate) const MAILBOX_DOCUMENT_BYTES: usize = 8 << 20;
/// The length of all parts of a formula together, each counted again in the part around it.
pub(crate) const FORMULA_BYTES: usize = 1 << 20;
/// The longest name of a user in an export of Slack, which permits 80 characters.
pub(crate) const SLACK_NAME_BYTES: usize = 512;
/// The largest e-mail, its attachments included, the largest web archive, and the largest unpacked RTF of a message.
pub(crate) const MAIL_BYTES: u64 = 64 * MIB;
/// The most lines of an e-mail: each can be a header.
pub(crate) const MAIL_LINES: usize = 2_000_000;
/// The longest header of an e-mail that describes its content.
pub(crate) const MAIL_PARAMETERS_BYTES: usize = 64 << 10;
/// The most signed messages within one another whose text is within their signatures: each is decoded from the one around it.
pub(crate) const SIGNATURES: usize = 2;
/// The most storages and streams of an Outlook message: each recipient and each attachment has about ten.
pub(crate) const COMPOUND_ENTRIES: usize = 100_000;
/// The most messages of Outlook's within one another: the names of their parts grow with each.
pub(crate) const MESSAGE_NESTING: usize = 32;
/// The largest RTF file.
pub(crate) const RTF_BYTES: u64 = 128 * MIB;
/// The longest text without a space in an RTF file.
pub(crate) const RTF_WORD_BYTES: usize = 16 << 20;
/// The largest HTML file or EPUB chapter.
pub(crate) const HTML_BYTES: u64 = 32 * MIB;
/// The most nodes in the tree of an HTML page. Unclosed formatting elements make a parser create many more nodes than
/// there are tags.
pub(crate) const HTML_NODES: u64 = 1_000_000;
/// The most attributes of all elements of an HTML page.
pub(crate) const HTML_ATTRIBUTES: u64 = 2_000_000;
/// How long parsing the HTML of one file may take, or of a mailbox for each [`FILE_BYTES`]: the time for some invalid pages
/// is quadratic in their length.
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
/// The time of one program for one page of a scanned PDF.
pub(crate) const OCR_PAGE_TIME: Duration = Duration::from_mins(1);
/// The time for all pages of a scanned PDF.
pub(crate) const OCR_TIME: Duration = Duration::from_mins(30);
/// The memory of a program that reads one page of a scanned PDF.
pub(crate) const OCR_MEMORY_BYTES: u64 = 2048 * MIB;

/// Refuses more references to the parts of an archive than [`ARCHIVE_ENTRIES`].
pub(crate) fn check_entries(entries: usize) -> Result<(), Limit> {
    if entries > ARCHIVE_ENTRIES { Err(Limit::ArchiveEntries(ARCHIVE_ENTRIES)) } else { Ok(()) }
}

/// Refuses a text that is longer than [`TEXT_BYTES`].
pub(crate) fn check_text(bytes: usize) -> Result<(), Limit> {
    if bytes > TEXT_BYTES { Err(Limit::TextBytes(TEXT_BYTES)) } else { Ok(()) }
}

/// A resource limit that a file exceeds, with its value. `Display` says what was exceeded, the limit, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The size of the file in bytes.
    FileBytes(u64),
    /// The length of the text in bytes.
    TextBytes(usize),
    /// The number of columns of a table.
    Columns(usize),
    /// The length of one cell of a table in bytes.
    CellBytes(usize),
    /// The length of a formula in bytes.
    FormulaBytes(usize),
    /// The size of one message of a mailbox in bytes.
    MailBytes(u64),
    /// The number of lines of one message.
    MailLines(usize),
    /// The length of a header that describes the content of a message, in bytes.
    MailParametersBytes(usize),
    /// The time for reading all pages of a scanned PDF.
    OcrTime(Duration),
    /// The unpacked size of an archive in bytes.
    UnpackedBytes(u64),
    /// The number of entries in an archive.
    ArchiveEntries(usize),
    /// The size of an HTML page in bytes.
    HtmlBytes(u64),
    /// The number of nodes in the tree of an HTML page.
    HtmlNodes(u64),
    /// The number of attributes of all elements of an HTML page.
    HtmlAttributes(u64),
    /// The depth of nested elements, or of messages within one another.
    Nesting(usize),
    /// The number of objects in a JSON file, of messages of a chat, or of entries of a calendar.
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
            Limit::TextBytes(bytes) => {
                write!(f, "its text is longer than the limit of {}; split the file", Size(bytes as u64))
            }
            Limit::Columns(columns) => {
                write!(f, "a row has more columns than the limit of {columns}; save it as text")
            }
            Limit::CellBytes(bytes) => {
                write!(
                    f,
                    "a cell is longer than the limit of {}: a quote may be missing; save it as text",
                    Size(bytes as u64)
                )
            }
            Limit::FormulaBytes(bytes) => {
                write!(f, "a formula is longer than the limit of {}; save it as text", Size(bytes as u64))
            }
            Limit::MailBytes(bytes) => {
                write!(f, "a message is larger than the limit of {}; save it without attachments", Size(bytes))
            }
            Limit::MailLines(lines) => {
                write!(f, "a message has more lines than the limit of {lines}; save it as text")
            }
            Limit::MailParametersBytes(bytes) => {
                write!(f, "a header of a message is longer than the limit of {}; save it as text", Size(bytes as u64))
            }
            Limit::OcrTime(time) => {
                write!(f, "OCR takes longer than the limit of {} s; split the PDF", time.as_secs_f32())
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
            Limit::HtmlAttributes(attributes) => {
                write!(f, "the HTML has more attributes than the limit of {attributes}; split it or save it as text")
            }
            Limit::Nesting(depth) => {
                write!(f, "its elements are nested deeper than the limit of {depth}; save it as text")
            }
            Limit::Records(records) => {
                write!(f, "the file has more messages, entries or JSON objects than the limit of {records}; split it")
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
