//! Plain texts in several encodings, source code, tables and notebooks.

use sources::{Cause, Kind, Limit, Opened, ReadOptions, open};

use crate::{complaint, read_bytes, read_one};

#[test]
fn other_files_of_words_and_source_code_are_kept_as_they_are() {
    fn check(name: &str, kind: Kind) {
        let text = "\\section{One}\n  == two ==\r\n";
        let source = read_one(name, text.as_bytes());
        assert_eq!((source.text.as_str(), source.kind, source.encoding), (text, kind, None), "{name}");
    }
    for name in ["a.log", "a.rst", "a.tex", "a.org", "a.srt", "a.vtt"] {
        check(name, Kind::Text);
    }
    for name in ["a.rs", "a.PY", "a.c", "a.ts", "a.yaml"] {
        check(name, Kind::Code);
    }
    let source = read_one("a.markdown", b"# One\n");
    assert_eq!((source.kind, source.title.as_deref()), (Kind::Markdown, Some("One")));
}

#[test]
fn a_named_file_of_an_unknown_type_is_text_if_it_is_utf_8() {
    let source = read_one("README", "The café.\n".as_bytes());
    assert_eq!((source.text.as_str(), source.kind), ("The café.\n", Kind::Text));
    for bytes in [&b"caf\xe9"[..], b"\xff\xfea\0", b"a\0"] {
        assert!(matches!(read_bytes("a.unknown", bytes), Err(Cause::UnknownKind)));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("LICENSE");
    std::fs::write(&path, "Words.").unwrap();
    assert!(matches!(open(&path, &ReadOptions::default()), Ok(Opened::Text(text)) if text.kind == Kind::Text));
}

#[test]
fn text_in_another_encoding_is_decoded_and_its_encoding_reported() {
    fn check(bytes: &[u8], text: &str, encoding: &str) {
        let source = read_one("a.txt", bytes);
        assert_eq!((source.text.as_str(), source.encoding), (text, Some(encoding)));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, bytes).unwrap();
        let Ok(Opened::Text(file)) = open(&path, &ReadOptions::default()) else { panic!("it is a text") };
        assert_eq!((file.encoding(), file.bytes), (Some(encoding), text.len()));
        assert_eq!(file.pieces().unwrap().collect::<Result<String, _>>().unwrap(), text);
    }
    let utf16 = |units: fn(u16) -> [u8; 2], mark: [u8; 2]| -> Vec<u8> {
        mark.into_iter().chain("Grüße 😀\r\n".encode_utf16().flat_map(units)).collect()
    };
    check(&utf16(u16::to_le_bytes, [0xFF, 0xFE]), "Grüße 😀\r\n", "UTF-16LE");
    check(&utf16(u16::to_be_bytes, [0xFE, 0xFF]), "Grüße 😀\r\n", "UTF-16BE");
    check(b"Sch\xf6ne Gr\xfc\xdfe \x96 5 \x80", "Schöne Grüße – 5 €", "windows-1252");
    let russian = b"\xcb\xe0\xec\xef\xe0 \xed\xe0 \xf1\xe5\xe2\xe5\xf0\xed\xee\xec \xef\xe8\xf0\xf1\xe5 \xef\xee\xe3\xe0\xf1\xeb\xe0.";
    check(russian, "Лампа на северном пирсе погасла.", "windows-1251");
    let html = read_one("a.html", b"<p>Gr\xfc\xdfe aus K\xf6ln, bis sp\xe4ter");
    assert_eq!((html.text.as_str(), html.encoding), ("Grüße aus Köln, bis später", Some("windows-1252")));
}

#[test]
fn a_page_is_read_in_the_encoding_that_it_declares() {
    let check = |html: &[u8], text: &str, encoding: Option<&str>| {
        let page = read_one("a.html", html);
        assert_eq!((page.text.as_str(), page.encoding), (text, encoding));
    };
    check(b"<meta charset='macintosh'><p>caf\x8e", "café", Some("macintosh"));
    check(b"<META content=\"text/html; charset=macintosh\"><p>caf\x8e", "café", Some("macintosh"));
    // A wrong declaration is ignored.
    check("<meta charset=macintosh><p>café".as_bytes(), "café", None);
    let german = b"<meta charset=utf-8><p>Gr\xfc\xdfe aus K\xf6ln, bis sp\xe4ter";
    check(german, "Grüße aus Köln, bis später", Some("windows-1252"));
}

