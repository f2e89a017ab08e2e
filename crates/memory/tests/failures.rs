//! Failures of the engine are errors: they end the question, and their text is never stored.

use calls::{CallError, Scripted};
use memory::direct::Direct;
use memory::{MemoryError, Settings, gam};
use serde_json::Value;

use crate::rules::Embeds;
use crate::scratch::{CONTEXT_TOKENS, Scratch, document, fallbacks, script};

const QUESTION: &str = "When did Ada Brook marry?";
const STEPS: [(&str, &str); 5] = [
    (
        "gam.plan",
        r#"{"info_needs":["year"],"tools":["keyword"],"keyword_collection":["married"],"vector_queries":[],"page_index":[]}"#,
    ),
    ("gam.integrate", r#"{"content":"In 1911.","sources":[3]}"#),
    ("gam.info_check", r#"{"enough":false}"#),
    ("gam.follow_up", r#"{"new_requests":["When?"]}"#),
    ("answer", "In 1911."),
];

fn errors() -> [CallError; 4] {
    [
        CallError::TooLong { step: "gam.plan", prompt_tokens: 9000, max_output_tokens: 512, context_tokens: 8192 },
        CallError::Overloaded { queued: 64 },
        CallError::Failed { step: "gam.plan", reason: "the device is gone".into() },
        CallError::Closed,
    ]
}

#[test]
fn a_failure_of_any_step_ends_the_question() {
    let scratch = Scratch::lighthouse();
    let (memo, digest) = (scratch.memo(), scratch.corpus().digest().expect("it can be read"));
    for (number, (step, _)) in STEPS.iter().enumerate() {
        for error in errors() {
            let caller = script(&STEPS[..number]).fail(step, error.clone());
            let asked = scratch.ask(
                QUESTION,
                &caller,
                &Settings::default()
                    .with_options(gam::Options { max_iterations: 1 + number / 3, ..gam::Options::default() }),
            );
            match asked.answer {
                Err(MemoryError::Call(found)) => assert_eq!(found, error),
                other => panic!("{step} failed with {error}, and the answer is {other:?}"),
            }
            assert_eq!(caller.steps().last(), Some(step));
            assert_eq!(fallbacks(&asked.events), []);
        }
    }
    assert_eq!((scratch.memo(), scratch.corpus().digest().expect("it can be read")), (memo, digest));
}

#[test]
fn a_second_try_that_is_too_long_is_a_reply_given_up() {
    // The first attempt fits, and the second would if the reply were short.
    let mut reply = "word ".repeat(CONTEXT_TOKENS);
    reply.push('!');
    let answers: Vec<(&str, &str)> = [("gam.integrate", reply.as_str())].into_iter().chain(STEPS).collect();
    let caller = script(&answers);
    let settings = Settings::default().with_options(gam::Options { max_iterations: 1, ..gam::Options::default() });
    let asked = Scratch::lighthouse().ask(QUESTION, &caller, &settings);
    assert_eq!(asked.answer.expect("the pages are handed on").answer, "In 1911.");
    assert_eq!(caller.steps(), ["gam.plan", "gam.integrate", "answer"]);
    let fallbacks = fallbacks(&asked.events);
    let [("gam.integrate", reason)] = fallbacks[..] else { panic!("{fallbacks:?}") };
    assert!(reason.contains("not the JSON"), "{reason}");
}

#[test]
fn a_question_longer_than_the_context_is_refused_with_both_numbers() {
    let question = "why ".repeat(CONTEXT_TOKENS);
    let asked = Scratch::lighthouse().ask(&question, &script(&STEPS), &Settings::default());
    match asked.answer {
        Err(MemoryError::Call(CallError::TooLong { step: "gam.plan", prompt_tokens, context_tokens, .. })) => {
            assert!(prompt_tokens > context_tokens, "{prompt_tokens} of {context_tokens}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failure_of_the_embedder_ends_the_question_and_the_ingest() {
    let busy = Embeds(|_: &[String]| Err(CallError::Overloaded { queued: 8 }));
    let overloaded = |result: Option<MemoryError>| {
        assert!(matches!(result, Some(MemoryError::Call(CallError::Overloaded { queued: 8 }))), "{result:?}");
    };
    let plan = STEPS[0]
        .1
        .replace("keyword\"]", "vector\"]")
        .replace("\"vector_queries\":[]", "\"vector_queries\":[\"when?\"]");
    let caller = script(&[("gam.plan", &plan)]);
    overloaded(Scratch::lighthouse().ask_with(QUESTION, &caller, &busy, &Settings::default()).answer.err());

    let scratch = Scratch::new();
    let memorizer = Scripted::new(CONTEXT_TOKENS).answer("gam.memorize", "A storm.");
    let source = document("storm.txt", &["A storm broke the wall."]);
    overloaded(scratch.ingest_with(&[source], &memorizer, &busy, &Settings::default()).err());
    // The abstract was stored before the failure, and is kept.
    assert_eq!(scratch.memo(), [(1, "A storm.".to_owned())]);
    assert_eq!(scratch.missing(&Settings::default()).vectors, 1);
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let scratch = Scratch::lighthouse();
    let asked =
        scratch.ask_traced(QUESTION, &script(&STEPS), &Settings { method: &Direct, ..Settings::default() }, Full);
    assert!(matches!(asked, Err(MemoryError::Trace(_))), "{asked:?}");
}

#[test]
fn a_trace_is_one_json_object_a_line() {
    let scratch = Scratch::lighthouse();
    let out = Shared::default();
    let caller = script(&STEPS);
    let settings = Settings::default().with_options(gam::Options { max_iterations: 1, ..gam::Options::default() });
    scratch.ask_traced(QUESTION, &caller, &settings, out.clone()).expect("the script is whole");
    let written = String::from_utf8(out.0.lock().expect("no thread panicked").clone()).expect("JSON is UTF-8");
    let kind = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["event"].clone();
    let kinds: Vec<Value> = written.lines().map(kind).collect();
    assert_eq!(kinds, ["call", "search", "evidence", "call", "call", "call", "statements"]);
    // Compared as text, since a score that is parsed again is a longer float.
    let kept = scratch.ask(QUESTION, &script(&STEPS), &settings).events;
    let kept: Vec<String> = kept.iter().map(|event| serde_json::to_string(event).expect("JSON")).collect();
    assert_eq!(written.lines().collect::<Vec<_>>(), kept);
}

/// Bytes that can be read while another thread writes them.
#[derive(Clone, Default)]
struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no thread panicked").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
