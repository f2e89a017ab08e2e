//! `memlocal` killed at random moments of `ingest`, `serve` (upload, delete), `ask` and `corpus rm`: the corpus always
//! opens, finished pages stay, no call is repeated whose reply was stored, and the end is that of an undisturbed run. A
//! corpus that is being removed is there completely or not at all.
//!
//! The language model is a scripted endpoint in this process; everything else is the program as users run it. `cargo
//! xtask crash --kills N [--seed S]` is the long form, with the kills of `memlocal-train` (crates/train/tests/killed.rs).

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use store::{Corpora, Corpus, Error, Layer};
use test_support::home::Home;

const KILLS: usize = 15;
const SEED: usize = 27;
/// The most kills of one step of the plan; then it ends undisturbed, so that quick steps do not take all kills.
const KILLS_OF_A_STEP: usize = 10;
const DOCUMENTS: usize = 4;
const LINES: usize = 12;

/// An endpoint that answers every call with a digest of its prompt, and writes the prompts down.
struct Endpoint {
    url: String,
    prompts: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    fn start() -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let prompts = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&prompts);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&seen);
                // A killed client leaves its request incomplete.
                thread::spawn(move || answer(&stream, &seen));
            }
        });
        Endpoint { url, prompts }
    }

    fn calls(&self) -> usize {
        self.prompts.lock().unwrap().len()
    }
}

