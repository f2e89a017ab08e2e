//! Small files that would take gigabytes of memory: each is refused within its limits. The largest ones that are read take
//! no more than 400 MiB.
//!
//! One test, each part of which runs in a process of its own and measures that process's peak memory, or its children's.

#[path = "bombs/archive.rs"]
mod archive;
#[path = "bombs/outlook.rs"]
mod outlook;
#[path = "tests/outlook_file.rs"]
mod outlook_file;
#[path = "bombs/pdf.rs"]
mod pdf;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sources::{Cause, Limit, Opened, ReadOptions, SlackUsers, Source, open, read};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const GIB: usize = 1 << 30;
/// The most memory for any one file.
const MOST: usize = 400 << 20;
const TEXT: Limit = Limit::TextBytes(96 << 20);

fn read_bytes(name: &str, bytes: &[u8]) -> Result<Vec<Source>, Cause> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    // For Slack: a user with a long name.
    let users = format!("[{{\"id\":\"U\",\"name\":\"{}\"}}]", "n".repeat(512));
    fs::write(folder.path().join("users.json"), users).unwrap();
    let slack_users = SlackUsers::below(&[folder.path().to_owned()]);
    read(&path, &ReadOptions { slack_users, ..ReadOptions::default() }).map_err(|error| error.cause)
}

/// Reads a file that must exceed `limit`, in less memory than `peak_bytes` beyond the file itself.
fn check(name: &str, bytes: &[u8], limit: Limit, peak_bytes: usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = read_bytes(name, bytes);
    let peak = ALLOCATOR.peak_usage() - before;
    match result {
        Err(Cause::LimitExceeded(found)) => assert_eq!(found, limit, "{name}"),
        other => panic!("{name}: {:?}", other.map(|sources| sources.len())),
    }
    assert!(peak < peak_bytes, "{name}: {limit:?}: {peak} bytes");
}

/// The parts of the test. The longest ones are first, so that all processes end at about the same time.
const PARTS: [(&str, fn()); 15] = [
    ("archives", archive::bombs),
    ("the largest files", largest),
    ("PDF", pdf::bombs),
    ("the largest archives", archive::largest),
    ("HTML", html),
    ("e-mail", mail),
    ("chats", chats),
    ("JSON", json),
    ("tables", tables),
    ("RTF", rtf),
    ("calendars", calendars),
    ("notebooks", notebooks),
    ("Outlook", outlook::bombs),
    ("the largest messages of Outlook", outlook::largest),
    ("small files", small_files_take_little_memory),
];
/// The parts that run side by side: each takes up to 1 GiB.
const AT_ONCE: usize = 2;
/// Names the part that a process runs.
const PART: &str = "MEMLOCAL_BOMBS_PART";

#[test]
fn bombs_are_refused_within_their_limits() {
    if let Ok(name) = env::var(PART) {
        let (_, part) = PARTS.into_iter().find(|(known, _)| *known == name).expect("it is a part");
        return part();
    }
    let next = AtomicUsize::new(0);
    let run_parts = || {
        while let Some((name, _)) = PARTS.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut part = Command::new(env::current_exe().unwrap());
            part.args(["--exact", "bombs_are_refused_within_their_limits", "--nocapture"]).env(PART, name);
            assert!(part.status().unwrap().success(), "{name}");
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(run_parts);
        }
    });
}

/// Reads a file that is just within all limits, in at most 400 MiB beyond the file itself.
fn check_largest(name: &str, bytes: &[u8]) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = read_bytes(name, bytes);
    let peak = ALLOCATOR.peak_usage() - before;
    assert!(result.is_ok_and(|sources| !sources.is_empty()), "{name}");
    assert!(peak <= MOST, "{name}: {peak} bytes");
}

