//! Text that is struck through is left out of every type of file, like text that is hidden.

use crate::archives::{RELATIONS, archive};
use crate::read_one;

#[test]
fn struck_text_of_a_page_is_left_out() {
    let check = |html: &str, expect: &str| assert_eq!(read_one("a.html", html.as_bytes()).text, expect, "{html}");
    check("Price: <s>100 <b>net</b></s> 80 <strike>now</strike>, <del>or</del> 75", "Price: 80 , 75");
    check("by<del> Friday </del>Monday, colo<s>u</s>r", "by Monday, color");
    check("<p style='color:red; text-decoration: Line-Through 2px'>a</p><p style='text-decoration:underline'>b", "b");
    check("<ol><li>a<li style='text-decoration-line:line-through'>b<li>c</ol>", "1. a\n3. c");
    check("<table><tr><td>a<td style='text-decoration:line-through'>b<td><s>c<td>d</table>", "a |  |  | d");
    check("<s><img alt=a><math><mi>x</mi></math></s>b", "b");
}

#[test]
fn struck_text_of_a_document_is_left_out() {
    let run = |properties: &str, text: &str| format!("<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>");
    let runs = [
        run("", "by"),
        run("<w:strike/><w:vanish w:val='0'/>", " Friday "),
        run("<w:strike w:val='0'/>", "Monday"),
        run("<w:dstrike/>", "s</w:t><w:noBreakHyphen/><w:footnoteReference w:id='2'/><w:t>"),
    ];
    let body = format!("<w:p><w:pPr><w:rPr><w:strike/></w:rPr></w:pPr>{}</w:p>", runs.concat());
    assert_eq!(read_one("a.docx", &archive(&[RELATIONS, ("word/document2.xml", &body)])).text, "by Monday");

    let style = |name: &str, properties: &str| {
        format!("<style:style style:name='{name}'><style:text-properties {properties}/></style:style>")
    };
    let styles = [
        style("P1", "style:text-line-through-style='solid'"),
        style("T1", "style:text-line-through-style='solid' text:display='true'"),
        style("T2", "style:text-line-through-style='none'"),
        style("T3", "style:text-line-through-style='none' text:display='none'"),
    ];
    let span = |style: &str, text: &str| format!("<text:span text:style-name='{style}'>{text}</text:span>");
    let note = "<text:note><text:note-body><text:p>x</text:p></text:note-body></text:note>";
    let paragraphs = [
        format!("<text:p>by{}Monday</text:p>", span("T1", &format!(" Friday{note} "))),
        format!("<text:p text:style-name='P1'>old{}{}</text:p>", span("T2", "new"), span("T3", "hidden")),
    ];
    let content = format!("<c>{}{}</c>", styles.concat(), paragraphs.concat());
    assert_eq!(read_one("a.odt", &archive(&[("content.xml", &content)])).text, "by Monday\n\nnew");

    let rtf = r"{\rtf1 by{\strike  Friday\emdash{\footnote x} }Monday\striked1 s\striked0\par{\strike old\par}new\par
\trowd\cellx1\cellx2\intbl{\strike a\cell}b\cell\row\pard\strike c\plain d\par}";
    assert_eq!(read_one("a.rtf", rtf.as_bytes()).text, "by Monday\n\nnew\n\n | b\nd");
}

#[test]
fn struck_text_of_a_slide_is_left_out_and_its_paragraphs_keep_their_numbers() {
    let run = |strike: &str, text: &str| format!("<a:r><a:rPr strike='{strike}'/><a:t>{text}</a:t></a:r>");
    let item =
        |runs: &[String]| format!("<a:p><a:pPr><a:buAutoNum type='arabicPeriod'/></a:pPr>{}</a:p>", runs.concat());
    let items = [
        item(&[run("sngStrike", "old "), run("noStrike", "one")]),
        item(&[run("dblStrike", "two")]),
        item(&["<a:r><a:t>three</a:t></a:r>".to_owned()]),
    ];
    let slide = format!("<sld><sp><txBody>{}</txBody></sp></sld>", items.concat());
    let deck = archive(&[
        RELATIONS,
        ("word/document2.xml", "<p><sldId r:id='a'/></p>"),
        ("word/_rels/document2.xml.rels", "<R><Relationship Id='a' Type='x/slide' Target='s.xml'/></R>"),
        ("word/s.xml", &slide),
    ]);
    assert_eq!(read_one("a.pptx", &deck).text, "1. one\n3. three");
}

#[test]
fn struck_cells_of_a_sheet_and_struck_words_in_cells_are_left_out() {
    let runs = "<r><t>by</t></r><r><rPr><strike/></rPr><t> Friday </t></r><r><t>Monday</t></r>";
    let strings =
        format!("<sst><si>{runs}</si><si><r><rPr><strike/></rPr><t>old</t></r></si><si><t>new</t></si></sst>");
    let styles =
        "<s><fonts><font/><font><strike/></font></fonts><cellXfs><xf fontId='0'/><xf fontId='1'/></cellXfs></s>";
    let cells = "<c t='s'><v>0</v></c><c t='s'><v>1</v></c><c s='1'><v>12</v></c><c t='s'><v>2</v></c>";
    let sheet = format!("<worksheet><row>{cells}<c t='inlineStr'><is>{runs}</is></c></row></worksheet>");
    let parts = [("a", "worksheet", "s1"), ("c", "sharedStrings", "strings"), ("d", "styles", "styles")];
    let relations =
        parts.map(|(id, kind, name)| format!("<Relationship Id='{id}' Type='x/{kind}' Target='{name}.xml'/>"));
    let workbook = archive(&[
        RELATIONS,
        ("word/document2.xml", "<workbook><sheets><sheet name='x' r:id='a'/></sheets></workbook>"),
        ("word/_rels/document2.xml.rels", &format!("<R>{}</R>", relations.concat())),
        ("word/strings.xml", &strings),
        ("word/styles.xml", styles),
        ("word/s1.xml", &sheet),
    ]);
    let source = read_one("a.xlsx", &workbook);
    // A row of words alone names the columns.
    assert_eq!(source.text, "# x\n\nby Monday | new | by Monday");

    let style = |name: &str| format!("<style name='{name}'><text-properties text-line-through-style='solid'/></style>");
    let styles = [style("ce1"), style("T1")].concat();
    let cells = "<table-cell><p>by<span style-name='T1'> Friday</span> Monday</p></table-cell>\
        <table-cell style-name='ce1' value-type='float' value='12'><p>12</p></table-cell>\
        <table-cell><p>7</p></table-cell>";
    let content = format!("<s>{styles}<table name='x'><table-row>{cells}</table-row></table></s>");
    assert_eq!(read_one("a.ods", &archive(&[("content.xml", &content)])).text, "# x\n\nby Monday | 7");
}
