//! Offline means that no socket is opened.

use std::fs;
use std::process::Output;

use test_support::home::{Home, can, memlocal};

const ASK: [&str; 6] = ["ask", "What burnt down?", "--docs", "a.txt", "--method", "rag"];

/// Follows child processes, intercepts network system calls only, and writes them to the file named next.
const STRACE: [&str; 8] = ["-f", "--seccomp-bpf", "-qq", "-e", "trace=network", "-e", "signal=none", "-o"];

#[test]
fn nothing_opens_a_socket() {
    if !can("strace", &[&STRACE[..], &["/dev/null", "true"]].concat(), "that no socket is opened") {
        return;
    }
    let Some(home) = Home::new("offline") else { return };
    home.write("a.txt", "The wick burnt down in May 1921.\n");
    let unknown = [&ASK[..], &["--model", "qwen2.5-0.5b"]].concat();
    let check = |words: &[&str], by_flag: bool, code: i32| {
        let output = traced(&home, words, by_flag);
        let network = fs::read_to_string(home.path("network")).unwrap();
        let said = home.said(output);
        assert_eq!(said.code, code, "{}", said.err);
        assert_eq!(network, "", "{words:?}");
        said.err
    };
    for by_flag in [true, false] {
        check(&ASK, by_flag, 0);
        let said = check(&unknown, by_flag, 1);
        assert!(said.starts_with("error: qwen2.5-0.5b-instruct:q4_k_m was found nowhere:\n"), "{said}");
        let hint = "\nhint: offline, only this disk was asked: fetch it once with a network (memlocal models pull \
                    qwen2.5-0.5b-instruct:q4_k_m), or copy its files from elsewhere (memlocal models pull \
                    qwen2.5-0.5b-instruct:q4_k_m --from PATH)\n";
        assert!(said.ends_with(hint), "{said}");
    }
    check(&["models", "pull", "bge-m3"], true, 1);
    check(&["models", "list"], true, 0);
}

/// Runs a command offline and writes its network system calls and those of its children to `network`.
fn traced(home: &Home, words: &[&str], by_flag: bool) -> Output {
    let mut strace = home.program("strace");
    strace.args(STRACE).arg("network").args(memlocal()).args(words);
    if by_flag {
        strace.arg("--offline").env_remove("HF_HUB_OFFLINE");
    }
    strace.output().unwrap()
}
