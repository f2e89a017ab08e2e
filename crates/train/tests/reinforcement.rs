//! Reinforcement on a tiny network with random weights: rewards rise, and rollouts of files are compared with each other.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use calls::Agent;
use candle_core::Device;
use models::adapter::{Adapter, Projection};
use models::{Checkpoint, LoadOptions, LocalTime};
use portable::{Lora, LoraSettings, Network};
use serde_json::json;
use train::batch::Pass;
use train::curve;
use train::examples::{Example, Reader};
use train::gradient::{score, zeros};
use train::lessons::{Learner, Lessons};
use train::optimiser::{Decay, Settings};
use train::policy::{Policy, SampledBy, Update};
use train::reinforce::{Reinforcement, Sample, Sampler, Task, Tasks};
use train::rollouts::Offline;
use train::run::{Options, train};
use train::sampler::EngineSampler;

const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
                        {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

const REPLY_TOKENS: usize = 4;

struct Tiny {
    folder: tempfile::TempDir,
    checkpoint: Checkpoint,
    network: Network,
}

/// The golden Llama with random weights, where every byte is a token.
fn tiny() -> Tiny {
    tiny_with(TEMPLATE)
}

/// The same with a chat template.
fn tiny_with(template: &str) -> Tiny {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama");
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        fs::copy(golden.join(name), folder.path().join(name)).unwrap();
    }
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let checkpoint = Checkpoint::open(folder.path(), LoadOptions::default()).unwrap();
    let network = Network::load(&checkpoint.spec, &checkpoint.weights, 256, &Device::Cpu).unwrap();
    Tiny { folder, checkpoint, network }
}

impl Tiny {
    fn reader(&self) -> Reader<'_> {
        let Checkpoint { tokenizer, template, eos, .. } = &self.checkpoint;
        Reader { tokenizer, template, eos, longest: 200 }
    }

    fn tasks(&self, wanted: &str) -> Tasks {
        let path = self.folder.path().join("tasks.jsonl");
        let line = |question: &str| {
            let turns = [("system", "Be short."), ("user", question), ("assistant", wanted)];
            json!({ "messages": turns.map(|(role, content)| json!({ "role": role, "content": content })) }).to_string()
        };
        fs::write(&path, [line("Where?"), line(&"Why? ".repeat(50)), line("When?")].join("\n")).unwrap();
        let tasks = self.reader().tasks(&path, REPLY_TOKENS).unwrap();
        assert_eq!(tasks.too_long, 1);
        tasks
    }

    fn engine(&self) -> EngineSampler {
        let model = self.folder.path().to_owned();
        EngineSampler { model, temperature: 1.0, reply_tokens: REPLY_TOKENS, time: LocalTime::now() }
    }
}

fn settings() -> LoraSettings {
    LoraSettings { rank: 4, alpha: 8.0, targets: Projection::ALL.to_vec() }
}

fn options(folder: &Path, steps: usize) -> Options {
    let LoraSettings { rank, alpha, targets } = settings();
    Options {
        folder: folder.to_owned(),
        base: "tiny".into(),
        base_digest: "tiny".into(),
        seed: 5,
        rank,
        alpha,
        targets,
        start: None,
        optimiser: Settings { rate: 2e-2, warm_up: 0, steps, decay: Decay::Linear, weight_decay: 0.0, clip: 1.0 },
        memory: 1 << 30,
        checkpoint_every: Duration::from_hours(1),
        evaluate_every: 1000,
        stop_after: None,
        time: LocalTime::now(),
    }
}

fn reinforcement<'a>(tasks: &'a Tasks, sampler: &'a mut dyn Sampler) -> Reinforcement<'a> {
    Reinforcement {
        tasks,
        sampler,
        sampling: "temperature 1".into(),
        batch: 2,
        samples: 16,
        reply_tokens: REPLY_TOKENS,
        pass_tokens: 256,
        policy: Policy { clip: 0.2, kl: 0.0 },
        reference: None,
        seed: 5,
    }
}

/// The engine, whose replies count as the wanted one if they begin with one of a quarter of all bytes: a random network
/// almost never writes a word.
struct Lenient(EngineSampler);

impl Sampler for Lenient {
    fn sample(
        &mut self,
        adapter: Adapter,
        tasks: &[&Task],
        count: usize,
        seed: u64,
    ) -> train::Result<Vec<Vec<Sample>>> {
        let mut replies = self.0.sample(adapter, tasks, count, seed)?;
        for reply in replies.iter_mut().flatten() {
            let is_wanted = reply.tokens.first().is_some_and(|token| token % 4 == 1);
            reply.text = if is_wanted { "pizza" } else { "no" }.into();
            reply.is_whole = true;
        }
        Ok(replies)
    }
}

