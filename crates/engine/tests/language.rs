//! The engine on SmolLM2's real weights: the invariants that callers rely on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use calls::{Call, CallError, Caller, Finish, Limits, OnText, OutputFormat, Sampling, Status, schema};
use engine::Config;
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::Value;

use crate::gate::Gate;
use crate::smollm2::{self, ask, engine, run, shaped};

#[test]
fn an_answer_streams_whole_and_the_same_every_time() {
    let Some(engine) = engine(Config::default()) else { return };
    let seen = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&seen);
    let on_text = Some(OnText::new(move |text| sink.lock().unwrap().push_str(text)));
    let first = run(engine.call(Call { on_text, ..ask("What is two plus two?", 60) })).unwrap();
    println!("{first:?}");
    assert!(!first.text.is_empty());
    assert_eq!(*seen.lock().unwrap(), first.text);
    assert!(first.rendered.contains("<|im_start|>user\nWhat is two plus two?<|im_end|>"));
    let again = run(engine.call(ask("What is two plus two?", 60))).unwrap();
    assert_eq!(again.text, first.text);
    assert_eq!(first.usage.cached_tokens, 0);
    assert_eq!(again.usage.cached_tokens, again.usage.prompt_tokens - 1, "all but the last token were there");
}

#[test]
fn it_says_how_it_is_doing() {
    let Some(engine) = engine(Config { kv_tokens: 1024, ..Config::default() }) else { return };
    let idle = engine.state().remove(0);
    assert_eq!((idle.total_pages, idle.used_pages, idle.cached_pages, idle.steps), (32, 0, 0, 0));
    let meanwhile = Arc::new(Mutex::new(idle));
    let (seen, watched) = (Arc::clone(&meanwhile), engine.clone());
    let on_text = Some(OnText::new(move |_| *seen.lock().unwrap() = watched.state().remove(0)));
    let reply = run(engine.call(Call { on_text, ..ask("Tell me about the sea.", 60) })).unwrap();
    let meanwhile = meanwhile.lock().unwrap().clone();
    assert_eq!((meanwhile.running, meanwhile.waiting), (1, 0), "{meanwhile:?}");
    assert!(meanwhile.used_pages > 0 && meanwhile.written_tokens > 0, "{meanwhile:?}");
    // The reply arrives slightly before the state is published.
    let after = |steps: u64| loop {
        let state = engine.state().remove(0);
        if state.running == 0 && state.steps > steps {
            break state;
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let done = after(0);
    let usage = reply.usage;
    assert_eq!(done.read_tokens, usage.prompt_tokens as u64, "nothing was cached");
    assert_eq!(done.written_tokens, usage.output_tokens as u64);
    assert_eq!(done.used_pages, 0);
    assert!(done.cached_pages > 0 && done.written_tokens_per_second > 0.0, "{done:?}");
    run(engine.call(ask("Tell me about the sea.", 1))).unwrap();
    assert_eq!(after(done.steps).read_tokens, done.read_tokens + 1, "all but one token were there");
}

#[test]
fn a_batched_answer_is_the_answer_alone() {
    let Some(engine) = engine(Config { step_tokens: 64, ..Config::default() }) else { return };
    let questions =
        ["Name a colour.", "What is two plus two?", "Tell me about the sea in one sentence.", "Who wrote Hamlet?"];
    let hot = |q: &&str| Call { sampling: Sampling { top_p: 0.9, ..Sampling::at(0.8, 11) }, ..ask(q, 30) };
    let together = run(join_all(questions.iter().map(|q| engine.call(hot(q)))));
    for (question, reply) in questions.iter().zip(together) {
        let Some(fresh) = smollm2::engine(Config::default()) else { return };
        assert_eq!(run(fresh.call(hot(question))).unwrap().text, reply.unwrap().text, "{question}");
    }
}

#[test]
fn a_prompt_that_does_not_fit_is_refused_with_both_numbers() {
    let Some(engine) = engine(Config { kv_tokens: 256, ..Config::default() }) else { return };
    let error = run(engine.call(ask(&"word ".repeat(300), 16))).unwrap_err();
    let CallError::TooLong { prompt_tokens, max_output_tokens, context_tokens, .. } = error else { panic!("{error}") };
    assert_eq!((max_output_tokens, context_tokens), (16, 256));
    assert!(prompt_tokens > 300);
    assert!(run(engine.call(ask("Hello", 16))).is_ok(), "the next call is served");
}

#[test]
fn a_form_that_cannot_be_enforced_is_refused_before_anything_is_computed() {
    let Some(engine) = engine(Config::default()) else { return };
    let bad = serde_json::json!({ "type": "object", "properties": { "a": { "type": "no such type" } } });
    assert!(matches!(run(engine.call(shaped("x", bad, 50, 0))), Err(CallError::OutputFormat { .. })));
    let long = schema::object([("a_rather_long_name", schema::boolean())]);
    assert!(matches!(run(engine.call(shaped("x", long, 3, 0))), Err(CallError::OutputFormat { .. })));
    let none = Call { output_format: OutputFormat::Choice(vec![]), ..ask("x", 5) };
    assert!(matches!(run(engine.call(none)), Err(CallError::OutputFormat { .. })));
}

#[test]
fn a_choice_is_one_of_its_options() {
    let Some(engine) = engine(Config::default()) else { return };
    for (seed, options) in [vec!["yes", "no"], vec!["a \"b\"", "Ünder", "under"], vec!["only"]].into_iter().enumerate()
    {
        let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
        let output_format = OutputFormat::Choice(options.clone());
        let call = Call { output_format, sampling: Sampling::at(1.5, seed as u64), ..ask("Choose.", 20) };
        let reply = run(engine.call(call)).unwrap();
        assert!(options.contains(&reply.text), "{:?} of {options:?}", reply.text);
    }
}

/// A plan in the format of GAM's researcher: the most complex format of that method.
fn plan() -> Value {
    schema::object([
        ("info_needs", schema::array(schema::string(120), 4)),
        ("tools", schema::array_of(["keyword", "vector", "page_index"], 3)),
        ("page_index", schema::array_of([0, 3, 17, 204], 5)),
        ("enough", schema::boolean()),
    ])
}

fn check_plan(text: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let object = value.as_object().ok_or("no object")?;
    let keys: Vec<&str> = object.keys().map(String::as_str).collect();
    if keys != ["info_needs", "tools", "page_index", "enough"] {
        return Err(format!("keys {keys:?}"));
    }
    let list = |key: &str| object[key].as_array().ok_or(format!("{key} is no list"));
    let needs = list("info_needs")?;
    let good = needs.len() <= 4
        && needs.iter().all(|need| need.as_str().is_some_and(|need| need.chars().count() <= 120))
        && list("tools")?.iter().all(|tool| ["keyword", "vector", "page_index"].contains(&tool.as_str().unwrap_or("")))
        && list("page_index")?.iter().all(|id| [0, 3, 17, 204].contains(&id.as_u64().unwrap_or(99)))
        && object["enough"].is_boolean();
    if good { Ok(()) } else { Err("a value is out of its form".into()) }
}

#[test]
fn json_always_has_its_form_however_short_the_limit_and_hot_the_sampling() {
    let Some(engine) = engine(Config::default()) else { return };
    let calls = (0..40u64).map(|seed| {
        let limit = 44 + (seed as usize * 7) % 60;
        let temperature = [0.0, 0.7, 1.0, 2.0][seed as usize % 4];
        let call = shaped("Make a plan to find the lost key.", plan(), limit, seed);
        Call {
            sampling: Sampling { temperature, ..call.sampling },
            limits: Limits { stop_loops: seed % 2 == 1, ..call.limits },
            ..call
        }
    });
    let replies = run(join_all(calls.map(|call| engine.call(call))));
    let mut early = 0;
    for reply in replies {
        let reply = reply.unwrap();
        check_plan(&reply.text).unwrap_or_else(|why| panic!("{why}: {}", reply.text));
        early += usize::from(reply.finish == Finish::ClosedEarly);
    }
    println!("{early} of 40 were closed early");
    assert!(early > 3, "the limits were meant to be felt");
}

/// Texts that are difficult to quote: characters that JSON escapes, other scripts, multi-character graphemes.
const QUOTABLE: &str = "The keeper said: \"Light the lamp!\"\r\n\tC:\\lamps\\1 — “cosy”, café cafe\u{301}, 灯台守は毎晩、\
    火をともした。 👩\u{200d}🚒🇳🇴 \u{7}bell\u{3000}wide; a/b {x:[1,2]} 한국어 ﷺ end";

#[test]
fn quotes_are_in_their_text_to_the_byte() {
    let Some(engine) = engine(Config::default()) else { return };
    let quote = schema::object([("op", schema::constant("add")), ("src", schema::quote_of(QUOTABLE, 6..=40))]);
    let nothing = schema::object([("op", schema::constant("none"))]);
    let form = schema::object([("list", schema::at_least_one(schema::array(schema::any_of(vec![quote, nothing]), 8)))]);
    let calls = (0..48u64).map(|seed| {
        let call = shaped(QUOTABLE, form.clone(), 40 + (seed as usize * 7) % 120, seed);
        let temperature = [0.0, 0.7, 1.5, 4.0][seed as usize % 4];
        Call { sampling: Sampling { temperature, ..call.sampling }, ..call }
    });
    let mut quotes = Vec::new();
    for reply in run(join_all(calls.map(|call| engine.call(call)))) {
        let reply = reply.unwrap();
        let value: Value = serde_json::from_str(&reply.text).unwrap_or_else(|why| panic!("{why}: {}", reply.text));
        let items = value["list"].as_array().expect("the form has a list").clone();
        quotes.extend(items.into_iter().filter_map(|item| item["src"].as_str().map(str::to_owned)));
    }
    for quote in &quotes {
        assert!(QUOTABLE.contains(quote.as_str()) && quote.starts_with(char::is_alphanumeric), "{quote:?}");
        assert!((3..=40).contains(&quote.chars().count()), "{quote:?}");
    }
    let different: std::collections::BTreeSet<&String> = quotes.iter().collect();
    println!("{} quotes, {} of them different", quotes.len(), different.len());
    assert!(different.len() > 10, "{different:?}");
}

#[test]
fn lengths_of_quotes_are_counted_in_characters_and_not_in_what_json_makes_of_them() {
    let Some(engine) = engine(Config::default()) else { return };
    for text in ["a\"\\\"\n\\\" b\"\"", "\"a\"", "x"] {
        let quote = schema::object([("src", schema::quote_of(text, 3..=6))]);
        let calls = (0..12).map(|seed| engine.call(shaped("Quote it.", quote.clone(), 60, seed)));
        for reply in run(join_all(calls)) {
            let said: Value = serde_json::from_str(&reply.unwrap().text).unwrap();
            let (src, least) = (said["src"].as_str().unwrap(), if text.len() > 4 { 3 } else { 1 });
            assert!(text.contains(src) && (least..=6).contains(&src.chars().count()), "{src:?} of {text:?}");
        }
    }
}

/// Penalties that a text with repetitions meets, and a bias.
fn penalised(sampling: Sampling) -> Sampling {
    let (frequency_penalty, presence_penalty, repetition_penalty) = (0.4, 0.2, 1.05);
    Sampling { frequency_penalty, presence_penalty, repetition_penalty, logit_bias: [(28, -3.0)].into(), ..sampling }
}

#[test]
fn penalties_and_biases_change_answers_and_those_without_meaning_are_refused() {
    let Some(engine) = engine(Config::default()) else { return };
    let say = |sampling: Sampling| run(engine.call(Call { sampling, ..ask("Say la la la la la la la la.", 40) }));
    let distinct = |text: &str| text.split_whitespace().collect::<std::collections::BTreeSet<_>>().len();
    let plain = say(Sampling::GREEDY).unwrap();
    let frequency = say(Sampling { frequency_penalty: 2.0, ..Sampling::GREEDY }).unwrap();
    let repetition = say(Sampling { repetition_penalty: 1.5, ..Sampling::GREEDY }).unwrap();
    for penalised in [&frequency, &repetition] {
        let (more, fewer) = (distinct(&penalised.text), distinct(&plain.text));
        assert!(more > fewer, "{:?} against {:?}", penalised.text, plain.text);
    }
    let call = |logit_bias| Call { sampling: Sampling { logit_bias, ..Sampling::GREEDY }, ..ask("Say hello.", 5) };
    let token = engine.prompt_ids(&Call { prompt: calls::Prompt::bare(" sea"), ..ask("", 1) }).unwrap()[0];
    assert_eq!(run(engine.call(call([(token, 100.0)].into()))).unwrap().text, " sea sea sea sea sea");
    let choice =
        Call { output_format: OutputFormat::Choice(vec!["yes".into(), "no".into()]), ..call([(token, 100.0)].into()) };
    let choice = run(engine.call(choice)).unwrap().text;
    assert!(choice == "yes" || choice == "no", "a bias allows nothing that the format forbids: {choice}");
    let refused = run(engine.call(call([(9_999_999, 1.0)].into()))).unwrap_err();
    assert!(matches!(&refused, CallError::Sampling { reason, .. } if reason.contains("9999999")), "{refused}");
}

#[test]
fn drafts_change_no_answer() {
    let names = "Ottoline Vane, Bartholomew Quill, Seraphina Mosswood and Ignatius Thornbury";
    let calls = || {
        let hot = |call: Call, seed| Call { sampling: Sampling::at(0.8, seed), ..call };
        let repeat = ask(&format!("Repeat this list word for word: {names}."), 60);
        vec![
            repeat.clone(),
            hot(repeat.clone(), 3),
            Call { sampling: penalised(Sampling::GREEDY), ..repeat.clone() },
            Call { sampling: penalised(Sampling { top_p: 0.95, ..Sampling::at(0.8, 5) }), ..repeat },
            shaped("Make a plan to find the lost key.", plan(), 120, 1),
            Call { sampling: Sampling::GREEDY, ..shaped("Make a plan to find the lost key.", plan(), 90, 2) },
            Call {
                output_format: OutputFormat::Choice(vec!["yes, it is".into(), "no, it is not".into()]),
                ..ask("Is it?", 12)
            },
        ]
    };
    let answers = |max_draft_tokens, masked_outputs| {
        let engine = engine(Config { max_draft_tokens, masked_outputs, ..Config::default() })?;
        // Alone, with many draft tokens, then in a batch.
        let mut replies: Vec<_> = calls().into_iter().map(|call| run(engine.call(call)).unwrap()).collect();
        replies
            .extend(run(join_all(calls().into_iter().map(|call| engine.call(call)))).into_iter().map(Result::unwrap));
        Some(replies.into_iter().map(|reply| (reply.text, reply.finish, reply.usage.output_tokens)).collect::<Vec<_>>())
    };
    let Some(plain) = answers(0, 0) else { return };
    assert_eq!(answers(100, 0).unwrap(), plain);
    assert_eq!(answers(0, 512).unwrap(), plain);
    assert_eq!(answers(8, 1_000_000).unwrap(), plain);
}

#[test]
fn an_answer_is_the_same_from_all_logits_and_from_the_few_that_it_needs() {
    let Some(engine) = engine(Config::default()) else { return };
    let some = |call: Call, seed| Call { sampling: Sampling { top_k: 20, ..Sampling::at(0.8, seed) }, ..call };
    let waits = |call: Call| Call { limits: Limits { min_output_tokens: 30, ..call.limits }, ..call };
    let calls = || {
        let (text, form) = (ask("Say hello.", 40), shaped("Make a plan to find the lost key.", plan(), 90, 1));
        let penalised = Call { sampling: penalised(Sampling { top_p: 0.9, ..Sampling::at(0.8, 9) }), ..text.clone() };
        [text.clone(), waits(text.clone()), some(waits(text), 7), form.clone(), some(form, 8), penalised]
    };
    for (few, all) in calls().into_iter().zip(calls()) {
        // Log-probabilities refer to the whole vocabulary.
        let all = run(engine.call(Call { logprobs: Some(0), ..all })).unwrap();
        let few = run(engine.call(few)).unwrap();
        assert_eq!(few.text, all.text);
        assert_eq!((few.logprobs.len(), all.logprobs.len()), (0, all.usage.output_tokens), "{}", all.text);
    }
}

#[test]
fn an_answer_that_repeats_itself_ends() {
    let Some(engine) = engine(Config::default()) else { return };
    let texts = ["Tell me a story about a dragon.", "Tell me a long story about a king.", "ha ha ha ha", "la la la"];
    let write = |stop_loops: bool| {
        let calls = texts.map(|text| {
            let call = ask(text, 400);
            engine.call(Call { limits: Limits { stop_loops, ..call.limits }, ..call })
        });
        run(join_all(calls)).into_iter().map(Result::unwrap).collect::<Vec<_>>()
    };
    let (stopped, free) = (write(true), write(false));
    for (reply, free) in stopped.iter().zip(&free) {
        println!("{:?} after {}: {:?}", reply.finish, reply.usage.output_tokens, reply.text);
        // Up to that point the reply is the same.
        assert!(free.text.starts_with(&reply.text));
        assert!(reply.finish == Finish::Repetition || reply.text == free.text);
    }
    assert!(stopped.iter().any(|reply| reply.finish == Finish::Repetition && reply.usage.output_tokens < 350));
    assert!(free.iter().all(|reply| reply.finish != Finish::Repetition));
}

#[test]
fn a_dropped_call_is_given_up_and_the_next_is_served() {
    let Some(engine) = engine(Config { max_running: 1, ..Config::default() }) else { return };
    let (long, gate) = Gate::hold(&engine, ask("Tell me a very long story about a dragon.", 4000));
    drop(long);
    drop(gate);
    run(engine.call(ask("Say hello.", 8))).unwrap();
    let state = engine.state().remove(0);
    assert!(state.written_tokens < 100, "the first was written on: {state:?}");
}

#[test]
fn the_prompt_of_a_dropped_call_is_not_read_to_its_end() {
    let Some(engine) = engine(Config { step_tokens: 64, ..Config::default() }) else { return };
    let (beside, gate) = Gate::hold(&engine, ask("Tell me about the sea.", 100));
    let mut long = engine.call(ask(&"The dragon slept on a heap of gold. ".repeat(400), 8));
    assert!((&mut long).now_or_never().is_none(), "3,600 tokens are read in many steps");
    while engine.state()[0].running < 2 {
        gate.pass();
    }
    drop(long);
    drop(gate);
    run(beside).unwrap();
    while engine.state()[0].running > 0 {
        std::thread::sleep(Duration::from_millis(2));
    }
    let state = engine.state().remove(0);
    assert!(state.read_tokens < 600 && state.used_pages == 0, "{state:?}");
}

#[test]
fn too_many_calls_are_refused_and_the_others_answered() {
    let Some(engine) = engine(Config { max_running: 1, max_waiting: 2, ..Config::default() }) else { return };
    // One call holds a permit until all others are made, so that none of them is answered before the last is made.
    let (first, gate) = Gate::hold(&engine, ask("Tell me about the sea.", 8));
    let calls = (0..8).map(|i| engine.call(ask(&format!("Say {i}."), 4)));
    let (replies, ()) = run(async { futures_util::join!(join_all(calls), async { drop(gate) }) });
    run(first).unwrap();
    let refused = replies.iter().filter(|reply| matches!(reply, Err(CallError::Overloaded { .. }))).count();
    assert_eq!((replies.iter().filter(|reply| reply.is_ok()).count(), refused), (2, 6));
}
