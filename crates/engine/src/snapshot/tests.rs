use std::process::{Command, Stdio};
use std::time::Duration;

use random::Random;
use test_support::fuzz;

use super::*;

const PAGE_BYTES: usize = 96;
const ONE: Namespace = Namespace(1);

fn books(pages: usize) -> Vec<SavedPage> {
    let page = |index: usize| SavedPage {
        parent: index.checked_sub(1),
        tokens: (0..PAGE_TOKENS).map(|i| (1000 * index + i) as u32).collect(),
    };
    (0..pages).map(page).collect()
}

fn pages_of(pages: usize) -> Vec<(SavedPage, PageId)> {
    books(pages).into_iter().zip((0..).map(PageId)).collect()
}

fn contents(index: usize, seed: u8) -> Vec<u8> {
    (0..PAGE_BYTES).map(|i| (i * 7 + index * 31) as u8 ^ seed).collect()
}

fn write(path: &Path, pages: usize, seed: u8) -> Result<(), SnapshotError> {
    let mut writing = Writing::begin(path, "ours", ONE, PAGE_BYTES, &pages_of(pages))?;
    (0..pages).try_for_each(|index| writing.page(&contents(index, seed)))?;
    writing.end()
}

fn open(path: &Path) -> Result<Saved, SnapshotError> {
    Saved::open(path, "ours", ONE, PAGE_BYTES, false)
}

/// The number of temporary files beside a snapshot.
fn unfinished(path: &Path) -> usize {
    let files = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "new")).count()
}

#[test]
fn what_was_saved_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some/where/prefixes.kv");
    assert!(matches!(open(&path), Err(SnapshotError::Model(_))));
    write(&path, 5, 0).unwrap();
    let saved = open(&path).unwrap();
    assert_eq!(saved.books, books(5));
    (0..5).for_each(|index| assert_eq!(saved.page(index), contents(index, 0)));
    for (identity, namespace, page_bytes) in
        [("theirs", ONE, PAGE_BYTES), ("ours", Namespace(2), PAGE_BYTES), ("ours", ONE, 2 * PAGE_BYTES)]
    {
        let refused = Saved::open(&path, identity, namespace, page_bytes, false);
        assert!(matches!(refused, Err(SnapshotError::Mismatch { .. })), "{identity} {namespace:?} {page_bytes}");
    }
    assert_eq!(
        open(&{
            write(&path, 0, 0).unwrap();
            path
        })
        .unwrap()
        .books,
        []
    );
}

#[test]
fn random_damage_below_a_valid_digest_is_refused_or_read_as_pages() {
    let mut rounds = fuzz::rounds(3000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prefixes.kv");
    write(&path, 3, 0).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let content = &whole[..whole.len() - DIGEST_BYTES];
    let mut read = 0;
    for round in &mut rounds {
        let mut random = Random::new(round);
        let mut below = |limit: usize| random.below(limit.max(1));
        let mut damaged = content.to_vec();
        for _ in 0..=below(3) {
            let reach = if below(2) == 0 { damaged.len().min(160) } else { damaged.len() };
            let at = below(reach);
            match below(5) {
                0 => damaged.truncate(at),
                1 => drop(damaged.splice(at..at, [0xff; 9])),
                2 => damaged.iter_mut().skip(at).take(4).for_each(|byte| *byte = 0xff),
                3 => {
                    // A number of the header.
                    if let Some(digit) = (0..reach.min(damaged.len())).rev().find(|at| damaged[*at].is_ascii_digit()) {
                        damaged.splice(digit..=digit, *b"18446744073709551615");
                    }
                }
                _ => damaged.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (round % 8)),
            }
        }
        let digest = blake3::hash(&damaged);
        std::fs::write(&path, [&damaged, digest.as_bytes().as_slice()].concat()).unwrap();
        if let Ok(saved) = open(&path) {
            read += 1;
            for (index, page) in saved.books.iter().enumerate() {
                assert_eq!((page.tokens.len(), saved.page(index).len()), (PAGE_TOKENS, PAGE_BYTES), "round {round}");
            }
        }
    }
    println!("{read} of {} damaged snapshots were read", rounds.done());
    assert!(read < rounds.done());
}

#[test]
fn any_flipped_byte_and_any_cut_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prefixes.kv");
    write(&path, 2, 0).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let check = |bytes: &[u8], what: String| {
        std::fs::write(&path, bytes).unwrap();
        assert!(open(&path).is_err(), "{what}");
    };
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        check(&flipped, format!("byte {at}"));
        check(&whole[..at], format!("{at} bytes"));
    }
    check(&[whole.as_slice(), b"!"].concat(), "one byte more".into());
    // With a valid digest after the change it is still refused.
    let mut shorter = whole[..whole.len() - DIGEST_BYTES - PAGE_BYTES].to_vec();
    let digest = blake3::hash(&shorter);
    shorter.extend(digest.as_bytes());
    check(&shorter, "a page less".into());
}

#[test]
fn a_file_that_is_given_up_takes_no_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prefixes.kv");
    write(&path, 2, 0).unwrap();
    let mut writing = Writing::begin(&path, "ours", ONE, PAGE_BYTES, &pages_of(5)).unwrap();
    writing.page(&contents(0, 1)).unwrap();
    assert_eq!(unfinished(&path), 1);
    drop(writing);
    assert_eq!(unfinished(&path), 0);
    assert_eq!(open(&path).unwrap().books, books(2), "what was there before is still there");
}

