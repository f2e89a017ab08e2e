//! Models that are loaded on demand, and leave again.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use calls::{Agent, BoxFuture, Call, CallError, Caller, ModelDetails, ModelInfo, Reply, Sampling, Scripted, Tokens};
use serde_json::{Value, json};
use server::{
    Config, Given, KeepAlive, Keys, KeysFile, LoadModels, ModelMemory, Preloaded, Preset, PullProgress, Refused, Shelf,
    ShelfModel,
};
use store::Corpora;
use tempfile::TempDir;

use crate::host::{Answer, CONTEXT_TOKENS, Host, eventually, read_until, says};
use test_support::double::Double;
use test_support::thinker::Thinker;

const GIB: u64 = 1 << 30;

/// A machine with 10 GiB of free memory and models that take 4 of them each.
#[derive(Debug)]
struct Machine {
    /// Loads that have begun.
    begun: AtomicUsize,
    /// Lists of the disk.
    lists: AtomicUsize,
    /// Numbers of loads and of models that are in memory.
    loads: AtomicUsize,
    resident: Arc<AtomicUsize>,
    /// The bytes that the last load may take.
    memory_bytes: AtomicU64,
    /// Held to keep loads from ending.
    gate: Mutex<()>,
    presets: Mutex<BTreeMap<String, Preset>>,
    /// The scripts of the models that were loaded, which answer with their names.
    scripts: Mutex<BTreeMap<String, Arc<Scripted>>>,
    aliases: Mutex<BTreeMap<String, String>>,
    fetched: Mutex<Vec<String>>,
    folder: TempDir,
}

/// A loaded model; its memory is free again when it is dropped.
struct Loaded {
    name: String,
    inner: Box<dyn Caller>,
    resident: Arc<AtomicUsize>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.resident.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Caller for Loaded {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        self.inner.call(call)
    }

    fn tokens(&self) -> &dyn Tokens {
        self.inner.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self
    }
}

impl ModelInfo for Loaded {
    fn model(&self, _: Agent) -> &str {
        &self.name
    }
}

impl Machine {
    fn new() -> Arc<Machine> {
        Arc::new(Machine {
            begun: AtomicUsize::new(0),
            lists: AtomicUsize::new(0),
            loads: AtomicUsize::new(0),
            resident: Arc::default(),
            memory_bytes: AtomicU64::new(0),
            gate: Mutex::default(),
            aliases: Mutex::default(),
            presets: Mutex::default(),
            scripts: Mutex::default(),
            fetched: Mutex::default(),
            folder: tempfile::tempdir().expect("the system has a folder for temporary files"),
        })
    }

    fn resident(&self) -> usize {
        self.resident.load(Ordering::SeqCst)
    }

    fn loads(&self) -> usize {
        self.loads.load(Ordering::SeqCst)
    }

    fn closed(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().expect("no test panics while it holds it")
    }
}

impl Shelf for Machine {
    fn list(&self) -> Vec<ShelfModel> {
        self.lists.fetch_add(1, Ordering::SeqCst);
        let model = |name: &str, gib: u64| ShelfModel {
            name: name.to_owned(),
            kind: "language",
            context_tokens: CONTEXT_TOKENS,
            memory: ModelMemory::undivided(gib * GIB),
            here: true,
            digest: "cd".repeat(32),
            details: ModelDetails { bytes: 3 * GIB, family: "llama".into(), ..ModelDetails::default() },
            ..ShelfModel::default()
        };
        let mut models: Vec<ShelfModel> = [
            ("scripted", 4),
            ("one:q4", 4),
            ("two:q4", 4),
            ("three:q4", 4),
            ("slow", 4),
            ("slower", 4),
            ("big:q8", 64),
            ("broken", 1),
        ]
        .map(|(name, gib)| model(name, gib))
        .into();
        models.push(ShelfModel { memory: ModelMemory { whole: 16 * GIB, least: 5 * GIB }, ..model("divided", 0) });
        let aliases = self.aliases.lock().expect("no thread panics").clone();
        let presets = self.presets.lock().expect("no thread panics").clone();
        models.extend(aliases.into_iter().map(|(name, of)| {
            let preset = presets.get(&name).cloned().unwrap_or_default();
            ShelfModel { alias_of: Some(of), preset, ..model(&name, 4) }
        }));
        models.extend(self.fetched.lock().expect("no thread panics").iter().map(|name| model(name, 4)));
        models
    }

    fn given(&self, name: &str) -> Option<Given> {
        let of = self.aliases.lock().expect("no thread panics").get(name).cloned()?;
        let preset = self.presets.lock().expect("no thread panics").get(name).cloned().unwrap_or_default();
        Some(Given { name: name.to_owned(), of, preset })
    }

    fn free_bytes(&self) -> Option<u64> {
        Some((10 * GIB).saturating_sub(self.resident() as u64 * 4 * GIB))
    }

    fn fetchable(&self, name: &str) -> Option<String> {
        // As names of manifests, whose ends may be left out.
        if name == "script" {
            return Some("scripted".to_owned());
        }
        name.strip_prefix("hf.co/").map(|rest| format!("hf:{rest}"))
    }

    fn pull(&self, name: &str, report: &mut dyn FnMut(PullProgress)) -> Result<(), Refused> {
        report(PullProgress { file: "a.gguf".to_owned(), done_bytes: 1, total_bytes: Some(2) });
        self.fetched.lock().expect("no thread panics").push(name.to_owned());
        Ok(())
    }

