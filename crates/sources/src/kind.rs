//! The supported file types, by extension.

use std::fmt;
use std::path::Path;

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `.txt`
    Text,
    /// `.md`
    Markdown,
    /// `.html`, `.htm`
    Html,
    /// `.pdf`
    Pdf,
    /// `.docx`
    Docx,
    /// `.epub`
    Epub,
    /// `.json`, `.jsonl`
    Conversation,
}

impl Kind {
    /// Every extension that [`Kind::of`] knows.
    pub const EXTENSIONS: [(&str, Kind); 9] = [
        ("txt", Kind::Text),
        ("md", Kind::Markdown),
        ("html", Kind::Html),
        ("htm", Kind::Html),
        ("pdf", Kind::Pdf),
        ("docx", Kind::Docx),
        ("epub", Kind::Epub),
        ("json", Kind::Conversation),
        ("jsonl", Kind::Conversation),
    ];

    /// The type for a file name's extension; case makes no difference.
    pub fn of(path: &Path) -> Option<Kind> {
        let extension = path.extension()?.to_str()?;
        let known = Self::EXTENSIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
        known.map(|&(_, kind)| kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Text => "text",
            Kind::Markdown => "Markdown",
            Kind::Html => "HTML",
            Kind::Pdf => "PDF",
            Kind::Docx => "DOCX",
            Kind::Epub => "EPUB",
            Kind::Conversation => "JSON conversation",
        })
    }
}
