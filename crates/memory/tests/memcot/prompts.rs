//! The prompts of the agents: by rank, by time or by session, within a budget, and only with ids that were shown.

use std::collections::BTreeSet;
use std::sync::Mutex;

use calls::{Agent, Call, Scripted, Tokens};
use memory::memcot::Options;
use memory::{Event, Profile, Settings};
use serde_json::json;
use store::{Layer, Passage};

use super::{ask, judge, respond, scripted, settings, talk, zoom_in, zoom_out};
use crate::rules::Rules;
use crate::scratch::{
    CONTEXT_TOKENS, Scratch, calls_of, conversation, document, fallbacks, input, schema, script, sessions,
};

/// Ranks turn 7 before all others.
const TURN_7: &str = "It is Rex. Here is a photo of him.";

#[test]
fn ids_can_only_be_those_that_were_shown() {
    let caller = scripted(&[zoom_in("[7]"), zoom_out("[6]"), judge("[7]", true, "Break", "[]"), respond("Rex")]);
    let options = Options { k: 2, window: 1, ..Options::default() };
    talk().ask(TURN_7, &caller, &settings(options)).answer.expect("the script is whole");
    let allowed = |step, field: &str| schema(&calls_of(step, &caller)[0])["properties"][field]["items"]["enum"].clone();
    let shown = input(&calls_of("memcot.zoom_in", &caller)[0], "RETRIEVED");
    let mut ids: Vec<i64> =
        shown.lines().map(|line| line[1..line.find(']').unwrap()].parse().expect("an id")).collect();
    assert_eq!(ids.len(), 2, "K = 2");
    ids.sort_unstable();
    assert_eq!(allowed("memcot.zoom_in", "useful_ids"), json!(ids));
    // One turn on either side of turn 7, which is the last of its session.
    assert_eq!(allowed("memcot.zoom_out", "useful_ids"), json!([6, 7]));
}

#[test]
fn windows_are_shown_session_by_session_in_the_order_of_time() {
    let caller =
        scripted(&[zoom_in("[10,9,5]"), zoom_out("[11]"), judge("[11,9]", true, "Break", "[]"), respond("Rex")]);
    ask(&caller, Options { window: 1, ..Options::default() }).answer.expect("the script is whole");
    let want = "\
Session session_1 (8 May, 2023):
4: Ann (D1:1): Hello Bob, how are you?
5: Bob (D1:2): Fine. I adopted a dog last week.
6: Ann (D1:3): What is its name?
Session session_2 (9 June, 2023):
8: Ann (D2:1): How is the dog?
9: Bob (D2:2): Rex likes the beach at Pell.
Session session_10 (1 July, 2023):
10: Bob (D3:1): I moved to Paris.
11: Ann (D3:2): Paris is far away.";
    assert_eq!(input(&calls_of("memcot.zoom_out", &caller)[0], "CONTEXT_WINDOWS"), want);
    // The tenth session is after the second.
    let want = "\
[9] (9 June, 2023) Bob (D2:2): Rex likes the beach at Pell.
[11] (1 July, 2023) Ann (D3:2): Paris is far away.";
    assert_eq!(input(&calls_of("memcot.respond", &caller)[0], "SHORT_MEMORY"), want);
}