    fn load(&self, name: &str, memory_bytes: u64) -> Result<Arc<dyn Caller>, Refused> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.memory_bytes.store(memory_bytes, Ordering::SeqCst);
        drop(self.gate.lock());
        if name == "broken" {
            return Err(("a tensor is missing".to_owned(), Some("fetch it again".to_owned())));
        }
        self.loads.fetch_add(1, Ordering::SeqCst);
        self.resident.fetch_add(1, Ordering::SeqCst);
        let inner: Box<dyn Caller> = match name {
            name if name.starts_with("slow") => Box::new(Thinker::default()),
            name => {
                let script = says(name)
                    .answer("ollama", name)
                    .answer("messages", name)
                    .answer("response", name)
                    .answer("completion", name);
                let script = Arc::new(script);
                self.scripts.lock().expect("no thread panics").insert(name.to_owned(), Arc::clone(&script));
                Box::new(Double::new(script))
            }
        };
        Ok(Arc::new(Loaded { name: name.to_owned(), inner, resident: Arc::clone(&self.resident) }))
    }

    fn alias(&self, name: &str, of: &str, preset: &Preset) -> Result<(), Refused> {
        self.presets.lock().expect("no thread panics").insert(name.to_owned(), preset.clone());
        self.aliases.lock().expect("no thread panics").insert(name.to_owned(), of.to_owned());
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), Refused> {
        let removed = self.aliases.lock().expect("no thread panics").remove(name);
        removed.map(drop).ok_or_else(|| (format!("{name} cannot be removed"), None))
    }

    fn blob(&self, sha256: &str) -> PathBuf {
        self.folder.path().join("blobs").join(sha256)
    }
}

fn host(machine: &Arc<Machine>, keep_alive: KeepAlive) -> Host {
    let shelf = Arc::clone(machine);
    Host::with(Arc::new(says("I was here.").answer("ollama", "I was here.")), |config| {
        config.shelf = Some(shelf);
        config.keep_alive = keep_alive;
    })
}

fn chat(host: &Host, model: &str) -> Answer {
    let messages = [json!({ "role": "user", "content": "Hello?" })];
    host.post("/v1/chat/completions", &json!({ "model": model, "messages": messages }))
}

fn said(answer: &Answer) -> Value {
    answer.json()["choices"][0]["message"]["content"].take()
}

/// Names, and whether they leave by themselves.
fn in_memory(host: &Host) -> Vec<(String, bool)> {
    let models = host.get("/api/ps").json()["models"].take();
    let of = |model: &Value| {
        let leaves = model["expires_at"] != "9999-12-31T23:59:59Z";
        (model["name"].as_str().expect("a name").to_owned(), leaves)
    };
    models.as_array().expect("models").iter().map(of).collect()
}

fn loaded(host: &Host) -> Vec<String> {
    let here =
        in_memory(host).into_iter().filter(|(name, _)| !["scripted:latest", "letters:latest"].contains(&&**name));
    here.map(|(name, _)| name).collect()
}

/// A stream of a model that never ends, once it has begun.
fn stream(host: &Host, model: &str) -> std::net::TcpStream {
    let body = json!({ "model": model, "stream": true, "messages": [{ "role": "user", "content": "Hello?" }] });
    let stream =
        host.open("POST", "/v1/chat/completions", &[("content-type", "application/json")], body.to_string().as_bytes());
    read_until(&stream, "Well");
    stream
}

#[test]
fn a_request_loads_the_model_that_it_names_once_over_every_api() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    let gate = machine.closed();
    let answers = thread::scope(|scope| {
        let asking: Vec<_> = ["one", "one:q4", "one:latest"].map(|name| scope.spawn(|| chat(&host, name))).into();
        thread::sleep(Duration::from_millis(50));
        drop(gate);
        asking.into_iter().map(|thread| thread.join().expect("it is answered")).collect::<Vec<_>>()
    });
    for answer in answers {
        assert_eq!((said(&answer), &answer.json()["model"]), (json!("one:q4"), &json!("one:q4")), "{}", answer.text);
    }
    assert_eq!((machine.loads(), machine.resident()), (1, 1));
    assert_eq!(said(&chat(&host, "scripted")), "I was here.", "what was loaded at start stays");

    let message = json!([{ "role": "user", "content": "Hello?" }]);
    let anthropic = host.post("/v1/messages", &json!({ "model": "two", "max_tokens": 9, "messages": message }));
    assert_eq!(anthropic.json()["content"][0]["text"], "two:q4", "{}", anthropic.text);
    let response = host.post("/v1/responses", &json!({ "model": "two", "input": "Hello?", "store": false }));
    assert_eq!(response.json()["output"][0]["content"][0]["text"], "two:q4", "{}", response.text);
    let completion = host.post("/v1/completions", &json!({ "model": "two", "prompt": "Hello?" }));
    assert_eq!(completion.json()["choices"][0]["text"], "two:q4", "{}", completion.text);
    let ollama = host.post("/api/chat", &json!({ "model": "two:latest", "messages": message, "stream": false }));
    assert_eq!(ollama.json()["message"]["content"], "two:q4", "{}", ollama.text);
    assert_eq!(machine.loads(), 2);
    assert_eq!(loaded(&host), ["one:q4", "two:q4"]);
    chat(&host, "none").refused(404, "model_not_found");
}

#[test]
fn the_least_recently_used_idle_model_makes_room() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    for model in ["one", "two", "one", "three"] {
        assert_eq!(chat(&host, model).status, 200);
    }
    assert_eq!(loaded(&host), ["one:q4", "three:q4"], "two was used before one");
    assert_eq!(machine.resident(), 2, "its memory was given back");
    let refused = chat(&host, "big").refused(507, "out_of_memory");
    assert_eq!(
        refused,
        "the model `big:q8` does not fit into memory: it needs 65536 MiB, and 10240 MiB are free or used by models that can be unloaded"
    );
    assert_eq!(loaded(&host), ["one:q4", "three:q4"], "nothing is unloaded without need");
    let failed = chat(&host, "broken");
    assert_eq!(failed.refused(500, "load_failed"), "the model `broken` cannot be loaded: a tensor is missing");
    assert_eq!(failed.json()["error"]["hint"], "fetch it again");
    assert_eq!(said(&chat(&host, "three")), "three:q4", "the others run on");
}

