//! Cells of tables: rows below one that names their columns, as in Markdown ("| Host | RAM |") and in pages of HTML that were written out
//! ("Day | Opens"), and rows that have the names in each cell ("Day: Monday | Opens: 6:30").

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use super::blocks::names_columns;
use super::candidates::Place;
use super::naming::has_name;
use super::words::{Word, is_number_word, words};

/// A cell of a table.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    /// The text that the table is in.
    text: &'a str,
    /// Its column, from 0.
    at: usize,
    /// The names of all columns.
    columns: Vec<&'a str>,
    /// The cells of its row, as many as there are columns.
    row: Vec<&'a str>,
    /// The cells of the other rows.
    others: Vec<Vec<&'a str>>,
}

impl<'a> Cell<'a> {
    /// The cell that has these bytes of a text; `None` outside of tables, in the row that names the columns, and for parts of several
    /// cells.
    pub fn at(text: &'a str, answer: &Range<usize>) -> Option<Cell<'a>> {
        let Range { start, end } = line_at(text, answer.start);
        let line = &text[start..end];
        let marks_in = |part: Range<usize>| marks(line).filter(|at| part.contains(&(start + at))).count();
        if answer.end > end || marks_in(answer.clone()) > 0 {
            return None;
        }
        let row = cells(line)?;
        let at = marks_in(start..answer.start);
        let at = at.checked_sub(usize::from(line.trim_start().starts_with('|'))).filter(|at| *at < row.len())?;
        let others = above(text, start, row.len()).chain(below(text, end, row.len()));
        if names_columns(line) {
            let others = others.filter(|line| names_columns(line)).filter_map(cells).map(values).collect();
            let columns = row.iter().map(|cell| named(cell).0).collect();
            return Some(Cell { text, at, columns, row: values(row), others });
        }
        let columns = header(text, start..end)?;
        let others = others.filter(|line| !is_rule(line)).filter_map(cells).filter(|row| *row != columns).collect();
        Some(Cell { text, at, columns, row, others })
    }

    /// The name of its column.
    pub fn column(&self) -> &'a str {
        self.columns[self.at]
    }

    /// Whether a question asks for a cell of another column or row: it has words of the name of another column, and none of this one, or
    /// more words of another row.
    pub fn is_another(&self, question: &str) -> bool {
        let asked = keys(question);
        let is_asked = |text: &str| !keys(text).is_disjoint(&asked);
        // A column by which the question chooses the row is not what it asks for, nor is the first one, which names the rows.
        let is_rival = |other: usize| other != self.at && is_asked(self.columns[other]) && !is_asked(self.row[other]);
        let is_of_other_column = !is_asked(self.column()) && (1..self.row.len()).any(is_rival);
        let matches = |row: &[&str]| self.beside(row).intersection(&asked).count();
        let own = matches(&self.row);
        is_of_other_column || self.others.iter().any(|row| matches(row) > own)
    }

    /// Whether an answer is the whole cell, and a question has only words of the row and of the name of the column: all of the first
    /// cell, which no other row of the text begins with, and more of the name of this column than of another one.
    pub fn is_asked_for(&self, question: &str, answer: &str) -> bool {
        let asked = keys(question);
        let (name, first) = (keys(self.column()), keys(self.row[0]));
        let known: BTreeSet<String> = self.beside(&self.row).union(&name).cloned().collect();
        let named: BTreeSet<&String> = name.intersection(&asked).collect();
        let is_rival = |other: usize| {
            let other_name = keys(self.columns[other]);
            other != self.at && named.iter().all(|key| other_name.contains(*key))
        };
        let begins = |line: &&str| cells(line).is_some_and(|cells| keys(value(cells[0])) == first);
        self.at > 0
            && self.row[self.at] == answer.trim()
            && !first.is_empty()
            && first.is_subset(&asked)
            && asked.is_subset(&known)
            && !named.is_empty()
            && !(0..self.columns.len()).any(is_rival)
            && self.text.lines().filter(begins).count() == 1
    }

    /// The keys of the cells of a row in the other columns.
    fn beside(&self, row: &[&str]) -> BTreeSet<String> {
        row.iter().enumerate().filter(|(at, _)| *at != self.at).flat_map(|(_, cell)| keys(cell)).collect()
    }
}