fn answer(stream: &TcpStream, seen: &Mutex<Vec<String>>) -> Option<()> {
    let (mut reader, mut length, mut head) = (BufReader::new(stream), 0, String::new());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? <= 2 {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let reply = if head.starts_with("GET ") {
        json!({"object": "list", "data": [{"id": "scripted", "max_model_len": 4096}]}).to_string()
    } else {
        let body: Value = serde_json::from_slice(&body).ok()?;
        let contents = body["messages"].as_array()?.iter().filter_map(|message| message["content"].as_str());
        let prompt = contents.collect::<Vec<_>>().join("\n");
        let text = reply_to(&prompt, &body);
        seen.lock().ok()?.push(prompt);
        let piece = json!({"choices": [{"delta": {"content": text}}]});
        let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
        let usage = json!({"choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 7}});
        format!("data: {piece}\n\ndata: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n")
    };
    let kind = if head.starts_with("GET ") { "application/json" } else { "text/event-stream" };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n", reply.len());
    (&*stream).write_all(format!("{head}connection: close\r\n\r\n{reply}").as_bytes()).ok()
}

/// A text that depends on the whole prompt, so that the final state shows whether any prompt was another one.
fn reply_to(prompt: &str, body: &Value) -> String {
    let mut digest = DefaultHasher::new();
    prompt.hash(&mut digest);
    let text = format!("Noted as {:016x}.", digest.finish());
    if body["response_format"].is_null() { text } else { json!({ "answer": text }).to_string() }
}

/// Reproducible pseudo-random numbers (the constants of Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }
}

fn text(document: usize) -> String {
    let line = |line| format!("Message {document}.{line} says that lamp {line} of pier {document} was lit.\n");
    (0..LINES).map(line).collect::<Vec<_>>().concat()
}

/// One home on its way through the plan: documents are ingested, then one is uploaded and another deleted by a server,
/// then a question is asked.
struct Run<'a> {
    home: Home,
    endpoint: &'a Endpoint,
}

impl Run<'_> {
    fn new<'a>(name: &str, endpoint: &'a Endpoint) -> Option<Run<'a>> {
        let home = Home::new(name)?;
        for document in 0..DOCUMENTS {
            home.write(&format!("docs/{document}.txt"), text(document));
        }
        Some(Run { home, endpoint })
    }

    fn start(&self, words: &[&str]) -> Child {
        let mut command = self.home.command(&[words, &["--engine", &self.endpoint.url]].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn corpus(&self) -> Option<Corpus> {
        match Corpora::new(self.home.data()).open("crash") {
            Err(Error::UnknownCorpus { .. }) => None,
            opened => Some(opened.expect("a corpus opens after every kill")),
        }
    }

    /// The texts of all pages that have an abstract; the corpus is checked completely.
    fn finished(&self) -> BTreeSet<String> {
        let Some(corpus) = self.corpus() else { return BTreeSet::new() };
        corpus.verify().expect("a corpus is sound after every kill");
        let notes = corpus.notes_named(Layer::Page, "abstract").unwrap();
        notes.iter().map(|note| corpus.passage_text(note.passage).unwrap()).collect()
    }

    /// All that is stored but vectors, which are checked otherwise, and the paths of this home.
    fn content(&self) -> Vec<String> {
        let corpus = self.corpus().expect("it is there");
        let mut content = Vec::new();
        for document in corpus.documents().unwrap() {
            content.push(format!("{} {}", name(&document.path), document.digest));
            for page in corpus.passages_of(document.id, Layer::Page).unwrap() {
                let notes = corpus.notes(page.id).unwrap();
                let notes: Vec<_> = notes.into_iter().map(|note| (note.name, note.text)).collect();
                content.push(format!("{:?} {} {notes:?}", page.span, corpus.passage_text(page.id).unwrap()));
            }
        }
        assert_eq!(corpus.without_vectors(Layer::Page, &embedder(&corpus)).unwrap(), [], "every page has its vector");
        content
    }

    /// The names of all documents.
    fn documents(&self) -> Vec<String> {
        let Some(corpus) = self.corpus() else { return Vec::new() };
        corpus.documents().unwrap().iter().map(|document| name(&document.path).to_owned()).collect()
    }

    /// Does what is left of the plan, until it is done or killed; returns whether it was killed.
    fn go_on(&self, stage: Stage, moment: &Moment) -> bool {
        let before = self.endpoint.calls();
        let is_gone = self.corpus().is_none();
        let mut child = match stage {
            Stage::Ingest => {
                self.start(&["ingest", "docs", "--corpus", "crash", "--method", "gam", "--page-tokens", "64"])
            }
            Stage::Serve => self.start(&["serve", "--port", "0"]),
            Stage::Ask => self.start(&["ask", "Which lamp was lit?", "--corpus", "crash", "--method", "direct"]),
            Stage::Remove => {
                let mut command = self.home.command(&["corpus", "rm", "crash", "--yes"]);
                command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
            }
        };
        // The client ends the server when all is done.
        let client = (stage == Stage::Serve).then(|| {
            let (out, id) = (child.stdout.take().unwrap(), child.id().to_string());
            thread::spawn(move || {
                let done = change(BufReader::new(out)).is_some();
                let _ended = done && Command::new("kill").args(["-TERM", &id]).status().is_ok();
                done
            })
        });
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            let is_now = self.endpoint.calls() - before >= moment.calls && started.elapsed() >= moment.after;
            if is_now {
                thread::sleep(moment.then);
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            thread::sleep(Duration::from_micros(500));
        };
        let is_done = client.is_none_or(|client| client.join().unwrap());
        let killed = status.code().is_none();
        // Where an earlier process was killed just behind the removal, there is nothing left to remove but files.
        let is_right = status.success() || (stage == Stage::Remove && is_gone);
        assert!(killed || is_right, "it failed by itself: {status}");
        killed || !is_done
    }
}

/// The steps of the plan.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// `memlocal ingest` of some documents.
    Ingest,
    /// `memlocal serve`, where one more document is uploaded and the first is deleted.
    Serve,
    Ask,
    /// `memlocal corpus rm`.
    Remove,
}

const STAGES: [Stage; 4] = [Stage::Ingest, Stage::Serve, Stage::Ask, Stage::Remove];

/// When a process is killed: after a number of calls and a time, and a moment later.
struct Moment {
    calls: usize,
    after: Duration,
    then: Duration,
}

impl Moment {
    const NEVER: Moment = Moment { calls: usize::MAX, after: Duration::ZERO, then: Duration::ZERO };