fn largest() {
    check_largest("text.html", ["<p>", &"word ".repeat(6_700_000)].concat().as_bytes());
    check_largest("nodes.html", "<i a=b c=d e=f>x</i>".repeat(490_000).as_bytes());
    check_largest("lists.html", ["<ul>".repeat(500), "<li>x".repeat(499_000)].concat().as_bytes());
    let line = |number| format!("{{\"speaker\":\"A\",\"text\":\"message {number}{}\"}}\n", " and so on".repeat(8));
    let lines: Vec<String> = (0..500_000).map(line).collect();
    check_largest("lines.jsonl", lines.concat().as_bytes());
    drop(lines);
    let lines: Vec<String> =
        (0..500_000).map(|i| format!("12.05.24, 10:02 - A: {i}{}\n", " and so on".repeat(10))).collect();
    check_largest("_chat.txt", lines.concat().as_bytes());
    let days: Vec<String> =
        (0..500_000).map(|i| format!("{:02}.05.24, 10:02 - A: {i} and so on and so on\n", i % 2 + 1)).collect();
    check_largest("days_chat.txt", days.concat().as_bytes());
    drop((lines, days));
    let sessions: Vec<String> =
        (0..500_000).map(|i| format!("{{\"speaker\":\"A\",\"text\":\"{i} and so on\",\"session\":{i}}}\n")).collect();
    check_largest("sessions.jsonl", sessions.concat().as_bytes());
    drop(sessions);
    let chat = "{\"messages\":[{\"role\":\"u\",\"content\":\"some words and so on\"}]}\n";
    check_largest("chats.jsonl", chat.repeat(500_000).as_bytes());
    check_largest("chatgpt.json", chatgpt(490_000).as_bytes());
    check_largest("small.mbox", "From x\nTo: a\n\nb\n\n".repeat(499_000).as_bytes());
    check_largest("text.csv", ["name,note\n", &"A,word\n".repeat(4_700_000)].concat().as_bytes());
    let words = "word ".repeat(20_100_000);
    let pictures = format!("{{\\pict {}}}", "0".repeat(30 << 20));
    check_largest("text.rtf", ["{\\rtf1 ", &words, &pictures, "}"].concat().as_bytes());
    check_largest("cell.rtf", ["{\\rtf1\\trowd ", &words, "\\cell\\row", &pictures, "}"].concat().as_bytes());
    drop((words, pictures));
    check_largest("text.eml", ["Subject: x\n\n", &"word and word\n".repeat(1_990_000)].concat().as_bytes());
    let list = ["<ul>".repeat(12), "<li>x".repeat(490_000)].concat();
    check_largest("html.eml", html_mail(&[&list, &list]).as_bytes());
    check_largest("html.mht", html_mail(&[&list, &list]).as_bytes());
    // The second message has one line of 200 MiB.
    let line = ["From a\nSubject: x\n\nb\n\nFrom b\nSubject: y\n\n", &"x".repeat(200 << 20)].concat();
    check_largest("line.mbox", line.as_bytes());
    drop((list, line));
    let words = "word ".repeat(13_000_000);
    let turn = format!("{{\"speaker\":\"A\",\"dia_id\":\"D1:1\",\"text\":\"{words}\"}}");
    check_largest("turn.json", format!("[{{\"conversation\":{{\"session_1\":[{turn}]}}}}]").as_bytes());
}

/// Reading a damaged small file takes little memory, since no size in it is trusted.
fn small_files_take_little_memory() {
    let fixture = |name: &str| {
        (name.to_owned(), fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap())
    };
    let json = br#"[{"conversation": {"session_1": [{"speaker": "A", "dia_id": "D1:1", "text": "x"}]}}]"#;
    let rtf = br"{\rtf1\trowd caf\'e9\cell\row{\*\x y}\u233?\par}".to_vec();
    let mail = b"From: a\nSubject: x\nContent-Type: multipart/mixed; boundary=m\n\n--m\n\nwords\n--m--\n".to_vec();
    let good = [
        fixture("report.docx"),
        fixture("book.epub"),
        fixture("lamps.xlsx"),
        fixture("lamps.odt"),
        ("a.json".to_owned(), json.to_vec()),
        ("a.rtf".to_owned(), rtf),
        ("a.eml".to_owned(), mail),
        ("a.msg".to_owned(), outlook_file::letter()),
    ];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new(config);
    let tried = runner.run(&(prop::sample::select(good.to_vec()), changes), |((name, mut bytes), changes)| {
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let _ = read_bytes(&name, &bytes);
        let peak = ALLOCATOR.peak_usage() - before;
        prop_assert!(peak < 16 << 20, "{} bytes", peak);
        Ok(())
    });
    tried.unwrap();
}

