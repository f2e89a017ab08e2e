//! The supported file types, by extension.

use std::fmt;
use std::path::Path;

use crate::mailbox::is_mailbox;

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `.txt`, and other files of words: `.log`, `.rst`, `.tex`, `.org`, `.adoc`, and subtitles: `.srt`, `.vtt`
    Text,
    /// `.md`, `.markdown`
    Markdown,
    /// The extensions of programming languages and configuration files
    Code,
    /// `.csv`, `.tsv`
    Table,
    /// `.html`, `.htm`
    Html,
    /// `.mht`, `.mhtml`
    WebArchive,
    /// `.pdf`
    Pdf,
    /// A `.pdf` with pages whose text was recognised in their pictures
    ScannedPdf,
    /// `.docx`, `.docm`
    Docx,
    /// `.odt`
    Odt,
    /// `.ods`
    Ods,
    /// `.odp`
    Odp,
    /// `.rtf`
    Rtf,
    /// `.pptx`, `.pptm`, `.ppsx`
    Pptx,
    /// `.xlsx`, `.xlsm`
    Xlsx,
    /// `.epub`
    Epub,
    /// `.eml`, `.emlx`, `.msg`
    Email,
    /// `.mbox`, and files without an extension that start as mailboxes do
    Mailbox,
    /// `.ics`
    Calendar,
    /// `.vcf`
    Contacts,
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
        ("org", Kind::Text),
        ("adoc", Kind::Text),
        ("srt", Kind::Text),
        ("vtt", Kind::Text),
        ("md", Kind::Markdown),
        ("markdown", Kind::Markdown),
        ("csv", Kind::Table),
        ("tsv", Kind::Table),
        ("html", Kind::Html),
        ("htm", Kind::Html),
        ("mht", Kind::WebArchive),
        ("mhtml", Kind::WebArchive),
        ("pdf", Kind::Pdf),
        ("docx", Kind::Docx),
        ("docm", Kind::Docx),
        ("odt", Kind::Odt),
        ("ods", Kind::Ods),
        ("odp", Kind::Odp),
        ("rtf", Kind::Rtf),
        ("pptx", Kind::Pptx),
        ("pptm", Kind::Pptx),
        ("ppsx", Kind::Pptx),
        ("xlsx", Kind::Xlsx),
        ("xlsm", Kind::Xlsx),
        ("epub", Kind::Epub),
        ("eml", Kind::Email),
        ("emlx", Kind::Email),
        ("msg", Kind::Email),
        ("mbox", Kind::Mailbox),
        ("ics", Kind::Calendar),
        ("vcf", Kind::Contacts),
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

    /// The extensions of documents, which are all but those of source code: `.txt .text .log` and so on.
    pub fn document_extensions() -> String {
        let documents = Self::EXTENSIONS.iter().filter(|(_, kind)| *kind != Kind::Code);
        documents.map(|(extension, _)| format!(".{extension}")).collect::<Vec<_>>().join(" ")
    }

    /// The type for a file name; case makes no difference.
    pub fn of(path: &Path) -> Option<Kind> {
        let extension = path.extension()?.to_str()?;
        let known = Self::EXTENSIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(extension));
        known.map(|&(_, kind)| if kind == Kind::Text && is_whatsapp(path) { Kind::WhatsApp } else { kind })
    }

    /// The type of a file by its name, or by its content if it is a mailbox whose name has no extension.
    pub(crate) fn of_file(path: &Path) -> Option<Kind> {
        Kind::of(path).or_else(|| is_mailbox(path).then_some(Kind::Mailbox))
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

/// Whether a name is that of a file which programs leave beside documents: locks of Word (`~$x.docx`) and LibreOffice
/// (`.~lock.x.odt#`), and what Windows and macOS keep about a folder.
pub(crate) fn is_temporary(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_lock = name.starts_with("~$") || name.starts_with(".~lock.") && name.ends_with('#');
    is_lock || [".DS_Store", "desktop.ini", "Thumbs.db"].iter().any(|known| known.eq_ignore_ascii_case(&name))
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Text => "text",
            Kind::Markdown => "Markdown",
            Kind::Code => "source code",
            Kind::Table => "table",
            Kind::Html => "HTML",
            Kind::WebArchive => "web archive",
            Kind::Pdf => "PDF",
            Kind::ScannedPdf => "PDF read by OCR",
            Kind::Docx => "DOCX",
            Kind::Odt => "ODT",
            Kind::Ods => "ODS",
            Kind::Odp => "ODP",
            Kind::Rtf => "RTF",
            Kind::Pptx => "PPTX",
            Kind::Xlsx => "XLSX",
            Kind::Epub => "EPUB",
            Kind::Email => "e-mail",
            Kind::Mailbox => "mailbox",
            Kind::Calendar => "calendar",
            Kind::Contacts => "contacts",
            Kind::Notebook => "notebook",
            Kind::Conversation => "JSON conversation",
            Kind::WhatsApp => "WhatsApp chat",
        })
    }
}
