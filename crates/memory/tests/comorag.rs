//! Every branch of ComoRAG's loop (paper 003, section 2.3): which calls are made, how many, in how many rounds, and
//! what their prompts contain.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use calls::{Agent, Call, CallError, Scripted, Tokens, reading};
use memory::comorag::{Comorag, Knowledge, Options};
use memory::{Event, MemoryError, Profile, Settings};
use sources::Source;

use crate::rules::Rules;
use crate::scratch::{Asked, CONTEXT_TOKENS, Scratch, calls_of, document, fallbacks, input, schema};

const QUESTION: &str = "Who lit the lamp?";
const NO_ANSWER: &str = "The text does not say.";
const STAR: &str = r#"{"content_understanding":"","question_analysis":[],"final_answer":"*"}"#;
const ADA: &str = r#"{"content_understanding":"","question_analysis":[],"final_answer":"Ada Brook"}"#;
const NO_FINDINGS: &str = r#"{"key_findings":[]}"#;
const SAME_PROBES: &str = r#"{"probe_1":"who lit the LAMP","probe_2":"","probe_3":" - "}"#;

/// A corpus in which every layer has new pieces for every probe of five cycles.
const MANY: usize = 16;

/// Documents of three chunks each.
fn documents(count: usize) -> Vec<Source> {
    let text = |number: usize| {
        let who = char::from(b'a' + u8::try_from(number % 26).unwrap_or(0)).to_string().repeat(4);
        let sentence = |part: &str| format!("{who} {part} the lamp of house {number} and went home again very late. ");
        ["lit", "mended", "sold"].map(sentence).concat()
    };
    (0..count).map(|number| document(&format!("{number}.txt"), &[&text(number)])).collect()
}

/// A small budget, so that a probe takes one or two pieces of each layer.
fn settings(layers: &[Knowledge]) -> Settings {
    let comorag = Options { layers: layers.to_vec(), context_tokens: 80, chunk_tokens: 14, ..Options::default() };
    Settings { method: &Comorag, ..Settings::default().with_options(comorag) }
}

/// The default replies: facts are extracted, every filter keeps the first, every encoding finds a cue, probes are new
/// each time, and no answer is found.
fn reply(call: &Call, count: usize) -> String {
    match call.step {
        "comorag.entities" => r#"{"named_entities":["the lamp"]}"#.to_owned(),
        "comorag.triples" => {
            let words: Vec<String> = input(call, "PASSAGE").split_whitespace().map(str::to_owned).collect();
            serde_json::json!({ "triples": [[words[0], words[1], "the lamp"]] }).to_string()
        }
        "comorag.summarize" => input(call, "PASSAGES").split(' ').take(4).collect::<Vec<_>>().join(" "),
        "comorag.narrate" => input(call, "PASSAGES").split(' ').take(5).collect::<Vec<_>>().join(" "),
        "comorag.filter" => r#"{"fact":[1]}"#.to_owned(),
        "comorag.encode" => format!(r#"{{"key_findings":["found {count}"]}}"#),
        "comorag.probe" => {
            format!(r#"{{"probe_1":"What of {count}?","probe_2":"Why {count}?","probe_3":"Where was {count}?"}}"#)
        }
        "comorag.fuse" => format!("all {count}"),
        "comorag.answer" => STAR.to_owned(),
        other => panic!("unknown step {other}"),
    }
}

/// One question about a corpus, and all calls made for it.
struct Run {
    asked: Asked,
    calls: Vec<Call>,
    rounds: usize,
}

impl Run {
    /// Asks; `changed` replaces the default reply of the nth call of a step.
    fn of(count: usize, settings: &Settings, changed: impl Fn(&Call, usize) -> Option<String> + Send + Sync) -> Run {
        let scratch = Scratch::new();
        let count_up = AtomicUsize::new(0);
        let build = Rules::new(CONTEXT_TOKENS, |call: &Call| reply(call, count_up.fetch_add(1, Ordering::Relaxed)));
        scratch.ingest(&documents(count), &build, settings).expect("the corpus can be built");
        let seen: Mutex<Vec<Call>> = Mutex::default();
        let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| {
            let mut seen = seen.lock().expect("no thread panics with it");
            seen.push(call.clone());
            let nth = seen.iter().filter(|other| other.step == call.step).count();
            changed(call, nth).unwrap_or_else(|| reply(call, seen.len()))
        });
        let asked = scratch.ask(QUESTION, &caller, settings);
        let rounds = caller.rounds();
        drop(caller);
        Run { asked, calls: seen.into_inner().expect("no thread panics with it"), rounds }
    }

    fn answer(&self) -> &str {
        &self.asked.answer.as_ref().expect("an answer is given").answer
    }

    /// The steps in order, each run of equal ones with its length.
    fn steps(&self) -> String {
        let steps: Vec<&str> = self.calls.iter().map(|call| call.step.trim_start_matches("comorag.")).collect();
        let run = |run: &[&str]| if run.len() == 1 { run[0].to_owned() } else { format!("{} {}", run.len(), run[0]) };
        steps.chunk_by(|a, b| a == b).map(run).collect::<Vec<_>>().join(", ")
    }

    fn of_step(&self, step: &str) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(move |call| call.step == step)
    }
}

