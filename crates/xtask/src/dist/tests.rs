//! Packages of a small stand-in for the binary, opened by the programs that install them.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use serde_json::Value;
use tempfile::TempDir;

use super::about::VERSION;
use super::archive::check_time;
use super::dependencies::Dependency;
use super::files::sha256;
use super::release::{NOTICES, Release};
use super::{Options, write_packages};

const STAND_IN: &str = "#!/bin/sh
case $1 in
    completions) echo \"complete for $2\" ;;
    man) mkdir -p \"$2\" && echo page > \"$2/memlocal.1\" && echo page > \"$2/memlocal-ask.1\" ;;
    *) echo \"memlocal stand-in $*\" ;;
esac
";

/// A release folder, made once per call.
fn release(name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("memlocal");
    fs::write(&binary, STAND_IN).unwrap();
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let serde = Dependency { name: "serde".into(), version: "1.0.2".into(), licence: "MIT OR Apache-2.0".into() };
    let out = folder.path().join(name);
    write_packages(&Release::of(&root, &binary, vec![serde]).unwrap(), &out).unwrap();
    (folder, out)
}

fn find(folder: &Path, end: &str) -> PathBuf {
    let mut paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.find(|path| path.to_string_lossy().ends_with(end)).unwrap_or_else(|| panic!("no {end}"))
}

/// Files of a tar archive, folders left out.
fn untar(bytes: &[u8]) -> HashMap<String, (u32, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let files = archive.entries().unwrap().map(Result::unwrap).filter(|entry| entry.header().entry_type().is_file());
    let file = |mut entry: tar::Entry<'_, &[u8]>| {
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.path().unwrap().to_string_lossy().into_owned(), (entry.header().mode().unwrap(), content))
    };
    files.map(file).collect()
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut content).unwrap();
    content
}

/// Runs a program; `None` if the machine does not have it.
fn run(program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Some((output.status.success(), text))
}

#[test]
fn the_binary_is_compiled_unless_it_is_given() {
    assert_eq!(Options::parse(&[]).unwrap(), Options::default());
    let cuda = Options { features: Some("cuda"), folder: Some("out"), ..Options::default() };
    assert_eq!(Options::parse(&["--features", "cuda", "out"]).unwrap(), cuda);
    let given = Options { binary: Some("target/release/memlocal"), ..Options::default() };
    assert_eq!(Options::parse(&["--binary", "target/release/memlocal"]).unwrap(), given);
    for wrong in [&["--binary"][..], &["a", "b"], &["--fast"], &["--binary", "b", "--features", "cuda"]] {
        assert!(Options::parse(wrong).unwrap_err().contains("usage: cargo xtask dist ["), "{wrong:?}");
    }
}

#[test]
fn a_time_that_is_no_number_is_refused() {
    assert_eq!((check_time(None), check_time(Some("1700000000"))), (Ok(0), Ok(1_700_000_000)));
    let refused = check_time(Some("today")).unwrap_err();
    assert_eq!(refused, "SOURCE_DATE_EPOCH is `today`; it must be a number of seconds since 1970");
}

#[test]
fn two_builds_give_the_same_bytes_and_the_checksums_hold() {
    let ((_a, first), (_b, second)) = (release("dist"), release("dist"));
    let sums = fs::read_to_string(first.join("SHA256SUMS")).unwrap();
    assert_eq!(sums, fs::read_to_string(second.join("SHA256SUMS")).unwrap());
    assert_eq!(sums.lines().count(), 6);
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").unwrap();
        assert_eq!(sha256(&fs::read(first.join(name)).unwrap()), sum, "{name}");
    }
}

#[test]
fn the_tarball_has_the_program_its_licences_manual_and_completions() {
    let (_folder, out) = release("dist");
    let files = untar(&gunzip(&fs::read(find(&out, "-linux.tar.gz")).unwrap()));
    let top = format!("memlocal-{VERSION}-{}-linux", std::env::consts::ARCH);
    assert_eq!(files[&format!("{top}/memlocal")], (0o755, STAND_IN.as_bytes().to_vec()));
    assert_eq!(files[&format!("{top}/completions/memlocal.fish")].1, b"complete for fish\n");
    for name in ["LICENSE-MIT", "LICENSE-APACHE", "ADAPTER.md", "man/memlocal-ask.1", "contrib/memlocal.service"] {
        assert!(files.contains_key(&format!("{top}/{name}")), "{name}");
    }
    let licences = String::from_utf8_lossy(&files[&format!("{top}/THIRD-PARTY.md")].1).into_owned();
    assert!(licences.contains("| serde | 1.0.2 | MIT OR Apache-2.0 |"), "{licences}");
}

