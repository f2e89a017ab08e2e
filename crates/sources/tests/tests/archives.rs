//! DOCX and EPUB archives made by hand: the unusual ones, the damaged ones and the hostile ones.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::{complaint, read_one};

pub fn archive(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

const CONTAINER: (&str, &str) =
    ("META-INF/container.xml", r#"<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>"#);
const PACKAGE: (&str, &str) = (
    "OPS/book.opf",
    r#"<package><manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest>
       <spine><itemref idref="c"/></spine></package>"#,
);
pub const RELATIONS: (&str, &str) = (
    "_rels/.rels",
    r#"<Relationships><Relationship Type="x/officeDocument" Target="/word/document2.xml"/></Relationships>"#,
);

#[test]
fn an_epub_chapter_with_an_empty_title_element_is_not_swallowed() {
    let chapter = "<html><head><title/></head><body><a id='top'/><p>Words &amp; more<i/>.</p></body></html>";
    let source = read_one("a.epub", &archive(&[CONTAINER, PACKAGE, ("OPS/c.xhtml", chapter)]));
    assert_eq!(source.text, "Words & more.");
    assert_eq!(source.sections[0].title, None);
}

#[test]
fn chapters_of_older_books_are_read() {
    let package = "<package><manifest><item id='c' href='c.html' media-type='text/x-oeb1-document'/><item id='i' href='i.png' \
        media-type='image/png'/></manifest><spine><itemref idref='c'/><itemref idref='i'/></spine></package>";
    let book = archive(&[CONTAINER, ("OPS/book.opf", package), ("OPS/c.html", "<h1>Dawn</h1>")]);
    assert_eq!(read_one("a.epub", &book).text, "# Dawn");
}

#[test]
fn missing_and_damaged_chapters_of_an_epub_are_named() {
    let item = |id: &str| format!("<item id='{id}' href='{id}.xhtml' media-type='application/xhtml+xml'/>");
    let spine = ["a", "b", "gone", "c"].map(|id| format!("<itemref idref='{id}'/>")).concat();
    let manifest = ["a", "b", "c"].map(item).concat();
    let package = format!("<package><manifest>{manifest}</manifest><spine>{spine}</spine></package>");
    let chapters = [("OPS/a.xhtml", "<h1>Dawn</h1>"), ("OPS/c.xhtml", "<h1>Noon</h1>")];
    let parts = [&chapters[..], &[CONTAINER, ("OPS/book.opf", package.as_str())]].concat();
    let source = read_one("a.epub", &archive(&parts));
    let missing = format!("[chapter 2 is left out: damaged EPUB: its part OPS/b.xhtml: it is missing; {ADVICE}]");
    let gone = "[chapter 3 is left out: damaged EPUB: its spine refers to gone, which is not in its manifest]";
    assert_eq!(source.text, format!("# Dawn\n\n{missing}\n\n{gone}\n\n# Noon"));
    let titles: Vec<_> = source.sections.iter().map(|section| section.title.as_deref()).collect();
    assert_eq!(titles, [Some("Dawn"), None, None, Some("Noon")]);
}

#[test]
fn a_docx_names_its_parts_and_styles_itself() {
    let body = r#"<w:document><w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Titel</w:t></w:r></w:p>
        <w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>Punkt</w:t></w:r></w:p>
        <w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:p>
        <w:p><w:pPr><w:numPr><w:numId w:val="0"/></w:numPr></w:pPr><w:r><w:t>keiner</w:t></w:r></w:p>
        <w:p><w:pPr><w:pPrChange><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr></w:pPrChange></w:pPr><w:r><w:t>Te</w:t><w:t>xt</w:t></w:r></w:p>
        <w:p><w:r><mc:AlternateContent><mc:Choice><w:t>einmal</w:t></mc:Choice><mc:Fallback/><mc:Fallback><w:t>zweimal</w:t>
        </mc:Fallback></mc:AlternateContent><w:noBreakHyphen/><w:t>&#xe4;&unknown;</w:t></w:r></w:p>
        <w:p><w:r><w:ruby><w:rt><w:r><w:t>かんじ</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>漢字</w:t></w:r></w:rubyBase></w:ruby>
        </w:r><w:r><w:t>の本</w:t></w:r></w:p>
        <w:p><w:pPr><w:rPr><w:vertAlign w:val="superscript"/></w:rPr></w:pPr><w:r><w:t>10</w:t></w:r>
        <w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>1</w:t></w:r><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>2</w:t></w:r>
        <w:r><w:t xml:space="preserve"> m</w:t></w:r></w:p></w:document>"#;
    let parts = [
        RELATIONS,
        ("word/document2.xml", body),
        ("word/_rels/document2.xml.rels", r#"<R><Relationship Type="x/styles" Target="s.xml"/></R>"#),
        (
            "word/s.xml",
            r#"<w:styles><w:style w:styleId="berschrift1"><w:name w:val="Heading 1"/></w:style></w:styles>"#,
        ),
    ];
    let source = read_one("a.docx", &archive(&parts));
    assert_eq!(source.text, "# Titel\n\n- Punkt\n\nkeiner\n\nText\n\neinmal-ä\n\n漢字の本\n\n10^12 m");
    assert_eq!(source.title.as_deref(), Some("Titel"));
}

#[test]
fn lists_and_headings_of_a_docx_have_their_numbers() {
    let relations =
        r#"<R><Relationship Type="x/styles" Target="s.xml"/><Relationship Type="x/numbering" Target="n.xml"/></R>"#;
    let level = |level: u32, format: &str, text: &str| {
        format!(
            "<w:lvl w:ilvl='{level}'><w:start w:val='1'/><w:numFmt w:val='{format}'/><w:lvlText w:val='{text}'/></w:lvl>"
        )
    };
    let list = |id: u32, levels: &str| format!("<w:abstractNum w:abstractNumId='{id}'>{levels}</w:abstractNum>");
    let definitions = [
        list(0, &[level(0, "decimal", "%1"), level(1, "decimal", "%1.%2")].concat()),
        list(1, &level(0, "lowerLetter", "%1)")),
        list(2, &level(0, "bullet", "o")),
    ];
    let lists = (0..3).map(|id| format!("<w:num w:numId='{}'><w:abstractNumId w:val='{id}'/></w:num>", id + 1));
    let numbering = format!("<w:numbering>{}{}</w:numbering>", definitions.concat(), lists.collect::<String>());
    let style = |level: u32| {
        let list = format!("<w:numPr><w:ilvl w:val='{}'/><w:numId w:val='1'/></w:numPr>", level - 1);
        format!("<w:style w:styleId='h{level}'><w:name w:val='heading {level}'/><w:pPr>{list}</w:pPr></w:style>")
    };
    let styles = format!("<w:styles>{}{}</w:styles>", style(1), style(2));
    let paragraph =
        |properties: &str, text: &str| format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>");
    let heading = |level: u32, text: &str| paragraph(&format!("<w:pStyle w:val='h{level}'/>"), text);
    let item = |list: u32, text: &str| {
        paragraph(&format!("<w:numPr><w:ilvl w:val='0'/><w:numId w:val='{list}'/></w:numPr>"), text)
    };
    let unnumbered = paragraph("<w:pStyle w:val='h2'/><w:numPr><w:numId w:val='0'/></w:numPr>", "Annex");
    let paragraphs = [
        heading(1, "Lease"),
        heading(2, "Term"),
        item(2, "a year"),
        item(2, "or two"),
        item(3, "paid"),
        heading(2, "End"),
        heading(1, "Rent"),
        heading(2, "Sum"),
        unnumbered,
    ];
    let document = format!("<w:document>{}</w:document>", paragraphs.concat());
    let parts = [
        RELATIONS,
        ("word/document2.xml", document.as_str()),
        ("word/_rels/document2.xml.rels", relations),
        ("word/s.xml", styles.as_str()),
        ("word/n.xml", numbering.as_str()),
    ];
    let expect = "# 1 Lease\n\n## 1.1 Term\n\na) a year\n\nb) or two\n\n- paid\n\n## 1.2 End\n\n# 2 Rent\n\n## 2.1 Sum\n\n\
        ## Annex";
    assert_eq!(read_one("a.docx", &archive(&parts)).text, expect);
}

#[test]
fn numbers_of_a_docx_count_what_its_readers_see() {
    let relations =
        r#"<R><Relationship Type="x/styles" Target="s.xml"/><Relationship Type="x/numbering" Target="n.xml"/></R>"#;
    let numbering = "<w:numbering><w:abstractNum w:abstractNumId='0'><w:lvl w:ilvl='0'><w:start w:val='1'/><w:lvlText w:val='%1.'/>\
        </w:lvl></w:abstractNum><w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num></w:numbering>";
    let styles = "<w:styles><w:style w:styleId='item'><w:name w:val='Item'/><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr>\
        </w:style><w:style w:styleId='own'><w:name w:val='Own'/><w:basedOn w:val='item'/></w:style>\
        <w:style w:styleId='loop'><w:basedOn w:val='loop'/></w:style></w:styles>";
    let paragraph = |style: &str, properties: &str, text: &str| {
        let properties = format!("<w:pPr><w:pStyle w:val='{style}'/>{properties}</w:pPr>");
        format!("<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>")
    };
    let deleted = "<w:p><w:pPr><w:pStyle w:val='item'/><w:rPr><w:del/></w:rPr></w:pPr><w:del><w:r><w:delText>x</w:delText></w:r></w:del></w:p>";
    let cell = |style: &str, text: &str| format!("<w:tc>{}</w:tc>", paragraph(style, "", text));
    let paragraphs = [
        paragraph("item", "", "one"),
        deleted.to_owned(),
        paragraph("own", "", "two"),
        format!("<w:tbl><w:tr>{}{}</w:tr></w:tbl>", cell("item", "three"), cell("loop", "none")),
        paragraph("own", "<w:numPr><w:numId w:val='0'/></w:numPr>", "none"),
        paragraph("own", "<w:rPr><w:ins/></w:rPr>", "four"),
    ];
    let document = format!("<w:document>{}</w:document>", paragraphs.concat());
    let parts = [
        RELATIONS,
        ("word/document2.xml", document.as_str()),
        ("word/_rels/document2.xml.rels", relations),
        ("word/s.xml", styles),
        ("word/n.xml", numbering),
    ];
    let expect = "1. one\n\n2. two\n\n3. three | none\n\nnone\n\n4. four";
    assert_eq!(read_one("a.docx", &archive(&parts)).text, expect);
}

#[test]
fn a_text_box_takes_no_mark_from_the_paragraph_around_it() {
    let text_box = "<w:r><w:pict><w:txbxContent><w:p><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr><w:r><w:t>in a box\
        </w:t></w:r></w:p><w:p><w:r><w:t>two</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>";
    let item = "<w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr>";
    let body = format!("<w:p>{item}{text_box}<w:r><w:t>around</w:t></w:r></w:p><w:p><w:r><w:t>next</w:t></w:r></w:p>");
    let docx = archive(&[RELATIONS, ("word/document2.xml", &body)]);
    assert_eq!(read_one("a.docx", &docx).text, "- in a box\n\ntwo\n\n- around\n\nnext");
}

#[test]
fn fields_of_older_forms_have_their_values() {
    let field = |data: &str| format!("<w:r><w:fldChar><w:ffData>{data}</w:ffData></w:fldChar></w:r>");
    let text = |text: &str| format!("<w:r><w:t>{text}</w:t></w:r>");
    let entries = ["oil", "wick", "lamp"].map(|entry| format!("<w:listEntry w:val='{entry}'/>")).concat();
    let list = |data: &str| field(&format!("<w:ddList>{data}{entries}</w:ddList>"));
    let runs = [
        field("<w:checkBox><w:default w:val='0'/><w:checked/></w:checkBox>") + &text("a"),
        field("<w:checkBox><w:default w:val='1'/><w:checked w:val='0'/></w:checkBox>") + &text(" b"),
        field("<w:checkBox><w:default w:val='1'/></w:checkBox>") + &text("c"),
        list("<w:result w:val='2'/><w:default w:val='1'/>"),
        list("<w:default w:val='1'/>"),
        list(""),
        list("<w:result w:val='9'/>"),
        "<w:r><w:rPr><w:vanish/></w:rPr><w:fldChar><w:ffData><w:checkBox/></w:ffData></w:fldChar></w:r>".to_owned(),
    ];
    let body = runs.map(|run| format!("<w:p>{run}</w:p>")).concat();
    let expect = "☒ a\n\n☐ b\n\n☒ c\n\nlamp\n\nwick\n\noil";
    assert_eq!(read_one("a.docx", &archive(&[RELATIONS, ("word/document2.xml", &body)])).text, expect);
}

#[test]
fn hidden_text_of_a_docx_is_left_out() {
    let run = |properties: &str, text: &str| format!("<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>");
    let runs = [
        run("", "a"),
        run("<w:vanish/>", "b"),
        run("<w:vanish w:val='0'/>", "c"),
        run("<w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange>", "d"),
    ];
    let body = format!("<w:p><w:pPr><w:rPr><w:vanish/></w:rPr></w:pPr>{}</w:p>", runs.concat());
    assert_eq!(read_one("a.docx", &archive(&[RELATIONS, ("word/document2.xml", &body)])).text, "acd");
}

#[test]
fn what_a_docx_shows_in_fields_without_a_value_is_left_out() {
    let field = |properties: &str, text: &str| {
        format!(
            "<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent><w:r><w:t>{text}</w:t></w:r></w:sdtContent></w:sdt>"
        )
    };
    let label = |text: &str| format!("<w:r><w:t>{text}</w:t></w:r>");
    let fields = [
        label("Date: "),
        field("<w:showingPlcHdr/><w:date/>", "Enter a date."),
        label(" Name: "),
        field("<w:text/>", "Ann"),
    ];
    let body = format!("<w:p>{}</w:p>", fields.concat());
    assert_eq!(read_one("a.docx", &archive(&[RELATIONS, ("word/document2.xml", &body)])).text, "Date: Name: Ann");
}

#[test]
fn symbols_of_fonts_are_read_in_a_docx() {
    let symbol = |font: &str, code: &str| format!("<w:r><w:sym w:font='{font}' w:char='{code}'/></w:r>");
    let symbols =
        [("Symbol", "F0A3"), ("Symbol", "F061"), ("Wingdings", "F0FC"), ("MS Gothic", "2612"), ("Arial", "x")];
    let symbols: String = symbols.iter().map(|(font, code)| symbol(font, code)).collect();
    let run = "<w:r><w:rPr><w:rFonts w:ascii='Symbol' w:hAnsi='Symbol'/></w:rPr><w:t>\u{f062}x</w:t></w:r>";
    let body = format!("<w:p><w:r><w:t>1 </w:t></w:r>{symbols}{run}<w:r><w:t>y</w:t></w:r></w:p>");
    assert_eq!(read_one("a.docx", &archive(&[RELATIONS, ("word/document2.xml", &body)])).text, "1 ≤α✓☒βxy");
}

/// What damaged archives advise.
pub const ADVICE: &str = "open the file in the program that made it and save it anew, or get another copy";

#[test]
fn broken_archives_say_where() {
    fn check(name: &str, parts: &[(&str, &str)], expect: &str) {
        assert_eq!(complaint(name, &archive(parts)), expect.replace("{}", ADVICE));
    }
    check("a.epub", &[("mimetype", "x")], "damaged EPUB: its part META-INF/container.xml: it is missing; {}");
    check(
        "a.epub",
        &[("META-INF/container.xml", "<a/>")],
        "damaged EPUB: its part META-INF/container.xml: it names no package",
    );
    check("a.epub", &[CONTAINER, PACKAGE], "damaged EPUB: its part OPS/c.xhtml: it is missing; {}");
    check("a.epub", &[CONTAINER, PACKAGE, ("OPS/c.xhtml", "<p> </p>")], "the file contains no text");
    check(
        "a.epub",
        &[CONTAINER, ("OPS/book.opf", "<package><itemref idref='gone'/></package>")],
        "damaged EPUB: its spine refers to gone, which is not in its manifest",
    );
    check(
        "a.epub",
        &[CONTAINER, ("OPS/book.opf", "<package><metadata></package>")],
        "damaged EPUB: its part OPS/book.opf: invalid XML at byte 19: ill-formed document: expected `</metadata>`, but \
         `</package>` was found; {}",
    );
    check(
        "a.docx",
        &[("word/document.xml", "<w:t>x</w:t>")],
        "damaged DOCX: it does not say which part is the document; it may be of another format; open it in the program \
         that made it and save it anew",
    );
    check("a.docx", &[RELATIONS], "damaged DOCX: its part word/document2.xml: it is missing; {}");
    check(
        "a.docx",
        &[RELATIONS, ("word/document2.xml", "<p><t>x</p>")],
        "damaged DOCX: its part word/document2.xml: invalid XML at byte 7: ill-formed document: expected `</t>`, but \
         `</p>` was found; {}",
    );
    check(
        "a.docx",
        &[RELATIONS, ("word/document2.xml", "a\0b")],
        "damaged DOCX: its part word/document2.xml: binary data, not text: byte 1 is NUL",
    );
    check(
        "a.docx",
        &[RELATIONS, ("word/document2.xml", "<p/>"), ("docProps/core.xml", "<a></b>")],
        "damaged DOCX: its part docProps/core.xml: invalid XML at byte 3: ill-formed document: expected `</a>`, but \
         `</b>` was found; {}",
    );
}

#[test]
fn a_part_that_cannot_be_unpacked_is_named() {
    let words = "<p><t>The lamp was out and a new wick was fitted on the fourth.</t></p>".repeat(9);
    let mut bytes = archive(&[RELATIONS, ("word/document2.xml", &words)]);
    // The data of a part follow its name.
    let name = b"word/document2.xml";
    let data = bytes.windows(name.len()).position(|window| window == name).unwrap() + name.len();
    bytes[data + 25..data + 40].iter_mut().for_each(|byte| *byte ^= 0x55);
    let expect = format!("damaged DOCX: its part word/document2.xml: it cannot be unpacked; {ADVICE}");
    assert_eq!(complaint("a.docx", &bytes), expect);
}

#[test]
fn copy_protection_is_encryption_but_hidden_fonts_are_not() {
    let chapter = ("OPS/c.xhtml", "<p>words</p>");
    let locks = |part: &str| format!("<encryption><CipherReference URI='{part}'/></encryption>");
    let fonts = locks("OPS/font.otf");
    let source = read_one("a.epub", &archive(&[CONTAINER, PACKAGE, chapter, ("META-INF/encryption.xml", &fonts)]));
    assert_eq!(source.text, "words");
    let chapters = locks("OPS/c.xhtml");
    let locked = archive(&[CONTAINER, PACKAGE, chapter, ("META-INF/encryption.xml", &chapters)]);
    assert_eq!(complaint("a.epub", &locked), "the file is encrypted; save a copy without a password");
}

#[test]
fn a_zip_with_a_password_is_encrypted() {
    let mut bytes = archive(&[CONTAINER, PACKAGE]);
    // The general purpose flags, whose lowest bit means "encrypted", in the local header and in the central directory.
    bytes[6] |= 1;
    let central = bytes.windows(4).position(|window| window == b"PK\x01\x02").unwrap();
    bytes[central + 8] |= 1;
    assert_eq!(complaint("a.epub", &bytes), "the file is encrypted; save a copy without a password");
}

#[test]
fn a_small_archive_cannot_unpack_to_a_huge_text() {
    let bomb = " ".repeat((128 << 20) + 1);
    let bytes = archive(&[RELATIONS, ("word/document2.xml", &bomb)]);
    assert!(bytes.len() < 1 << 20);
    assert_eq!(
        complaint("a.docx", &bytes),
        "the file unpacks to more than the limit of 128 MiB; split it or save it as text"
    );
}

#[test]
fn an_archive_of_too_many_entries_is_refused() {
    let names: Vec<String> = (0..20_001).map(|i| i.to_string()).collect();
    let parts: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    assert_eq!(
        complaint("a.epub", &archive(&parts)),
        "the archive has more entries than the limit of 20000; save the document anew or as text"
    );
}
