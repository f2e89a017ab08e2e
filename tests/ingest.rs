//! `memlocal ingest`: files become documents; unreadable files are named.

use test_support::home::{Home, repository};

const DIALOGUE: &str = r#"{"speaker": "Ann", "text": "The wick burnt down.", "time": "1921-05-03"}
{"speaker": "Bo", "text": "Then cut another."}
"#;

const LOCOMO: &str = r#"[{"sample_id": "s1", "conversation": {"speaker_a": "Ann", "speaker_b": "Bo",
"session_1_date_time": "3 May 1921", "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hello!"}]}}]"#;

/// A home with a folder `docs` that holds documents of every format and another file.
fn home_with_documents(name: &str) -> Option<Home> {
    let home = Home::new(name)?;
    home.write("docs/a.txt", "The lamp was out.\n");
    home.write("docs/b.md", "# A heading\n\nThe lamp was out.\n");
    home.write("docs/c.html", "<title>A page</title><p>The lamp was out.");
    home.write("docs/d.jsonl", DIALOGUE);
    home.write("docs/e.json", LOCOMO);
    home.write("docs/lamp.jpg", b"\xff\xd8\xff");
    for fixture in ["book.epub", "letter.pdf", "report.docx"] {
        home.copy(&fixtures().join(fixture), &format!("docs/deep/{fixture}"));
    }
    Some(home)
}

fn fixtures() -> std::path::PathBuf {
    repository("crates/sources/tests/fixtures")
}

/// `rag` needs no memorised pages, so these tests are quick.
const INGEST: [&str; 6] = ["ingest", "docs", "--corpus", "all", "--method", "rag"];

#[test]
fn every_kind_of_document_is_read() {
    let Some(home) = home_with_documents("kinds") else { return };
    let said = home.run(&INGEST);
    let (read, embedded) = said.err.split_once("embedding: ").unwrap();
    let lines = [
        "skipped docs/lamp.jpg: not a document",
        "added docs/a.txt (1 page)",
        "added docs/b.md (1 page)",
        "added docs/c.html (1 page)",
        "added docs/d.jsonl (1 page)",
        "added docs/deep/book.epub (2 pages)",
        "added docs/deep/letter.pdf (2 pages)",
        "added docs/deep/report.docx (1 page)",
        "added docs/e.json#s1 (1 page)\n",
    ];
    assert_eq!(read, lines.join("\n"));
    assert!(embedded.starts_with("10 pages done in "), "{embedded}");
    assert_eq!((said.code, said.out.as_str()), (0, "all: 8 documents, 10 pages\n"));
}

#[test]
fn control_characters_of_names_are_escaped() {
    let Some(home) = Home::new("escaped") else { return };
    home.write("docs/a\n\u{1b}[31mhint: b.txt", "The lamp was out.\n");
    home.write("docs/c\u{1b}]0;x\u{7}.jpg", "no picture");
    home.write("docs/d\r\u{9b}2J.pdf", "no PDF");
    let ingest = home.run(&INGEST);
    let ask = ["ask", "What was out?", "--corpus", "all", "--method", "rag"];
    let [asked, listed, pages] =
        [&ask[..], &["corpus", "show", "all"], &["corpus", "show", "all", "--pages"]].map(|words| home.run(words));
    for line in [
        r"added docs/a\n\u001b[31mhint: b.txt (1 page)",
        r"skipped docs/c\u001b]0;x\u0007.jpg: not a document",
        r"skipped docs/d\r\u009b2J.pdf: damaged PDF: ",
    ] {
        assert!(ingest.err.contains(line), "{line}: {ingest:?}");
    }
    for said in [&asked, &listed, &pages] {
        assert!(said.out.contains(r"docs/a\n\u001b[31mhint: b.txt"), "{said:?}");
    }
    for said in [ingest, asked, listed, pages] {
        let shown = [said.out, said.err].concat();
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    }
    let json = home.get(&[&ask[..], &["--json"]].concat());
    assert!(json.contains(r"docs/a\n\u001b[31mhint: b.txt"), "as in any JSON: {json}");
}