#[test]
fn engines_that_save_at_once_do_not_write_into_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prefixes.kv");
    let begin = || Writing::begin(&path, "ours", ONE, PAGE_BYTES, &pages_of(3)).unwrap();
    let (mut one, mut other) = (begin(), begin());
    for index in 0..3 {
        one.page(&contents(index, 1)).unwrap();
        other.page(&contents(index, 2)).unwrap();
    }
    for (writing, seed) in [(one, 1), (other, 2)] {
        writing.end().unwrap();
        let saved = open(&path).unwrap();
        (0..3).for_each(|index| assert_eq!(saved.page(index), contents(index, seed)));
    }
}

#[test]
fn what_a_killed_engine_has_left_is_swept() {
    let folder = tempfile::tempdir().unwrap();
    let left = folder.path().join("prefixes.7-0.new");
    let file = std::fs::File::create(&left).unwrap();
    let path = folder.path().join("prefixes.kv");
    write(&path, 2, 0).unwrap();
    assert!(left.exists(), "it may still be written to");
    file.set_modified(std::time::SystemTime::now() - 2 * ABANDONED).unwrap();
    write(&path, 2, 0).unwrap();
    assert!(!left.exists());
}

/// Set in the child process that writes until it is killed.
const WRITES_TO: &str = "MEMLOCAL_TEST_SNAPSHOT";

#[test]
fn a_writer_that_is_killed_leaves_a_whole_file() {
    if let Ok(path) = std::env::var(WRITES_TO) {
        for round in (0..=u8::MAX).cycle() {
            write(Path::new(&path), 400, round).unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prefixes.kv");
    write(&path, 400, 0).unwrap();
    let (mut cut_short, mut known) = (0, 0);
    for round in 0..20 {
        let test = "snapshot::tests::a_writer_that_is_killed_leaves_a_whole_file";
        let mut writer = Command::new(std::env::current_exe().unwrap());
        writer.args([test, "--exact"]).env(WRITES_TO, &path).stdout(Stdio::null());
        let mut writer = writer.spawn().unwrap();
        // Once it writes, it is killed at different moments.
        while unfinished(&path) == known && writer.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(3 * round));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let left = unfinished(&path);
        cut_short += left - known;
        known = left;
        let saved = open(&path).unwrap_or_else(|error| panic!("round {round}: {error}"));
        let seed = saved.page(0)[0] ^ contents(0, 0)[0];
        (0..400).for_each(|index| assert_eq!(saved.page(index), contents(index, seed), "round {round}"));
    }
    println!("{cut_short} of 20 writers were killed in the middle of a file");
    assert!(cut_short > 0, "nothing was cut short, so this test shows nothing");
}

#[test]
fn whatever_keys_and_values_depend_on_is_part_of_their_identity() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama");
    let copy = tempfile::tempdir().unwrap();
    let copy = copy.path();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(golden.join(name), copy.join(name)).unwrap();
    }
    let template = |text: &str| std::fs::write(copy.join("chat_template.jinja"), text).unwrap();
    template("{{ messages[0].content }}");
    let load = |options| models::LanguageModel::load_with(copy, options, &candle_core::Device::Cpu).unwrap();
    let identity = |model: &models::LanguageModel| Identity {
        source: model.source.clone(),
        spec: model.spec().clone(),
        kv_precision: KvPrecision::F16,
        arithmetic: model.network.arithmetic(),
        known: OnceLock::new(),
    };
    let plain = load(models::LoadOptions::default());
    let ours = identity(&plain);
    let mut digests = vec![ours.digest().unwrap()];
    assert_eq!(identity(&load(models::LoadOptions::default())).digest().unwrap(), digests[0]);
    digests.push(Identity { kv_precision: KvPrecision::F32, ..identity(&plain) }.digest().unwrap());
    digests.push(Identity { arithmetic: "another".to_owned(), ..identity(&plain) }.digest().unwrap());
    let mut turned = plain.spec().clone();
    turned.rope.theta *= 2.0;
    digests.push(Identity { spec: turned, ..identity(&plain) }.digest().unwrap());
    let quantised = models::Precision::Quantised(models::Quantisation::Q8_0);
    for options in [
        models::LoadOptions { precision: quantised, ..Default::default() },
        models::LoadOptions { yarn: Some(2.0), ..Default::default() },
    ] {
        digests.push(identity(&load(options)).digest().unwrap());
    }
    template("{{ messages[0].content | trim }}");
    digests.push(identity(&load(models::LoadOptions::default())).digest().unwrap());
    let different: std::collections::BTreeSet<&String> = digests.iter().collect();
    assert_eq!(different.len(), digests.len(), "{digests:?}");

    // The file on disk is no longer the one that was loaded.
    std::fs::write(copy.join("chat_template.jinja"), "another, and longer").unwrap();
    let changed = identity(&plain).digest().unwrap_err().to_string();
    assert!(changed.contains("has changed since it was loaded"), "{changed}");
}
