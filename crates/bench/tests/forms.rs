//! Every reply of every method's agents has the requested format, whatever tokens a small model prefers.

use serde_json::Value;
use test_support::story::STORY;

use crate::home;

#[test]
fn every_reply_of_every_method_has_its_form() {
    let Some(home) = home("forms") else { return };
    home.write("story.txt", STORY);
    let found = home.get(&["forms", "--docs", "story.txt", "--calls", "1", "--json"]);
    let found: Value = serde_json::from_str(&found).unwrap();
    let steps = found["steps"].as_object().unwrap();
    for (step, tally) in steps {
        assert_eq!(tally["good"], tally["calls"], "{step}: {}", tally["wrong"]);
    }
    for method in ["gam", "memcot", "comorag", "mindgraph"] {
        assert!(steps.keys().any(|step| step.starts_with(method)), "{method} has asked for a form");
    }
}
