//! The graph of entities and relations: the calls that build it, what is stored, and what it retrieves.

use calls::{Call, CallError, Finish, Role, Scripted};
use memory::memcot::{MemcotStore, Options};
use memory::{Event, MemoryError, Missing, Settings};
use serde_json::json;
use sources::Source;
use store::Layer;

use super::{judge, respond, settings, talk, zoom_in, zoom_out};
use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Scratch, calls_of, conversation, fallbacks, input};

pub fn lightrag() -> Settings {
    settings(Options { store: MemcotStore::Lightrag, ..Options::default() })
}

/// Names that the builder knows; the names in a turn are its entities, and each is related to the next.
const NAMES: [&str; 6] = ["Ann", "Bob", "Rex", "Pell", "Paris", "dog"];

/// The builder's replies: names at first, and the dog in the second pass.
pub fn builder(call: &Call) -> String {
    let text = input(call, "TEXT");
    let gleans = call.step == "memcot.glean";
    let named = NAMES.into_iter().filter(|name| text.contains(name) && (*name == "dog") == gleans);
    let named: Vec<&str> = named.collect();
    let speaker = text.split_whitespace().find(|word| ["Ann", "Bob"].contains(word)).unwrap_or("nobody");
    let entity = |name: &&str| json!({ "name": name, "type": "Other", "description": format!("Named by {speaker}") });
    let relation = |pair: &[&str]| json!({ "source": pair[0], "target": pair[1], "keywords": "together", "description": format!("Said by {speaker}") });
    let entities: Vec<_> = named.iter().map(entity).collect();
    let relations: Vec<_> = named.windows(2).map(relation).collect();
    json!({ "entities": entities, "relations": relations }).to_string()
}

/// The conversation with its graph.
fn with_graph() -> Scratch {
    let scratch = talk();
    scratch.ingest(&[], &Rules::new(CONTEXT_TOKENS, builder), &lightrag()).expect("the builder answers everything");
    scratch
}

/// Texts of the entities and relations.
fn derived(scratch: &Scratch) -> Vec<String> {
    let corpus = scratch.corpus();
    let kinds = ["memcot.entity/1", "memcot.relation/1"];
    let mut texts: Vec<String> =
        kinds.iter().flat_map(|kind| corpus.derived(kind).unwrap()).map(|derived| derived.text).collect();
    texts.sort();
    texts
}

