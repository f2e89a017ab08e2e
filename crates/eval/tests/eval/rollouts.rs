//! Rollouts of whole runs: what trainers read, and the rewards of GAM's equations 6 and 7.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use eval::Error;
use eval::qa::{Plan, QaFolder, RolloutCount, items, write_rollouts};
use eval::score::Scorer;
use serde_json::{Value, json};

use crate::Files;
use crate::questions::{Rule, TALKS, beach, keys, plan, run};

fn recorded(files: &Files) -> Plan {
    let plan = plan("locomo", files.path("locomo.json"), &["gam", "rag"]);
    Plan { rollouts: true, ..plan }
}

fn read(file: &Path) -> Vec<Value> {
    fs::read_to_string(file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_call_of_a_run_is_a_rollout_with_the_reward_of_its_answer() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let plan = recorded(&files);
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap();
    let file = files.path("rollouts.jsonl");
    let count = write_rollouts(folder.path(), &plan, Scorer::F1Gam, &file).unwrap();
    let rollouts = read(&file);
    assert_eq!(count, RolloutCount { written: rollouts.len(), without_reward: 0 });
    let judged = fs::read_to_string(folder.path().join("transcript.jsonl")).unwrap();
    let judged = judged.lines().filter(|line| line.contains("\"judge.")).count();
    assert_eq!(rollouts.len() + judged, keys(folder.path()).len(), "the judges of answers are no part of a method");

    let scores: BTreeMap<(String, String, String), f64> = items(folder.path())
        .unwrap()
        .1
        .into_iter()
        .map(|item| ((item.method, item.case, item.question.id), item.scores["f1:gam"].value))
        .collect();
    let text = |rollout: &Value, field: &str| rollout[field].as_str().unwrap().to_owned();
    let (mut sums, mut memorized) = (BTreeMap::<(String, String), f64>::new(), 0);
    for (index, rollout) in rollouts.iter().enumerate() {
        let (method, case) = (text(rollout, "method"), text(rollout, "case"));
        let reward = if let Some(question) = rollout["question"].as_str() {
            scores[&(method.clone(), case.clone(), question.to_owned())]
        } else {
            memorized += 1;
            let of_case = scores.iter().filter(|((m, c, _), _)| (m, c) == (&method, &case)).map(|(_, score)| *score);
            let of_case: Vec<f64> = of_case.collect();
            of_case.iter().sum::<f64>() / of_case.len() as f64
        };
        assert_eq!((&rollout["reward"], &rollout["answer_reward"]), (&json!(reward), &json!(reward)), "{rollout}");
        assert_eq!((&rollout["valid"], &rollout["scorer"]), (&json!(true), &json!("f1:gam")));
        *sums.entry((method, text(rollout, "role"))).or_default() += rollout["advantage"].as_f64().unwrap();

        // TRL's columns.
        let prompt = rollout["prompt"].as_array().unwrap();
        assert!(
            prompt.iter().all(|turn| turn["role"].is_string() && turn["content"].is_string()) && !prompt.is_empty()
        );
        let completion = &rollout["completion"];
        assert_eq!((completion.as_array().unwrap().len(), &completion[0]["role"]), (1, &json!("assistant")));
        // verl's.
        assert_eq!((&rollout["data_source"], &rollout["extra_info"]["index"]), (&json!("locomo"), &json!(index)));
        assert_eq!(rollout["reward_model"]["style"], "rule");
        assert_eq!(
            rollout["reward_model"]["ground_truth"].as_array().unwrap().is_empty(),
            rollout["question"].is_null()
        );
        let (ids, logprobs) = (&rollout["completion_ids"], &rollout["completion_logprobs"]);
        assert_eq!(ids.as_array().unwrap().len(), logprobs.as_array().unwrap().len());
        assert!(!ids.as_array().unwrap().is_empty());
        let drawn: Vec<bool> = ids.as_array().unwrap().iter().map(|id| *id != 0).collect();
        assert_eq!((&rollout["completion_drawn"], &rollout["temperature"]), (&json!(drawn), &json!(0.3)));
        assert!(rollout.get("completion_end").is_some_and(Value::is_null), "the double draws no end token");
    }
    assert_eq!(memorized, 3, "an abstract for each session");
    assert!(sums.contains_key(&("gam".into(), "memorizer".into())) && sums.len() >= 3, "{sums:?}");
    assert!(sums.values().all(|sum| sum.abs() < 1e-9), "advantages of an agent sum to nothing: {sums:?}");
}

#[test]
fn a_reply_that_was_cut_has_no_reward() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let plan = recorded(&files);
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    run(&folder, &plan, &Rule::new(beach, usize::MAX).cutting()).unwrap();
    let file = files.path("rollouts.jsonl");
    // The judge agrees with every answer.
    write_rollouts(folder.path(), &plan, Scorer::LocomoJudge, &file).unwrap();
    let rollouts = read(&file);
    let (cut, whole): (Vec<_>, Vec<_>) = rollouts.iter().partition(|rollout| rollout["finish"] == "length");
    assert!(cut.iter().all(|rollout| rollout["valid"] == false && rollout["reward"] == 0.0));
    assert!(cut.iter().any(|rollout| rollout["answer_reward"].as_f64().unwrap() > 0.0));
    assert!(whole.iter().all(|rollout| rollout["valid"] == true && rollout["reward"] == rollout["answer_reward"]));
    assert!(!whole.is_empty());
}

