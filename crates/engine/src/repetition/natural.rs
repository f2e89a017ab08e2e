//! Replies of strong models repeat themselves without looping: plans that copy information needs into their queries,
//! operations that quote one sentence twice, thoughts repeated in the next field, lists of equal verdicts.

use std::collections::BTreeMap;
use std::iter::once;
use std::path::PathBuf;

use calls::{OutputFormat, schema};
use models::Tokenizer;
use serde_json::{Value, json};

use super::RepetitionGuard;

const PEOPLE: [&str; 10] = [
    "Ottoline Vane",
    "Dr. Anselm Whitlock",
    "Mireille Fontaine-Duquesne",
    "Ryūnosuke Hattori",
    "Chief Engineer Bartholomew O'Rourke",
    "Zoë Ångström",
    "the lighthouse keeper at Pell",
    "Professor Ludmila Petrova",
    "Sir Ignatius Thornbury III",
    "the night porter",
];

/// A fact and its question; `{}` is the person.
const FACTS: [(&str, &str); 6] = [
    (
        "In the spring of 1911 {} sold the brass telescope to a dealer in Rotterdam for 900 guilders and never spoke of it again.",
        "In which year, to whom and for how much did {} sell the brass telescope that stood in the observatory?",
    ),
    (
        "{} had been born in the valley north of the old mill, two miles from the border, and moved to the capital at the age of nine.",
        "Which country was the birthplace of {} in, and in which city did the family live after the move from the valley north of the old mill?",
    ),
    (
        "Every Thursday at half past six {} met the committee, the committee of the committees, to discuss the budget, the budget cuts and the cuts to the cuts.",
        "What did {} discuss with the committee every Thursday at half past six, and who else took part in the discussion of the budget?",
    ),
    (
        "The letter that {} wrote to the editor of the Morning Herald on 3 March 1987 was printed on page 12 under the wrong name.",
        "On which page of the Morning Herald was the letter printed that {} wrote to the editor on 3 March 1987?",
    ),
    (
        "\"I would rather lose the ship than the chart,\" said {}, \"and I would rather lose the chart than the log.\"",
        "What would {} rather lose: the ship, the chart or the log, and in which order were they named?",
    ),
    (
        "{} planted 12 apple trees, 12 pear trees, 12 plum trees and 12 cherry trees in four rows of twelve behind the house.",
        "How many apple trees, pear trees, plum trees and cherry trees did {} plant behind the house, and in how many rows?",
    ),
];

fn string() -> Value {
    schema::string(1000)
}

/// The information needed is copied into every list of queries.
fn plan(_: &str, question: &str) -> Value {
    json!({ "thinking": format!("First I need to know the following. {question} Then I search for exactly that: {question}"),
        "info_needs": [question, question], "tools": ["keyword", "vector", "page_index"],
        "keyword_collection": ["sold", "sold", "telescope"], "vector_queries": [question, question, question],
        "page_index": [3, 3, 3, 4, 4, 4] })
}

/// A node and two edges from one long id, all quoting one sentence.
fn operations(fact: &str, question: &str) -> Value {
    let id = "the_brass_telescope_that_stood_in_the_observatory_until_the_spring";
    let edge = |to: &str| json!({ "op": "add_edge", "from": id, "to": to, "relation": "sold_by", "src": fact });
    json!({ "operations": [
        { "op": "add_node", "id": id, "type": "event", "content": fact, "src": fact },
        { "op": "add_node", "id": id, "type": "concept", "content": question, "src": fact },
        edge("rotterdam"), edge("rotterdam_dealer"), edge("rotterdam"), edge("rotterdam_dealer")] })
}

/// The second thought repeats the first; every option is analysed in the same words.
fn try_answer(fact: &str, question: &str) -> Value {
    let thinking = format!("The question is: {question} The memory says: {fact} So the answer follows from it.");
    json!({ "thinking": thinking, "thinking_choice": thinking,
        "content_understanding": format!("{fact} {fact}"),
        "options_analysis": ["[A] does not follow from the text.", "[B] does not follow from the text.",
            "[C] does not follow from the text.", "[D] follows from the text."],
        "useful_ids": [1, 2, 3, 3, 3], "final_answer": "[D]" })
}

/// The same verdict on every one of many passages.
fn judgements(fact: &str, question: &str) -> Value {
    let verdict = |id: usize| json!({ "id": id, "useful": false, "reason": "It says nothing about the question." });
    json!({ "query": question, "verdicts": (0..24).map(verdict).collect::<Vec<_>>(),
        "useful": vec![json!({ "useful": false }); 24], "evidence": [fact, fact, fact] })
}

/// Replies of every kind about every person and fact.
fn replies() -> Vec<String> {
    let kinds = [plan, operations, try_answer, judgements];
    let mut replies = Vec::new();
    for person in PEOPLE {
        for (fact, question) in FACTS {
            let [fact, question] = [fact, question].map(|text| text.replace("{}", person));
            replies.extend(kinds.iter().map(|kind| kind(&fact, &question).to_string()));
        }
    }
    replies
}

