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

/// Runs a command as root of a new network, which has no interface but loopback, and no route.
const NAMESPACE: [&str; 3] = ["--user", "--map-root-user", "--net"];

/// Ends if anything fails. Another machine cannot be reached from here, as a look at this network shows.
const WITHOUT_ROUTE: &str = r#"
set -e
ip link set lo up
test -z "$(ip route)"
if (exec 3<>/dev/tcp/192.0.2.1/80) 2>reached; then exit 9; fi
grep -q "Network is unreachable" reached
"$@" --offline ingest a.txt --corpus c --method rag
"$@" --offline ask "What burnt down?" --corpus c --method rag
"$@" --offline serve --port 0 >served &
until grep -q listens served; do kill -0 $!; sleep 0.05; done
address=$(sed -n 's,.*http://,,p' served)
body='{"question": "What burnt down?", "method": "rag"}'
exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
printf 'POST /v1/corpora/c/ask HTTP/1.1\r\nhost: %s\r\ncontent-type: application/json\r\n' "$address" >&3
printf 'content-length: %s\r\nconnection: close\r\n\r\n%s' "${#body}" "$body" >&3
cat <&3
kill -TERM $!
wait $!
{
    echo '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"}}}' | tr -d '\n'
    echo
    echo '{"jsonrpc": "2.0", "method": "notifications/initialized"}'
    echo '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_corpora", "arguments": {}}}'
    for try in {1..1200}; do grep -q '"id":2' called 2>/dev/null && break; sleep 0.05; done
} | "$@" --offline mcp >called
cat called
"#;

#[test]
fn questions_are_answered_in_a_network_without_a_route() {
    let isolated = |words: &[&'static str]| [&NAMESPACE[..], words].concat();
    if !can("unshare", &isolated(&["ip", "route"]), "a network without a route") {
        return;
    }
    let Some(home) = Home::new("no-route") else { return };
    home.write("a.txt", "The wick burnt down in May 1921.\n");
    let mut program = home.program("unshare");
    program.args(isolated(&["bash", "-c", WITHOUT_ROUTE, "bash"])).args(memlocal()).env_remove("HF_HUB_OFFLINE");
    let said = home.said(program.output().unwrap());
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.starts_with("c: 1 document, 1 page\n"), "{said:?}");
    let (_, served) = said.out.split_once("HTTP/1.1 200 OK").expect("the server answers over loopback");
    assert!(served.contains("\"answer\":"), "{said:?}");
    let last = served.trim_end().lines().last().unwrap();
    assert!(last.starts_with("{\"jsonrpc\"") && last.contains("\"id\":2") && last.contains("\\\"c\\\""), "{last}");
}
