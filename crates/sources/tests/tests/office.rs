//! XLSX, PPTX and ODT, made by hand and by the libraries that `fixtures/make.py` names.

use std::fs;

use sources::{Cause, Kind, ReadOptions, read};

use crate::archives::{RELATIONS, archive};
use crate::{complaint, fixture, read_bytes, read_one};

const WORKBOOK: &str =
    r#"<workbook><sheets><sheet name="Staff" sheetId="1" r:id="a"/><sheet name="Empty" r:id="b"/></sheets></workbook>"#;
const PARTS: &str = r#"<R><Relationship Id="a" Type="x/worksheet" Target="s1.xml"/><Relationship Id="b" Type="x/worksheet" Target="/word/s2.xml"/>
    <Relationship Id="c" Type="x/sharedStrings" Target="strings.xml"/><Relationship Id="d" Type="x/styles" Target="styles.xml"/></R>"#;
const STRINGS: &str =
    "<sst><si><t>name</t></si><si><r><t>bo</t></r><r><t xml:space='preserve'>rn </t></r><rPh><t>x</t></rPh></si></sst>";
const STYLES: &str = r#"<styleSheet><numFmts><numFmt numFmtId="164" formatCode="dd\.mm\.yyyy"/></numFmts>
    <cellStyleXfs><xf numFmtId="9"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs></styleSheet>"#;

/// A workbook with a date of this number.
pub fn workbook(number: &str) -> Vec<u8> {
    let sheet = format!(
        r#"<worksheet><row><c r="A1" t="s"><v>0</v></c><c t="s"><v>1</v></c><c r="D1" t="inlineStr"><is><t>é</t></is></c></row>
        <row><c r="A2" t="str"><f>A1</f><v>Ann &amp; Bo</v></c><c r="B2" s="1"><v>{number}</v></c><c r="D2" t="b"><v>1</v></c></row></worksheet>"#
    );
    archive(&[
        RELATIONS,
        ("word/document2.xml", WORKBOOK),
        ("word/_rels/document2.xml.rels", PARTS),
        ("word/strings.xml", STRINGS),
        ("word/styles.xml", STYLES),
        ("word/s1.xml", &sheet),
        ("word/s2.xml", "<worksheet/>"),
    ])
}

#[test]
fn a_workbook_gives_a_section_for_each_sheet_with_rows_and_dates() {
    let source = read_one("a.xlsx", &workbook("45413"));
    assert_eq!(source.text, "# Staff\n\nname: Ann & Bo | born: 2024-05-01 | é: TRUE");
    assert_eq!(source.sections[0].title.as_deref(), Some("Staff"));
    assert_eq!(source.sections.len(), 1);
    assert_eq!(source.kind, Kind::Xlsx);
}

#[test]
fn a_formula_that_no_program_has_computed_is_shown_itself() {
    let sheet = "<worksheet><row><c r='A1' t='str'><v>sum</v></c></row><row><c r='A2'><f>B2*2 &amp; \"x\"</f><v></v></c></row>\
        <row><c r='A3'><f>1+1</f><v>2</v></c></row></worksheet>";
    let source = read_one(
        "a.xlsx",
        &archive(&[
            RELATIONS,
            ("word/document2.xml", WORKBOOK),
            ("word/_rels/document2.xml.rels", PARTS),
            ("word/strings.xml", STRINGS),
            ("word/styles.xml", STYLES),
            ("word/s1.xml", sheet),
            ("word/s2.xml", "<worksheet/>"),
        ]),
    );
    assert!(source.text.ends_with("sum\n=B2*2 & \"x\"\n2"), "{}", source.text);
}

