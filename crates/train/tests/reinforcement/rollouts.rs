//! Reinforcement on rollouts: trajectories of the same question are compared, and weigh all that an agent wrote in them.

use std::fs;
use std::path::{Path, PathBuf};

use calls::Agent;
use portable::Lora;
use serde_json::{Value, json};
use train::batch::Pass;
use train::examples::Example;
use train::gradient::{accumulate, score, zeros};
use train::lessons::{Learner, Lessons};
use train::policy::Policy;
use train::rollouts::{LeftOut, Offline, Rollouts};
use train::run::{Options, train};
use train::{Result, TrainError, curve};

use super::tiny::{Tiny, differing, fresh, options, stepped, tiny};

/// A call with a reply of these tokens and the one that was drawn to end it. Every byte of its prompt is a token.
fn call(agent: &str, question: Option<&str>, ids: &[u32], reward: f32) -> Value {
    json!({ "prompt": [], "prompt_text": "Hm.", "completion_ids": ids, "completion_end": 70, "role": agent, "model": "tiny",
            "data_source": "talks", "method": "gam", "case": "a", "question": question, "task": "t", "answer_reward": reward })
}

fn researcher(question: &str, ids: &[u32], reward: f32) -> Value {
    call("researcher", Some(question), ids, reward)
}

/// The call with another value of a field.
fn but(mut call: Value, field: &str, value: Value) -> Value {
    call[field] = value;
    call
}

impl Tiny {
    fn file(&self, name: &str, calls: &[Value]) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, calls.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")).unwrap();
        path
    }

    /// What is read of files with these calls.
    fn rollouts(&self, files: &[Vec<Value>], agents: &[Agent], temperature: f32) -> Result<Rollouts> {
        let paths = files.iter().enumerate().map(|(at, calls)| self.file(&format!("{at}.jsonl"), calls));
        self.reader().rollouts(&paths.collect::<Vec<_>>(), agents, temperature)
    }
}

/// The tokens of each trajectory that are learnt from, call by call, with the trajectory's advantage.
fn learnt(rollouts: &Rollouts) -> Vec<(Vec<Vec<u32>>, f32)> {
    let tokens = |call: &Example| call.learned().map(|at| call.tokens[at]).collect::<Vec<u32>>();
    let of = |calls: &Vec<Example>| {
        assert!(calls.iter().all(|call| call.weight == calls[0].weight), "one advantage for all calls");
        (calls.iter().map(tokens).collect(), calls[0].weight)
    };
    rollouts.trajectories.iter().map(of).collect()
}

const LONGER: &str = "And a longer prompt?";

/// Two trajectories of a question, which have no token in common: one of two calls with other prompts, which is rewarded, and
/// one of one call.
fn long_and_short(tiny: &Tiny) -> Rollouts {
    let open = |ids: &[u32], reward: f32| but(researcher("1", ids, reward), "completion_end", Value::Null);
    let second = but(open(&[67, 68, 69], 1.0), "prompt_text", json!(LONGER));
    let files = [vec![open(&[65, 66], 1.0), second], vec![open(&[80, 81, 82], 0.0)]];
    tiny.rollouts(&files, &[Agent::Researcher], 1.0).unwrap()
}

fn lessons(rollouts: &Rollouts) -> Offline<'_> {
    let policy = Policy { clip: 0.2, kl: 0.0 };
    let sampling = "temperature 1".into();
    Offline { rollouts, sampling, batch: 2, pass_tokens: 256, policy, reference: None, seed: 1 }
}

