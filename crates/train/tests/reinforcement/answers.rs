//! Reinforcement on answers: rewards rise, and replies are what the engine samples.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use candle_core::Device;
use models::Checkpoint;
use models::adapter::Adapter;
use portable::Lora;
use serde_json::json;
use train::batch::tokens_of;
use train::examples::{Example, Line, Message, Reader};
use train::gradient::zeros;
use train::lessons::{Learner, Lessons};
use train::memory::{Plan, parameters};
use train::policy::Policy;
use train::reinforce::{Reinforcement, Sample, Sampler, Task, Tasks};
use train::run::{Options, train};
use train::sampler::EngineSampler;
use train::{TrainError, curve};

use super::tiny::{REPLY_TOKENS, TEMPLATE, differing, fresh, options, settings, tiny, tiny_with};

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
    let lora = fresh(&tiny);
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
    let lora = fresh(&tiny);
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
        let adapter = fresh(&tiny).adapter().unwrap();
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
fn reinforcement_learns_from_the_drawn_tokens_of_replies() {
    let tiny = tiny();
    let tasks = tiny.tasks("pizza");
    let lora = fresh(&tiny);
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