#[test]
fn a_model_that_is_divided_gets_what_idle_ones_leave() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    chat(&host, "one");
    let stream = stream(&host, "slow");
    thread::scope(|scope| {
        let gate = machine.closed();
        let asked = scope.spawn(|| chat(&host, "divided"));
        eventually("the idle one has left", || machine.resident() == 1);
        drop(gate);
        assert_eq!(said(&asked.join().expect("it is answered")), "divided");
        assert_eq!(machine.memory_bytes.load(Ordering::SeqCst), 6 * GIB, "it may take no more");
    });
    let models = host.get("/api/ps").json()["models"].take();
    let divided = models.as_array().expect("models").iter().find(|model| model["name"] == "divided:latest").cloned();
    assert_eq!(divided.expect("it is loaded")["size"], 6 * GIB, "what the one in use leaves");
    drop(stream);
    let shelf = host.get("/v1/shelf").json();
    let listed = shelf["models"].as_array().expect("models").iter().find(|model| model["name"] == "divided");
    let listed = listed.expect("it is listed");
    assert_eq!((&listed["memory_bytes"], &listed["fits"]), (&json!(16 * GIB), &json!(false)));
    assert_eq!(listed["fits_after_unloading"], true);
}

#[test]
fn a_model_in_use_is_not_unloaded() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    let streams = [stream(&host, "slow"), stream(&host, "slow")];
    chat(&host, "one");
    assert_eq!(machine.resident(), 2);
    assert_eq!(said(&chat(&host, "two")), "two:q4", "the idle one makes room");
    assert_eq!(loaded(&host), ["slow:latest", "two:q4"]);
    // Both are in use now, so a third waits.
    thread::scope(|scope| {
        let gate = machine.closed();
        let third = scope.spawn(|| chat(&host, "three"));
        eventually("the idle one has left", || machine.resident() == 1);
        drop(gate);
        assert_eq!(said(&third.join().expect("it is answered")), "three:q4");
    });
    let unloaded = host.post("/v1/shelf/unload", &json!({ "model": "slow" })).json();
    assert_eq!(unloaded["loaded"], true, "it leaves when its last request has ended");
    assert_eq!(machine.resident(), 2);
    drop(streams);
    eventually("it leaves", || machine.resident() == 1);
    assert_eq!(loaded(&host), ["three:q4"]);
}

#[test]
fn a_request_waits_until_a_model_in_use_makes_room() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    let (slow, _slower) = (stream(&host, "slow"), stream(&host, "slower"));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| chat(&host, "one"));
        thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished(), "both models are in use");
        assert_eq!(said(&chat(&host, "scripted")), "I was here.");
        drop(slow);
        assert_eq!(said(&waiting.join().expect("it is answered")), "one:q4");
    });
    assert_eq!(loaded(&host), ["slower:latest", "one:q4"]);
}

#[test]
fn waiting_requests_are_bounded() {
    let machine = Machine::new();
    let shelf = Arc::clone(&machine);
    let host = Host::with(Arc::new(says("I was here.").answer("ollama", "I was here.")), |config| {
        config.shelf = Some(shelf);
        config.max_load_waits = 1;
    });
    thread::scope(|scope| {
        let gate = machine.closed();
        let first = scope.spawn(|| chat(&host, "one"));
        eventually("it waits for the load", || machine.begun.load(Ordering::SeqCst) == 1);
        let refused = chat(&host, "two");
        assert_eq!(refused.refused(429, "overloaded"), "1 requests wait for a model to be loaded already");
        assert_eq!(said(&chat(&host, "scripted")), "I was here.", "loaded models answer meanwhile");
        drop(gate);
        assert_eq!(said(&first.join().expect("it is answered")), "one:q4");
    });
}

#[test]
fn keep_alive_decides_when_a_model_leaves() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    let generate = |body: Value| host.post("/api/generate", &body);
    let reason = |body: Value| generate(body).json()["done_reason"].take();
    assert_eq!(reason(json!({ "model": "one", "keep_alive": "1h" })), "load");
    assert_eq!((machine.resident(), in_memory(&host).contains(&("one:q4".to_owned(), true))), (1, true));
    assert_eq!(reason(json!({ "model": "one", "keep_alive": -1 })), "load");
    assert!(in_memory(&host).contains(&("one:q4".to_owned(), false)));
    assert_eq!(reason(json!({ "model": "one", "keep_alive": 0 })), "unload");
    assert_eq!((machine.resident(), loaded(&host)), (0, Vec::new()), "its memory is free when the answer comes");
    assert_eq!(
        reason(json!({ "model": "one", "keep_alive": 0 })),
        "unload",
        "one that is not loaded is not loaded for it"
    );
    assert_eq!(machine.loads(), 1);
    let answer = generate(json!({ "model": "one", "prompt": "Hello?", "stream": false, "keep_alive": 0 }));
    assert_eq!(answer.json()["response"], "one:q4");
    assert!(answer.json()["load_duration"].as_u64().is_some_and(|time| time > 0), "{}", answer.text);
    eventually("it leaves after its answer", || machine.resident() == 0);
    generate(json!({ "model": "two", "prompt": "Hello?", "stream": false, "keep_alive": "20ms" }));
    eventually("its time is over", || machine.resident() == 0);
    assert_eq!(
        generate(json!({ "model": "one", "keep_alive": "soon" })).refused_plainly(400).find("`keep_alive`"),
        Some(0)
    );
    generate(json!({ "model": "none", "keep_alive": 0 })).refused_plainly(404);
}

