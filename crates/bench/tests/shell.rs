//! Completions and man pages of `memlocal-bench`.

use std::fs;

use test_support::home::Home;

#[test]
fn shells_and_the_manual_know_every_command() {
    let home = Home::bare("bench-shell").running("memlocal-bench");
    for shell in ["bash", "zsh", "fish"] {
        let script = home.get(&["completions", shell]);
        assert!(script.contains("retrieval") && script.contains("embed-against"), "{shell}");
    }
    home.get(&["man", "pages"]);
    let page = |name: &str| fs::read_to_string(home.path("pages").join(name)).unwrap();
    assert!(page("memlocal-bench-qa.1").contains("preset"), "{}", page("memlocal-bench-qa.1"));
}

#[test]
fn settings_of_memlocal_do_not_disturb() {
    let home = Home::bare("bench-config").running("memlocal-bench");
    fs::write(home.data().join("config.toml"), "threads = 1\n[serve]\nport = 8080\n").unwrap();
    let said = home.run(&["rescore", "none"]);
    assert!(said.code == 1 && said.err.starts_with("error: cannot read none/manifest.json: "), "{said:?}");
    fs::write(home.data().join("config.toml"), "thread = 1\n").unwrap();
    assert!(home.run(&["rescore", "none"]).err.contains("line 1: there is no setting `thread`"));
}

#[test]
fn a_typed_flag_overrides_a_wrong_variable() {
    let home = Home::bare("bench-variables").running("memlocal-bench");
    let run = |words: &[&str]| home.said(home.command(words).env("MEMLOCAL_GPU", "first").output().unwrap());
    let named = run(&["rescore", "none"]);
    assert!(named.code == 2 && named.err.ends_with("environment variable MEMLOCAL_GPU\n"), "{named:?}");
    for words in [&["rescore", "none", "--gpu", "none"][..], &["--gpu=none", "rescore", "none"]] {
        let overridden = run(words);
        let says = "error: cannot read none/manifest.json: ";
        assert!(overridden.code == 1 && overridden.err.starts_with(says), "{words:?}: {overridden:?}");
    }
}