#[test]
fn every_turn_is_read_twice_and_never_again() {
    let scratch = talk();
    assert_eq!(scratch.missing(&lightrag()), Missing { calls: 16, vectors: 0 });
    let caller = Rules::new(CONTEXT_TOKENS, builder);
    let events = scratch.ingest(&[], &caller, &lightrag()).expect("the builder answers everything");
    let steps: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Call { step, .. } => Some(step.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(steps, [["memcot.extract"; 8], ["memcot.glean"; 8]].concat());
    assert_eq!(caller.most_at_once(), 8, "all turns at once");
    assert_eq!(scratch.missing(&lightrag()), Missing::default());
    let before = scratch.corpus().digest().unwrap();
    scratch.ingest(&[], &Scripted::new(CONTEXT_TOKENS), &lightrag()).expect("nothing is called");
    assert_eq!(scratch.corpus().digest().unwrap(), before);
    // The hybrid store needs no graph.
    assert_eq!(talk().missing(&settings(Options::default())), Missing::default());
}

#[test]
fn what_turns_say_of_one_name_is_put_together() {
    let want = [
        "Ann\nNamed by Ann",
        "Bob\nNamed by Ann\nNamed by Bob",
        "Paris\nNamed by Bob\nNamed by Ann",
        "Pell\nNamed by Bob",
        "Rex\nNamed by Bob",
        "dog\nNamed by Bob\nNamed by Ann",
        "together\nAnn\nBob\nSaid by Ann",
        "together\nAnn\nParis\nSaid by Ann",
        "together\nBob\nParis\nSaid by Bob",
        "together\nBob\nRex\nSaid by Bob",
        "together\nRex\nPell\nSaid by Bob",
    ];
    let scratch = with_graph();
    assert_eq!(derived(&scratch), want);
    let corpus = scratch.corpus();
    let entities = corpus.derived("memcot.entity/1").unwrap();
    let rex = entities.iter().find(|entity| entity.text.starts_with("Rex")).expect("Rex is an entity");
    assert_eq!(rex.sources.iter().map(|turn| turn.0).collect::<Vec<_>>(), [7, 9]);
}

#[test]
fn gleaning_goes_on_from_the_first_reply() {
    let first = r#"{"entities":[{"name":"Bob","type":"Person","description":"keeps a dog"}],"relations":[]}"#;
    let caller = Scripted::new(CONTEXT_TOKENS).answer("memcot.extract", first).answer("memcot.glean", NOTHING);
    talk().ingest(&[], &caller, &lightrag()).expect("all is scripted");
    let (extract, glean) = (calls_of("memcot.extract", &caller), calls_of("memcot.glean", &caller));
    for (extract, glean) in extract.iter().zip(&glean) {
        let (before, after) = (extract.prompt.segments(), glean.prompt.segments());
        let [reply, more] = &after[before.len()..] else { panic!("a reply and a request follow") };
        assert_eq!(&after[..before.len()], before);
        assert_eq!((reply.role, reply.text.as_str()), (Role::Assistant, first));
        assert!(more.text.contains("overlooked"), "{}", more.text);
    }
    assert_eq!(input(&extract[0], "TEXT"), "(8 May, 2023) Ann (D1:1): Hello Bob, how are you?");
}

const NOTHING: &str = r#"{"entities":[],"relations":[]}"#;

#[test]
fn nonsense_is_no_entity_and_is_not_asked_for_again() {
    let caller = Scripted::new(CONTEXT_TOKENS).answer("memcot.extract", "Bob!").answer("memcot.glean", NOTHING);
    let scratch = talk();
    let events = scratch.ingest(&[], &caller, &lightrag()).expect("nonsense is no error");
    assert_eq!(fallbacks(&events).len(), 8);
    assert_eq!(calls_of("memcot.extract", &caller).len(), 16, "each is asked once more");
    assert_eq!(derived(&scratch), [""; 0]);
    assert_eq!(scratch.missing(&lightrag()), Missing::default());
    let notes = scratch.corpus().notes_named(Layer::Turn, "lightrag.extract/1").unwrap();
    assert!(notes.iter().all(|note| note.text == NOTHING), "{notes:?}");
}

#[test]
fn what_a_reply_that_was_cut_had_completed_is_kept() {
    let check = |entities: &[&str], relations: &[&str], want: &[&str]| {
        let entity = |name: &&str| json!({ "name": name, "type": "Other", "description": "Named." });
        let relation =
            |target: &&str| json!({ "source": "Ann", "target": target, "keywords": "k", "description": "d" });
        let entities: Vec<_> = entities.iter().map(entity).collect();
        let relations: Vec<_> = relations.iter().map(relation).collect();
        let reply = json!({ "entities": entities, "relations": relations }).to_string();
        let caller = Scripted::new(CONTEXT_TOKENS).ended("memcot.extract", reply, Finish::LoopClosed);
        let scratch = Scratch::new();
        let talk = conversation("talk.json", &[("Ann", "Bob has a dog.")]);
        scratch.ingest(&[talk], &caller.answer("memcot.glean", NOTHING), &lightrag()).expect("a cut reply is no error");
        assert_eq!(derived(&scratch), want);
    };
    check(&["Ann", "Bob"], &["Bob", "Rex"], &["Ann\nNamed.", "Bob\nNamed.", "k\nAnn\nBob\nd"]);
    check(&["Ann", "Bo"], &[], &["Ann\nNamed."]);
}

#[test]
fn a_turn_that_is_too_long_to_be_read_is_passed_over_and_said() {
    let long = "word ".repeat(CONTEXT_TOKENS);
    let scratch = Scratch::new();
    let talk = conversation("long.json", &[("Ann", &long), ("Bob", "Yes.")]);
    let events = scratch.ingest(&[talk], &Rules::new(CONTEXT_TOKENS, builder), &lightrag()).expect("it is no error");
    let [(step, reason), (again, _)] = &fallbacks(&events)[..] else { panic!("{:?}", fallbacks(&events)) };
    assert_eq!((*step, *again), ("memcot.extract", "memcot.glean"));
    assert!(reason.starts_with("the turn is passed over: ") && reason.ends_with("in a context of 8192"), "{reason}");
    assert_eq!(derived(&scratch), ["Bob\nNamed by Bob"]);
}

#[test]
fn a_failure_leaves_what_was_answered() {
    let caller = Scripted::new(CONTEXT_TOKENS)
        .answer("memcot.extract", NOTHING)
        .answer("memcot.extract", NOTHING)
        .fail("memcot.extract", CallError::Closed);
    let scratch = talk();
    let failed = scratch.ingest(&[], &caller, &lightrag());
    assert!(matches!(failed, Err(MemoryError::Call(CallError::Closed))), "{failed:?}");
    assert_eq!(scratch.missing(&lightrag()).calls, 14);
    let refused = scratch.ask("Who?", &Scripted::new(CONTEXT_TOKENS), &lightrag()).answer;
    assert!(matches!(refused, Err(MemoryError::NotReady { pending: 14, .. })), "{refused:?}");
}

/// Asks with the given keywords; returns the turns in zoom-in's prompt.
fn check(keywords: &str, k: usize, want: &[i64]) {
    let question = "Where is Rex happy?";
    let answers = [zoom_in("[]"), judge("[]", false, "Break", "[]"), ("answer", "At Pell.".into())];
    let caller =
        answers.into_iter().fold(Scripted::new(CONTEXT_TOKENS), |script, (step, text)| script.answer(step, text));
    let caller = caller.answer("memcot.keywords", keywords);
    let settings = settings(Options { store: MemcotStore::Lightrag, k, ..Options::default() });
    let asked = with_graph().ask(question, &caller, &settings);
    asked.answer.expect("the script is whole");
    let found = asked.events.iter().find_map(|event| match event {
        Event::Search { tool, hits, .. } if tool == "lightrag" => Some(hits.iter().map(|hit| hit.page).collect()),
        _ => None,
    });
    let mut found: Vec<i64> = found.expect("the graph was searched");
    found.sort_unstable();
    assert_eq!(found, want, "{keywords}");
}

#[test]
fn keywords_lead_to_turns_through_entities_and_relations() {
    // The nearest entity is Paris, in turns 10 and 11; half of the five turns are taken by entities.
    check(r#"{"high_level_keywords":[],"low_level_keywords":["Paris Named by Bob Named by Ann"]}"#, 1, &[11]);
    check(r#"{"high_level_keywords":[],"low_level_keywords":["Rex Named by Bob"]}"#, 1, &[9]);
    // The nearest relation is between Rex and Pell, in turns 7 and 9.
    check(r#"{"high_level_keywords":["together Rex Pell Said by Bob"],"low_level_keywords":[]}"#, 2, &[7, 9]);
}

#[test]
fn a_query_without_keywords_is_its_own() {
    let none = r#"{"high_level_keywords":["None"],"low_level_keywords":["N/A"]}"#;
    for reply in [r#"{"high_level_keywords":[],"low_level_keywords":[" ?"]}"#, none, "Rex"] {
        let answers = [zoom_in("[9]"), zoom_out("[]"), judge("[9]", true, "Break", "[]"), respond("At Pell.")];
        let script =
            answers.into_iter().fold(Scripted::new(CONTEXT_TOKENS), |script, (step, text)| script.answer(step, text));
        let caller = script.answer("memcot.keywords", reply);
        let asked = with_graph().ask("Rex is named", &caller, &lightrag());
        assert_eq!(asked.answer.expect("the script is whole").answer, "At Pell.");
        let queries = asked.events.iter().find_map(|event| match event {
            Event::Search { tool, queries, .. } if tool == "lightrag" => Some(queries.clone()),
            _ => None,
        });
        assert_eq!(queries.expect("the graph was searched"), ["Rex is named"; 3]);
    }
}

/// Two conversations that both name Bob.
fn two() -> [Source; 2] {
    let first = conversation("a.json", &[("Ann", "Bob has a dog at Pell.")]);
    let second = conversation("b.json", &[("Bob", "Paris."), ("Bob", "Rex likes Paris.")]);
    [first, second]
}

#[test]
fn a_removed_document_leaves_nothing_behind() {
    let caller = Rules::new(CONTEXT_TOKENS, builder);
    let [first, second] = two();
    let scratch = Scratch::new();
    scratch.ingest(&[first, second.clone()], &caller, &lightrag()).expect("the builder answers everything");
    let alone = Scratch::new();
    alone.ingest(&[second], &caller, &lightrag()).expect("the builder answers everything");
    assert_ne!(derived(&scratch), derived(&alone));

    let mut writer = scratch.writer();
    let document = writer.document_at("a.json").unwrap().expect("it was put in");
    writer.remove_document(document.id).unwrap();
    drop(writer);
    let left = derived(&scratch);
    let pairs = [["Bob", "Paris"], ["Bob", "Rex"], ["Paris", "Rex"]];
    let want = pairs.map(|[one, other]| format!("together\n{one}\n{other}\nSaid by Bob"));
    assert_eq!(left[..2], ["Paris\nNamed by Bob", "Rex\nNamed by Bob"]);
    assert_eq!(left[2..], want, "Bob himself is described by Ann too");
    // Entities named by both are merged again from the remaining conversation, without a call.
    assert_eq!(scratch.missing(&lightrag()).calls, 0);
    assert!(scratch.missing(&lightrag()).vectors > 0);
    scratch.ingest(&[], &Scripted::new(CONTEXT_TOKENS), &lightrag()).expect("nothing is called");
    assert_eq!(derived(&scratch), derived(&alone));
    assert_eq!(scratch.missing(&lightrag()), Missing::default());
}
