//! The answer stage: turns, tools, invalid turns, and the end of the loop.

use calls::{Call, CallError, Finish, Scripted, reading};
use memory::mindgraph::{Confidence, Focus, Options};
use memory::{Answer, Event, MemoryError, Profile, Settings, Support};

use super::{QUESTION, SENTENCES, builder, built, focused, settings};
use crate::scratch::{Asked, CONTEXT_TOKENS, Scratch, calls_of, document, fallbacks, input, schema, sessions};

const DONE: &str = r#"{"answer":" Tom Reed. ","cited_nodes":["wedding","tom_reed","wedding"],"confidence":"high"}"#;
const LOOK: &str = r#"{"tool_calls":[{"tool":"lookup_source","node_id":"wedding"}]}"#;

fn answers(turns: &[&str]) -> Scripted {
    turns.iter().fold(Scripted::new(CONTEXT_TOKENS), |script, turn| script.answer("mindgraph.answer", *turn))
}

/// Asks about the three sentences; returns the caller and the outcome.
fn ask(turns: &[&str], max_rounds: usize) -> (Scripted, Asked) {
    let caller = answers(turns);
    let settings = settings().with_options(Options { max_rounds, ..settings().options() });
    let asked = built().ask(QUESTION, &caller, &settings);
    (caller, asked)
}

/// The text that follows the model's own turn in the last call.
fn told(caller: &Scripted) -> String {
    let last = caller.seen().pop().expect("a call was made");
    last.prompt.messages().pop().map(|message| message.content).unwrap_or_default()
}

fn given(asked: Asked) -> Answer {
    asked.answer.expect("nonsense is no error")
}

#[test]
fn an_answer_cites_the_sentences_around_its_nodes_quotes_that_support_it() {
    let done = DONE.replace(" Tom Reed. ", " She married Tom Reed in June 1911. ");
    let (caller, asked) = ask(&[&done], 40);
    let event = asked.events.iter().find(|event| matches!(event, Event::Answer { .. }));
    let cited = vec!["wedding".to_owned(), "tom_reed".to_owned()];
    let step = "mindgraph.answer".to_owned();
    assert_eq!(event, Some(&Event::Answer { step, cited, confidence: Confidence::High }));
    let answer = given(asked);
    assert_eq!(answer.confidence, Some(Confidence::High));
    assert_eq!(answer.answer, "She married Tom Reed in June 1911.");
    assert_eq!(answer.cited_nodes, ["wedding", "tom_reed"]);
    assert_eq!(caller.steps(), ["mindgraph.answer"]);
    let quotes: Vec<(&str, i64)> = answer.citations.iter().map(|cited| (cited.quote.as_str(), cited.page)).collect();
    assert_eq!(quotes, [(SENTENCES[2], 3)]);
    let text = SENTENCES.join("\n\n");
    for cited in &answer.citations {
        let there: String = text.chars().skip(cited.start as usize).take((cited.end - cited.start) as usize).collect();
        assert_eq!(there, cited.quote);
    }
}

