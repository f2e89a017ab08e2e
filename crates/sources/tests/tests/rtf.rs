//! Rich Text Format.

use sources::{Cause, Kind, Limit};

use crate::{complaint, read_bytes, read_one};

pub const LETTER: &str = r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0 Arial;}{\f1\fcharset204 Arial Cyr;}}
{\colortbl;\red0\green0\blue0;}{\info{\title The lamp}{\author Orsini}}
{\header Page 1}\pard\b The lamp\b0  was caf\'e9\-t\'e9 \u8212?\u55357?\u56832? out.\par
{\v hidden}{\*\generator x}{\pict 0000}Second{\footnote \pard By his own watch.\par} line.\line Third.\par
{\listtext\bullet\tab}one\par{\listtext\bullet\tab}two\par
\trowd\cellx1\cellx2\pard\intbl Part\cell Price\cell\row\trowd\intbl wick\cell 12\cell\row\pard
{\f1\'cb\'e0\'ec\'ef\'e0}\~\{end\}\par}
trailing";

#[test]
fn an_rtf_gives_paragraphs_lists_tables_and_notes() {
    let source = read_one("a.rtf", LETTER.as_bytes());
    let expect = "The lamp was cafété —😀 out.\n\nSecond [note: By his own watch.] line.\nThird.\n\n- one\n\n- two\n\n\
        Part | Price\nwick | 12\nЛампа {end}";
    assert_eq!(source.text, expect);
    assert_eq!((source.kind, source.title.as_deref()), (Kind::Rtf, Some("The lamp")));
}

#[test]
fn items_of_numbered_lists_have_their_numbers() {
    let rtf = r"{\rtf1 {\listtext\pard\plain 1.\tab}one\par{\pntext{\b\f0 b)}\tab}two\par{\listtext\'b7\tab}three\par
{\listtext o\tab}four\par{\listtext 1.2\tab}five\par}";
    assert_eq!(read_one("a.rtf", rtf.as_bytes()).text, "1. one\n\nb) two\n\n- three\n\n- four\n\n1.2 five");
}

#[test]
fn paragraphs_with_an_outline_level_are_headings() {
    let rtf = r"{\rtf1{\stylesheet{\s1\outlinelevel0 heading 1;}}\pard\s1\outlinelevel0 The {\b lamp}\par
\pard It was out.\par {\listtext\pard 1.\tab}\pard\outlinelevel1 Oil\par Wick\par\pard\outlinelevel9 Cut it.\par
\trowd\cellx1\cellx2\pard\intbl\outlinelevel8 a\cell\pard\intbl b\cell\row\pard End\par}";
    let source = read_one("a.rtf", rtf.as_bytes());
    let expect = "# The lamp\n\nIt was out.\n\n## 1. Oil\n\n## Wick\n\nCut it.\n\n###### a | b\nEnd";
    assert_eq!((source.text.as_str(), source.title.as_deref()), (expect, Some("The lamp")));
}

#[test]
fn rows_are_defined_before_or_after_their_cells() {
    let rtf = r"{\rtf1 \trowd\cellx1\cellx2\pard\intbl a\cell b\cell\row\pard\plain\intbl c\cell d\cell
\pard\intbl{\trowd\cellx1\cellx2\row}\pard End\column Next\par}";
    assert_eq!(read_one("a.rtf", rtf.as_bytes()).text, "a | b\nc | d\nEnd\n\nNext");
}

#[test]
fn footnotes_of_libreoffice_are_read() {
    let rtf = r"{\rtf1 The lamp{\super \chftn{\*\footnote\chftn\pard\plain By his watch.}} was out.}";
    assert_eq!(read_one("a.rtf", rtf.as_bytes()).text, "The lamp [note: By his watch.] was out.");
}

#[test]
fn superscripts_and_subscripts_of_numbers_are_marked() {
    let rtf = r"{\rtf1 10{\super 6} m{\super 2}, 101{\sub 2}, H{\sub 2}O, 5{\up6 3}4, 1{\super st},
 2\super 3\nosupersub  x\par}";
    assert_eq!(read_one("a.rtf", rtf.as_bytes()).text, "10^6 m^2, 101_2, H2O, 5^3 4, 1st, 2^3 x");
}

#[test]
fn symbols_of_fonts_are_read() {
    let rtf = r#"{\rtf1\ansi\deff0{\fonttbl{\f0 Arial;}{\f3\froman\fcharset2{\*\panose 05050102}Symbol;}
{\f4\fcharset2 Wingdings;}}{\f3 a\'b3b} and \f3\u-3999\'61\u-3882? \plain a
{\field{\*\fldinst SYMBOL 109 \\f "Symbol" \\s 12}{\fldrslt\f3 m}}{\field{\*\fldinst{ SYMBOL 0xFC \\f Wingdings}}}
{\field{\*\fldinst HYPERLINK "x"}{\fldrslt link}}, {\f4\'e0\'20\'30}\par}"#;
    assert_eq!(read_one("a.rtf", rtf.as_bytes()).text, "α≥β and α√ aμ✓link, →");
}

#[test]
fn damaged_rtf_says_why() {
    let check =
        |rtf: &str, expect: &str| assert_eq!(complaint("a.rtf", rtf.as_bytes()), format!("damaged RTF: {expect}"));
    check("words", "it does not start with {\\rtf");
    check(&LETTER[..300], "it ends inside a group; it may have been cut short");
    let word = format!("{{\\rtf1 {}}}", "a".repeat((16 << 20) + 1));
    check(&word, "it has a word of more than 16 MiB; save it as text");
    check("{\\rtf1 a\\'e", "it ends inside a control word; it may have been cut short");
    check("{\\rtf1\\pc caf\\'82}", "its code page 437 is not supported; save it as .docx or .txt");
    check("{\\rtf1\\ansicpg932 \\'81}", "its text is not valid Shift_JIS");
    check("{\\rtf1\\u55357?x\\u65?}", "\\u65 is no character");
    assert_eq!(complaint("a.rtf", b"{\\rtf1 {\\pict 00}}"), "the file contains no text");
}

#[test]
fn rtf_that_nests_without_end_is_refused() {
    let cause = read_bytes("a.rtf", format!("{{\\rtf1{}", "{".repeat(1_000_000)).as_bytes()).unwrap_err();
    assert!(matches!(cause, Cause::LimitExceeded(Limit::Nesting(512))), "{cause}");
}
