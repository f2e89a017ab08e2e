//! Plain text, Markdown, DOCX, EPUB: the extracted text of a document, and the errors that all types share.

use std::fs;

use sources::{Cause, Kind, ReadOptions, read};

use crate::{complaint, fixture, read_bytes, read_bytes_with, read_one};

#[test]
fn text_and_markdown_keep_every_byte() {
    fn check(name: &str, content: &str, title: Option<&str>) {
        let source = read_one(name, content.as_bytes());
        assert_eq!(source.text, content);
        assert_eq!(source.title.as_deref(), title);
        assert_eq!(source.sections.len(), 1);
        assert_eq!(source.sections[0].span, 0..content.len());
    }
    check("a.txt", "\u{feff}one\r\ntwo\r\n\r\n", None);
    check("A.TXT", "  # no title here\t\n", None);
    check("a.md", "\u{feff}# The title #\r\ntext", Some("The title"));
    check("a.md", "#hashtag\n\n## Second level\n# First", Some("Second level"));
    check("a.md", "####### seven\n#\nplain", None);
    check("a.md", "---\n# a comment\ntags: x\n---\n```sh\n# install\n```\n# The title", Some("The title"));
    check("a.md", "---\n\n# After a rule", Some("After a rule"));
    check("a.md", "~~~~ `x`\n~~~\n# code\n~~~~\n``` is ```\n# Text", Some("Text"));
}

#[test]
fn a_docx_gives_headings_lists_tables_and_footnotes() {
    let sources = read(&fixture("report.docx"), &ReadOptions::default()).unwrap();
    let expect = "\
# The north pier

The lamp was out for two hours & more.
It was Tuesday.[^2]

## Parts used

- a wick

- oil

Part | Price | Note
wick | 12 | 
 | 0.50 | oil

Signed: Orsini

[^2]: By his own watch.";
    assert_eq!(sources[0].text, expect);
    assert_eq!(sources[0].kind, Kind::Docx);
    assert_eq!(sources[0].title.as_deref(), Some("Lamp report"));
}

#[test]
fn an_epub_gives_a_section_for_each_chapter() {
    let sources = read(&fixture("book.epub"), &ReadOptions::default()).unwrap();
    let source = &sources[0];
    assert_eq!(source.title.as_deref(), Some("The Lamp & the Sea"));
    assert_eq!(source.text, "# Dawn\n\nThe lamp was out.\n\nHe said “no”.\n\n## Noon\n\nThe café opened.\nLate.");
    let chapters: Vec<_> = source.sections.iter().map(|s| (s.title.as_deref(), &source.text[s.span.clone()])).collect();
    assert_eq!(
        chapters,
        [
            (Some("Dawn"), "# Dawn\n\nThe lamp was out.\n\nHe said “no”."),
            (Some("Noon"), "## Noon\n\nThe café opened.\nLate."),
        ]
    );
}

#[test]
fn files_that_are_not_what_they_should_be_say_why() {
    fn check(name: &str, bytes: &[u8], expect: &str) {
        assert_eq!(complaint(name, bytes), expect, "{name}");
    }
    for (extension, _) in Kind::EXTENSIONS {
        check(&format!("a.{extension}"), b"", "the file is empty");
    }
    check("a.txt", b" \r\n\t\n", "the file contains no text");
    check("a.txt", b"\xef\xbb\xbf", "the file contains no text");
    check("a.md", "\u{a0}\n".as_bytes(), "the file contains no text");
    check("a.html", b"<title>x</title><script>y</script>", "the file contains no text");
    check("a.txt", b"abc\0def", "binary data, not text: byte 3 is NUL");
    check("a.html", b"\x89PNG\r\n\0", "binary data, not text: byte 6 is NUL");
    check(
        "a.txt",
        "é à ü".as_bytes().split_last().unwrap().1,
        "the text is not valid UTF-8 at byte 6; save it as UTF-8",
    );
    check("a.md", b"\xff\xfea", "the text is not valid UTF-16; save it as UTF-8");
    check("a.json", b"\xfe\xff\0a\0\0", "the text is not valid UTF-16; save it as UTF-8");
    let other = "its content is of another format than DOCX; open it in the program that made it and save it as DOCX";
    check("a.docx", b"not a zip", &format!("damaged DOCX: {other}"));
    let cut = "the list of its parts is missing or damaged; the file may have been cut short; get another copy";
    check("a.epub", b"PK\x03\x04", &format!("damaged EPUB: {cut}"));
    let unsupported = complaint("a.doc", b"x\0");
    assert!(unsupported.starts_with("unsupported file type (supported: .txt .text .log .rst "), "{unsupported}");
    assert!(unsupported.ends_with(" .json .jsonl, source code, and any text in UTF-8)"), "{unsupported}");
    check(
        "a.docx",
        b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1",
        "damaged DOCX: the file is in the older .doc format; save it as .docx",
    );
}

#[test]
fn a_file_cut_short_is_damaged() {
    for name in ["report.docx", "book.epub", "letter.pdf"] {
        let whole = fs::read(fixture(name)).unwrap();
        let cause = read_bytes(name, &whole[..whole.len() * 2 / 3]).unwrap_err();
        assert!(matches!(cause, Cause::Damaged { .. }), "{name}: {cause}");
    }
}

#[test]
fn a_docx_with_a_password_is_encrypted() {
    let error = read(&fixture("locked.docx"), &ReadOptions::default()).unwrap_err();
    assert!(matches!(error.cause, Cause::Encrypted), "{error}");
}

#[test]
fn larger_files_than_allowed_are_refused() {
    let options = ReadOptions { max_file_bytes: 5, ..ReadOptions::default() };
    assert!(read_bytes_with("a.txt", b"12345", &options).is_ok());
    let cause = read_bytes_with("a.txt", b"123456", &options).unwrap_err();
    assert_eq!(cause.to_string(), "the file is larger than the limit of 5 bytes; split it");
}

#[test]
fn a_missing_file_and_a_folder_are_named() {
    let error = read("no/such.txt".as_ref(), &ReadOptions::default()).unwrap_err();
    assert!(matches!(error.cause, Cause::Io(_)));
    assert!(error.to_string().starts_with("no/such.txt: cannot be read: "), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("folder.txt");
    fs::create_dir(&path).unwrap();
    let error = read(&path, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error.cause, Cause::NotAFile), "{error}");
}