/// A place of a text as a model is shown it: a whole row of a table with the names of its columns, "Host: birch | RAM: 64 GB", since a
/// small model does not find the column by the first row; anything else as the text has it.
pub fn shown<'a>(text: &'a str, place: &Place) -> Cow<'a, str> {
    let own = &text[place.start..place.end];
    named_row(text, &(place.start..place.end)).map_or(Cow::Borrowed(own), Cow::Owned)
}

/// Whether the line that a byte is in is a row of a table below one that names its columns, or names them itself.
pub(super) fn is_row(text: &str, at: usize) -> bool {
    let line = line_at(text, at);
    let own = &text[line.clone()];
    names_columns(own) || !is_rule(own) && header(text, line).is_some()
}

/// Whether the row that a byte is in has a cell with one of these stems in a column with this name: "256 GB" in the column "RAM".
pub(super) fn has_column(text: &str, at: usize, name: &[String], stems: &BTreeSet<String>) -> bool {
    let line = line_at(text, at);
    let (row, columns) = (cells(&text[line.clone()]), header(text, line));
    let mut pairs = columns.into_iter().flatten().zip(row.into_iter().flatten());
    pairs.any(|(column, cell)| has_name(name, &words(column)) && !keys(cell).is_disjoint(stems))
}

/// A whole row of a table that does not name its columns itself, with their names; `None` for any other place.
fn named_row(text: &str, place: &Range<usize>) -> Option<String> {
    let (line, own) = (line_at(text, place.start), text[place.clone()].trim());
    if text[line.clone()].trim() != own || names_columns(own) || is_rule(own) {
        return None;
    }
    let (columns, row) = (header(text, line)?, cells(own)?);
    let pairs = columns.iter().zip(&row).filter(|(_, value)| !value.is_empty());
    let named = pairs.map(|(name, value)| match name.is_empty() {
        true => (*value).to_owned(),
        false => format!("{name}: {value}"),
    });
    Some(named.collect::<Vec<_>>().join(" | "))
}

/// The bytes of the line that a byte of a text is in, without its end.
fn line_at(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    start..text[at..].find('\n').map_or(text.len(), |end| at + end)
}

/// The names of the columns of the table that a line is in: the first of the lines around it with as many cells, if a rule is below it
/// or its cells can be names. `None` for that first line itself and outside of tables. `line` is its bytes.
fn header(text: &str, line: Range<usize>) -> Option<Vec<&str>> {
    let own = &text[line.clone()];
    let width = width(own)?;
    let above: Vec<&str> = above(text, line.start, width).collect();
    let (first, between) = above.split_last()?;
    let names = cells(first)?;
    let is_ruled = between.last().is_some_and(|second| is_rule(second));
    let rows = between.iter().copied().chain([own]).chain(below(text, line.end, width));
    (is_ruled || is_header(&names, rows)).then_some(names)
}

/// The lines directly above the line that begins at a byte which have as many cells, the nearest first.
fn above(text: &str, start: usize, width: usize) -> impl Iterator<Item = &str> {
    text[..start].lines().rev().take_while(move |line| self::width(line) == Some(width))
}

/// The same of the lines below the line that ends at a byte.
fn below(text: &str, end: usize, width: usize) -> impl Iterator<Item = &str> {
    text[end..].lines().skip(1).take_while(move |line| self::width(line) == Some(width))
}

/// The number of cells of a line; `None` if it has one alone.
fn width(line: &str) -> Option<usize> {
    let count = marks(inner(line)).count();
    (count > 0).then_some(count + 1)
}

/// The bytes of a line at which a mark divides two cells. In Markdown a mark behind a backslash is text of its cell.
fn marks(line: &str) -> impl Iterator<Item = usize> {
    line.match_indices('|').map(|(at, _)| at).filter(move |at| !line[..*at].ends_with('\\'))
}

/// A line without the marks at its ends.
fn inner(line: &str) -> &str {
    let line = line.trim();
    let Some(rest) = line.strip_prefix('|') else { return line };
    rest.strip_suffix('|').filter(|inner| !inner.ends_with('\\')).unwrap_or(rest)
}

/// The cells of a line; `None` if it has one alone.
fn cells(line: &str) -> Option<Vec<&str>> {
    let line = inner(line);
    let (mut cells, mut start) = (Vec::new(), 0);
    for end in marks(line).chain([line.len()]) {
        cells.push(line[start..end].trim());
        start = end + 1;
    }
    (cells.len() > 1).then_some(cells)
}

/// The name and the value of a cell that may have both: "Opens" and "6:30" of "Opens: 6:30".
fn named(cell: &str) -> (&str, &str) {
    cell.split_once(": ").unwrap_or((cell.trim_end_matches(':'), ""))
}