fn html() {
    let limit = Limit::HtmlNodes(1_000_000);
    check("siblings.html", "<br>".repeat(2_000_000).as_bytes(), limit, GIB);
    check("text.html", "<i>a</i>".repeat(1_000_000).as_bytes(), limit, GIB);
    // Each paragraph reopens all formatting elements.
    let open: Vec<String> = (0..400).map(|id| format!("<b id={id}>")).collect();
    check("formatting.html", (open.concat() + &"<p>".repeat(1_000_000)).as_bytes(), limit, GIB);
    // Each option would be copied into the selected content, if that were implemented.
    let select = format!("<select><button><selectedcontent></button>{}", "<option>x</option>".repeat(1_000_000));
    check("options.html", select.as_bytes(), limit, GIB);
    let names: Vec<String> = (0..60).map(|id| format!(" a{id}")).collect();
    let attributes = format!("<p{}>", names.concat()).repeat(100_000);
    check("attributes.html", attributes.as_bytes(), Limit::HtmlAttributes(2_000_000), MOST);
    let row = ["<table><tr>", &"<td>x".repeat(400_000)].concat();
    check("cells.html", row.as_bytes(), Limit::Columns(16_384), MOST);
    // Each row repeats all cells of the first.
    let rows = ["<table><tr>", &"<td rowspan=0>words".repeat(1000), &"<tr><td>x".repeat(200_000)].concat();
    check("rows.html", rows.as_bytes(), TEXT, MOST);
}

/// An e-mail of these HTML pages.
fn html_mail(pages: &[&str]) -> String {
    let parts: Vec<String> = pages.iter().map(|page| format!("--b\nContent-Type: text/html\n\n{page}\n")).collect();
    format!("Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n{}--b--\n", parts.concat())
}

/// A conversation of this many messages, each an answer to the one before.
fn chatgpt(messages: usize) -> String {
    let message = r#"{"author":{"role":"user"},"content":{"content_type":"text","parts":["a"]}}"#;
    let node = |i| format!("\"{i}\":{{\"message\":{message},\"parent\":\"{}\"}},", i - 1);
    let nodes: Vec<String> = (1..messages).map(node).collect();
    format!("[{{\"current_node\":\"{}\",\"mapping\":{{{}\"0\":{{}}}}}}]", messages - 1, nodes.concat())
}

