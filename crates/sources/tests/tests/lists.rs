//! The numbers of lists and headings in ODT, ODP and PPTX; those of DOCX and RTF are beside the other tests of these types.

use crate::archives::{RELATIONS, archive};
use crate::{complaint, read_one};

/// A level of a style of lists with its number, its format and its other attributes.
fn level(level: u32, format: &str, other: &str) -> String {
    let format = format!("text:level='{level}' style:num-format='{format}' style:num-suffix='.' {other}");
    format!("<text:list-level-style-number {format}/>")
}

#[test]
fn lists_and_headings_of_an_opendocument_text_have_their_numbers() {
    let levels = [level(1, "1", "text:start-value='3'"), level(2, "1", "text:display-levels='2'"), level(3, "a", "")];
    let style = format!("<text:list-style style:name='L1'>{}</text:list-style>", levels.concat());
    let bullets = "<text:list-style style:name='L2'><text:list-level-style-bullet text:level='1'/></text:list-style>";
    let plain = "<style:style style:name='P1' style:list-style-name=''/>";
    let list = |attributes: &str, items: &str| format!("<text:list {attributes}>{items}</text:list>");
    let item = |text: &str, inner: &str| format!("<text:list-item><text:p>{text}</text:p>{inner}</text:list-item>");
    let outer = |inner: &str| format!("<text:list-item>{inner}</text:list-item>");
    let heading = |attributes: &str, text: &str| format!("<text:h {attributes}>{text}</text:h>");
    let own_number = "<text:list-item text:start-value='9'><text:p>nine</text:p><text:p>more</text:p></text:list-item>";
    let header = "<text:list-header><text:p>header</text:p></text:list-header>";
    let content = [
        heading("text:outline-level='1'", "<text:number>I</text:number>Lease"),
        heading("text:outline-level='2'", "Term"),
        heading("text:outline-level='1' text:style-name='P1'", "Annex"),
        list(
            "text:style-name='L1' xml:id='l1'",
            &[item("three", ""), item("four", &list("", &item("sub", "")))].concat(),
        ),
        "<text:p>between</text:p>".to_owned(),
        list("text:style-name='L1' text:continue-list='l1'", &outer(&list("", &item("sub", "")))),
        list("text:style-name='L1' text:continue-numbering='true'", &[header, &item("five", ""), own_number].concat()),
        list("text:style-name='L1'", &item("anew", "")),
        list("text:style-name='L2'", &item("bullet", "")),
    ];
    let content = format!("<c>{style}{bullets}{plain}{}</c>", content.concat());
    let outline = "<text:outline-level-style text:level='1' style:num-format='I'/><text:outline-level-style text:level='2' \
        style:num-format='1' text:display-levels='2'/>";
    let styles = format!("<s><text:outline-style style:name='Outline'>{outline}</text:outline-style></s>");
    let report = archive(&[("content.xml", &content), ("styles.xml", &styles)]);
    let expect = "# I Lease\n\n## I.1 Term\n\n# Annex\n\n3. three\n4. four\n  4.1. sub\n\nbetween\n\n  4.2. sub\n\n\
        header\n5. five\n9. nine\nmore\n\n3. anew\n\n- bullet";
    assert_eq!(read_one("a.odt", &report).text, expect);
    let damaged = archive(&[("content.xml", &content), ("styles.xml", "<s></t>")]);
    assert!(complaint("a.odt", &damaged).starts_with("damaged ODT: its part styles.xml: invalid XML"));
}

#[test]
fn lists_of_an_opendocument_presentation_have_their_numbers() {
    let style = format!("<text:list-style style:name='L1'>{}</text:list-style>", level(1, "1", ""));
    // Each paragraph can be a list of its own.
    let list = |text: &str| {
        format!("<text:list text:style-name='L1'><text:list-item><text:p>{text}</text:p></text:list-item></text:list>")
    };
    let frame = |content: &str| format!("<draw:frame><draw:text-box>{content}</draw:text-box></draw:frame>");
    let frames = [frame(&[list("one"), list("two")].concat()), frame(&list("one"))].concat();
    let deck = archive(&[("content.xml", &format!("<c>{style}<draw:page>{frames}</draw:page></c>"))]);
    assert_eq!(read_one("a.odp", &deck).text, "1. one\n\n2. two\n\n1. one");
}

#[test]
fn lists_of_a_slide_have_their_numbers() {
    let paragraph =
        |properties: &str, text: &str| format!("<a:p><a:pPr {properties}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>");
    let numbered = |level: u32, scheme: &str, text: &str| {
        paragraph(&format!("lvl='{level}'><a:buAutoNum type='{scheme}'/>"), text)
    };
    let paragraphs = [
        numbered(0, "arabicPeriod", "wick"),
        numbered(1, "alphaLcParenR", "north"),
        numbered(1, "alphaLcParenR", " "),
        numbered(1, "alphaLcParenR", "south"),
        numbered(0, "arabicPeriod", "oil"),
        numbered(1, "alphaLcParenR", "north"),
        paragraph(">", "between"),
        numbered(0, "romanUcParenBoth", "one"),
        paragraph("><a:buAutoNum type='arabicPlain' startAt='7'/>", "seven"),
        paragraph("lvl='99'><a:buAutoNum type='thaiNumPeriod'/>", "deep"),
    ];
    let body = |paragraphs: &str| {
        let style = "<a:lstStyle><a:lvl1pPr><a:buAutoNum type='arabicPeriod'/></a:lvl1pPr></a:lstStyle>";
        format!("<p:sp><p:txBody>{style}{paragraphs}</p:txBody></p:sp>")
    };
    let slide = format!("<p:sld>{}{}</p:sld>", body(&paragraphs.concat()), body(&numbered(0, "arabicPeriod", "anew")));
    let deck = archive(&[
        RELATIONS,
        ("word/document2.xml", "<p><sldId r:id='a'/></p>"),
        ("word/_rels/document2.xml.rels", "<R><Relationship Id='a' Type='x/slide' Target='s.xml'/></R>"),
        ("word/s.xml", &slide),
    ]);
    let expect = "1. wick\na) north\nb) south\n2. oil\na) north\nbetween\n(I) one\n7 seven\n1. deep\n\n1. anew";
    assert_eq!(read_one("a.pptx", &deck).text, expect);
}
