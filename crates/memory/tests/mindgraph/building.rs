//! The build stage: one call per block, each with the current graph, and how replies are handled.

use calls::{Call, CallError, Finish, Scripted};
use memory::mindgraph::{self, Focus, Match, Options, Target};
use memory::{Event, Layout, MemoryError, Missing, Profile, Settings};
use sources::Source;

use super::{EDITS, QUESTION, SENTENCES, blocks, builder, built, focused, graph, pell, settings, shown};
use crate::rules::Rules;
use crate::scratch::{CONTEXT_TOKENS, Scratch, calls_of, document, fallbacks, input, schema};

#[test]
fn a_description_may_be_as_long_as_a_paragraph() {
    let (scratch, caller) = (Scratch::new(), builder(&EDITS));
    scratch.ingest(&[pell()], &caller, &settings()).expect("every block has a reply");
    let add_node =
        schema(&calls_of("mindgraph.build", &caller)[0])["properties"]["operations"]["items"]["anyOf"][0]["properties"]
            .clone();
    assert_eq!(add_node["content"]["maxLength"], 1050);
    assert_eq!(add_node["id"]["pattern"], "^[a-z][a-z0-9_]{0,63}$");
}

#[test]
fn every_block_is_read_once_with_the_graph_so_far() {
    let scratch = Scratch::new();
    let caller = builder(&EDITS);
    let events = scratch.ingest(&[pell()], &caller, &settings()).expect("the script is whole");
    let calls = calls_of("mindgraph.build", &caller);
    assert_eq!(calls.len(), 3, "one call a block and nothing else: {:?}", caller.steps());
    for (number, (call, sentence)) in calls.iter().zip(SENTENCES).enumerate() {
        let block = input(call, "TEXT_BLOCK");
        assert!(block.starts_with(&format!("(block {}/3)\n\"\"\"\n{sentence}", number + 1)), "{block}");
        assert_eq!(input(call, "QUESTION"), QUESTION);
        assert_eq!(call.sampling.temperature, 0.0);
    }
    assert_eq!(input(&calls[0], "GRAPH_STATE"), "(empty)");
    let so_far =
        "{\"nodes\":[\n{\"id\":\"ada_brook\",\"type\":\"entity\",\"content\":\"Keeper at Pell.\"}],\n\"edges\":[]}";
    assert_eq!(input(&calls[1], "GRAPH_STATE"), so_far);
    let graph = graph(&scratch, QUESTION);
    let edges = ["tom_reed mended wall of ada_brook".to_owned(), "ada_brook married at wedding".to_owned()];
    assert_eq!(shown(&graph), (vec!["ada_brook", "tom_reed", "wedding"], edges.to_vec()));
    assert_eq!(graph.node("tom_reed").map(|node| node.content.as_str()), Some("A boat builder, her husband."));
    assert_eq!(graph.stats(), "3 nodes, 2 edges, built from 3 chunks");
    assert_eq!(blocks(&events), [(1, 1, 0, vec![]), (2, 2, 0, vec![]), (3, 3, 0, vec![])]);
}

#[test]
fn quotes_have_their_places_in_the_document() {
    let scratch = built();
    let corpus = scratch.corpus();
    let document = &corpus.documents().expect("the corpus can be read")[0];
    let text = corpus.document_text(document.id).expect("the corpus can be read");
    let graph = graph(&scratch, QUESTION);
    let places: Vec<(&str, &str, Match)> = graph
        .nodes
        .iter()
        .flat_map(|node| node.sources.iter().map(move |source| (node, source)))
        .map(|(node, source)| {
            let place = source.place.expect("all quotes are there");
            assert!(corpus.passage(source.block).expect("it is a block").span.contains(place.span));
            (node.id.as_str(), &text[place.span.bytes()], place.how)
        })
        .collect();
    let want = [
        ("ada_brook", "Ada Brook keeps", Match::Exact),
        ("tom_reed", "Tom Reed", Match::Exact),
        ("tom_reed", "married Tom Reed", Match::Exact),
        ("wedding", "in June 1911", Match::Exact),
    ];
    assert_eq!(places, want);
}

