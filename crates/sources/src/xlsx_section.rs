//! What one section of a number format of Excel's shows (ECMA-376, 18.8.31): a date, a percentage, an amount with its currency, a
//! number with words around it, or words in its place.

use crate::dates;
use crate::rows::is_currency;

/// How a section shows numbers, or texts.
#[derive(Default)]
pub(crate) struct Section {
    /// Which numbers it shows, if it says so.
    pub condition: Option<Condition>,
    place: Place,
    has_date: bool,
    time: Time,
    /// Whether hours count beyond a day.
    is_duration: bool,
    unit: Unit,
    /// The fewest digits of a number that is not negative and has no fraction.
    min_digits: usize,
    /// The words before and after the number; without a place for it those before it are in its place.
    before: String,
    after: String,
    /// Whether its letters have the sign of a negative number: `-` or a bracket.
    has_sign: bool,
}

/// A condition: `[>=100]`.
#[derive(Clone, Copy)]
pub(crate) struct Condition {
    operator: &'static str,
    value: f64,
}

/// How much of the time of day a number shows.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Time {
    #[default]
    Nothing,
    Minutes,
    Seconds,
    Milliseconds,
}

/// What a section has a place for.
#[derive(Clone, Copy, Default, PartialEq)]
enum Place {
    #[default]
    Nothing,
    Number,
    Text,
}

/// What a number is shown with.
#[derive(Default)]
enum Unit {
    #[default]
    Nothing,
    Percent,
    /// `€` or `CHF`, before the number or after it.
    Currency {
        sign: String,
        is_before: bool,
    },
}

impl Condition {
    fn of(text: &str) -> Option<Self> {
        let operator = ["<=", ">=", "<>", "<", ">", "="].into_iter().find(|operator| text.starts_with(*operator))?;
        Some(Condition { operator, value: text[operator.len()..].trim().parse().ok()? })
    }

    /// Whether a number meets it.
    pub fn holds(self, number: f64) -> bool {
        match self.operator {
            "<=" => number <= self.value,
            ">=" => number >= self.value,
            "<>" => number != self.value,
            "<" => number < self.value,
            ">" => number > self.value,
            _ => number == self.value,
        }
    }
}