#[test]
fn with_keys_models_are_loaded_only_if_the_operator_allows_it() {
    let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
    let file = folder.path().join("keys");
    let [ann, bob] = ["ann", "bob"].map(|name| Keys::add(&file, name).expect("it can be added"));
    let serving = |machine: &Arc<Machine>, load_models| {
        let shelf = Arc::clone(machine);
        Host::with(Arc::new(says("I was here.").answer("ollama", "I was here.")), |config| {
            config.keys = Some(KeysFile::open(&file).expect("it reads back"));
            config.operator = Some("ann".to_owned());
            config.shelf = Some(shelf);
            config.load_models = load_models;
        })
    };
    let send = |host: &Host, path: &str, key: &str, body: Value| {
        let headers = [("content-type", "application/json"), ("authorization", &*format!("Bearer {key}"))];
        host.send("POST", path, &headers, &body.to_string())
    };
    let hello = |model: &str| json!({ "model": model, "prompt": "Hello?", "stream": false, "keep_alive": -1 });
    let machine = Machine::new();
    for load_models in [LoadModels::Alone, LoadModels::Never] {
        let host = serving(&machine, load_models);
        for key in [&ann, &bob] {
            assert!(send(&host, "/api/generate", key, hello("one")).refused_plainly(403).contains("--load-models"));
            let listed = host.send("GET", "/v1/models", &[("authorization", &*format!("Bearer {key}"))], "");
            assert!(!listed.text.contains("one:q4"), "{}", listed.text);
        }
    }
    assert_eq!(machine.loads(), 0);
    let host = serving(&machine, LoadModels::Always);
    let answer = send(&host, "/api/generate", &bob, hello("one"));
    assert_eq!(answer.json()["response"], "one:q4");
    assert_eq!(answer.warning(), "`keep_alive` is the operator's to choose on a server with keys");
    for (path, body) in [
        ("/v1/shelf/load", json!({ "model": "two" })),
        ("/v1/shelf/unload", json!({ "model": "one" })),
        ("/v1/shelf/pull", json!({ "model": "hf.co/o/a" })),
    ] {
        send(&host, path, &bob, body.clone()).refused(403, "operator_only");
    }
    for (path, body) in [
        ("/api/create", json!({ "model": "mine", "from": "one" })),
        ("/api/copy", json!({ "source": "one", "destination": "mine" })),
        ("/api/pull", json!({ "model": "hf.co/o/a", "stream": false })),
    ] {
        send(&host, path, &bob, body).refused_plainly(403);
    }
    assert_eq!(send(&host, "/v1/shelf/load", &ann, json!({ "model": "two", "keep_alive": "1h" })).status, 200);
    assert_eq!(send(&host, "/v1/shelf/unload", &ann, json!({ "model": "one" })).json()["loaded"], false);
    assert_eq!(machine.resident(), 1);
}

#[test]
fn the_shelf_says_what_is_loaded_and_what_would_fit() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::For(Duration::from_hours(1)));
    host.post("/v1/shelf/load", &json!({ "model": "one" }));
    host.post("/v1/shelf/load", &json!({ "model": "two" }));
    let shelf = host.get("/v1/shelf").json();
    let of = |name: &str| {
        let models = shelf["models"].as_array().expect("models");
        let model = models.iter().find(|model| model["name"] == name).expect("it is listed");
        json!([model["loaded"], model["fits"], model["fits_after_unloading"], model["in_use"]])
    };
    assert_eq!((&shelf["may_load"], &shelf["free_bytes"]), (&json!(true), &json!(2 * GIB)));
    assert_eq!(of("one:q4"), json!([true, false, true, 0]));
    assert_eq!(of("three:q4"), json!([false, false, true, null]));
    assert_eq!(of("big:q8"), json!([false, false, false, null]));
    host.post("/v1/shelf/unload", &json!({ "model": "three" })).refused(404, "not_found");
    host.post("/v1/shelf/unload", &json!({ "model": "scripted" })).refused(409, "conflict");
    host.post("/v1/shelf/load", &json!({ "model": "none" })).refused(404, "model_not_found");
    let listed = host.get("/v1/models").json();
    let listed: Vec<Value> =
        listed["data"].as_array().expect("models").iter().map(|model| json!([model["id"], model["loaded"]])).collect();
    assert!(listed.contains(&json!(["one:q4", true])) && listed.contains(&json!(["three:q4", false])), "{listed:?}");
    assert_eq!(host.get("/v1/models/three:q4").json()["max_model_len"], CONTEXT_TOKENS);
    let tags = host.get("/api/tags").json();
    let three = tags["models"].as_array().expect("models").iter().find(|model| model["name"] == "three:q4").cloned();
    let three = three.expect("what can be loaded is listed");
    assert_eq!((&three["size"], &three["details"]["family"]), (&json!(3 * GIB), &json!("llama")));
    let shown = host.post("/api/show", &json!({ "model": "three" })).json();
    assert_eq!(shown["model_info"]["llama.context_length"], CONTEXT_TOKENS, "{shown}");
    let ps = host.get("/api/ps").json();
    let one = ps["models"].as_array().expect("models").iter().find(|model| model["name"] == "one:q4").cloned();
    assert_eq!(one.expect("it is loaded")["size"], 4 * GIB);
}

