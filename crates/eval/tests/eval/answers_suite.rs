//! The suite `answers`: its questions, and the counting of right, wrong and abstaining answers.

use std::collections::BTreeMap;
use std::fs;

use calls::Call;
use eval::qa::{Cases, Outcome, OutcomeRow, QaFolder, QaSuite, items, write_report};
use serde_json::{Value, json};
use test_support::prompt::input;

use crate::questions::{Rule, TALKS, plan, run};
use crate::{Files, evaluation_data};

/// Questions by part.
fn parts(cases: &Cases) -> BTreeMap<String, usize> {
    let mut parts = BTreeMap::new();
    for question in cases.cases.iter().flat_map(|case| &case.questions) {
        *parts.entry(question.category().to_owned()).or_default() += 1;
    }
    parts
}

#[test]
fn the_published_data_give_the_same_805_questions_each_time() {
    // All data sets are in one folder.
    let Some(xquad) = evaluation_data("xquad") else { return };
    let folder = xquad.parent().unwrap();
    let cases = QaSuite::Answers.load(folder).unwrap();
    let want = [
        ("hotpotqa", 100),
        ("locomo", 100),
        ("narrativeqa", 100),
        ("paragraph", 200),
        ("samples", 5),
        ("unanswerable", 100),
        ("xquad", 200),
    ];
    assert_eq!(parts(&cases), want.map(|(part, questions)| (part.to_owned(), questions)).into());
    assert_eq!(cases, QaSuite::Answers.load(folder).unwrap());
    for case in &cases.cases {
        let mut ids: Vec<&str> = case.questions.iter().map(|question| question.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), case.questions.len(), "{}: ids are unique", case.id);
        for question in &case.questions {
            assert_eq!(question.golds.is_empty(), question.is_unanswerable(), "{question:?}");
            assert_eq!(question.category() == "unanswerable", question.is_unanswerable(), "{question:?}");
        }
    }
    let mut few = cases.clone();
    few.limit_each(2);
    assert!(parts(&few).values().all(|questions| *questions == 2), "{:?}", parts(&few));
}

/// A small sample of the four sets; XQuAD's has 210 items in three paragraphs, ten more than the whole article.
fn data() -> Files {
    let paragraph = |number: usize| {
        let of = number * 70..(number + 1) * 70;
        let context: Vec<String> = of.clone().map(|item| format!("Item {item} has the value v{item}.")).collect();
        let qa = |item: usize| {
            json!({ "id": item.to_string(), "question": format!("What is the value of item {item}?"),
                "answers": [{ "text": format!("v{item}"), "answer_start": 0 }] })
        };
        json!({ "context": context.join(" "), "qas": of.map(qa).collect::<Vec<_>>() })
    };
    let article = json!({ "title": "Items", "paragraphs": (0..3).map(paragraph).collect::<Vec<_>>() });
    let xquad = json!({ "data": [article] }).to_string();
    let hotpotqa = json!([{ "_id": "h1", "question": "Who is older, Ann or Bo?", "answer": "Bo", "type": "comparison",
        "supporting_facts": [["Ann", 0]], "context": [["Ann", ["Ann was born in 1970."]], ["Bo", ["Bo was born in 1960."]]] }])
    .to_string();
    let qa =
        json!({ "_id": "n1", "document_id": "d1", "question": "Who lit the lamp?", "answers": ["Zoe"] }).to_string();
    let summaries = json!({ "document_id": "d1", "summary": "Zoe lit the lamp again." }).to_string();
    Files::new(&[
        ("xquad/xquad.en.json", &xquad),
        ("hotpotqa/distractor.json", &hotpotqa),
        ("narrativeqa/qa_valid.jsonl", &qa),
        ("narrativeqa/summaries_valid.jsonl", &summaries),
        ("locomo/locomo.json", TALKS),
    ])
}

/// Returns the value of an item in its prompt, knows about the fob chain, and answers everything else with a colour.
fn collector(call: &Call) -> String {
    let (question, context) = (input(call, "QUESTION"), input(call, "CONTEXT"));
    let item = question.strip_prefix("What is the value of item ").and_then(|rest| rest.strip_suffix('?'));
    match item {
        Some(item) if context.contains(&format!("Item {item} has the value v{item}.")) => format!("It is v{item}."),
        Some(_) => "Not in the documents.".into(),
        None if question.contains("fob chain") => "platinum".into(),
        None => "blue".into(),
    }
}

fn row<'a>(rows: &'a [OutcomeRow], group: &str) -> &'a OutcomeRow {
    rows.iter().find(|row| row.group == group).unwrap_or_else(|| panic!("no {group} in {rows:?}"))
}

