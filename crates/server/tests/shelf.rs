//! The models that a machine could serve, and their download.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use calls::Caller;
use serde_json::json;
use server::{Given, Keys, KeysFile, ModelMemory, Preset, PullProgress, Refused, Shelf, ShelfModel};

use crate::host::{Host, says};

/// Three models: one is loaded, one is too large, and one can be fetched while the gate is open.
#[derive(Debug, Default)]
pub struct Three {
    fetched: AtomicBool,
    pub gate: Mutex<()>,
}

impl Shelf for Three {
    fn list(&self) -> Vec<ShelfModel> {
        let model = |name: &str, gib: u64, here| ShelfModel {
            name: name.to_owned(),
            kind: "language",
            context_tokens: 8192,
            download_bytes: Some(gib << 30),
            memory: ModelMemory::undivided(gib << 30),
            licence: "Apache-2.0".to_owned(),
            here,
            ..ShelfModel::default()
        };
        let fetched = self.fetched.load(Ordering::SeqCst);
        vec![model("scripted", 1, true), model("small:q4", 2, fetched), model("large:q8", 64, false)]
    }

    fn given(&self, _: &str) -> Option<Given> {
        None
    }

    fn free_bytes(&self) -> Option<u64> {
        Some(16 << 30)
    }

    fn fetchable(&self, name: &str) -> Option<String> {
        self.list().into_iter().map(|model| model.name).find(|known| known == name)
    }

    fn load(&self, _: &str, _: u64) -> Result<Arc<dyn Caller>, Refused> {
        Ok(Arc::new(says("I was loaded.")))
    }

    fn alias(&self, _: &str, _: &str, _: &Preset) -> Result<(), Refused> {
        Err(("no names are given here".to_owned(), None))
    }

    fn remove(&self, _: &str) -> Result<(), Refused> {
        Err(("nothing is removed here".to_owned(), None))
    }

    fn blob(&self, sha256: &str) -> PathBuf {
        std::env::temp_dir().join(sha256)
    }

    fn pull(&self, name: &str, report: &mut dyn FnMut(PullProgress)) -> Result<(), Refused> {
        if name == "large:q8" {
            return Err(("the disk is full".to_owned(), Some("free some space".to_owned())));
        }
        report(PullProgress { file: "a.gguf".to_owned(), done_bytes: 1 << 30, total_bytes: Some(2 << 30) });
        drop(self.gate.lock());
        self.fetched.store(true, Ordering::SeqCst);
        Ok(())
    }
}

pub fn host() -> (Host, Arc<Three>) {
    let shelf = Arc::new(Three::default());
    let theirs = Arc::clone(&shelf);
    (Host::with(Arc::new(says("")), |config| config.shelf = Some(theirs)), shelf)
}

#[test]
fn a_model_is_fetched_with_progress_and_then_on_the_disk() {
    let (host, _) = host();
    let states = |host: &Host| {
        let shelf = host.get("/v1/shelf").json();
        let of = |model: &serde_json::Value| json!([model["name"], model["loaded"], model["here"], model["fits"]]);
        shelf["models"].as_array().expect("models").iter().map(of).collect::<Vec<_>>()
    };
    let large = json!(["large:q8", false, false, false]);
    let loaded = json!(["scripted", true, true, true]);
    assert_eq!(states(&host), [loaded.clone(), json!(["small:q4", false, false, true]), large.clone()]);
    let events = host.post("/v1/shelf/pull", &json!({ "model": "small:q4" })).events();
    assert_eq!(
        events[0],
        ("progress".to_owned(), json!({ "file": "a.gguf", "done_bytes": 1 << 30, "total_bytes": 2_u64 << 30 }))
    );
    assert_eq!(events[1].0, "done");
    assert_eq!(states(&host), [loaded, json!(["small:q4", false, true, true]), large]);
    let failed = host.post("/v1/shelf/pull", &json!({ "model": "large:q8" }));
    failed.refused(502, "pull_failed");
    assert_eq!(failed.json()["error"]["hint"], "free some space");
    host.post("/v1/shelf/pull", &json!({ "model": "none" })).refused(404, "not_found");
    let without = Host::new(says(""));
    assert_eq!(without.get("/v1/shelf").json()["models"], json!([]));
}

#[test]
fn one_model_is_fetched_at_a_time() {
    let (host, shelf) = host();
    let gate = shelf.gate.lock().expect("it is sound");
    let body = json!({ "model": "small:q4" }).to_string();
    let first = host.open("POST", "/v1/shelf/pull", &[("content-type", "application/json")], body.as_bytes());
    crate::host::read_until(&first, "progress");
    host.post("/v1/shelf/pull", &json!({ "model": "small:q4" })).refused(409, "conflict");
    drop(gate);
}

#[test]
fn only_the_operator_fetches_models() {
    let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
    let file = folder.path().join("keys");
    let (ann, bob) =
        (Keys::add(&file, "ann").expect("it can be added"), Keys::add(&file, "bob").expect("so can another"));
    let host = Host::with(Arc::new(says("")), |config| {
        config.keys = Some(KeysFile::open(&file).expect("it reads back"));
        config.operator = Some("ann".to_owned());
        config.shelf = Some(Arc::new(Three::default()));
    });
    let pull = |key: &str| {
        let headers = [("content-type", "application/json"), ("authorization", &*format!("Bearer {key}"))];
        host.send("POST", "/v1/shelf/pull", &headers, &json!({ "model": "small:q4" }).to_string())
    };
    pull(&bob).refused(403, "operator_only");
    assert_eq!(pull(&ann).status, 200);
}
