//! `memlocal doctor`: findings, hints, exit code.

use serde_json::Value;
use test_support::home::Home;

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().expect("a list");
    checks.iter().find(|check| check["check"] == name).unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn a_machine_without_models_and_network_has_problems_with_hints() {
    let home = Home::bare("doctor");
    let said = home.run(&["doctor", "--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    let report: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(report["ok"], false);
    for good in ["processor", "device", "memory", "data folder", "config file", "network"] {
        assert_ne!(check(&report, good)["status"], "problem", "{report}");
    }
    let model = check(&report, "language model");
    assert_eq!(model["found"], "smollm2-135m-instruct:q4_1 is not here, and this is offline");
    assert!(model["hint"].as_str().expect("a hint").ends_with("memlocal models pull smollm2-135m-instruct:q4_1"));
    let text = home.run(&["doctor"]).out;
    assert!(text.contains("problem  language model    smollm2-135m-instruct:q4_1 is not here"), "{text}");
}

#[test]
fn what_is_wrong_is_found_wherever_it_is() {
    let home = Home::bare("doctor-wrong");
    home.write("config.toml", "[serve]\nprot = 1\n");
    let config = home.path("config.toml");
    let words = ["doctor", "--json", "--gpu", "3", "--model", "smollm3", "--config", config.to_str().unwrap()];
    let said = home.run(&words);
    assert_eq!(said.code, 1, "{said:?}");
    let report: Value = serde_json::from_str(&said.out).expect("JSON");
    for (name, found) in
        [("config file", "no setting `prot` of [serve]"), ("language model", "no model named \"smollm3\"")]
    {
        let check = check(&report, name);
        assert!(check["status"] == "problem" && check["found"].as_str().unwrap().contains(found), "{check}");
    }
    if !cfg!(feature = "cuda") {
        assert_eq!(check(&report, "device")["status"], "problem");
    }
}

#[test]
fn a_machine_with_its_models_is_sound() {
    let Some(home) = Home::new("doctor-sound") else { return };
    let said = home.run(&["doctor"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("ok       language model    smollm2-135m-instruct:q4_1 is here, from "), "{said:?}");
}
