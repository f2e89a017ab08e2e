//! What a tenant can learn of another's prompts, corpora, jobs and counts: nothing, not even how many there are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use calls::{Agent, BoxFuture, Call, CallError, Caller, ModelInfo, Reply, Scripted, TenantId, Tokens};
use random::Random;
use serde_json::{Value, json};
use server::{Keys, KeysFile};
use tempfile::TempDir;

use crate::files;
use crate::host::{Answer, CONTEXT_TOKENS, Host};

/// A script behind a prefix cache like an engine's: per tenant, exact to the token.
struct Caching {
    script: Scripted,
    seen: Mutex<HashMap<TenantId, Vec<Vec<String>>>>,
}

impl Caching {
    fn new() -> Caching {
        let script = ["chat", "completion", "response", "messages", "ollama", "answer"]
            .into_iter()
            .fold(Scripted::new(CONTEXT_TOKENS), |script, step| script.answer(step, "Yes."));
        let script = script.answer("gam.memorize", "About a horse.");
        Caching { script, seen: Mutex::default() }
    }

    /// The tenants whose calls have arrived so far.
    fn tenants(&self) -> Vec<TenantId> {
        self.script.seen().iter().map(|call| call.tenant).collect()
    }
}

impl Caller for Caching {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallError>> {
        Box::pin(async move {
            let tenant = call.tenant;
            let mut reply = self.script.call(call).await?;
            let tokens = self.script.token_spans(Agent::Responder, &reply.rendered);
            let tokens: Vec<String> = tokens.into_iter().map(|span| reply.rendered[span].to_owned()).collect();
            let mut seen = self.seen.lock().expect("nothing panics here");
            let before = seen.entry(tenant).or_default();
            let common = |known: &Vec<String>| known.iter().zip(&tokens).take_while(|(a, b)| a == b).count();
            reply.usage.cached_tokens = before.iter().map(common).max().unwrap_or(0).min(tokens.len() - 1);
            before.push(tokens);
            Ok(reply)
        })
    }

    fn tokens(&self) -> &dyn Tokens {
        self.script.tokens()
    }

    fn models(&self) -> &dyn ModelInfo {
        self.script.models()
    }
}

pub const HOLDERS: [&str; 3] = ["annalena", "bobadilla", "evelinde"];

/// A server that requires keys, and the keys of three tenants.
pub struct Shared {
    host: Host,
    keys: HashMap<&'static str, String>,
    _folder: TempDir,
}

impl Shared {
    pub fn new(caller: Arc<dyn Caller>, operator: Option<&str>) -> Shared {
        let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
        let file = folder.path().join("keys");
        let keys = HOLDERS.into_iter().map(|name| (name, Keys::add(&file, name).expect("a new key"))).collect();
        let host = Host::with(caller, |config| {
            config.keys = Some(KeysFile::open(&file).expect("it reads back"));
            config.operator = operator.map(str::to_owned);
        });
        Shared { host, keys, _folder: folder }
    }

    pub fn send(&self, holder: &str, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send_text(holder, (method, path), "application/json", &body)
    }

    fn send_text(&self, holder: &str, (method, path): (&str, &str), kind: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.keys[holder]);
        let accept = ("accept", "application/json, text/event-stream");
        let headers = [("authorization", bearer.as_str()), ("content-type", kind), accept];
        self.host.send(method, path, &headers, body)
    }

    fn get(&self, holder: &str, path: &str) -> Answer {
        self.send(holder, "GET", path, &Value::Null)
    }

    /// Waits for the end of an accepted job and returns it.
    pub fn ended(&self, holder: &str, accepted: &Answer) -> Value {
        let id = accepted.json()["id"].as_str().expect("a job has an id").to_owned();
        let events = self.get(holder, &format!("/v1/jobs/{id}/events")).events();
        events.last().expect("a job has a state").1.clone()
    }
}

fn chat(text: &str) -> Value {
    json!({ "model": "scripted", "messages": [{ "role": "user", "content": text }], "max_tokens": 4 })
}

