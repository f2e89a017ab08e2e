//! `memlocal-bench serve`: starts a server, tests it under many streams, and measures it beside a peer.

use serde_json::Value;
use test_support::home::Home;
use test_support::serving::Serving;

use crate::home;

/// The short version; by default the command runs for two minutes.
#[test]
fn sixty_four_streams_lose_nothing() {
    let Some(home) = home("load") else { return };
    let said = home.run(&["serve", "--load", "--seconds", "10", "--json"]);
    let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    let field = |name: &str| report[name].as_u64().unwrap();
    assert_eq!((field("streams"), field("errors"), field("different")), (64, 0, 0), "{}", report["problems"]);
    assert!(field("answers") >= 64 && field("output_tokens") >= 64, "{report}");
    assert_eq!(said.code, 0, "{}", said.err);
}

#[test]
fn two_servers_are_asked_in_turns() {
    let Some(home) = home("visits") else { return };
    let peer = Serving::start(&home, &[]);
    let url = format!("http://{}", peer.address);
    let asked = ["serve", "--against", &url, "--clients", "1,2", "--decoding", "greedy"];
    let report = home.get(&[&asked[..], &["--seconds", "1", "--repetitions", "1", "--out", "runs"]].concat());
    let lines: Vec<&str> = report.lines().filter(|line| line.starts_with("| serve |")).collect();
    assert_eq!(lines.len(), 6, "{report}");
    for case in [
        "| first text p50 of 1 clients, greedy | ms |",
        "| first text p99 of 2 clients, greedy | ms |",
        "| 2 clients, greedy | output tokens/s |",
    ] {
        let line = lines.iter().find(|line| line.contains(case)).unwrap_or_else(|| panic!("{case} in {report}"));
        let numbers: Vec<&str> = line.split('|').map(str::trim).skip(4).take(3).collect();
        assert!(numbers.iter().all(|number| number.parse::<f64>().is_ok_and(|number| number > 0.0)), "{line}");
    }
    let results = std::fs::read_to_string(home.path("runs/serve-smollm2-135m-instruct-q4_1/results.csv")).unwrap();
    assert_eq!(results.lines().filter(|line| line.contains(",peer,")).count(), 6, "{results}");
    let away = home.run(&["serve", "--against", "http://10.1.2.3:8000"]);
    let hint = "hint: offline only endpoints on this machine's loopback may be asked, such as http://127.0.0.1:8000/v1";
    away.is_error(&["error: offline, and http://10.1.2.3:8000 is not on this machine", hint]);
    home.run(&["engine", "--against", "http://10.1.2.3:8000"])
        .is_error(&["error: offline, and http://10.1.2.3:8000 is not on this machine", hint]);
}

#[test]
fn the_model_of_a_running_server_is_known_by_its_name_only() {
    let Some(home) = home("running") else { return };
    let server = Serving::start(&home, &[]);
    let url = format!("http://{}", server.address);
    let asked = ["serve", "--url", &url, "--clients", "1", "--decoding", "greedy"];
    home.get(&[&asked[..], &["--seconds", "1", "--repetitions", "1", "--out", "runs"]].concat());
    let run = std::fs::read_dir(home.path("runs")).unwrap().next().unwrap().unwrap().path();
    let manifest: Value = serde_json::from_slice(&std::fs::read(run.join("manifest.json")).unwrap()).unwrap();
    let [model] = &manifest["models"].as_array().unwrap()[..] else { panic!("{manifest}") };
    let name = model["name"].as_str().unwrap();
    assert!(name.starts_with("smollm2") && name.ends_with(&format!(" at {url}")), "{name}");
    assert_eq!(model["files"], Value::Array(Vec::new()));
}

#[test]
fn a_load_test_has_one_number_of_clients() {
    let home = Home::bare("load-clients").running("memlocal-bench");
    home.run(&["serve", "--load", "--clients", "1,2"])
        .is_error(&["error: a load test has one number of clients", "hint: run it once for each: --load --clients N"]);
}