#[test]
fn answers_are_right_wrong_or_abstain() {
    let files = data();
    let mut plan = plan("answers", files.folder().to_owned(), &["rag"]);
    (plan.categories, plan.scorers, plan.limit) = (Vec::new(), vec!["f1:squad".into(), "em:squad".into()], Some(4));
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    let report = run(&folder, &plan, &Rule::new(collector, usize::MAX)).unwrap();
    let count = |group: &str| {
        let row = row(&report.outcomes, group);
        (row.questions, row.right, row.wrong, row.abstained, row.correct)
    };
    assert_eq!([count("xquad"), count("paragraph")], [(4, 4, 0, 0, 4); 2]);
    assert_eq!(count("xquad without the paragraph"), (4, 0, 0, 4, 4), "abstaining is correct there");
    assert_eq!(count("samples"), (4, 1, 3, 0, 1));
    assert_eq!((count("hotpotqa"), count("narrativeqa")), ((1, 0, 1, 0, 0), (1, 0, 1, 0, 0)));
    let all = row(&report.outcomes, "all");
    assert_eq!(all.right + all.wrong + all.abstained, all.questions);
    assert_eq!((all.supported, all.auroc_answerable), (1, None), "written answers have verdicts and no probability");
    assert!(all.reliability.is_empty() && !folder.path().join("plots/reliability.svg").exists());
    // Questions without gold answers have nothing to compare with.
    let scored = report.rows.iter().find(|row| row.group == "unanswerable").unwrap();
    assert!(scored.scores.is_empty(), "{scored:?}");
    assert!(report.notes.iter().any(|note| note.contains("of each part")), "{:?}", report.notes);
    let text = report.to_string();
    assert!(text.contains("| rules | rag | xquad | 4 | 4 | 0 | 0 | 100.00 |"), "{text}");

    // The result of a method that gives verdicts and a confidence.
    let path = folder.path().join("results.jsonl");
    let lines = fs::read_to_string(&path).unwrap();
    let graded = lines.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if line["what"] == "answered" {
            let is_lost = line["id"].as_str().unwrap().ends_with("_abs");
            let right = line["outcome"] == "right";
            let confidence = if is_lost {
                0.1
            } else if right {
                0.9
            } else {
                0.5
            };
            line["grounding"] = json!({ "confidence": confidence, "supported": 1, "unsupported": 2 });
        }
        line.to_string() + "\n"
    });
    let graded: String = graded.collect();
    fs::write(&path, graded).unwrap();
    let report = write_report(folder.path()).unwrap();
    let all = row(&report.outcomes, "all");
    assert_eq!((all.supported, all.unsupported), (all.questions, 2 * all.questions));
    assert_eq!((all.auroc_answerable, all.auroc_right), (Some(1.0), Some(1.0)));
    let lost = 4.0 * 0.1_f64.powi(2);
    let right = all.right as f64 * 0.1_f64.powi(2);
    let others = (all.questions - 4 - all.right) as f64 * 0.5_f64.powi(2);
    let brier = all.brier_answerable.expect("confidence is known for questions of both kinds");
    assert!((brier - (lost + right + others) / all.questions as f64).abs() < 1e-9, "{brier}");
    assert_eq!(all.reliability.iter().map(|bin| bin.cases).sum::<usize>(), all.questions);
    let text = report.to_string();
    assert!(text.contains("## Reliability of the confidence"), "{text}");
    assert!(text.contains("| AUROC answerable, % | AUROC right, % |"), "{text}");
    let picture = fs::read_to_string(folder.path().join("plots/reliability.svg")).unwrap();
    assert!(picture.contains("as stated"));
    let found = items(folder.path()).unwrap().1;
    assert!(found.iter().any(|item| item.outcome == Some(Outcome::Abstained)));
}

#[test]
fn reports_say_how_the_replies_of_each_step_ended() {
    let files = data();
    let mut plan = plan("answers", files.folder().to_owned(), &["rag"]);
    (plan.categories, plan.scorers, plan.limit) = (Vec::new(), vec!["f1:squad".into()], Some(2));
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    let report = run(&folder, &plan, &Rule::new(collector, usize::MAX).cutting()).unwrap();
    let [step] = &report.endings[..] else { panic!("{:?}", report.endings) };
    let endings = step.endings;
    // Every second reply reaches its token limit; such a reply is requested once more.
    assert!(step.step == "answer" && endings.calls > report.questions, "{step:?}");
    assert_eq!((endings.length, endings.repetition, endings.closed_early), (endings.calls / 2, 0, 0));
    assert!(report.to_string().contains("## How replies ended"));
    let again = write_report(folder.path()).unwrap();
    assert_eq!(again.endings, report.endings, "they follow from the results");
}