/// A path, the body for a prompt, and the JSON pointer of the cached tokens in the response.
type Route = (&'static str, fn(&str) -> Value, &'static str);

#[test]
fn a_correct_guess_of_another_tenants_prompt_hits_the_cache_no_more_than_a_wrong_one() {
    let shared = Shared::new(Arc::new(Caching::new()), None);
    let routes: [Route; 4] = [
        ("/v1/chat/completions", chat, "/usage/prompt_tokens_details/cached_tokens"),
        (
            "/v1/completions",
            |text| json!({ "model": "scripted", "prompt": text, "max_tokens": 4 }),
            "/usage/prompt_tokens_details/cached_tokens",
        ),
        (
            "/v1/responses",
            |text| json!({ "model": "scripted", "input": text, "max_output_tokens": 16 }),
            "/usage/input_tokens_details/cached_tokens",
        ),
        ("/v1/messages", chat, "/usage/cache_read_input_tokens"),
    ];
    let secret = [7, 3, 9, 1, 4];
    for (path, body, cached) in routes {
        // Prompts of one route must not be cached by guesses on another.
        let beginning = format!("The number of my account for {path}, which I keep secret, is");
        let digits = |digits: &[i32]| digits.iter().fold(String::new(), |text, digit| text + &format!(" {digit}"));
        let prompt = format!("{beginning}{} and I pay with it.", digits(&secret));
        assert_eq!(shared.send("annalena", "POST", path, &body(&prompt)).status, 200);
        let guessed = |holder: &str, known: &[i32]| {
            let cached = |digit: i32| {
                let guess = format!("{beginning}{} {digit} guessed", digits(known));
                let answer = shared.send(holder, "POST", path, &body(&guess));
                answer.json().pointer(cached).and_then(Value::as_u64).unwrap_or_else(|| panic!("{}", answer.text))
            };
            // The first guess computes the common prefix of one tenant's guesses.
            cached(10);
            (0..10).map(cached).collect::<Vec<_>>()
        };
        for at in 0..secret.len() {
            let by_eve = guessed("evelinde", &secret[..at]);
            assert!(by_eve.iter().all(|cached| *cached == by_eve[0]), "{path}, digit {at}: {by_eve:?}");
        }
        // The cache does distinguish: the victim's own guesses, which come last, match her prompt.
        let by_ann = guessed("annalena", &secret[..1]);
        assert_eq!(by_ann.iter().enumerate().max_by_key(|(_, cached)| **cached).map(|(digit, _)| digit), Some(3));
    }
}

#[test]
fn every_call_carries_the_tenant_of_its_request() {
    let caller = Arc::new(Caching::new());
    let shared = Shared::new(caller.clone(), None);
    let tool = json!({ "type": "function", "function": { "name": "paint", "parameters": { "type": "object" } } });
    let with_tools = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "Paint." }],
        "tools": [tool, { "type": "function", "function": { "name": "wait", "parameters": { "type": "object" } } }] });
    let mcp = |tool: &str, arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    };
    let ollama = json!({ "model": "scripted", "prompt": "?", "stream": false });
    let talk = json!({ "model": "scripted", "messages": [{ "role": "user", "content": "?" }], "stream": false });
    let requests = [
        ("/v1/chat/completions", chat("?")),
        ("/v1/chat/completions", with_tools),
        ("/v1/completions", json!({ "model": "scripted", "prompt": "?" })),
        ("/v1/responses", json!({ "model": "scripted", "input": "?" })),
        ("/v1/messages", chat("?")),
        ("/api/chat", talk.clone()),
        ("/api/chat", json!({ "model": "scripted", "messages": talk["messages"], "stream": true })),
        ("/api/generate", ollama),
        ("/mcp", mcp("remember", json!({ "corpus": "m", "name": "m", "text": "A horse.", "method": "gam" }))),
        ("/mcp", mcp("ask", json!({ "corpus": "m", "question": "What?", "method": "direct" }))),
        ("/v1/corpora/m/ask", json!({ "question": "What?", "method": "direct" })),
    ];
    let tenants_of = |holder: &str| {
        let before = caller.tenants().len();
        for (path, body) in &requests {
            let calls = caller.tenants().len();
            let answer = shared.send(holder, "POST", path, body);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
            assert!(caller.tenants().len() > calls, "{path} makes no call: {}", answer.text);
        }
        let job = json!({ "name": "n", "text": "Another horse.", "method": "gam" });
        let job = shared.send(holder, "POST", "/v1/corpora/m/documents", &job);
        assert_eq!(shared.ended(holder, &job)["status"], "done");
        let mut tenants = caller.tenants().split_off(before);
        tenants.dedup();
        assert_eq!(tenants.len(), 1, "{tenants:?}");
        tenants[0]
    };
    let [ann, bob, eve] = HOLDERS.map(tenants_of);
    assert!(ann != bob && bob != eve && ann != eve && ![ann, bob, eve].contains(&TenantId::LOCAL));
}