fn chats() {
    // Each message is a session with a header.
    let days: Vec<String> =
        (0..500_000).map(|i| format!("{:02}.05.24, 10:02 - A: {i}{}\n", i % 2 + 1, " and so on".repeat(10))).collect();
    check("days_chat.txt", days.concat().as_bytes(), TEXT, MOST);
    drop(days);
    // A mention is much shorter than the user's name, as is the id of a speaker.
    let mentions = format!("[{{\"ts\":\"1\",\"text\":\"{}\"}}]", "<@U>".repeat(16_000_000));
    check("channel/2024-05-01.json", mentions.as_bytes(), TEXT, MOST);
    let speakers = vec!["{\"ts\":\"1\",\"text\":\"x\",\"user\":\"U\"}"; 400_000].join(",");
    check("channel/2024-05-02.json", format!("[{speakers}]").as_bytes(), TEXT, MOST);
    let blocks = vec!["{\"type\":\"user\",\"user_id\":\"U\"}"; 400_000].join(",");
    let blocks = format!("[{{\"ts\":\"1\",\"blocks\":[{{\"elements\":[{blocks}]}}]}}]");
    check("channel/2024-05-03.json", blocks.as_bytes(), TEXT, MOST);
    drop(blocks);
    let turns = vec![r#"{"role":"u","content":"x"}"#; 260_000].join(",");
    let chat = format!("{{\"messages\":[{turns}]}}\n");
    check("turns.jsonl", chat.repeat(2).as_bytes(), Limit::Records(500_000), MOST);
}

fn notebooks() {
    // The fence around it is longer.
    let cell = format!("{{\"cell_type\":\"code\",\"source\":\"{}\"}}", "`".repeat(60_000_000));
    check("fence.ipynb", format!("{{\"cells\":[{cell}]}}").as_bytes(), TEXT, MOST);
}

fn tables() {
    check("columns.csv", ",".repeat(200 << 20).as_bytes(), Limit::Columns(16_384), GIB / 4);
    check("quote.csv", format!("a,\"{}", "b".repeat(200 << 20)).as_bytes(), Limit::CellBytes(16 << 20), GIB / 4);
    let header = format!("{},b\n{}", "a".repeat(1 << 20), "1,2\n".repeat(1000));
    check("header.csv", header.as_bytes(), Limit::TextBytes(96 << 20), GIB / 2);
    let row = format!("{},", "a".repeat(1 << 20)).repeat(200);
    check("row.csv", row.as_bytes(), Limit::TextBytes(96 << 20), GIB / 4);
}

fn rtf() {
    check(
        "words.rtf",
        format!("{{\\rtf1 {}", "word ".repeat(26_000_000)).as_bytes(),
        Limit::TextBytes(96 << 20),
        GIB / 2,
    );
    let symbols = [b"{\\rtf1{\\fonttbl{\\f3 Symbol;}}\\f3 ".as_slice(), &b"\xb3\xb3\xb3 ".repeat(30 << 20)].concat();
    check("symbols.rtf", &symbols, Limit::TextBytes(96 << 20), GIB / 2);
    drop(symbols);
    let euros = [b"{\\rtf1 ".as_slice(), &b"\x80\x80\x80 ".repeat(30 << 20)].concat();
    check("euros.rtf", &euros, Limit::TextBytes(96 << 20), GIB / 2);
}

fn mail() {
    let list = ["<ul>".repeat(12), "<li>x".repeat(490_000)].concat();
    let words = format!("--b\nContent-Type: text/plain\n\n{}\n--b\n", "word ".repeat(9_000_000));
    let mail = html_mail(&[list.as_str(); 5]).replacen("--b\n", &words, 1);
    check("html.eml", mail.as_bytes(), TEXT, GIB / 2);
    drop((mail, words));
    check_messages();
    check_largest("signed.eml", &signed_mail(60_000));
    let nested = "Content-Type: message/rfc822\n\n".repeat(1_000_000);
    check("nested.eml", nested.as_bytes(), Limit::Nesting(512), GIB / 4);
    check("lines.eml", "a:\n".repeat(10_000_000).as_bytes(), Limit::MailLines(2_000_000), GIB / 4);
    let names: Vec<String> = (0..2_000_000).map(|i| format!(" a{i}=b;\n")).collect();
    let parameters = format!("Content-Type: text/plain;\n{}\nx", names.concat());
    drop(names);
    check("parameters.eml", parameters.as_bytes(), Limit::MailParametersBytes(64 << 10), GIB / 4);
}

/// A mail whose text is within its signature, in this number of segments of 1,000 bytes.
fn signed_mail(segments: usize) -> Vec<u8> {
    let kind = |last: u8| [&[0x06_u8, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07][..], &[last]].concat();
    let words = [&[0x04_u8, 0x82, 0x03, 0xE8][..], &b"word ".repeat(200)].concat();
    [
        &b"Subject: x\nContent-Type: application/pkcs7-mime\n\n"[..],
        &[0x30, 0x80],
        &kind(2),
        &[0xA0, 0x80, 0x30, 0x80, 0x02, 0x01, 0x01, 0x31, 0x00, 0x30, 0x80],
        &kind(1),
        &[0xA0, 0x80, 0x24, 0x80, 0x04, 0x01, b'\n'],
        &words.repeat(segments),
        &[0x00, 0x00],
    ]
    .concat()
}

/// Reads a mailbox of more messages than a document holds, a document at a time.
fn check_messages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.mbox");
    fs::write(&path, "From x\nTo: a\n\n".repeat(1_200_000)).unwrap();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let Ok(Opened::Sources(documents)) = open(&path, &ReadOptions::default()) else { panic!("it is a mailbox") };
    let messages: Vec<usize> = documents.map(|document| document.unwrap().sections.len()).collect();
    let peak = ALLOCATOR.peak_usage() - before;
    assert_eq!(messages, [500_000, 500_000, 200_000]);
    assert!(peak <= MOST, "{peak} bytes");
}

fn calendars() {
    let limit = Limit::Records(500_000);
    check("entries.ics", "BEGIN:VEVENT\nEND:VEVENT\n".repeat(2_000_000).as_bytes(), limit, MOST);
    check("fields.vcf", ["BEGIN:VCARD\n", &"TEL:1\n".repeat(10_000_000)].concat().as_bytes(), limit, MOST);
    check_largest("note.vcf", ["BEGIN:VCARD\nNOTE:", &"word ".repeat(13_000_000)].concat().as_bytes());
}

fn json() {
    let limit = Limit::Records(500_000);
    check("lines.jsonl", "{}\n".repeat(4_000_000).as_bytes(), limit, GIB / 4);
    check("array.json", format!("[{}{{}}]", "{},".repeat(4_000_000)).as_bytes(), limit, GIB / 4);
    let fields: Vec<String> = (0..2_000_000).map(|i| format!("\"{i}\":0")).collect();
    let samples = format!("[{{\"conversation\":{{{}}}}}]", fields.join(","));
    drop(fields);
    check("fields.json", samples.as_bytes(), limit, GIB / 2);
    let turn = |i| format!("{{\"dia_id\":\"{i}\",\"text\":\"\",\"speaker\":\"\"}}");
    let turns: Vec<String> = (0..500_001).map(turn).collect();
    let session = format!("[{{\"conversation\":{{\"session_1\":[{}]}}}}]", turns.join(","));
    drop(turns);
    check("session.json", session.as_bytes(), limit, GIB / 2);
}
