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
fn symbols_of_fonts_are_read_in_a_docx() {
    let symbol = |font: &str, code: &str| format!("<w:r><w:sym w:font='{font}' w:char='{code}'/></w:r>");
    let symbols =
        [("Symbol", "F0A3"), ("Symbol", "F061"), ("Wingdings", "F0FC"), ("MS Gothic", "2612"), ("Arial", "x")];
    let symbols: String = symbols.iter().map(|(font, code)| symbol(font, code)).collect();
    let run = "<w:r><w:rPr><w:rFonts w:ascii='Symbol' w:hAnsi='Symbol'/></w:rPr><w:t>\u{f062}x</w:t></w:r>";
    let body = format!("<w:p><w:r><w:t>1 </w:t></w:r>{symbols}{run}<w:r><w:t>y</w:t></w:r></w:p>");
    assert_eq!(read_one("a.docx", &archive(&[RELATIONS, ("word/document2.xml", &body)])).text, "1 ≤α✓☒βxy");
}

#[test]
fn broken_archives_say_where() {
    fn check(name: &str, parts: &[(&str, &str)], expect: &str) {
        assert_eq!(complaint(name, &archive(parts)), expect);
    }
    check("a.epub", &[("mimetype", "x")], "damaged EPUB: META-INF/container.xml is not in the archive");
    check("a.epub", &[("META-INF/container.xml", "<a/>")], "damaged EPUB: META-INF/container.xml names no package");
    check("a.epub", &[CONTAINER, PACKAGE], "damaged EPUB: OPS/c.xhtml is not in the archive");
    check("a.epub", &[CONTAINER, PACKAGE, ("OPS/c.xhtml", "<p> </p>")], "the file contains no text");
    check(
        "a.epub",
        &[CONTAINER, ("OPS/book.opf", "<package><itemref idref='gone'/></package>")],
        "damaged EPUB: its spine refers to gone, which is not in its manifest",
    );
    check(
        "a.epub",
        &[CONTAINER, ("OPS/book.opf", "<package><metadata></package>")],
        "damaged EPUB: XML at byte 19: ill-formed document: expected `</metadata>`, but `</package>` was found",
    );
    check("a.docx", &[("word/document.xml", "<w:t>x</w:t>")], "damaged DOCX: its relations name no main document");
    check("a.docx", &[RELATIONS], "damaged DOCX: word/document2.xml is not in the archive");
    check(
        "a.docx",
        &[RELATIONS, ("word/document2.xml", "<p><t>x</p>")],
        "damaged DOCX: XML at byte 7: ill-formed document: expected `</t>`, but `</p>` was found",
    );
    check(
        "a.docx",
        &[RELATIONS, ("word/document2.xml", "a\0b")],
        "damaged DOCX: word/document2.xml: binary data, not text: byte 1 is NUL",
    );
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
