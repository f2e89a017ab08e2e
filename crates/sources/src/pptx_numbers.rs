//! Which bullet or number a paragraph of a slide has (ECMA-376, 20.1.10.61 and 21.1.2.4): that of its own properties, else of the
//! list style of its text body, else of the placeholder that its shape fills. A paragraph that is numbered counts on from the last
//! one of its level and scheme, with nothing of its level or a level above between them.

use std::mem;

use crate::pptx_marks::{LEVELS, Mark, Scheme, Style, level_of};
use crate::xml::Tag;

/// The lists of a text body, and how far their numbers are.
#[derive(Default)]
pub(crate) struct Lists {
    /// The style of the placeholder that the shape fills.
    inherited: Style,
    /// The style of the text body.
    style: Style,
    /// The last number of each level with its scheme.
    last: [Option<(Scheme, u32)>; LEVELS],
    paragraph: Paragraph,
    is_in_field: bool,
    place: Place,
}

/// The open paragraph, which counts once it has words.
#[derive(Default)]
struct Paragraph {
    level: usize,
    mark: Option<Mark>,
    has_words: bool,
}

/// Whose properties are being read.
#[derive(Clone, Copy, Default)]
enum Place {
    #[default]
    Nothing,
    Paragraph,
    Level(usize),
}

impl Lists {
    /// Takes the style of the placeholder that the open shape fills.
    pub fn inherit(&mut self, style: Style) {
        self.inherited = style;
    }

    /// Takes an element.
    pub fn open(&mut self, tag: &Tag<'_>) {
        match tag.name() {
            // The cells of a table have none of the styles of its placeholder.
            b"sp" | b"tbl" => self.inherited = Style::default(),
            b"txBody" => *self = Lists { inherited: self.inherited, style: self.inherited, ..Lists::default() },
            b"lstStyle" => self.style = self.inherited,
            b"p" => self.paragraph = Paragraph::default(),
            // A field has properties too, which are not those of its paragraph.
            b"fld" => self.is_in_field = true,
            b"pPr" if !self.is_in_field => {
                let level = tag.attribute("lvl").and_then(|level| level.parse().ok()).unwrap_or(0_usize);
                self.paragraph.level = level.min(LEVELS - 1);
                self.place = Place::Paragraph;
            }
            name => match (level_of(name), Mark::of(tag), self.place) {
                (Some(level), ..) => self.place = Place::Level(level),
                (None, Some(mark), Place::Paragraph) => self.paragraph.mark = Some(mark),
                (None, Some(mark), Place::Level(level)) => self.style.set(level, mark),
                _ => {}
            },
        }
    }

    /// Takes the end of an element.
    pub fn close(&mut self, name: &[u8]) {
        match name {
            b"fld" => self.is_in_field = false,
            b"pPr" => self.place = Place::Nothing,
            name if level_of(name).is_some() => self.place = Place::Nothing,
            _ => {}
        }
    }

    /// The mark of the open paragraph, indented by its level and with a space, before its first words; `None` later and if it
    /// has no mark.
    pub fn words(&mut self) -> Option<String> {
        let Paragraph { level, mark, .. } = self.paragraph;
        if mem::replace(&mut self.paragraph.has_words, true) {
            return None;
        }
        let mark = mark.or_else(|| self.style.mark(level)).unwrap_or(Mark::Nothing);
        self.last[level + 1..].fill(None);
        let last = self.last[level].take();
        let indent = "  ".repeat(level);
        match mark {
            Mark::Nothing => None,
            Mark::Bullet => Some(format!("{indent}- ")),
            Mark::Number(scheme) => {
                let number = match last {
                    Some((last, number)) if last == scheme => number.saturating_add(1),
                    _ => scheme.start,
                };
                self.last[level] = Some((scheme, number));
                Some(format!("{indent}{} ", scheme.written(number)))
            }
        }
    }
}
