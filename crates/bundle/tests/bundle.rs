//! Bundles are written, read by name, and refused once anything in them has changed.

use std::fs;
use std::path::{Path, PathBuf};

use bundle::{Bundle, Error, Readers, Writer};

/// A bundle with two files, in a folder of its own.
fn made(folder: &Path) -> PathBuf {
    let (path, one, two) = (folder.join("office"), folder.join("one"), folder.join("two"));
    fs::write(&one, "first").unwrap();
    fs::write(&two, vec![7; 100_000]).unwrap();
    let mut writer = Writer::create(&path, "MIT").unwrap();
    writer.add("models/one", &one, "Apache-2.0").unwrap();
    writer.add("models/deep/two", &two, "").unwrap();
    writer.finish(vec![("model".into(), vec!["one".into()])], Readers::All).unwrap();
    path
}

#[test]
fn files_are_found_by_name_and_start_at_pages() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let bundle = Bundle::open(&path).unwrap();
    let names: Vec<&str> = bundle.contents().files.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["models/one", "models/deep/two"]);
    assert!(bundle.contents().files.iter().all(|entry| entry.offset.is_multiple_of(64 << 10)));
    assert_eq!(bundle.read(bundle.find("models/one").unwrap()).unwrap(), b"first");
    assert_eq!(bundle.below("models/deep/").count(), 1);
    let resident = || bundle.resident(bundle.find("models/one").unwrap()).unwrap();
    assert_eq!(resident(), b"first");
    assert!(std::ptr::eq(resident(), resident()), "it is in memory once");
    assert_eq!(bundle.find("models/one").unwrap().licence, "Apache-2.0");
    assert_eq!(bundle.contents().defaults, [("model".to_owned(), vec!["one".to_owned()])]);
    let own = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_eq!(bundle.contents().executable.bytes, own.len() as u64);
    assert!(bundle.is_sound(&bundle.contents().executable).unwrap());

    let (held, name) = Bundle::holding(&path.join("models/deep/two")).unwrap();
    assert_eq!((held.path(), name.as_str()), (path.as_path(), "models/deep/two"));
    assert!(Bundle::holding(&path).is_none(), "the bundle itself is a file like any other");
    assert!(Bundle::holding(&folder.path().join("missing/file")).is_none());
    assert!(Bundle::holding(&folder.path().join("one/file")).is_none(), "a file that is no bundle");
}

#[test]
fn files_are_added_to_a_finished_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let other = folder.path().join("other");
    fs::copy(&path, &other).unwrap();
    let mut writer = Writer::append(&path).unwrap();
    writer.add("copy", &other.join("models/one"), "").unwrap();
    let bundle = writer.finish(Vec::new(), Readers::Owner).unwrap();
    for entry in &bundle.contents().files {
        assert!(bundle.is_sound(entry).unwrap(), "{}", entry.name);
    }
    assert_eq!(bundle.read(bundle.find("copy").unwrap()).unwrap(), b"first");
}

#[cfg(unix)]
#[test]
fn a_bundle_can_be_run_and_a_private_one_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o755);
    Writer::append(&path).unwrap().finish(Vec::new(), Readers::Owner).unwrap();
    assert_eq!(mode(), 0o700);
}

#[test]
fn what_was_altered_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let sound = fs::read(&path).unwrap();
    let bundle = Bundle::open(&path).unwrap();
    let entry = bundle.find("models/deep/two").unwrap().clone();
    let table = usize::try_from(entry.offset + entry.bytes).unwrap();
    let flipped = |at: usize| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        Bundle::open(&path)
    };
    for at in (table..sound.len() - 16).step_by(7) {
        assert!(matches!(flipped(at), Err(Error::Altered { .. })), "byte {at}");
    }
    assert!(matches!(flipped(sound.len() - 1), Err(Error::NotABundle { .. })));

    let bundle = flipped(usize::try_from(entry.offset).unwrap() + 99_999).unwrap();
    let error = bundle.read(&entry).unwrap_err().to_string();
    assert_eq!(error, format!("the bundle {} was altered: models/deep/two", path.display()));
    assert!(!bundle.is_sound(&entry).unwrap() && bundle.is_sound(&bundle.contents().executable).unwrap());
    let bundle = flipped(1000).unwrap();
    assert!(!bundle.is_sound(&bundle.contents().executable).unwrap());
}

#[test]
fn what_was_cut_off_or_grew_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let sound = fs::read(&path).unwrap();
    for len in [0, 10, sound.len() / 2, sound.len() - 1] {
        fs::write(&path, &sound[..len]).unwrap();
        let error = Bundle::open(&path).unwrap_err().to_string();
        assert_eq!(error, format!("{} is no bundle, or is cut off", path.display()), "cut to {len}");
    }
    let missing = [&sound[..sound.len() / 2], &sound[sound.len() / 2 + 1..]].concat();
    fs::write(&path, missing).unwrap();
    assert!(matches!(Bundle::open(&path), Err(Error::Altered { .. })));
}
