//! The tables within DOCX, ODT, PPTX and RTF.

use crate::archives::{RELATIONS, archive};
use crate::read_one;

#[test]
fn a_cell_of_several_lines_stays_in_its_row_in_every_type() {
    let cell = |lines: &[&str], tag: &str, paragraph: &dyn Fn(&str) -> String| {
        format!("<{tag}>{}</{tag}>", lines.iter().map(|line| paragraph(line)).collect::<String>())
    };
    let expect = "wick north pier | 12";
    let word = |line: &str| format!("<w:p><w:r><w:t>{line}</w:t></w:r></w:p>");
    let cells = [cell(&["wick", "north pier"], "w:tc", &word), cell(&["12"], "w:tc", &word)].concat();
    let body = format!("<w:document><w:tbl><w:tr>{cells}</w:tr></w:tbl></w:document>");
    assert_eq!(read_one("a.docx", &archive(&[RELATIONS, ("word/document2.xml", &body)])).text, expect);
    let words = |line: &str| format!("<text:p>{line}</text:p>");
    let tag = "table:table-cell";
    let cells = [cell(&["wick", "north pier"], tag, &words), cell(&["12"], tag, &words)].concat();
    let content = format!("<c><table:table><table:table-row>{cells}</table:table-row></table:table></c>");
    assert_eq!(read_one("a.odt", &archive(&[("content.xml", &content)])).text, expect);
    let rtf = r"{\rtf1 \trowd\cellx1\cellx2\pard\intbl wick\par north pier\cell 12\cell\row}";
    assert_eq!(read_one("a.rtf", rtf.as_bytes()).text, expect);
}

#[test]
fn merged_cells_are_repeated_in_the_rows_below_in_every_type() {
    let expect = "pier | year | year\nnorth | 1 | 2\nnorth | 3 | 4\nsouth | 5 | 6";
    let cell = |properties: &str, text: &str| {
        format!("<w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>")
    };
    let row = |cells: &[String]| format!("<w:tr>{}</w:tr>", cells.concat());
    let two = |one: &str, two: &str| [cell("", one), cell("", two)].concat();
    let changed = "<w:tcPrChange><w:tcPr><w:vMerge/></w:tcPr></w:tcPrChange>";
    let header =
        ["<w:trPr><w:tblHeader/></w:trPr>".to_owned(), cell("", "pier"), cell("<w:gridSpan w:val='2'/>", "year")];
    let rows = [
        row(&header),
        row(&[cell("<w:vMerge w:val='restart'/>", "north"), two("1", "2")]),
        row(&[cell("<w:vMerge/>", ""), two("3", "4")]),
        row(&[cell(changed, "south"), two("5", "6")]),
    ];
    let body = format!("<w:document><w:tbl>{}</w:tbl></w:document>", rows.concat());
    assert_eq!(read_one("a.docx", &archive(&[RELATIONS, ("word/document2.xml", &body)])).text, expect);

    let cell = |attributes: &str, text: &str| {
        format!("<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>")
    };
    let row = |cells: &[String]| format!("<table:table-row>{}</table:table-row>", cells.concat());
    let two = |one: &str, two: &str| [cell("", one), cell("", two)].concat();
    let covered = "<table:covered-table-cell/>".to_owned();
    let header = row(&[cell("", "pier"), cell("table:number-columns-spanned='2'", "year"), covered.clone()]);
    let rows = [
        format!("<table:table-header-rows>{header}</table:table-header-rows>"),
        row(&[cell("table:number-rows-spanned='2'", "north"), two("1", "2")]),
        row(&[covered, two("3", "4")]),
        row(&[cell("", "south"), two("5", "6")]),
    ];
    let content = format!("<c><table:table>{}</table:table></c>", rows.concat());
    assert_eq!(read_one("a.odt", &archive(&[("content.xml", &content)])).text, expect);

    let cell = |attributes: &str, text: &str| {
        format!("<a:tc {attributes}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>")
    };
    let row = |cells: &[String]| format!("<a:tr>{}</a:tr>", cells.concat());
    let two = |one: &str, two: &str| [cell("", one), cell("", two)].concat();
    let rows = [
        "<a:tblPr firstRow='1'/>".to_owned(),
        row(&[cell("", "pier"), cell("gridSpan='2'", "year"), cell("hMerge='1'", "")]),
        row(&[cell("rowSpan='2'", "north"), two("1", "2")]),
        row(&[cell("vMerge='1'", ""), two("3", "4")]),
        row(&[cell("", "south"), two("5", "6")]),
    ];
    let slide = format!("<sld><a:tbl>{}</a:tbl></sld>", rows.concat());
    let deck = archive(&[
        RELATIONS,
        ("word/document2.xml", "<p><sldId r:id='a'/></p>"),
        ("word/_rels/document2.xml.rels", "<R><Relationship Id='a' Type='x/slide' Target='s.xml'/></R>"),
        ("word/s.xml", &slide),
    ]);
    assert_eq!(read_one("a.pptx", &deck).text, expect);

    let rtf = r"{\rtf1 \trowd\trhdr\cellx1\clmgf\cellx2\clmrg\cellx3\intbl pier\cell year\cell\cell\row
\trowd\clvmgf\cellx1\cellx2\cellx3\intbl north\cell 1\cell 2\cell\row
\intbl\cell 3\cell 4\cell{\trowd\clvmrg\cellx1\cellx2\cellx3\row}
\trowd\cellx1\cellx2\cellx3\intbl south\cell 5\cell 6\cell\row}";
    assert_eq!(read_one("a.rtf", rtf.as_bytes()).text, expect);
}

#[test]
fn a_merged_cell_of_an_rtf_does_not_continue_in_the_next_table() {
    let rtf = r"{\rtf1 \trowd\clvmgf\cellx1\cellx2\intbl a\cell b\cell\row\pard\par
\trowd\clvmrg\cellx1\cellx2\intbl\cell c\cell\row}";
    assert_eq!(read_one("a.rtf", rtf.as_bytes()).text, "a | b\n\nc");
}