/// The value of a cell, with or without the name of its column.
fn value(cell: &str) -> &str {
    cell.split_once(": ").map_or(cell, |(_, value)| value)
}

fn values(row: Vec<&str>) -> Vec<&str> {
    row.into_iter().map(|cell| named(cell).1).collect()
}

/// Whether a line is that below the names of the columns in Markdown: "|---|:-:|".
fn is_rule(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

/// Whether the first row of a table without a rule has the names of its columns: its cells behind the first have words and no numbers but
/// years, and a column below them has a number in every row. Of words alone the first row may be one like the others.
fn is_header<'a>(first: &[&str], rows: impl Iterator<Item = &'a str>) -> bool {
    let is_year = |word: &Word| word.lower.len() == 4 && word.lower.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = |cell: &&str| {
        let words = words(cell);
        !words.is_empty() && words.iter().all(|word| !word.number || is_year(word))
    };
    // Columns with a number in every row so far.
    let mut of_numbers: Vec<usize> = (1..first.len()).collect();
    first.iter().skip(1).all(is_name)
        && rows.filter_map(cells).all(|row| {
            of_numbers.retain(|column| has_number(row[*column]));
            !of_numbers.is_empty()
        })
}

/// Whether a cell has a digit or the name of a number.
fn has_number(cell: &str) -> bool {
    let mut words = cell.split(|c: char| !c.is_alphanumeric());
    words.any(|word| word.contains(char::is_numeric) || is_number_word(&word.to_lowercase()))
}