#[test]
fn rewards_rise_and_a_killed_run_ends_as_an_undisturbed_one() {
    let tiny = tiny();
    let tasks = tiny.tasks("pizza");
    let run = |folder: &Path, stop_after| {
        let mut sampler = Lenient(tiny.engine());
        let options = Options { stop_after, ..options(folder, 30) };
        train(&tiny.network, &mut reinforcement(&tasks, &mut sampler), None, &options, &mut |_| {}).unwrap();
        curve::read(folder, 99)
    };
    let [whole, parts] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let rows = run(whole.path(), None);
    let rewards: Vec<f32> = rows.iter().map(|row| row.rewarded.unwrap().0).collect();
    let mean = |part: &[f32]| part.iter().sum::<f32>() / part.len() as f32;
    assert!(mean(&rewards[..3]) < 0.5 && mean(&rewards[25..]) > 0.8, "{rewards:?}");
    run(parts.path(), Some(7));
    run(parts.path(), None);
    let adapter = |folder: &Path| fs::read(folder.join("adapter/adapter_model.safetensors")).unwrap();
    assert!(adapter(whole.path()) == adapter(parts.path()), "the adapters differ");
}

#[test]
fn replies_of_the_engine_are_what_the_trainer_scores() {
    let tiny = tiny();
    let tasks = tiny.tasks("pizza");
    let both: Vec<&Task> = tasks.tasks.iter().collect();
    let lora = Lora::new(tiny.network.spec(), settings(), &Device::Cpu, || 0.3).unwrap();
    let [first, again] = [(); 2].map(|()| tiny.engine().sample(lora.adapter().unwrap(), &both, 3, 7).unwrap());
    assert_eq!(first, again, "the seed determines the replies");
    assert_ne!(first, tiny.engine().sample(lora.adapter().unwrap(), &both, 3, 8).unwrap());
    assert_eq!(first.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
    for sample in first.iter().flatten() {
        let ends = sample.tokens.last().is_some_and(|token| tiny.checkpoint.eos.contains(token));
        assert_eq!((ends, sample.tokens.len() <= REPLY_TOKENS + usize::from(ends)), (sample.is_whole, true));
    }
}

#[test]
fn a_reply_ends_with_the_token_that_was_drawn() {
    let tiny = tiny();
    let tasks = tiny.tasks("pizza");
    // The engine reads that each fourth byte ends a reply.
    let path = tiny.folder.path().join("config.json");
    let mut config: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config["eos_token_id"] = (0..256).step_by(4).collect();
    fs::write(&path, config.to_string()).unwrap();
    let is_end = |token: &u32| token.is_multiple_of(4) || tiny.checkpoint.eos.contains(token);
    let lora = Lora::new(tiny.network.spec(), settings(), &Device::Cpu, || 0.3).unwrap();
    let samples = tiny.engine().sample(lora.adapter().unwrap(), &[&tasks.tasks[0]], 32, 7).unwrap().remove(0);
    let mut ends = HashSet::new();
    for Sample { tokens, is_whole, .. } in &samples {
        let (last, before) = tokens.split_last().unwrap();
        assert!(!before.iter().any(is_end) && is_end(last) == *is_whole, "{tokens:?}");
        ends.extend(is_whole.then_some(*last));
    }
    assert!(ends.len() > 2, "{ends:?}");
}

#[test]
fn prompts_are_those_of_the_engine() {
    // Qwen3's template writes an empty thought before the last answer, and after the opened turn if the model is not to think.
    let thinks = TEMPLATE
        .replace(
            "{{ message.content }}",
            "{% if loop.last and message.role == 'assistant' %}<think>\n\n</think>\n\n{% endif %}{{ message.content }}",
        )
        .replace(
            "assistant\n{% endif %}",
            "assistant\n{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}{% endif %}",
        );
    assert!(thinks.contains("loop.last") && thinks.contains("enable_thinking"));
    let turns = [
        ("system", ""),
        ("user", "Where?"),
        ("user", "And when?"),
        ("assistant", "Here."),
        ("user", "Now?"),
        ("assistant", "no"),
    ];
    let line = json!({ "messages": turns.map(|(role, content)| json!({ "role": role, "content": content })) });
    for template in [TEMPLATE, &thinks] {
        let tiny = tiny_with(template);
        let path = tiny.folder.path().join("turns.jsonl");
        fs::write(&path, line.to_string()).unwrap();
        let tasks = tiny.reader().tasks(&path, REPLY_TOKENS).unwrap();
        let adapter = Lora::new(tiny.network.spec(), settings(), &Device::Cpu, || 0.3).unwrap().adapter().unwrap();
        // The engine's prompts are compared with those of the tasks.
        assert_eq!(tiny.engine().sample(adapter, &[&tasks.tasks[0]], 2, 7).unwrap()[0].len(), 2);
    }
}

#[test]
fn replies_that_were_better_become_more_probable() {
    let tiny = tiny();
    let prompt = &tiny.tasks("pizza").tasks[0].tokens;
    let example = |reply: [u32; 2], weight| {
        let tokens = [&prompt[..], &reply].concat();
        Example { answer: prompt.len()..tokens.len(), tokens, weight }
    };
    let group = [example([65, 66], 1.0), example([67, 68], -1.0)];
    let lora = Lora::new(tiny.network.spec(), settings(), &Device::Cpu, || 0.3).unwrap();
    let log_probs = |lora: &Lora| {
        let pass = Pass::new(&[&group[..]]);
        let scored = score(&tiny.network, Some(lora), &pass).unwrap();
        [0, 2].map(|from| scored[from..from + 2].iter().map(|token| token.log_prob).sum::<f32>())
    };
    let before = log_probs(&lora);
    for (sampled_by, kl) in [(SampledBy::Trained, 0.0), (SampledBy::Reference, 0.1)] {
        let mut sums = zeros(&lora);
        let update = Update {
            policy: Policy { clip: 0.2, kl },
            learner: Learner { network: &tiny.network, lora: &lora, kept: 9 },
            reference: Some(&lora),
            sampled_by,
            pass_tokens: 256,
            replies: 2,
        };
        let learned = update.learn(&[&group[..]], 0.5, &mut sums).unwrap();
        assert!((learned.loss + (before[0] + before[1]) / 4.0).abs() < 1e-4);
        assert_eq!(learned.rewarded, Some((0.5, 0.0)), "the reference is the adapter itself");
        let moved = Lora::new(tiny.network.spec(), settings(), &Device::Cpu, || 0.3).unwrap();
        for (variable, gradient) in moved.variables().into_iter().zip(&sums) {
            let values = variable.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let values: Vec<f32> = values.iter().zip(gradient).map(|(value, g)| value - 0.01 * g).collect();
            variable.set(&candle_core::Tensor::from_vec(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
        }
        let after = log_probs(&moved);
        assert!(after[0] > before[0] && after[1] < before[1], "{before:?} became {after:?}");
    }
}

#[test]
fn rollouts_of_several_files_are_compared_and_those_of_one_have_the_baseline_of_the_agent() {
    let tiny = tiny();
    let of = |agent: &str, question: Option<&str>, ids: &[u32], end: Option<u32>, reward: f32, advantage: f32| {
        json!({ "prompt_text": "<|im_start|>user\nHm.<|im_end|>\n", "completion_ids": ids, "completion_end": end,
                "role": agent, "method": "gam", "case": "a", "question": question, "finish": "stop", "reward": reward,
                "advantage": advantage })
        .to_string()
    };
    let line = |agent: &str, question: Option<&str>, ids: [u32; 2], reward: f32, advantage: f32| {
        of(agent, question, &ids, Some(70), reward, advantage)
    };
    let write = |name: &str, lines: &[String]| {
        let path = tiny.folder.path().join(name);
        fs::write(&path, lines.join("\n")).unwrap();
        path
    };
    let first = write(
        "first.jsonl",
        &[
            line("researcher", Some("1"), [65, 66], 1.0, 0.5),
            line("researcher", Some("2"), [66, 66], 0.25, -0.25),
            line("memorizer", None, [67, 67], 0.6, 0.0),
        ],
    );
    let second = write(
        "second.jsonl",
        &[line("researcher", Some("1"), [68, 66], 0.0, -0.5), line("researcher", Some("2"), [69, 66], 0.25, 0.0)],
    );
    let reader = tiny.reader();
    let both = reader.rollouts(&[first.clone(), second], Agent::Researcher).unwrap();
    let weights: HashMap<u32, f32> =
        both.examples.iter().map(|example| (example.tokens[example.answer.start], example.weight)).collect();
    assert_eq!((both.equal, both.too_long, both.reward), (2, 0, 0.375));
    assert!(weights.len() == 2 && (weights[&65] - 0.707).abs() < 1e-3 && (weights[&68] + 0.707).abs() < 1e-3);
    assert_eq!(both.examples[0].tokens.last(), Some(&70), "the token that was drawn to end the reply");
    let closed = write(
        "closed.jsonl",
        &[
            of("researcher", Some("1"), &[65, 66], None, 1.0, 0.5),
            of("researcher", Some("2"), &[], Some(70), 1.0, 0.5),
            of("researcher", Some("3"), &[], None, 0.0, -1.0),
        ],
    );
    let closed = reader.rollouts(&[closed], Agent::Researcher).unwrap();
    let replies: Vec<&[u32]> = closed.examples.iter().map(|example| &example.tokens[example.answer.clone()]).collect();
    assert_eq!((replies, closed.equal), (vec![&[65, 66][..], &[70]], 1), "only what was drawn is learnt");
    let one = reader.rollouts(std::slice::from_ref(&first), Agent::Researcher).unwrap();
    assert_eq!(one.examples.iter().map(|example| example.weight).collect::<Vec<_>>(), [0.5, -0.25]);
    let error = reader.rollouts(&[first], Agent::Judge).unwrap_err();
    assert!(error.to_string().contains("no calls of the judge"), "{error}");

    let policy = Policy { clip: 0.2, kl: 0.1 };
    let mut lessons = Offline { rollouts: &both, batch: 2, pass_tokens: 256, policy, reference: None, seed: 1 };
    let folder = tempfile::tempdir().unwrap();
    train(&tiny.network, &mut lessons, None, &options(folder.path(), 5), &mut |_| {}).unwrap();
    let rows = curve::read(folder.path(), 99);
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row.rewarded.unwrap().0 == 0.375) && rows[4].rewarded.unwrap().1 > 0.0);
    assert!(lessons.settings().iter().any(|(name, _)| name == "data"));
}
