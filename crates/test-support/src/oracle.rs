//! A scripted model for needles in a haystack (RULER): it reads its prompts and recognises needles.
//!
//! It plans with the keys of the question, notes needles in its prompt, decides that they are enough if each key has
//! a value (never, if there may be several), asks further questions about missing keys, and answers with the values in its
//! notes. A needle that is cut by the end of a page is found by the number of the next page.

use std::collections::BTreeSet;

use calls::Call;
use serde_json::{Value, json};

use crate::prompt::{input, schema};

/// The reply to a call.
pub fn reply(call: &Call) -> String {
    match call.step {
        // No text that reveals the needle.
        "gam.memorize" => "Sentences about this and that.".to_owned(),
        "gam.plan" => plan(call).to_string(),
        "gam.integrate" => integrate(call).to_string(),
        "gam.info_check" => json!({ "enough": is_enough(call) }).to_string(),
        "gam.follow_up" => follow_up(call).to_string(),
        "answer" => answer(call),
        other => panic!("there is no rule for {other}"),
    }
}

/// The keys that a question names: "... for A, B, and C mentioned in the provided text?"
fn keys(question: &str) -> Vec<&str> {
    let from = question.find(" for ").map_or(0, |at| at + " for ".len());
    let until = question.find(" mentioned in").unwrap_or(question.len());
    question[from..until].split(", ").map(|key| key.trim_start_matches("and ")).collect()
}

/// Values of a key in a text, in its order.
fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let before = format!("{key} is: ");
    let value = |(at, _): (usize, &str)| {
        let rest = &text[at + before.len()..];
        rest.find('.').map(|end| &rest[..end])
    };
    text.match_indices(&before).filter_map(value).collect()
}

/// The end of a text from the key of a needle on, if its sentence does not end.
fn cut_off<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.rfind(key).map(|at| text[at..].trim_end()).filter(|rest| !rest.contains('.'))
}

const CUT: &str = "The page with this number ends too early: ";

/// The pages that are cut off according to the notes, with their last words.
fn cut_pages<'a>(notes: &'a str) -> Vec<(i64, &'a str)> {
    let cut = |rest: &'a str| {
        let (page, words) = rest.split_once(' ')?;
        Some((page.parse().ok()?, words.split(';').next()?))
    };
    notes.split(CUT).skip(1).filter_map(cut).collect()
}

fn plan(call: &Call) -> Value {
    let question = input(call, "QUESTION");
    let keys = keys(&question);
    let shown = schema(call)["properties"]["page_index"]["items"]["enum"].as_array();
    let next =
        |(page, _): (i64, &str)| Some(page + 1).filter(|next| shown.is_some_and(|all| all.contains(&json!(next))));
    let pages: Vec<i64> = cut_pages(&question).into_iter().filter_map(next).collect();
    let tools = if pages.is_empty() { vec!["keyword", "vector"] } else { vec!["page_index"] };
    let keywords: Vec<&str> = ["special magic"].into_iter().chain(keys.iter().copied()).collect();
    let queries: Vec<String> =
        keys.iter().map(|key| format!("One of the special magic values for {key} is:")).collect();
    json!({ "info_needs": ["values"], "tools": tools, "keyword_collection": keywords, "vector_queries": queries,
        "page_index": pages })
}

/// A page as evidence shows it: `1. [keyword](7) text`.
fn pages(evidence: &str) -> Vec<(i64, &str)> {
    let mut pages: Vec<(i64, &str)> = Vec::new();
    let mut rest = evidence;
    for number in 1.. {
        let next = rest.find(&format!("\n{}. [", number + 1)).map(|at| at + 1);
        let page = &rest[..next.unwrap_or(rest.len())];
        let Some((head, text)) = page.split_once(") ") else { break };
        let id = head.rsplit('(').next().and_then(|id| id.parse().ok());
        pages.extend(id.map(|id| (id, text)));
        let Some(next) = next else { break };
        rest = &rest[next..];
    }
    pages
}

fn integrate(call: &Call) -> Value {
    let question = input(call, "QUESTION");
    let (notes, evidence) = (input(call, "RESULT"), input(call, "EVIDENCE_CONTEXT"));
    let mut facts = BTreeSet::new();
    let mut sources = BTreeSet::new();
    for key in keys(&question) {
        let mut learn = |text: &str, page: Option<i64>| {
            for value in values(text, key) {
                facts.insert(format!("One of the special magic values for {key} is: {value}."));
                sources.extend(page);
            }
        };
        learn(&notes, None);
        for (page, text) in pages(&evidence) {
            learn(text, Some(page));
            let before = cut_pages(&notes).into_iter().find(|(cut, _)| cut + 1 == page);
            learn(&before.map_or(String::new(), |(_, end)| format!("{end} {text}")), Some(page));
        }
        for (page, text) in pages(&evidence) {
            facts.extend(cut_off(text, key).map(|end| format!("{CUT}{page} {end};")));
        }
    }
    json!({ "content": facts.into_iter().collect::<Vec<_>>().join(" "), "sources": sources })
}

fn is_enough(call: &Call) -> bool {
    let (question, notes) = (input(call, "REQUEST"), input(call, "RESULT"));
    let keys = keys(&question);
    let several = question.starts_with("What are all") && keys.len() == 1;
    !several && keys.iter().all(|key| !values(&notes, key).is_empty())
}

fn follow_up(call: &Call) -> Value {
    let (question, notes) = (input(call, "REQUEST"), input(call, "RESULT"));
    if let Some((page, end)) = cut_pages(&notes).first() {
        return json!({ "new_requests": [format!("{CUT}{page} {end}; what follows?")] });
    }
    let open: Vec<&str> = keys(&question).into_iter().filter(|key| values(&notes, key).is_empty()).collect();
    let ask = format!("What is the special magic value for {} mentioned in the provided text?", open.join(", "));
    json!({ "new_requests": if open.is_empty() { Vec::new() } else { vec![ask] } })
}

fn answer(call: &Call) -> String {
    let (question, context) = (input(call, "QUESTION"), input(call, "CONTEXT"));
    let values: Vec<&str> = keys(&question).into_iter().flat_map(|key| values(&context, key)).collect();
    if values.is_empty() { "It is not there.".to_owned() } else { values.join(", ") }
}
