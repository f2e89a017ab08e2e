//! Chats with tools, rendered as transformers renders them (`tests/golden/chat.py`).

use std::path::Path;

use models::{ChatOptions, ChatTemplate};
use serde_json::{Map, Value};

fn golden() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/chat.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn tools_calls_and_results_are_rendered_to_the_byte() {
    let golden = golden();
    let variables = Map::from_iter([("date_string".to_owned(), Value::from("26 Jul 2024"))]);
    for family in golden["templates"].as_array().unwrap() {
        let template = ChatTemplate::new(family["source"].as_str().unwrap()).unwrap();
        let template = template.with_tokens([("bos_token", "<|begin|>".to_owned())]);
        let cases = golden["cases"].as_array().unwrap().iter().filter(|case| case["family"] == family["family"]);
        let mut checked = 0;
        for case in cases {
            let tools = Some(&case["tools"]).filter(|tools| !tools.is_null());
            let thinks = case["thinks"].as_bool();
            let options = ChatOptions { tools, thinks, opens_turn: true, variables: Some(&variables) };
            let rendered = template.render_chat(case["messages"].as_array().unwrap(), options).unwrap();
            assert_eq!(rendered, case["rendered"].as_str().unwrap(), "{} {}", case["family"], case["name"]);
            checked += 1;
        }
        assert!(checked >= 5, "{} {checked}", family["family"]);
    }
}

#[test]
fn the_option_of_thinking_overrides_a_variable_of_its_name() {
    let template = ChatTemplate::new("{{ enable_thinking }} {{ more }}").unwrap();
    let variables: Map<String, Value> = serde_json::from_str(r#"{"enable_thinking": true, "more": 1}"#).unwrap();
    let options = ChatOptions { thinks: Some(false), variables: Some(&variables), ..ChatOptions::default() };
    assert_eq!(template.render_chat(&[] as &[Value], options).unwrap(), "False 1");
}

#[test]
fn an_unknown_option_of_json_is_refused() {
    let template = ChatTemplate::new("{{ messages | tojson(sort_keys=true) }}").unwrap();
    assert!(template.render(&[] as &[Value]).is_err());
}
