//! Rollouts: the calls of a run with their rewards, one JSON object a line, for trainers by reinforcement.
//!
//! GAM (arXiv 2511.18423) rewards memorizer and researcher alike by the quality of the final answer (equation 6). A call that
//! prepares a text is rewarded by the mean over its questions. All calls for a question, or for a preparation, are a trajectory;
//! `task` tells which trajectories of other runs are comparable. `advantage` compares single calls, for other trainers than ours.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use calls::{Agent, Finish, Message};
use serde::Serialize;

use super::item::Item;
use super::lines;
use super::plan::Plan;
use super::reporting::scored;
use super::tape::{CallRecord, Scope, TRANSCRIPT};
use super::tape_key::short;
use crate::run_folder::replace;
use crate::score::Scorer;
use crate::{Error, Result};

/// A line of the file. TRL reads `prompt` and `completion`, verl `prompt`, `data_source`, `reward_model` and `extra_info`.
#[derive(Debug, Serialize)]
struct Rollout<'a> {
    prompt: &'a [Message],
    completion: [Completion<'a>; 1],
    prompt_text: &'a str,
    completion_ids: &'a [u32],
    completion_logprobs: &'a [f32],
    completion_drawn: Option<&'a [bool]>,
    completion_end: Option<u32>,
    temperature: Option<f32>,
    #[serde(rename = "role")]
    agent: Agent,
    step: &'a str,
    method: &'a str,
    model: &'a str,
    case: &'a str,
    question: Option<&'a str>,
    /// Equal for trajectories that can be compared ([`task`]).
    task: String,
    finish: Finish,
    /// The reply ended by itself, so its form is the model's own.
    valid: bool,
    scorer: String,
    answer_reward: f64,
    /// The answer's, or 0 for a reply that is not valid.
    reward: f64,
    /// `reward` minus the mean over the agent's calls.
    advantage: f64,
    data_source: &'a str,
    reward_model: RewardModel<'a>,
    extra_info: ExtraInfo,
}

#[derive(Debug, Serialize)]
struct Completion<'a> {
    role: &'static str,
    content: &'a str,
}

#[derive(Debug, Serialize)]
struct RewardModel<'a> {
    style: &'static str,
    ground_truth: &'a [String],
}

#[derive(Debug, Serialize)]
struct ExtraInfo {
    index: usize,
}

/// Rollouts that were written, and calls that have no reward because their question has no score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolloutCount {
    pub written: usize,
    pub without_reward: usize,
}

/// Writes the calls of a run that asked for rollouts; the file is replaced whole.
///
/// # Errors
/// [`Error::NotOnTape`] if the run has not recorded the tokens of its calls; those of its files.
pub fn write_rollouts(run: &Path, plan: &Plan, scorer: Scorer, file: &Path) -> Result<RolloutCount> {
    let records: Vec<CallRecord> = lines::read(&run.join(TRANSCRIPT))?;
    let (_, items) = scored(run, plan)?;
    let items: BTreeMap<[&str; 4], &Item> = items.iter().map(|item| (key(item), item)).collect();
    let judges: BTreeSet<&str> = plan.scorers()?.iter().filter_map(|scorer| Some(scorer.judge()?.step())).collect();
    let rewarded: Vec<(&CallRecord, Option<f64>)> = records
        .iter()
        .filter(|record| !judges.contains(&*record.step))
        .map(|record| (record, answer_reward(&record.scope, &items, scorer)))
        .collect();
    let means = agent_means(&rewarded);
    replace(file, |out| {
        let mut count = RolloutCount { written: 0, without_reward: 0 };
        for (record, answer_reward) in &rewarded {
            let Some(answer_reward) = *answer_reward else {
                count.without_reward += 1;
                continue;
            };
            let what = || Error::NotOnTape { what: format!("the tokens of step {}", record.step) };
            let sampled = record.sampled.as_ref().ok_or_else(what)?;
            let question = record.scope.question.as_deref();
            let questions = questions(&record.scope, &items);
            let asked = questions.first().filter(|_| question.is_some());
            let reward = reward(record, answer_reward);
            let line = Rollout {
                prompt: &sampled.messages,
                completion: [Completion { role: "assistant", content: &record.output }],
                prompt_text: &record.prompt,
                completion_ids: &sampled.ids,
                completion_logprobs: &sampled.logprobs,
                completion_drawn: sampled.drawn.as_deref(),
                completion_end: sampled.end,
                temperature: sampled.temperature,
                agent: record.agent,
                step: &record.step,
                method: &record.scope.method,
                model: &record.answered_by,
                case: &record.scope.case,
                question,
                task: task(&questions),
                finish: record.finish,
                valid: !record.finish.is_cut(),
                scorer: scorer.to_string(),
                answer_reward,
                reward,
                advantage: reward - means[&agent_key(record)],
                data_source: &plan.suite,
                reward_model: RewardModel {
                    style: "rule",
                    ground_truth: asked.map_or(&[], |item| item.question.golds.as_slice()),
                },
                extra_info: ExtraInfo { index: count.written },
            };
            let line = serde_json::to_string(&line).map_err(io::Error::from);
            line.and_then(|line| writeln!(out, "{line}")).map_err(Error::writing(file))?;
            count.written += 1;
        }
        Ok(count)
    })
}

