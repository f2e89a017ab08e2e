//! Replies in output formats: whatever they take, other calls go on.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use calls::{Call, CallError, Caller, OnText, OutputFormat, Sampling};
use engine::{Config, Engine};
use serde_json::{Value, json};

use crate::tiny::{ask, model, run, start};

fn in_format(schema: Value, most: usize) -> Call {
    Call { output_format: OutputFormat::Json(schema), sampling: Sampling::at(1.0, 1), ..ask("Say it.", most) }
}

/// A call whose first text keeps the thread that sends it, until the sender is dropped.
struct Held {
    call: Call,
    has_begun: mpsc::Receiver<()>,
    go_on: mpsc::Sender<()>,
    waited_in_vain: Arc<AtomicBool>,
}

fn held() -> Held {
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (may_go_on, waited_in_vain) = (Mutex::new(may_go_on), Arc::new(AtomicBool::new(false)));
    let in_vain = Arc::clone(&waited_in_vain);
    let on_text = OnText::new(move |_| {
        let _ = begun.send(());
        if !in_vain.load(Ordering::Relaxed) {
            let waited = may_go_on.lock().unwrap().recv_timeout(Duration::from_mins(1));
            in_vain.fetch_or(waited == Err(mpsc::RecvTimeoutError::Timeout), Ordering::Relaxed);
        }
    });
    let call = Call { on_text: Some(on_text), ..in_format(json!({ "type": "string", "minLength": 9 }), 40) };
    Held { call, has_begun, go_on, waited_in_vain }
}

fn engine(name: &str) -> Engine {
    start(model(name, |tokenizer| tokenizer), Config { kv_tokens: 2048, ..Config::default() })
}

#[test]
fn a_reply_in_a_format_that_takes_long_holds_up_no_other() {
    let engine = engine("held");
    let Held { call, has_begun, go_on, waited_in_vain } = held();
    let alone = run(engine.call(Call { on_text: None, ..call.clone() })).unwrap().text;
    let first = thread::spawn({
        let engine = engine.clone();
        move || run(engine.call(call)).unwrap().text
    });
    has_begun.recv().unwrap();
    let same_format = in_format(json!({ "type": "string", "minLength": 9 }), 40);
    let another = in_format(json!({ "type": "array", "contains": { "const": "a" }, "maxItems": 2 }), 40);
    for call in [ask("Say it.", 20), same_format, another] {
        run(engine.call(call)).unwrap();
    }
    drop(go_on);
    assert_eq!(first.join().unwrap(), alone);
    assert!(!waited_in_vain.load(Ordering::Relaxed), "the others waited for it");
}

#[test]
fn a_model_is_not_unloaded_while_a_call_runs() {
    let engine = engine("in-use");
    let Held { call, has_begun, go_on, .. } = held();
    let calling = thread::spawn({
        let engine = engine.clone();
        move || run(engine.call(call))
    });
    has_begun.recv().unwrap();
    assert!(!engine.unload(0).unwrap());
    drop(go_on);
    assert!(calling.join().unwrap().is_ok());
    assert!(engine.unload(0).unwrap());
}

#[test]
fn a_cancelled_reply_does_not_keep_its_model_loaded() {
    let engine = engine("cancelled");
    let Held { call, has_begun, go_on, waited_in_vain } = held();
    let mut reply = engine.call(call);
    assert!(run(async { futures_util::poll!(&mut reply) }).is_pending());
    has_begun.recv().unwrap();
    drop(reply);
    assert!(engine.unload(0).unwrap());
    drop(go_on);
    assert!(matches!(run(engine.call(ask("Say it.", 20))), Err(CallError::NoModel { .. })));
    assert!(!waited_in_vain.load(Ordering::Relaxed), "the engine waited for it");
}

#[test]
fn the_engines_thread_neither_draws_nor_completes_replies_in_formats() {
    let engine = engine("threads");
    let contains: Value = (0..4).map(|word| json!({ "contains": { "const": format!("word {word}") } })).collect();
    let word = "word ".repeat(20);
    let names = |call: Call| {
        let names = Arc::new(Mutex::new(HashSet::new()));
        let sink = Arc::clone(&names);
        let on_text = OnText::new(move |_| {
            sink.lock().unwrap().insert(thread::current().name().map(str::to_owned));
        });
        let reply = run(engine.call(Call { on_text: Some(on_text), ..call })).unwrap();
        assert!(!reply.text.is_empty());
        std::mem::take(&mut *names.lock().unwrap())
    };
    for (schema, most) in [
        // The search for a valid completion, and one that nearly fills the reply.
        (json!({ "type": "array", "allOf": contains }), 60),
        (
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "const": word } },
            "required": ["a", "b"], "additionalProperties": false }),
            125,
        ),
        (json!({ "type": "array", "items": { "type": "integer" }, "uniqueItems": true }), 60),
    ] {
        // The end of a reply may be all that is left to send.
        let mut others = names(in_format(schema.clone(), most));
        assert!(others.remove(&Some("format".to_owned())), "{schema}");
        assert!(others.is_empty() || others == [Some("engine".to_owned())].into(), "{schema}: {others:?}");
    }
    assert_eq!(names(ask("Say it.", 20)), [Some("engine".to_owned())].into());
}
