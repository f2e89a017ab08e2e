//! `memlocal bench`: how it finds the program that it starts.

use std::fs;

use test_support::home::{Home, program};

/// `memlocal` in a separate folder without other files.
fn copy(home: &Home) -> String {
    let path = home.path("memlocal");
    fs::hard_link(program("memlocal"), &path).or_else(|_| fs::copy(program("memlocal"), &path).map(drop)).unwrap();
    path.display().to_string()
}

#[test]
fn bench_starts_memlocal_bench_with_the_same_arguments() {
    let home = Home::bare("bench-exec");
    let memlocal = copy(&home);
    home.write("script", "#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 7\n");
    // Another process writes the program: a file that is open for writing cannot be run, and a test that starts a process
    // at that moment keeps it open.
    let installed = home.program("install").args(["-m", "755", "script", "memlocal-bench"]).status().unwrap();
    assert!(installed.success());
    let words = ["--threads", "1", "bench", "qa", "--suite", "a b", "--help"];
    let said = home.said(home.program(&memlocal).args(words).output().unwrap());
    assert_eq!((said.code, said.out.as_str()), (7, "--threads\n1\nqa\n--suite\na b\n--help\n"), "{said:?}");
}

#[test]
fn where_memlocal_bench_is_missing_the_error_says_how_to_get_it() {
    let home = Home::bare("bench-missing");
    let memlocal = copy(&home);
    home.said(home.program(&memlocal).args(["bench", "--help"]).output().unwrap()).is_error(&[
        "error: ~/work/memlocal-bench is missing, which runs the benchmarks",
        "hint: in memlocal's repository, `cargo build --release -p bench` builds it and `cargo install --path \
         crates/bench` installs it; put it beside memlocal",
    ]);
}
