//! Small files that would take gigabytes of memory: each is refused within its limits. The largest ones that are read take
//! no more than 400 MiB.
//!
//! One test in its own process: it measures the peak memory of the process and of its children.

#[path = "bombs/archive.rs"]
mod archive;
#[path = "bombs/pdf.rs"]
mod pdf;

use std::fs;
use std::path::Path;

use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sources::{Cause, Limit, ReadOptions, Source, read};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const GIB: usize = 1 << 30;

fn read_bytes(name: &str, bytes: &[u8]) -> Result<Vec<Source>, Cause> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    read(&path, &ReadOptions::default()).map_err(|error| error.cause)
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

#[test]
fn bombs_are_refused_within_their_limits() {
    // First, since the system counts this process's memory as its children's until they execute their program.
    pdf::bombs();
    html();
    json();
    archive::bombs();
    largest();
    archive::largest();
    small_files_take_little_memory();
}

/// Reads a file that is just within all limits, in at most 400 MiB beyond the file itself.
fn check_largest(name: &str, bytes: &[u8]) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = read_bytes(name, bytes);
    let peak = ALLOCATOR.peak_usage() - before;
    assert_eq!(result.map(|sources| sources.len()).map_err(|cause| cause.to_string()), Ok(1), "{name}");
    assert!(peak <= 400 << 20, "{name}: {peak} bytes");
}

fn largest() {
    check_largest("text.html", ["<p>", &"word ".repeat(6_700_000)].concat().as_bytes());
    check_largest("nodes.html", "<i a=b c=d e=f>x</i>".repeat(490_000).as_bytes());
    let line = |number| format!("{{\"speaker\":\"A\",\"text\":\"message {number}{}\"}}\n", " and so on".repeat(8));
    let lines: Vec<String> = (0..500_000).map(line).collect();
    check_largest("lines.jsonl", lines.concat().as_bytes());
    drop(lines);
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
    let good = [fixture("report.docx"), fixture("book.epub"), ("a.json".to_owned(), json.to_vec())];
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