#[test]
fn the_form_allows_quotes_of_the_block_and_known_ids() {
    let scratch = Scratch::new();
    let caller = builder(&EDITS);
    scratch.ingest(&[pell()], &caller, &settings()).expect("the script is whole");
    let calls = calls_of("mindgraph.build", &caller);
    let forms = |call: &Call| {
        schema(call)["properties"]["operations"]["items"]["anyOf"].as_array().cloned().unwrap_or_default()
    };
    let [first, second] = [forms(&calls[0]), forms(&calls[1])];
    assert_eq!((first.len(), second.len()), (2, 4), "nothing can be edited before there is something");
    let quoted = second[0]["properties"]["src"][calls::schema::QUOTE_OF].as_str().expect("a quote is of the block");
    assert_eq!(quoted.trim(), SENTENCES[1]);
    assert_eq!(second[2]["properties"]["id"]["enum"], serde_json::json!(["ada_brook"]));
}

/// Builds from one reply per block; returns the graph and the fallbacks.
fn check(replies: &[&str], calls: usize, nodes: &[&str], skipped: usize, want: &[(usize, usize, usize, &[&str])]) {
    let scratch = Scratch::new();
    let caller = builder(replies);
    let events = scratch.ingest(&[pell()], &caller, &settings()).expect("nonsense is no error");
    let found = graph(&scratch, QUESTION);
    assert_eq!(caller.seen().len(), calls, "{replies:?}");
    assert_eq!((shown(&found).0, found.skipped), (nodes.to_vec(), skipped), "{replies:?}");
    let blocks = blocks(&events);
    let blocks: Vec<(usize, usize, usize, Vec<&str>)> = blocks
        .iter()
        .map(|(number, edits, unverified, refused)| {
            (*number, *edits, *unverified, refused.iter().map(String::as_str).collect())
        })
        .collect();
    let want: Vec<(usize, usize, usize, Vec<&str>)> = want
        .iter()
        .map(|(number, edits, unverified, refused)| (*number, *edits, *unverified, refused.to_vec()))
        .collect();
    assert_eq!(blocks, want, "{replies:?}");
    assert_eq!(fallbacks(&events).len(), skipped);
    assert_eq!(scratch.missing(&settings()), Missing::default(), "a skipped block is done with");
}

const NOTHING: &str = r#"{"operations":[]}"#;

#[test]
fn replies_that_make_no_sense_are_asked_for_once_more_and_then_skipped() {
    let none: &[&str] = &[];
    let rest = [(2, 0, 0, none), (3, 0, 0, none)];
    let first = |edits, unverified, refused| [&[(1, edits, unverified, refused)][..], &rest].concat();
    check(&["I think:", EDITS[0], NOTHING], 4, &["ada_brook"], 0, &first(1, 0, none));
    check(&["I think:", "{}", NOTHING], 4, &[], 1, &first(0, 0, none));
    let unread = r#"{"operations":[{"op":"rename_node","id":"x"},{"op":"add_node","id":"a","type":"claim","content":"x","src":"Pell alone"}]}"#;
    let refused: &[&str] = &[
        "no operation: unknown variant `rename_node`, expected one of `add_node`, `add_edge`, `edit_node`, `delete_node`",
    ];
    check(&[unread, NOTHING], 3, &["a"], 0, &first(1, 0, refused));
    let invented = r#"{"operations":[{"op":"add_node","id":"a","type":"claim","content":"x","src":"a lighthouse in Spain"},{"op":"delete_node","id":"b"}]}"#;
    let absent: &[&str] = &["there is no node `b`"];
    check(&[invented, NOTHING], 3, &["a"], 0, &first(2, 1, absent));
}

#[test]
fn a_description_that_refuses_in_words_is_no_node() {
    let refusal = r#"{"operations":[{"op":"add_node","id":"husband","type":"claim","content":"The text does not say whom she married.","src":"keeps the old lighthouse"}]}"#;
    let refused: &[&str] = &["`husband` only states that the text has no answer"];
    check(&[refusal, NOTHING], 3, &[], 0, &[(1, 0, 0, refused), (2, 0, 0, &[]), (3, 0, 0, &[])]);
}

