//! Archives.

use std::fmt::Write as _;
use std::io::{Cursor, Write};

use sources::Limit;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::{GIB, MOST, TEXT, check, check_largest};

fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

const RELATIONS: (&str, &str) =
    ("_rels/.rels", r#"<Relationships><Relationship Type="x/officeDocument" Target="/d.xml"/></Relationships>"#);
const CONTAINER: (&str, &str) = ("META-INF/container.xml", r#"<container><rootfile full-path="p.opf"/></container>"#);

pub fn bombs() {
    let unpacked = Limit::UnpackedBytes(128 << 20);
    let nesting = Limit::Nesting(512);
    let docx = |body: &str| archive(&[RELATIONS, ("d.xml", body)]);
    check("spaces.docx", &docx(&" ".repeat(200 << 20)), unpacked, GIB);
    check("cells.docx", &docx(&"<tc>".repeat(10_000_000)), nesting, GIB);
    check("rows.docx", &docx(&"<tr>".repeat(10_000_000)), nesting, GIB);
    let relations = "<a/>".repeat(50_000_000);
    check("relations.docx", &archive(&[("_rels/.rels", &relations)]), unpacked, GIB);
    let package = format!("<package>{}</package>", "<itemref idref='a'/>".repeat(10_000_000));
    check("spine.epub", &archive(&[CONTAINER, ("p.opf", &package)]), unpacked, GIB);

    let content = "<list>".repeat(10_000_000);
    check("lists.odt", &archive(&[("content.xml", &content)]), nesting, GIB);
    let items = ["<list>".repeat(500), "<list-item><p>x</p></list-item>".repeat(4_300_000), "</list>".repeat(500)];
    check("items.odt", &archive(&[("content.xml", &items.concat())]), TEXT, MOST);
    drop(items);
    let sheet = |row: &str| archive(&[("content.xml", &format!("<table>{row}</table>"))]);
    let row = format!(
        "<table-row number-rows-repeated='999999'><table-cell><p>{}</p></table-cell></table-row>",
        "x".repeat(99)
    );
    check("rows.ods", &sheet(&row.repeat(2)), TEXT, MOST);
    let row = format!(
        "<table-row number-rows-repeated='900000'><table-cell><p>{}</p></table-cell></table-row>",
        "x".repeat(99)
    );
    check_largest("rows.ods", &sheet(&row));
    let long = format!("<table-row><table-cell><p>{}", "word ".repeat(20_000_000));
    check("cell.ods", &sheet(&long), Limit::CellBytes(16 << 20), MOST);
    drop(long);
    let cell = format!("<table-cell number-columns-repeated='9000'><p>{}</p></table-cell>", "x".repeat(99));
    check("cells.ods", &sheet(&format!("<table-row>{cell}</table-row>").repeat(1000)), TEXT, MOST);
    let slides = format!("<c>{}</c>", "<page/>".repeat(10_000_000));
    check("slides.odp", &archive(&[("content.xml", &slides)]), Limit::ArchiveEntries(20_000), MOST);
    drop(slides);
    let words = ["<p><r><t>", &"word ".repeat(26_000_000), "</t></r></p>"].concat();
    check("text.docx", &docx(&words), TEXT, MOST);
    check("text.pptx", &pptx(&words[..60_000_000]), TEXT, MOST);
    drop(words);
    let row = format!("<tbl><tr>{}</tr></tbl>", "<tc/>".repeat(5_000_000));
    check("row.docx", &docx(&row), Limit::Columns(16_384), MOST);
    drop(row);
    let formula = Limit::FormulaBytes(1 << 20);
    check("formula.docx", &docx(&["<oMath><t>", &"x".repeat(100 << 20)].concat()), formula, MOST);
    check("operands.docx", &docx(&["<oMath><d>", &"<e/>".repeat(30_000_000)].concat()), formula, MOST);
    // Elements whose content is left out, parts that list others, and attributes.
    check("left_out.docx", &docx(&["<Fallback>", &"<a>".repeat(44_000_000)].concat()), nesting, MOST);
    check("relations.docx", &archive(&[("_rels/.rels", &"<a>".repeat(44_000_000))]), nesting, MOST);
    let entries = Limit::ArchiveEntries(20_000);
    let package = format!("<package>{}</package>", "<itemref/>".repeat(13_000_000));
    check("refs.epub", &archive(&[CONTAINER, ("p.opf", &package)]), entries, MOST);
    drop(package);
    let sheets = format!("<workbook>{}</workbook>", "<sheet/>".repeat(16_000_000));
    check("sheets.xlsx", &archive(&[RELATIONS, ("d.xml", &sheets)]), entries, MOST);
    drop(sheets);
    let slides = format!("<p>{}</p>", "<sldId r:id=''/>".repeat(8_000_000));
    check("slides.pptx", &archive(&[RELATIONS, ("d.xml", &slides)]), entries, MOST);
    drop(slides);
    let ends = "<a/>".repeat(30_000_000);
    check("ends.epub", &book(&[&ends]), Limit::HtmlBytes(32 << 20), MOST);
    drop(ends);
    let chapter = ["<p>", &"word ".repeat(6_600_000)].concat();
    check("text.epub", &book(&[&*chapter; 4]), TEXT, MOST);
    drop(chapter);
    let sheet = |strings: &str, rows: &str| {
        let types = r#"<R><Relationship Type="x/sharedStrings" Target="s.xml"/><Relationship Id="a" Type="x/worksheet" Target="w.xml"/></R>"#;
        let workbook = "<workbook><sheet name='x' r:id='a'/></workbook>";
        archive(&[RELATIONS, ("d.xml", workbook), ("_rels/d.xml.rels", types), ("s.xml", strings), ("w.xml", rows)])
    };
    let row = format!("<row>{}", "<c><v>1</v></c>".repeat(5_000_000));
    check("row.xlsx", &sheet("<sst/>", &row), Limit::Columns(16_384), GIB);
    let (string, rows) = ("a".repeat(1 << 20), "<row><c t='s'><v>0</v></c></row>".repeat(1000));
    check("strings.xlsx", &sheet(&format!("<si><t>{string}</t></si>"), &rows), Limit::TextBytes(96 << 20), GIB / 2);
    let row = format!("<row>{}</row>", "<c t='s'><v>0</v></c>".repeat(1000));
    check("long.xlsx", &sheet(&format!("<si><t>{string}</t></si>"), &row), Limit::TextBytes(96 << 20), GIB / 2);
    let cell = "<row><c t='s'><v>0</v></c></row>";
    let words = format!("<si><t>{}</t></si>", "a ".repeat(60 << 20));
    check("cell.xlsx", &sheet(&words, cell), Limit::CellBytes(16 << 20), GIB / 2);

    // Blank cells are refused or cost nothing.
    let blank = format!("<si><t>{}</t></si><si><t>x</t></si>", " ".repeat(16_000_000));
    let row = format!("<row>{}</row>", "<c t='s'><v>0</v></c>".repeat(10_000)).repeat(100);
    let row = [row.as_str(), "<row><c t='s'><v>1</v></c></row>"].concat();
    check_largest("blank.xlsx", &sheet(&blank, &row));

    let entry = [b"PK\x01\x02".as_slice(), &[0; 42]].concat();
    check("entries.epub", &entry.repeat(1_000_000), Limit::ArchiveEntries(20_000), GIB / 4);
}

/// A presentation of one slide.
fn pptx(words: &str) -> Vec<u8> {
    let types = r#"<R><Relationship Id="a" Type="x/slide" Target="s.xml"/></R>"#;
    let slide = format!("<sld>{words}</t></r></p></sld>");
    let slides = "<p><sldId r:id='a'/><sldId r:id='a'/></p>";
    archive(&[RELATIONS, ("d.xml", slides), ("_rels/d.xml.rels", types), ("s.xml", &slide)])
}

/// A book of these chapters.
fn book(chapters: &[&str]) -> Vec<u8> {
    let each = |xml: &dyn Fn(usize) -> String| (0..chapters.len()).map(xml).collect::<String>();
    let items = each(&|at| format!("<item id='c{at}' href='c{at}.html' media-type='application/xhtml+xml'/>"));
    let refs = each(&|at| format!("<itemref idref='c{at}'/>"));
    let package = format!("<package><manifest>{items}</manifest><spine>{refs}</spine></package>");
    let names: Vec<String> = (0..chapters.len()).map(|at| format!("c{at}.html")).collect();
    let chapters = names.iter().zip(chapters).map(|(name, chapter)| (name.as_str(), *chapter));
    archive(&[CONTAINER, ("p.opf", package.as_str())].into_iter().chain(chapters).collect::<Vec<_>>())
}

pub fn largest() {
    let words = "word ".repeat(20_100_000);
    let document = format!("<d>{}<p><r><t>{words}</t></r></p></d>", " ".repeat(30_000_000));
    check_largest("text.docx", &archive(&[RELATIONS, ("d.xml", &document)]));
    let cell = format!("<d>{}<tbl><tr><tc><t>{words}</t></tc></tr></tbl></d>", " ".repeat(30_000_000));
    check_largest("cell.docx", &archive(&[RELATIONS, ("d.xml", &cell)]));
    drop((document, cell, words));
    let cells = format!("<tr>{}</tr>", "<tc><t>x</t></tc>".repeat(10_000)).repeat(780);
    check_largest("cells.docx", &archive(&[RELATIONS, ("d.xml", &["<tbl>", &cells, "</tbl>"].concat())]));
    drop(cells);
    let mut attributes = String::new();
    (0..9_000_000).for_each(|i| write!(attributes, " a{i}=''").unwrap());
    let document = format!("<d><p><pStyle{attributes}/><t>x</t></p></d>");
    drop(attributes);
    check_largest("attributes.docx", &archive(&[RELATIONS, ("d.xml", &document)]));
    let chapter = ["<p>", &"word ".repeat(6_600_000)].concat();
    check_largest("text.epub", &book(&[&*chapter; 3]));
}
