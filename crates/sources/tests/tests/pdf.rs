//! PDF: pages, passwords and scans, and every way in which the child process can end.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use sources::{Cause, PdfChild, ReadOptions, Section, read};

use crate::{complaint, fixture, read_one};

fn no_args(program: impl Into<PathBuf>) -> PdfChild {
    PdfChild { ocr: None, ..PdfChild::new(program, [""; 0]) }
}

const SCANNED: &str = "the PDF contains no text: a scanned PDF needs OCR; install the programs tesseract and pdftoppm, or \
    convert it to text";

#[test]
fn a_pdf_gives_a_section_for_each_page() {
    for name in ["letter.pdf", "no_printing.pdf"] {
        let sources = read(&fixture(name), &ReadOptions::default()).unwrap();
        let source = &sources[0];
        crate::check_spans(source);
        let titles: Vec<_> = source.sections.iter().map(|section| section.title.as_deref()).collect();
        assert_eq!(titles, [Some("page 1"), Some("page 2")], "{name}");
        let words =
            |i: usize| source.text[source.sections[i].span.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words(0),
            "Harbour Office, 3 May 1921 The lamp of the north pier was out for two hours. Captain Orsini reported it at dawn."
        );
        assert_eq!(words(1), "A new wick was fitted on the 4th. The cost was 12 crowns & 50 hellers.");
    }
}

/// A PDF of pages with these contents, which may show a picture as `/Im1` and text in the font `/F1`.
fn pdf_of(contents: &[&str]) -> Vec<u8> {
    pdf_with(" ", contents)
}

