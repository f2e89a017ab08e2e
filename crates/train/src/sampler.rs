//! Samples replies with memlocal's engine.

use std::collections::HashMap;
use std::path::PathBuf;

use calls::{Agent, Call, Caller, Finish, Reply, Sampling};
use candle_core::Device;
use engine::{Adapters, Config, Engine, Models, NamedAdapter};
use futures_util::future::try_join_all;
use models::adapter::Adapter;
use models::{Footprint, LanguageModel, LoadOptions, LocalTime};
use random::Random;

use crate::error::{Result, TrainError};
use crate::examples::forced;
use crate::reinforce::{Sample, Sampler, Task};

const STEP: &str = "reinforce";

/// An engine that is started with the newest adapter for each step.
#[derive(Debug)]
pub struct EngineSampler {
    /// The base model: a GGUF file, or a folder with safetensors.
    pub model: PathBuf,
    pub temperature: f32,
    /// Tokens of a reply at most.
    pub reply_tokens: usize,
    /// The time in the prompts.
    pub time: LocalTime,
}

impl EngineSampler {
    fn call(&self, task: &Task, seed: u64) -> Call {
        let sampling = Sampling::at(self.temperature, seed);
        let call = Call::new(Agent::Responder, STEP, task.prompt.clone(), self.reply_tokens);
        Call { sampling, logprobs: Some(0), ..call }
    }
}

/// A reply with the token that was drawn to end it.
fn sample_of(reply: &Reply) -> Result<Sample> {
    let ids: Option<Vec<u32>> = reply.logprobs.iter().map(|token| token.id).collect();
    let mut tokens = ids.ok_or_else(|| TrainError::Rollout("a reply has no token ids".into()))?;
    tokens.extend(reply.end_token);
    let forced = forced(0, reply.logprobs.iter().map(|token| token.drawn));
    Ok(Sample { text: reply.text.clone(), tokens, forced, is_whole: reply.finish == Finish::Stop })
}

impl Sampler for EngineSampler {
    fn sample(&mut self, adapter: Adapter, tasks: &[&Task], count: usize, seed: u64) -> Result<Vec<Vec<Sample>>> {
        let failed = |error: &dyn std::fmt::Display| TrainError::Rollout(error.to_string());
        let model = LanguageModel::load(&self.model, &Device::Cpu)?;
        let model = LanguageModel { template: model.template.at(self.time), ..model };
        let loaded = vec![NamedAdapter { name: "newest".into(), model: 0, adapter }];
        let adapters = Adapters { loaded, agents: HashMap::from([(Agent::Responder, 0)]) };
        let models = Models { language: vec![("base".into(), model)], agents: HashMap::new(), embedder: None };
        let config = Config { max_waiting: tasks.len() * count, ..Config::default() };
        let engine = Engine::start_with(models, adapters, config, None).map_err(|error| failed(&error))?;
        let mut random = Random::new(seed);
        let mut calls = Vec::with_capacity(tasks.len() * count);
        for task in tasks {
            let first = self.call(task, random.bits());
            if engine.prompt_ids(&first).map_err(|error| failed(&error))? != task.tokens {
                return Err(TrainError::Rollout("the engine tokenises a prompt in another way".into()));
            }
            calls.push(first);
            calls.extend((1..count).map(|_| self.call(task, random.bits())));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(|error| failed(&error))?;
        let replies = runtime.block_on(try_join_all(calls.into_iter().map(|call| engine.call(call))));
        let replies = replies.map_err(|error| failed(&error))?;
        let samples: Vec<Sample> = replies.iter().map(sample_of).collect::<Result<_>>()?;
        Ok(samples.chunks(count).map(<[Sample]>::to_vec).collect())
    }

    /// Those of its weights and of its KV cache.
    fn bytes(&self) -> Result<usize> {
        let footprint = Footprint::of(&self.model, LoadOptions::default())?;
        let Config { kv_tokens, kv_precision, .. } = Config::default();
        let kv = kv_precision.bytes(kv_tokens as u64 * footprint.kv_bytes_per_token);
        Ok(usize::try_from(footprint.weights.all + kv).unwrap_or(usize::MAX))
    }
}
