//! Builds text from a marked-up document: words, and between them the widest gap requested since the last word.
//!
//! The readers of HTML, office documents and RTF share it, so headings, lists and tables look the same: Markdown's `#`,
//! `-` and ` | `, without escapes, since the text is searched and quoted.

use std::iter;
use std::mem;

use crate::Limit;
use crate::limit::{COLUMNS, LIST_INDENTS, TEXT_BYTES};
use crate::merged_cells::{Cell, MergedCells, Rows, Span};

/// The white space between two words; a wider gap replaces a narrower one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Gap {
    #[default]
    None,
    Space,
    Line,
    Paragraph,
}

/// How words are set: on the line, as a superscript or as a subscript.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Script {
    #[default]
    Line,
    Super,
    Sub,
}

impl Script {
    /// The script of words that are raised by a height, or lowered if it is negative.
    pub fn at(height: f64) -> Self {
        match height {
            height if height > 0.0 => Script::Super,
            height if height < 0.0 => Script::Sub,
            _ => Script::Line,
        }
    }
}

/// Whether a superscript would change the number or the word before it.
pub(crate) fn is_exponent(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '−'))
}

/// The text so far. Gaps at its start and end are not written.
///
/// Beyond a limit nothing more is written, and [`Self::finish`] returns the limit.
#[derive(Default)]
pub(crate) struct Prose {
    page: Page,
    /// The length of all pages and of the finished cells.
    bytes: usize,
    exceeded: Option<Limit>,
    /// How the last words of [`Self::run`] were set.
    script: Script,
    /// The tables that are open, outermost first.
    tables: Vec<MergedCells>,
    /// The table rows that are open, outermost first.
    rows: Vec<Row>,
    /// The pages outside the table cells that are open, outermost first.
    outside: Vec<Page>,
}

#[derive(Default)]
struct Row {
    /// The finished cells.
    cells: Vec<Cell>,
    /// How the open cell is merged with others.
    span: Span,
    is_header: bool,
}

#[derive(Default)]
struct Page {
    text: String,
    gap: Gap,
    lead: String,
}

impl Prose {
    /// Requests at least this gap before the next word.
    pub fn gap(&mut self, gap: Gap) {
        self.page.gap = self.page.gap.max(gap);
    }

    /// Sets the mark, such as `- `, that is written before the next word, replacing one that is pending.
    pub fn lead(&mut self, mark: &str) {
        self.page.lead.clear();
        self.page.lead.push_str(mark);
    }

    /// Sets the mark of an item, indented by the number of lists that are open around its own.
    pub fn lead_item(&mut self, outer_lists: usize, mark: &str) {
        self.lead(&format!("{}{mark}", "  ".repeat(outer_lists.min(LIST_INDENTS))));
    }

    /// Takes the mark that is pending, to set it again behind other paragraphs.
    pub fn take_lead(&mut self) -> String {
        mem::take(&mut self.page.lead)
    }

    /// Adds to the mark that is pending.
    pub fn add_lead(&mut self, mark: &str) {
        self.page.lead.push_str(mark);
    }

    /// As [`Self::lead`], unless a mark is pending.
    pub fn lead_if_none(&mut self, mark: &str) {
        if self.page.lead.is_empty() {
            self.lead(mark);
        }
    }

    /// Adds running text: white space of any kind and length becomes one space, soft hyphens go, and so do zero-width
    /// spaces around a word.
    pub fn text(&mut self, text: &str) {
        for (i, word) in text.split(char::is_whitespace).enumerate() {
            if i > 0 {
                self.gap(Gap::Space);
            }
            let word = word.trim_matches(['\u{ad}', '\u{200b}']);
            if !word.is_empty() {
                self.start_word();
                word.split('\u{ad}').for_each(|part| self.push(part));
            }
        }
    }

    /// Leaves out running text, such as what is hidden, but not the white space in it.
    pub fn leave_out(&mut self, text: &str) {
        if text.contains(char::is_whitespace) {
            self.gap(Gap::Space);
        }
    }

    /// Adds the running text of a run, which may continue a superscript or a subscript.
    pub fn run(&mut self, script: Script, text: &str) {
        if !text.trim().is_empty() && mem::replace(&mut self.script, script) != script {
            self.mark(script, text);
        }
        self.text(text);
    }

    /// Marks where a superscript or a subscript starts or ends before this text, if the number or the word before it
    /// would change without a mark: `10^6`, `101_2`. Names such as H2O and 1st have none.
    pub fn mark(&mut self, script: Script, text: &str) {
        let is_digit = |c: char| c.is_ascii_digit();
        let joins = self.page.gap == Gap::None && self.page.text.ends_with(is_digit) && text.starts_with(is_digit);
        match script {
            Script::Super if is_exponent(text) => self.text("^"),
            Script::Sub if joins => self.text("_"),
            Script::Line if joins => self.gap(Gap::Space),
            _ => {}
        }
    }

    /// Adds text unchanged, line breaks included.
    pub fn verbatim(&mut self, text: &str) {
        if !text.is_empty() {
            self.start_word();
            self.push(text);
        }
    }

    /// Ends text in brackets, without the white space before the bracket.
    pub fn end_bracket(&mut self) {
        self.page.gap = Gap::None;
        self.verbatim("]");
    }

    /// Starts a table, which is needed for its merged cells only. A row outside of tables starts one too.
    pub fn open_table(&mut self) {
        self.tables.push(MergedCells::default());
    }

    /// Ends a table.
    pub fn close_table(&mut self) {
        self.tables.pop();
    }