/// The same with this data of the picture.
fn pdf_with(data: &str, contents: &[&str]) -> Vec<u8> {
    let kids: Vec<String> = (0..contents.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let font = "/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>";
    let picture = "/Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray";
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), kids.len()),
        format!("<< {picture} /Length {} >>\nstream\n{data}\nendstream", data.len()),
    ];
    for (page, content) in contents.iter().enumerate() {
        let resources = format!("<< {font} /XObject << /Im1 3 0 R >> >>");
        let content_id = 5 + 2 * page;
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents {content_id} 0 R /Resources {resources} >>"
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let (mut pdf, mut table) = ("%PDF-1.4\n".to_owned(), "0000000000 65535 f \n".to_owned());
    for (i, object) in objects.iter().enumerate() {
        table.extend([format!("{:010} 00000 n \n", pdf.len())]);
        pdf.extend([format!("{} 0 obj\n{object}\nendobj\n", i + 1)]);
    }
    let (start, size) = (pdf.len(), objects.len() + 1);
    let trailer = format!("trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    [pdf, format!("xref\n0 {size}\n{table}"), trailer].concat().into_bytes()
}

#[test]
fn a_picture_among_pages_with_text_is_named_in_its_place() {
    let words = "BT /F1 9 Tf 9 9 Td (The lamp) Tj ET";
    let picture = "q 90 0 0 90 0 0 cm /Im1 Do Q";
    let source = read_one("a.pdf", &pdf_of(&[words, picture, "", &format!("{picture} {words}")]));
    let words = |page: &Section| source.text[page.span.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
    let page = |page: &Section| format!("{}: {}", page.title.as_deref().unwrap(), words(page));
    let pages: Vec<String> = source.sections.iter().map(page).collect();
    assert_eq!(pages, ["page 1: The lamp", "page 2: [page 2: a picture without text]", "page 4: The lamp"]);
    assert_eq!(complaint("a.pdf", &pdf_of(&[picture, ""])), SCANNED);
}

#[test]
fn the_data_of_a_picture_are_no_content() {
    let page = "q 90 0 0 90 0 0 cm /Im1 Do Q BT /F1 9 Tf 9 9 Td (The lamp) Tj ET";
    // pdf-extract panics at the first three.
    for data in ["1 cm", "(noise) Tj", "BI (x", "BT /F1 9 Tf 9 9 Td (noise) Tj ET"] {
        let source = read_one("a.pdf", &pdf_with(data, &[page]));
        assert_eq!(source.text.split_whitespace().collect::<Vec<_>>(), ["The", "lamp"], "{data}");
    }
}

#[test]
fn pdfs_without_readable_text_say_why() {
    fn check(name: &str, expect: &str) {
        let error = read(&fixture(name), &ReadOptions::default()).unwrap_err();
        assert_eq!(error.cause.to_string(), expect);
    }
    check("scan.pdf", SCANNED);
    check(
        "no_page_size.pdf",
        "damaged PDF: page 2: its content is invalid; open it in a PDF viewer and print it to a new PDF",
    );
    check("locked.pdf", "the file is encrypted; save a copy without a password");
    assert_eq!(complaint("a.pdf", b"not a PDF"), "damaged PDF: it has no PDF header (%PDF-); the file is not a PDF");
}

#[cfg(unix)]
#[test]
fn the_child_process_gives_pages_or_a_reason() {
    /// Reads a PDF through a shell script, which finds the PDF's path in `$0`.
    fn check(script: &str, expect: &Result<&[&str], &str>) {
        let mut child = PdfChild { ocr: None, ..PdfChild::new("sh", ["-c", script]) };
        if script.contains("sleep") {
            child.time_limit = Duration::from_millis(50);
        }
        let options = ReadOptions { pdf_child: Some(child), ..ReadOptions::default() };
        let result = read(&fixture("letter.pdf"), &options);
        let pages = result.map(|sources| {
            let source = &sources[0];
            let pages = source.sections.iter();
            pages
                .map(|page| format!("{}: {}", page.title.as_deref().unwrap(), &source.text[page.span.clone()]))
                .collect()
        });
        let pages: Result<Vec<String>, String> = pages.map_err(|error| error.cause.to_string());
        let expect =
            expect.as_ref().map(|pages| pages.iter().map(ToString::to_string).collect()).map_err(ToString::to_string);
        assert_eq!(pages, expect, "{script}");
    }
    check(r"printf 'one\f\ftwo \303\251\f'", &Ok(&["page 1: one", "page 3: two é"]));
    check(r"printf 'the exam-\nple of \357\254\201re\f'", &Ok(&["page 1: the example\nof fire"]));
    check(r"printf 'one\f\001\f'", &Ok(&["page 1: one", "page 2: [page 2: a picture without text]"]));
    check(r"printf '\001\f\001'", &Err(SCANNED));
    check(r#"test -f "$0" && printf found"#, &Ok(&["page 1: found"]));
    check(r"printf ' \f\n'", &Err(SCANNED));
    check("exit 3", &Err("the file is encrypted; save a copy without a password"));
    check("echo note >&2; echo page 7: no font >&2; echo >&2; exit 1", &Err("damaged PDF: page 7: no font"));
    check("exit 9", &Err("damaged PDF: the PDF reader ended with exit status: 9"));
    check("kill -9 $$", &Err("damaged PDF: the PDF reader ended with signal: 9 (SIGKILL)"));
    check(r"printf 'caf\351'", &Err("damaged PDF: incomplete utf-8 byte sequence from index 3"));
    check("exec sleep 600", &Err("reading it takes longer than the limit of 0.05 s; split it or convert it to text"));
    check("yes | head -c 1000000 | tr -d y | tr '\\n' x", &Ok(&[&format!("page 1: {}", "x".repeat(500_000))]));
}

/// The program of this package that reads a PDF, if it was built.
fn real_program() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().with_file_name("examples").join("print_pdf_text");
    if !program.with_extension(std::env::consts::EXE_EXTENSION).exists() {
        eprintln!("skipped: {} is missing; build the examples", program.display());
        return None;
    }
    Some(program)
}

#[cfg(target_os = "linux")]
#[test]
fn the_real_child_ends_with_its_parent() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    use std::sync::mpsc;
    use std::thread;

    let Some(program) = real_program() else { return };
    // The child reads a pipe to its end, and this test keeps it open.
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("a.pdf");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut parent = Command::new("sh")
        .args(["-c", r#""$0" "$1" & wait"#])
        .args([program.as_os_str(), pipe.as_os_str()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = parent.stdout.take().unwrap();
    let _writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    // The child has the other end of the output.
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(output.read_to_end(&mut Vec::new())));
    end.recv_timeout(Duration::from_mins(1)).expect("the child outlives its parent").unwrap();
}

#[test]
fn the_real_child_gives_what_reading_in_process_gives() {
    let Some(program) = real_program() else { return };
    let through_child = ReadOptions { pdf_child: Some(no_args(program)), ..ReadOptions::default() };
    for name in ["letter.pdf", "no_printing.pdf", "scan.pdf", "locked.pdf", "not_a.pdf", "no_page_size.pdf"] {
        let [in_process, in_child] = [ReadOptions::default(), through_child.clone()]
            .map(|options| read(&fixture(name), &options).map_err(|error| error.to_string()));
        assert_eq!(in_child, in_process);
    }
}

/// `letter.pdf`, changed.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = fs::read(fixture("letter.pdf")).unwrap();
    change(&mut bytes);
    bytes
}

fn place(bytes: &[u8], pattern: &str) -> usize {
    bytes.windows(pattern.len()).rposition(|window| window == pattern.as_bytes()).unwrap()
}

#[test]
fn a_pdf_with_a_damaged_table_of_objects_is_repaired() {
    let whole = read_one("a.pdf", &changed(|_| {}));
    let check = |why: &str, bytes: Vec<u8>| {
        let source = read_one("a.pdf", &bytes);
        assert_eq!((&source.text, source.sections), (&whole.text, whole.sections.clone()), "{why}");
    };
    check("no table, no trailer", changed(|bytes| bytes.truncate(place(bytes, "xref\n0"))));
    check("no end", changed(|bytes| bytes.truncate(place(bytes, "startxref"))));
    check(
        "a wrong start",
        changed(|bytes| bytes.splice(place(bytes, "startxref").., *b"startxref\n7\n%%EOF").for_each(drop)),
    );
    check(
        "wrong offsets",
        changed(|bytes| {
            let first = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
            bytes.splice(first..first, b"% a comment that moves all objects\n".iter().copied()).for_each(drop);
        }),
    );
    check("bytes before the header", changed(|bytes| bytes.splice(..0, b"junk\n\n".iter().copied()).for_each(drop)));
}

#[test]
fn a_pdf_that_cannot_be_repaired_says_so_in_plain_words() {
    let cut = changed(|bytes| bytes.truncate(bytes.len() / 2));
    let no_pages = changed(|bytes| bytes.truncate(place(bytes, "/Count")));
    let locked = fs::read(fixture("locked.pdf")).unwrap();
    let locked = &locked[..place(&locked, "startxref")];
    for (bytes, expect) in [
        (&cut[..], "it is incomplete: some of its pages are missing; get another copy of it"),
        (&no_pages, "it is incomplete: some of its pages are missing; get another copy of it"),
        (
            b"%PDF-1.7\n",
            "its table of objects is damaged and cannot be rebuilt; open it in a PDF viewer and print it to a new PDF",
        ),
        (locked, "its table of objects is damaged and it is encrypted; save a copy without a password"),
    ] {
        assert_eq!(complaint("a.pdf", bytes), format!("damaged PDF: {expect}"));
    }
}

#[test]
fn a_child_that_cannot_be_started_is_not_the_files_fault() {
    let options = ReadOptions { pdf_child: Some(no_args("no/such/program")), ..ReadOptions::default() };
    let error = read(&fixture("letter.pdf"), &options).unwrap_err();
    assert!(matches!(error.cause, Cause::PdfChild { .. }), "{error}");
}
