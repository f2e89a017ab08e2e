//! `memlocal serve` and `memlocal mcp`: the real program with real models and third-party clients.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};
use test_support::home::{Home, can, memlocal, repository};
use test_support::serving::Serving;

use crate::clients::python_with;

#[test]
fn a_server_answers_and_ends_on_a_signal() {
    let Some(home) = Home::new("serve") else { return };
    let serving = Serving::start(&home, &["--log-json"]);
    assert!(serving.get("/ready", "").contains("smollm2-135m-instruct:q4_1"));
    assert!(serving.get("/", "accept: text/html\r\n").contains("<title>memlocal</title>"));
    let (code, log) = serving.stop();
    assert_eq!(code, 0, "{log}");
    assert!(log.lines().any(|line| line.contains("\"route\":\"/ready\"") && line.contains("\"status\":200")), "{log}");
}

#[test]
fn a_key_is_needed_where_others_can_reach_the_port() {
    let home = Home::bare("serve-keys");
    home.run(&["serve", "--host", "0.0.0.0"]).is_error(&[
        "error: 0.0.0.0 is reachable from other machines, and no key is required",
        "hint: make a key with `memlocal keys add NAME`, or serve on 127.0.0.1",
    ]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = home.run(&["serve", "--port", &port]);
    assert!(
        said.code == 1 && said.err.starts_with(&format!("error: cannot listen on 127.0.0.1:{port}\n")),
        "{}",
        said.err
    );

    // On a drive that is not mounted.
    let link = home.data().join("keys");
    std::os::unix::fs::symlink("nowhere/keys", &link).unwrap();
    for words in [&["serve", "--port", "0"][..], &["keys", "list"]] {
        let said = home.run(words);
        assert!(said.code == 1 && said.err.starts_with("error: cannot use ~/data/keys\n"), "{said:?}");
    }

    let Some(home) = Home::new("serve-keys") else { return };
    let key = home.get(&["keys", "add", "ann"]);
    assert!(!fs::read_to_string(home.data().join("keys")).unwrap().contains(key.trim()));
    let serving = Serving::start(&home, &["--host", "0.0.0.0"]);
    assert!(serving.get("/v1/models", "").starts_with("HTTP/1.1 401 "));
    let status = |key: &str| {
        let answer = serving.get("/v1/models", &format!("authorization: Bearer {}\r\n", key.trim()));
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(status(&key), "200");
    let more = home.get(&["keys", "add", "bob"]);
    assert_eq!(status(&more), "200", "a server that runs knows new keys");
    assert_eq!(home.run(&["keys", "rm", "ann"]).code, 0);
    assert_eq!((status(&key), status(&more)), ("401".to_owned(), "200".to_owned()));
}

/// Keys and values of a prompt of 4,000 tokens take 88 MiB, and the weights and the step more. What the process holds beside
/// models (threads, compiled grammars, parts of pages) changes by less than half of that.
#[test]
#[cfg(target_os = "linux")]
fn the_memory_of_an_unloaded_model_is_given_back() {
    const SLACK: u64 = 44 << 20;
    let Some(home) = Home::new("serve-unload") else { return };
    let named = format!("mine={}", gguf(&home));
    let serving = Serving::start(&home, &["--model-file", &named]);
    let generate = |body: Value| serving.post("/api/generate", &body);
    let prompt = "word ".repeat(4000);
    let before = serving.anonymous_bytes();
    // The second one is the model of the start: its weights are among the bytes before, so it is loaded and unloaded again.
    for model in ["mine", "smollm2-135m-instruct", "smollm2-135m-instruct"] {
        let options = json!({ "num_predict": 1 });
        let body = json!({ "model": model, "prompt": prompt, "raw": true, "stream": false, "options": options });
        assert_eq!(generate(body)["prompt_eval_count"], 4001);
        let used = serving.anonymous_bytes();
        assert!(used > before + 2 * SLACK, "{model}: {before} bytes became {used}");
        assert_eq!(generate(json!({ "model": model, "keep_alive": 0 }))["done_reason"], "unload");
        let after = serving.anonymous_bytes();
        assert!(after < before + SLACK, "{model}: {before} bytes became {used} and then {after}");
    }
}

#[test]
fn the_service_is_one_that_systemd_knows() {
    let home = Home::bare("serve-unit");
    let unit = fs::read_to_string(repository("contrib/memlocal.service")).unwrap();
    let words = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/memlocal ")).unwrap();
    home.get(&words.split(' ').chain(["--help"]).collect::<Vec<_>>());
    if !can("systemd-analyze", &["--version"], "the service") {
        return;
    }
    // The unit names the path of the installed program, which need not be installed here.
    home.write("memlocal.service", unit.replace("=/usr/local/bin/memlocal ", &format!("={} ", memlocal()[0])));
    let unit = home.path("memlocal.service");
    let output = home.program("systemd-analyze").args(["verify", "--man=no"]).arg(unit).output().unwrap();
    let said = home.said(output);
    let of_ours: Vec<&str> = said.err.lines().filter(|line| line.contains("memlocal")).collect();
    assert_eq!((said.code, of_ours), (0, Vec::new()), "{}", said.err);
}

#[test]
fn the_openai_client_works() {
    let Some(python) = clients() else { return };
    let Some(home) = Home::new("serve-openai") else { return };
    let serving = Serving::start(&home, &[]);
    client(&python, "openai_client.py", &[&format!("http://{}/v1", serving.address)], &home);
}

#[test]
fn the_ollama_client_works() {
    let Some(python) = clients() else { return };
    let Some(home) = Home::new("serve-ollama") else { return };
    let serving = Serving::start(&home, &[]);
    client(&python, "ollama_client.py", &[&format!("http://{}", serving.address), &gguf(&home)], &home);
}

/// The path of the default model's file.
fn gguf(home: &Home) -> String {
    let shown = home.get(&["models", "path", "smollm2-135m-instruct"]);
    home.data().join(shown.trim().trim_start_matches("~/data/")).display().to_string()
}

#[test]
fn the_mcp_client_works_over_http_and_over_pipes() {
    let Some(python) = clients() else { return };
    let Some(home) = Home::new("serve-mcp") else { return };
    let serving = Serving::start(&home, &[]);
    client(&python, "mcp_client.py", &["http", &format!("http://{}/mcp", serving.address)], &home);
    drop(serving);
    client(&python, "mcp_client.py", &[&["pipes"], &memlocal()[..], &["mcp"]].concat(), &home);
}

/// Runs a script of `tests/clients`, which must succeed.
fn client(python: &Path, script: &str, words: &[&str], home: &Home) {
    let script = repository("tests/clients").join(script);
    let output = home.program(&python.display().to_string()).arg(script).args(words).output().unwrap();
    let said = home.said(output);
    assert_eq!(said.code, 0, "{}\n{}", said.out, said.err);
}

/// A Python with the official clients; `None` (with the reason printed) if they are unavailable.
fn clients() -> Option<PathBuf> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let packages = ["openai==3.54.0", "ollama==0.6.3", "mcp==2.3.0"];
    let install = || python_with("test-clients", &packages, "import openai, ollama, mcp", "the official clients");
    PYTHON.get_or_init(install).clone()
}