#[test]
fn bytes_that_are_no_text_in_any_encoding_are_refused() {
    assert_eq!(complaint("a.txt", b"a\xff\x01\x02"), "the text is not valid UTF-8 at byte 1; save it as UTF-8");
    assert_eq!(complaint("a.txt", b"caf\xe9\0"), "binary data, not text: byte 4 is NUL");
    let damaged = [&"Grüße, é à ü. ".repeat(50).into_bytes()[..], b"\xc3"].concat();
    assert_eq!(complaint("a.txt", &damaged), "the text is not valid UTF-8 at byte 950; save it as UTF-8");
}

#[test]
fn a_table_names_the_columns_in_each_row() {
    fn check(name: &str, table: &str, expect: &str) {
        let source = read_one(name, table.as_bytes());
        assert_eq!((source.text.as_str(), source.kind), (expect, Kind::Table));
    }
    check(
        "a.csv",
        "name,city,note\nAnn,Bern,\"a, \"\"b\"\"\nc\"\nBo,,1\n",
        "name: Ann | city: Bern | note: a, \"b\" c\nname: Bo | note: 1\n",
    );
    check("a.csv", "\u{feff}name;size\r\nAnn;1,5\r\n", "name: Ann | size: 1,5\n");
    check("a.tsv", "name\tcity\nAnn, B.\tBern\tmore\n", "name: Ann, B. | city: Bern | more\n");
    check("a.csv", "2020,1\n2021,2\n", "2020 | 1\n2021 | 2\n");
    check("a.csv", "town,2023,2024\nBern,5,6\n", "town: Bern | 2023: 5 | 2024: 6\n");
    check("a.csv", ",2023,2024\nBern,5,6\n", "Bern | 2023: 5 | 2024: 6\n");
    check("a.csv", "Ann,1990\nBo,1985\n", "Ann | 1990\nBo | 1985\n");
    check("a.csv", "Staff of 2024\n\nname,city\nAnn,Bern", "Staff of 2024\nname: Ann | city: Bern\n");
    check("a.csv", "Staff, 2024\nname;born\nAnn;1990\n", "Staff, 2024\nname: Ann | born: 1990\n");
    check("a.csv", "Staff\na;b\n1,5;2,5\n", "Staff\na: 1,5 | b: 2,5\n");
    check("a.csv", "wick,CHF 5\noil,7 kr\n", "wick | CHF 5\noil | 7 kr\n");
    check("a.csv", "1,5;2,5\n3,5;4,5\n", "1,5 | 2,5\n3,5 | 4,5\n");
    check("a.csv", "\u{feff}sep=|\r\nname|city\r\nAnn, B.|Bern\r\n", "name: Ann, B. | city: Bern\n");
    check("a.tsv", "a, b\tc\nd, e\tf\tg\n", "a, b: d, e | c: f | g\n");
    check("a.csv", "name,city\n", "name | city");
    check("a.csv", "one\ntwo\n", "one\ntwo\n");
    // A cell and a row continue where one piece of the file ends and another starts.
    for length in (256 << 10) - 8..(256 << 10) + 2 {
        let table = format!("a,b\n{},\"x\"\"y\"\n1,2\n", "é".repeat(length / 2));
        check("a.csv", &table, &format!("a: {} | b: x\"y\na: 1 | b: 2\n", "é".repeat(length / 2)));
    }
}

#[test]
fn a_table_without_cells_or_with_too_many_is_refused() {
    assert_eq!(complaint("a.csv", b",,\n\"\"\n"), "the file contains no text");
    assert_eq!(complaint("a.csv", b"a,b\0"), "binary data, not text: byte 3 is NUL");
    let limit = |bytes: &[u8]| match read_bytes("a.csv", bytes) {
        Err(Cause::LimitExceeded(limit)) => limit,
        other => panic!("{:?}", other.map(|sources| sources.len())),
    };
    assert_eq!(limit(",".repeat(20_000).as_bytes()), Limit::Columns(16_384));
    let open_quote = format!("a,\"{}", "b\n".repeat(9 << 20));
    assert_eq!(limit(open_quote.as_bytes()), Limit::CellBytes(16 << 20));
    let long_header = format!("{},b\n{}", "a".repeat(1 << 20), "1,2\n".repeat(100));
    assert_eq!(limit(long_header.as_bytes()), Limit::TextBytes(96 << 20));
}