fn key(item: &Item) -> [&str; 4] {
    [&item.model, &item.method, &item.case, &item.question.id]
}

/// The question that a call is made for; of a preparation all questions of its case, by their ids.
fn questions<'a>(scope: &'a Scope, items: &BTreeMap<[&'a str; 4], &'a Item>) -> Vec<&'a Item> {
    let case: [&str; 3] = [&scope.model, &scope.method, &scope.case];
    let [model, method, name] = case;
    if let Some(question) = &scope.question {
        return items.get(&[model, method, name, question.as_str()]).copied().into_iter().collect();
    }
    let from_case = items.range([model, method, name, ""]..);
    from_case.take_while(|(key, _)| key[..3] == case).map(|(_, item)| *item).collect()
}

/// The mean score of the answers to the questions that a call is made for; `None` if none of them has a score.
fn answer_reward(scope: &Scope, items: &BTreeMap<[&str; 4], &Item>, scorer: Scorer) -> Option<f64> {
    let name = scorer.to_string();
    let questions = questions(scope, items);
    let scores: Vec<f64> = questions.iter().filter_map(|item| Some(item.scores.get(&name)?.value)).collect();
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

/// A digest of questions and their gold answers. Ids do not tell whether two runs have asked the same: generated data have the
/// same ids for every seed.
fn task(questions: &[&Item]) -> String {
    let mut texts = Vec::new();
    for item in questions {
        texts.extend([item.question.id.as_str(), item.question.text.as_str()]);
        texts.extend(item.question.golds.iter().map(String::as_str));
    }
    short(&texts)
}

fn reward(record: &CallRecord, answer: f64) -> f64 {
    if record.finish.is_cut() { 0.0 } else { answer }
}

fn agent_key(record: &CallRecord) -> (&str, &str, Agent) {
    (&record.answered_by, &record.scope.method, record.agent)
}

/// The mean reward of the calls of each agent of a method with a model.
fn agent_means<'a>(scored: &[(&'a CallRecord, Option<f64>)]) -> BTreeMap<(&'a str, &'a str, Agent), f64> {
    let mut sums: BTreeMap<(&str, &str, Agent), (f64, usize)> = BTreeMap::new();
    for (record, answer) in scored {
        let Some(answer) = answer else { continue };
        let (sum, count) = sums.entry(agent_key(record)).or_default();
        (*sum, *count) = (*sum + reward(record, *answer), *count + 1);
    }
    sums.into_iter().map(|(key, (sum, count))| (key, sum / count as f64)).collect()
}
