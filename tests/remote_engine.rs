//! `--engine`: an endpoint answers the calls. The endpoint is our own `memlocal serve`, over loopback.

use serde_json::Value;
use test_support::home::{Home, repository};
use test_support::serving::Serving;

const TEXT: &str = "The lamp of the lighthouse was out for two hours in May 1921. Zoë lit it again.\n";
const QUESTION: &str = "How long was the lamp out?";

/// A home with models, a server of the language model, and its URL as an engine.
fn endpoint(name: &str) -> Option<(Home, Serving, String)> {
    let home = Home::new(name)?;
    home.write("lamp.txt", TEXT);
    let serving = Serving::start(&home, &[]);
    let url = format!("http://{}/v1", serving.address);
    Some((home, serving, url))
}

fn answer(home: &Home, words: &[&str]) -> Value {
    let asked = ["ask", QUESTION, "--docs", "lamp.txt", "--json", "--temperature", "0"];
    serde_json::from_str(&home.get(&[&asked[..], words].concat())).unwrap()
}

#[test]
fn an_endpoint_gives_the_answers_that_the_model_gives_here() {
    let Some((home, _serving, url)) = endpoint("elsewhere") else { return };
    // Small models here choose a span by its probability, which endpoints do not compute.
    let written = ["--method", "direct", "--profile", "paper"];
    let (here, there) = (answer(&home, &written), answer(&home, &[&written[..], &["--engine", &url]].concat()));
    assert_eq!(here["answer"], there["answer"]);
    assert_eq!(here["usage"]["prompt_tokens"], there["usage"]["prompt_tokens"], "the endpoint counts, not we");
    let researched = answer(&home, &["--method", "gam", "--engine", &url, "--trace", "trace"]);
    assert!(researched["usage"]["calls"].as_u64() > Some(3), "{researched}");
    assert!(researched["usage"]["cached_tokens"].as_u64() > Some(0), "{researched}");
    let plan = home.trace("trace").into_iter().find(|event| event["step"] == "gam.plan").unwrap();
    assert_eq!(plan["model"], "smollm2-135m-instruct:q4_1");
}

#[test]
fn a_server_passes_calls_on() {
    let Some((home, _serving, url)) = endpoint("elsewhere-serve") else { return };
    let front = Serving::start(&home, &["--engine", &url, "--engine-model", "smollm2-135m-instruct:q4_1"]);
    assert!(front.get("/ready", "").contains("smollm2-135m-instruct:q4_1"));
    let script = repository("tests/clients/curl_client.sh");
    let output = home.program("sh").arg(script).arg(format!("http://{}", front.address)).output().unwrap();
    let said = home.said(output);
    assert!(said.code == 0 || said.err.contains("curl: not found"), "{}", said.err);
}

#[test]
fn endpoints_that_do_not_serve_are_refused_with_the_reason() {
    let Some((home, _serving, url)) = endpoint("elsewhere-errors") else { return };
    let check = |words: &[&str], lines: &[&str]| {
        let asked = ["ask", QUESTION, "--docs", "lamp.txt", "--method", "direct"];
        home.run(&[&asked[..], words].concat()).is_error(lines);
    };
    // Tests are offline; the loopback is not the network.
    check(
        &["--engine", "http://10.1.2.3:8000/v1"],
        &[
            "error: offline, and http://10.1.2.3:8000/v1 is not on this machine",
            "hint: offline only endpoints on this machine's loopback may be asked, such as http://127.0.0.1:8000/v1",
        ],
    );
    check(
        &["--engine", &url, "--engine-model", "gpt-9"],
        &[
            &format!("error: {url} has no model `gpt-9`; it has smollm2-135m-instruct:q4_1, all-minilm-l6-v2:f32"),
            "hint: choose one with --engine-model NAME",
        ],
    );
    let short = url.strip_suffix("/v1").unwrap();
    let no_path = "asked for its models, it says 404 Not Found: there is no path /models";
    check(
        &["--engine", short],
        &[
            &format!("error: {short} does not answer as it should: {no_path}"),
            "hint: check that it is running and that the address is right; most addresses end in /v1",
        ],
    );
    // Nothing listens on port 1, and no system chooses it.
    check(
        &["--engine", "http://127.0.0.1:1/v1"],
        &[
            "error: there is no connection to http://127.0.0.1:1/v1: 127.0.0.1 refused the connection on port 1",
            "hint: start the server of this URL, or correct the URL",
        ],
    );
    check(
        &["--engine", &url, "--keep-prefixes"],
        &[
            "error: the KV cache of a remote endpoint cannot be saved",
            "hint: omit --keep-prefixes; a remote endpoint manages its own cache",
        ],
    );
    assert_eq!(home.run(&["ask", QUESTION, "--docs", "lamp.txt", "--engine", &url, "--model", "x"]).code, 2);
}
