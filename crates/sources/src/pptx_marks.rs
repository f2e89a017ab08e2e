//! The bullets and numbers of paragraphs in PowerPoint presentations, as paragraphs and the styles of their levels define them
//! (ECMA-376, 21.1.2.4).

use std::array;

use crate::numbers::Format;
use crate::xml::Tag;

/// How many levels a list has.
pub(crate) const LEVELS: usize = 9;

/// What is shown before a paragraph.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Mark {
    Nothing,
    Bullet,
    Number(Scheme),
}

/// How the paragraphs of a list are numbered.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Scheme {
    pub start: u32,
    format: Format,
    signs: Signs,
}

/// What is around a number.
#[derive(Clone, Copy, PartialEq)]
enum Signs {
    Nothing,
    Brackets,
    Bracket,
    Period,
}

/// The marks of the levels of a text; `None` where a style defines none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Style([Option<Mark>; LEVELS]);

impl Style {
    /// The mark of a level below [`LEVELS`].
    pub fn mark(&self, level: usize) -> Option<Mark> {
        self.0[level]
    }

    /// Defines the mark of a level below [`LEVELS`].
    pub fn set(&mut self, level: usize, mark: Mark) {
        self.0[level] = Some(mark);
    }

    /// The style with the marks of another where it defines none.
    pub fn or(&self, inherited: &Style) -> Style {
        Style(array::from_fn(|level| self.0[level].or(inherited.0[level])))
    }
}

impl Mark {
    /// The mark that an element defines.
    pub fn of(tag: &Tag<'_>) -> Option<Self> {
        match tag.name() {
            b"buNone" => Some(Mark::Nothing),
            b"buChar" | b"buBlip" => Some(Mark::Bullet),
            b"buAutoNum" => Some(Mark::Number(Scheme::of(tag))),
            _ => None,
        }
    }
}

/// The level from 0 whose properties an element of a style holds: 1 for `lvl2pPr`.
pub(crate) fn level_of(name: &[u8]) -> Option<usize> {
    match name.strip_prefix(b"lvl")?.strip_suffix(b"pPr")? {
        [digit @ b'1'..=b'9'] => Some(usize::from(digit - b'1')),
        _ => None,
    }
}

impl Scheme {
    /// The scheme of a `buAutoNum`. Those of other scripts count as decimal.
    fn of(tag: &Tag<'_>) -> Self {
        let name = tag.attribute("type").unwrap_or_default();
        let formats = [
            ("alphaLc", Format::Letter),
            ("alphaUc", Format::UpperLetter),
            ("romanLc", Format::Roman),
            ("romanUc", Format::UpperRoman),
        ];
        let format = formats.iter().find(|(start, _)| name.starts_with(*start));
        let format = format.map_or(Format::Decimal, |(_, format)| *format);
        let signs = [("ParenBoth", Signs::Brackets), ("ParenR", Signs::Bracket), ("Period", Signs::Period)];
        let signs = signs.iter().find(|(end, _)| name.ends_with(*end)).map_or(Signs::Nothing, |(_, signs)| *signs);
        let start = tag.attribute("startAt").and_then(|start| start.parse().ok()).unwrap_or(1);
        Scheme { start, format, signs }
    }

    /// A number as it is shown: `(a)`.
    pub fn written(self, number: u32) -> String {
        let number = self.format.written(number);
        match self.signs {
            Signs::Nothing => number,
            Signs::Brackets => format!("({number})"),
            Signs::Bracket => format!("{number})"),
            Signs::Period => format!("{number}."),
        }
    }
}
