//! The suite `follow-ups`: its questions, and the three scores of each.

use calls::Call;
use eval::qa::{QaFolder, QaSuite, Question};
use serde_json::{Value, json};
use test_support::prompt::input;

use crate::questions::{Rule, plan, run};
use crate::{Files, evaluation_data};

fn qa(id: &str, question: &str, answer: &str) -> Value {
    json!({ "id": id, "question": question, "answers": [{ "text": answer, "answer_start": 0 }] })
}

/// Two questions of the suite's rows about one paragraph, and a third whose first question is missing.
fn data() -> Files {
    let tesla = json!({ "context": "Tesla died in 1943. He was known as a mad scientist.", "qas": [
        qa("56dfa0d84a1a83140091ebba", "What was Tesla's reputation in popular culture?", "mad scientist"),
        qa("56e0bb9f7aa994140058e6cc", "What year did Tesla die?", "1943")] });
    let theatre = json!({ "context": "The Summer Theatre was in operation from 1870 to 1939.", "qas": [
        qa("57339c16d058e614000b5ec7", "How long was the Summer Theatre in operation?", "1870 to 1939")] });
    let article = |title: &str, paragraph: Value| json!({ "title": title, "paragraphs": [paragraph] });
    let file = json!({ "data": [article("Warsaw", theatre), article("Tesla", tesla)] }).to_string();
    Files::new(&[("xquad.en.json", &file)])
}

/// Resolves "he" where a conversation is about Tesla, and knows when he died if the question names him.
fn reader(call: &Call) -> String {
    let question = input(call, "QUESTION");
    match call.step {
        "follow_up.rewrite" => {
            let prompt: String = call.prompt.messages().into_iter().map(|message| message.content).collect();
            let who = if prompt.contains("Q: What was Tesla's reputation") { "Tesla" } else { "he" };
            json!({ "question": question.replace("he", who) }).to_string()
        }
        _ if question == "What year did Tesla die?" => "1943".into(),
        _ => "Not in the documents.".into(),
    }
}

#[test]
fn a_question_is_asked_with_its_history_without_it_and_in_full() {
    let files = data();
    let cases = QaSuite::FollowUps.load(files.folder()).unwrap();
    let [case] = &cases.cases[..] else { panic!("{} cases", cases.cases.len()) };
    assert_eq!(case.sources.iter().map(|source| source.path.as_str()).collect::<Vec<_>>(), ["Warsaw", "Tesla"]);
    let history = vec![("What was Tesla's reputation in popular culture?".to_owned(), "mad scientist".to_owned())];
    let asked = |question: &Question| (question.category().to_owned(), question.text.clone(), question.history.clone());
    let want = [
        ("with history".to_owned(), "What year did he die?".to_owned(), history),
        ("without history".to_owned(), "What year did he die?".to_owned(), Vec::new()),
        ("in full".to_owned(), "What year did Tesla die?".to_owned(), Vec::new()),
    ];
    assert_eq!(case.questions.iter().map(asked).collect::<Vec<_>>(), want);
    assert!(case.questions.iter().all(|question| question.golds == ["1943"] && question.evidence[0].source == 1));
    assert_eq!(cases.notes, ["146 of 147 follow-ups are left out: their questions are missing"]);

    let mut plan = plan("follow-ups", files.folder().to_owned(), &["rag"]);
    (plan.categories, plan.scorers) = (Vec::new(), vec!["f1:squad".into()]);
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    let report = run(&folder, &plan, &Rule::new(reader, usize::MAX)).unwrap();
    let column = ("rules".to_owned(), "rag".to_owned());
    let score = |way: &str| report.number(&column, way, "f1:squad");
    assert_eq!([score("with history"), score("without history"), score("in full")], [Some(1.0), Some(0.0), Some(1.0)]);
    let text = report.to_string();
    assert!(text.contains("| model | method | score | with history | without history | in full |"), "{text}");
    assert!(text.contains("| rules | rag | f1:squad | 100.00 | 0.00 | 100.00 |"), "{text}");
}

#[test]
fn the_published_data_give_147_follow_ups() {
    let Some(xquad) = evaluation_data("xquad") else { return };
    let mut cases = QaSuite::FollowUps.load(&xquad).unwrap();
    assert_eq!(cases.questions(), 3 * 147);
    assert!(cases.notes.is_empty(), "{:?}", cases.notes);
    let [case] = &cases.cases[..] else { panic!("{} cases", cases.cases.len()) };
    for of_one in case.questions.chunks(3) {
        let [with, without, full] = of_one else { panic!("three ways") };
        assert!(with.text == without.text && with.text != full.text, "{}", full.text);
        // The history does not give the answer away.
        let [(question, answer)] = &with.history[..] else { panic!("{:?}", with.history) };
        let is_told = |gold: &String| question.contains(gold.as_str()) || answer.contains(gold.as_str());
        assert!(!full.golds.iter().any(is_told), "{question} {answer}: {:?}", full.golds);
    }
    cases.limit_each(20);
    assert_eq!(cases.questions(), 60, "the same twenty in each way");
}