fn nothing_changed(_: &Call, _: usize) -> Option<String> {
    None
}

fn answers_at(attempt: usize) -> impl Fn(&Call, usize) -> Option<String> {
    move |call, nth| (call.step == "comorag.answer" && nth == attempt).then(|| ADA.to_owned())
}

#[test]
fn calls_and_rounds_follow_the_law() {
    let run = Run::of(MANY, &settings(&[]), answers_at(1));
    assert_eq!((run.steps().as_str(), run.rounds), ("filter, answer", 2));
    assert_eq!(run.answer(), "Ada Brook");
    for cycles in [1, 2, 5] {
        let run = Run::of(MANY, &settings(&[]), answers_at(cycles + 1));
        assert_eq!(run.calls.len(), 5 + 15 * cycles, "calls of {cycles} cycles: {}", run.steps());
        assert_eq!(run.rounds, 3 + 4 * cycles, "rounds of {cycles} cycles: {}", run.steps());
        assert_eq!(run.answer(), "Ada Brook");
        assert_eq!(run.asked.answer.as_ref().map(|answer| answer.usage.calls).ok(), Some(5 + 15 * cycles));
    }
    let run = Run::of(MANY, &settings(&[]), nothing_changed);
    assert_eq!((run.calls.len(), run.rounds, run.answer()), (80, 23, NO_ANSWER));
    let fewer = settings(&[]).with_options(Options { max_cycles: 1, ..settings(&[]).options() });
    let run = Run::of(MANY, &fewer, nothing_changed);
    assert_eq!(run.steps(), "filter, answer, 3 encode, probe, 3 filter, 9 encode, fuse, answer");
    assert_eq!(run.answer(), NO_ANSWER);
}