#[test]
fn models_are_pulled_named_copied_and_deleted_over_ollamas_api() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    let pulled = host.post("/api/pull", &json!({ "model": "hf.co/o/a:Q4" }));
    let lines: Vec<Value> = pulled.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines[1], json!({ "status": "pulling a.gguf", "digest": "a.gguf", "completed": 1, "total": 2 }));
    assert_eq!(lines.last(), Some(&json!({ "status": "success" })));
    let generate = |model: &str| host.post("/api/generate", &json!({ "model": model, "prompt": "?", "stream": false }));
    assert_eq!(
        generate("hf.co/o/a:Q4").json()["response"],
        "hf:o/a:Q4",
        "it is used by the name by which it was pulled"
    );
    host.post("/api/pull", &json!({ "model": "unknown", "stream": false })).refused_plainly(404);

    let file = b"GGUF and so on";
    let digest = "sha256:0bf3bbc9d3a4cca5d7b5e1e5f5b1cf0dd2a0e2a0f62b0d4a2d5d0f3d6d0dd8e1".to_owned();
    let wrong = host.send_bytes("POST", &format!("/api/blobs/{digest}"), &[], file);
    let right = wrong.refused_plainly(400);
    let right = right.rsplit(' ').next().expect("the digest that it has").to_owned();
    assert_eq!(host.send("HEAD", &format!("/api/blobs/{right}"), &[], "").status, 404);
    assert_eq!(host.send_bytes("POST", &format!("/api/blobs/{right}"), &[], file).status, 201);
    assert_eq!(host.send("HEAD", &format!("/api/blobs/{right}"), &[], "").status, 200);
    let path = machine.blob(right.trim_start_matches("sha256:"));
    assert_eq!(std::fs::read(&path).expect("it was kept"), file);
    host.send_bytes("POST", "/api/blobs/sha256:..", &[], file).refused_plainly(400);
    let created = host.post("/api/create", &json!({ "model": "mine", "files": { "a.gguf": right }, "stream": false }));
    assert_eq!(created.json(), json!({ "status": "success" }));
    assert_eq!(machine.aliases.lock().expect("no thread panics")["mine"], path.to_string_lossy());
    assert_eq!(generate("mine:latest").json()["response"], "mine");
    for (field, value) in
        [("template", json!("{{ .Prompt }}")), ("quantize", json!("q4_0")), ("messages", json!([{ "role": "user" }]))]
    {
        let refused = host.post("/api/create", &json!({ "model": "other", "from": "one", field: value }));
        assert!(refused.refused_plainly(400).contains(field), "{field}");
    }
    host.post("/api/create", &json!({ "model": "other" })).refused_plainly(400);
    host.post("/api/create", &json!({ "model": "scripted", "from": "one" })).refused_plainly(409);

    assert_eq!(host.post("/api/copy", &json!({ "source": "one:latest", "destination": "uno:latest" })).status, 200);
    assert_eq!(machine.aliases.lock().expect("no thread panics")["uno"], "one:q4");
    host.post("/api/copy", &json!({ "source": "none", "destination": "uno" })).refused_plainly(404);
    let delete = |model: &str| {
        let body = json!({ "model": model }).to_string();
        host.send("DELETE", "/api/delete", &[("content-type", "application/json")], &body)
    };
    let uno = generate("uno").json();
    assert_eq!((&uno["response"], &uno["model"]), (&json!("one:q4"), &json!("uno")), "another name of the same model");
    assert!(loaded(&host).contains(&"one:q4".to_owned()) && !loaded(&host).contains(&"uno:latest".to_owned()));
    assert_eq!(host.post("/api/copy", &json!({ "source": "two", "destination": "zwei" })).status, 200);
    assert_eq!(generate("zwei").json()["response"], "two:q4");
    let (loads, before) = (machine.loads(), machine.resident());
    assert_eq!(generate("two").json()["response"], "two:q4");
    assert_eq!(machine.loads(), loads, "it is loaded by another name");
    assert_eq!(delete("uno").status, 200);
    assert_eq!(machine.resident(), before, "its model stays");
    delete("uno").refused_plainly(404);
    assert_eq!(generate("mine").status, 200);
    assert!(loaded(&host).contains(&"mine:latest".to_owned()));
    assert_eq!(delete("mine:latest").status, 200);
    assert!(!loaded(&host).contains(&"mine:latest".to_owned()), "it was unloaded");
    delete("one").refused_plainly(400);
    delete("scripted").refused_plainly(409);
    delete("script").refused_plainly(409);
    assert_eq!(generate("script").json()["response"], "I was here.", "the model of the start is not loaded again");
}

#[test]
fn a_corpus_with_the_name_of_a_model_is_not_listed_beside_it() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    assert_eq!(host.post("/api/copy", &json!({ "source": "one", "destination": "notes" })).status, 200);
    // As the command line makes it, which does not know the models of a server.
    drop(Corpora::new(host.folder.path()).create("notes").expect("it is new"));
    let names = |path: &str, list: &str, name: &str| -> Vec<String> {
        let models = host.get(path).json()[list].take();
        let names = models.as_array().expect("models").iter().map(|model| model[name].as_str().expect("a name"));
        names.filter(|name| name.starts_with("notes")).map(str::to_owned).collect()
    };
    let all = ["notes", "notes:quick", "notes:thorough", "notes:whole"];
    assert_eq!(names("/v1/models", "data", "id"), all, "the first is the model");
    assert_eq!(names("/api/tags", "models", "name"), ["notes:latest", "notes:quick", "notes:thorough", "notes:whole"]);
    assert!(host.get("/v1/models/notes").json()["corpus"].is_null());
    let shown = host.post("/api/show", &json!({ "model": "notes" })).json();
    assert_eq!(shown["details"]["family"], "llama", "{shown}");
    let answer = chat(&host, "notes");
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "one:q4", "{}", answer.text);
}

#[test]
fn a_model_and_a_corpus_cannot_be_given_the_same_name() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    host.corpus("notes", &[("a.txt", "The wall fell.")]);
    for name in ["notes", "notes:latest", "notes:quick", "notes:q4"] {
        let copied = host.post("/api/copy", &json!({ "source": "one", "destination": name }));
        assert_eq!(copied.refused_plainly(409), "a corpus has the name `notes`; give the model another");
        host.post("/api/create", &json!({ "model": name, "from": "one" })).refused_plainly(409);
    }
    assert_eq!(machine.aliases.lock().expect("no thread panics").len(), 0);

    assert_eq!(host.post("/api/copy", &json!({ "source": "one", "destination": "diary" })).status, 200);
    for name in ["diary", "one", "scripted"] {
        let refused = host.post("/v1/corpora", &json!({ "name": name })).refused(409, "conflict");
        assert_eq!(refused, format!("a model has the name `{name}`; give the corpus another"));
    }
    let titled = json!({ "title": "Diary" });
    assert_eq!(host.post("/v1/corpora", &titled).json()["name"], "diary-2");
    assert_eq!(host.post("/v1/vector_stores", &json!({ "name": "Diary" })).json()["id"], "diary-3");
}