    /// Starts a table row.
    pub fn open_row(&mut self) {
        self.rows.push(Row::default());
    }

    /// Marks the open row as one that names columns, before or after its cells.
    pub fn mark_header(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.is_header = true;
        }
    }

    /// How the open cell is merged with others; `None` outside of a row.
    pub fn span(&mut self) -> Option<&mut Span> {
        self.rows.last_mut().map(|row| &mut row.span)
    }

    /// Defines how the finished cells of the open row are merged with others.
    pub fn merge_cells(&mut self, rows: &[Rows]) {
        let cells = self.rows.last_mut().into_iter().flat_map(|row| &mut row.cells);
        cells.zip(rows).for_each(|(cell, rows)| cell.span.rows = *rows);
    }

    /// Adds cells that another one covers, as far as the row has room.
    pub fn covered_cells(&mut self, times: usize) {
        let covered = || Cell { text: String::new(), span: Span { rows: Rows::Continued, ..Span::default() } };
        if let Some(row) = self.rows.last_mut() {
            row.cells.extend(iter::repeat_with(covered).take(times.min(COLUMNS - row.cells.len())));
        }
    }

    /// Starts a table cell; what is written until [`Self::close_cell`] belongs to it.
    pub fn open_cell(&mut self) {
        self.outside.push(mem::take(&mut self.page));
    }

    /// Ends a table cell.
    pub fn close_cell(&mut self) {
        let Some(outside) = self.outside.pop() else { return };
        let text = mem::replace(&mut self.page, outside).text;
        match self.rows.last_mut() {
            Some(row) if row.cells.len() < COLUMNS => row.cells.push(Cell { text, span: mem::take(&mut row.span) }),
            Some(_) => self.exceeded = self.exceeded.or(Some(Limit::Columns(COLUMNS))),
            None => {
                self.bytes -= text.len();
                self.verbatim(&text);
            }
        }
    }

    /// Ends a table row: one line, in which the lines of a cell are joined by spaces, or one paragraph a cell in tables used for
    /// layout.
    pub fn close_row(&mut self) {
        let Row { mut cells, is_header, .. } = self.rows.pop().unwrap_or_default();
        cells.iter_mut().for_each(|cell| cell.span.is_header |= is_header);
        // Beyond a limit nothing is written, so the length of the text does not bound what rows repeat.
        if self.exceeded.is_some() {
            return;
        }
        // Written again below, as a part of the text around the table.
        self.bytes -= cells.iter().map(|cell| cell.text.len()).sum::<usize>();
        let mut table = self.tables.pop();
        if is_layout(&cells) {
            for cell in &cells {
                self.gap(Gap::Paragraph);
                self.verbatim(&cell.text);
            }
            self.gap(Gap::Paragraph);
            table.get_or_insert_default().pass_row(cells);
        } else if cells.iter().any(|cell| !cell.text.is_empty()) {
            self.row(&table.get_or_insert_default().row(cells));
        } else if let Some(table) = &mut table {
            table.pass_row(cells);
        }
        self.tables.extend(table);
        self.gap(Gap::Line);
    }

    /// Writes the texts of a row on a line.
    fn row(&mut self, texts: &[String]) {
        if texts.len() > COLUMNS {
            self.exceeded = self.exceeded.or(Some(Limit::Columns(COLUMNS)));
        }
        self.gap(Gap::Line);
        self.start_word();
        for (i, text) in texts.iter().enumerate() {
            self.push(if i > 0 { " | " } else { "" });
            for (i, line) in text.split('\n').filter(|line| !line.is_empty()).enumerate() {
                self.push(if i > 0 { " " } else { "" });
                self.push(line);
            }
        }
    }

    /// The finished text.
    ///
    /// # Errors
    /// [`Limit::TextBytes`], and [`Limit::Columns`] for the cells of a row.
    pub fn finish(self) -> Result<String, Limit> {
        self.exceeded.map_or(Ok(self.page.text), Err)
    }

    fn start_word(&mut self) {
        let gap = mem::take(&mut self.page.gap);
        if !self.page.text.is_empty() {
            self.push(match gap {
                Gap::None => "",
                Gap::Space => " ",
                Gap::Line => "\n",
                Gap::Paragraph => "\n\n",
            });
        }
        let lead = mem::take(&mut self.page.lead);
        self.push(&lead);
    }

    fn push(&mut self, text: &str) {
        if self.exceeded.is_some() {
            return;
        }
        if self.bytes + text.len() > TEXT_BYTES {
            self.exceeded = Some(Limit::TextBytes(TEXT_BYTES));
            return;
        }
        self.bytes += text.len();
        self.page.text.push_str(text);
    }
}

/// Whether a table row arranges parts of a page instead of values: a cell of several lines has no other beside it, or the row
/// is long, or such a cell has many lines, headings, rows, indented lists or code.
fn is_layout(cells: &[Cell]) -> bool {
    const MAX_LINES: usize = 8;
    const MAX_BYTES: usize = 600;
    let is_part = |line: &str| line.starts_with(['#', ' ', '\t']) || line.contains(" | ");
    let is_page = |cell: &str| cell.lines().count() > MAX_LINES || cell.lines().any(is_part);
    let texts = || cells.iter().map(|cell| cell.text.as_str());
    let is_alone = texts().filter(|text| !text.is_empty()).count() < 2;
    let is_long = texts().map(str::len).sum::<usize>() > MAX_BYTES;
    texts().filter(|text| text.contains('\n')).any(|text| is_alone || is_long || is_page(text))
}