/// Answers in free text, where the count is never reset.
fn prose() -> Vec<String> {
    let list = |fact: &str| (1..9).map(|number| format!("{number}. {fact}\n")).collect::<Vec<_>>().concat();
    let table = "| name | year | place |\n|------|------|-------|\n| Ann  | 1911 | Pell  |\n".to_owned();
    let verses = "Row, row, row the boat,\nGently down the stream.\nMerrily, merrily, merrily, merrily,\n".repeat(2);
    let facts = FACTS.iter().map(|(fact, _)| list(fact));
    facts.chain([table, verses, "-".repeat(24), "ha ha ha ha ha ha ha ha!".into()]).collect()
}

/// Replies with a loop in one of their strings.
fn looping() -> Vec<String> {
    let looped = format!(".{}", " And so on, and so forth.".repeat(12));
    replies().iter().map(|reply| reply.replacen('.', &looped, 1)).collect()
}

/// Ids of tokens and their bytes.
type Tokens = Vec<(u32, Vec<u8>)>;

fn tokens_by(tokenizer: &Tokenizer, text: &str) -> Tokens {
    let tokens = tokenizer.encode(text).unwrap().into_iter();
    tokens.map(|token| (token, tokenizer.bytes(token).to_vec())).collect()
}

/// The token at which a loop is detected, if any.
fn fires(tokens: &[(u32, Vec<u8>)], output_format: &OutputFormat) -> Option<usize> {
    let mut guard = RepetitionGuard::new(true, output_format);
    tokens.iter().position(|(token, bytes)| guard.push(*token, bytes))
}

fn check(tokens_of: impl Fn(&str) -> Tokens) {
    let form = OutputFormat::Json(schema::object([("any", string())]));
    let replies = replies();
    assert!(replies.len() >= 200, "{} replies", replies.len());
    for reply in &replies {
        assert_eq!(fires(&tokens_of(reply), &form), None, "{reply}");
    }
    for text in prose() {
        assert_eq!(fires(&tokens_of(&text), &OutputFormat::Text), None, "{text}");
    }
    for reply in looping() {
        assert!(fires(&tokens_of(&reply), &form).is_some(), "no loop is found in {reply}");
    }
}

/// The words of the texts above, and Qwen2.5's tokens in each: ids and lengths in bytes.
const QWEN: &str = include_str!("qwen.json");

type Words = BTreeMap<String, Vec<(u32, usize)>>;

/// Words with the space before them, across which Qwen2.5 has no token.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let starts = once(0).chain(text.match_indices(' ').map(|(at, _)| at).filter(|at| *at > 0));
    let ends = starts.clone().skip(1).chain([text.len()]);
    starts.zip(ends).map(|(start, end)| &text[start..end])
}

#[test]
fn natural_replies_are_no_loops_in_tokens_of_qwen() {
    let known: Words = serde_json::from_str(QWEN).unwrap();
    check(|text| {
        let mut tokens = Vec::new();
        for word in words(text) {
            let mut rest = word.as_bytes();
            for (token, bytes) in known.get(word).unwrap_or_else(|| panic!("{word:?} is not in qwen.json")) {
                let (of_token, after) = rest.split_at(*bytes);
                tokens.push((*token, of_token.to_vec()));
                rest = after;
            }
        }
        tokens
    });
}

/// With `MEMLOCAL_BLESS=1` the file is written anew.
#[test]
fn the_tokens_in_the_file_are_those_of_the_tokenizer_of_qwen() {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("MEMLOCAL_DATA").map_or_else(default, PathBuf::from);
    let path = data.join("tokenizers/qwen2_5_tokenizer.json");
    if !path.exists() {
        println!("skipped: {} is missing; set MEMLOCAL_DATA to the evaluation data", path.display());
        return;
    }
    let tokenizer = Tokenizer::from_file(&path).unwrap();
    let lengths = |text: &str| -> Vec<(u32, usize)> {
        tokens_by(&tokenizer, text).into_iter().map(|(token, bytes)| (token, bytes.len())).collect()
    };
    let mut known = Words::new();
    for text in [replies(), prose(), looping()].concat() {
        words(&text).for_each(|word| _ = known.entry(word.to_owned()).or_insert_with(|| lengths(word)));
        assert_eq!(words(&text).flat_map(|word| known[word].clone()).collect::<Vec<_>>(), lengths(&text), "{text}");
    }
    let known = serde_json::to_string(&known).unwrap() + "\n";
    if std::env::var_os("MEMLOCAL_BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/repetition/qwen.json"), known).unwrap();
    } else {
        assert!(known == QWEN, "qwen.json is not what the tokenizer makes of these texts");
    }
}

#[test]
fn natural_replies_are_no_loops_in_tokens_of_smollm2() {
    let Some(path) = test_support::weights("smollm2-135m-instruct") else { return };
    let tokenizer = models::LanguageModel::load(&path, &candle_core::Device::Cpu).unwrap().tokenizer;
    check(|text| tokens_by(&tokenizer, text));
}