#[test]
fn pip_installs_the_wheel_without_a_network() {
    let (folder, out) = release("dist");
    let environment = folder.path().join("env");
    let made = run("python3", &["-m", "venv", environment.to_str().unwrap()]);
    if !made.is_some_and(|(success, _)| success) {
        println!("not tested, because python3 cannot make a virtual environment");
        return;
    }
    let pip = environment.join("bin/pip");
    let wheel = find(&out, ".whl");
    let installed = run(pip.to_str().unwrap(), &["install", "--no-index", "--quiet", wheel.to_str().unwrap()]).unwrap();
    assert!(installed.0, "{}", installed.1);
    let said = run(environment.join("bin/memlocal").to_str().unwrap(), &["--version"]).unwrap();
    assert_eq!(said, (true, "memlocal stand-in --version\n".to_owned()));
    let files = run(pip.to_str().unwrap(), &["show", "--files", "memlocal"]).unwrap().1;
    assert!(files.contains("licenses/LICENSE-MIT"), "{files}");
}

#[test]
fn dpkg_reads_the_debian_package() {
    let (_folder, out) = release("dist");
    let package = find(&out, ".deb");
    let Some((read, control)) = run("dpkg-deb", &["--field", package.to_str().unwrap()]) else {
        println!("not tested, because there is no dpkg-deb");
        return;
    };
    assert!(
        read && control.contains("Package: memlocal\n") && control.contains(&format!("Version: {VERSION}\n")),
        "{control}"
    );
    let (read, listed) = run("dpkg-deb", &["--contents", package.to_str().unwrap()]).unwrap();
    assert!(read, "{listed}");
    for end in ["usr/bin/memlocal", "usr/lib/systemd/system/memlocal.service", "usr/share/man/man1/memlocal.1"] {
        let line = listed.lines().find(|line| line.ends_with(end)).unwrap_or_else(|| panic!("{end}: {listed}"));
        assert!(line.contains("root/root"), "{line}");
    }
}

#[test]
fn the_image_is_consistent_and_runs_as_a_user() {
    let (_folder, out) = release("dist");
    let files = untar(&fs::read(find(&out, "-oci.tar")).unwrap());
    let blob = |descriptor: &Value| {
        let name = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let content = files[&format!("blobs/sha256/{name}")].1.clone();
        assert_eq!((sha256(&content).as_str(), descriptor["size"].as_u64()), (name, Some(content.len() as u64)));
        content
    };
    let index: Value = serde_json::from_slice(&files["index.json"].1).unwrap();
    let manifest: Value = serde_json::from_slice(&blob(&index["manifests"][0])).unwrap();
    let config: Value = serde_json::from_slice(&blob(&manifest["config"])).unwrap();
    let layer = gunzip(&blob(&manifest["layers"][0]));
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", sha256(&layer)));
    assert_eq!(config["config"]["User"], "1000:1000");
    let files = untar(&layer);
    assert_eq!(files["usr/bin/memlocal"].0, 0o755);
    for name in NOTICES {
        assert!(files.contains_key(&format!("usr/share/doc/memlocal/{name}")), "{name}");
    }
}

#[test]
fn the_sbom_lists_every_dependency() {
    let (_folder, out) = release("dist");
    let bom: Value = serde_json::from_slice(&fs::read(find(&out, ".cdx.json")).unwrap()).unwrap();
    assert_eq!(bom["bomFormat"], "CycloneDX");
    let licence = &bom["metadata"]["component"]["licenses"][0]["expression"];
    assert_eq!(licence, "(Apache-2.0 OR MIT) AND CC-BY-SA-4.0", "with that of the adapter in the binary");
    assert_eq!(bom["components"][0]["purl"], "pkg:cargo/serde@1.0.2");
    assert_eq!(bom["dependencies"][0]["dependsOn"][0], "pkg:cargo/serde@1.0.2");
}

#[test]
fn the_installer_checks_the_digest_and_installs() {
    let (folder, out) = release("dist");
    let (script, prefix) = (out.join("install.sh"), folder.path().join("prefix"));
    let install = || run("sh", &[script.to_str().unwrap(), out.to_str().unwrap(), prefix.to_str().unwrap()]).unwrap();
    let (success, said) = install();
    assert!(success && said.contains("memlocal stand-in --version\n"), "{said}");
    assert!(prefix.join("share/man/man1/memlocal-ask.1").is_file());

    fs::remove_file(prefix.join("bin/memlocal")).unwrap();
    let tarball = find(&out, "-linux.tar.gz");
    fs::write(&tarball, b"another content").unwrap();
    let (success, said) = install();
    assert!(!success && said.contains("has another digest than SHA256SUMS says\nhint: get it again"), "{said}");
    assert!(!prefix.join("bin/memlocal").exists());
}