#[test]
fn turns_of_several_documents_are_shown_with_their_paths() {
    let talk: &[(&str, &str)] = &[("Ann", "The roof leaks.")];
    let sources = [
        document("home/notes/may.txt", &["The roof was mended."]),
        document("home/notes/june.txt", &["The roof was painted."]),
        sessions("talk.json", &[("session_1", "8 May, 2023", talk)]),
    ];
    let options = Options { window: 0, ..Options::default() };
    let scratch = Scratch::new();
    scratch.ingest(&sources, &script(&[]), &settings(options.clone())).expect("nothing is called");
    let corpus = scratch.corpus();
    let turns = corpus.passages(Layer::Turn).expect("it can be read");
    let id_of = |words: &str| {
        let has_words = |turn: &&Passage| corpus.passage_text(turn.id).expect("it can be read").contains(words);
        turns.iter().find(has_words).expect("there is such a turn").id.0
    };
    let [may, june, ann] = ["mended", "painted", "leaks"].map(id_of);
    let all = json!([may, june, ann]).to_string();
    let caller = scripted(&[zoom_in(&all), zoom_out("[]"), judge(&all, true, "Break", "[]"), respond("may.txt")]);
    let question = "Which document says that the roof was mended?";
    let asked = scratch.ask(question, &caller, &settings(options.clone()));
    asked.answer.expect("the script is whole");
    let timed = format!(
        "[{may}] (notes/may.txt) The roof was mended.\n[{june}] (notes/june.txt) The roof was painted.\n\
         [{ann}] (talk.json, 8 May, 2023) Ann (D1:1): The roof leaks."
    );
    let ranked = input(&calls_of("memcot.zoom_in", &caller)[0], "RETRIEVED");
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    assert_eq!(sorted(&ranked), sorted(&timed));
    assert_eq!(input(&calls_of("memcot.judge", &caller)[0], "NEW_INFORMATION"), timed);
    assert_eq!(input(&calls_of("memcot.respond", &caller)[0], "SHORT_MEMORY"), timed);
    let windows = input(&calls_of("memcot.zoom_out", &caller)[0], "CONTEXT_WINDOWS");
    let want = format!(
        "Session page 1 (notes/may.txt):\n{may}: The roof was mended.\n\
         Session page 2 (notes/june.txt):\n{june}: The roof was painted.\n\
         Session session_1 (talk.json, 8 May, 2023):\n{ann}: Ann (D1:1): The roof leaks."
    );
    assert_eq!(windows, want);
    let used = asked.events.iter().find_map(|event| match event {
        Event::Evidence { step, used_tokens, .. } if step == "memcot.zoom_out" => Some(*used_tokens),
        _ => None,
    });
    assert_eq!(used, Some(caller.count_tokens(Agent::Researcher, &windows)), "paths count towards the room");
    // The small profile has none.
    let caller = scripted(&[zoom_in("[]")]);
    let small = Settings { profile: Some(Profile::Small), ..settings(options) };
    // Without a judge in the script the question fails.
    scratch.ask(question, &caller, &small).answer.expect_err("the script has no judge");
    assert!(!input(&calls_of("memcot.zoom_in", &caller)[0], "RETRIEVED").contains("may.txt"));
}

#[test]
fn what_has_no_room_is_left_out_by_rank_and_said() {
    let caller = scripted(&[zoom_in("[7]"), zoom_out("[]"), judge("[7]", true, "Break", "[]"), respond("Rex")]);
    // The scripted tokenizer counts 20, 13 and 15 tokens in the lines of turns 7, 6 and 5, and 11 in the heading.
    let settings = Settings { evidence_tokens: Some(45), ..settings(Options { k: 1, ..Options::default() }) };
    let asked = talk().ask(TURN_7, &caller, &settings);
    asked.answer.expect("the script is whole");
    let packed: Vec<(&str, &[i64], &[i64])> = asked
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Evidence { step, pages, left_out, .. } => Some((step.as_str(), &pages[..], &left_out[..])),
            _ => None,
        })
        .collect();
    let (step, pages, left_out) = packed[1];
    assert_eq!((step, pages[0]), ("memcot.zoom_out", 7));
    assert_eq!([pages, left_out].concat(), [7, 6, 5, 4], "the nearest first");
    assert!(!left_out.is_empty(), "{pages:?}");
}

