//! The baselines: `rag`, the nearest pages and one call, and `direct`, the whole text and one call.

use calls::{CallError, Scripted};
use memory::direct::Direct;
use memory::rag::Rag;
use memory::{Event, MemoryError, Method, SearchTool, Settings, rag};
use store::{Bm25, IndexText, Layer, LexicalIndex};

use crate::rules::Embeds;
use crate::scratch::{CONTEXT_TOKENS, Scratch, calls_of, document, input, script};

fn settings(method: &'static dyn Method) -> Settings {
    Settings { method, ..Settings::default() }
}

/// The four pages of the lighthouse without any memory.
fn lighthouse() -> Scratch {
    let scratch = Scratch::lighthouse();
    scratch.ingest(&[], &script(&[]), &settings(&Rag)).expect("nothing is called");
    scratch
}

/// The pages that rag shows for a question, and the pages that it leaves out.
fn check(question: &str, settings: Settings, shown: &[&str], not: &[i64]) {
    let caller = script(&[("answer", "Tom Reed built boats.")]);
    let asked = lighthouse().ask(question, &caller, &Settings { method: &Rag, ..settings });
    let answer = asked.answer.expect("the script is whole");
    assert_eq!(caller.steps(), ["answer"]);
    assert_eq!(answer.usage.calls, 1);
    let call = calls_of("answer", &caller).remove(0);
    assert_eq!(input(&call, "CONTEXT").lines().collect::<Vec<_>>(), shown, "{question}");
    let left_out = asked.events.iter().find_map(|event| match event {
        Event::Evidence { left_out, .. } => Some(left_out.as_slice()),
        _ => None,
    });
    assert_eq!(left_out, Some(not), "{question}");
    let cited: Vec<i64> = answer.citations.iter().map(|place| place.page).collect();
    assert!(cited.iter().all(|page| !not.contains(page)), "{cited:?}");
}

const WALL: &str = "[search](2) In November a storm broke the harbour wall near Pell.";
const BOATS: &str = "[search](3) Ada Brook married the boat builder Tom Reed in 1911.";

#[test]
fn rag_shows_the_nearest_pages_by_rank_under_the_budget() {
    let storm = "What did the storm near Pell do to the harbour wall in November?";
    let nearest = |k| Settings::default().with_options(rag::Options { k, ..rag::Options::default() });
    check(storm, nearest(1), &[&format!("1. {WALL}")], &[]);
    check("the boat builder Tom Reed", nearest(1), &[&format!("1. {BOATS}")], &[]);
    // Both lists rank the page first, so it must be first.
    let budget = |evidence_tokens| Settings {
        evidence_tokens: Some(evidence_tokens),
        ..Settings::default().with_options(rag::Options { k: 1, ..rag::Options::default() })
    };
    // The scripted tokenizer counts 19 tokens in its line.
    check(storm, budget(19), &[&format!("1. {WALL}")], &[]);
    check(storm, budget(18), &[], &[2]);
}

#[test]
fn rag_reads_the_pages_in_the_order_of_their_combined_scores() {
    let scratch = lighthouse();
    let asked = scratch.ask("Ada Brook and the lamp", &script(&[("answer", "None.")]), &settings(&Rag));
    let found = asked.events.iter().find_map(|event| match event {
        Event::Search { tool, hits, .. } if tool == "hybrid" => Some(hits.clone()),
        _ => None,
    });
    let found = found.expect("both tools are searched at once");
    let lexical = keyword_search("Ada Brook and the lamp", &scratch);
    // The scripted embedder tells the pages apart, so both tools have a share: of BM25's best page at least 0.55.
    let best = found.iter().find(|hit| hit.page == lexical[0]).expect("it is found");
    assert!((0.55..1.0).contains(&best.score), "{found:?}");
    assert!(found.is_sorted_by(|a, b| a.score >= b.score), "{found:?}");
    let packed = asked.events.iter().find_map(|event| match event {
        Event::Evidence { pages, .. } => Some(pages.clone()),
        _ => None,
    });
    assert_eq!(packed, Some(found.iter().map(|hit| hit.page).collect()));
}

#[test]
fn rag_searches_by_words_by_meaning_or_by_both() {
    let scratch = Scratch::new();
    // The scripted embedder counts letters, so an anagram is the nearest page.
    let pages = ["Silent enlist.", "Listen to my old dog bark.", "Quick jump."];
    scratch.ingest(&[document("a.txt", &pages)], &script(&[]), &settings(&Rag)).expect("nothing is called");
    let check = |search, tool: &str, pages: &[i64]| {
        let settings = settings(&Rag).with_options(rag::Options { k: 2, search });
        let events = scratch.ask("listen", &script(&[("answer", "None.")]), &settings).events;
        let searches = events.iter().filter_map(|event| match event {
            Event::Search { tool, hits, .. } => Some((tool.as_str(), hits.iter().map(|hit| hit.page).collect())),
            _ => None,
        });
        assert_eq!(searches.collect::<Vec<(&str, Vec<i64>)>>(), [(tool, pages.to_vec())]);
    };
    check(SearchTool::Fused, "hybrid", &[2, 1]);
    check(SearchTool::Dense, "vector", &[1, 2]);
    check(SearchTool::Bm25, "keyword", &[2]);
}