pub const NOTEBOOK: &str = r##"{"nbformat": 4, "metadata": {"kernelspec": {"language": "python", "name": "python3"}}, "cells": [
{"cell_type": "markdown", "metadata": {}, "source": ["# The lamp\n", "It was out."]},
{"cell_type": "code", "source": "print('``` é')\n1 + 1", "outputs": [
 {"output_type": "stream", "name": "stdout", "text": ["``` é\n"]},
 {"output_type": "execute_result", "data": {"text/plain": ["2"], "text/html": ["<b>2</b>"]}},
 {"output_type": "display_data", "data": {"image/png": "AAAA"}},
 {"output_type": "error", "ename": "KeyError", "evalue": "'x'", "traceback": ["\u001b[31m"]}]},
{"cell_type": "code", "source": [], "outputs": []},
{"cell_type": "raw", "source": "raw"}]}"##;

#[test]
fn a_notebook_gives_its_cells_and_their_output() {
    let source = read_one("a.ipynb", NOTEBOOK.as_bytes());
    let expect = "# The lamp\nIt was out.\n\n````python\nprint('``` é')\n1 + 1\n````\n\nOutput:\n````\n``` é\n````\n\n\
        Output:\n```\n2\n```\n\nOutput:\n```\nKeyError: 'x'\n```\n\nraw";
    assert_eq!(source.text, expect);
    assert_eq!((source.kind, source.title.as_deref()), (Kind::Notebook, Some("The lamp")));
}

#[test]
fn a_comment_in_code_is_no_title() {
    let notebook = r##"{"cells": [{"cell_type": "code", "source": "# load\nload()"}, {"cell_type": "markdown", "source": "# The lamp"}]}"##;
    for mark in ["", "\u{feff}"] {
        let source = read_one("a.ipynb", format!("{mark}{notebook}").as_bytes());
        assert_eq!(source.title.as_deref(), Some("The lamp"));
    }
}

#[test]
fn markdown_that_a_cell_shows_is_read() {
    let notebook = r#"{"cells": [{"cell_type": "code", "source": "show()", "outputs": [{"output_type": "display_data", "data":
        {"text/markdown": ["**It** ", "was out."], "text/plain": ["<IPython.core.display.Markdown object>"]}}]}]}"#;
    let expect = "```\nshow()\n```\n\nOutput:\n```\n**It** was out.\n```";
    assert_eq!(read_one("a.ipynb", notebook.as_bytes()).text, expect);
}

#[test]
fn output_is_read_as_a_terminal_shows_it() {
    let notebook = r#"{"cells": [{"cell_type": "code", "source": "run()", "outputs": [{"output_type": "stream", "text":
        ["\u001b[1;31mfailed\u001b[0m: é\r\n", " 10%\r 99%\r100%\n", "a \u001b[2Kb\u001b[é\r"]}]}]}"#;
    let expect = "```\nrun()\n```\n\nOutput:\n```\nfailed: é\n100%\na bé\n```";
    assert_eq!(read_one("a.ipynb", notebook.as_bytes()).text, expect);
}

#[test]
fn damaged_and_old_notebooks_say_why() {
    let check = |json: &str, expect: &str| assert_eq!(complaint("a.ipynb", json.as_bytes()), expect);
    check("[1]", "damaged notebook: it is not one JSON object");
    check("{\"cells\": [", "damaged notebook: EOF while parsing a list at line 1 column 11");
    check("{}", "line 1: field `cells` is missing");
    check("{\"cells\": [{\"source\": \"x\"}]}", "line 1: field `cell_type` is missing");
    check("{\"worksheets\": []}", "damaged notebook: its format is older than 4; open it in Jupyter and save it again");
    check("{\"cells\": []}", "the file contains no text");
}