#[test]
fn every_source_of_a_node_and_the_edges_between_cited_nodes_are_evidence() {
    let married = r#"{"operations":[{"op":"add_edge","source":"tom_reed","target":"ada_brook","relation":"married","src":"She married Tom Reed in Pell"}]}"#;
    let by_edge = [super::EDITS[0], super::EDITS[1], married];
    for (edits, nodes) in [(super::EDITS, r#"["tom_reed"]"#), (by_edge, r#"["ada_brook","tom_reed"]"#)] {
        let scratch = Scratch::new();
        scratch.ingest(&[super::pell()], &builder(&edits), &settings()).expect("the script is whole");
        let reply = r#"{"answer":"She married Tom Reed in June 1911.","cited_nodes":NODES,"confidence":"high"}"#;
        let answer = given(scratch.ask(QUESTION, &answers(&[&reply.replace("NODES", nodes)]), &settings()));
        let quotes: Vec<&str> = answer.citations.iter().map(|cited| cited.quote.as_str()).collect();
        assert_eq!(quotes, [SENTENCES[2]], "{nodes}");
    }
}

#[test]
fn a_passage_that_was_looked_up_is_evidence_for_an_answer_that_cites_no_node() {
    let done = r#"{"answer":"Tom Reed the boat builder mended her broken wall.","cited_nodes":[],"confidence":"high"}"#;
    let quotes = |turns: &[&str]| -> Vec<(String, i64)> {
        given(ask(turns, 40).1).citations.into_iter().map(|cited| (cited.quote, cited.page)).collect()
    };
    // The quote of the node is in another sentence of the passage.
    let look = LOOK.replace("wedding", "ada_brook");
    assert_eq!(quotes(&[&look, done]), [(SENTENCES[1].to_owned(), 2)]);
    assert_eq!(quotes(&[done]), []);
}

#[test]
fn a_message_that_a_node_quotes_has_its_day() {
    let mut mail = document("mail.mbox", &["Ann sold her boat yesterday."]);
    mail.sections[0].time = Some("2023-07-09 08:00 UTC".to_owned());
    let question = "When did Ann sell her boat?";
    let edits =
        r#"{"operations":[{"op":"add_node","id":"boat","type":"event","content":"Sold.","src":"sold her boat"}]}"#;
    let (scratch, settings) = (Scratch::new(), focused(Focus::Question, &[question]));
    scratch.ingest(&[mail], &builder(&[edits]), &settings).expect("the script is whole");
    let done = r#"{"answer":"Ann sold her boat on 8 July 2023.","cited_nodes":["boat"],"confidence":"high"}"#;
    let answer = given(scratch.ask(question, &answers(&[done]), &settings));
    assert_eq!(answer.statements[0].verdict, Support::Supported, "{:?}", answer.statements);
}

#[test]
fn a_small_model_reads_the_pages_of_the_graphs_quotes() {
    let small = Settings { profile: Some(Profile::Small), ..settings() };
    let caller = Scripted::new(CONTEXT_TOKENS).with_adapter(reading::ADAPTER).answer("answer.read", "Tom Reed");
    let answer = given(built().ask(QUESTION, &caller, &small));
    assert_eq!((answer.short.as_deref(), answer.confidence), (Some("Tom Reed"), None));
    assert!(caller.steps().iter().all(|step| *step == "answer.read"), "{:?}", caller.steps());
    assert!(answer.statements.iter().all(|statement| statement.citation.is_some()));

    let scratch = Scratch::new();
    let nothing = r#"{"operations":[]}"#;
    scratch.ingest(&[super::pell()], &builder(&[nothing; 3]), &small).expect("an empty graph is a graph");
    let caller = Scripted::new(CONTEXT_TOKENS).with_adapter(reading::ADAPTER);
    let answer = given(scratch.ask(QUESTION, &caller, &small));
    assert_eq!((answer.answer.as_str(), answer.abstained), ("The graph does not say.", Some(true)));
    assert_eq!((caller.steps().len(), answer.note.is_some()), (0, true));
}

#[test]
fn a_refusal_in_words_abstains_and_states_nothing() {
    for words in ["The graph does not say.", "I could not find this in the documents.", "The documents do not say."] {
        let reply = format!(r#"{{"answer":"{words}","cited_nodes":["tom_reed"],"confidence":"low"}}"#);
        let answer = given(built().ask(QUESTION, &answers(&[&reply]), &settings()));
        assert_eq!((answer.answer.as_str(), answer.abstained), (words, Some(true)));
        assert_eq!((answer.statements.len(), answer.citations.len()), (0, 0), "{words}");
    }
    let reply = r#"{"answer":"Tom Reed","cited_nodes":["tom_reed"],"confidence":"low"}"#;
    assert_eq!(given(built().ask(QUESTION, &answers(&[reply]), &settings())).abstained, None);
}

#[test]
fn the_first_turn_shows_the_graph_its_size_and_the_question() {
    let (caller, _) = ask(&[DONE], 40);
    let call = &caller.seen()[0];
    assert!(input(call, "MIND_GRAPH").contains("\"relation\":\"married at\""));
    assert_eq!(input(call, "GRAPH_STATS"), "3 nodes, 2 edges, built from 3 chunks");
    assert_eq!(input(call, "QUESTION"), QUESTION);
    let ids = serde_json::json!(["ada_brook", "tom_reed", "wedding"]);
    let [tools, answer] =
        schema(call)["anyOf"].as_array().expect("there are two ways").clone().try_into().expect("two");
    assert_eq!(tools["properties"]["tool_calls"]["items"]["anyOf"][0]["properties"]["node_id"]["enum"], ids);
    assert_eq!(answer["properties"]["cited_nodes"]["items"]["enum"], ids);
}

#[test]
fn a_passage_is_shown_around_its_quote() {
    let (caller, asked) = ask(&[LOOK, DONE], 40);
    let call = r#"{"tool":"lookup_source","node_id":"wedding"}"#;
    let text = SENTENCES.join("\n\n");
    let end = text.chars().count();
    let want = format!(
        "{call}:\npell.txt, characters 0 to {end}\n\"\"\"\n{text}\n\"\"\"\n\nUse tools or answer QUESTION, as JSON."
    );
    assert_eq!(told(&caller), want);
    let searched = asked.events.iter().any(|event| matches!(event, Event::Search { tool, queries, .. } if tool == "lookup_source" && *queries == ["wedding"]));
    assert!(searched);
    given(asked);
}

#[test]
fn a_passage_has_a_thousand_characters_with_the_quote_in_their_middle() {
    let long = format!("{} the needle lies here {}", "é灯 ".repeat(700), "é灯 ".repeat(700));
    let edit = |src: &str| {
        format!(r#"{{"operations":[{{"op":"add_node","id":"needle","type":"claim","content":"x","src":"{src}"}}]}}"#)
    };
    let passage = |src: &str| {
        let scratch = Scratch::new();
        let settings = settings().with_options(Options { block_tokens: Some(9000), ..settings().options() });
        let edit = edit(src);
        let builds = Scripted::new(40_000).answer("mindgraph.build", edit);
        scratch.ingest(&[document("long.txt", &[&long])], &builds, &settings).expect("the script is whole");
        let look = r#"{"tool_calls":[{"tool":"lookup_source","node_id":"needle"}]}"#;
        let caller = answers(&[look, r#"{"answer":"x","cited_nodes":[],"confidence":"low"}"#]);
        given(scratch.ask(QUESTION, &caller, &settings));
        let told = told(&caller);
        let [before, text, _] = told.split("\n\"\"\"").collect::<Vec<_>>()[..] else { panic!("{told}") };
        (before.to_owned(), text.trim_start_matches('\n').to_owned())
    };
    let (_, text) = passage("the needle lies here");
    assert_eq!(text.chars().count(), 1000);
    assert_eq!(text.chars().take_while(|c| *c != 't').count(), 490);
    let (head, text) = passage("nowhere to be found in it");
    assert!(head.ends_with("characters 0 to 1000, the beginning of its block, as its quote was not found"), "{head}");
    assert_eq!(text.chars().count(), 1000);
}

#[test]
fn a_lookup_shows_the_passages_of_all_sources_of_a_node() {
    let far = "é灯 ".repeat(700);
    let text = format!("Ada was a child. {far} Ada was old.");
    let edits = r#"{"operations":[{"op":"add_node","id":"ada","type":"entity","content":"A child.","src":"Ada was a child"},{"op":"edit_node","id":"ada","content":"Old.","src":"Ada was old"}]}"#;
    let scratch = Scratch::new();
    let settings = settings().with_options(Options { block_tokens: Some(9000), ..settings().options() });
    let builds = Scripted::new(40_000).answer("mindgraph.build", edits);
    scratch.ingest(&[document("long.txt", &[&text])], &builds, &settings).expect("the script is whole");
    let look = r#"{"tool_calls":[{"tool":"lookup_source","node_id":"ada"}]}"#;
    let caller = answers(&[look, r#"{"answer":"x","cited_nodes":[],"confidence":"low"}"#]);
    given(scratch.ask(QUESTION, &caller, &settings));
    let told = told(&caller);
    assert!(told.contains("Ada was a child") && told.contains("Ada was old"), "{told}");
    assert_eq!(told.matches("long.txt, characters").count(), 2, "{told}");
}

/// A builder's reply with a node for each of these quotes, or with one node that all of them are sources of.
fn quoting(quotes: &[String], one: bool) -> String {
    let node = |quote: &String| {
        let id = if one { "ada" } else { quote };
        format!(r#"{{"op":"add_node","id":"{id}","type":"entity","content":"x","src":"{quote}"}}"#)
    };
    format!(r#"{{"operations":[{}]}}"#, quotes.iter().map(node).collect::<Vec<_>>().join(","))
}

/// Six numbered places of a text that are far apart, and a corpus of the text whose graph quotes them, with its settings.
fn places(one: bool) -> (Vec<String>, Scratch, Settings) {
    let quotes: Vec<String> = (0..6).map(|number| format!("place_{number}")).collect();
    let text: Vec<String> = quotes.iter().map(|quote| format!("{quote} {}", "é灯 ".repeat(400))).collect();
    let scratch = Scratch::new();
    let builds = Scripted::new(40_000).answer("mindgraph.build", quoting(&quotes, one));
    let settings = settings().with_options(Options { block_tokens: Some(9000), ..settings().options() });
    scratch.ingest(&[document("long.txt", &[&text.concat()])], &builds, &settings).expect("the script is whole");
    (quotes, scratch, settings)
}

#[test]
fn a_lookup_shows_the_oldest_and_the_newest_of_many_sources() {
    let (quotes, scratch, settings) = places(true);
    let look = r#"{"tool_calls":[{"tool":"lookup_source","node_id":"ada"}]}"#;
    let caller = answers(&[look, r#"{"answer":"x","cited_nodes":[],"confidence":"low"}"#]);
    given(scratch.ask(QUESTION, &caller, &settings));
    let told = told(&caller);
    let shown: Vec<bool> = quotes.iter().map(|quote| told.contains(quote)).collect();
    assert_eq!(shown, [true, true, false, false, true, true], "{told}");
    assert!(told.contains("2 more sources of ada are not shown"), "{told}");
}

#[test]
fn results_that_fit_are_shown_and_the_others_are_named() {
    let (quotes, scratch, settings) = places(false);
    let look = |quotes: &[String]| {
        let call = |quote: &String| format!(r#"{{"tool":"lookup_source","node_id":"{quote}"}}"#);
        format!(r#"{{"tool_calls":[{}]}}"#, quotes.iter().map(call).collect::<Vec<_>>().join(","))
    };
    let turns =
        [look(&quotes[..4]), look(&quotes[4..]), r#"{"answer":"x","cited_nodes":[],"confidence":"low"}"#.into()];
    let caller = turns.iter().fold(Scripted::new(2400), |script, turn| script.answer("mindgraph.answer", turn));
    let asked = scratch.ask(QUESTION, &caller, &settings);
    let calls = calls_of("mindgraph.answer", &caller);
    let told = |call: &Call| call.prompt.messages().pop().expect("it was told").content;
    let first = told(&calls[1]);
    let shown = first.matches("long.txt, characters").count();
    assert!((2..4).contains(&shown), "{shown}: {first}");
    assert!(quotes[..shown].iter().all(|quote| first.contains(&format!("{quote} é"))), "{first}");
    let left_out: Vec<String> =
        quotes[shown..4].iter().map(|quote| format!(r#"{{"tool":"lookup_source","node_id":"{quote}"}}"#)).collect();
    let note = format!("There is no room for the results of {}.", left_out.join(", "));
    assert!(first.ends_with(&format!("{note}\n\nUse tools or answer QUESTION, as JSON.")), "{first}");
    // What was given or has no room is not offered again.
    let offered = &schema(&calls[1])["anyOf"][0]["properties"]["tool_calls"]["items"]["anyOf"][0]["properties"];
    assert_eq!(offered["node_id"]["enum"], serde_json::json!(quotes[4..]));
    // A turn of which no result fits is the last but one.
    assert!(told(&calls[2]).starts_with("There is no room for more passages.\n\nAnswer QUESTION now"));
    assert!(schema(&calls[2]).get("anyOf").is_none());
    assert_eq!(fallbacks(&asked.events)[0], ("mindgraph.answer", note.as_str()));
    assert_eq!(given(asked).answer, "x");
}

#[test]
fn a_graph_that_fills_its_view_leaves_room_for_the_index_reports_and_passages() {
    let (groups, size) = (80, 4);
    let id = |group: usize, member: usize| format!("node_{group}_{member}");
    let node = |at: usize| {
        let id = id(at / size, at % size);
        format!(
            r#"{{"op":"add_node","id":"{id}","type":"claim","content":"{}","src":"Ada Brook keeps"}}"#,
            "word ".repeat(60)
        )
    };
    let edge = |at: usize| {
        let (from, to) = (id(at / size, 0), id(at / size, at % size));
        format!(r#"{{"op":"add_edge","source":"{from}","target":"{to}","relation":"knows","src":"Ada"}}"#)
    };
    let all: Vec<String> = (0..groups * size).map(node).chain((0..groups * size).map(edge)).collect();
    let edits = format!(r#"{{"operations":[{}]}}"#, all.join(","));
    let scratch = Scratch::new();
    let nothing = r#"{"operations":[]}"#;
    scratch.ingest(&[super::pell()], &builder(&[&edits, nothing, nothing]), &settings()).expect("the script is whole");
    let finding = format!(r#"{{"summary":"x","explanation":"{}"}}"#, "word ".repeat(75));
    let report = format!(
        r#"{{"title":"A group","summary":"{}","rating":1,"rating_explanation":"x","findings":[{}]}}"#,
        "word ".repeat(150),
        vec![finding; 10].join(",")
    );
    let index = r#"{"tool_calls":[{"tool":"subgraph_summary","mode":"index"}]}"#;
    let detail = r#"{"tool_calls":[{"tool":"subgraph_summary","mode":"detail","subgraph_id":0},{"tool":"subgraph_summary","mode":"detail","subgraph_id":1}]}"#;
    let look = r#"{"tool_calls":[{"tool":"lookup_source","node_id":"node_79_3"}]}"#;
    let done = r#"{"answer":"x","cited_nodes":[],"confidence":"low"}"#;
    let turns = [index, detail, look, done];
    let caller = turns.iter().fold(Scripted::new(32_768), |script, turn| script.answer("mindgraph.answer", *turn));
    let caller = caller.answer("mindgraph.report", report);
    let asked = scratch.ask(QUESTION, &caller, &settings());
    assert!(asked.events.iter().any(|event| matches!(event, Event::Graph { step, .. } if step == "mindgraph.answer")));
    let calls = calls_of("mindgraph.answer", &caller);
    assert_eq!(calls.len(), turns.len());
    let told = |call: &Call| call.prompt.messages().pop().expect("it was told").content;
    assert_eq!(told(&calls[1]).matches("\"title\":\"A group\"").count(), groups);
    assert_eq!(told(&calls[2]).matches("A group (rating 1)").count(), 2);
    assert!(told(&calls[3]).contains("pell.txt, characters"), "{}", told(&calls[3]));
    given(asked);
}

#[test]
fn a_passage_of_a_conversation_has_the_time_of_its_session() {
    let scratch = Scratch::new();
    let talk = sessions("talk.txt", &[("Session 1", "8 May 2023", &[("Ada", "I mended the wall yesterday.")])]);
    let edits = r#"{"operations":[{"op":"add_node","id":"wall","type":"event","content":"Mended.","src":"mended the wall yesterday"}]}"#;
    let settings = settings().with_options(Options { block_tokens: Some(9000), ..settings().options() });
    scratch.ingest(&[talk], &builder(&[edits]), &settings).expect("the script is whole");
    let look = r#"{"tool_calls":[{"tool":"lookup_source","node_id":"wall"}]}"#;
    let caller = answers(&[look, r#"{"answer":"x","cited_nodes":[],"confidence":"low"}"#]);
    given(scratch.ask(QUESTION, &caller, &settings));
    let told = told(&caller);
    assert!(told.contains("\ntalk.txt, 8 May 2023, characters 0 to "), "{told}");
}

#[test]
fn a_turn_that_was_cut_is_neither_a_call_nor_an_answer() {
    let script = |turns: &[(&str, Finish)]| {
        turns.iter().fold(Scripted::new(CONTEXT_TOKENS), |script, (turn, finish)| {
            script.ended("mindgraph.answer", *turn, *finish)
        })
    };
    for cut in [Finish::ClosedEarly, Finish::LoopClosed] {
        // Each cut turn is requested twice.
        let caller = script(&[(LOOK, cut), (LOOK, cut), (DONE, Finish::Stop)]);
        let asked = built().ask(QUESTION, &caller, &settings());
        assert!(told(&caller).starts_with("error: this turn was cut before its end"), "{}", told(&caller));
        assert_eq!(given(asked).answer, "Tom Reed.");
        // Nor is it in the last round.
        let settings = settings().with_options(Options { max_rounds: 1, ..settings().options() });
        let asked = built().ask(QUESTION, &script(&[(DONE, cut)]), &settings);
        let fallbacks = fallbacks(&asked.events).into_iter().map(|(step, _)| step.to_owned()).collect::<Vec<_>>();
        assert_eq!(fallbacks, ["mindgraph.answer"]);
        let answer = given(asked);
        assert_eq!((answer.answer.as_str(), answer.confidence), ("The graph does not say.", Some(Confidence::Low)));
        assert_eq!(answer.cited_nodes, Vec::<String>::new());
    }
}

/// Turns of which the first is invalid; returns the error text that the model receives.
fn check(turn: &str, complaint: &str) {
    let (caller, asked) = ask(&[turn, DONE], 40);
    assert_eq!(caller.steps().len(), 2, "{turn}");
    assert!(told(&caller).starts_with(complaint), "{turn}: {}", told(&caller));
    assert_eq!(given(asked).answer, "Tom Reed.");
}

#[test]
fn turns_that_make_no_sense_are_told_so() {
    check("I would look it up.", "error: this is not the JSON that was asked for (");
    check(r#"{"tool_calls":[]}"#, "error: this is neither a call of tools nor an answer (missing field `answer`)");
    check(
        r#"{"tool_calls":[{"tool":"lookup_source","node_id":"weding"}]}"#,
        r#"{"tool":"lookup_source","node_id":"weding"}: error: there is no node `weding`, did you mean `wedding`?"#,
    );
    check(
        r#"{"tool_calls":[{"tool":"search","query":"x"}]}"#,
        r#"{"tool":"search","query":"x"}: error: this is no call of a tool ("#,
    );
    check(
        r#"{"tool_calls":[{"tool":"subgraph_summary","mode":"detail","subgraph_id":7}]}"#,
        r#"{"tool":"subgraph_summary","mode":"detail","subgraph_id":7}: error: subgraph_id must be a number below 1"#,
    );
    check(
        r#"{"answer":"Tom.","cited_nodes":["tom"],"confidence":"high"}"#,
        "error: there is no node `tom`, did you mean `tom_reed`?",
    );
}

#[test]
fn a_turn_may_hold_several_calls_and_none_is_made_twice() {
    let two = r#"{"tool_calls":[{"tool":"lookup_source","node_id":"wedding"},{"tool":"lookup_source","node_id":"ada_brook"},{"tool":"lookup_source","node_id":"wedding"}]}"#;
    let (caller, asked) = ask(&[two, DONE], 40);
    let told = told(&caller);
    assert_eq!(told.matches("pell.txt, characters").count(), 2, "{told}");
    assert!(
        told.contains(r#"{"tool":"lookup_source","node_id":"wedding"}: you have this already, see above"#),
        "{told}"
    );
    given(asked);
}

#[test]
fn the_last_round_answers() {
    for rounds in [1, 2, 5, 40] {
        let mut turns = vec![LOOK; rounds - 1];
        turns.push(DONE);
        let (caller, asked) = ask(&turns, rounds);
        assert_eq!(given(asked).answer, "Tom Reed.");
        let calls = caller.seen();
        assert_eq!(calls.len(), rounds);
        let can_look = |call: &Call| schema(call).get("anyOf").is_some();
        assert!(calls[..rounds - 1].iter().all(can_look) && !can_look(&calls[rounds - 1]));
        if rounds > 1 {
            assert!(told(&caller).ends_with("\n\nAnswer QUESTION now, as JSON."), "{}", told(&caller));
        }
    }
}

#[test]
fn a_model_that_never_answers_is_taken_at_its_word() {
    for (turn, reason) in [(LOOK, "there are no more tools"), ("Tom Reed, I think.", "error: this is not the JSON")] {
        let (caller, asked) = ask(&[turn], 3);
        assert_eq!(caller.seen().len(), 3);
        let fallbacks = fallbacks(&asked.events);
        assert!(fallbacks.len() == 1 && fallbacks[0].1.starts_with(reason), "{fallbacks:?}");
        let answer = given(asked);
        assert_eq!((answer.answer.as_str(), answer.confidence), (turn, Some(Confidence::Low)));
        assert!(answer.citations.is_empty());
    }
    let unknown = r#"{"answer":"Tom.","cited_nodes":["tom","tom_reed"],"confidence":"medium"}"#;
    let answer = given(ask(&[unknown], 2).1);
    assert_eq!((answer.answer.as_str(), answer.citations.len()), ("Tom.", 0), "what does not answer is not cited");
    assert_eq!(answer.cited_nodes, ["tom_reed"]);
}

#[test]
fn a_chat_that_is_full_ends_with_an_answer() {
    let scratch = built();
    let looks = ["wedding", "ada_brook", "tom_reed"]
        .map(|id| format!(r#"{{"tool_calls":[{{"tool":"lookup_source","node_id":"{id}"}}]}}"#));
    let turns =
        looks.iter().cycle().take(30).fold(Scripted::new(2400), |script, turn| script.answer("mindgraph.answer", turn));
    let caller = turns.answer("mindgraph.answer", DONE);
    let asked = scratch.ask(QUESTION, &caller, &settings());
    asked.answer.expect("no prompt is too long");
    let calls = caller.seen();
    assert!((3..20).contains(&calls.len()), "{} calls", calls.len());
    assert!(schema(&calls[calls.len() - 1]).get("anyOf").is_none(), "the last had to answer");
    assert!(
        told(&caller).ends_with("There is no room for more passages.\n\nAnswer QUESTION now, as JSON."),
        "{}",
        told(&caller)
    );
}

#[test]
fn only_nodes_that_were_shown_can_be_named() {
    let scratch = Scratch::new();
    let builds = builder(&[&super::building::many(500), r#"{"operations":[]}"#, r#"{"operations":[]}"#]);
    scratch.ingest(&[super::pell()], &builds, &settings()).expect("the script is whole");
    let detail = r#"{"tool_calls":[{"tool":"subgraph_summary","mode":"detail","subgraph_id":0}]}"#;
    let done = r#"{"answer":"It is not there.","cited_nodes":["n0"],"confidence":"low"}"#;
    // No report is valid.
    let caller = [detail, done]
        .iter()
        .fold(Scripted::new(6000), |script, turn| script.answer("mindgraph.answer", *turn))
        .answer("mindgraph.report", "none");
    let asked = scratch.ask(QUESTION, &caller, &settings());
    let calls = calls_of("mindgraph.answer", &caller);
    let citable = |call: &Call| {
        let form = schema(call);
        let answer = form["anyOf"].get(1).unwrap_or(form);
        answer["properties"]["cited_nodes"]["items"]["enum"].as_array().cloned().unwrap_or_default()
    };
    let first = citable(&calls[0]);
    assert!((10..500).contains(&first.len()) && !first.contains(&"n0".into()), "{} ids", first.len());
    let shown = input(&calls[0], "MIND_GRAPH");
    assert!(first.iter().all(|id| shown.contains(&format!("\"id\":{id}"))) && !shown.contains("\"n0\""));
    // Nodes named by a tool count as seen, as far as there is room for them.
    assert!(
        told(&caller).contains("n0, n1, n2, n3, n4, n5, n6, n7, n8, n9 and 490 more (rating 0)"),
        "{}",
        told(&caller)
    );
    assert!(told(&caller).contains("n62, n63 and 436 more"), "{}", told(&caller));
    assert!(citable(&calls[1]).contains(&"n0".into()) && !citable(&calls[1]).contains(&"n64".into()));
    assert_eq!(given(asked).answer, "It is not there.");
    let report = &calls_of("mindgraph.report", &caller)[0];
    assert!(input(report, "COMMUNITY").contains("\"n499\""));
}

#[test]
fn a_failure_of_the_engine_is_an_error_in_any_turn() {
    for before in [&[][..], &[LOOK], &[LOOK, "I think so."]] {
        let caller = answers(before).fail("mindgraph.answer", CallError::Closed);
        let asked = built().ask(QUESTION, &caller, &settings());
        assert!(matches!(asked.answer, Err(MemoryError::Call(CallError::Closed))), "{:?}", asked.answer);
        assert_eq!(caller.seen().len(), before.len() + 1);
        assert_eq!(fallbacks(&asked.events), []);
    }
}

#[test]
fn an_empty_graph_has_no_tools() {
    let scratch = Scratch::new();
    scratch.ingest(&[super::pell()], &builder(&[r#"{"operations":[]}"#]), &settings()).expect("the script is whole");
    let caller = answers(&[r#"{"answer":"It is not there.","cited_nodes":[],"confidence":"low"}"#]);
    assert_eq!(given(scratch.ask(QUESTION, &caller, &settings())).answer, "It is not there.");
    assert_eq!(input(&caller.seen()[0], "MIND_GRAPH"), "(empty)");
    assert!(schema(&caller.seen()[0]).get("anyOf").is_none());
}
