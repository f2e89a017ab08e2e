//! How Excel's workbooks show numbers and texts: dates as dates, percentages, amounts with their currency, numbers of a fixed length
//! with their leading zeros, words such as units; other numbers with all their digits, whatever their format rounds to or hides.

use std::borrow::Cow;
use std::mem;

use crate::xlsx_section::Section;

/// How a number or a text is shown.
#[derive(Default)]
pub(crate) struct Format {
    /// The sections for numbers, at most three.
    numbers: Vec<Section>,
    text: Option<Section>,
}

impl Format {
    /// The formats that workbooks use without defining them (ECMA-376, 18.8.30). The currency of the formats of amounts is
    /// that of the computer, so they show none.
    pub fn built_in(id: usize) -> Format {
        Format::of(match id {
            9 | 10 => "0%",
            14..=17 | 27..=31 | 34..=36 | 50..=58 => "d",
            18 | 20 | 32 => "h:mm",
            19 | 21 | 33 => "h:mm:ss",
            22 => "d h:mm",
            45 => "mm:ss",
            47 => "mm:ss.0",
            46 => "[h]:mm:ss",
            _ => "",
        })
    }

    /// What the sections of a format's code show: the fourth, or the last one with `@`, shows texts.
    pub fn of(code: &str) -> Format {
        let mut numbers: Vec<Section> = sections(code).map(Section::of).collect();
        let has_text = numbers.len() == 4 || numbers.last().is_some_and(Section::is_for_texts);
        let text = if has_text { numbers.pop() } else { None };
        Format { numbers, text: text.filter(Section::has_words_for_texts) }
    }

    /// The text of a number; `first_day` is the number of 1970-01-01.
    pub fn show(&self, value: &str, first_day: i64) -> String {
        let Ok(number) = value.parse::<f64>() else { return value.to_owned() };
        let place = self.place(number);
        // The second of sections without conditions has the negative numbers.
        let is_for_negative = place == 1 && number < 0.0 && self.numbers.iter().all(|one| one.condition.is_none());
        match self.numbers.get(place) {
            Some(section) => section.show(number, first_day, is_for_negative),
            None => Section::default().show(number, first_day, false),
        }
    }

    /// A text as it is shown.
    pub fn show_text<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str> {
        match &self.text {
            Some(section) if !text.trim().is_empty() => section.show_text(&text).into(),
            _ => text,
        }
    }

    /// The place of the section that shows a number: by the conditions of the first two, else by its sign.
    fn place(&self, number: f64) -> usize {
        let condition = |place: usize| self.numbers.get(place).and_then(|section| section.condition);
        let count = self.numbers.len();
        match (condition(0), condition(1)) {
            (None, None) if number < 0.0 && count > 1 => 1,
            (None, None) if number == 0.0 && count > 2 => 2,
            (Some(first), _) if first.holds(number) => 0,
            (_, Some(second)) if second.holds(number) => 1,
            (None, _) => 0,
            (Some(_), None) if number < 0.0 || count < 3 => 1,
            (Some(_), _) => 2,
        }
    }
}

