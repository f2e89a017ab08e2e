//! Random input: no bytes make a reader panic, and sources have valid spans (checked by `read_bytes`).
//!
//! `test_support::fuzz` sets the number of cases of each property.

use std::fs;
use std::io::{Cursor, Read, Write};
use std::panic::catch_unwind;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use test_support::fuzz;
use zip::write::SimpleFileOptions;

use crate::archives::{RELATIONS, archive};
use crate::{fixture, read_bytes};

const JSON: &str =
    r#"[{"sample_id": 1, "conversation": {"session_1": [{"speaker": "A", "dia_id": "D1:1", "text": "é\n"}]}}]"#;
const LINES: &str = "{\"speaker\": \"A\", \"text\": \"é\", \"session\": 1}\n{\"speaker\": \"A\", \"text\": \"b\"}\n";
const HTML: &str =
    "<title>é</title><ul><li>a<pre> b</pre></ul><table><tr><td>c<td><p>d<p>é</table><svg/><ol start=9>&amp;<li>";

fn file_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a.txt", "a.md", "a.html", "a.pdf", "a.docx", "a.epub", "a.json", "a.jsonl", "a.csv", "a.tsv", "a.rtf",
        "a.eml", "a.mbox", "a.ipynb", "a.py", "a.odt", "a.pptx", "a.xlsx", "a.ics", "a.vcf", "a.none", "a.ods",
        "a.odp", "a.emlx", "a.mht", "Inbox", "a.msg",
    ])
}

/// A valid file with a few of its bytes replaced.
fn nearly_good() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    let file = |name| fs::read(fixture(name)).unwrap();
    let good = vec![
        ("a.json", JSON.as_bytes().to_vec()),
        ("a.jsonl", LINES.as_bytes().to_vec()),
        ("a.html", HTML.as_bytes().to_vec()),
        ("a.rtf", crate::rtf::LETTER.as_bytes().to_vec()),
        ("a.eml", crate::mail::LETTER.as_bytes().to_vec()),
        ("a.eml", crate::secured::signed_mail().into_bytes()),
        ("a.msg", crate::outlook_file::letter()),
        ("a.msg", crate::outlook::appointment()),
        ("a.ipynb", crate::texts::NOTEBOOK.as_bytes().to_vec()),
        ("a.ics", crate::calendars::CALENDAR.as_bytes().to_vec()),
        ("a.vcf", crate::calendars::CONTACTS.as_bytes().to_vec()),
        ("a.csv", "name,city\n\"Ann, é\",Bern\n1,2\n".as_bytes().to_vec()),
        ("conversations.json", crate::chats::CHATGPT.as_bytes().to_vec()),
        ("result.json", crate::chats::TELEGRAM.as_bytes().to_vec()),
        ("_chat.txt", crate::chats::WHATSAPP.as_bytes().to_vec()),
        ("a.docx", file("report.docx")),
        ("a.epub", file("book.epub")),
        ("a.xlsx", crate::office::workbook("45413")),
        ("a.pdf", file("letter.pdf")),
        ("a.odt", file("lamps.odt")),
        ("a.pptx", file("lamps.pptx")),
        ("a.ods", crate::office::spreadsheet("2024-05-01")),
        ("a.odp", crate::office::presentation("The lamps")),
        ("a.mht", crate::mail::PAGE.as_bytes().to_vec()),
        ("a.emlx", format!("{}\n{}<plist/>", crate::mail::LETTER.len(), crate::mail::LETTER).into_bytes()),
        ("Inbox", format!("From - Mon Jan  1 00:00:00 2024\n{}", crate::mail::LETTER).into_bytes()),
        ("a.mbox", format!("From ann@pell.example Mon Jan  1 00:00:00 2024\n{}", crate::mail::LETTER).into_bytes()),
    ];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (prop::sample::select(good), changes).prop_map(|((name, mut bytes), changes)| {
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        (name, bytes)
    })
}

/// An office file or book with a few bytes of one of its parts replaced, within a valid archive.
fn nearly_good_parts() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    let good = vec![
        ("a.docx", "report.docx"),
        ("a.epub", "book.epub"),
        ("a.xlsx", "lamps.xlsx"),
        ("a.odt", "lamps.odt"),
        ("a.pptx", "lamps.pptx"),
    ];
    let change = (any::<prop::sample::Index>(), 0..6_usize, prop::sample::select(PIECES.to_vec()));
    let changes = prop::collection::vec(change, 1..5);
    (prop::sample::select(good), any::<prop::sample::Index>(), changes).prop_map(|((name, fixed), part, changes)| {
        let mut parts = parts(&fs::read(fixture(fixed)).unwrap());
        let part = part.index(parts.len());
        let content = &mut parts[part].1;
        for (place, length, piece) in changes {
            let start = place.index(content.len() + 1);
            let end = (start + length).min(content.len());
            content.splice(start..end, piece.iter().copied());
        }
        (name, packed(&parts))
    })
}