    /// Half of the kills are at any time of a run, half just after one of its calls; a removal makes none.
    fn random(random: &mut Random, (run, calls): (Duration, usize)) -> Moment {
        let micros = |most: Duration, random: &mut Random| {
            Duration::from_micros(random.below(usize::try_from(most.as_micros()).unwrap()) as u64)
        };
        if calls == 0 || random.below(2) == 0 {
            let after = micros(run + run / 4, random);
            return Moment { calls: 0, after, then: Duration::ZERO };
        }
        let calls = 1 + random.below(calls);
        Moment { calls, after: Duration::ZERO, then: micros(Duration::from_millis(12), random) }
    }
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name of the one embedder of a corpus.
fn embedder(corpus: &Corpus) -> String {
    let first = corpus.passages(Layer::Page).unwrap()[0].id;
    let known = ["all-minilm-l6-v2:f32", "all-minilm-l6-v2:f32+header"];
    let named = known.into_iter().find(|name| !corpus.vectors(name, first).unwrap().is_empty());
    named.expect("the first page has vectors").to_owned()
}

/// Uploads one more document and deletes the first, as far as that is not done; waits for all jobs. `None` if the server
/// ended meanwhile.
fn change(mut out: impl BufRead) -> Option<()> {
    let mut line = String::new();
    out.read_line(&mut line).ok()?;
    let address = line.trim().strip_prefix("memlocal listens on http://")?.to_owned();
    let documents = "/v1/corpora/crash/documents";
    // Jobs of a killed server resume by themselves.
    wait_for_jobs(&address)?;
    let listed = request(&address, "GET", documents, "")?;
    let id_of = |wanted: &str| {
        let all = listed["documents"].as_array()?;
        let document = all.iter().find(|document| document["path"].as_str().map(name) == Some(wanted))?;
        document["id"].as_i64()
    };
    if id_of("more.txt").is_none() {
        let body = json!({"name": "more.txt", "text": text(DOCUMENTS), "method": "gam"});
        request(&address, "POST", documents, &body.to_string())?;
        wait_for_jobs(&address)?;
    }
    if let Some(id) = id_of("0.txt") {
        request(&address, "DELETE", &format!("{documents}/{id}"), "")?;
    }
    Some(())
}

/// A request to a server; `None` if it ended.
fn request(address: &str, method: &str, path: &str, body: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n");
    write!(stream, "{head}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, content) = text.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 2"), "{method} {path}: {text}");
    // A response may have been cut off.
    if content.is_empty() { Some(Value::Null) } else { serde_json::from_str(content).ok() }
}