/// The stems of the content words and the numbers of a text.
fn keys(text: &str) -> BTreeSet<String> {
    words(text).into_iter().filter_map(|word| word.stem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: &str = "# Hosts\n\n| Host | Role | RAM | Place |\n|---|---|---:|---|\n| alder | web | 16 GB | Rack 2 |\n\
        | birch | database | 64 GB | Rack 2 |\n| cedar | backup | 32 GB | Cellar |\n";
    const COSTS: &str = "Costs\nItem | 2024 | 2025\nPower | 1,840 | 2,115\nNames | 96 | 104\nAll are paid.";
    const ROWS: &str = "Day: Monday | Opens: 6:30 | Closes: 20:00\nDay: Sunday | Opens: 9:00 | Closes: 17:00";

    fn cell<'a>(text: &'a str, part: &str) -> Option<Cell<'a>> {
        let start = text.find(part).unwrap();
        Cell::at(text, &(start..start + part.len()))
    }

    #[test]
    fn a_cell_has_the_name_of_its_column() {
        for (text, part, name) in [
            (HOSTS, "64", "RAM"),
            (HOSTS, "web", "Role"),
            (HOSTS, "alder", "Host"),
            (COSTS, "1,840", "2024"),
            (COSTS, "104", "2025"),
            (ROWS, "9:00", "Opens"),
        ] {
            assert_eq!(cell(text, part).map(|cell| cell.column()), Some(name), "{part}");
        }
        for (text, part) in [
            (HOSTS, "RAM"),
            (HOSTS, "64 GB | Rack"),
            (COSTS, "paid"),
            ("Lamp | 40 W\nRing | 20 W", "20"),
            ("Ann | Oslo\nBo | Rome", "Rome"),
        ] {
            assert!(cell(text, part).is_none(), "{part}");
        }
    }

    #[test]
    fn a_mark_behind_a_backslash_is_text_of_its_cell() {
        let table = "| Pattern | Meaning |\n|---|---|\n| a \\| b | either |\n| ab | both |\n| x | or \\|\n";
        for (part, name) in [
            ("either", "Meaning"),
            ("both", "Meaning"),
            ("b", "Pattern"),
            ("a \\| b", "Pattern"),
            ("or \\|", "Meaning"),
        ] {
            assert_eq!(cell(table, part).map(|cell| cell.column()), Some(name), "{part}");
        }
        let row = table.find("| a").unwrap();
        let place = Place { text: 0, start: row, end: row + table[row..].find('\n').unwrap() };
        assert_eq!(shown(table, &place), "Pattern: a \\| b | Meaning: either");
    }

    #[test]
    fn the_first_row_has_the_names_if_a_column_below_it_is_of_numbers_in_digits_or_words() {
        for (table, part, name) in [
            ("Item | Number\nLamp | twelve\nRing | 20", "twelve", Some("Number")),
            ("Item | Note | Number\nLamp | old | 2\nRing | 3 left | 20", "20", Some("Number")),
            ("Item | Number\nLamp | twelve\nRing | none", "twelve", None),
            ("Lamp | 12\nRing | 20\nBox | 30", "20", None),
        ] {
            assert_eq!(cell(table, part).map(|cell| cell.column()), name, "{table}");
        }
        let table = "Item | Number\r\nLamp | 12\r\n";
        assert_eq!(cell(table, "12").map(|cell| cell.column()), Some("Number"));
        assert!(cell(table, "Item").is_none(), "the row of the names is no row below it");
    }

    #[test]
    fn a_row_is_shown_with_the_names_of_its_columns() {
        let shown_line = |text: &str, part: &str| {
            let at = text.find(part).unwrap();
            let start = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
            shown(text, &Place { text: 0, start, end }).into_owned()
        };
        assert_eq!(shown_line(HOSTS, "birch"), "Host: birch | Role: database | RAM: 64 GB | Place: Rack 2");
        assert_eq!(shown_line(COSTS, "104"), "Item: Names | 2024: 96 | 2025: 104");
        let notes = "| Host | Notes | RAM |\n|---|---|---|\n| alder | It runs. It is old. | 16 GB |";
        let start = notes.find("It is").unwrap();
        let part = Place { text: 0, start, end: start + "It is old.".len() };
        assert_eq!(shown(notes, &part), "It is old.", "a part of a row");
        let open = "| | Adults |\n|---|---|\n| Sauna | |\n| Pool | 6 |";
        assert_eq!([shown_line(open, "Sauna"), shown_line(open, "Pool")], ["Sauna", "Pool | Adults: 6"]);
        for (text, part) in [(HOSTS, "Host |"), (HOSTS, "---"), (COSTS, "paid"), (ROWS, "Sunday")] {
            let at = text.find(part).unwrap();
            assert!(text.contains(&shown_line(text, part)), "{part} {at}");
        }
    }

    #[test]
    fn a_row_has_the_name_of_the_column_of_a_value() {
        let at = HOSTS.find("birch").unwrap();
        let has = |name: &str, value: &str| has_column(HOSTS, at, &[name.to_owned()], &keys(value));
        assert!(has("ram", "64 GB") && has("place", "Rack 2"));
        assert!(!has("ram", "Rack 2") && !has("ram", "16") && !has("disk", "64 GB"));
        assert!(!has_column(HOSTS, HOSTS.find("RAM").unwrap(), &["ram".to_owned()], &keys("RAM")));
    }

    #[test]
    fn a_question_that_names_another_column_or_row_is_not_answered_by_a_cell() {
        for (text, question, own, others) in [
            (HOSTS, "How much RAM does birch have?", "64 GB", &["database", "16 GB", "32 GB"][..]),
            (HOSTS, "What is the role of cedar?", "backup", &["web", "32 GB"][..]),
            (HOSTS, "Which host has its place in the cellar?", "cedar", &["alder", "birch"][..]),
            (COSTS, "How much did power cost in 2025?", "2,115", &["1,840", "104"][..]),
            (ROWS, "When does it close on Sunday?", "17:00", &["9:00", "20:00"][..]),
        ] {
            let is_another = |part: &str| cell(text, part).is_some_and(|cell| cell.is_another(question));
            assert!(!is_another(own), "{question} {own}");
            for other in others {
                assert!(is_another(other), "{question} {other}");
            }
        }
    }

    #[test]
    fn a_cell_is_plainly_asked_for_by_its_row_and_column() {
        let is_asked_for = |text: &str, question: &str, part: &str| {
            cell(text, part).is_some_and(|cell| cell.is_asked_for(question, part))
        };
        assert!(is_asked_for(HOSTS, "How much RAM does birch have?", "64 GB"));
        assert!(is_asked_for(HOSTS, "What is the role of cedar?", "backup"));
        for (question, part) in [
            ("How much RAM does birch have?", "64"),
            ("How much RAM does birch have?", "16 GB"),
            ("How much RAM did birch have in 2019?", "64 GB"),
            ("How much does birch have?", "64 GB"),
            ("How much RAM is in Rack 2?", "16 GB"),
        ] {
            assert!(!is_asked_for(HOSTS, question, part), "{question} {part}");
        }
        let twice = format!("{HOSTS}\n| Host | RAM |\n|---|---|\n| birch | 8 GB |\n");
        assert!(!is_asked_for(&twice, "How much RAM does birch have?", "64 GB"), "another table has the row");
    }
}
