//! `memlocal train`: what it refuses before it computes anything. Examples are tested in `crates/memory`, training in
//! `crates/train`.

use std::fs;

use test_support::home::{Home, program};

/// `memlocal` in a separate folder, beside a stand-in for `memlocal-train` if there is one.
fn copy(home: &Home, with_trainer: bool) -> String {
    let path = home.path("memlocal");
    fs::hard_link(program("memlocal"), &path).or_else(|_| fs::copy(program("memlocal"), &path).map(drop)).unwrap();
    if with_trainer {
        fs::write(home.path("memlocal-train"), "").unwrap();
    }
    path.display().to_string()
}

#[test]
fn where_memlocal_train_is_missing_the_error_says_how_to_get_it() {
    let home = Home::bare("train-missing");
    let memlocal = copy(&home, false);
    home.said(home.program(&memlocal).args(["train", "--corpus", "notes", "--yes"]).output().unwrap()).is_error(&[
        "error: ~/work/memlocal-train is missing, which trains adapters",
        "hint: in memlocal's repository, `cargo build --release -p train` builds it and `cargo install --path \
         crates/train` installs it; put it beside memlocal",
    ]);
}

#[test]
fn without_a_terminal_training_needs_yes() {
    let home = Home::bare("train-yes");
    let memlocal = copy(&home, true);
    home.said(home.program(&memlocal).args(["train", "--corpus", "notes"]).output().unwrap()).is_error(&[
        "error: there is no terminal to ask at whether training may begin",
        "hint: to train without a question: memlocal train --corpus notes --yes",
    ]);
}

#[test]
fn an_adapter_of_a_corpus_is_named_by_the_corpus() {
    let home = Home::bare("train-adapter");
    home.run(&["serve", "--adapter", "corpus"]).is_error(&[
        "error: `--adapter corpus` is the adapter of the corpus of --corpus, and none is given",
        "hint: name the corpus: --adapter corpus:NAME",
    ]);
}