impl Section {
    /// What the code of a section shows: letters outside quotes, brackets and escapes, signs of currencies anywhere, and the words
    /// around the number.
    pub fn of(code: &str) -> Section {
        let (mut section, mut places) = (Section::default(), Places::default());
        let mut letters = code.chars();
        let mut has_month_or_minute = false;
        while let Some(letter) = letters.next() {
            match letter.to_ascii_lowercase() {
                '\\' => section.word(&letters.next().map(String::from).unwrap_or_default()),
                // The width of the next character.
                '_' => {
                    letters.next();
                    section.word(" ");
                }
                // The next character fills the cell.
                '*' => drop(letters.next()),
                '"' => section.word(&letters.by_ref().take_while(|c| *c != '"').collect::<String>()),
                '[' => section.bracket(&letters.by_ref().take_while(|c| *c != ']').collect::<String>()),
                '0' | '#' | '?' => {
                    places.add(letter);
                    section.place(Place::Number);
                }
                '@' => section.place(Place::Text),
                'y' | 'd' => section.has_date = true,
                'h' => section.time = section.time.max(Time::Minutes),
                's' => {
                    let rest = letters.as_str();
                    let has_fraction = rest.strip_prefix(['s', 'S']).unwrap_or(rest).starts_with(".0");
                    let time = if has_fraction { Time::Milliseconds } else { Time::Seconds };
                    section.time = section.time.max(time);
                }
                'm' => has_month_or_minute = true,
                '%' => {
                    section.unit = Unit::Percent;
                    section.place(Place::Number);
                }
                // The number as it is, with a word such as `General`.
                'g' if letters.as_str().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("eneral")) => {
                    letters.by_ref().nth("eneral".len() - 1);
                    places.is_fixed = false;
                    section.place(Place::Number);
                }
                'a'..='z' => places.is_fixed = false,
                _ => {
                    places.is_fixed &= !matches!(letter, '.' | ',' | '/');
                    section.word(letter.encode_utf8(&mut [0; 4]));
                }
            }
        }
        section.has_date |= has_month_or_minute && section.time == Time::Nothing;
        section.min_digits = places.min_digits();
        section.end();
        section
    }

    /// Takes the content of brackets.
    fn bracket(&mut self, inside: &str) {
        if let Some(sign) = inside.strip_prefix('$') {
            // A code of a language follows: `[$€-407]`, or alone `[$-407]`.
            self.word(sign.split('-').next().unwrap_or_default());
        } else if let Some(condition) = Condition::of(inside) {
            self.condition = Some(condition);
        } else if let Some(time) = elapsed(inside) {
            self.time = self.time.max(time);
            self.is_duration = true;
        }
    }

    /// Takes a word that is shown.
    fn word(&mut self, word: &str) {
        let is_before = self.place == Place::Nothing;
        if matches!(self.unit, Unit::Nothing) && is_currency(word.trim()) {
            self.unit = Unit::Currency { sign: word.trim().to_owned(), is_before };
        }
        let words = if is_before { &mut self.before } else { &mut self.after };
        words.push_str(word);
    }

    /// Takes a place for digits or a text. What is between two of them is not shown.
    fn place(&mut self, place: Place) {
        self.place = place;
        self.after.clear();
    }

    /// Keeps what of the words before and after the number is more than signs.
    fn end(&mut self) {
        // Commas after the digits divide the number by thousands; it is shown whole, for which its unit is wrong.
        let is_scaled = self.after.starts_with(',');
        self.has_sign = [&self.before, &self.after].iter().any(|words| words.contains(['-', '−', '–', '(']));
        if let Unit::Currency { sign, is_before } = &self.unit
            && self.place != Place::Nothing
        {
            let words = if *is_before { &mut self.before } else { &mut self.after };
            *words = words.replacen(sign.as_str(), "", 1);
        }
        for words in [&mut self.before, &mut self.after] {
            let has_words = words.contains(|c: char| c.is_alphanumeric() || matches!(c, '°' | '%' | '‰' | '#' | '№'));
            if is_scaled || !has_words {
                words.clear();
            }
        }
        // A bracket whose other half is on the other side of the number is a sign.
        if !self.before.contains(')') {
            self.before = self.before.trim_start_matches(['-', '(', ' ']).to_owned();
        }
        if !self.after.contains('(') {
            self.after = self.after.trim_end_matches(['-', ')', ' ']).to_owned();
        }
    }

    /// Whether it shows texts with words around them.
    pub fn has_words_for_texts(&self) -> bool {
        self.is_for_texts() && !(self.before.is_empty() && self.after.is_empty())
    }

    /// Whether it has a place for texts.
    pub fn is_for_texts(&self) -> bool {
        self.place == Place::Text
    }

    /// A text with the words around it.
    pub fn show_text(&self, text: &str) -> String {
        format!("{}{text}{}", self.before, self.after)
    }

    /// The text of a number; `first_day` is the number of 1970-01-01. A section for negative numbers alone may have words in place
    /// of the sign.
    pub fn show(&self, number: f64, first_day: i64, is_for_negative: bool) -> String {
        const MAX_DAYS: f64 = 3_000_000.0;
        if self.has_date || self.time > Time::Nothing {
            let (sign, days) = if is_for_negative { ("-", number.abs()) } else { ("", number) };
            let is_date = (0.0..MAX_DAYS).contains(&days);
            return if is_date { format!("{sign}{}", self.date(days, first_day)) } else { self.amount(number) };
        }
        let (before, after) = (&self.before, &self.after);
        if self.place == Place::Nothing && !before.is_empty() {
            return before.clone();
        }
        let is_named = is_for_negative && !self.has_sign && !(before.is_empty() && after.is_empty());
        let amount = self.amount(if is_named { number.abs() } else { number });
        format!("{before}{amount}{after}")
    }

    /// A number without the words around it.
    fn amount(&self, number: f64) -> String {
        // Excel computes with 17 digits and shows 15.
        let rounded = |number: f64| format!("{number:.14e}").parse().unwrap_or(number);
        if matches!(self.unit, Unit::Percent) {
            return format!("{}%", rounded(number * 100.0));
        }
        let mut shown = rounded(number).to_string();
        if shown.bytes().all(|byte| byte.is_ascii_digit()) {
            shown = format!("{shown:0>width$}", width = self.min_digits);
        }
        match &self.unit {
            Unit::Currency { sign, is_before: true } if sign.starts_with(char::is_alphabetic) => {
                format!("{sign} {shown}")
            }
            Unit::Currency { sign, is_before: true } => match shown.strip_prefix('-') {
                Some(amount) => format!("-{sign}{amount}"),
                None => format!("{sign}{shown}"),
            },
            Unit::Currency { sign, .. } => format!("{shown} {sign}"),
            Unit::Nothing | Unit::Percent => shown,
        }
    }

    fn date(&self, number: f64, first_day: i64) -> String {
        let milliseconds = match self.time {
            Time::Milliseconds => (number * 86_400_000.0).round() as i64,
            _ => (number * 86_400.0).round() as i64 * 1000,
        };
        let (seconds, milliseconds) = (milliseconds.div_euclid(1000), milliseconds.rem_euclid(1000));
        let (mut day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let mut time = format!("{:02}:{:02}", second / 3600, second / 60 % 60);
        if self.time >= Time::Seconds {
            time = format!("{time}:{:02}", second % 60);
        }
        if milliseconds > 0 {
            time.push_str(format!(".{milliseconds:03}").trim_end_matches('0'));
        }
        if !self.has_date {
            let hours = second / 3600 + if self.is_duration { 24 * day } else { 0 };
            return format!("{hours:02}{}", &time[2..]);
        }
        // Excel has a 29 February 1900, as Lotus 1-2-3 had.
        day += i64::from(first_day == 25_569 && day < 60);
        let date = dates::date(day - first_day);
        if self.time == Time::Nothing { date } else { format!("{date} {time}") }
    }
}

/// The places for digits in a section.
struct Places {
    zeros: usize,
    /// Whether they are all zeros, without a decimal point.
    is_fixed: bool,
}

impl Default for Places {
    fn default() -> Self {
        Places { zeros: 0, is_fixed: true }
    }
}

impl Places {
    fn add(&mut self, place: char) {
        self.zeros += 1;
        self.is_fixed &= place == '0';
    }

    fn min_digits(&self) -> usize {
        const MAX_DIGITS: usize = 20;
        if self.is_fixed && self.zeros <= MAX_DIGITS { self.zeros } else { 0 }
    }
}

/// What an elapsed time shows whose largest unit is in brackets: `h`, `mm`, `ss`.
fn elapsed(unit: &str) -> Option<Time> {
    let letter = unit.chars().next()?.to_ascii_lowercase();
    let is_unit = matches!(letter, 'h' | 'm' | 's') && unit.chars().all(|c| c.to_ascii_lowercase() == letter);
    is_unit.then_some(if letter == 's' { Time::Seconds } else { Time::Minutes })
}