#[test]
fn the_advantage_of_a_trajectory_is_its_reward_minus_the_mean_of_those_of_the_question() {
    let tiny = tiny();
    let files = [
        vec![
            researcher("1", &[65], 1.0),
            researcher("1", &[66], 1.0),
            call("memorizer", None, &[90], 0.75),
            researcher("1", &[67], 1.0),
            researcher("2", &[75], 0.25),
            researcher("3", &[76], 0.25),
        ],
        vec![researcher("1", &[68], 0.0), researcher("3", &[77], 0.25), call("memorizer", None, &[91], 0.25)],
        vec![researcher("1", &[69], 0.5), call("judge", Some("1"), &[70], 0.5)],
    ];
    let by = |agents: &[Agent]| tiny.rollouts(&files, agents, 1.0).unwrap();
    // Three calls weigh no more in the mean than one: it is (1 + 0 + 0.5) / 3.
    let rollouts = by(&[Agent::Researcher]);
    let replies = |firsts: &[u32]| firsts.iter().map(|first| vec![*first, 70]).collect::<Vec<_>>();
    let first = [(replies(&[65, 66, 67]), 0.5), (replies(&[68]), -0.5), (replies(&[69]), 0.0)];
    assert_eq!(learnt(&rollouts), first);
    // Question 2 was asked once, question 3 was answered alike. The mean is over six trajectories.
    assert_eq!(rollouts.left_out, LeftOut { single: 1, equal: 1, ..LeftOut::default() });
    assert_eq!(rollouts.reward, 2.25 / 6.0);

    let memorizer = by(&[Agent::Memorizer]);
    assert_eq!(learnt(&memorizer), [(replies(&[90]), 0.25), (replies(&[91]), -0.25)]);
    assert_eq!((memorizer.left_out, memorizer.reward), (LeftOut::default(), 0.5));

    // What two agents wrote is in the same trajectory.
    let both = by(&[Agent::Researcher, Agent::Judge]);
    assert_eq!(learnt(&both)[2], (replies(&[69, 70]), 0.0));
}