#[test]
fn the_text_of_an_error_is_not_kept() {
    let scratch = Scratch::new();
    scratch.ingest(&[pell()], &builder(&["no json", "no json", NOTHING]), &settings()).expect("nonsense is no error");
    let corpus = scratch.corpus();
    let block = corpus.passages(store::Layer::Block).expect("the corpus can be read")[0].id;
    let notes = corpus.notes(block).expect("the corpus can be read");
    assert_eq!(notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>(), [r#"{"skipped":true,"edits":[]}"#]);
}

#[test]
fn a_build_goes_on_where_a_call_failed() {
    let scratch = Scratch::new();
    let fails =
        Scripted::new(CONTEXT_TOKENS).answer("mindgraph.build", EDITS[0]).fail("mindgraph.build", CallError::Closed);
    scratch.ingest(&[pell()], &fails, &settings()).expect_err("the second call fails");
    assert_eq!(scratch.missing(&settings()), Missing { calls: 2, vectors: 0 });
    let goes_on = builder(&EDITS[1..]);
    scratch.ingest(&[], &goes_on, &settings()).expect("the script is whole");
    assert_eq!(goes_on.seen().len(), 2);
    assert_eq!(graph(&scratch, QUESTION), graph(&built(), QUESTION));
    // Another question gets another graph, and this one is unchanged.
    let other = focused(Focus::Question, &["Who mended the wall?"]);
    assert_eq!(scratch.missing(&other), Missing { calls: 3, vectors: 0 });
    let silent = builder(&[]);
    scratch.ingest(&[pell()], &silent, &settings()).expect("all is done");
    assert_eq!(silent.seen().len(), 0);
}

#[test]
fn questions_of_a_set_read_each_block_together() {
    let questions = [QUESTION, "Who mended the wall?", "When was the wedding?", QUESTION];
    let caller = Rules::new(CONTEXT_TOKENS, |call: &Call| {
        let about = input(call, "QUESTION").split_whitespace().next().map(str::to_lowercase).unwrap_or_default();
        format!(r#"{{"operations":[{{"op":"add_node","id":"{about}","type":"claim","content":"x","src":""}}]}}"#)
    });
    let scratch = Scratch::new();
    let settings = focused(Focus::Set, &questions);
    let events = scratch.ingest(&[pell()], &caller, &settings).expect("rules always answer");
    assert_eq!(caller.most_at_once(), 3, "a question that is there twice is one");
    let order: Vec<usize> = blocks(&events).into_iter().map(|(number, ..)| number).collect();
    assert_eq!(order, [1, 1, 1, 2, 2, 2, 3, 3, 3]);
    for (question, id) in [(QUESTION, "whom"), ("Who mended the wall?", "who"), ("When was the wedding?", "when")] {
        assert_eq!(shown(&graph(&scratch, question)).0, [id]);
    }
    assert_eq!(scratch.missing(&settings), Missing::default());
}

#[test]
fn a_block_names_its_document_where_there_are_several() {
    let first_lines = |documents: &[Source], settings: &Settings| {
        let caller = builder(&EDITS);
        Scratch::new().ingest(documents, &caller, settings).expect("the script is whole");
        let blocks = caller.seen().into_iter().map(|call| input(&call, "TEXT_BLOCK"));
        blocks.map(|block| block.lines().next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let pages = [document("notes/ada.txt", &SENTENCES[..1]), document("notes/tom.txt", &SENTENCES[1..2])];
    let want = ["(block 1/2, from notes/ada.txt)", "(block 2/2, from notes/tom.txt)"];
    assert_eq!(first_lines(&pages, &settings()), want);
    assert_eq!(first_lines(&pages[..1], &settings()), ["(block 1/1)"]);
    let small = Settings { profile: Some(Profile::Small), ..settings() };
    assert_eq!(first_lines(&pages, &small), ["(block 1/2)", "(block 2/2)"]);
}

#[test]
fn a_call_that_fails_does_not_take_the_others_along() {
    let scratch = Scratch::new();
    let settings = focused(Focus::Set, &[QUESTION, "Who mended the wall?"]);
    let fails =
        Scripted::new(CONTEXT_TOKENS).answer("mindgraph.build", EDITS[0]).fail("mindgraph.build", CallError::Closed);
    scratch.ingest(&[pell()], &fails, &settings).expect_err("the second question fails");
    assert_eq!(scratch.missing(&settings), Missing { calls: 5, vectors: 0 });
}

#[test]
fn what_calls_share_comes_first() {
    let parts = |focus, questions: &[&str]| {
        let caller = builder(&EDITS);
        let settings = Settings { layout: Layout::SharedFirst, ..focused(focus, questions) };
        Scratch::new().ingest(&[pell()], &caller, &settings).expect("the script is whole");
        let content = caller.seen()[1].prompt.messages()[1].content.clone();
        let mut parts: Vec<(usize, &str)> = ["QUESTION", "GRAPH_STATE", "TEXT_BLOCK"]
            .map(|name| (content.find(&format!("{name}:\n")).expect("it is shown"), name))
            .to_vec();
        parts.sort_unstable();
        parts.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    assert_eq!(parts(Focus::Question, &[QUESTION]), ["QUESTION", "GRAPH_STATE", "TEXT_BLOCK"]);
    assert_eq!(parts(Focus::Set, &[QUESTION, "Who?"]), ["TEXT_BLOCK", "QUESTION", "GRAPH_STATE"]);
}

#[test]
fn a_graph_without_a_question_serves_any() {
    let scratch = Scratch::new();
    let settings = focused(Focus::None, &[]);
    let caller = builder(&EDITS);
    scratch.ingest(&[pell()], &caller, &settings).expect("the script is whole");
    assert!(input(&caller.seen()[0], "QUESTION").starts_with("(Not known yet."));
    let any = mindgraph::graph(&scratch.corpus(), &Target::Any).expect("the corpus can be read");
    assert_eq!(any.nodes.len(), 3);
    let answers =
        crate::scratch::script(&[("mindgraph.answer", r#"{"answer":"Tom.","cited_nodes":[],"confidence":"low"}"#)]);
    for question in [QUESTION, "What is at Pell?"] {
        assert_eq!(scratch.ask(question, &answers, &settings).answer.expect("it is ready").answer, "Tom.");
    }
}

#[test]
fn a_graph_that_is_not_built_answers_nothing() {
    let scratch = Scratch::new();
    let caller = builder(&EDITS);
    scratch.ingest(&[pell()], &caller, &focused(Focus::Question, &[])).expect("nothing is called");
    assert_eq!(caller.seen().len(), 0);
    for settings in [settings(), focused(Focus::Question, &[]), focused(Focus::None, &[])] {
        match scratch.ask(QUESTION, &caller, &settings).answer {
            Err(MemoryError::NotReady { pending, pages, .. }) => assert_eq!((pending, pages), (3, 3)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_graph_larger_than_its_room_loses_the_contents_of_its_oldest_nodes() {
    let replies = [twelve(0), twelve(12), NOTHING.to_owned()];
    let caller = replies.iter().fold(Scripted::new(1600), |script, reply| script.answer("mindgraph.build", reply));
    let scratch = Scratch::new();
    let events = scratch.ingest(&[pell()], &caller, &settings()).expect("it fits");
    let Some(Event::Graph { nodes, without_content, edges_left_out, budget_tokens, .. }) =
        events.iter().find(|event| matches!(event, Event::Graph { .. }))
    else {
        panic!("{events:?}")
    };
    assert_eq!((*nodes, *edges_left_out), (24, 0));
    let state = input(&calls_of("mindgraph.build", &caller)[2], "GRAPH_STATE");
    let bare = state.lines().filter(|line| line.starts_with("{\"id\"") && !line.contains("content")).count();
    assert_eq!(bare, *without_content);
    assert!((1..24).contains(&bare), "{bare} of 24");
    assert!(
        state.contains("{\"id\":\"n0\",\"type\":\"stat\"}")
            && serde_json::from_str::<serde_json::Value>(&state).is_ok()
    );
    assert!(calls::Tokens::count_tokens(&caller, calls::Agent::Builder, &state) <= *budget_tokens);
}

/// A builder's reply that adds twelve nodes with long contents, the first of them with this number.
fn twelve(first: usize) -> String {
    let node = |number| {
        format!(r#"{{"op":"add_node","id":"n{number}","type":"stat","content":"{}","src":""}}"#, "word ".repeat(40))
    };
    format!(r#"{{"operations":[{}]}}"#, (first..first + 12).map(node).collect::<Vec<_>>().join(","))
}

#[test]
fn a_description_that_the_builder_was_not_shown_is_added_to() {
    let married = r#"{"op":"add_node","id":"ada_brook","type":"entity","content":"Keeper at Pell, married Tom Reed in 1911.","src":""}"#;
    let edit =
        r#"{"operations":[{"op":"edit_node","id":"ada_brook","content":"Sells the lamp.","src":"She married"}]}"#;
    let add = r#"{"operations":[{"op":"add_node","id":"ada_brook","type":"entity","content":"Sells the lamp.","src":"She married"}]}"#;
    let only = format!(r#"{{"operations":[{married}]}}"#);
    let with = |others: &str| others.replace('[', &format!("[{married},"));
    let added = "Keeper at Pell, married Tom Reed in 1911. Sells the lamp.";
    // Shown with its content, without it, and not at all.
    let cases = [
        ([&only, NOTHING, edit], true, "Sells the lamp."),
        ([&with(&twelve(0)), &twelve(12), edit], true, added),
        ([&with(&twelve(0)), &twelve(12), add], true, added),
        ([&with(&many(500)), NOTHING, add], false, added),
    ];
    for (replies, shown, want) in cases {
        let caller = replies.iter().fold(Scripted::new(1600), |script, reply| script.answer("mindgraph.build", *reply));
        let scratch = Scratch::new();
        scratch.ingest(&[pell()], &caller, &settings()).expect("it fits");
        let state = input(&calls_of("mindgraph.build", &caller)[2], "GRAPH_STATE");
        assert_eq!(state.contains("\"ada_brook\""), shown, "{state}");
        assert_eq!(state.contains("married Tom Reed"), want != added, "{state}");
        let graph = graph(&scratch, QUESTION);
        let ada = graph.node("ada_brook").expect("it was added");
        assert_eq!((ada.content.as_str(), ada.sources.len()), (want, 2));
    }
}

#[test]
fn a_node_that_is_added_again_keeps_what_was_known_of_it() {
    let again = r#"{"operations":[{"op":"add_node","id":"ada_brook","type":"claim","content":"Married Tom Reed.","src":"She married"}]}"#;
    let (scratch, caller) = (Scratch::new(), builder(&[EDITS[0], NOTHING, again]));
    scratch.ingest(&[pell()], &caller, &settings()).expect("the script is whole");
    assert!(input(&calls_of("mindgraph.build", &caller)[2], "GRAPH_STATE").contains("Keeper at Pell."), "it was shown");
    let graph = graph(&scratch, QUESTION);
    let ada = graph.node("ada_brook").expect("it was added");
    assert_eq!((ada.content.as_str(), ada.sources.len()), ("Keeper at Pell. Married Tom Reed.", 2));
}

#[test]
fn the_number_of_operations_is_what_a_reply_has_room_for() {
    for (context, output_tokens, most) in [(8192, 1024, 12), (32_768, 4096, 51), (131_072, 4096, 51)] {
        let caller = Scripted::new(context).answer("mindgraph.build", NOTHING);
        Scratch::new().ingest(&[pell()], &caller, &settings()).expect("it fits");
        let call = &caller.seen()[0];
        assert_eq!(call.limits.max_output_tokens, output_tokens);
        assert_eq!(schema(call)["properties"]["operations"]["maxItems"], most);
        let text: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
        assert!(text.contains(&format!("The list may have {most} objects")), "{text}");
    }
}

#[test]
fn the_complete_operations_of_a_proposal_that_was_cut_twice_are_used() {
    let nodes = |script: Scripted, reply: &str, finish| {
        let cut = script.ended("mindgraph.build", reply, finish).ended("mindgraph.build", reply, finish);
        let caller = cut.answer("mindgraph.build", NOTHING);
        let scratch = Scratch::new();
        let events = scratch.ingest(&[pell()], &caller, &settings()).expect("a cut reply is no error");
        assert_eq!(fallbacks(&events).len(), 1, "{finish:?}");
        assert_eq!(caller.seen().len(), 4, "it is requested twice");
        let corpus = scratch.corpus();
        let block = corpus.passages(store::Layer::Block).expect("the corpus can be read")[0].id;
        let note = corpus.notes(block).expect("the corpus can be read")[0].text.clone();
        let graph = graph(&scratch, QUESTION);
        (shown(&graph).0.join(" "), graph.skipped, note, blocks(&events)[0].clone())
    };
    let script = || Scripted::new(CONTEXT_TOKENS);
    for finish in [Finish::ClosedEarly, Finish::LoopClosed, Finish::Length] {
        let (ids, skipped, note, (_, edits, _, unused)) = nodes(script(), &many(5), finish);
        assert_eq!((ids.as_str(), skipped, edits), ("n0 n1 n2 n3", 0, 4));
        assert!(note.starts_with(r#"{"skipped":false,"cut":true,"edits":["#), "{note}");
        assert_eq!(unused, ["the reply was cut: its last operation is not used"]);
        let nothing = r#"{"skipped":true,"edits":[]}"#;
        for reply in [&many(1), NOTHING, r#"{"operations":[{"op""#] {
            let (ids, skipped, note, _) = nodes(script(), reply, finish);
            assert_eq!((ids.as_str(), skipped, note.as_str()), ("", 1, nothing), "{reply}");
        }
    }
    let node = r#"{"op":"add_node","id":"n0","type":"stat","content":"x","src":""}"#;
    let again = format!(r#"{{"operations":[{node},{node},{node}]}}"#);
    let (ids, _, _, (_, edits, ..)) = nodes(script(), &again, Finish::LoopClosed);
    assert_eq!((ids.as_str(), edits), ("n0", 1), "an operation that is repeated is used once");
}

/// A builder's reply that adds nodes with minimal content.
pub fn many(nodes: usize) -> String {
    let node = |number| format!(r#"{{"op":"add_node","id":"n{number}","type":"stat","content":"x","src":""}}"#);
    format!(r#"{{"operations":[{}]}}"#, (0..nodes).map(node).collect::<Vec<_>>().join(","))
}

#[test]
fn a_graph_whose_ids_alone_are_too_many_shows_the_newest() {
    let caller = [many(500), NOTHING.to_owned(), NOTHING.to_owned()]
        .iter()
        .fold(Scripted::new(1600), |script, reply| script.answer("mindgraph.build", reply));
    let scratch = Scratch::new();
    let events = scratch.ingest(&[pell()], &caller, &settings()).expect("it fits");
    assert_eq!(fallbacks(&events), []);
    assert_eq!(scratch.missing(&settings()), Missing::default());
    let call = &calls_of("mindgraph.build", &caller)[1];
    let state: serde_json::Value = serde_json::from_str(&input(call, "GRAPH_STATE")).expect("it is JSON");
    let ids: Vec<&serde_json::Value> =
        state["nodes"].as_array().into_iter().flatten().map(|node| &node["id"]).collect();
    assert!((10..500).contains(&ids.len()), "{} nodes are shown", ids.len());
    assert_eq!((ids[0].as_str(), ids[ids.len() - 1].as_str()), (Some(&*format!("n{}", 500 - ids.len())), Some("n499")));
    assert_eq!(state["nodes"][0]["content"], serde_json::Value::Null);
    let form = &schema(call)["properties"]["operations"]["items"]["anyOf"];
    for operation in [2, 3] {
        assert_eq!(form[operation]["properties"]["id"]["enum"], serde_json::json!(ids));
    }
    let cut = events.iter().find_map(|event| match event {
        Event::Graph { without_content, nodes_left_out, .. } => Some((*without_content, *nodes_left_out)),
        _ => None,
    });
    assert_eq!(cut, Some((500, 500 - ids.len())));
    // One more node would not fit.
    let tokens = calls::Tokens::prompt_tokens(&caller, call) + call.limits.reply_tokens();
    assert!((1600 - 20..=1600).contains(&tokens), "{tokens}");
}

#[test]
fn a_block_that_cannot_be_read_is_skipped_and_the_build_goes_on() {
    let long = "word ".repeat(900);
    let settings = settings().with_options(Options { block_tokens: Some(1000), ..settings().options() });
    let caller = EDITS[..1].iter().fold(Scripted::new(1024), |script, reply| script.answer("mindgraph.build", *reply));
    let scratch = Scratch::new();
    let sources = [document("a.txt", &[&long]), document("b.txt", &[SENTENCES[0]])];
    let events = scratch.ingest(&sources, &caller, &settings).expect("what is too long is no error");
    let [("mindgraph.build", reason)] = fallbacks(&events)[..] else { panic!("{:?}", fallbacks(&events)) };
    assert!(reason.contains("the context holds 1024"), "{reason}");
    let graph = graph(&scratch, QUESTION);
    assert_eq!((graph.blocks, graph.skipped, shown(&graph).0), (2, 1, vec!["ada_brook"]));
    assert_eq!(scratch.missing(&settings), Missing::default(), "a skipped block is done with");
}

#[test]
fn blocks_are_cut_for_the_model_and_stay_as_they_were() {
    let text = "one two three four five six seven eight ".repeat(120);
    let source = || document("long.txt", &[text.trim()]);
    let settings = settings().with_options(Options { block_tokens: None, ..settings().options() });
    let cut = |scratch: &Scratch, context_tokens| {
        let caller = Scripted::new(context_tokens).answer("mindgraph.build", NOTHING);
        scratch.ingest(&[source()], &caller, &settings).expect("blocks fit");
        let blocks = scratch.corpus().passages(store::Layer::Block).expect("the corpus can be read");
        (blocks.len(), blocks.iter().map(|block| block.tokens).max(), caller.seen().len())
    };
    let scratch = Scratch::new();
    assert_eq!(cut(&scratch, 2400), (2, Some(600), 2), "a quarter of the context");
    assert_eq!(cut(&scratch, 40_000), (2, Some(600), 0), "a larger model reads them too");
    assert_eq!(cut(&scratch, 1600), (3, Some(400), 3), "a smaller one does not");
}