fn parts(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut zip = zip::ZipArchive::new(Cursor::new(archive)).unwrap();
    (0..zip.len())
        .map(|number| {
            let mut part = zip.by_index(number).unwrap();
            let mut content = Vec::new();
            part.read_to_end(&mut content).unwrap();
            (part.name().unwrap().into_owned(), content)
        })
        .collect()
}

fn packed(parts: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        zip.start_file(name.as_str(), SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// What XML readers stumble over.
const PIECES: [&[u8]; 14] = [
    b"",
    b"<",
    b">",
    b"</w:p>",
    b"<a:p xmlns:a='x'>",
    b"&#0;",
    b"&amp",
    b"]]>",
    b"<!--",
    b"\"",
    b"\xff\xfe",
    b"99999999999999999999",
    b"-1",
    b"../../x",
];

/// Well-formed XML: each name opens an element, an empty name closes the innermost.
fn nested(names: &[&str]) -> String {
    let mut xml = String::new();
    let mut open = Vec::new();
    for name in names {
        if !name.is_empty() {
            open.push(*name);
            xml.extend(["<", name, " id='1' val='1'>"]);
        } else if let Some(name) = open.pop() {
            xml.extend(["x</", name, ">"]);
        }
    }
    xml.extend(open.iter().rev().flat_map(|name| ["</", name, ">"]));
    xml
}

/// Reads files made by this strategy.
fn check(name: &str, files: &impl Strategy<Value = (&'static str, Vec<u8>)>) {
    let mut rounds = fuzz::rounds(1000);
    let mut read = 0_u64;
    for round in &mut rounds {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&round.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), random);
        let (file, bytes) = files.new_tree(&mut runner).unwrap().current();
        let result = catch_unwind(|| read_bytes(file, &bytes));
        let result = result.unwrap_or_else(|_| panic!("round {round}: {file}: {:?}", bytes.escape_ascii().to_string()));
        read += u64::from(result.is_ok());
    }
    println!("{name}: {read} of {} were read", rounds.done());
}

#[test]
fn random_bytes_do_not_panic() {
    let bytes = prop::collection::vec(any::<u8>(), 0..400);
    check("random bytes", &(file_name(), bytes));
}

#[test]
fn random_text_does_not_panic() {
    let text = "[a-z<>/&;#\"'=\\[\\]{}:,|\\-\\\\é\u{ad}\u{feff} \n\t0-9]{0,200}".prop_map(String::into_bytes);
    check("random text", &(file_name(), text));
}

#[test]
fn random_tags_do_not_panic() {
    let tags = prop::collection::vec(prop::sample::select(TAGS.to_vec()), 0..60);
    check("random tags", &tags.prop_map(|tags| ("a.html", tags.concat().into_bytes())));
}

#[test]
fn random_word_elements_do_not_panic() {
    let names = prop::collection::vec(prop::sample::select(WORD.to_vec()), 0..60);
    let file = |names: Vec<_>| archive(&[RELATIONS, ("word/document2.xml", &nested(&names))]);
    check("random elements", &names.prop_map(move |names| ("a.docx", file(names))));
}

#[test]
fn nearly_good_parts_of_archives_do_not_panic() {
    check("nearly good parts of archives", &nearly_good_parts());
}

#[test]
fn nearly_good_files_do_not_panic() {
    check("nearly good files", &nearly_good());
}

const TAGS: [&str; 26] = [
    "<p>",
    "</p>",
    "<ul>",
    "</ul>",
    "<ol start=-1>",
    "<li>",
    "</li>",
    "<table>",
    "</table>",
    "<tr>",
    "<td>",
    "</td>",
    "<pre>",
    "</pre>",
    "<title>",
    "</title>",
    "<svg>",
    "</svg>",
    "<math>",
    "<template>",
    "</template>",
    "<b>",
    "</b>",
    "word",
    " ",
    "\n",
];

const WORD: [&str; 25] = [
    "",
    "",
    "",
    "",
    "p",
    "r",
    "t",
    "tbl",
    "tr",
    "tc",
    "br",
    "numId",
    "Fallback",
    "moveFrom",
    "footnote",
    "footnoteReference",
    "oMathPara",
    "oMath",
    "f",
    "num",
    "d",
    "e",
    "nary",
    "mr",
    "chr",
];