#[test]
fn a_name_brings_its_system_message_and_options_along() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    let create = |more: Value| {
        let mut body = json!({ "stream": false });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        host.post("/api/create", &body)
    };
    let parameters = json!({ "temperature": 0.25, "stop": ["END", "FIN"], "top_k": 7 });
    let made = create(json!({ "model": "pell", "from": "one", "system": "Be brief.", "parameters": parameters }));
    assert_eq!(made.status, 200, "{}", made.text);
    let odd = create(json!({ "model": "odd", "from": "one", "parameters": { "magic": 1 } }));
    assert_eq!(odd.warning(), "ignored fields: parameters.magic");
    // A name of a name keeps what it does not replace.
    create(json!({ "model": "pell-b", "from": "pell", "parameters": { "top_k": 9 } }));
    let ask = |path: &str, more: Value| {
        let mut body = json!({ "stream": false });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        let answer = host.post(path, &body);
        assert_eq!(answer.status, 200, "{}", answer.text);
        let answer = answer.json();
        let name = answer["response"].as_str().or(answer["message"]["content"].as_str()).expect("its name");
        let call = machine.scripts.lock().expect("no thread panics")[name].seen().pop().expect("a call");
        let turns: Vec<(String, String)> =
            call.prompt.messages().iter().map(|turn| (turn.role.as_str().to_owned(), turn.content.clone())).collect();
        (turns, call)
    };
    let turns = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        all.iter().map(|(role, text)| ((*role).to_owned(), (*text).to_owned())).collect()
    };
    let hello = json!([{ "role": "user", "content": "Hello?" }]);
    let (said, call) = ask("/api/chat", json!({ "model": "pell", "messages": hello }));
    assert_eq!(said, turns(&[("system", "Be brief."), ("user", "Hello?")]));
    assert_eq!(
        (call.sampling.temperature, call.sampling.top_k, call.stop),
        (0.25, 7, vec!["END".into(), "FIN".into()])
    );
    let own = json!([{ "role": "system", "content": "Be long." }, { "role": "user", "content": "Hello?" }]);
    let (said, call) =
        ask("/api/chat", json!({ "model": "pell-b:latest", "messages": own, "options": { "temperature": 1.0 } }));
    assert_eq!(said, turns(&[("system", "Be long."), ("user", "Hello?")]));
    assert_eq!((call.sampling.temperature, call.sampling.top_k), (1.0, 9), "of the request, and of the name");
    let (said, _) = ask("/api/generate", json!({ "model": "pell-b", "prompt": "Hello?" }));
    assert_eq!(said, turns(&[("system", "Be brief."), ("user", "Hello?")]));
    let (said, call) = ask("/api/generate", json!({ "model": "one", "prompt": "Hello?" }));
    assert_eq!((said, call.sampling.top_k), (turns(&[("user", "Hello?")]), 40), "the model itself is as it was");

    let shown = host.post("/api/show", &json!({ "model": "pell" })).json();
    assert_eq!(shown["system"], "Be brief.");
    let lines: Vec<&str> = shown["parameters"].as_str().expect("a text").lines().collect();
    for line in ["temperature 0.25", "stop \"END\"", "stop \"FIN\"", "top_k 7"] {
        assert!(lines.contains(&line), "{line}: {lines:?}");
    }
    assert!(shown["modelfile"].as_str().is_some_and(|text| text.contains("SYSTEM \"\"\"Be brief.\"\"\"")), "{shown}");
    create(json!({ "model": "bad", "from": "one", "parameters": { "temperature": 9 } })).refused_plainly(400);
}

#[test]
fn what_a_name_brings_along_applies_in_every_api_where_a_request_says_nothing() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    let parameters = json!({ "temperature": 0.25, "top_p": 0.5, "repeat_penalty": 1.5, "num_predict": 7,
        "stop": ["END", "FIN", "a", "b", "c"], "num_gpu": 1 });
    let made =
        json!({ "model": "pell", "from": "one", "system": "Be brief.", "parameters": parameters, "stream": false });
    assert_eq!(host.post("/api/create", &made).status, 200);
    let ask = |path: &str, more: Value| {
        let mut body = json!({ "model": "pell" });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        let answer = host.post(path, &body);
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.json()["model"], "pell", "{}", answer.text);
        let call = machine.scripts.lock().expect("no thread panics")["one:q4"].seen().pop().expect("a call");
        let first = call.prompt.messages().remove(0);
        (format!("{}: {}", first.role.as_str(), first.content), call)
    };
    let hello = json!([{ "role": "user", "content": "Hello?" }]);
    let apis = [
        ("/v1/chat/completions", json!({ "messages": hello })),
        ("/v1/responses", json!({ "input": hello, "store": false })),
        ("/v1/messages", json!({ "messages": hello, "max_tokens": 9 })),
        ("/v1/completions", json!({ "prompt": "Hello?" })),
    ];
    for (path, body) in apis {
        let (first, call) = ask(path, body);
        let want = if path == "/v1/completions" { "user: Hello?" } else { "system: Be brief." };
        assert_eq!(first, want, "{path}");
        let Sampling { temperature, top_p, repetition_penalty, .. } = call.sampling;
        assert_eq!((temperature, top_p, repetition_penalty), (0.25, 0.5, 1.5), "{path}");
        assert_eq!(call.stop, ["END", "FIN", "a", "b", "c"], "{path}");
        let most = if path == "/v1/messages" { 9 } else { 7 };
        assert_eq!(call.limits.max_output_tokens, most, "{path}");
    }
    let own = json!([{ "role": "system", "content": "Be long." }, { "role": "user", "content": "Hello?" }]);
    let developer = json!([{ "role": "developer", "content": "Be long." }, { "role": "user", "content": "Hello?" }]);
    let apis = [
        ("/v1/chat/completions", json!({ "messages": own, "max_tokens": 5, "stop": "X" })),
        ("/v1/chat/completions", json!({ "messages": developer, "max_completion_tokens": 5, "stop": ["X"] })),
        ("/v1/responses", json!({ "input": developer, "store": false, "max_output_tokens": 5 })),
        (
            "/v1/responses",
            json!({ "input": hello, "instructions": "Be long.", "store": false, "max_output_tokens": 5 }),
        ),
        ("/v1/messages", json!({ "messages": hello, "system": "Be long.", "max_tokens": 5, "stop_sequences": ["X"] })),
    ];
    for (path, mut body) in apis {
        body["temperature"] = json!(1.0);
        let (first, call) = ask(path, body);
        assert_eq!(first, "system: Be long.", "{path}");
        assert_eq!((call.sampling.temperature, call.limits.max_output_tokens), (1.0, 5), "{path}");
        assert_eq!(call.stop.first().map(String::as_str), Some(if path == "/v1/responses" { "END" } else { "X" }));
    }
    // Stop strings of a name are for free text.
    let format = json!({ "type": "json_object" });
    let (_, call) = ask("/v1/chat/completions", json!({ "messages": hello, "response_format": format }));
    assert!(call.stop.is_empty());
    let (_, call) = ask("/api/chat", json!({ "messages": hello, "format": "json", "stream": false }));
    assert!(call.stop.is_empty());

    let refused = host.post("/v1/chat/completions", &json!({ "model": "pell", "messages": hello, "stop": [""] }));
    refused.refused(400, "invalid_value");
}

