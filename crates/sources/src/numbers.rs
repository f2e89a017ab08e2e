//! The numbers of list items and headings, which documents define and do not contain: `1.`, `2.1`, `a)`. They are computed
//! from the definitions of levels and from the paragraphs so far.

use std::array;

/// How many levels a list has: nine in Word, ten in LibreOffice.
pub(crate) const LEVELS: usize = 10;
/// A longer text of a level is no number.
const TEXT_BYTES: usize = 64;

/// The levels of a list.
pub(crate) type Levels = [Level; LEVELS];

/// A level of a list.
#[derive(Clone, Default)]
pub(crate) struct Level {
    pub start: u32,
    pub format: Format,
    /// `%1.%2`, in which the numbers of levels are inserted, counted from 1; `%0` is the tenth.
    pub text: String,
    /// Whether all numbers are decimal.
    pub is_legal: bool,
    /// The level counts anew only after paragraphs of the levels before this one, counted from 0; `None`: after those of all
    /// levels above.
    pub restart: Option<usize>,
}

impl Level {
    /// Sets the text, unless it is too long for a number.
    pub fn set_text(&mut self, text: String) {
        self.text = if text.len() > TEXT_BYTES { String::new() } else { text };
    }
}

/// How a number is written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Format {
    #[default]
    Decimal,
    DecimalZero,
    /// `a` to `z`, then `aa`, `bb`.
    Letter,
    UpperLetter,
    /// `a` to `z`, then `aa`, `ab`.
    Column,
    UpperColumn,
    Roman,
    UpperRoman,
    /// A bullet, or nothing.
    Unnumbered,
}

impl Format {
    /// A number in this format; in digits where the format has no such number.
    pub fn written(self, number: u32) -> String {
        match self {
            Format::Decimal | Format::Unnumbered => number.to_string(),
            Format::DecimalZero => format!("{number:02}"),
            Format::Letter => letters(number),
            Format::Column => column(number),
            Format::Roman => roman(number),
            Format::UpperLetter => letters(number).to_uppercase(),
            Format::UpperColumn => column(number).to_uppercase(),
            Format::UpperRoman => roman(number).to_uppercase(),
        }
    }
}

/// The last number of each level of a list; none before the first.
#[derive(Clone, Default)]
pub(crate) struct Counters([Option<u32>; LEVELS]);

impl Counters {
    /// Counts a paragraph at a level below [`LEVELS`], with this number if one is given, and returns its mark with a space;
    /// `None` for bullets and for a level without a text.
    pub fn next(&mut self, levels: &[&Level; LEVELS], level: usize, number: Option<u32>) -> Option<String> {
        let next = self.0[level].map_or(levels[level].start, |last| last.saturating_add(1));
        self.0[level] = Some(number.unwrap_or(next));
        let below = self.0.iter_mut().zip(levels).skip(level + 1);
        let restarted = below.filter(|(_, below)| below.restart.is_none_or(|restart| level < restart));
        restarted.for_each(|(counter, _)| *counter = None);
        self.mark(levels, level)
    }

    /// Whether a paragraph at a level would be the first one there, or the first after one of a level above.
    pub fn is_first(&self, level: usize) -> bool {
        self.0[level].is_none()
    }

    fn mark(&self, levels: &[&Level; LEVELS], level: usize) -> Option<String> {
        let Level { format, text, is_legal, .. } = levels[level];
        if *format == Format::Unnumbered {
            return None;
        }
        let (mut mark, mut letters) = (String::new(), text.chars());
        while let Some(letter) = letters.next() {
            let place = if letter == '%' { letters.clone().next().and_then(|digit| digit.to_digit(10)) } else { None };
            match place.map(|digit| (digit as usize + LEVELS - 1) % LEVELS) {
                Some(place) => {
                    letters.next();
                    let number = self.0[place].unwrap_or(levels[place].start);
                    let format = if *is_legal { Format::Decimal } else { levels[place].format };
                    mark.push_str(&format.written(number));
                }
                None => mark.push(letter),
            }
        }
        let mark = mark.trim();
        (!mark.is_empty()).then(|| format!("{mark} "))
    }
}

/// References to all levels, of which some may be replaced.
pub(crate) fn levels_with<'a>(levels: &'a Levels, replaced: &'a [Option<Level>; LEVELS]) -> [&'a Level; LEVELS] {
    array::from_fn(|level| replaced[level].as_ref().unwrap_or(&levels[level]))
}

/// `a` to `z`, then `aa`, `bb`; digits for 0 and for more than ten letters.
fn letters(number: u32) -> String {
    const LETTERS: u32 = 26;
    match number {
        1..=260 => {
            char::from(b'a' + ((number - 1) % LETTERS) as u8).to_string().repeat(number.div_ceil(LETTERS) as usize)
        }
        _ => number.to_string(),
    }
}

/// `a` to `z`, then `aa`, `ab`; digits for 0 and for more than two letters.
fn column(number: u32) -> String {
    const LETTERS: u32 = 26;
    let letter = |number: u32| char::from(b'a' + ((number - 1) % LETTERS) as u8);
    match number {
        1..=26 => letter(number).to_string(),
        27..=702 => [letter((number - 1) / LETTERS), letter(number)].iter().collect(),
        _ => number.to_string(),
    }
}

/// Roman digits; decimal ones for 0 and for numbers beyond 3,999.
fn roman(number: u32) -> String {
    const DIGITS: [(u32, &str); 13] = [
        (1000, "m"),
        (900, "cm"),
        (500, "d"),
        (400, "cd"),
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
        (10, "x"),
        (9, "ix"),
        (5, "v"),
        (4, "iv"),
        (1, "i"),
    ];
    if !(1..4000).contains(&number) {
        return number.to_string();
    }
    let (mut rest, mut roman) = (number, String::new());
    for (value, digits) in DIGITS {
        roman.push_str(&digits.repeat((rest / value) as usize));
        rest %= value;
    }
    roman
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_their_formats() {
        let written = |format: Format, number, expect: &str| assert_eq!(format.written(number), expect);
        written(Format::Letter, 26, "z");
        written(Format::UpperLetter, 28, "BB");
        written(Format::Column, 26, "z");
        written(Format::Column, 28, "ab");
        written(Format::UpperColumn, 702, "ZZ");
        written(Format::Column, 703, "703");
        written(Format::Roman, 1994, "mcmxciv");
        written(Format::UpperRoman, 4, "IV");
        written(Format::DecimalZero, 7, "07");
        for format in [Format::Letter, Format::Column, Format::UpperRoman, Format::Decimal] {
            written(format, 0, "0");
            written(format, u32::MAX, "4294967295");
        }
    }

    #[test]
    fn levels_restart_after_those_above_them_unless_they_say_otherwise() {
        let level = |text: &str, restart| Level { start: 1, text: text.to_owned(), restart, ..Level::default() };
        let mut levels = Levels::default();
        levels[0] = level("%1.", None);
        levels[1] = level("%1.%2", None);
        levels[2] = level("§%3", Some(0));
        levels[3] = level("(%4)", Some(1));
        levels[9] = level("%0", None);
        let mut counters = Counters::default();
        let places = [0, 1, 2, 3, 1, 2, 3, 0, 2, 3, 9];
        let marks: String = places.iter().filter_map(|level| counters.next(&levels.each_ref(), *level, None)).collect();
        assert_eq!(marks, "1. 1.1 §1 (1) 1.2 §2 (2) 2. §3 (1) 1 ");
        assert_eq!(counters.next(&levels.each_ref(), 0, Some(7)).as_deref(), Some("7. "));
        assert!(counters.is_first(1) && !counters.is_first(2));
    }
}