#[test]
fn files_of_the_libraries_are_read() {
    fn check(name: &str, title: Option<&str>, sections: &[&str], text: &str) {
        let sources = read(&fixture(name), &ReadOptions::default()).unwrap();
        crate::check_spans(&sources[0]);
        assert_eq!(sources[0].text, text, "{name}");
        assert_eq!(sources[0].title.as_deref(), title, "{name}");
        let found: Vec<_> = sources[0].sections.iter().map(|section| section.title.as_deref().unwrap_or("")).collect();
        assert_eq!(found, sections, "{name}");
    }
    check(
        "lamps.xlsx",
        Some("Lamps"),
        &["Lamps", "Costs"],
        "# Lamps\n\nLamps of the harbour\npier: north | lit: 1921-05-03 | checked: 1921-05-04 10:02:00 | share: 12.5% | height: 3.5\n\
         pier: south | lit: 1922-01-31 | share: 50% | height: 12\n\n# Costs\n\nwick | 12\noil | 0.5",
    );
    check(
        "lamps.pptx",
        Some("The lamps"),
        &["slide 1: The lamps", "slide 2"],
        "# The lamps\n\nof the harbour & the pier\n\nNotes: Wait for questions.\n\nThe lamp was out.\nA new wick.\n\n\
         part | price\nwick | 12",
    );
    check(
        "lamps.odt",
        Some("Lamp report"),
        &["Lamp report"],
        "# The north pier\n\nThe lamp was out for two hours. [note: By his own watch.]\n\n- a wick\n- oil\n\n\
         Part | Price\nwick | 12\n\nSigned: Orsini",
    );
}

#[test]
fn damaged_and_locked_office_files_say_why() {
    fn check(name: &str, parts: &[(&str, &str)], expect: &str) {
        assert_eq!(complaint(name, &archive(parts)), expect);
    }
    let main = |xml| ("word/document2.xml", xml);
    let parts = ("word/_rels/document2.xml.rels", PARTS);
    check("a.xlsx", &[("x", "y")], "damaged XLSX: its relations name no main document");
    check("a.xlsx", &[RELATIONS, main(WORKBOOK)], "damaged XLSX: the sheet Staff has no part");
    check("a.xlsx", &[RELATIONS, main(WORKBOOK), parts], "damaged XLSX: word/strings.xml is not in the archive");
    check("a.pptx", &[RELATIONS, main("<p><sldId id='1' r:id='z'/></p>")], "damaged PPTX: slide 1 has no part");
    check("a.pptx", &[RELATIONS, main("<p/>")], "the file contains no text");
    check("a.odt", &[("x", "y")], "damaged ODT: content.xml is not in the archive");
    check(
        "a.odt",
        &[("content.xml", "<p>x</q>")],
        "damaged ODT: XML at byte 4: ill-formed document: expected `</p>`, but `</q>` was found",
    );
    let manifest = ("META-INF/manifest.xml", "<m><encryption-data/></m>");
    check("a.odt", &[manifest, ("content.xml", "x")], "the file is encrypted; save a copy without a password");
    assert_eq!(
        complaint("a.xlsx", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"),
        "damaged XLSX: the file is in the older .xls format; save it as .xlsx"
    );
    for name in ["lamps.xlsx", "lamps.pptx", "lamps.odt"] {
        let whole = fs::read(fixture(name)).unwrap();
        let cause = read_bytes(name, &whole[..whole.len() * 2 / 3]).unwrap_err();
        assert!(matches!(cause, Cause::Damaged { .. }), "{name}: {cause}");
    }
    assert!(complaint("a.xlsx", &no_string()).starts_with("damaged XLSX: it has no string 7"));
}

/// A workbook with a cell that refers to a string that is not there.
fn no_string() -> Vec<u8> {
    let sheet = "<worksheet><row><c t='s'><v>7</v></c></row></worksheet>";
    archive(&[
        RELATIONS,
        ("word/document2.xml", WORKBOOK),
        ("word/_rels/document2.xml.rels", PARTS),
        ("word/strings.xml", STRINGS),
        ("word/styles.xml", STYLES),
        ("word/s1.xml", sheet),
        ("word/s2.xml", "<worksheet/>"),
    ])
}