#[test]
fn an_unchanged_file_does_nothing_and_a_changed_one_replaces_its_pages() {
    let Some(home) = home_with_documents("again") else { return };
    home.get(&INGEST);
    std::fs::remove_file(home.path("docs/lamp.jpg")).unwrap();
    let said = home.run(&INGEST);
    assert_eq!((said.code, said.err.as_str(), said.out.as_str()), (0, "", "all: 8 documents, 10 pages\n"));

    home.write("docs/a.txt", "The lamp burns again.\n");
    let said = home.run(&INGEST);
    assert!(said.err.starts_with("replaced docs/a.txt (1 page)\nembedding: 1 page done in "), "{}", said.err);
    assert_eq!((said.code, said.out.as_str()), (0, "all: 8 documents, 10 pages\n"));
    assert_eq!(home.get(&["corpus", "show", "all", "--text", "docs/a.txt"]), "The lamp burns again.\n");
}

#[test]
fn unreadable_files_are_named_and_the_others_are_ingested() {
    let Some(home) = Home::new("bad") else { return };
    home.write("good.txt", "The lamp was out.\n");
    home.write("empty.txt", "");
    home.write("binary.txt", b"lamp\0lamp");
    home.write("cut.txt", b"\xc3\xa9 \xc3\xa9 \xc3");
    home.write("fields.json", r#"[{"name": "Ann"}]"#);
    home.write("cut.pdf", b"%PDF-1.7\n");
    home.write("cut.docx", b"PK\x03\x04");
    home.write("lamp.jpg", b"\xff\xd8\xff");
    home.write("lamp.heic", b"\xff\xd8\xfe");
    home.copy(&fixtures().join("scan.pdf"), "scan.pdf");
    home.copy(&fixtures().join("locked.pdf"), "locked.pdf");
    let bad = [
        ("missing.txt", "cannot be read: No such file or directory (os error 2)"),
        ("lamp.jpg", "unsupported file type\n"),
        ("lamp.heic", "unsupported file type\n"),
        ("empty.txt", "the file is empty"),
        ("binary.txt", "binary data, not text: byte 4 is NUL"),
        ("cut.txt", "the text is not valid UTF-8 at byte 6; save it as UTF-8"),
        (
            "fields.json",
            "line 1: not a supported conversation: expected an export of a chat, `messages` with `role` and `content`, \
             objects with `speaker` and `text`, or LoCoMo's `conversation`, found `name`",
        ),
        ("cut.pdf", "damaged PDF: "),
        ("cut.docx", "damaged DOCX: "),
        ("scan.pdf", "the PDF contains no text"),
        ("locked.pdf", "the file is encrypted; save a copy without a password"),
    ];
    let names: Vec<&str> = bad.iter().map(|(name, _)| *name).collect();
    let to_corpus = ["--corpus", "some", "--method", "rag"];
    let said = home.run(&[&["ingest"], &names[..], &["good.txt"], &to_corpus].concat());
    for (name, reason) in bad {
        assert!(said.err.contains(&format!("skipped {name}: {reason}")), "{name}: {}", said.err);
    }
    assert_eq!(said.err.matches("skipped ").count(), bad.len(), "{}", said.err);
    let types = "\nhint: files of these types are read: .txt .text .log .rst .tex .org .adoc .srt ";
    assert_eq!(said.err.matches(types).count(), 1, "{}", said.err);
    assert!(said.err.find(types) > said.err.rfind("\nskipped "), "it follows the files: {}", said.err);
    assert_eq!((said.code, said.out.as_str()), (3, "some: 1 document, 1 page\n"));

    let said = home.run(&[&["ingest"], &names[..], &to_corpus].concat());
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    let error = "\nerror: none of the inputs could be read\n\
                 hint: the `skipped` lines above say why; correct these files, or give others\n";
    assert!(said.err.ends_with(error), "{}", said.err);
}

#[test]
fn files_of_the_same_name_in_different_folders_are_different_documents() {
    let Some(home) = Home::new("same-names") else { return };
    home.write("docs/a/same.txt", "The lamp was out.\n");
    home.write("docs/b/same.txt", "The lamp was lit.\n");
    assert_eq!(home.get(&["ingest", "docs", "--corpus", "same", "--method", "direct"]), "same: 2 documents, 2 pages\n");
    assert_eq!(home.get(&["corpus", "show", "same", "--text", "docs/b/same.txt"]), "The lamp was lit.\n");
}

#[cfg(unix)]
#[test]
fn links_that_leave_the_folder_are_skipped_and_reported() {
    use std::os::unix::fs::symlink;
    let Some(home) = Home::new("links") else { return };
    home.write("docs/a.txt", "The lamp was out.\n");
    home.write("secret/b.txt", "The password is lamp.\n");
    symlink("../secret", home.path("docs/secret")).unwrap();
    symlink("../secret/b.txt", home.path("docs/b.txt")).unwrap();
    let said = home.run(&["ingest", "docs", "--corpus", "links", "--method", "direct"]);
    for name in ["b.txt", "secret"] {
        let line = format!("skipped docs/{name}: a link to outside the folder; give its target by name to read it\n");
        assert!(said.err.contains(&line), "{}", said.err);
    }
    assert_eq!((said.code, said.out.as_str()), (3, "links: 1 document, 1 page\n"));
    symlink("nowhere", home.path("docs/broken.md")).unwrap();
    home.write("docs/.gitignore", "secret\nbroken.*\n");
    let said = home.run(&["ingest", "docs", "--corpus", "links", "--method", "direct", "--exclude", "b.*"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "links that are left out are no failed inputs");
}

#[test]
fn text_in_another_encoding_is_decoded_and_named() {
    let Some(home) = Home::new("encodings") else { return };
    home.write("old.txt", b"Das Licht am s\xfcdlichen Pier war gel\xf6scht.");
    let said = home.run(&["ingest", "old.txt", "--corpus", "old", "--method", "direct"]);
    assert!(said.err.contains("added old.txt (1 page, decoded from windows-1252)\n"), "{}", said.err);
    let text = home.get(&["corpus", "show", "old", "--text", "old.txt"]);
    assert_eq!(text.trim_end(), "Das Licht am südlichen Pier war gelöscht.");
}

#[test]
fn patterns_and_gitignore_select_the_files_of_a_folder() {
    let Some(home) = Home::new("patterns") else { return };
    for file in ["a.md", "b.txt", "drafts/a.md", "ignored.md"] {
        home.write(&format!("docs/{file}"), "The lamp was out.\n");
    }
    home.write("docs/.gitignore", "ignored.md\n");
    let ingest =
        ["ingest", "docs", "--corpus", "some", "--method", "direct", "--include", "*.md", "--exclude", "drafts"];
    let said = home.run(&ingest);
    assert!(said.err.contains("added docs/a.md (1 page)\n"), "{}", said.err);
    assert_eq!((said.code, said.out.as_str()), (0, "some: 1 document, 1 page\n"));
    let said = home.run(&[&ingest[..], &["--include", "[a"]].concat());
    assert_eq!(said.code, 1);
    assert!(said.err.contains("error: `[a` is no pattern: "), "{}", said.err);
}

#[test]
fn documents_of_files_that_are_gone_are_removed_on_request() {
    let Some(home) = Home::new("gone") else { return };
    let chat =
        |id: &str| format!(r#"{{"id": "{id}", "messages": [{{"role": "user", "content": "Is the lamp out?"}}]}}"#);
    home.write("docs/a.md", "The lamp was out.\n");
    home.write("docs/b.md", "The lamp was lit.\n");
    home.write("docs/c.jsonl", format!("{}\n{}\n", chat("one"), chat("two")));
    let ingest = ["ingest", "docs", "--corpus", "gone", "--method", "direct"];
    assert_eq!(home.get(&ingest), "gone: 4 documents, 4 pages\n");
    std::fs::remove_file(home.path("docs/b.md")).unwrap();
    home.write("docs/c.jsonl", chat("two"));
    assert_eq!(home.get(&ingest), "gone: 4 documents, 4 pages\n");
    let said = home.run(&[&ingest[..], &["--delete"]].concat());
    for gone in ["docs/b.md", "docs/c.jsonl#one"] {
        assert!(said.err.contains(&format!("removed {gone}\n")), "{}", said.err);
    }
    assert_eq!((said.code, said.out.as_str()), (0, "gone: 2 documents, 2 pages\n"));
    std::fs::rename(home.path("docs"), home.path("elsewhere")).unwrap();
    // The folder of this file may be on a drive that is not mounted.
    home.run(&["ingest", "docs/a.md", "--corpus", "gone", "--method", "direct", "--delete"]).is_error(&[
        "skipped docs/a.md: cannot be read: No such file or directory (os error 2)",
        "docs/a.md is gone, or its drive is not mounted; its documents stay",
        "error: none of the inputs could be read",
        "hint: the `skipped` lines above say why; correct these files, or give others",
    ]);
    home.run(&ingest).is_error(&[
        "skipped docs: cannot be read: No such file or directory (os error 2)",
        "error: none of the inputs could be read",
        "hint: --delete removes the documents of docs from gone",
    ]);
    let said = home.run(&[&ingest[..], &["--delete"]].concat());
    assert_eq!((said.code, said.err.as_str()), (0, "removed docs/a.md\nremoved docs/c.jsonl#two\n"));
    assert_eq!(said.out, "gone: 0 documents, 0 pages\n");
}

#[test]
fn a_long_mailbox_is_followed_document_by_document() {
    let Some(home) = Home::new("mailbox") else { return };
    let message = |mib: usize| format!("From a\nSubject: x\n\n{}\n", "The lamp was out.\n".repeat((mib << 20) / 18));
    let ingest = |sizes: &[usize]| {
        home.write("docs/a.mbox", sizes.iter().map(|mib| message(*mib)).collect::<String>());
        let said = home.run(&["ingest", "docs", "--corpus", "mail", "--method", "direct"]);
        assert_eq!(said.code, 0, "{}", said.err);
        let lines: Vec<&str> = said.err.lines().map(|line| line.split(" (").next().unwrap()).collect();
        let documents = said.out.split(", ").next().unwrap();
        format!("{}; {documents}", lines.join(", "))
    };
    assert_eq!(ingest(&[5, 4]), "added docs/a.mbox, added docs/a.mbox#2; mail: 2 documents");
    assert_eq!(ingest(&[5, 4, 1]), "replaced docs/a.mbox#2; mail: 2 documents");
    assert_eq!(ingest(&[5]), "removed docs/a.mbox#2; mail: 1 document");
}

#[test]
fn a_file_that_was_renamed_is_removed_by_its_old_name() {
    let Some(home) = Home::new("renamed") else { return };
    home.write("docs/old.md", "The lamp was out.\n");
    let ingest = |words: &[&str]| {
        let to_corpus = ["--corpus", "renamed", "--method", "direct"];
        home.run(&[&["ingest"][..], words, &to_corpus[..]].concat())
    };
    assert_eq!(ingest(&["docs/old.md"]).code, 0);
    std::fs::rename(home.path("docs/old.md"), home.path("docs/new.md")).unwrap();
    let said = ingest(&["docs/old.md", "docs/new.md"]);
    let line = "docs/old.md is gone; its documents stay, as --delete was not given\n";
    assert!(said.err.contains(line), "{}", said.err);
    assert_eq!((said.code, said.out.as_str()), (3, "renamed: 2 documents, 2 pages\n"));
    let said = ingest(&["docs/../docs/old.md", "docs/new.md", "--delete"]);
    assert_eq!((said.code, said.err.as_str()), (0, "removed docs/old.md\n"));
    assert_eq!(said.out, "renamed: 1 document, 1 page\n");
    let said = ingest(&["docs/old.md", "docs/new.md", "--delete"]);
    assert_eq!(said.err, "skipped docs/old.md: cannot be read: No such file or directory (os error 2)\n");
    assert_eq!((said.code, said.out.as_str()), (3, "renamed: 1 document, 1 page\n"));
}

#[test]
fn only_methods_that_embed_load_the_embedding_model() {
    let Some(home) = Home::new("no-embedder") else { return };
    home.write("a.txt", "The lamp was out.\n");
    let ingest = |words: &[&str]| home.run(&[&["ingest", "a.txt", "--corpus", "c"][..], words].concat());
    let said = ingest(&["--method", "direct", "--embedder", "missing.safetensors"]);
    assert_eq!((said.code, said.err.as_str()), (0, "added a.txt (1 page)\n"));
    assert_eq!(ingest(&["--method", "rag", "--embedder", "missing.safetensors"]).code, 1);
    let said = ingest(&["--method", "rag"]);
    assert!(said.err.starts_with("embedding: 1 page done in "), "the vectors follow: {}", said.err);
}

const FORMATS: &str = "hint: files of these types are read: .txt .text .log .rst .tex .org .adoc .srt .vtt .md .markdown .csv .tsv \
                       .html .htm .mht .mhtml .pdf .docx .docm .odt .ods .odp .rtf .pptx .pptm .ppsx .xlsx .xlsm .epub .eml .emlx \
                       .msg .mbox .ics .vcf .ipynb .json .jsonl and source code";

#[test]
fn a_folder_without_documents_is_met_with_what_is_read_and_what_was_skipped() {
    let home = Home::bare("no-documents");
    for file in [".hidden.md", "draft.md", "photo.png", "private.md"] {
        home.write(&format!("docs/{file}"), "text\n");
    }
    home.write("docs/.gitignore", "private.md\n");
    home.run(&["ingest", "docs", "--corpus", "none", "--exclude", "draft.md"]).is_error(&[
        "skipped docs/photo.png: not a document",
        "error: there are no documents in docs",
        &format!(
            "{FORMATS}; 2 skipped: hidden (the name begins with a dot); 1 skipped: named in .gitignore; \
             1 skipped: not selected by --include or --exclude"
        ),
    ]);
}

#[test]
fn the_last_documents_are_removed_on_request() {
    let Some(home) = Home::new("last-gone") else { return };
    home.write("docs/a.md", "The lamp was out.\n");
    home.write("docs/b.md", "The lamp was lit.\n");
    let ingest = ["ingest", "docs", "--corpus", "last", "--method", "direct", "--delete"];
    assert_eq!(home.get(&ingest), "last: 2 documents, 2 pages\n");
    std::fs::remove_file(home.path("docs/a.md")).unwrap();
    home.write("docs/b.md", "");
    let said = home.run(&ingest);
    assert_eq!((said.code, said.out.as_str()), (3, "last: 1 document, 1 page\n"), "{}", said.err);
    std::fs::remove_file(home.path("docs/b.md")).unwrap();
    let said = home.run(&ingest);
    assert_eq!((said.code, said.err.as_str()), (0, "removed docs/b.md\n"));
    assert_eq!(said.out, "last: 0 documents, 0 pages\n");
    let nothing = ["error: there are no documents in docs", FORMATS];
    home.run(&ingest).is_error(&nothing);
    home.run(&["ingest", "docs", "--corpus", "none", "--method", "direct", "--delete"]).is_error(&nothing);
    assert_eq!(home.run(&["corpus", "show", "none"]).code, 1, "no corpus was made");
}

#[cfg(target_os = "linux")]
#[test]
fn paths_that_are_not_utf_8_are_skipped_and_never_taken_for_gone() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let Some(home) = Home::new("not-utf-8") else { return };
    let file = |name: &[u8]| home.path("docs").join(OsStr::from_bytes(name));
    home.write("docs/a.md", "The lamp was out.\n");
    home.write("docs/caf\u{fffd}.txt", "The lamp was lit.\n");
    let ingest = ["ingest", "docs", "--corpus", "names", "--method", "direct", "--delete"];
    assert_eq!(home.get(&ingest), "names: 2 documents, 2 pages\n");
    std::fs::rename(home.path("docs/caf\u{fffd}.txt"), file(b"caf\xe9.txt")).unwrap();
    std::fs::write(file(b"caf\xe8.txt"), "Another lamp was lit.\n").unwrap();
    let said = home.run(&ingest);
    let line = "skipped docs/caf\u{fffd}.txt: its path is not valid UTF-8; rename the file or its folder\n";
    assert_eq!(said.err, line.repeat(2));
    assert_eq!((said.code, said.out.as_str()), (3, "names: 2 documents, 2 pages\n"));
    assert_eq!(home.get(&["corpus", "show", "names", "--text", "docs/caf\u{fffd}.txt"]), "The lamp was lit.\n");
}

#[cfg(unix)]
#[test]
fn a_watched_folder_is_followed_until_it_is_interrupted() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let Some(home) = Home::new("watch") else { return };
    home.write("docs/a.md", "The lamp was out.\n");
    home.write("docs/b.md", "The lamp was lit.\n");
    let arguments = ["ingest", "docs", "--corpus", "watched", "--method", "direct", "--watch", "--delete"];
    let plain = home.command(&arguments);
    // This test may run with interrupt signals ignored, and child processes inherit that.
    let mut command = home.program("env");
    command.arg("--default-signal=INT").arg(plain.get_program()).args(plain.get_args());
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "watched: 2 documents, 2 pages");
    home.write("docs/c.md", "A new wick was fitted.\n");
    assert_eq!(lines.next().unwrap(), "watched: 3 documents, 3 pages");
    std::fs::remove_file(home.path("docs/b.md")).unwrap();
    assert_eq!(lines.next().unwrap(), "watched: 2 documents, 2 pages");
    // A folder takes the place of a file.
    std::fs::remove_file(home.path("docs/a.md")).unwrap();
    std::fs::create_dir(home.path("docs/a.md")).unwrap();
    assert_eq!(lines.next().unwrap(), "watched: 1 document, 1 page");
    Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(130));
    assert_eq!(home.get(&["corpus", "check", "watched"]).lines().count(), 1);
}