#[test]
fn rag_that_searches_by_words_alone_embeds_neither_pages_nor_questions() {
    let scratch = Scratch::new();
    let by = |search| settings(&Rag).with_options(rag::Options { search, ..rag::Options::default() });
    let refuses = Embeds(|_: &[String]| Err(CallError::Closed));
    let (source, words) = (document("a.txt", &["The wall fell."]), by(SearchTool::Bm25));
    scratch.ingest_with(&[source], &script(&[]), &refuses, &words).expect("nothing is embedded");
    // An answer with statements is compared with its sources by meaning too, whatever the search.
    let caller = script(&[("answer", "Not in the documents.")]);
    scratch.ask_with("What fell?", &caller, &refuses, &words).answer.expect("nothing is embedded");
    assert_eq!(input(&calls_of("answer", &caller)[0], "CONTEXT"), "1. [search](1) The wall fell.");
    let tools = [SearchTool::Bm25, SearchTool::Dense, SearchTool::Fused];
    assert_eq!(tools.map(|tool| scratch.missing(&by(tool)).vectors), [0, 1, 1]);
}

#[test]
fn direct_shows_every_document_whole() {
    let scratch = Scratch::new();
    let sources = [document("a.txt", &["One.", "Two."]), document("b.txt", &["Three."])];
    scratch.ingest(&sources, &script(&[]), &settings(&Direct)).expect("nothing is called");
    let caller = script(&[("answer", "Three.")]);
    let answer = scratch.ask("How many?", &caller, &settings(&Direct)).answer.expect("the script is whole");
    assert_eq!(answer.answer, "Three.");
    let text = caller.seen()[0].prompt.messages()[1].content.clone();
    let shown = "DOCUMENT a.txt\n\nOne.\n\nTwo.\n\nDOCUMENT b.txt\n\nThree.";
    assert!(text.starts_with(&format!("CONTEXT:\n{shown}\n\nQUESTION:\nHow many?\n\n")), "{text}");
}

#[test]
fn pages_of_several_documents_are_found_by_their_names_and_shown_with_their_paths() {
    let scratch = Scratch::new();
    let texts = ["Lunch was late.", "Nothing was decided.", "Coffee was cold."];
    let paths = ["notes/monday.txt", "notes/board_meeting.txt", "notes/friday.txt"];
    let sources: Vec<_> = paths.iter().zip(texts).map(|(path, text)| document(path, &[text])).collect();
    let one = settings(&Rag).with_options(rag::Options { k: 1, ..rag::Options::default() });
    scratch.ingest(&sources, &script(&[]), &one).expect("nothing is called");
    let caller = script(&[("answer", "Nothing.")]);
    let found = keyword_search("What happened at the board meeting?", &scratch);
    assert_eq!(found, [2], "no page has a word of the question");
    scratch.ask("Nothing decided", &caller, &one).answer.expect("the script is whole");
    let shown = input(&calls_of("answer", &caller)[0], "CONTEXT");
    assert_eq!(shown, "1. [search](2) (notes/board_meeting.txt) Nothing was decided.");
}

/// The pages that keywords find.
fn keyword_search(query: &str, scratch: &Scratch) -> Vec<i64> {
    let index = LexicalIndex::open(&scratch.corpus(), Layer::Page, IndexText::Content, Bm25::default());
    index.expect("the corpus can be read").search(query, 5).iter().map(|hit| hit.passage.0).collect()
}

#[test]
fn a_text_that_does_not_fit_is_refused_with_both_numbers() {
    let scratch = Scratch::new();
    let text = "word ".repeat(CONTEXT_TOKENS);
    scratch.ingest(&[document("a.txt", &[&text])], &script(&[]), &settings(&Direct)).expect("nothing is called");
    let refused = scratch.ask("How many?", &script(&[("answer", "Many.")]), &settings(&Direct)).answer;
    let Err(MemoryError::Call(CallError::TooLong { step: "answer", prompt_tokens, max_output_tokens, context_tokens })) =
        refused
    else {
        panic!("{refused:?}")
    };
    assert!(prompt_tokens > CONTEXT_TOKENS && context_tokens == CONTEXT_TOKENS);
    // One token more of room suffices for an answer.
    let fits = Scripted::new(prompt_tokens + max_output_tokens).answer("answer", "Many.");
    scratch.ask("How many?", &fits, &settings(&Direct)).answer.expect("it fits to the token");
}
