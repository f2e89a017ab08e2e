//! PDF: pages, passwords and scans, and every way in which the child process can end.

use std::time::Duration;

use sources::{Cause, PdfChild, ReadOptions, read};

use crate::{complaint, fixture};

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

#[test]
fn pdfs_without_readable_text_say_why() {
    fn check(name: &str, expect: &str) {
        let error = read(&fixture(name), &ReadOptions::default()).unwrap_err();
        assert_eq!(error.cause.to_string(), expect);
    }
    check("scan.pdf", "no text: a scanned PDF needs OCR, which memlocal does not have");
    check("no_page_size.pdf", "damaged PDF: page 2: MediaBox");
    check("locked.pdf", "encrypted: save a copy without the password first");
    assert_eq!(complaint("a.pdf", b"not a PDF"), "damaged PDF: couldn't parse input: invalid file header");
}

#[cfg(unix)]
#[test]
fn the_child_process_gives_pages_or_a_reason() {
    /// Reads a PDF through a shell script, which finds the PDF's path in `$0`.
    fn check(script: &str, expect: &Result<&[&str], &str>) {
        let child = PdfChild {
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
            time_limit: Duration::from_millis(if script.contains("sleep") { 50 } else { 60_000 }),
        };
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
    check(r#"test -f "$0" && printf found"#, &Ok(&["page 1: found"]));
    check(r"printf ' \f\n'", &Err("no text: a scanned PDF needs OCR, which memlocal does not have"));
    check("exit 3", &Err("encrypted: save a copy without the password first"));
    check("echo note >&2; echo page 7: no font >&2; echo >&2; exit 1", &Err("damaged PDF: page 7: no font"));
    check("exit 9", &Err("damaged PDF: its reader ended with exit status: 9"));
    check("kill -9 $$", &Err("damaged PDF: its reader ended with signal: 9 (SIGKILL)"));
    check(r"printf 'caf\351'", &Err("damaged PDF: incomplete utf-8 byte sequence from index 3"));
    check("exec sleep 600", &Err("reading it took more than 0.05 s and was stopped"));
    check("yes | head -c 1000000 | tr -d y | tr '\\n' x", &Ok(&[&format!("page 1: {}", "x".repeat(500_000))]));
}

#[test]
fn the_real_child_gives_what_reading_in_process_gives() {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().with_file_name("examples").join("print_pdf_text");
    if !program.with_extension(std::env::consts::EXE_EXTENSION).exists() {
        return eprintln!("skipped: {} is missing; build the examples", program.display());
    }
    let child = PdfChild { program, args: Vec::new(), time_limit: Duration::from_mins(1) };
    let through_child = ReadOptions { pdf_child: Some(child), ..ReadOptions::default() };
    for name in ["letter.pdf", "no_printing.pdf", "scan.pdf", "locked.pdf", "not_a.pdf", "no_page_size.pdf"] {
        let [in_process, in_child] = [ReadOptions::default(), through_child.clone()]
            .map(|options| read(&fixture(name), &options).map_err(|error| error.to_string()));
        assert_eq!(in_child, in_process);
    }
}

#[test]
fn a_child_that_cannot_be_started_is_not_the_files_fault() {
    let child = PdfChild { program: "no/such/program".into(), args: Vec::new(), time_limit: Duration::from_mins(1) };
    let options = ReadOptions { pdf_child: Some(child), ..ReadOptions::default() };
    let error = read(&fixture("letter.pdf"), &options).unwrap_err();
    assert!(matches!(error.cause, Cause::PdfChild { .. }), "{error}");
}
