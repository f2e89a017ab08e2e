//! XLSX, PPTX and ODT, made by hand and by the libraries that `fixtures/make.py` names.

use std::fs;

use sources::{Cause, Kind, Limit, ReadOptions, read};

use crate::archives::{ADVICE, RELATIONS, archive};
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
fn hidden_sheets_are_left_out_and_named() {
    let book = |state: &str| WORKBOOK.replace("name=\"Staff\"", &format!("name=\"Staff\" state=\"{state}\""));
    let read = |state: &str| {
        let source = read_one(
            "a.xlsx",
            &archive(&[
                RELATIONS,
                ("word/document2.xml", &book(state)),
                ("word/_rels/document2.xml.rels", PARTS),
                ("word/strings.xml", STRINGS),
                ("word/styles.xml", STYLES),
                ("word/s1.xml", "<worksheet><row><c><v>7</v></c></row></worksheet>"),
                ("word/s2.xml", "<worksheet><row><c><v>8</v></c></row></worksheet>"),
            ]),
        );
        (source.text, source.sections[0].title.clone())
    };
    let staff = Some("Staff".to_owned());
    for state in ["hidden", "veryHidden"] {
        assert_eq!(read(state), ("[sheet Staff: hidden, not read]\n\n# Empty\n\n8".to_owned(), staff.clone()));
    }
    assert_eq!(read("visible"), ("# Staff\n\n7\n\n# Empty\n\n8".to_owned(), staff));

    let style = "<style name='ta1'><table-properties display='false'/></style>";
    let row = "<table-row><table-cell><p>7</p></table-cell></table-row>";
    let tables = format!("<table name='x' style-name='ta1'>{row}</table><table name='y'>{row}</table>");
    let content = format!("<s>{style}{tables}</s>");
    let text = read_one("a.ods", &archive(&[("content.xml", &content)])).text;
    assert_eq!(text, "[sheet x: hidden, not read]\n\n# y\n\n7");
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

/// A workbook with one sheet of these rows, in which style 1 is this format of numbers.
fn sheet(format: &str, rows: &str) -> Vec<u8> {
    let styles = format!(
        "<s><numFmts><numFmt numFmtId='164' formatCode='{format}'/></numFmts><cellXfs><xf/><xf numFmtId='164'/></cellXfs></s>"
    );
    let sheet = format!("<worksheet>{rows}</worksheet>");
    archive(&[
        RELATIONS,
        ("word/document2.xml", WORKBOOK),
        ("word/_rels/document2.xml.rels", PARTS),
        ("word/strings.xml", STRINGS),
        ("word/styles.xml", &styles),
        ("word/s1.xml", &sheet),
        ("word/s2.xml", "<worksheet/>"),
    ])
}

#[test]
fn amounts_have_their_currency_and_blank_cells_no_value() {
    let header = "<row><c t='inlineStr'><is><t>cost</t></is></c><c t='inlineStr'><is><t>paid</t></is></c></row>";
    let row = |amount: &str, paid: &str| format!("<row><c s='1'><v>{amount}</v></c>{paid}</row>");
    let rows = [row("12.5", "<c t='b'><v>0</v></c>"), row("7", "<c t='b'/>")].concat();
    let workbook = sheet("#,##0.00\\ [$€-407]", &[header, &rows].concat());
    assert_eq!(read_one("a.xlsx", &workbook).text, "# Staff\n\ncost: 12.5 € | paid: FALSE\ncost: 7 €");
    // Without a header the amounts name no columns.
    let workbook = sheet("[$CHF-807]\\ 0", &row("12", "<c><v>1</v></c>").repeat(2));
    assert_eq!(read_one("a.xlsx", &workbook).text, "# Staff\n\nCHF 12 | 1\nCHF 12 | 1");
}

#[test]
fn words_of_formats_are_shown_in_cells_and_numbers_with_units_name_no_columns() {
    let text = |text: &str| format!("<c s='1' t='inlineStr'><is><t>{text}</t></is></c>");
    let number = |number: &str| format!("<c s='1'><v>{number}</v></c>");
    let row = |cells: &[String]| format!("<row>{}</row>", cells.concat());
    let read = |format: &str, rows: &[String]| read_one("a.xlsx", &sheet(format, &rows.concat())).text;
    let stock = [row(&[number("12"), number("-3")]), row(&[number("7"), text("none")])];
    assert_eq!(read("0 \"kg\";0 \"kg short\";0;\"item \"@", &stock), "# Staff\n\n12 kg | 3 kg short\n7 kg | item none");
    // Successive numbers after a name are names of columns.
    let quarters = [row(&[text("pier"), number("1"), number("2")]), row(&[text("north"), text("a"), text("b")])];
    assert_eq!(read("\"Q\"0", &quarters), "# Staff\n\npier: north | Q1: a | Q2: b");
    let cell =
        |value: &str, text: &str| format!("<table-cell value-type='float' value='{value}'><p>{text}</p></table-cell>");
    let row = |cells: &[String]| format!("<table-row>{}</table-row>", cells.concat());
    let rows =
        [row(&[cell("7.456", "7.46 kg"), cell("0.123", "0.12")]), row(&[cell("1", "yes"), cell("123456", "1,2E+05")])];
    let content = format!("<s><table name='x'>{}</table></s>", rows.concat());
    assert_eq!(read_one("a.ods", &archive(&[("content.xml", &content)])).text, "# x\n\n7.46 kg | 0.123\nyes | 123456");
}

#[test]
fn merged_cells_of_a_sheet_are_repeated_in_the_rows_below() {
    let expect = "\n\npier: north | part: wick | cost: 1\npier: north | part: oil | cost: 2\npier: north | cost: 3\n\
        pier: south | part: lamp | cost: 4";
    let cell = |place: &str, text: &str| format!("<c r='{place}' t='inlineStr'><is><t>{text}</t></is></c>");
    let row = |number: usize, cells: &[String]| format!("<row r='{number}'>{}</row>", cells.concat());
    let number = |place: &str, value: &str| format!("<c r='{place}'><v>{value}</v></c>");
    let rows = [
        row(1, &[cell("A1", "pier"), cell("B1", "part"), cell("C1", "cost")]),
        row(2, &[cell("A2", "north"), cell("B2", "wick"), number("C2", "1")]),
        row(3, &["<c r='A3' s='1'/>".to_owned(), cell("B3", "oil"), number("C3", "2")]),
        row(4, &["<c r='A4'/><c r='B4'/>".to_owned()]),
        row(5, &[number("C5", "3")]),
        row(6, &[cell("A6", "south"), cell("B6", "lamp"), number("C6", "4")]),
    ];
    let merged =
        "</sheetData><mergeCells><mergeCell ref='A2:A5'/><mergeCell ref='B1:C1'/><mergeCell ref='x'/></mergeCells>";
    let workbook = sheet("0", &format!("<sheetData>{}{merged}", rows.concat()));
    assert_eq!(read_one("a.xlsx", &workbook).text, format!("# Staff{expect}"));

    let cell = |attributes: &str, text: &str| format!("<table-cell {attributes}><p>{text}</p></table-cell>");
    let row = |cells: &[String]| format!("<table-row>{}</table-row>", cells.concat());
    let covered = || "<covered-table-cell/>".to_owned();
    let rows = [
        row(&[cell("", "pier"), cell("", "part"), cell("", "cost")]),
        row(&[cell("number-rows-spanned='4'", "north"), cell("", "wick"), cell("", "1")]),
        row(&[covered(), cell("", "oil"), cell("", "2")]),
        row(&[covered()]),
        row(&[covered(), "<table-cell/>".to_owned(), cell("", "3")]),
        row(&[cell("", "south"), cell("", "lamp"), cell("", "4")]),
    ];
    let content = format!("<s><table name='x'>{}</table></s>", rows.concat());
    assert_eq!(read_one("a.ods", &archive(&[("content.xml", &content)])).text, format!("# x{expect}"));
}

#[test]
fn a_workbook_of_too_many_formats_is_refused() {
    let styles = format!("0'/></numFmts><cellXfs>{}</cellXfs><numFmts><numFmt formatCode='", "<xf/>".repeat(500_001));
    let cause = read_bytes("a.xlsx", &sheet(&styles, "")).unwrap_err();
    assert!(matches!(cause, Cause::LimitExceeded(Limit::Records(500_000))), "{cause}");
}

#[test]
fn superscripts_and_formulas_are_read_in_every_type() {
    let strings =
        "<sst><si><r><t>10</t></r><r><rPr><vertAlign val='superscript'/></rPr><t>6</t></r><r><t> m</t></r></si></sst>";
    let workbook = archive(&[
        RELATIONS,
        ("word/document2.xml", WORKBOOK),
        ("word/_rels/document2.xml.rels", PARTS),
        ("word/strings.xml", strings),
        ("word/styles.xml", STYLES),
        ("word/s1.xml", "<worksheet><row><c t='s'><v>0</v></c></row></worksheet>"),
        ("word/s2.xml", "<worksheet/>"),
    ]);
    assert_eq!(read_one("a.xlsx", &workbook).text, "# Staff\n\n10^6 m");

    let run = |baseline: &str, text: &str| format!("<a:r><a:rPr baseline='{baseline}'/><a:t>{text}</a:t></a:r>");
    let runs = [run("0", "10"), run("30000", "6"), run("0", " H"), run("-25000", "2"), run("0", "O")].concat();
    let formula = "<a14:m><m:oMath><m:f><m:num><m:t>1</m:t></m:num><m:den><m:t>2</m:t></m:den></m:f></m:oMath></a14:m>";
    let slide = format!("<sld><sp><a:p>{runs}</a:p><a:p>{formula}</a:p></sp></sld>");
    let deck = archive(&[
        RELATIONS,
        ("word/document2.xml", "<p><sldId r:id='a'/></p>"),
        ("word/_rels/document2.xml.rels", "<R><Relationship Id='a' Type='x/slide' Target='s.xml'/></R>"),
        ("word/s.xml", &slide),
    ]);
    assert_eq!(read_one("a.pptx", &deck).text, "10^6 H2O\n1/2");

    let style = |name: &str, position: &str| {
        format!(
            "<style:style style:name='{name}'><style:text-properties style:text-position='{position}'/></style:style>"
        )
    };
    let span = |style: &str, text: &str| format!("<text:span text:style-name='{style}'>{text}</text:span>");
    let words = format!("10{} m, 101{} is ", span("T1", "6"), span("T2", "2"));
    let object = "<draw:frame><draw:object xlink:href='./Object 1'/></draw:frame>";
    let styles = style("T1", "super 58%") + &style("T2", "-33% 58%");
    let content = format!("<c>{styles}<text:p>{words}{object}</text:p></c>");
    let formula =
        "<math><semantics><mi>a</mi><annotation encoding='StarMath 5.0'>{a+b} over 2</annotation></semantics></math>";
    let report = archive(&[("content.xml", &content), ("Object 1/content.xml", formula)]);
    assert_eq!(read_one("a.odt", &report).text, "10^6 m, 101_2 is {a+b} over 2");
}

#[test]
fn the_words_of_a_slides_diagrams_are_read() {
    let point = |text: &str| format!("<dgm:pt><dgm:t><a:p><a:r><a:t>{text}</a:t></a:r></a:p></dgm:t></dgm:pt>");
    let relations = "<R><Relationship Id='b' Type='x/diagramData' Target='diagrams/data1.xml'/></R>";
    let deck = archive(&[
        RELATIONS,
        ("word/document2.xml", "<p><sldId r:id='a'/></p>"),
        ("word/_rels/document2.xml.rels", "<R><Relationship Id='a' Type='x/slide' Target='s.xml'/></R>"),
        ("word/s.xml", "<sld><sp><a:p><a:r><a:t>Parts</a:t></a:r></a:p></sp></sld>"),
        ("word/_rels/s.xml.rels", relations),
        ("word/diagrams/data1.xml", &format!("<dgm:dataModel>{}{}</dgm:dataModel>", point("wick"), point("oil"))),
    ]);
    assert_eq!(read_one("a.pptx", &deck).text, "Parts\n\nwick\noil");
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

/// A spreadsheet with a date of this day.
pub fn spreadsheet(day: &str) -> Vec<u8> {
    let cell = |attributes: &str, text: &str| {
        format!("<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>")
    };
    let row = |times: &str, cells: &str| {
        format!("<table:table-row table:number-rows-repeated='{times}'>{cells}</table:table-row>")
    };
    let covered = "<table:covered-table-cell><text:p>c</text:p></table:covered-table-cell>";
    let blank = "<table:table-cell/>";
    let note = "bo<text:s/>rn<office:annotation><text:p>a note</text:p></office:annotation>";
    let share = cell("table:number-columns-repeated='2'", "share");
    let header = [&*cell("", "name"), covered, &cell("", note), blank, &share].concat();
    let cells = [
        &*cell("office:value-type='string'", "Ann &amp;</text:p><text:p>Bo"),
        covered,
        &cell(&format!("office:value-type='date' office:date-value='{day}'"), "1 May"),
        blank,
        &cell("office:value-type='float' office:value='0.123456'", "0.12"),
        &cell("office:value-type='percentage' office:value='0.5'", "50%"),
    ]
    .concat();
    let formula = "<table:table-cell table:formula='of:=[.B2]*2'/>";
    let end = row("1048570", "<table:table-cell table:number-columns-repeated='16384'/>");
    let rows = [row("1", &header), row("2", &cells), row("1", formula), end].concat();
    let sheets = format!("<table:table table:name='Staff'>{rows}</table:table><table:table table:name='Empty'/>");
    archive(&[("content.xml", &format!("<office:spreadsheet><text:p>x</text:p>{sheets}</office:spreadsheet>"))])
}

#[test]
fn an_opendocument_spreadsheet_gives_a_section_for_each_sheet() {
    let source = read_one("a.ods", &spreadsheet("2024-05-01T10:02:00"));
    let row = "name: Ann & Bo | bo rn: 2024-05-01 10:02:00 | share: 0.123456 | share: 50%";
    assert_eq!(source.text, format!("# Staff\n\n{row}\n{row}\nname: =[.B2]*2"));
    assert_eq!((source.kind, source.sections.len()), (Kind::Ods, 1));
    assert_eq!(source.sections[0].title.as_deref(), Some("Staff"));
}

/// A presentation whose first slide has this title.
pub fn presentation(title: &str) -> Vec<u8> {
    let frame = |class: &str, content: &str| {
        format!("<draw:frame presentation:class='{class}'><draw:text-box>{content}</draw:text-box></draw:frame>")
    };
    let words = |text: &str| format!("<text:p>{text}</text:p>");
    let style = "<style:style style:name='T1'><style:text-properties style:text-position='super 58%'/></style:style>";
    let shape =
        "<draw:custom-shape><text:p>10<text:span text:style-name='T1'>6</text:span></text:p></draw:custom-shape>";
    let list = format!("<text:list><text:list-item>{}</text:list-item></text:list>", words("a wick"));
    let notes = frame("notes", &["<text:p/>", &words("Wait."), &words("Then go on.")].concat());
    let first = [
        frame("title", &words(title)),
        frame("outline", &list),
        frame("page-number", &words("7")),
        shape.to_owned(),
        format!("<presentation:notes><draw:page-thumbnail/>{notes}</presentation:notes>"),
    ];
    let cells = ["part", "price"].map(|text| format!("<table:table-cell>{}</table:table-cell>", words(text)));
    let table = format!("<table:table><table:table-row>{}</table:table-row></table:table>", cells.concat());
    let second = [frame("title", "<text:p/>"), format!("<draw:frame>{table}</draw:frame>")];
    let pages = [first.concat(), second.concat(), String::new()].map(|page| format!("<draw:page>{page}</draw:page>"));
    archive(&[("content.xml", &format!("<c>{style}{}</c>", pages.concat()))])
}

#[test]
fn an_opendocument_presentation_gives_a_section_for_each_slide() {
    let source = read_one("a.odp", &presentation("The lamps"));
    let first = "# The lamps\n\n- a wick\n\n10^6\n\nNotes: Wait.\n\nThen go on.";
    assert_eq!(source.text, format!("{first}\n\npart | price"));
    let titles: Vec<_> = source.sections.iter().map(|section| section.title.as_deref().unwrap()).collect();
    assert_eq!((source.kind, titles), (Kind::Odp, vec!["slide 1: The lamps", "slide 2"]));
}

#[test]
fn damaged_and_locked_office_files_say_why() {
    fn check(name: &str, parts: &[(&str, &str)], expect: &str) {
        assert_eq!(complaint(name, &archive(parts)), expect.replace("{}", ADVICE));
    }
    let main = |xml| ("word/document2.xml", xml);
    let parts = ("word/_rels/document2.xml.rels", PARTS);
    check(
        "a.xlsx",
        &[("x", "y")],
        "damaged XLSX: it does not say which part is the document; it may be of another format; open it in the program \
         that made it and save it anew",
    );
    check("a.xlsx", &[RELATIONS, main(WORKBOOK)], "damaged XLSX: the sheet Staff is missing; {}");
    check("a.xlsx", &[RELATIONS, main(WORKBOOK), parts], "damaged XLSX: its part word/strings.xml: it is missing; {}");
    check("a.pptx", &[RELATIONS, main("<p><sldId id='1' r:id='z'/></p>")], "damaged PPTX: slide 1 is missing; {}");
    check("a.pptx", &[RELATIONS, main("<p/>")], "the file contains no text");
    check("a.odt", &[("x", "y")], "damaged ODT: its part content.xml: it is missing; {}");
    check(
        "a.odt",
        &[("content.xml", "<p>x</q>")],
        "damaged ODT: its part content.xml: invalid XML at byte 4: ill-formed document: expected `</p>`, but `</q>` was \
         found; {}",
    );
    let manifest = ("META-INF/manifest.xml", "<m><encryption-data/></m>");
    check("a.odt", &[manifest, ("content.xml", "x")], "the file is encrypted; save a copy without a password");
    check("a.ods", &[("x", "y")], "damaged ODS: its part content.xml: it is missing; {}");
    check("a.odp", &[manifest, ("content.xml", "x")], "the file is encrypted; save a copy without a password");
    let wide =
        "<table><table-row><table-cell number-columns-repeated='99999'><p>x</p></table-cell></table-row></table>";
    check("a.ods", &[("content.xml", wide)], "a row has more columns than the limit of 16384; save it as text");
    assert_eq!(
        complaint("a.xlsx", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"),
        "damaged XLSX: the file is in the older .xls format; save it as .xlsx"
    );
    for name in ["lamps.xlsx", "lamps.pptx", "lamps.odt"] {
        let whole = fs::read(fixture(name)).unwrap();
        let cause = read_bytes(name, &whole[..whole.len() * 2 / 3]).unwrap_err();
        assert!(matches!(cause, Cause::Damaged { .. }), "{name}: {cause}");
    }
    let expect = format!("damaged XLSX: its part word/s1.xml: it has no string 7; {ADVICE}");
    assert_eq!(complaint("a.xlsx", &no_string()), expect);
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