#[test]
fn requests_for_a_loaded_model_do_not_list_the_disk() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    host.post("/api/copy", &json!({ "source": "one", "destination": "uno" }));
    chat(&host, "one");
    let before = machine.lists.load(Ordering::SeqCst);
    let generate = |model: &str| host.post("/api/generate", &json!({ "model": model, "prompt": "?", "stream": false }));
    for (asked, model) in [("one", "one:q4"), ("one:latest", "one:q4"), ("uno", "uno"), ("uno:latest", "uno")] {
        let answer = generate(asked).json();
        assert_eq!((&answer["response"], &answer["model"]), (&json!("one:q4"), &json!(model)), "{answer}");
        assert_eq!(chat(&host, asked).json()["model"], model);
    }
    assert_eq!(said(&chat(&host, "scripted")), "I was here.");
    assert_eq!(machine.lists.load(Ordering::SeqCst), before);
}

/// The model `scripted`, which the server was started with, on a machine.
#[derive(Debug)]
struct Start {
    machine: Arc<Machine>,
    is_loaded: AtomicBool,
    /// True if it cannot be loaded again.
    is_broken: AtomicBool,
}

impl Start {
    fn on(machine: &Arc<Machine>) -> Arc<Start> {
        machine.resident.fetch_add(1, Ordering::SeqCst);
        let machine = Arc::clone(machine);
        Arc::new(Start { machine, is_loaded: AtomicBool::new(true), is_broken: AtomicBool::new(false) })
    }

    fn is_loaded(&self) -> bool {
        self.is_loaded.load(Ordering::SeqCst)
    }
}

impl Preloaded for Start {
    fn models(&self) -> Vec<(String, ModelMemory)> {
        vec![("scripted".to_owned(), ModelMemory::undivided(4 * GIB))]
    }

    fn unload(&self, model: usize) -> Result<(), Refused> {
        assert_eq!(model, 0);
        assert!(self.is_loaded.swap(false, Ordering::SeqCst), "it is unloaded once");
        self.machine.resident.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }

    fn load(&self, model: usize) -> Result<(), Refused> {
        assert_eq!(model, 0);
        self.machine.begun.fetch_add(1, Ordering::SeqCst);
        drop(self.machine.gate.lock());
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(("a tensor is missing".to_owned(), Some("fetch it again".to_owned())));
        }
        assert!(!self.is_loaded.swap(true, Ordering::SeqCst), "it is loaded once");
        assert!(self.machine.resident.fetch_add(1, Ordering::SeqCst) < 2, "there is room for two models");
        Ok(())
    }
}

fn started(machine: &Arc<Machine>, start: &Arc<Start>, change: impl FnOnce(&mut Config)) -> Host {
    let (shelf, preloaded) = (Arc::clone(machine), Arc::clone(start));
    Host::with(Arc::new(says("I was here.").answer("ollama", "I was here.")), |config| {
        config.shelf = Some(shelf);
        config.preloaded = Some(preloaded);
        config.keep_alive = KeepAlive::Forever;
        change(config);
    })
}

