//! The result of reading a file: its text, and the spans of its parts.

use std::ops::Range;

use crate::{Cause, Kind};

/// One document or one conversation, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's path as it was given; a conversation of a `LoCoMo` file adds its id: `talks.json#conv-26`, and a
    /// document of a mailbox its number, from the second on: `mail.mbox#2`.
    pub path: String,
    /// The file type.
    pub kind: Kind,
    /// The document's own title, if it has one.
    pub title: Option<String>,
    /// For text, Markdown and source code the file's content, every byte of it if it is UTF-8; for other types the
    /// extracted text.
    pub text: String,
    /// The encoding of the file, if it is a text in another encoding than UTF-8.
    pub encoding: Option<&'static str>,
    /// The parts of the text in order: disjoint, and all of the text but the blank lines between two parts.
    pub sections: Vec<Section>,
}

/// One page of a PDF, one slide, one sheet, one message, one chapter of a book, one session of a conversation, or the whole
/// of any other document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Bytes of the source's text.
    pub span: Range<usize>,
    /// The chapter's heading, `page 3`, the session's name.
    pub title: Option<String>,
    /// The time of the session, as written in the file.
    pub time: Option<String>,
    /// The turns of the session, in order; empty for a document.
    pub turns: Vec<Turn>,
}

/// One utterance of one speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Bytes of the source's text: the whole turn, `Ann (D1:3): Hello.`, without the newline that ends it.
    pub span: Range<usize>,
    /// The turn's id in its file, unique within the source.
    pub id: String,
    /// The speaker's name.
    pub speaker: String,
    /// The time of the turn, as written in the file, if the turn has one itself.
    pub time: Option<String>,
}

/// A titled piece of text that becomes a [`Section`].
#[derive(Default)]
pub(crate) struct Part {
    pub title: Option<String>,
    pub time: Option<String>,
    pub text: String,
}

impl Part {
    /// The line that takes the place of a sheet that is hidden.
    pub fn hidden_sheet(name: String) -> Part {
        let text = format!("[sheet {name}: hidden, not read]");
        Part { title: Some(name), text, ..Part::default() }
    }
}

impl Source {
    /// A document of one section: the unchanged text.
    ///
    /// # Errors
    /// [`Cause::NoText`] when the text is blank.
    pub(crate) fn whole(path: &str, kind: Kind, title: Option<String>, text: String) -> Result<Self, Cause> {
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            return Err(Cause::NoText);
        }
        let section = Section { span: 0..text.len(), title: title.clone(), time: None, turns: Vec::new() };
        Ok(Source { path: path.to_owned(), kind, title, text, encoding: None, sections: vec![section] })
    }

    /// A document of several sections, a blank line between them; blank parts leave no section.
    ///
    /// # Errors
    /// [`Cause::NoText`] when every part is blank.
    pub(crate) fn joined(path: &str, kind: Kind, title: Option<String>, parts: Vec<Part>) -> Result<Self, Cause> {
        let mut text = String::new();
        let mut sections = Vec::new();
        for part in parts {
            let words = part.text.trim();
            if words.is_empty() {
                continue;
            }
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            let start = text.len();
            text.push_str(words);
            sections.push(Section { span: start..text.len(), title: part.title, time: part.time, turns: Vec::new() });
        }
        if sections.is_empty() {
            return Err(Cause::NoText);
        }
        Ok(Source { path: path.to_owned(), kind, title, text, encoding: None, sections })
    }
}

/// The first Markdown heading in a text, without its `#` marks.
pub(crate) fn first_heading(text: &str) -> Option<String> {
    let mut headings = Headings::default();
    text.trim_start_matches('\u{feff}').lines().find_map(|line| headings.of(line))
}

/// Finds Markdown headings among the lines of a text, given in order. Comments in front matter and in code are none.
#[derive(Default)]
pub(crate) struct Headings(Place);

/// What the next line is part of.
#[derive(Clone, Copy, Default)]
enum Place {
    #[default]
    Start,
    FrontMatter,
    Text,
    /// A block of code, which ends with at least as many of the same marks.
    Code(char, usize),
}

impl Headings {
    /// The words of the next line if it is a heading.
    pub fn of(&mut self, line: &str) -> Option<String> {
        let place = match (self.0, line.trim_end(), fence(line)) {
            (Place::Start, "---" | "+++", _) => Place::FrontMatter,
            // A blank line ends it too: the marks were a rule.
            (Place::FrontMatter, "---" | "+++" | "..." | "", _) => Place::Text,
            (Place::Start | Place::Text, _, Some((mark, marks, info))) if !info.contains(mark) => {
                Place::Code(mark, marks)
            }
            (Place::Start | Place::Text, ..) => {
                self.0 = Place::Text;
                return heading(line);
            }
            (Place::Code(mark, least), _, Some((found, marks, ""))) if found == mark && marks >= least => Place::Text,
            (place, ..) => place,
        };
        self.0 = place;
        None
    }
}

/// The marks that start or end a block of code, their number, and what follows them.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let info = line.trim_start_matches(mark);
    let marks = line.len() - info.len();
    (marks >= 3).then_some((mark, marks, info))
}

/// The words of a line that is a Markdown heading.
fn heading(line: &str) -> Option<String> {
    let words = line.trim_start_matches('#');
    let level = line.len() - words.len();
    let is_heading = (1..=6).contains(&level) && words.starts_with([' ', '\t']);
    let words = words.trim().trim_end_matches('#').trim_end();
    (is_heading && !words.is_empty()).then(|| words.to_owned())
}