#[test]
fn the_judge_sees_what_is_new_however_much_is_known() {
    const BEASTS: [&str; 6] = ["ant", "bee", "cow", "dog", "emu", "fox"];
    let said = BEASTS.map(|beast| format!("{beast} ").repeat(40));
    let said: Vec<(&str, &str)> = said.iter().map(|words| ("Ann", words.trim_end())).collect();
    // Room for one turn beside what is known: every step finds one turn and keeps it.
    let options = Options { k: 1, window: 0, steps: BEASTS.len(), ..Options::default() };
    let settings = Settings { evidence_tokens: Some(60), ..settings(options) };
    let scratch = Scratch::new();
    scratch.ingest(&[conversation("talk.json", &said)], &script(&[]), &settings).expect("nothing is called");
    let ids = |shown: &str| -> Vec<i64> { shown.split(['[', ']']).filter_map(|part| part.parse().ok()).collect() };
    let found: Mutex<Vec<i64>> = Mutex::default();
    let judged: Mutex<Vec<[Vec<i64>; 2]>> = Mutex::default();
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| match call.step {
        "memcot.zoom_in" => {
            let shown = ids(&input(call, "RETRIEVED"));
            found.lock().expect("no thread panics with it").extend(&shown);
            zoom_in(&json!(shown).to_string()).1
        }
        "memcot.zoom_out" => zoom_out("[]").1,
        "memcot.judge" => {
            let shown = ids(&input(call, "NEW_INFORMATION"));
            let mut judged = judged.lock().expect("no thread panics with it");
            judged.push([ids(&input(call, "KNOWN_INFORMATION")), shown.clone()]);
            let next = BEASTS.get(judged.len()).copied().unwrap_or("gnu");
            judge(&json!(shown).to_string(), false, "Break", &json!([next]).to_string()).1
        }
        _ => "An ant.".to_owned(),
    });
    scratch.ask(BEASTS[0], &caller, &settings).answer.expect("an answer is given");
    let (found, judged) = (found.lock().expect("no thread panics"), judged.lock().expect("no thread panics"));
    assert_eq!((found.len(), judged.len()), (6, 6), "each step finds one");
    for (step, (new, [known, shown])) in found.iter().zip(&*judged).enumerate() {
        assert_eq!((shown, known.len()), (&vec![*new], step), "step {step}");
    }
}

#[test]
fn pictures_need_a_model_that_is_not_there() {
    let check = |anchor: &str, want: &[i64]| {
        let caller = scripted(&[zoom_in(anchor), zoom_out("[]"), judge(anchor, true, "Break", "[]"), respond("Rex")]);
        let asked = ask(&caller, Options { window: 1, ..Options::default() });
        asked.answer.expect("the script is whole");
        let unseen = asked.events.iter().filter_map(|event| match event {
            Event::Unseen { turns, .. } => Some(turns.clone()),
            _ => None,
        });
        assert_eq!(unseen.flatten().collect::<Vec<_>>(), want);
        // No call was made, so no reply was given up.
        assert_eq!(fallbacks(&asked.events), []);
    };
    check("[6]", &[7]);
    check("[4]", &[]);
    check("[10]", &[]);
}

/// A question that is answered in two steps.
fn two_steps() -> Scripted {
    let caller = scripted(&[
        zoom_in("[7]"),
        zoom_out("[]"),
        judge("[7]", false, "Delete", r#"["beach"]"#),
        judge("[7,9]", true, "Break", "[]"),
        respond("Rex"),
    ]);
    ask(&caller, Options::default()).answer.expect("the script is whole");
    caller
}

#[test]
fn every_agent_is_told_what_is_known_already() {
    let caller = two_steps();
    let known = "[7] (8 May, 2023) Bob (D1:4): It is Rex. Here is a photo of him.";
    for step in ["memcot.zoom_in", "memcot.zoom_out", "memcot.judge"] {
        let calls = calls_of(step, &caller);
        assert_eq!(input(&calls[0], "KNOWN_INFORMATION"), "Nothing yet.");
        assert_eq!(input(&calls[1], "KNOWN_INFORMATION"), known, "{step}");
    }
}

#[test]
fn the_instructions_of_a_step_come_before_its_inputs_and_stay_the_same() {
    let caller = two_steps();
    for step in ["memcot.zoom_in", "memcot.zoom_out", "memcot.judge"] {
        let calls = calls_of(step, &caller);
        let [first, second, ..] = &calls[..] else { panic!("two steps call {step}") };
        let (first, second) = (first.prompt.messages(), second.prompt.messages());
        assert_eq!((first[0].role, &first[0]), (calls::Role::System, &second[0]), "{step}");
        assert!(first[0].content.starts_with("You are the ") && first[1] != second[1], "{step}");
    }
}

#[test]
fn agents_may_think_for_most_of_a_reply_and_the_prompt_says_how_long() {
    let caller = scripted(&[zoom_in("[7]"), zoom_out("[6]"), judge("[7]", true, "Break", "[]"), respond("Rex")]);
    ask(&caller, Options::default()).answer.expect("the script is whole");
    for step in ["memcot.zoom_in", "memcot.zoom_out", "memcot.judge"] {
        let call = &calls_of(step, &caller)[0];
        assert_eq!(schema(call)["properties"]["thinking"]["maxLength"], 1600, "{step}");
        let prompt: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
        assert!(prompt.contains("\"thinking\": in at most 200 words"), "{step}: {prompt}");
    }
}
