//! The supported file types, by extension.

use std::fmt;
use std::path::Path;

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `.txt`, and other files of words: `.log`, `.rst`, `.tex`
    Text,
    /// `.md`, `.markdown`
    Markdown,
    /// The extensions of programming languages and configuration files
    Code,
    /// `.csv`, `.tsv`
    Table,
    /// `.html`, `.htm`
    Html,
    /// `.pdf`
    Pdf,
    /// A `.pdf` with pages whose text was recognised in their pictures
    ScannedPdf,
    /// `.docx`
    Docx,
    /// `.odt`
    Odt,
    /// `.rtf`
    Rtf,
    /// `.pptx`
    Pptx,
    /// `.xlsx`
    Xlsx,
    /// `.epub`
    Epub,
    /// `.eml`
    Email,
    /// `.mbox`
    Mailbox,
    /// `.ipynb`
    Notebook,
    /// `.json`, `.jsonl`: exports of ChatGPT, Claude, Slack and Telegram, `{"messages": ...}`, `LoCoMo`, or turns
    Conversation,
    /// `_chat.txt` and `.txt` files with `WhatsApp` in their names
    WhatsApp,
}

impl Kind {
    /// Every extension that [`Kind::of`] knows.
    pub const EXTENSIONS: &[(&str, Kind)] = &[
        ("txt", Kind::Text),
        ("text", Kind::Text),
        ("log", Kind::Text),
        ("rst", Kind::Text),
        ("tex", Kind::Text),
        ("md", Kind::Markdown),
        ("markdown", Kind::Markdown),
        ("csv", Kind::Table),
        ("tsv", Kind::Table),
        ("html", Kind::Html),
        ("htm", Kind::Html),
        ("pdf", Kind::Pdf),
        ("docx", Kind::Docx),
        ("odt", Kind::Odt),
        ("rtf", Kind::Rtf),
        ("pptx", Kind::Pptx),
        ("xlsx", Kind::Xlsx),
        ("epub", Kind::Epub),
        ("eml", Kind::Email),
        ("mbox", Kind::Mailbox),
        ("ipynb", Kind::Notebook),
        ("json", Kind::Conversation),
        ("jsonl", Kind::Conversation),
        ("bash", Kind::Code),
        ("c", Kind::Code),
        ("cc", Kind::Code),
        ("cfg", Kind::Code),
        ("clj", Kind::Code),
        ("cmake", Kind::Code),
        ("conf", Kind::Code),
        ("cpp", Kind::Code),
        ("cs", Kind::Code),
        ("css", Kind::Code),
        ("cu", Kind::Code),
        ("dart", Kind::Code),
        ("el", Kind::Code),
        ("ex", Kind::Code),
        ("exs", Kind::Code),
        ("f90", Kind::Code),
        ("fs", Kind::Code),
        ("go", Kind::Code),
        ("gradle", Kind::Code),
        ("h", Kind::Code),
        ("hpp", Kind::Code),
        ("hs", Kind::Code),
        ("ini", Kind::Code),
        ("java", Kind::Code),
        ("jl", Kind::Code),
        ("js", Kind::Code),
        ("jsx", Kind::Code),
        ("kt", Kind::Code),
        ("lua", Kind::Code),
        ("m", Kind::Code),
        ("ml", Kind::Code),
        ("nix", Kind::Code),
        ("php", Kind::Code),
        ("pl", Kind::Code),
        ("proto", Kind::Code),
        ("ps1", Kind::Code),
        ("py", Kind::Code),
        ("r", Kind::Code),
        ("rb", Kind::Code),
        ("rs", Kind::Code),
        ("scala", Kind::Code),
        ("scss", Kind::Code),
        ("sh", Kind::Code),
        ("sql", Kind::Code),
        ("svelte", Kind::Code),
        ("swift", Kind::Code),
        ("tf", Kind::Code),
        ("toml", Kind::Code),
        ("ts", Kind::Code),
        ("tsx", Kind::Code),
        ("vue", Kind::Code),
        ("xml", Kind::Code),
        ("yaml", Kind::Code),
        ("yml", Kind::Code),
        ("zig", Kind::Code),
    ];

    /// The type for a file name; case makes no difference.
    pub fn of(path: &Path) -> Option<Kind> {
        let extension = path.extension()?.to_str()?;
        let known = Self::EXTENSIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
        known.map(|&(_, kind)| if kind == Kind::Text && is_whatsapp(path) { Kind::WhatsApp } else { kind })
    }

    /// Whether files of this type are kept as they are: their text is their content.
    pub fn is_verbatim(self) -> bool {
        matches!(self, Kind::Text | Kind::Markdown | Kind::Code)
    }
}

/// Whether a name is one under which WhatsApp exports chats in some language: `WhatsApp Chat with Bo.txt`. The first
/// line tells chats from other texts.
fn is_whatsapp(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let stem = name.strip_suffix(".txt");
    stem.is_some_and(|stem| stem.ends_with("_chat") || stem.contains("whatsapp"))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Text => "text",
            Kind::Markdown => "Markdown",
            Kind::Code => "source code",
            Kind::Table => "table",
            Kind::Html => "HTML",
            Kind::Pdf => "PDF",
            Kind::ScannedPdf => "PDF read by OCR",
            Kind::Docx => "DOCX",
            Kind::Odt => "ODT",
            Kind::Rtf => "RTF",
            Kind::Pptx => "PPTX",
            Kind::Xlsx => "XLSX",
            Kind::Epub => "EPUB",
            Kind::Email => "e-mail",
            Kind::Mailbox => "mailbox",
            Kind::Notebook => "notebook",
            Kind::Conversation => "JSON conversation",
            Kind::WhatsApp => "WhatsApp chat",
        })
    }
}
