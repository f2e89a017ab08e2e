//! The simple form of a conversation, and the errors for invalid JSON.

use crate::{complaint, read_one};

const TALK: &str = r#"
{"speaker": "Ann", "text": "Hello.", "time": "2 May", "session": "monday", "id": "a"}

{"speaker": "Bo", "text": "Hi,\nAnn.", "time": "2 May", "session": "monday"}
{"speaker": "Ann", "text": "Rain again. ", "time": 1714730000, "session": 2, "mood": null}
{"speaker": "Bo", "text": "One more thing. ", "time": "3 May", "session": "monday", "id": null}
"#;

const LAID_OUT: &str = "\
=== SESSION 0 - Dialogue Time(available to answer questions): 2 May ===

Ann (a): Hello.
Bo (2): Hi,
Ann.
Bo (4, 3 May): One more thing.

=== SESSION 1 - Dialogue Time(available to answer questions): 1714730000 ===

Ann (3): Rain again.";

#[test]
fn json_lines_and_arrays_give_sessions_of_turns() {
    let array = format!("\u{feff}[{}]", TALK.trim().replace("}\n", "},\n"));
    for (name, file) in [("a.jsonl", TALK), ("a.json", TALK), ("a.json", &array), ("a.jsonl", &array)] {
        let source = read_one(name, file.as_bytes());
        assert_eq!(source.text, LAID_OUT);
        let sections: Vec<_> =
            source.sections.iter().map(|s| (s.title.as_deref(), s.time.as_deref(), s.turns.len())).collect();
        assert_eq!(sections, [(Some("monday"), Some("2 May"), 3), (Some("2"), Some("1714730000"), 1)]);
        let last = &source.sections[0].turns[2];
        assert_eq!((last.id.as_str(), last.speaker.as_str(), last.time.as_deref()), ("4", "Bo", Some("3 May")));
        assert_eq!(&source.text[last.span.clone()], "Bo (4, 3 May): One more thing.");
    }
}

#[test]
fn a_conversation_needs_neither_sessions_nor_times() {
    let source = read_one("a.json", br#"{"speaker": "Ann", "text": "Hello."}"#);
    assert_eq!(source.text, "=== SESSION 0 ===\n\nAnn (1): Hello.");
    assert_eq!((source.sections[0].title.as_ref(), source.sections[0].time.as_ref()), (None, None));
}

#[test]
fn broken_conversations_name_line_and_field() {
    fn check(file: &str, expect: &str) {
        assert_eq!(complaint("a.jsonl", file.as_bytes()), expect, "{file}");
    }
    let good = r#"{"speaker": "Ann", "text": "Hello."}"#;
    check(&format!("{good}\n\n{{\"speaker\": \"Ann\"}}"), "line 3: field `text` is missing");
    check(&format!("[\n{good},\n{good},\n\n{{\"text\": \"x\"}}]"), "line 5: field `speaker` is missing");
    check(&format!("{good}\n{{\"speaker\": 7, \"text\": \"x\"}}"), "line 2: field `speaker` is not a string");
    check(&format!("{good}\n{{\"speaker\": \"A\", \"text\": [1]}}"), "line 2: field `text` is not a string");
    check(r#"{"speaker": "A", "text": "\ud800"}"#, "line 1: field `text` is not a string");
    check(r#"{"speaker": "A", "text": "x", "time": {}}"#, "line 1: field `time` is neither a string nor a number");
    let numbered = r#"{"speaker": "Ann", "text": "Hello.", "id": 1}"#;
    check(&format!("{numbered}\n{numbered}"), "line 2: field `id` repeats an earlier one");
    check(&format!("{good}\nHello."), "damaged JSON conversation: expected value at line 2 column 1");
    check(&format!("[{good},\n {good}"), "damaged JSON conversation: EOF while parsing a list at line 2 column 37");
    check("[]", "the file contains no text");
    check(" \n", "the file contains no text");
    check(r#"{"speaker": "Ann", "text": " "}"#, "the file contains no text");
    let known = "not a supported conversation: expected an export of a chat, `messages` with `role` and `content`, \
        objects with `speaker` and `text`, or LoCoMo's `conversation`";
    check("\n\n[1, 2]", &format!("line 3: {known}"));
    check("\"speaker\"", &format!("line 1: {known}"));
    check(r#"{"role": "user", "body": "x"}"#, &format!("line 1: {known}, found `body`, `role`"));
    check(&format!("{good}\n[3]"), &format!("line 2: {known}"));
}

#[test]
fn nesting_cannot_overflow_the_stack() {
    for file in ["[".repeat(1_000_000), format!("{{\"speaker\":{}", "[".repeat(1_000_000)), "{\"a\":".repeat(1_000_000)]
    {
        assert!(complaint("a.json", file.as_bytes()).starts_with("damaged JSON conversation: "));
    }
    let closed = format!(r#"{{"speaker": "A", "text": "x", "more": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let _ = crate::read_bytes("a.json", closed.as_bytes());
}