/// The sections of a format's code, at most four. Semicolons in quotes, brackets and escapes separate none.
fn sections(code: &str) -> impl Iterator<Item = &str> {
    let (mut end_of_group, mut is_escaped) = (None, false);
    let parts = code.split(move |letter: char| {
        if mem::take(&mut is_escaped) {
            return false;
        }
        match (end_of_group, letter) {
            (Some(end), _) if letter == end => end_of_group = None,
            (None, '"') => end_of_group = Some('"'),
            (None, '[') => end_of_group = Some(']'),
            (None, '\\' | '_' | '*') => is_escaped = true,
            (None, ';') => return true,
            _ => {}
        }
        false
    });
    parts.take(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks what formats show of numbers.
    fn check(cases: &[(&str, &str, &str)]) {
        for (code, value, expect) in cases {
            assert_eq!(Format::of(code).show(value, 25_569), *expect, "{value} as {code}");
        }
    }

    #[test]
    fn numbers_are_shown_by_their_formats() {
        check(&[
            ("General", "45413.5", "45413.5"),
            ("0.00", "0.30000000000000004", "0.3"),
            ("yyyy\\-mm\\-dd", "45413", "2024-05-01"),
            ("[$-407]d. mmmm yyyy;@", "45413", "2024-05-01"),
            ("dd/mm/yy hh:mm", "45413.41806", "2024-05-01 10:02"),
            ("h:mm:ss AM/PM", "0.5", "12:00:00"),
            ("[h]:mm", "1.5", "36:00"),
            ("[h]:mm", "0.5", "12:00"),
            ("hh:mm", "45413.41806", "10:02"),
            ("mmm", "45413", "2024-05-01"),
            ("mm:ss", "0.001", "00:01:26"),
            ("0%", "0.57", "57%"),
            ("\"d\"0", "12", "d12"),
            ("d", "1", "1900-01-01"),
            ("d", "61", "1900-03-01"),
            ("d", "-1", "-1"),
            ("[$-411]ggge\"年\"m\"月\"d\"日\"", "45413", "2024-05-01"),
            ("GENERAL", "45413", "45413"),
            ("[ss]", "0.001", "00:01:26"),
            ("[]0", "0.5", "0.5"),
            ("mm:ss.00", "0.00100001", "00:01:26.401"),
            ("mm:ss.0;@", "0.5", "12:00:00"),
            ("0.00E+00", "12345.6", "12345.6"),
            ("# ?/?", "0.5", "0.5"),
            ("[Red]0.0%", "0.125", "12.5%"),
            ("0\\;\";\"%", "0.5", "50%"),
            ("0;-0%", "-0.5", "-50%"),
        ]);
        assert_eq!(Format::built_in(20).show("0.50012", 25_569), "12:00");
        assert_eq!(Format::built_in(21).show("0.50012", 25_569), "12:00:10");
        assert_eq!(Format::built_in(47).show("0.00100001", 25_569), "00:01:26.401");
        assert_eq!(Format::built_in(14).show("45413", 24_107), "2028-05-02");
        assert_eq!(Format::built_in(46).show("1.5", 25_569), "36:00:00");
    }

    #[test]
    fn the_section_of_a_number_is_chosen_by_its_sign_or_by_conditions() {
        let accounting = "0.00;[Red](0.00);\"-\";@";
        let words = "0 \"up\";0 \"down\";\"even\"";
        let answers = "[=1]\"yes\";[=0]\"no\";0";
        let sizes = "[<100]0 \"g\";[>=1000]0.0,\"K\";0 \"m\"";
        check(&[
            (accounting, "5", "5"),
            (accounting, "-5", "-5"),
            (accounting, "0", "0"),
            (words, "5", "5 up"),
            (words, "-5", "5 down"),
            (words, "0", "even"),
            ("0 \"up\";-0 \"down\"", "-5", "-5 down"),
            ("0 \"kg\";(0 \"kg\")", "-5", "-5 kg"),
            ("0 \"kg\"", "-5", "-5 kg"),
            ("0;;;", "-5", "-5"),
            (answers, "1", "yes"),
            (answers, "0", "no"),
            (answers, "-2", "-2"),
            (sizes, "99", "99 g"),
            (sizes, "1500", "1500"),
            (sizes, "100", "100 m"),
            (sizes, "-7", "-7 g"),
            ("[<1]0%;0", "5", "5"),
            ("[=0]\"-\";0%", "0.5", "50%"),
            ("[>100]0 \"a\";0 \"b\";0 \"c\"", "50", "50 c"),
            ("[>100]0 \"a\";0 \"b\";0 \"c\"", "-50", "-50 b"),
            ("[<>0]0 \"a\"", "0", "0"),
            ("0;[<=-10]0%;0", "-5", "-5"),
            ("@", "12", "12"),
            ("[h]:mm;-[h]:mm", "-1.5", "-36:00"),
        ]);
    }

    #[test]
    fn words_around_numbers_and_texts_are_shown() {
        check(&[
            ("0 \"kg\"", "7.456", "7.456 kg"),
            ("\"Nr. \"0000", "42", "Nr. 0042"),
            ("0\\ \"m²\"", "7", "7 m²"),
            ("0\"°C\"", "-7", "-7°C"),
            ("0.0%\" a year\"", "0.05", "5% a year"),
            ("#,##0.00\\ [$€-407]\" per kg\"", "3.5", "3.5 €  per kg"),
            ("0 \"(net)\"", "3", "3 (net)"),
            ("0.0,\"K\"", "1500", "1500"),
            ("000\\-0000", "5551234", "5551234"),
            ("aaaa", "45413", "45413"),
        ]);
        let text = |code: &str, expect: &str| assert_eq!(Format::of(code).show_text("Ann".into()), expect, "{code}");
        text("0;0;0;\"Dr. \"@", "Dr. Ann");
        text("@\" (guest)\"", "Ann (guest)");
        text("@", "Ann");
        text("0;0;0;\"x\"", "Ann");
        text("0 \"kg\"", "Ann");
    }

    #[test]
    fn amounts_have_their_currency() {
        check(&[
            ("#,##0.00\\ \"€\"", "1234.5", "1234.5 €"),
            ("#,##0.00\\ [$€-407];[Red]-#,##0.00\\ [$€-407]", "-12", "-12 €"),
            ("#,##0.00 €", "3", "3 €"),
            ("General\\ \"€\"", "3", "3 €"),
            ("\"$\"#,##0.00_);\\(\"$\"#,##0.00\\)", "1234.5", "$1234.5"),
            ("[$$-409]#,##0", "-7", "-$7"),
            ("_-* #,##0.00\\ _€_-", "7", "7"),
            ("_([$CHF-807]* #,##0.00_)", "7", "CHF 7"),
            ("[$CHF] 0", "-7", "CHF -7"),
            ("#,##0.00 \"kr\"", "7", "7 kr"),
            ("\"Fr.\" 0.00", "7", "Fr. 7"),
            ("[$-409]dd\\-mmm\\-yy", "45413", "2024-05-01"),
            ("\"EUR\" 0%", "0.5", "EUR 50%"),
        ]);
    }

    #[test]
    fn numbers_of_a_fixed_length_keep_their_leading_zeros() {
        check(&[
            ("00000", "1234", "01234"),
            ("00000;@", "123456", "123456"),
            ("000", "1.5", "1.5"),
            ("000", "-1", "-1"),
            ("0", "7", "7"),
            ("#000", "7", "7"),
        ]);
        check(&[(&*"0".repeat(1000), "7", "7")]);
    }
}
