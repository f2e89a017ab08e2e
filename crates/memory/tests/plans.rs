//! Plans (equation 3): valid requests, the replacement of invalid plans, and what their tools return, in which order.

use std::sync::Mutex;

use calls::{Call, Scripted};
use memory::{Event, Profile, Settings, gam};
use serde_json::{Value, json};

use crate::rules::{Embeds, Rules};
use crate::scratch::{Asked, Scratch, calls_of, document, fallbacks, input, schema, script, sessions};

const QUESTION: &str = "Who married Ada Brook?";

fn plan(tools: &[&str], keywords: &[&str], queries: &[&str], pages: &[i64]) -> String {
    json!({ "info_needs": ["who"], "tools": tools, "keyword_collection": keywords, "vector_queries": queries,
        "page_index": pages })
    .to_string()
}

/// A whole round with these plans.
fn one_round(plans: &[&str]) -> Scripted {
    let plans: Vec<(&str, &str)> = plans.iter().map(|plan| ("gam.plan", *plan)).collect();
    let rest = [
        ("gam.integrate", r#"{"content":"Tom Reed.","sources":[]}"#),
        ("gam.info_check", r#"{"enough":true}"#),
        ("answer", "Tom Reed."),
    ];
    script(&[&plans[..], &rest].concat())
}

fn ask(plans: &[&str]) -> (Scripted, Asked) {
    let caller = one_round(plans);
    let asked = Scratch::lighthouse().ask(QUESTION, &caller, &Settings::default());
    (caller, asked)
}

/// Tool, queries and pages of every search.
fn searches(events: &[Event]) -> Vec<(&str, Vec<&str>, Vec<i64>)> {
    let searches = events.iter().filter_map(|event| match event {
        Event::Search { tool, queries, hits } => {
            let queries = queries.iter().map(String::as_str).collect();
            Some((tool.as_str(), queries, hits.iter().map(|hit| hit.page).collect()))
        }
        _ => None,
    });
    searches.collect()
}

#[test]
fn a_tool_is_used_if_the_plan_names_it_and_says_what_for() {
    let check = |plan: String, want: &[(&str, &[&str])]| {
        let (_, asked) = ask(&[&plan]);
        let searches = searches(&asked.events);
        let mut used: Vec<(&str, &[&str])> = searches.iter().map(|(tool, queries, _)| (*tool, &queries[..])).collect();
        used.sort_unstable();
        assert_eq!(used, want, "{plan}");
    };
    check(plan(&["keyword"], &["Ada", "lamp"], &["unused"], &[1]), &[("keyword", &["Ada", "lamp"])]);
    check(plan(&["vector"], &["unused"], &["who?", "where?"], &[]), &[("vector", &["who?", "where?"])]);
    check(plan(&["page_index"], &[], &[], &[4, 2]), &[("page_index", &["4", "2"])]);
    check(plan(&["keyword", "vector"], &["lamp"], &[" "], &[]), &[("keyword", &["lamp"])]);
    let all = plan(&["keyword", "page_index", "vector"], &["lamp"], &["who?"], &[3]);
    check(all, &[("keyword", &["lamp"]), ("page_index", &["3"]), ("vector", &["who?"])]);
}

#[test]
fn a_plan_that_is_no_use_is_replaced_by_a_search_for_the_request() {
    let check = |plan: &str, complaint: &str| {
        let (caller, asked) = ask(&[plan, plan]);
        assert_eq!(calls_of("gam.plan", &caller).len(), 2, "{plan}");
        let fallbacks = fallbacks(&asked.events);
        let [("gam.plan", reason)] = fallbacks[..] else { panic!("{fallbacks:?} after {plan}") };
        assert!(reason.contains(complaint), "{reason} after {plan}");
        let searches = searches(&asked.events);
        let used: Vec<(&str, &[&str])> = searches.iter().map(|(tool, queries, _)| (*tool, &queries[..])).collect();
        assert_eq!(used, [("keyword", &[QUESTION][..]), ("vector", &[QUESTION])]);
        assert!(asked.answer.is_ok());
    };
    check("keyword: Ada", "not the JSON that was asked for");
    check(&plan(&["telescope"], &["Ada"], &[], &[]), "not the JSON that was asked for");
    check(r#"{"tools":["keyword"],"keyword_collection":["Ada"]}"#, "not the JSON that was asked for");
    check(&plan(&[], &["Ada"], &["who?"], &[1]), "searches nothing");
    check(&plan(&["keyword"], &[], &["who?"], &[1]), "searches nothing");
    check(&plan(&["keyword", "vector"], &[""], &[" "], &[]), "searches nothing");
    check(&plan(&["keyword", "vector"], &["]"], &["?!"], &[]), "searches nothing");
    check(&plan(&["keyword", "vector"], &["None"], &["N/A"], &[]), "searches nothing");
    check(&plan(&["page_index"], &[], &[], &[3, 99]), "there is no page 99");
    check(&plan(&["keyword"], &["Ada"], &[], &[-1]), "there is no page -1");
}

#[test]
fn a_plan_that_finds_no_page_is_replaced_by_a_search_for_the_request() {
    let (caller, asked) = ask(&[&plan(&["keyword"], &["zebra"], &[], &[])]);
    asked.answer.as_ref().expect("the script is whole");
    let searches = searches(&asked.events);
    let used: Vec<(&str, &[&str], usize)> =
        searches.iter().map(|(tool, queries, pages)| (*tool, &queries[..], pages.len())).collect();
    // Two pages have a word of the question, and every page has a vector.
    let want: [(&str, &[&str], usize); 3] =
        [("keyword", &["zebra"], 0), ("keyword", &[QUESTION], 2), ("vector", &[QUESTION], 4)];
    assert_eq!(used, want);
    assert_eq!(calls_of("gam.plan", &caller).len(), 1);
    assert_eq!(calls_of("gam.integrate", &caller).len(), 1);
}

#[test]
fn the_planner_sees_where_and_when_a_page_was_written() {
    let shown = |scratch: &Scratch, profile| {
        let caller = one_round(&[&plan(&["keyword"], &["Pell"], &[], &[])]);
        let settings = Settings { profile, ..Settings::default() };
        scratch.ask(QUESTION, &caller, &settings).answer.expect("the script is whole");
        input(&calls_of("gam.plan", &caller)[0], "MEMORY")
    };
    let scratch = Scratch::new();
    let said = [("Ann", "I moved to Pell.")];
    let talk = sessions("chats/talk.json", &[("one", "8 May, 2023", &said), ("two", "9 June, 2023", &said)]);
    let memorizer = script(&[("gam.memorize", "Ann moved."), ("gam.memorize", "Ann said it again on 9 June, 2023.")]);
    scratch.ingest(&[talk], &memorizer, &Settings::default()).expect("the script is whole");
    // Turns have ids too.
    let want = "Page 1 (8 May, 2023): Ann moved.\nPage 2: Ann said it again on 9 June, 2023.";
    assert_eq!(shown(&scratch, None), want);
    let memorizer = script(&[("gam.memorize", "A wall fell.")]);
    let wall = document("notes/wall.txt", &["The wall of Pell fell."]);
    scratch.ingest(&[wall], &memorizer, &Settings::default()).expect("the script is whole");
    let want = "Page 1 (chats/talk.json, 8 May, 2023): Ann moved.\n\
        Page 2 (chats/talk.json): Ann said it again on 9 June, 2023.\n\
        Page 5 (notes/wall.txt): A wall fell.";
    assert_eq!(shown(&scratch, None), want);
    let want = "Page 1: Ann moved.\nPage 2: Ann said it again on 9 June, 2023.\nPage 5: A wall fell.";
    assert_eq!(shown(&scratch, Some(Profile::Small)), want);
}

#[test]
fn a_page_that_was_not_shown_is_planned_for_again() {
    let (caller, asked) = ask(&[&plan(&["page_index"], &[], &[], &[99]), &plan(&["page_index"], &[], &[], &[3])]);
    assert_eq!(calls_of("gam.plan", &caller).len(), 2);
    assert_eq!(searches(&asked.events), [("page_index", vec!["3"], vec![3])]);
    assert_eq!(fallbacks(&asked.events), []);
}

#[test]
fn schemas_allow_only_pages_that_were_shown() {
    let (caller, _) = ask(&[&plan(&["page_index"], &[], &[], &[4, 2])]);
    let property = |step, name: &str| schema(&calls_of(step, &caller)[0])["properties"][name].clone();
    let plannable = property("gam.plan", "page_index");
    assert_eq!(plannable, json!({ "type": "array", "items": { "enum": [1, 2, 3, 4] }, "maxItems": 5 }));
    assert_eq!(property("gam.plan", "tools")["items"], json!({ "enum": ["keyword", "vector", "page_index"] }));
    assert_eq!(property("gam.integrate", "sources")["items"], json!({ "enum": [2, 4] }));
    let closed = |step| schema(&calls_of(step, &caller)[0])["additionalProperties"] == Value::Bool(false);
    assert!(["gam.plan", "gam.integrate", "gam.info_check"].into_iter().all(closed));
}

/// The pages of the hits alone, in the order in which the integration agent reads them, with their tool.
fn check_order(plan: String, k: usize, want: &str) {
    let caller = one_round(&[&plan]);
    let settings = Settings::default().with_options(gam::Options { k, ..gam::Options::default() });
    let asked = Scratch::lighthouse().ask(QUESTION, &caller, &settings);
    asked.answer.expect("the script is whole");
    let evidence = input(&calls_of("gam.integrate", &caller)[0], "EVIDENCE_CONTEXT");
    let heads: Vec<&str> =
        evidence.lines().map(|line| &line[..=line.find(')').expect("a page has a number")]).collect();
    assert_eq!(heads.join(" "), want, "{plan}");
}

#[test]
fn planned_pages_come_first_and_the_tools_follow_by_rank() {
    check_order(plan(&["keyword"], &["married boat builder"], &[], &[]), 5, "1. [keyword](3)");
    // As one query of all keywords, page 1 matches three of them and page 4 one.
    check_order(plan(&["keyword"], &["lamp", "evening", "six"], &[], &[]), 5, "1. [keyword](1) 2. [keyword](4)");
    check_order(plan(&["keyword"], &["lamp", "evening", "six"], &[], &[]), 1, "1. [keyword](1)");
    check_order(plan(&["page_index"], &[], &[], &[4, 2, 4]), 5, "1. [page_index](4) 2. [page_index](2)");
    check_order(plan(&["page_index"], &[], &[], &[4, 2, 3]), 2, "1. [page_index](4) 2. [page_index](2)");
    let both = plan(&["page_index", "keyword"], &["married"], &[], &[2, 3, 1]);
    check_order(both, 5, "1. [page_index](2) 2. [page_index](3) 3. [page_index](1)");
    // Both tools find page 2 first, and it is shown once.
    let question = "In November a storm broke the harbour wall near Pell.";
    let both = plan(&["vector", "keyword"], &["harbour"], &[question, question], &[]);
    check_order(both, 1, "1. [keyword](2)");
}

#[test]
fn a_page_scores_as_the_sum_of_its_cosines() {
    let (_, asked) = ask(&[&plan(&["vector"], &[], &["Tom Reed", "boat builder"], &[])]);
    let (_, once) = ask(&[&plan(&["vector"], &[], &["Tom Reed"], &[])]);
    let (_, again) = ask(&[&plan(&["vector"], &[], &["boat builder"], &[])]);
    let score = |asked: &Asked, page: i64| {
        let search = asked.events.iter().find_map(|event| match event {
            Event::Search { hits, .. } => hits.iter().find(|hit| hit.page == page),
            _ => None,
        });
        search.expect("every page has a cosine").score
    };
    for page in 1..=4 {
        assert!((score(&asked, page) - score(&once, page) - score(&again, page)).abs() < 1e-5);
    }
}

#[test]
fn no_tool_waits_for_another() {
    let caller = one_round(&[&plan(&["vector", "keyword", "page_index"], &["lamp"], &["who?"], &[2])]);
    let asked = Scratch::lighthouse().ask_with(QUESTION, &caller, &Embeds(|_: &[String]| Ok(())), &Settings::default());
    let tools: Vec<&str> = searches(&asked.events).into_iter().map(|(tool, ..)| tool).collect();
    assert_eq!(tools, ["keyword", "page_index", "vector"]);
}

#[test]
fn a_long_memo_is_planned_over_in_parts_side_by_side() {
    let scratch = Scratch::new();
    let texts: Vec<String> = (1..=9).map(|page| format!("Chapter {page} tells of the year 190{page}.")).collect();
    let sections: Vec<&str> = texts.iter().map(String::as_str).collect();
    // A quarter of the context is 512 tokens; the line of an abstract has 163 tokens.
    let memorizer = Scripted::new(2048).answer("gam.memorize", "word ".repeat(160));
    let settings = Settings::default();
    scratch.ingest(&[document("book.txt", &sections)], &memorizer, &settings).expect("all is scripted");

    let plans = Mutex::new(Vec::new());
    let caller = Rules::new(2048, |call: &Call| match call.step {
        "gam.plan" => {
            plans.lock().expect("no thread panicked").push(call.clone());
            let tried_before = call.prompt.messages().len() > 2;
            match (input(call, "MEMORY").split(':').next(), tried_before) {
                (Some("Page 1"), _) => plan(&["keyword"], &["1902", "1903"], &[], &[]),
                (Some("Page 4"), false) => plan(&["page_index"], &[], &[], &[5, 9]),
                (Some("Page 4"), true) => plan(&["keyword", "page_index"], &["1903", "1904"], &[], &[5]),
                _ => plan(&["page_index"], &[], &[], &[1]),
            }
        }
        "gam.integrate" => r#"{"content":"Four.","sources":[]}"#.into(),
        "gam.info_check" => r#"{"enough":true}"#.into(),
        _ => "1904".into(),
    });
    let asked = scratch.ask("Which year is chapter four?", &caller, &settings);
    asked.answer.expect("every prompt fits");
    assert_eq!(caller.most_at_once(), 3);

    // Each part shows three pages; only those can be requested.
    let plans = plans.into_inner().expect("no thread panicked");
    let parts = [[1, 2, 3], [4, 5, 6], [7, 8, 9]];
    for (call, pages) in plans.iter().zip(parts) {
        let allowed = &schema(call)["properties"]["page_index"]["items"];
        assert_eq!(*allowed, json!({ "enum": pages }));
        let memory = input(call, "MEMORY");
        let shown: Vec<&str> = memory.lines().map(|line| line.split(':').next().unwrap_or_default()).collect();
        assert_eq!(shown, pages.map(|page| format!("Page {page}")));
    }
    // The second plan first requested page 9, and the third page 1 twice: both were replaced.
    assert_eq!(plans.len(), 5);
    assert_eq!(fallbacks(&asked.events), [("gam.plan", "there is no page 1")]);
    let mut searches = searches(&asked.events);
    searches.sort_unstable();
    let used: Vec<(&str, &[&str])> = searches.iter().map(|(tool, queries, _)| (*tool, &queries[..])).collect();
    let question = "Which year is chapter four?";
    let want: [(&str, &[&str]); 3] =
        [("keyword", &["1902", "1903", question, "1904"]), ("page_index", &["5"]), ("vector", &[question])];
    assert_eq!(used, want);
}
