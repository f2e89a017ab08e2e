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
fn a_text_box_of_an_opendocument_text_takes_no_mark_from_the_paragraph_around_it() {
    let text_box = "<draw:frame><draw:text-box><text:p>in a box</text:p></draw:text-box></draw:frame>";
    let content =
        format!("<c><text:h text:outline-level='1'>{text_box}Lease</text:h><text:p>Term{text_box}</text:p></c>");
    let expect = "in a box\n\n# Lease\n\nTerm\n\nin a box";
    assert_eq!(read_one("a.odt", &archive(&[("content.xml", &content)])).text, expect);
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
        paragraph("><a:buNone/>", "between"),
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
    let expect = [
        "1. wick\n  a) north\n  b) south\n2. oil\n  a) north\nbetween\n(I) one\n7 seven",
        "\n                1. deep\n\n1. anew",
    ];
    assert_eq!(read_one("a.pptx", &deck).text, expect.concat());
}

#[test]
fn paragraphs_of_a_slide_have_the_marks_of_its_layout_and_master() {
    let level = |level: u32, mark: &str| format!("<a:lvl{level}pPr>{mark}</a:lvl{level}pPr>");
    let style = |levels: &str| format!("<a:lstStyle>{levels}</a:lstStyle>");
    let shape = |placeholder: &str, body: &str| {
        let placeholder = format!("<p:nvSpPr><p:nvPr>{placeholder}</p:nvPr></p:nvSpPr>");
        format!("<p:sp>{placeholder}<p:txBody>{body}</p:txBody></p:sp>")
    };
    let paragraph = |properties: &str, text: &str| format!("<a:p>{properties}<a:r><a:t>{text}</a:t></a:r></a:p>");
    let (none, bullet, numbers) = ("<a:buNone/>", "<a:buChar char='•'/>", "<a:buAutoNum type='arabicPeriod'/>");
    let texts = [
        format!("<p:titleStyle>{}</p:titleStyle>", level(1, none)),
        format!("<p:bodyStyle>{}{}</p:bodyStyle>", level(1, bullet), level(2, bullet)),
        format!("<p:otherStyle>{}</p:otherStyle>", level(1, bullet)),
    ];
    let shapes =
        [shape("<p:ph type='dt' idx='9'/>", ""), shape("<p:ph type='body' idx='1'/>", &style(&level(2, none)))];
    let master = format!("<p:sldMaster>{}<p:txStyles>{}</p:txStyles></p:sldMaster>", shapes.concat(), texts.concat());
    let prompt = paragraph("<a:pPr><a:buNone/></a:pPr>", "Click to add text");
    let shapes = [
        shape("<p:ph type='title'/>", &prompt),
        shape("<p:ph idx='1'/>", &prompt),
        shape("<p:ph type='body' idx='2'/>", &style(&level(1, numbers))),
        shape("<p:ph type='subTitle' idx='3'/>", &style(&level(1, none))),
    ];
    let layout = format!("<p:sldLayout>{}</p:sldLayout>", shapes.concat());
    let own = paragraph("<a:pPr lvl='1'><a:buChar char='-'/></a:pPr>", "own bullet");
    let field = "<a:p><a:fld><a:pPr lvl='1'/><a:t>2024</a:t></a:fld></a:p>";
    let cell = format!("<a:tc><a:txBody>{}</a:txBody></a:tc>", paragraph("", "cell"));
    let formula = "<a:p><a14:m><m:oMath><m:r><m:t>x=1</m:t></m:r></m:oMath></a14:m><a:r><a:t> here</a:t></a:r></a:p>";
    let shapes = [
        shape("<p:ph type='ctrTitle'/>", &paragraph("", "Lamps")),
        shape("<p:ph idx='1'/>", &[&*paragraph("", "wick"), &paragraph("<a:pPr lvl='1'/>", "plain"), &own].concat()),
        shape("<p:ph idx='2'/>", &[paragraph("", "one"), paragraph("", "two"), paragraph("", "three")].concat()),
        shape("<p:ph idx='3'/>", &paragraph("", "subtitle")),
        shape("<p:ph type='body' idx='77'/>", &[formula, &paragraph("<a:pPr><a:buNone/></a:pPr>", "none")].concat()),
        shape("", &[&*paragraph("", "a text box"), &style(&level(1, bullet)), &paragraph("", "its list")].concat()),
        format!("<p:graphicFrame><p:ph idx='1'/><a:tbl><a:tr>{cell}</a:tr></a:tbl></p:graphicFrame>"),
        shape("<p:ph idx='1'/>", &[&*paragraph("<a:pPr/>", "north"), field].concat()),
    ];
    let slide = format!("<p:sld>{}</p:sld>", shapes.concat());
    let relation = |kind: &str, part: &str| format!("<R><Relationship Id='a' Type='x/{kind}' Target='{part}'/></R>");
    let slides = "<R><Relationship Id='a' Type='x/slide' Target='s.xml'/><Relationship Id='b' Type='x/slide' \
        Target='t.xml'/></R>";
    let (to_layout, to_master) = (relation("slideLayout", "l.xml"), relation("slideMaster", "m.xml"));
    let deck = |layout: &str| {
        archive(&[
            RELATIONS,
            ("word/document2.xml", "<p><sldId r:id='a'/><sldId r:id='b'/></p>"),
            ("word/_rels/document2.xml.rels", slides),
            ("word/s.xml", &slide),
            ("word/_rels/s.xml.rels", &to_layout),
            ("word/t.xml", &format!("<p:sld>{}</p:sld>", shape("<p:ph idx='1'/>", &paragraph("", "alone")))),
            ("word/l.xml", layout),
            ("word/_rels/l.xml.rels", &to_master),
            ("word/m.xml", &master),
        ])
    };
    let expect = [
        "# Lamps\n\n- wick\nplain\n  - own bullet\n\n1. one\n2. two\n3. three\n\nsubtitle",
        "- x=1 here\nnone\n\na text box\n- its list\n\ncell\n\n- north\n- 2024\n\nalone",
    ];
    assert_eq!(read_one("a.pptx", &deck(&layout)).text, expect.join("\n\n"));
    let damaged = complaint("a.pptx", &deck("<p:sldLayout></p:sp>"));
    assert!(damaged.starts_with("damaged PPTX: its part word/l.xml: invalid XML"), "{damaged}");
    let many = format!("<l>{}</l>", (0..20_001).map(|at| shape(&format!("<ph idx='{at}'/>"), "")).collect::<String>());
    let expect = "the archive has more entries than the limit of 20000; save the document anew or as text";
    assert_eq!(complaint("a.pptx", &deck(&many)), expect);
}
