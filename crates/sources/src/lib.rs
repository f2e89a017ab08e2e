//! Reads files into text, with the spans of their parts.
//!
//! [`find`] turns the paths given by a user into a list of readable files; [`read`] turns one file into [`Source`]s,
//! and [`open`] leaves plain text in its file, as a [`TextFile`], so that its length does not matter for memory. A
//! source's text never changes afterwards: citations are byte spans into it and quote it exactly.
//!
//! A file of several conversations gives a source for each. A long mailbox gives several sources too, one after another
//! ([`Sources`]), so that its length does not matter for memory either.
//!
//! Every error names its file and its [`Cause`]; a file without text is an error, never an empty source. Every reader works
//! under limits of memory, output and time; a file that exceeds one is refused with [`Cause::LimitExceeded`].
//!
//! Conversations come as exports of chats ([`Kind`] lists them), in `LoCoMo`'s form, as `{"messages": [{"role": "user",
//! "content": "Hello."}]}`, or as turns, in an array or as JSON lines:
//!
//! ```json
//! {"speaker": "Ann", "text": "Hello.", "time": "2024-05-01 10:02", "session": "monday", "id": "a1"}
//! ```
//!
//! `speaker` and `text` are required. Turns of one `session` belong together, sessions in the order of their first turns;
//! without `session` all turns are one session. A turn without `id` gets its position in the file, from 1. The time of a
//! session is that of its first turn.
//!
//! Not here: hashing and storing (the store), cutting sections into passages (the methods), and any network.

mod archive;
mod attachment;
mod calendar;
mod child_limits;
mod child_process;
mod cms;
mod code_page;
mod compound;
mod contacts;
mod content_lines;
mod conversation;
mod dates;
mod dialogue;
mod docx;
mod docx_fields;
mod docx_numbers;
mod email;
mod encoding;
mod epub;
mod error;
mod find;
mod formula;
mod html;
mod html_tree;
mod kind;
mod limit;
mod locomo;
mod mailbox;
mod merged_cells;
mod merged_rows;
mod notebook;
mod numbers;
mod ocr;
mod odp;
mod ods;
mod odt;
mod odt_lists;
mod odt_styles;
mod office;
mod opendocument;
mod outlook;
mod outlook_meeting;
mod outlook_names;
mod outlook_object;
mod outlook_zone;
mod pdf;
mod pdf_child;
mod pdf_pages;
mod pdf_repair;
mod pdf_words;
mod plain;
mod pptx;
mod pptx_layouts;
mod pptx_marks;
mod pptx_numbers;
mod prose;
mod read;
mod records;
mod recurrence;
mod rows;
mod rtf;
mod rtf_compressed;
mod rtf_tokens;
mod selection;
mod source;
mod symbol;
mod table;
mod text_file;
mod watch;
mod web_archive;
mod xlsx;
mod xlsx_format;
mod xlsx_section;
mod xml;

pub use conversation::slack_users::SlackUsers;
pub use error::{Cause, SourceError};
pub use find::{Found, SkipReason, Skipped, find, find_selected};
pub use kind::Kind;
pub use limit::Limit;
pub use locomo::Captions;
pub use mailbox::is_mailbox_part;
pub use ocr::Ocr;
pub use pdf_child::{PdfChild, print_pdf_text};
pub use read::{Opened, ReadOptions, Sources, open, read};
pub use selection::{InvalidPattern, Selection};
pub use source::{Section, Source, Turn};
pub use text_file::TextFile;
pub use watch::{Changes, Watch};