fn wait_for_jobs(address: &str) -> Option<()> {
    loop {
        let jobs = request(address, "GET", "/v1/jobs", "")?;
        let is = |job: &&Value, known: &[&str]| job["status"].as_str().is_some_and(|status| known.contains(&status));
        let jobs = jobs["jobs"].as_array()?;
        let failed = jobs.iter().find(|job| is(job, &["failed", "cancelled"]));
        if let Some(failed) = failed {
            // One that was killed too often waits for its user.
            let killed = failed["error"]
                .as_str()
                .is_some_and(|error| error.starts_with("it was interrupted 3 times without progress"));
            assert!(killed, "{failed:?}");
            request(address, "POST", &format!("/v1/jobs/{}/resume", failed["id"].as_str()?), "")?;
            continue;
        }
        if !jobs.iter().any(|job| is(&job, &["waiting", "running"])) {
            return Some(());
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The number in a variable.
fn number(name: &str, usual: usize) -> usize {
    env::var(name).map_or(usual, |value| value.parse().expect("a number"))
}

#[test]
fn a_killed_program_loses_nothing_and_repeats_nothing() {
    let (kills, seed) = (number("MEMLOCAL_KILLS", KILLS), number("MEMLOCAL_SEED", SEED));
    let endpoint = Endpoint::start();
    let Some(warm) = Run::new("crash-warm", &endpoint) else { return };
    assert!(!warm.go_on(Stage::Ingest, &Moment::NEVER), "the first run prepares the models");
    let first = endpoint.calls();
    let Some(whole) = Run::new("crash-whole", &endpoint) else { return };
    let last = |stage| {
        let (started, before) = (Instant::now(), endpoint.calls());
        assert!(!whole.go_on(stage, &Moment::NEVER));
        (started.elapsed(), endpoint.calls() - before)
    };
    let (ingest, serve, ask) = (last(Stage::Ingest), last(Stage::Serve), last(Stage::Ask));
    let (calls, expected) = (endpoint.calls() - first, whole.content());
    let asked = |page: &String| endpoint.prompts.lock().unwrap().iter().any(|prompt| prompt.contains(page.trim()));
    let pages = whole.finished();
    assert!(pages.iter().all(asked), "the text of a page is in its prompt");
    let lasts = [ingest, serve, ask, last(Stage::Remove)];
    println!("an undisturbed run: {calls} calls, {} pages, {lasts:?}", pages.len());

    let mut random = Random(seed as u64);
    let (mut killed, mut rounds, mut by_stage) = (0, 0, [0; STAGES.len()]);
    let mut repeated_at_most = 0;
    while killed < kills {
        let Some(run) = Run::new("crash", &endpoint) else { return };
        let round_begin = endpoint.calls();
        let mut round_kills = 0;
        for (number, stage) in STAGES.into_iter().enumerate() {
            if stage == Stage::Remove {
                assert_eq!(run.content(), expected, "the end is that of an undisturbed run");
            }
            for attempt in 0.. {
                let (before, documents, first) = (run.finished(), run.documents(), endpoint.calls());
                let moment = match attempt {
                    0..KILLS_OF_A_STEP => Moment::random(&mut random, lasts[number]),
                    _ => Moment::NEVER,
                };
                let was_killed = run.go_on(stage, &moment);
                let after = run.finished();
                // Only the deleted document may be gone, and only by the server.
                let lost: Vec<&String> = before.difference(&after).collect();
                let is_removed = stage == Stage::Remove && run.corpus().is_none();
                let is_deleted = |page: &&String| is_removed || stage == Stage::Serve && page.contains("of pier 0 ");
                assert!(lost.iter().all(is_deleted), "lost in {stage:?} after kill {killed}: {lost:?}");
                let gone = documents.iter().filter(|document| !run.documents().contains(document));
                let is_wanted = |document: &String| is_removed || document == "0.txt";
                assert!(gone.clone().all(is_wanted), "{:?}", gone.collect::<Vec<_>>());
                // What was stored before this process began is not asked again; the question quotes pages.
                let prompts = endpoint.prompts.lock().unwrap();
                let again = |page: &&String| {
                    // The end of a document may be so short that other texts contain it.
                    page.contains("Message ") && prompts[first..].iter().any(|prompt| prompt.contains(page.trim()))
                };
                let repeated: Vec<&String> = before.iter().filter(|_| stage != Stage::Ask).filter(again).collect();
                assert!(repeated.is_empty(), "asked again in {stage:?} after kill {killed}: {repeated:?}");
                drop(prompts);
                if !was_killed {
                    break;
                }
                killed += 1;
                round_kills += 1;
                by_stage[number] += 1;
            }
        }
        let left: Vec<_> = fs::read_dir(run.home.data().join("corpora")).unwrap().collect();
        assert!(left.is_empty(), "a removed corpus has left {left:?}");
        // A call in flight when its process was killed is lost: at most one for each kill.
        let repeated = (endpoint.calls() - round_begin).saturating_sub(calls);
        assert!(repeated <= round_kills, "{repeated} calls more than an undisturbed run, of {round_kills} kills");
        repeated_at_most = repeated_at_most.max(repeated);
        rounds += 1;
    }
    println!("killed {killed} times in {rounds} runs (ingest, serve, ask, rm: {by_stage:?}), seed {seed}");
    println!("at most {repeated_at_most} calls of a run were in flight and had to be made again");
}
