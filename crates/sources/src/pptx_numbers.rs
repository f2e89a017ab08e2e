//! The numbers of lists in PowerPoint presentations (ECMA-376, 20.1.10.61 and 21.1.2.4.1): a paragraph that is numbered counts on
//! from the last one of its level and scheme, with nothing of its level or a level above between them.

use std::mem;

use crate::numbers::Format;
use crate::xml::Tag;

/// How many levels a list has.
const LEVELS: usize = 9;

/// How the paragraphs of a list are numbered.
#[derive(Clone, Copy, PartialEq)]
struct Scheme {
    format: Format,
    before: &'static str,
    after: &'static str,
    start: u32,
}

/// The lists of a text body, and how far their numbers are.
#[derive(Default)]
pub(crate) struct AutoNumbers {
    /// The last number of each level with its scheme.
    last: [Option<(Scheme, u32)>; LEVELS],
    /// The level and the scheme of the open paragraph, which counts once it has words.
    level: usize,
    scheme: Option<Scheme>,
    has_words: bool,
    /// Whether the properties of a paragraph are being read: styles have such schemes too.
    in_properties: bool,
}

impl AutoNumbers {
    /// Takes an element.
    pub fn open(&mut self, tag: &Tag<'_>) {
        match tag.name() {
            b"txBody" => *self = AutoNumbers::default(),
            b"p" => (self.level, self.scheme, self.has_words) = (0, None, false),
            b"pPr" => {
                let level = tag.attribute("lvl").and_then(|level| level.parse().ok()).unwrap_or(0_usize);
                (self.level, self.in_properties) = (level.min(LEVELS - 1), true);
            }
            b"buAutoNum" if self.in_properties => self.scheme = Some(Scheme::of(tag)),
            _ => {}
        }
    }

    /// Takes the end of the properties of a paragraph.
    pub fn end_properties(&mut self) {
        self.in_properties = false;
    }

    /// The mark of the open paragraph, with a space, before its first words; `None` later and if it has no number.
    pub fn words(&mut self) -> Option<String> {
        if mem::replace(&mut self.has_words, true) {
            return None;
        }
        self.last[self.level + 1..].fill(None);
        let number = self.scheme.map(|scheme| match self.last[self.level] {
            Some((last, number)) if last == scheme => (scheme, number.saturating_add(1)),
            _ => (scheme, scheme.start),
        });
        self.last[self.level] = number;
        let (Scheme { format, before, after, .. }, number) = number?;
        Some(format!("{before}{}{after} ", format.written(number)))
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
        let marks = [("ParenBoth", ("(", ")")), ("ParenR", ("", ")")), ("Period", ("", "."))];
        let (before, after) = marks.iter().find(|(end, _)| name.ends_with(*end)).map_or(("", ""), |(_, marks)| *marks);
        let start = tag.attribute("startAt").and_then(|start| start.parse().ok()).unwrap_or(1);
        Scheme { format, before, after, start }
    }
}
