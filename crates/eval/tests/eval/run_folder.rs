//! Folders of runs: all that a number came from, and nothing written over.

use std::fs;
use std::time::SystemTime;

use eval::{Error, FileDigest, Manifest, ModelDigest, RunFolder};
use serde_json::Value;

use crate::Files;

#[derive(serde::Serialize)]
struct Summary {
    score: f64,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "The score is {}.", self.score)
    }
}

#[test]
fn a_run_folder_holds_numbers_and_where_they_come_from() {
    let files = Files::new(&[("model.bin", "abc"), ("data.jsonl", "")]);
    let digest = |name| FileDigest::of(&files.path(name)).unwrap();
    let models = vec![ModelDigest { name: "tiny".into(), files: vec![digest("model.bin")] }];
    let manifest = Manifest::new(
        vec!["memlocal".into(), "bench".into()],
        SystemTime::UNIX_EPOCH,
        models,
        vec![digest("data.jsonl")],
    );
    let run = RunFolder::create(&files.path("runs/today"), "bench").unwrap();
    let folder = run.write(&manifest, "query,rank\nq,1\n", &Summary { score: 0.5 }).unwrap();
    assert_eq!(folder, files.path("runs/today/bench"));
    let read = |name| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("results.csv"), "query,rank\nq,1\n");
    assert_eq!(read("summary.md"), "The score is 0.5.\n");
    assert_eq!(read("summary.json"), "{\n  \"score\": 0.5\n}\n");
    let json: Value = serde_json::from_str(&read("manifest.json")).unwrap();
    assert_eq!(json["command"], serde_json::json!(["memlocal", "bench"]));
    assert_eq!(json["started"], "1970-01-01T00:00:00Z");
    assert!(json["seconds"].as_f64().unwrap() > 1.7e9);
    assert_eq!(json["models"][0]["files"][0]["name"], "model.bin");
    // FIPS 180-2's own examples.
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(json["models"][0]["files"][0]["sha256"], abc);
    assert_eq!(json["data"][0]["sha256"], nothing);
    assert_eq!(json["data"][0]["bytes"], 0);
    assert!(json["machine"]["cores"].as_u64().unwrap() >= 1);
}

#[test]
fn the_numbers_of_another_run_are_never_written_over() {
    let files = Files::new(&[("full/old", "x")]);
    assert!(matches!(RunFolder::create(files.folder(), "full"), Err(Error::Occupied { .. })));
    // What a run that failed leaves behind is an empty folder.
    RunFolder::create(files.folder(), "new").unwrap();
    RunFolder::create(files.folder(), "new").unwrap();
    assert!(matches!(RunFolder::create(&files.path("full/old"), "new"), Err(Error::Write { .. })));
}