#[test]
fn what_a_holder_keeps_over_openais_api_is_unknown_to_others() {
    let [mine, other, _] = HOLDERS;
    let shared = Shared::new(Arc::new(Caching::new()), None);
    let post = |holder: &str, path: &str, body: Value| shared.send(holder, "POST", path, &body);
    let made = |path: &str, body: Value| files::id(&post(mine, path, body).json());
    let line = json!({ "custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": chat("Hello?") });
    let (kind, form) = files::form("in.jsonl", "batch", &line.to_string());
    let file = files::id(&shared.send_text(mine, ("POST", "/v1/files"), kind, &form).json());
    let store = made("/v1/vector_stores", json!({ "name": "Pellworth", "file_ids": [file] }));
    let response = made("/v1/responses", json!({ "model": "scripted", "input": "Hello?" }));
    let conversation = made("/v1/conversations", json!({ "items": [{ "role": "user", "content": "Hello?" }] }));
    let batch = json!({ "input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h" });
    let batched = made("/v1/batches", batch);
    let paths = [
        format!("/v1/files/{file}"),
        format!("/v1/files/{file}/content"),
        format!("/v1/vector_stores/{store}"),
        format!("/v1/vector_stores/{store}/files"),
        format!("/v1/responses/{response}"),
        format!("/v1/responses/{response}/input_items"),
        format!("/v1/conversations/{conversation}"),
        format!("/v1/conversations/{conversation}/items"),
        format!("/v1/batches/{batched}"),
    ];
    let is_missing = |answer: Answer, what: &str| assert_eq!(answer.status, 404, "{what}: {}", answer.text);
    for path in &paths {
        is_missing(shared.get(other, path), path);
        assert_eq!(shared.get(mine, path).status, 200, "{path}");
    }
    for path in [&paths[0], &paths[2], &paths[4], &paths[6]] {
        is_missing(shared.send(other, "DELETE", path, &Value::Null), path);
    }
    is_missing(post(other, &format!("/v1/batches/{batched}/cancel"), json!({})), "cancel");
    is_missing(post(other, &format!("/v1/responses/{response}/cancel"), json!({})), "cancel");
    is_missing(post(other, &format!("/v1/vector_stores/{store}/search"), json!({ "query": "a" })), "search");
    let theirs = files::id(&post(other, "/v1/vector_stores", json!({})).json());
    let added = format!("/v1/vector_stores/{theirs}/files");
    let asks = |field: &str, value: Value| json!({ "model": "scripted", "input": "Go on.", field: value });
    let search = |store: &str| json!([{ "type": "file_search", "vector_store_ids": [store] }]);
    let uses = |path: &str, id: &str, body: &dyn Fn(&str) -> Value| {
        // An id that never existed, of the same form.
        let (kind, digits) = id.split_at(id.len() - 6);
        let none = format!("{kind}{}", if digits == "000000" { "111111" } else { "000000" });
        let [there, absent] = [id, &none].map(|id| post(other, path, body(id)));
        assert!((400..500).contains(&there.status), "{path}: {}", there.text);
        assert_eq!((there.status, there.text.replace(id, &none)), (absent.status, absent.text), "{path}");
    };
    uses("/v1/responses", &response, &|id| asks("previous_response_id", json!(id)));
    uses("/v1/responses", &conversation, &|id| asks("conversation", json!(id)));
    uses("/v1/responses", &store, &|id| asks("tools", search(id)));
    uses("/v1/batches", &file, &|id| json!({ "input_file_id": id, "endpoint": "/v1/chat/completions" }));
    uses(&added, &file, &|id| json!({ "file_id": id }));
    for list in ["/v1/files", "/v1/batches"] {
        assert_eq!(shared.get(other, list).json()["data"], json!([]), "{list}");
    }
    let stores = shared.get(other, "/v1/vector_stores").json()["data"].take();
    let stores: Vec<String> = stores.as_array().expect("stores").iter().map(files::id).collect();
    assert_eq!(stores, [theirs]);
    for path in &paths {
        assert_eq!(shared.get(mine, path).status, 200, "{path}");
    }
}

