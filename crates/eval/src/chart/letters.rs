//! The letters of a chart: their font, the widths of texts, and how names and numbers are written.

use std::sync::LazyLock;

use plotters::prelude::*;
use plotters::style::register_font;

pub(super) const FONT: (&str, u32) = ("sans-serif", 14);

/// Whether the font could be loaded; it is part of the program, so it can.
pub(super) static LETTERS: LazyLock<bool> =
    LazyLock::new(|| register_font(FONT.0, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT).is_ok());

/// A number with at most two decimals and with thousands separators.
pub(super) fn number(value: f64) -> String {
    let digits = if value.abs() < 1.0 { 4 } else { 2 };
    let written = format!("{value:.digits$}");
    let (whole, fraction) = written.split_once('.').unwrap_or((&written, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut grouped = String::new();
    for (place, digit) in whole.char_indices() {
        if place > 0 && (whole.len() - place) % 3 == 0 && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if fraction.is_empty() { grouped } else { format!("{grouped}.{fraction}") }
}

/// The parts of a name between which a line may break.
pub(super) fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split_inclusive([' ', '-', '_', '.', ','])
}

/// Wraps a name into lines of at most this many pixels, as far as its parts allow.
pub(super) fn wrapped(name: &str, width: u32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts(name) {
        match lines.last_mut() {
            Some(line) if width_of(&format!("{line}{part}"), FONT) <= width => line.push_str(part),
            _ => lines.push(part.to_owned()),
        }
    }
    lines
}

/// The width of a text in pixels; none if the font cannot be loaded.
pub(super) fn width_of(text: &str, font: (&str, u32)) -> u32 {
    LETTERS.then(|| font.into_font().box_size(text.trim_end())).and_then(Result::ok).map_or(0, |size| size.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_short() {
        let check = |value: f64, expect: &str| assert_eq!(number(value), expect);
        check(0.0, "0");
        check(0.25, "0.25");
        check(12.346, "12.35");
        check(100.0, "100");
        check(1_234_567.0, "1,234,567");
        check(-1234.5, "-1,234.5");
    }
}
