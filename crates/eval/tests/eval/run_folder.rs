//! Run folders: they hold the provenance of every number, and are never overwritten.

use eval::{Beginning, Error, FileDigest, Manifest, ModelDigest, RunFolder};
use serde_json::Value;
use std::fs;

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
    let began = Beginning::now(vec!["memlocal".into(), "bench".into()]);
    let manifest = Manifest::new(began, models, vec![digest("data.jsonl")]);
    let run = RunFolder::create(&files.path("runs/today"), "bench").unwrap();
    let folder = run.write(&manifest, "query,rank\nq,1\n", &Summary { score: 0.5 }).unwrap();
    assert_eq!(folder, files.path("runs/today/bench"));
    let read = |name| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("results.csv"), "query,rank\nq,1\n");
    assert_eq!(read("report.md"), "The score is 0.5.\n");
    assert_eq!(read("report.json"), "{\n  \"score\": 0.5\n}\n");
    let json: Value = serde_json::from_str(&read("manifest.json")).unwrap();
    assert_eq!(json["command"], serde_json::json!(["memlocal", "bench"]));
    assert!(json["started"].as_str().unwrap().ends_with('Z') && json["seconds"].is_f64());
    assert_eq!(json.get("commit_at_end"), None);
    assert_eq!(json["models"][0]["files"][0]["name"], "model.bin");
    // The examples of FIPS 180-2.
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
    // A failed run leaves an empty folder.
    RunFolder::create(files.folder(), "new").unwrap();
    RunFolder::create(files.folder(), "new").unwrap();
    assert!(matches!(RunFolder::create(&files.path("full/old"), "new"), Err(Error::Write { .. })));
}

#[test]
fn a_run_that_was_killed_while_it_wrote_its_plan_is_begun_again() {
    let files = Files::new(&[("run/plan.json.part", "{ \"calls\":")]);
    RunFolder::resume(files.folder(), "run", &serde_json::json!({ "calls": 1 })).unwrap();
    RunFolder::resume(files.folder(), "run", &serde_json::json!({ "calls": 1 })).unwrap();
}

#[test]
fn a_run_is_resumed_only_if_it_is_the_same() {
    let files = Files::new(&[]);
    let plan = |calls: usize| serde_json::json!({ "calls": calls });
    RunFolder::begin(files.folder(), "run", &plan(1)).unwrap();
    assert!(matches!(RunFolder::begin(files.folder(), "run", &plan(1)), Err(Error::Occupied { .. })));
    RunFolder::resume(files.folder(), "run", &plan(1)).unwrap();
    assert!(matches!(RunFolder::resume(files.folder(), "run", &plan(2)), Err(Error::OtherPlan { .. })));
    RunFolder::resume(files.folder(), "new", &plan(2)).unwrap();
    RunFolder::resume(files.folder(), "new", &plan(2)).unwrap();
}