#[test]
fn only_the_operator_sees_the_counts_of_all_tenants() {
    let shared = Shared::new(Arc::new(Caching::new()), Some("annalena"));
    let calls_of = |holder: &str| {
        let metrics = shared.get(holder, "/metrics").text;
        let line = metrics.lines().find(|line| line.starts_with("memlocal_calls_total{"));
        line.and_then(|line| line.rsplit_once(' ')).map_or(0, |(_, count)| count.parse::<u64>().expect("a number"))
    };
    shared.send("bobadilla", "POST", "/v1/chat/completions", &chat("?"));
    shared.send("bobadilla", "POST", "/v1/chat/completions", &chat("?"));
    shared.send("evelinde", "POST", "/v1/chat/completions", &chat("?"));
    assert_eq!(HOLDERS.map(calls_of), [3, 2, 1]);
    let names = |holder: &str, name: &str| shared.get(holder, "/metrics").text.contains(name);
    assert!(names("annalena", "memlocal_kv_pages") && !names("bobadilla", "memlocal_kv_pages"));
}

/// An action of a tenant; corpora and texts are few, so that tenants use the same names and words.
#[derive(Debug, Clone)]
enum Deed {
    Post(&'static str, Value),
    Get(&'static str),
    Delete(&'static str),
    /// Uploads a text and waits for its job.
    Upload(&'static str, String),
    /// Requests the last job or trace whose id another tenant received.
    Pry,
}

fn deed(random: &mut Random, holder: &str) -> Deed {
    const CORPORA: [&str; 2] = ["/v1/corpora/a", "/v1/corpora/b"];
    const DOCUMENTS: [&str; 2] = ["/v1/corpora/a/documents", "/v1/corpora/b/documents"];
    let which = random.below(2);
    let text = ["The horse is grey", "The lamp is out", "The horse is lame"][random.below(3)];
    let tool = |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        Deed::Post("/mcp", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
    };
    match random.below(14) {
        0 | 1 => Deed::Post("/v1/corpora", json!({ "name": (["a", "b"][which]) })),
        2 => Deed::Delete(CORPORA[which]),
        3 | 4 => Deed::Upload(DOCUMENTS[which], format!("{text}, says {holder}.")),
        5 => Deed::Get("/v1/corpora"),
        6 => Deed::Get("/v1/jobs"),
        7 => Deed::Get(DOCUMENTS[which]),
        8 => Deed::Post("/v1/corpora/a/search", json!({ "query": text, "k": 3 })),
        9 => Deed::Post("/v1/corpora/b/ask", json!({ "question": format!("{text}?"), "method": "direct" })),
        10 => Deed::Post("/v1/chat/completions", chat(text)),
        11 => Deed::Get(["/metrics", "/v1/engine"][which]),
        12 => tool("list_corpora", json!({})),
        _ => Deed::Pry,
    }
}

/// Performs an action; returns the response without what differs between runs.
fn outcome(shared: &Shared, holder: &'static str, deed: &Deed, told: &mut HashMap<&'static str, String>) -> String {
    let answer = match deed {
        Deed::Post(path, body) => shared.send(holder, "POST", path, body),
        Deed::Get(path) => shared.get(holder, path),
        Deed::Delete(path) => shared.send(holder, "DELETE", path, &Value::Null),
        Deed::Upload(path, text) => {
            let body = json!({ "name": "n.txt", "text": text, "method": "rag" });
            let accepted = shared.send(holder, "POST", path, &body);
            if accepted.status == 202 {
                shared.ended(holder, &accepted);
            }
            accepted
        }
        Deed::Pry => {
            for other in HOLDERS.iter().filter(|other| **other != holder) {
                let id = told.get(other).map_or("none", String::as_str);
                for path in [format!("/v1/jobs/{id}"), format!("/v1/jobs/{id}/events"), format!("/v1/traces/{id}")] {
                    assert_eq!(shared.get(holder, &path).status, 404, "{holder} sees {path}");
                }
                assert_eq!(shared.send(holder, "DELETE", &format!("/v1/jobs/{id}"), &Value::Null).status, 404);
                assert_eq!(shared.send(holder, "POST", &format!("/v1/jobs/{id}/resume"), &Value::Null).status, 404);
            }
            shared.get(holder, "/v1/jobs")
        }
    };
    for other in HOLDERS.iter().filter(|other| **other != holder) {
        assert!(!answer.text.contains(other), "{holder} reads of {other}: {}", answer.text);
    }
    let value: Option<Value> = serde_json::from_str(&answer.text).ok();
    for id in ["id", "trace"].into_iter().filter_map(|field| value.as_ref()?[field].as_str()) {
        told.insert(holder, id.to_owned());
    }
    let timeless = |line: &&str| !line.contains("seconds");
    let shown = value.map_or_else(
        || answer.text.lines().filter(timeless).collect::<Vec<_>>().join("\n"),
        |value| same_in_every_run(value).to_string(),
    );
    format!("{deed:?}: {} {shown}", answer.status)
}

/// Without ids, times and file sizes.
fn same_in_every_run(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(name, _)| {
                !matches!(
                    name.as_str(),
                    "id" | "trace" | "created" | "bytes" | "seconds" | "elapsed_seconds" | "milliseconds"
                )
            });
            kept.map(|(name, value)| (name, same_in_every_run(value))).collect()
        }
        Value::Array(values) => values.into_iter().map(same_in_every_run).collect(),
        // Tools return JSON as text.
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => same_in_every_run(inner),
            _ => Value::String(text),
        },
        other => other,
    }
}

#[test]
fn a_tenants_view_does_not_depend_on_others() {
    for seed in 1..=6 {
        let mut random = Random::new(seed);
        let deeds: Vec<(&str, Deed)> = (0..90)
            .map(|_| {
                let holder = HOLDERS[random.below(3)];
                (holder, deed(&mut random, holder))
            })
            .collect();
        let run = |only: Option<&str>| {
            let shared = Shared::new(Arc::new(Caching::new()), None);
            let mut told = HashMap::new();
            let mut seen: HashMap<&str, Vec<String>> = HashMap::new();
            for (holder, deed) in deeds.iter().filter(|(holder, _)| only.is_none_or(|only| only == *holder)) {
                seen.entry(*holder).or_default().push(outcome(&shared, holder, deed, &mut told));
            }
            seen
        };
        let together = run(None);
        for holder in HOLDERS {
            let alone = run(Some(holder));
            for (number, (alone, together)) in alone[holder].iter().zip(&together[holder]).enumerate() {
                assert_eq!(alone, together, "seed {seed}, {holder}, deed {number}");
            }
        }
    }
}