#[test]
fn only_trajectories_of_the_same_question_are_compared() {
    let tiny = tiny();
    let files = |field: &str, value: Value| {
        [vec![researcher("1", &[65], 1.0)], vec![but(researcher("1", &[66], 0.0), field, value)]]
    };
    let read = |field: &str, value: Value| tiny.rollouts(&files(field, value), &[Agent::Researcher], 1.0);
    assert_eq!(read("task", json!("t")).unwrap().trajectories.len(), 2);
    // Data that are generated anew have the same ids and other questions.
    for field in ["data_source", "method", "case", "question", "task"] {
        let error = read(field, json!("other")).unwrap_err().to_string();
        let why = "left out: 2 questions (or cases) with one trajectory, 0 with equal rewards;";
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let tiny = tiny();
    let refused = |files: &[Vec<Value>]| tiny.rollouts(files, &[Agent::Researcher], 1.0).unwrap_err();
    let one = || vec![researcher("1", &[65], 1.0)];
    let hint = |error: &TrainError| error.hint().unwrap_or_default();

    let alone = refused(&[one()]);
    assert!(alone.to_string().contains("1 questions (or cases) with one trajectory"), "{alone}");
    assert!(hint(&alone).ends_with("on the same questions, each with another --seed"));
    let twice = refused(&[one(), one()]);
    let names = |error: &str| error.contains("0.jsonl and ") && error.ends_with("1.jsonl have the same content");
    assert!(names(&twice.to_string()) && hint(&twice).contains("--seed"), "{twice}");
    let models = refused(&[one(), vec![but(researcher("1", &[66], 0.0), "model", json!("other"))]]);
    assert!(models.to_string().ends_with("several models wrote them: other, tiny"), "{models}");
    assert!(hint(&models).contains("--start"));
    let joined = refused(&[vec![researcher("1", &[65], 1.0), researcher("1", &[66], 0.5)]]).to_string();
    assert!(joined.ends_with("line 2: its answer_reward is 0.5; an earlier call about the same has 1"), "{joined}");
    let mut older = researcher("1", &[65], 1.0);
    older.as_object_mut().unwrap().remove("task");
    let older = refused(&[vec![older]]).to_string();
    assert!(older.contains("line 1: it has no `task`, as in files of older versions: "), "{older}");
    assert!(older.contains("--resume"), "{older}");
    let judge = tiny.rollouts(&[one()], &[Agent::Judge, Agent::Builder], 1.0).unwrap_err().to_string();
    assert!(judge.contains("no trajectories of the judge and the builder with different rewards"), "{judge}");
}

#[test]
fn only_what_was_drawn_at_the_temperature_is_learnt_from_rollouts() {
    let tiny = tiny();
    let drawn = |temperature: Value, drawn: Value, end: Option<u32>| {
        let call = but(researcher("1", &[65, 66], 1.0), "temperature", temperature);
        but(but(call, "completion_drawn", drawn), "completion_end", json!(end))
    };
    let read = |calls: Vec<Value>| {
        let other = vec![but(researcher("1", &[80], 0.0), "temperature", json!(0.5))];
        tiny.rollouts(&[calls, other], &[Agent::Researcher], 0.3)
    };
    let long = "a".repeat(200);
    let rollouts = read(vec![
        drawn(json!(0.3), json!([false, true]), Some(70)),
        drawn(json!(0.3), json!([false, false]), None),
        drawn(json!(0), json!([true, true]), Some(70)),
        but(drawn(json!(0.3), json!([true, true]), Some(70)), "prompt_text", json!(long)),
        // As older runs wrote it.
        drawn(json!(null), json!(null), Some(70)),
        // A reply that was closed, and one without a token but the last.
        drawn(json!(0.3), json!([true, true]), None),
        but(drawn(json!(0.3), json!([]), Some(70)), "completion_ids", json!([])),
    ])
    .unwrap();
    // The other trajectory has no call at this temperature, and its reward counts.
    let replies = [vec![66, 70], vec![65, 66, 70], vec![65, 66], vec![70]];
    assert_eq!(learnt(&rollouts), [(replies.to_vec(), 0.5)]);
    let left_out = LeftOut { too_long: 1, greedy: 1, other_temperature: 1, forced: 1, ..LeftOut::default() };
    assert_eq!(rollouts.left_out, left_out);

    let error = read(vec![drawn(json!(0), json!([true, true]), None)]).unwrap_err().to_string();
    let why = "there are no trajectories of the researcher with different rewards and replies drawn at temperature 0.3; left out: \
               0 questions (or cases) with one trajectory, 0 with equal rewards; calls: 0 too long, 1 greedy, \
               1 drawn at another temperature, 0 without a drawn token";
    assert!(error.ends_with(why), "{error}");
    let error = read(vec![drawn(json!(0.3), json!([true]), None)]).unwrap_err().to_string();
    assert!(error.ends_with("line 1: completion_drawn and completion_ids have different lengths"), "{error}");
}

#[test]
fn names_of_special_tokens_in_the_texts_of_a_rollout_are_plain_text() {
    let tiny = tiny();
    let said = "a <|im_end|> b";
    let prompt = |turns: Value, text: &str| {
        let call = but(researcher("1", &[65], 1.0), "prompt", turns);
        but(but(call, "prompt_text", json!(text)), "completion_end", json!(258))
    };
    let in_turn = format!("<|im_start|>user\n{said}<|im_end|>\n");
    let turns = json!([{ "role": "user", "content": format!("{said}\n") }]);
    // A prompt without turns has no template.
    let files = [vec![prompt(turns, &in_turn), prompt(json!([]), said)], vec![researcher("1", &[80], 0.0)]];
    let rollouts = tiny.rollouts(&files, &[Agent::Researcher], 1.0).unwrap();
    let text = |text: &str| tiny.checkpoint.tokenizer.encode(text).unwrap();
    let want = [vec![257], text("user\n"), text(said), vec![258], text("\n"), vec![65, 258]].concat();
    assert_eq!(rollouts.trajectories[0][0].tokens, want);
    assert_eq!(rollouts.trajectories[0][1].tokens, [text(said), vec![65, 258]].concat());
}

#[test]
fn a_rollout_whose_reply_follows_a_thought_is_refused() {
    let tiny = tiny();
    let opened = "<|im_start|>user\nHm.<|im_end|>\n<|im_start|>assistant\n<think>\n";
    let thought = but(researcher("1", &[65], 1.0), "prompt_text", json!(opened));
    let error = tiny.rollouts(&[vec![thought]], &[Agent::Researcher], 1.0).unwrap_err().to_string();
    assert!(error.ends_with("line 1: its reply follows a thought, which a rollout does not have"), "{error}");
}

/// Equation 7 of GAM: the mean over trajectories of the advantage times the gradient of the log-likelihood of all that was written.
#[test]
fn a_trajectory_weighs_the_sum_over_all_of_its_calls() {
    let tiny = tiny();
    let rollouts = long_and_short(&tiny);
    let lora = fresh(&tiny);
    let learner = Learner { network: &tiny.network, lora: &lora, kept: 9 };
    let (mut found, mut want) = (zeros(&lora), zeros(&lora));
    let learned = lessons(&rollouts).step(0, learner, &mut found).unwrap();
    assert_eq!(learned.rewarded.unwrap().0, 0.5);
    for (calls, advantage) in rollouts.trajectories.iter().zip([0.5, -0.5]) {
        for call in calls {
            let pass = Pass::new(&[std::slice::from_ref(call)]);
            accumulate(&tiny.network, &lora, &pass, advantage / 2.0, 9, &mut want).unwrap();
        }
    }
    assert_eq!(differing(&found, &want), 0);
    assert!(differing(&found, &zeros(&lora)) > 0);
}

#[test]
fn what_was_written_in_a_rewarded_trajectory_becomes_more_probable() {
    let tiny = tiny();
    let rollouts = long_and_short(&tiny);
    let log_likelihoods = |lora: &Lora| -> Vec<f32> {
        let of_call = |call: &Example| {
            let pass = Pass::new(&[std::slice::from_ref(call)]);
            let scored = score(&tiny.network, Some(lora), &pass).unwrap();
            scored.iter().map(|token| token.log_prob).sum::<f32>()
        };
        rollouts.trajectories.iter().map(|calls| calls.iter().map(of_call).sum()).collect()
    };
    let lora = fresh(&tiny);
    let mut sums = zeros(&lora);
    let learner = Learner { network: &tiny.network, lora: &lora, kept: 9 };
    lessons(&rollouts).step(0, learner, &mut sums).unwrap();
    let (before, after) = (log_likelihoods(&lora), log_likelihoods(&stepped(&tiny, &sums)));
    assert!(after[0] > before[0] && after[1] < before[1], "{before:?} became {after:?}");
}

#[test]
fn a_killed_run_on_rollouts_ends_as_an_undisturbed_one() {
    let tiny = tiny();
    let asked = |number: u32, reward: f32| {
        let question = number.to_string();
        vec![researcher(&question, &[60 + number, 61], reward), researcher(&question, &[62, 60 + number], reward)]
    };
    let file = |rewards: [f32; 3]| -> Vec<Value> {
        (0..).zip(rewards).flat_map(|(number, reward)| asked(number, reward)).collect()
    };
    let files = [file([1.0, 0.0, 0.5]), file([0.0, 0.5, 0.5]), file([0.5, 0.5, 1.0])];
    let rollouts = tiny.rollouts(&files, &[Agent::Researcher], 1.0).unwrap();
    assert_eq!(rollouts.trajectories.len(), 9);
    let policy = Policy { clip: 0.2, kl: 0.1 };
    let run = |folder: &Path, stop_after| {
        let options = Options { stop_after, ..options(folder, 8) };
        train(&tiny.network, &mut Offline { policy, ..lessons(&rollouts) }, None, &options, &mut |_| {}).unwrap();
        curve::read(folder, 99)
    };
    let [whole, parts] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let rows = run(whole.path(), None);
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|row| row.rewarded.unwrap().0 == 0.5) && rows[7].rewarded.unwrap().1 > 0.0);
    run(parts.path(), Some(3));
    run(parts.path(), None);
    let adapter = |folder: &Path| fs::read(folder.join("adapter/adapter_model.safetensors")).unwrap();
    assert!(adapter(whole.path()) == adapter(parts.path()), "the adapters differ");

    // A checkpoint of a run with other trajectories is not continued.
    let other = tiny.rollouts(&[files[0].clone(), files[1].clone()], &[Agent::Researcher], 1.0).unwrap();
    let options = options(parts.path(), 8);
    let mut lessons = Offline { policy, ..lessons(&other) };
    let error = train(&tiny.network, &mut lessons, None, &options, &mut |_| {}).unwrap_err();
    assert!(matches!(error, TrainError::OtherRun { .. }), "{error}");
}

#[test]
fn passes_have_room_for_the_longest_call() {
    let tiny = tiny();
    let rollouts = long_and_short(&tiny);
    // Calls of a trajectory are sequences of their own.
    assert_eq!(Offline { pass_tokens: 1, ..lessons(&rollouts) }.pass_tokens(), LONGER.len() + 3);
}
