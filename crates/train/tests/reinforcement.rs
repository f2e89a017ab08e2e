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
use train::batch::{Pass, tokens_of};
use train::examples::{Example, Line, Message, Reader};
use train::gradient::{score, zeros};
use train::lessons::{Learned, Learner, Lessons};
use train::memory::{Plan, parameters};
use train::optimiser::{Decay, Settings};
use train::policy::{Policy, SampledBy, Update};
use train::reinforce::{Reinforcement, Sample, Sampler, Task, Tasks};
use train::rollouts::{LeftOut, Offline};
use train::run::{Options, train};
use train::sampler::EngineSampler;
use train::{TrainError, curve};

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

    fn bytes(&self) -> train::Result<usize> {
        self.0.bytes()
    }
}

/// Replies that do not depend on the adapter.
struct Given([Sample; 2]);

impl Sampler for Given {
    fn sample(&mut self, _: Adapter, tasks: &[&Task], _: usize, _: u64) -> train::Result<Vec<Vec<Sample>>> {
        Ok(vec![self.0.to_vec(); tasks.len()])
    }

    fn bytes(&self) -> train::Result<usize> {
        Ok(0)
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
fn an_answer_ends_with_the_token_that_the_template_writes_behind_it() {
    let template = "{% for message in messages %}{{ message.role }}: {{ message.content }}\
                    {% if message.role == 'assistant' %}<|endoftext|>{% endif %}\n{% endfor %}\
                    {% if add_generation_prompt %}assistant: {% endif %}";
    let turn = |(role, content): (&str, &str)| Message { role: role.into(), content: content.into() };
    let line = Line::Chat { messages: [("user", "Where?"), ("assistant", "here")].map(turn).to_vec() };
    let end = |template: &str, eos: [&str; 2]| {
        let tiny = tiny_with(template);
        let Checkpoint { tokenizer, template, .. } = &tiny.checkpoint;
        let eos: Vec<u32> = eos.iter().filter_map(|name| tokenizer.special(name)).collect();
        let example = Reader { tokenizer, template, eos: &eos, longest: 200 }.example(&line).unwrap();
        let last = *example.tokens.last().unwrap();
        String::from_utf8(tokenizer.bytes(last).to_vec()).unwrap()
    };
    assert_eq!(end(template, ["<|im_end|>", "<|endoftext|>"]), "<|endoftext|>");
    assert_eq!(end(TEMPLATE, ["<|endoftext|>", "<|im_end|>"]), "<|im_end|>");
    // Nothing is learnt that does not end a reply.
    assert_eq!(end(template, ["<|im_end|>", "none"]), "<|im_end|>");
}

#[test]
fn the_memory_of_a_run_includes_the_engine() {
    let tiny = tiny();
    let tasks = tiny.tasks("pizza");
    let mut sampler = tiny.engine();
    let engine = sampler.bytes().unwrap();
    // The weights are 4 bytes each, and both layers have a key and a value of 64 dimensions in f16 for each token.
    assert!(engine > 16_384 * 2 * 2 * 64 * 2, "{engine}");
    let mut lessons = reinforcement(&tasks, &mut sampler);
    let spec = tiny.network.spec();
    let least = Plan::least(spec, parameters(spec, settings().rank, &settings().targets), lessons.pass_tokens());
    let folder = tempfile::tempdir().unwrap();
    let mut run = |memory: usize| {
        train(&tiny.network, &mut lessons, None, &Options { memory, ..options(folder.path(), 1) }, &mut |_| {})
    };
    for memory in [least, least + engine - 1] {
        let needed = least + engine;
        assert!(matches!(run(memory), Err(TrainError::Memory { needed: said, .. }) if said == needed), "{memory}");
    }
    assert_eq!(run(least + engine).unwrap().memory_bytes, least + engine);
}

#[test]
fn the_memory_of_a_run_includes_the_adapters_that_are_not_trained() {
    let tiny = tiny();
    let tasks = tiny.tasks("pizza");
    let mut sampler =
        Given([(); 2].map(|()| Sample { text: "pizza".into(), tokens: vec![65], forced: Vec::new(), is_whole: true }));
    let spec = tiny.network.spec();
    let reference = Lora::new(spec, settings(), &Device::Cpu, || 0.5).unwrap();
    let start = reference.adapter().unwrap();
    let one = 4 * parameters(spec, settings().rank, &settings().targets);
    let mut memory = |reference: Option<Lora>, start: Option<Adapter>| {
        let folder = tempfile::tempdir().unwrap();
        let mut lessons = Reinforcement { reference, ..reinforcement(&tasks, &mut sampler) };
        let options = Options { start, ..options(folder.path(), 1) };
        train(&tiny.network, &mut lessons, None, &options, &mut |_| {}).unwrap().memory_bytes
    };
    let without = memory(None, None);
    assert_eq!(memory(None, Some(start.clone())), without + one);
    assert_eq!(memory(Some(reference), Some(start)), without + 2 * one);
}

#[test]
fn the_tokens_of_a_pass_are_those_of_the_longest_group() {
    let tiny = tiny();
    let tasks = tiny.tasks("pizza");
    let mut sampler = tiny.engine();
    let lessons = Reinforcement { pass_tokens: 1, ..reinforcement(&tasks, &mut sampler) };
    let task = tasks.tasks.iter().max_by_key(|task| task.tokens.len()).unwrap();
    let start = task.tokens.len();
    let reply = |number: u32| {
        let tokens = [&task.tokens[..], &[65 + number; REPLY_TOKENS]].concat();
        Example { answer: start..tokens.len(), tokens, forced: Vec::new(), weight: 1.0 }
    };
    let group: Vec<Example> = (0..lessons.samples as u32).map(reply).collect();
    let (planned, taken) = (lessons.pass_tokens(), tokens_of(&group));
    assert!(planned >= taken && planned <= taken + 1, "{planned} planned, {taken} taken");
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
        assert!(sample.forced.is_empty(), "free text is drawn");
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
fn blanks_around_a_wanted_answer_do_not_matter() {
    let tiny = tiny();
    let line = |wanted: &str| {
        let turns = [("user", "Where?"), ("assistant", wanted)];
        let turns = turns.map(|(role, content)| Message { role: role.into(), content: content.into() });
        tiny.reader().example(&Line::Chat { messages: turns.into() })
    };
    assert_eq!(line(" here\n").unwrap(), line("here").unwrap());
}

#[test]
fn names_of_special_tokens_in_the_texts_of_a_rollout_are_plain_text() {
    let tiny = tiny();
    let said = "a <|im_end|> b";
    let path = tiny.folder.path().join("said.jsonl");
    let line = |turns: serde_json::Value, prompt: &str, reward: f32| {
        json!({ "prompt": turns, "prompt_text": prompt, "completion_ids": [65], "completion_end": 258, "role": "researcher",
                "method": "gam", "case": "a", "question": prompt, "finish": "stop", "reward": reward, "advantage": reward })
        .to_string()
    };
    let in_turn = format!("<|im_start|>user\n{said}<|im_end|>\n");
    let turns = json!([{ "role": "user", "content": format!("{said}\n") }]);
    // A prompt without turns has no template.
    fs::write(&path, [line(turns, &in_turn, 1.0), line(json!([]), said, -1.0)].join("\n")).unwrap();
    let rollouts = tiny.reader().rollouts(&[path], Agent::Researcher, 1.0).unwrap();
    let text = |text: &str| tiny.checkpoint.tokenizer.encode(text).unwrap();
    let want = [vec![257], text("user\n"), text(said), vec![258], text("\n"), vec![65, 258]].concat();
    assert_eq!(rollouts.examples[0].tokens, want);
    assert_eq!(rollouts.examples[1].tokens, [text(said), vec![65, 258]].concat());
}

#[test]
fn a_rollout_whose_reply_follows_a_thought_is_refused() {
    let tiny = tiny();
    let path = tiny.folder.path().join("thought.jsonl");
    let line = json!({ "prompt": [{ "role": "user", "content": "Hm." }], "completion_ids": [65], "completion_end": null,
                       "prompt_text": "<|im_start|>user\nHm.<|im_end|>\n<|im_start|>assistant\n<think>\n",
                       "role": "researcher", "method": "gam", "case": "a", "question": "1", "reward": 1, "advantage": 1 });
    fs::write(&path, line.to_string()).unwrap();
    let error = tiny.reader().rollouts(&[path], Agent::Researcher, 1.0).unwrap_err().to_string();
    assert!(error.ends_with("line 1: its reply follows a thought, which a rollout does not have"), "{error}");
}

#[test]
fn replies_that_were_better_become_more_probable() {
    let tiny = tiny();
    let prompt = &tiny.tasks("pizza").tasks[0].tokens;
    let example = |reply: [u32; 2], weight| {
        let tokens = [&prompt[..], &reply].concat();
        Example { answer: prompt.len()..tokens.len(), tokens, forced: Vec::new(), weight }
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

/// The sums of gradients that differ by more than rounding.
fn differing(a: &[Vec<f32>], b: &[Vec<f32>]) -> usize {
    a.iter().flatten().zip(b.iter().flatten()).filter(|(a, b)| (*a - *b).abs() > 1e-4 * a.abs().max(1.0)).count()
}

#[test]
fn forced_tokens_have_no_part_in_gradients_loss_and_divergence() {
    let tiny = tiny();
    let prompt = &tiny.tasks("pizza").tasks[0].tokens;
    let lora = Lora::new(tiny.network.spec(), settings(), &Device::Cpu, || 0.3).unwrap();
    // The adapter has an effect, so that it differs from the reference, which is the base.
    for variable in lora.variables() {
        let values: Vec<f32> = (0..variable.elem_count()).map(|at| 0.05 * ((at % 7) as f32 - 3.0)).collect();
        variable.set(&candle_core::Tensor::from_vec(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
    }
    let learn = |forced: &[usize]| {
        let tokens = [&prompt[..], &[65, 66, 67]].concat();
        let forced = forced.iter().map(|at| prompt.len() + at).collect();
        let example = Example { answer: prompt.len()..tokens.len(), tokens, forced, weight: 0.7 };
        let update = Update {
            // No ratio is clipped.
            policy: Policy { clip: 100.0, kl: 0.1 },
            learner: Learner { network: &tiny.network, lora: &lora, kept: 9 },
            reference: None,
            sampled_by: SampledBy::Reference,
            pass_tokens: 256,
            replies: 1,
        };
        let mut sums = zeros(&lora);
        (update.learn(&[&[example][..]], 0.5, &mut sums).unwrap(), sums)
    };
    let none: &[usize] = &[];
    let [(all, whole), (outer, most), (inner, rest)] = [none, &[1], &[0, 2]].map(learn);
    let means = |learned: Learned| [learned.loss, learned.rewarded.unwrap().1];
    for ((all, outer), inner) in means(all).into_iter().zip(means(outer)).zip(means(inner)) {
        let difference = (3.0 * all - 2.0 * outer - inner).abs();
        assert!(inner != 0.0 && difference < 1e-3 * (1.0 + all.abs()), "{all} of {outer} and {inner}");
    }
    let together: Vec<Vec<f32>> =
        most.iter().zip(&rest).map(|(most, rest)| most.iter().zip(rest).map(|(a, b)| a + b).collect()).collect();
    assert_eq!(differing(&whole, &together), 0);
    assert!(differing(&whole, &most) > 0);
}

#[test]
fn reinforcement_learns_from_the_drawn_tokens_of_replies() {
    let tiny = tiny();
    let tasks = tiny.tasks("pizza");
    let lora = Lora::new(tiny.network.spec(), settings(), &Device::Cpu, || 0.3).unwrap();
    let step = |forced: &[u32]| {
        let reply = |text: &str, first: u32| Sample {
            text: text.into(),
            tokens: [&[first][..], forced].concat(),
            forced: (1..=forced.len()).collect(),
            is_whole: true,
        };
        let mut sampler = Given([reply("pizza", 65), reply("no", 68)]);
        let (learner, mut sums) = (Learner { network: &tiny.network, lora: &lora, kept: 9 }, zeros(&lora));
        let learned = reinforcement(&tasks, &mut sampler).step(0, learner, &mut sums).unwrap();
        (learned.loss, sums)
    };
    let (with, without) = (step(&[66, 67]), step(&[]));
    assert!((with.0 - without.0).abs() < 1e-4, "{} and {}", with.0, without.0);
    assert_eq!(differing(&with.1, &without.1), 0);
    assert!(differing(&with.1, &zeros(&lora)) > 0);
}

#[test]
fn only_what_was_drawn_at_the_temperature_is_learnt_from_rollouts() {
    let tiny = tiny();
    let path = tiny.folder.path().join("drawn.jsonl");
    let line = |temperature: serde_json::Value, drawn: serde_json::Value, end: Option<u32>| {
        json!({ "prompt_text": "Hm.", "completion_ids": [65, 66], "completion_drawn": drawn, "completion_end": end,
                "temperature": temperature, "role": "researcher", "method": "gam", "case": "a", "question": "1",
                "reward": 1, "advantage": 0.5 })
        .to_string()
    };
    let read = |lines: &[String]| {
        fs::write(&path, lines.join("\n")).unwrap();
        tiny.reader().rollouts(std::slice::from_ref(&path), Agent::Researcher, 0.3)
    };
    let rollouts = read(&[
        line(json!(0.3), json!([false, true]), Some(70)),
        line(json!(0.3), json!([false, false]), None),
        line(json!(0), json!([true, true]), Some(70)),
        line(json!(0.5), json!([true, true]), Some(70)),
        // As older runs wrote it.
        line(json!(null), json!(null), Some(70)),
    ])
    .unwrap();
    let learned = |example: &Example| example.learned().map(|at| example.tokens[at]).collect::<Vec<u32>>();
    let learned: Vec<Vec<u32>> = rollouts.examples.iter().map(learned).collect();
    assert_eq!(learned, [vec![66, 70], vec![65, 66, 70]]);
    assert_eq!(rollouts.left_out, LeftOut { equal: 1, too_long: 0, greedy: 1, other_temperature: 1 });
    let error = read(&[line(json!(0), json!([true, true]), None)]).unwrap_err().to_string();
    let why = "no calls of the researcher at temperature 0.3 with different rewards; left out: 0 as equally rewarded or not \
               drawn, 0 as too long, 1 as greedy, 0 as drawn at another temperature";
    assert!(error.ends_with(why), "{error}");
    let error = read(&[line(json!(0.3), json!([true]), None)]).unwrap_err().to_string();
    assert!(error.ends_with("line 1: completion_drawn and completion_ids have different lengths"), "{error}");
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
    let both = reader.rollouts(&[first.clone(), second], Agent::Researcher, 1.0).unwrap();
    let weights: HashMap<u32, f32> =
        both.examples.iter().map(|example| (example.tokens[example.answer.start], example.weight)).collect();
    assert_eq!((both.left_out, both.reward), (LeftOut { equal: 2, ..LeftOut::default() }, 0.375));
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
    let closed = reader.rollouts(&[closed], Agent::Researcher, 1.0).unwrap();
    let replies: Vec<&[u32]> = closed.examples.iter().map(|example| &example.tokens[example.answer.clone()]).collect();
    assert_eq!((replies, closed.left_out.equal), (vec![&[65, 66][..], &[70]], 1), "only what was drawn is learnt");
    let one = reader.rollouts(std::slice::from_ref(&first), Agent::Researcher, 1.0).unwrap();
    assert_eq!(one.examples.iter().map(|example| example.weight).collect::<Vec<_>>(), [0.5, -0.25]);
    let error = reader.rollouts(&[first], Agent::Judge, 1.0).unwrap_err();
    assert!(error.to_string().contains("no calls of the judge"), "{error}");

    let policy = Policy { clip: 0.2, kl: 0.1 };
    let sampling = "temperature 1".into();
    let mut lessons =
        Offline { rollouts: &both, sampling, batch: 2, pass_tokens: 256, policy, reference: None, seed: 1 };
    let folder = tempfile::tempdir().unwrap();
    train(&tiny.network, &mut lessons, None, &options(folder.path(), 5), &mut |_| {}).unwrap();
    let rows = curve::read(folder.path(), 99);
    assert_eq!(rows.len(), 5);
    assert!(rows.iter().all(|row| row.rewarded.unwrap().0 == 0.375) && rows[4].rewarded.unwrap().1 > 0.0);
    assert!(lessons.settings().iter().any(|(name, _)| name == "data"));
}