/// A small model with an adapter for reading that replies to it in this order; the last reply is repeated.
fn small_model(readings: &[&str]) -> Scripted {
    let script = Scripted::new(CONTEXT_TOKENS).with_adapter(reading::ADAPTER);
    let script = readings.iter().fold(script, |script, reading| script.answer("answer.read", *reading));
    script
        .answer("comorag.filter", r#"{"fact":[1]}"#)
        .answer("comorag.encode", r#"{"key_findings":["a lamp"]}"#)
        .answer("comorag.probe", r#"{"probe_1":"Which house?","probe_2":"Which lamp?","probe_3":"How late?"}"#)
        .answer("comorag.fuse", "all")
}

#[test]
fn a_small_model_reads_the_chunks_of_the_context_and_fails_if_they_hold_no_answer() {
    let scratch = Scratch::new();
    let small = Settings { profile: Some(Profile::Small), ..settings(&[]) };
    let small = small.with_options(Options { max_cycles: 1, ..settings(&[]).options() });
    let build = Rules::new(CONTEXT_TOKENS, |call: &Call| reply(call, 0));
    scratch.ingest(&documents(MANY), &build, &small).expect("the corpus can be built");
    let never = small_model(&[reading::NOT_FOUND]);
    let answer = scratch.ask(QUESTION, &never, &small).answer.expect("no answer is no error");
    assert_eq!((answer.answer.as_str(), answer.abstained), ("Not in the documents.", Some(true)));
    let steps = never.steps();
    assert!(steps.contains(&"comorag.probe") && !steps.contains(&"comorag.answer"), "{steps:?}");
    let encode = &calls_of("comorag.encode", &never)[0];
    assert_eq!(schema(encode)["properties"]["key_findings"]["minItems"], 1, "\"\" in place of no findings");
    // The second attempt reads the chunks that the probes found.
    let first = steps.iter().skip_while(|step| **step != "answer.read").take_while(|step| **step == "answer.read");
    let mut readings = vec![reading::NOT_FOUND; first.count()];
    readings.push("house");
    let answer = scratch.ask(QUESTION, &small_model(&readings), &small).answer.expect("the second attempt succeeds");
    assert_eq!((answer.short.as_deref(), answer.abstained), (Some("house"), Some(false)));
    assert!(answer.statements.iter().all(|statement| statement.citation.is_some()), "{:?}", answer.statements);
}

#[test]
fn the_loop_ends_when_there_is_nothing_new() {
    let check = |count: usize, step: &'static str, said: &'static str, want: &str| {
        let run = Run::of(count, &settings(&[]), |call, _| (call.step == step).then(|| said.to_owned()));
        assert_eq!(run.steps(), want, "{step} says {said}");
        assert_eq!(run.answer(), NO_ANSWER);
        assert_eq!(run.asked.answer.as_ref().map(|answer| answer.usage.calls).ok(), Some(run.calls.len()));
    };
    // The cues of the first retrieval, which no attempt has seen, are shown before the loop ends.
    let no_probes = "filter, answer, 3 encode, 2 probe, fuse, answer";
    check(MANY, "comorag.probe", SAME_PROBES, no_probes);
    check(MANY, "comorag.probe", r#"{"probe_1":"","probe_2":"","probe_3":""}"#, no_probes);
    check(MANY, "comorag.probe", "I would ask about the lamp.", no_probes);
    // A corpus that is wholly in the pool has nothing new for the first probes: the existing cues are used.
    check(1, "none", "", "filter, answer, 3 encode, probe, 3 filter, fuse, answer");
    let run = Run::of(1, &settings(&[]), nothing_changed);
    let last = run.of_step("comorag.answer").last().map(|call| input(call, "DETAIL_ARTICLE")).unwrap_or_default();
    assert!(last.starts_with("Key Finding: "), "{last}");
}

#[test]
fn a_loop_without_new_probes_shows_the_cues_that_no_attempt_has_seen() {
    let run = Run::of(MANY, &settings(&[]), |call, nth| match call.step {
        "comorag.probe" => Some(SAME_PROBES.to_owned()),
        _ => answers_at(2)(call, nth),
    });
    assert_eq!(run.answer(), "Ada Brook");
    let last = run.of_step("comorag.answer").last().expect("an answer is tried");
    assert!(input(last, "DETAIL_ARTICLE").starts_with("Key Finding: "));
    assert!(input(last, "HISTORY_INFO").starts_with("all "));
    // Without a cue there is nothing to show.
    let run = Run::of(MANY, &settings(&[]), |call, _| match call.step {
        "comorag.probe" => Some(SAME_PROBES.to_owned()),
        _ => (call.step == "comorag.encode").then(|| NO_FINDINGS.to_owned()),
    });
    assert_eq!(run.steps(), "filter, answer, 3 encode, 2 probe");
    // The cues of the first cycle have been shown.
    let run = Run::of(MANY, &settings(&[]), |call, nth| {
        (call.step == "comorag.probe" && nth > 1).then(|| SAME_PROBES.to_owned())
    });
    assert_eq!(run.steps(), "filter, answer, 3 encode, probe, 3 filter, 9 encode, fuse, answer, 2 probe");
}

#[test]
fn replies_that_make_no_sense_are_failures_and_never_memory() {
    let nonsense = "I am only a small model.";
    let check = |step: &'static str, want: &str| {
        let options = Options { max_cycles: 1, ..settings(&[]).options() };
        let settings = settings(&[]).with_options(options);
        let run = Run::of(MANY, &settings, |call, _| (call.step == step).then(|| nonsense.to_owned()));
        assert_eq!(run.steps(), want, "{step}");
        assert!(fallbacks(&run.asked.events).iter().all(|(of, _)| *of == step), "{step}");
        let told =
            |call: &Call| call.step != step && call.prompt.messages().iter().any(|m| m.content.contains(nonsense));
        assert!(step == "comorag.fuse" || !run.calls.iter().any(told), "{step} became memory");
    };
    check("comorag.answer", "filter, 2 answer, 3 encode, probe, 3 filter, 9 encode, fuse, 2 answer");
    check("comorag.filter", "2 filter, answer, 3 encode, probe, 6 filter, 9 encode, fuse, answer");
    // Without any cue there is nothing to fuse.
    check("comorag.encode", "filter, answer, 6 encode, probe, 3 filter, 18 encode, answer");
}

#[test]
fn a_failure_of_the_engine_at_any_step_is_an_error() {
    const SAID: [(&str, &str); 9] = [
        ("comorag.entities", r#"{"named_entities":["the lamp"]}"#),
        ("comorag.triples", r#"{"triples":[["ada","lit","the lamp"]]}"#),
        ("comorag.summarize", "They lit lamps."),
        ("comorag.narrate", "One lit a lamp, then another did."),
        ("comorag.filter", r#"{"fact":[1]}"#),
        ("comorag.encode", r#"{"key_findings":["found"]}"#),
        ("comorag.probe", r#"{"probe_1":"What?","probe_2":"Why?","probe_3":"Where?"}"#),
        ("comorag.fuse", "all"),
        ("comorag.answer", STAR),
    ];
    let whole = || SAID.iter().fold(Scripted::new(CONTEXT_TOKENS), |script, (step, said)| script.answer(step, *said));
    let broken = |at: &'static str| {
        let others = SAID.iter().filter(|(step, _)| *step != at);
        others
            .fold(Scripted::new(CONTEXT_TOKENS), |script, (step, said)| script.answer(step, *said))
            .fail(at, CallError::Closed)
    };
    let settings = settings(&[]);
    let built = Scratch::new();
    built.ingest(&documents(MANY), &whole(), &settings).expect("the script is whole");
    let digest = built.corpus().digest().expect("it can be read");
    for (number, (step, _)) in SAID.into_iter().enumerate() {
        let caller = broken(step);
        let outcome = if number < 4 {
            Scratch::new().ingest(&documents(MANY), &caller, &settings).map(|_| ())
        } else {
            built.ask(QUESTION, &caller, &settings).answer.map(|_| ())
        };
        assert!(matches!(outcome, Err(MemoryError::Call(CallError::Closed))), "{step}: {outcome:?}");
        assert!(caller.steps().contains(&step), "{step} was called");
    }
    assert_eq!(built.corpus().digest().expect("it can be read"), digest);
    assert_eq!(built.ask(QUESTION, &whole(), &settings).answer.expect("nothing fails").answer, NO_ANSWER);
}

#[test]
fn a_failure_is_a_star_whatever_stands_around_it() {
    let check = |said: &str, want: &str| {
        let reply = serde_json::json!({ "content_understanding": "", "question_analysis": [], "final_answer": said });
        let options = Options { max_cycles: 0, ..settings(&[]).options() };
        let settings = settings(&[]).with_options(options);
        let run = Run::of(1, &settings, |call, _| (call.step == "comorag.answer").then(|| reply.to_string()));
        assert_eq!(run.answer(), want, "{said:?}");
    };
    check("*", NO_ANSWER);
    check(" **. ", NO_ANSWER);
    check(" Ada ", "Ada");
    check("*Ada*", "*Ada*");
    check("*Ada* Brook", "*Ada* Brook");
    // The signal with words after it, and refusals without the signal.
    check("* (the passages do not say)", NO_ANSWER);
    check("*The passages leave it open", NO_ANSWER);
    check("*Not specified.*", NO_ANSWER);
    check("The text does not mention it.", NO_ANSWER);
    check("Not in the documents.", NO_ANSWER);
    check("He does not mention his brother", "He does not mention his brother");
}

#[test]
fn a_refusal_in_words_is_followed_by_a_cycle() {
    let refusal = STAR.replace('*', "The text does not mention who lit the lamp.");
    let run = Run::of(MANY, &settings(&[]), |call, nth| match (call.step, nth) {
        ("comorag.answer", 1) => Some(refusal.clone()),
        _ => answers_at(2)(call, nth),
    });
    assert_eq!(run.steps(), "filter, answer, 3 encode, probe, 3 filter, 9 encode, fuse, answer");
    assert_eq!(run.answer(), "Ada Brook");
}

#[test]
fn findings_may_be_an_empty_list() {
    let run = Run::of(MANY, &settings(&[]), |call, _| (call.step == "comorag.encode").then(|| NO_FINDINGS.to_owned()));
    let call = run.of_step("comorag.encode").next().expect("evidence is encoded");
    assert!(schema(call)["properties"]["key_findings"].get("minItems").is_none());
    let prompt: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
    assert!(prompt.contains("an empty list if CONTENT does not help"), "{prompt}");
    assert_eq!((run.answer(), fallbacks(&run.asked.events).len()), (NO_ANSWER, 0));
}

#[test]
fn findings_and_accounts_that_tell_nothing_are_no_memory() {
    let options = Options { max_cycles: 1, ..settings(&[]).options() };
    let settings = settings(&[]).with_options(options);
    let nothing = "CONTENT does not mention who lit the lamp.";
    // Beside a finding that tells something it is left out, and alone it is no cue.
    let found = serde_json::json!({ "key_findings": [nothing, "Bbbb lit one."] }).to_string();
    let run = Run::of(MANY, &settings, |call, _| (call.step == "comorag.encode").then(|| found.clone()));
    let last = run.of_step("comorag.answer").last().expect("an answer is tried");
    assert_eq!(input(last, "DETAIL_ARTICLE").lines().next(), Some("Key Finding: Bbbb lit one."));
    let alone = serde_json::json!({ "key_findings": [nothing, "None."] }).to_string();
    let run = Run::of(MANY, &settings, |call, _| (call.step == "comorag.encode").then(|| alone.clone()));
    assert_eq!(run.steps(), "filter, answer, 3 encode, probe, 3 filter, 9 encode, answer");
    let last = run.of_step("comorag.answer").last().expect("an answer is tried");
    assert_eq!(input(last, "DETAIL_ARTICLE"), "Nothing.");
    let run = Run::of(MANY, &settings, |call, _| {
        (call.step == "comorag.fuse").then(|| "There is no information about the lamp.".to_owned())
    });
    let last = run.of_step("comorag.answer").last().expect("an answer is tried");
    assert_eq!(input(last, "HISTORY_INFO"), "Nothing.");
}

#[test]
fn none_is_no_probe() {
    let probes = r#"{"probe_1":"Which house?","probe_2":"None","probe_3":"N/A"}"#;
    let options = Options { max_cycles: 1, ..settings(&[]).options() };
    let run = Run::of(MANY, &settings(&[]).with_options(options), |call, _| {
        (call.step == "comorag.probe").then(|| probes.to_owned())
    });
    assert_eq!(run.steps(), "filter, answer, 3 encode, probe, filter, 3 encode, fuse, answer");
}

#[test]
fn evidence_without_a_cue_is_found_again() {
    let options = Options { max_cycles: 1, ..settings(&[]).options() };
    let settings = settings(&[]).with_options(options);
    let check = |said: &'static str, is_found: bool| {
        let run = Run::of(MANY, &settings, |call, _| (call.step == "comorag.encode").then(|| said.to_owned()));
        let searches: Vec<Vec<i64>> = run
            .asked
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Search { tool, hits, .. } if tool == "veridical" => {
                    Some(hits.iter().map(|hit| hit.page).collect())
                }
                _ => None,
            })
            .collect();
        let best = searches[0][0];
        let again = searches[1..].iter().filter(|hits| hits.contains(&best)).count();
        assert_eq!((searches.len(), again), (4, if is_found { 3 } else { 0 }), "{said}");
    };
    check(NO_FINDINGS, true);
    check("I am only a small model.", true);
    check(r#"{"key_findings":["found"]}"#, false);
}

#[test]
fn the_loop_runs_over_any_layers() {
    use Knowledge::{Episodic, Semantic, Veridical};
    let check = |layers: &[Knowledge], want: &str| {
        let options = Options { max_cycles: 1, ..settings(layers).options() };
        let run = Run::of(MANY, &settings(layers).with_options(options), nothing_changed);
        assert_eq!(run.steps(), want, "{layers:?}");
        let names = ["DETAIL_ARTICLE", "SUMMARY_BY_SEMANTIC", "SUMMARY_BY_EPISODIC"];
        for call in run.of_step("comorag.answer") {
            let turn =
                call.prompt.messages().into_iter().map(|message| message.content).next_back().unwrap_or_default();
            let shown: Vec<bool> = names.iter().map(|name| turn.contains(&format!("{name}:\n"))).collect();
            assert_eq!(shown, Knowledge::ALL.map(|layer| layers.contains(&layer)), "{layers:?}");
        }
    };
    check(&[Veridical], "filter, answer, encode, probe, 3 filter, 3 encode, fuse, answer");
    check(&[Semantic], "answer, encode, probe, 3 encode, fuse, answer");
    check(&[Episodic], "answer, encode, probe, 3 encode, fuse, answer");
    check(&[Semantic, Episodic], "answer, 2 encode, probe, 6 encode, fuse, answer");
    check(&[Veridical, Episodic], "filter, answer, 2 encode, probe, 3 filter, 6 encode, fuse, answer");
}

#[test]
fn options_are_shown_to_nobody_but_who_answers() {
    let comorag = Options { max_cycles: 1, ..settings(&[]).options() };
    let settings = Settings { choices: vec!["Zenobia".into(), "Xerxes".into()], ..settings(&[]).with_options(comorag) };
    let said = |answer: &str| {
        serde_json::json!({ "content_understanding": "", "question_analysis": [], "options_analysis": [], "final_answer": answer })
            .to_string()
    };
    let run = Run::of(MANY, &settings, |call, nth| {
        let answer = ["[C]", "*", "[B]"].get(nth - 1).copied().unwrap_or("*");
        (call.step == "comorag.answer").then(|| said(answer))
    });
    assert_eq!(run.steps(), "filter, 2 answer, 3 encode, probe, 3 filter, 9 encode, fuse, answer", "there is no [C]");
    assert_eq!(run.answer(), "[B] Xerxes");
    for call in &run.calls {
        let told = call.prompt.messages().iter().any(|message| message.content.contains("Zenobia"));
        assert_eq!(told, call.step == "comorag.answer", "{}", call.step);
    }
    for call in run.of_step("comorag.answer") {
        assert_eq!(input(call, "OPTIONS").lines().next(), Some("[A] Zenobia"));
        assert_eq!(schema(call)["properties"]["final_answer"]["enum"], serde_json::json!(["[A]", "[B]", "*"]));
    }
}

#[test]
fn the_sections_before_an_answer_may_fill_most_of_the_reply_and_leave_room_for_it() {
    let run = Run::of(1, &settings(&[]), answers_at(1));
    let call = run.of_step("comorag.answer").next().expect("an answer is tried");
    let properties = schema(call)["properties"].clone();
    let chars = |value: &serde_json::Value| value["maxLength"].as_u64().expect("it is bounded");
    let points = &properties["question_analysis"];
    let sections = chars(&properties["content_understanding"])
        + chars(&points["items"]) * points["maxItems"].as_u64().expect("it is bounded");
    let reply = 4 * call.limits.max_output_tokens as u64;
    assert!(sections >= reply / 2 && sections + chars(&properties["final_answer"]) < reply, "{sections} of {reply}");
}

#[test]
fn evidence_is_chosen_by_rank_and_shown_in_order() {
    let run = Run::of(MANY, &settings(&[]), answers_at(1));
    let event_of = |tool: &str| {
        let hits = run.asked.events.iter().find_map(|event| match event {
            Event::Search { tool: of, hits, .. } if of == tool => {
                Some(hits.iter().map(|hit| hit.page).collect::<Vec<_>>())
            }
            _ => None,
        });
        hits.expect("the layer was searched")
    };
    let mut shown = 0;
    for event in &run.asked.events {
        let Event::Evidence { step, budget_tokens, used_tokens, pages, left_out } = event else { continue };
        let Some(layer) = step.strip_prefix("comorag.").filter(|layer| *layer != "history") else { continue };
        shown += 1;
        assert!(used_tokens <= budget_tokens, "{layer}");
        let ranked = event_of(layer);
        assert_eq!(ranked[..pages.len()], pages[..], "the best of {layer} are chosen");
        assert_eq!(pages.len() + left_out.len(), ranked.len(), "what is left out of {layer} is reported");
    }
    assert_eq!(shown, 3);
    let article = run.of_step("comorag.answer").map(|call| input(call, "DETAIL_ARTICLE")).next().unwrap_or_default();
    let houses: Vec<&str> = article.split("house ").skip(1).filter_map(|rest| rest.split(' ').next()).collect();
    assert!(houses.len() > 1 && houses.is_sorted_by_key(|number| number.parse::<usize>().unwrap_or(0)), "{article}");
}

#[test]
fn evidence_from_several_documents_is_shown_with_their_paths() {
    let names = ["DETAIL_ARTICLE", "SUMMARY_BY_SEMANTIC", "SUMMARY_BY_EPISODIC"];
    let first_shown = |count: usize, settings: &Settings| -> Vec<String> {
        let run = Run::of(count, settings, nothing_changed);
        let tokens = |text: &str| Scripted::new(CONTEXT_TOKENS).count_tokens(Agent::Responder, text);
        let budgets: Vec<usize> = run
            .asked
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Evidence { budget_tokens, .. } => Some(*budget_tokens),
                _ => None,
            })
            .take(names.len())
            .collect();
        let encoded: Vec<String> = run.of_step("comorag.encode").map(|call| input(call, "CONTENT")).collect();
        let Some(call) = run.of_step("comorag.answer").next() else { return encoded };
        let shown = names.map(|name| input(call, name));
        assert_eq!(shown[..], encoded[..names.len()], "both agents read the same");
        assert!(shown.iter().zip(budgets).all(|(text, budget)| tokens(text) <= budget), "{shown:?}");
        encoded
    };
    let shown = first_shown(MANY, &settings(&[]));
    for piece in shown.iter().flat_map(|text| text.split("\n\n")) {
        let (number, rest) = piece[1..].split_once(".txt) ").unwrap_or_else(|| panic!("no path in {piece}"));
        let who = char::from(b'a' + number.parse::<u8>().expect("a number")).to_string().repeat(4);
        assert!(rest.starts_with(&who), "{piece}");
    }
    let small = Settings { profile: Some(Profile::Small), ..settings(&[]) };
    for (count, settings) in [(1, settings(&[])), (MANY, small)] {
        assert!(first_shown(count, &settings).iter().all(|text| !text.contains(".txt")));
    }
}

#[test]
fn evidence_of_the_pool_is_not_retrieved_again() {
    let run = Run::of(MANY, &settings(&[]), nothing_changed);
    let mut held: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    let mut cycle: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    for event in &run.asked.events {
        match event {
            Event::Evidence { step, pages, .. }
                if ["veridical", "semantic", "episodic"].iter().any(|layer| step.ends_with(layer))
                    && !step.contains("cues") =>
            {
                let held = held.entry(step).or_default();
                assert!(pages.iter().all(|page| !held.contains(page)), "{step} was shown again");
                cycle.entry(step).or_default().extend(pages);
            }
            Event::Call { step, .. } if step == "comorag.probe" => {
                for (step, pages) in std::mem::take(&mut cycle) {
                    held.entry(step).or_default().extend(pages);
                }
            }
            _ => {}
        }
    }
    assert!(held.values().all(|pages| pages.len() >= 5), "{held:?}");
}

#[test]
fn later_attempts_see_cues_and_what_was_put_together() {
    let options = Options { context_tokens: 3400, max_cycles: 2, ..settings(&[]).options() };
    let settings = settings(&[]).with_options(options);
    let run = Run::of(40, &settings, nothing_changed);
    let calls: Vec<&Call> = run.of_step("comorag.answer").collect();
    assert_eq!(calls.len(), 3);
    assert!(input(calls[0], "DETAIL_ARTICLE").contains("lamp of house"));
    assert_eq!(input(calls[0], "HISTORY_INFO"), "Nothing.");
    for call in &calls[1..] {
        let detail = input(call, "DETAIL_ARTICLE");
        assert!(
            detail.lines().filter(|line| !line.is_empty()).all(|line| line.starts_with("Key Finding: ")),
            "{detail}"
        );
    }
    let fused: Vec<String> = run
        .asked
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Call { step, output, .. } if step == "comorag.fuse" => Some(output.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(input(calls[1], "HISTORY_INFO"), fused[0]);
    assert_eq!(input(calls[2], "HISTORY_INFO"), format!("{}\n\n{}", fused[0], fused[1]));
    // Half of the first three cues; then half of six, since only the chunks were new.
    let analysis: Vec<usize> = run
        .of_step("comorag.fuse")
        .map(|call| input(call, "PREVIOUS_ANALYSIS").lines().filter(|line| !line.is_empty()).count())
        .collect();
    assert_eq!(analysis, [1, 3]);
    let last = run.of_step("comorag.probe").last().map(|call| input(call, "PREVIOUS_PROBES")).unwrap_or_default();
    assert_eq!(last.lines().count(), 4, "the question and three probes: {last}");
}

#[test]
fn probes_are_written_with_what_earlier_cycles_put_together() {
    let options = Options { max_cycles: 3, ..settings(&[]).options() };
    let run = Run::of(MANY, &settings(&[]).with_options(options), nothing_changed);
    let accounts = run.asked.events.iter().filter_map(|event| match event {
        Event::Call { step, output, .. } if step == "comorag.fuse" => Some(format!("{output}\n\n")),
        _ => None,
    });
    let accounts: Vec<String> = accounts.collect();
    let contexts: Vec<String> = run.of_step("comorag.probe").map(|call| input(call, "CONTEXT")).collect();
    assert_eq!((contexts.len(), accounts.len()), (3, 3));
    for (number, context) in contexts.iter().enumerate() {
        assert!(context.starts_with(&(accounts[..number].concat() + "Key Finding: ")), "cycle {number}: {context}");
    }
}

#[test]
fn the_prompt_of_mem_fuse_names_its_length() {
    let run = Run::of(MANY, &settings(&[]), answers_at(2));
    let call = run.of_step("comorag.fuse").next().expect("cues are fused");
    let words = (call.limits.max_output_tokens * 2 / 3).max(1);
    let prompt: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
    assert!(prompt.contains(&format!("Write at most {words} words.")), "{prompt}");
}

#[test]
fn a_fused_cue_as_long_as_it_may_be_is_shown() {
    for context_tokens in [80, 400] {
        let options = Options { context_tokens, max_cycles: 2, ..settings(&[]).options() };
        let settings = settings(&[]).with_options(options);
        let run = Run::of(MANY, &settings, |call, nth| {
            let cue = format!("cue{nth} ").repeat(call.limits.max_output_tokens);
            (call.step == "comorag.fuse").then(|| cue.trim_end().to_owned())
        });
        let tokens = run.of_step("comorag.fuse").next().map_or(0, |call| call.limits.max_output_tokens);
        let history: Vec<String> = run.of_step("comorag.answer").map(|call| input(call, "HISTORY_INFO")).collect();
        let newest = |nth: usize| format!("cue{nth} ").repeat(tokens).trim_end().to_owned();
        assert_eq!(history, ["Nothing.".to_owned(), newest(1), newest(2)], "{tokens} of {context_tokens} tokens");
    }
}

#[test]
fn a_fused_cue_that_is_too_long_is_cut_at_the_end_of_a_sentence() {
    let options = Options { context_tokens: 400, max_cycles: 1, ..settings(&[]).options() };
    let settings = settings(&[]).with_options(options);
    // Six tokens each.
    let sentence = "Ada lit one more lamp. ";
    let run = Run::of(MANY, &settings, |call, _| (call.step == "comorag.fuse").then(|| sentence.repeat(40)));
    let tokens = run.of_step("comorag.fuse").next().map_or(0, |call| call.limits.max_output_tokens);
    let last = run.of_step("comorag.answer").last().expect("an answer is tried");
    assert!((12..240).contains(&tokens), "{tokens} tokens are two sentences and not all");
    assert_eq!(input(last, "HISTORY_INFO"), sentence.repeat(tokens / 6).trim_end());
    assert_eq!(fallbacks(&run.asked.events).iter().map(|(step, _)| *step).collect::<Vec<_>>(), ["comorag.fuse"]);
}

#[test]
fn an_answer_cites_the_chunks_that_it_rests_on() {
    let run = Run::of(3, &settings(&[]), |call, _| {
        let said =
            r#"{"content_understanding":"","question_analysis":[],"final_answer":"bbbb mended the lamp of house 1"}"#;
        (call.step == "comorag.answer").then(|| said.to_owned())
    });
    let answer = run.asked.answer.expect("an answer is given");
    let sources = documents(3);
    assert!(!answer.citations.is_empty());
    for citation in &answer.citations {
        let source = sources.iter().find(|source| source.path == citation.path).expect("the source is known");
        let quoted: String =
            source.text.chars().skip(citation.start as usize).take((citation.end - citation.start) as usize).collect();
        assert_eq!(quoted, citation.quote);
        // Each document is a page; chunks are numbered after all pages.
        let number: i64 = source.path.trim_end_matches(".txt").parse().expect("a document's name is a number");
        assert_eq!(citation.page, number + 1);
    }
    assert_eq!(answer.model, "scripted");
    assert_eq!(answer.method, "comorag");
}

#[test]
fn without_a_fact_the_nearest_chunks_are_evidence() {
    let veridical = |filter: &'static str| {
        let options = Options { max_cycles: 0, ..settings(&[]).options() };
        let settings = settings(&[]).with_options(options);
        let run = Run::of(MANY, &settings, |call, _| (call.step == "comorag.filter").then(|| filter.to_owned()));
        let scores = run.asked.events.iter().find_map(|event| match event {
            Event::Search { tool, hits, .. } if tool == "veridical" => Some(hits.iter().map(|hit| hit.score).collect()),
            _ => None,
        });
        let scores: Vec<f32> = scores.expect("the layer was searched");
        assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        scores
    };
    let (near, walked) = (veridical(r#"{"fact":[]}"#), veridical(r#"{"fact":[1]}"#));
    assert_eq!(near, veridical(r#"{"fact":[9]}"#), "a fact that was not shown is no fact");
    assert!(near[0] > 0.5 && near[0] < 1.0, "{} is no cosine", near[0]);
    assert!(walked[0] < 0.5, "{} is no share of a walk", walked[0]);
}

#[test]
fn the_budget_is_scaled_down_where_the_context_is_small() {
    let budgets = |context_tokens: usize, layers: &[Knowledge]| {
        let comorag = Options { layers: layers.to_vec(), max_cycles: 0, ..Options::default() };
        let settings = Settings { method: &Comorag, ..Settings::default().with_options(comorag) };
        let scratch = Scratch::new();
        let caller = Rules::new(context_tokens, |call: &Call| reply(call, 1));
        scratch.ingest(&documents(4), &caller, &settings).expect("the corpus can be built");
        let asked = scratch.ask(QUESTION, &caller, &settings);
        asked.answer.expect("an answer is given");
        let budget = |event: &Event| match event {
            Event::Evidence { budget_tokens, .. } => Some(*budget_tokens),
            _ => None,
        };
        asked.events.iter().filter_map(budget).collect::<Vec<_>>()
    };
    assert_eq!(budgets(CONTEXT_TOKENS, &[]), [3692, 923, 923]);
    assert_eq!(budgets(CONTEXT_TOKENS, &[Knowledge::Episodic]), [4000]);
    let small = budgets(1536, &[]);
    assert!(small.iter().sum::<usize>() < 1000 && small[0] > 3 * small[1] && small[1] > 50, "{small:?}");
}