#[test]
fn trajectories_have_the_same_task_where_the_same_was_asked() {
    let tasks = |talks: &str| {
        let files = Files::new(&[("locomo.json", talks)]);
        let plan = recorded(&files);
        let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
        run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap();
        let file = files.path("rollouts.jsonl");
        write_rollouts(folder.path(), &plan, Scorer::F1Gam, &file).unwrap();
        let mut tasks = BTreeMap::<(String, String), String>::new();
        for rollout in read(&file) {
            let about = (rollout["case"].to_string(), rollout["question"].to_string());
            let task = rollout["task"].to_string();
            assert_eq!(
                *tasks.entry(about).or_insert_with(|| task.clone()),
                task,
                "all calls of a trajectory, by any agent"
            );
        }
        tasks
    };
    let (before, again) = (tasks(TALKS), tasks(TALKS));
    assert_eq!(before, again);
    // Another gold answer of the first question, which has the same id, and is one of its case.
    let other = tasks(&TALKS.replace("\"answer\": \"the beach\"", "\"answer\": \"the shore\""));
    let differing: Vec<&(String, String)> = before.keys().filter(|about| before[*about] != other[*about]).collect();
    let about = |case: &str, question: Value| (json!(case).to_string(), question.to_string());
    assert_eq!(differing, [&about("c1", json!("0")), &about("c1", Value::Null)]);
}

#[test]
fn what_an_older_run_did_not_record_is_null() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let plan = recorded(&files);
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap();
    let transcript = folder.path().join("transcript.jsonl");
    let older = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        if let Some(sampled) = record["sampled"].as_object_mut() {
            assert!(sampled.remove("drawn").is_some() && sampled.remove("temperature").is_some());
        }
        record.to_string() + "\n"
    };
    let lines: String = fs::read_to_string(&transcript).unwrap().lines().map(older).collect();
    fs::write(&transcript, lines).unwrap();
    let file = files.path("rollouts.jsonl");
    write_rollouts(folder.path(), &plan, Scorer::F1Gam, &file).unwrap();
    let is_null = |rollout: &Value, field: &str| rollout.get(field).is_some_and(Value::is_null);
    let rollouts = read(&file);
    assert!(!rollouts.is_empty());
    assert!(rollouts.iter().all(|rollout| is_null(rollout, "completion_drawn") && is_null(rollout, "temperature")));
}

#[test]
fn a_run_that_recorded_no_tokens_has_no_rollouts() {
    let files = Files::new(&[("locomo.json", TALKS)]);
    let plan = plan("locomo", files.path("locomo.json"), &["rag"]);
    let folder = QaFolder::create(&files.path("run"), &plan).unwrap();
    run(&folder, &plan, &Rule::new(beach, usize::MAX)).unwrap();
    let file = files.path("rollouts.jsonl");
    let error = write_rollouts(folder.path(), &plan, Scorer::F1Gam, &file).unwrap_err();
    assert!(matches!(&error, Error::NotOnTape { what } if what.contains("the tokens of step")), "{error}");
    assert!(!file.exists());
}