#[test]
fn a_model_of_the_start_leaves_when_it_is_unloaded_and_comes_back_with_its_next_request() {
    let machine = Machine::new();
    let start = Start::on(&machine);
    let host = started(&machine, &start, |_| {});
    let ask = |more: Value| {
        let mut body = json!({ "model": "scripted", "stream": false });
        more.as_object().expect("fields").iter().for_each(|(name, value)| body[name] = value.clone());
        host.post("/api/generate", &body)
    };
    let listed = || host.get("/v1/models/scripted").json()["loaded"].take();
    assert_eq!((in_memory(&host)[0].clone(), listed()), (("scripted:latest".to_owned(), false), json!(true)));
    let unloaded = ask(json!({ "keep_alive": 0 }));
    assert_eq!((&unloaded.json()["done_reason"], unloaded.header("warning")), (&json!("unload"), None));
    assert!(!start.is_loaded() && machine.resident() == 0, "its memory is free when the answer comes");
    assert!(in_memory(&host).iter().all(|(name, _)| name != "scripted:latest") && listed() == json!(false));
    assert_eq!(ask(json!({ "keep_alive": 0 })).json()["done_reason"], "unload", "it is not loaded for it");
    assert!(!start.is_loaded());
    // Names, contexts and token counts are there all the same.
    assert_eq!(host.get("/v1/models/scripted").json()["max_model_len"], CONTEXT_TOKENS);

    let gate = machine.closed();
    let answers = thread::scope(|scope| {
        let asking: Vec<_> = (0..3).map(|_| scope.spawn(|| chat(&host, "scripted"))).collect();
        eventually("it is loaded", || machine.begun.load(Ordering::SeqCst) == 1);
        drop(gate);
        asking.into_iter().map(|thread| thread.join().expect("it is answered")).collect::<Vec<_>>()
    });
    answers.iter().for_each(|answer| assert_eq!(said(answer), "I was here.", "{}", answer.text));
    assert!(start.is_loaded() && machine.resident() == 1);
    assert!(!in_memory(&host)[0].1, "it stays again");

    let unload = || host.post("/v1/shelf/unload", &json!({ "model": "scripted" })).json()["loaded"].take();
    assert_eq!((unload(), start.is_loaded()), (json!(false), false));
    assert_eq!(host.post("/v1/shelf/load", &json!({ "model": "scripted" })).status, 200);
    assert!(start.is_loaded());
    ask(json!({ "prompt": "Hello?", "keep_alive": 0 }));
    eventually("it leaves after its answer", || !start.is_loaded());
    assert_eq!(ask(json!({ "keep_alive": "20ms" })).json()["done_reason"], "load");
    eventually("its time is over", || !start.is_loaded());
    start.is_broken.store(true, Ordering::SeqCst);
    assert_eq!(
        chat(&host, "scripted").refused(500, "load_failed"),
        "the model `scripted` cannot be loaded: a tensor is missing"
    );
    start.is_broken.store(false, Ordering::SeqCst);
    assert_eq!(said(&chat(&host, "scripted")), "I was here.");
}

#[test]
fn a_question_to_a_corpus_loads_a_model_of_the_start_again() {
    let machine = Machine::new();
    let start = Start::on(&machine);
    let (shelf, preloaded) = (Arc::clone(&machine), Arc::clone(&start));
    let script = Scripted::new(CONTEXT_TOKENS).answer("answer", "A storm broke the wall.");
    let host = Host::with(Arc::new(script), |config| {
        config.shelf = Some(shelf);
        config.preloaded = Some(preloaded);
    });
    host.post("/v1/shelf/unload", &json!({ "model": "scripted" }));
    host.corpus("pell", &[("wall.txt", "In November a storm broke the harbour wall near Pell.")]);
    assert!(!start.is_loaded(), "nothing was asked of it");
    let ask = json!({ "question": "What did the storm break?", "method": "rag" });
    assert_eq!(host.post("/v1/corpora/pell/ask", &ask).json()["answer"], "A storm broke the wall.");
    assert!(start.is_loaded());
}

#[test]
fn a_model_of_the_start_is_unloaded_after_the_others_and_loaded_again() {
    let machine = Machine::new();
    let start = Start::on(&machine);
    let host = started(&machine, &start, |_| {});
    assert_eq!(said(&chat(&host, "one")), "one:q4");
    assert_eq!(said(&chat(&host, "two")), "two:q4");
    assert_eq!((start.is_loaded(), loaded(&host)), (true, vec!["two:q4".to_owned()]), "it stays while others can go");
    let slow = stream(&host, "slow");
    let slower = stream(&host, "slower");
    assert!(!start.is_loaded(), "both places are in use");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| chat(&host, "scripted"));
        thread::sleep(Duration::from_millis(50));
        assert!(!waiting.is_finished() && !start.is_loaded());
        drop(slow);
        assert_eq!(said(&waiting.join().expect("it is answered")), "I was here.");
    });
    assert_eq!((start.is_loaded(), machine.resident()), (true, 2));
    drop(slower);
    let refused = chat(&host, "big").refused(507, "out_of_memory");
    assert!(refused.contains("and 10240 MiB are free or used by models that can be unloaded"), "{refused}");
    let shelf = host.get("/v1/shelf").json();
    let models = shelf["models"].as_array().expect("models");
    let scripted = models.iter().find(|model| model["name"] == "scripted").expect("it is listed");
    assert_eq!(
        (&scripted["loaded"], &scripted["stays"], &scripted["in_use"]),
        (&json!(true), &json!(false), &json!(0)),
        "{scripted}"
    );
}

#[test]
fn a_model_of_the_start_stays_where_no_models_are_loaded() {
    let machine = Machine::new();
    let start = Start::on(&machine);
    let host = started(&machine, &start, |config| config.load_models = LoadModels::Never);
    let kept = host.post("/api/generate", &json!({ "model": "scripted", "keep_alive": 0 }));
    assert_eq!(kept.warning(), "models that the server was started with stay loaded");
    host.post("/v1/shelf/unload", &json!({ "model": "scripted" })).refused(409, "conflict");
    host.post("/api/generate", &json!({ "model": "scripted", "prompt": "?", "stream": false, "keep_alive": "1ms" }));
    thread::sleep(Duration::from_millis(50));
    assert!(start.is_loaded());
}

#[test]
fn a_model_of_the_start_that_cannot_leave_stays_and_says_why() {
    let machine = Machine::new();
    let host = host(&machine, KeepAlive::Forever);
    let kept = host.post("/api/generate", &json!({ "model": "scripted", "keep_alive": 0 }));
    assert_eq!(kept.warning(), "models that the server was started with stay loaded");
    let refused = host.post("/v1/shelf/unload", &json!({ "model": "scripted" }));
    refused.refused(409, "conflict");
    assert!(refused.json()["error"]["hint"].as_str().is_some_and(|hint| hint.contains("--model scripted")));
    assert_eq!(said(&chat(&host, "scripted")), "I was here.");
}
