//! The files of a training run beside its corpus, and the training itself.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ::train::base::{Base, digest};
use ::train::error::{THREADS, TrainError};
use ::train::lessons::Supervised;
use ::train::memory::{Plan, parameters};
use ::train::optimiser::{Decay, Settings};
use ::train::run::{ADAPTER, Options};
use ::train::state;
use anyhow::{Context, Result};
use launch::corpus_adapter::{configuration, reader_of};
use launch::failure::refusal;
use models::Checkpoint;
use models::adapter::{Adapter, Projection};
use serde_json::Value;
use store::{Corpus, private};

use super::limit::Limit;

/// Groups of examples of a step: examples with the same text are a group.
pub(super) const BATCH: usize = 8;

/// Times that every example is seen, unless the steps are given.
pub(super) const EPOCHS: usize = 2;

/// Far below the rate of a new adapter: the start is trained already, and the questions are few.
const RATE: f32 = 3e-5;

const WARM_UP: usize = 5;

/// Rank and alpha of an adapter that begins from nothing.
const RANK: (u64, f64) = (8, 16.0);

/// The most tokens of an example.
const LONGEST: usize = 1024;

/// Tokens that go through the network together.
const PASS_TOKENS: usize = 2048;

const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);

/// The older adapter while a new one takes its place.
const REPLACED: &str = "replaced";

/// How an adapter is trained.
pub(super) struct TrainConfig<'a> {
    /// Weights of the base model.
    pub model: PathBuf,
    /// Name of the base model, for the adapter's configuration.
    pub base: String,
    pub start: Option<&'a Path>,
    /// Without them every example is seen [`EPOCHS`] times.
    pub steps: Option<usize>,
    pub seed: u64,
    pub limit: Limit,
    /// Digests of the model's files, if its manifest states them.
    pub stated: Option<String>,
}

/// What a step takes.
pub(super) struct Cost {
    pub step: Duration,
    pub memory_bytes: usize,
}

/// The folder `work` of what is trained on a corpus, until a run ends.
pub(super) struct Work {
    folder: PathBuf,
    /// What determines the examples.
    plan: Value,
    _lock: File,
}

impl Work {
    /// Opens the folder, and ends a replacement of the corpus's adapter that was interrupted.
    ///
    /// # Errors
    /// If another process trains on the corpus.
    pub fn open(corpus: &Corpus) -> Result<Work> {
        let folder = corpus.trained().join("work");
        private::folder(&folder).with_context(|| format!("cannot write {}", folder.display()))?;
        let lock = private::create(&folder.join("lock"))?;
        if lock.try_lock().is_err() {
            let hint = "wait until it has ended, or stop it: the same command resumes it";
            return Err(refusal(format!("another process trains on {}", corpus.name()), hint));
        }
        let work = Work { folder, plan: Value::Null, _lock: lock };
        work.end_replacement(&reader_of(corpus))?;
        Ok(work)
    }

    pub fn with_plan(self, plan: Value) -> Work {
        Work { plan, ..self }
    }

    /// The folder for the adapter that the model comes with.
    pub fn start(&self) -> PathBuf {
        self.folder.join("start")
    }

    /// The adapter of a finished run.
    pub fn adapter(&self) -> PathBuf {
        self.folder.join("run").join(ADAPTER)
    }

    /// Whether the examples of the same command are here.
    pub fn is_planned(&self) -> Result<bool> {
        match fs::read(self.folder.join("plan.json")) {
            Ok(bytes) => Ok(serde_json::from_slice::<Value>(&bytes).is_ok_and(|plan| plan == self.plan)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).context("cannot read the plan of the last run"),
        }
    }

    /// Deletes what a run with another plan has left.
    pub fn begin(&self) -> Result<()> {
        for old in ["plan.json", "data.jsonl", "held_out.jsonl"] {
            if_there(fs::remove_file(self.folder.join(old)))?;
        }
        ["run", "timed"].iter().try_for_each(|old| if_there(fs::remove_dir_all(self.folder.join(old))))
    }

    /// Keeps the examples, one a line, and the plan.
    pub fn put_examples(&self, training: &str, held_out: &str) -> Result<()> {
        private::replace(&self.folder.join("data.jsonl"), training)?;
        private::replace(&self.folder.join("held_out.jsonl"), held_out)?;
        // Last: with it the examples are whole.
        Ok(private::replace(&self.folder.join("plan.json"), self.plan.to_string())?)
    }

    pub fn copy_data(&self, to: &Path) -> Result<()> {
        let data = fs::read(self.folder.join("data.jsonl"))?;
        private::write(to, data).with_context(|| format!("cannot write {}", to.display()))
    }

    pub fn held_out(&self) -> Result<Vec<Value>> {
        let text = fs::read_to_string(self.folder.join("held_out.jsonl"))?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// Makes one step on these examples and forgets it.
    pub fn time(&self, examples: &str, config: &TrainConfig<'_>) -> Result<Cost> {
        let folder = self.folder.join("timed");
        private::folder(&folder)?;
        let data = folder.join("data.jsonl");
        private::write(&data, examples)?;
        let cost = config.run(&data, &folder, &mut |_| ())?;
        fs::remove_dir_all(&folder)?;
        Ok(cost)
    }

    /// Trains on the examples, from the last checkpoint if there is one.
    pub fn train(&self, config: &TrainConfig<'_>, say: &mut dyn FnMut(&str)) -> Result<()> {
        let folder = self.folder.join("run");
        let ended = config.run(&self.folder.join("data.jsonl"), &folder, say);
        ended.map(drop).map_err(|error| explained(error, &folder))
    }

    /// Puts the trained adapter to a place, instead of an older one; only its owner may read it.
    pub fn install(&self, place: &Path) -> Result<()> {
        let next = self.folder.join("next");
        if_there(fs::remove_dir_all(&next))?;
        private::folder(&next)?;
        for file in Adapter::files(&self.adapter()) {
            let name = file.file_name().context("a file without a name")?;
            private::replace(&next.join(name), fs::read(&file)?)?;
        }
        let cannot = || format!("cannot install {}", place.display());
        if_there(fs::rename(place, self.folder.join(REPLACED))).with_context(cannot)?;
        let installed = fs::rename(&next, place).and_then(|()| private::sync_name(place));
        let ended = self.end_replacement(place);
        installed.with_context(cannot)?;
        ended
    }

    /// Deletes the older adapter if the new one is in its place, and puts it back otherwise.
    fn end_replacement(&self, place: &Path) -> Result<()> {
        let replaced = self.folder.join(REPLACED);
        if place.is_dir() {
            return if_there(fs::remove_dir_all(replaced));
        }
        if_there(fs::rename(replaced, place))?;
        Ok(private::sync_name(place)?)
    }

    /// Deletes the texts and checkpoints of a finished run.
    pub fn clear(self) -> Result<()> {
        fs::remove_dir_all(&self.folder).with_context(|| format!("cannot remove {}", self.folder.display()))
    }
}

impl TrainConfig<'_> {
    /// # Errors
    /// If training needs more memory than is allowed.
    pub fn check(&self) -> Result<()> {
        self.open().map(drop)
    }

    /// The model, not loaded yet, if there is memory to train it.
    fn open(&self) -> Result<Checkpoint> {
        let (rank, _) = self.shape()?;
        let checkpoint = Base::open(&self.model)?;
        let spec = &checkpoint.spec;
        self.limit.check(Plan::least(spec, parameters(spec, rank as usize, &Projection::ALL), PASS_TOKENS))?;
        Ok(checkpoint)
    }

    /// Rank and alpha.
    fn shape(&self) -> Result<(u64, f64)> {
        self.start.map_or(Ok(RANK), shape_of)
    }

    /// Trains on the examples of a file, from the last checkpoint in the folder if there is one. The cost is that of a run
    /// without a checkpoint.
    fn run(&self, data: &Path, folder: &Path, say: &mut dyn FnMut(&str)) -> Result<Cost> {
        let (rank, alpha) = self.shape()?;
        let time = state::time(folder)?;
        let base = Base::of(self.open()?, LONGEST, None)?.at(time);
        let start_from = |path| base.start_from(path, rank as usize, alpha as f32, &Projection::ALL);
        let start = self.start.map(start_from).transpose()?;
        let training = base.reader().read(data)?;
        if training.too_long > 0 {
            say(&format!("{} examples are left out as longer than {LONGEST} tokens", training.too_long));
        }
        let steps = self.steps.unwrap_or((EPOCHS * training.groups.len()).div_ceil(BATCH));
        let warm_up = WARM_UP.min(steps / 2);
        let optimiser = Settings { rate: RATE, warm_up, steps, decay: Decay::Linear, weight_decay: 0.01, clip: 1.0 };
        let options = Options {
            folder: folder.to_owned(),
            base: self.base.clone(),
            base_digest: self.stated.clone().map_or_else(|| digest(&self.model), Ok)?,
            seed: self.seed,
            rank: rank as usize,
            alpha: alpha as f32,
            targets: Projection::ALL.to_vec(),
            start,
            optimiser,
            memory: self.limit.bytes(),
            checkpoint_every: CHECKPOINT_EVERY,
            evaluate_every: usize::MAX,
            stop_after: None,
            time,
        };
        let mut lessons = Supervised { training: &training, batch: BATCH, pass_tokens: PASS_TOKENS, seed: self.seed };
        let began = Instant::now();
        let outcome = ::train::run::train(&base.network, &mut lessons, None, &options, say)?;
        let step = began.elapsed().div_f64(steps as f64);
        Ok(Cost { step, memory_bytes: outcome.memory_bytes })
    }
}

/// An error of training with a hint; `folder` holds the checkpoint.
fn explained(error: anyhow::Error, folder: &Path) -> anyhow::Error {
    let Some(known) = error.downcast_ref::<TrainError>() else { return error };
    let begin_again = || format!("to begin the training again with the same questions, remove {}", folder.display());
    let hint = match (known, known.hint()) {
        (TrainError::OtherRun { what, .. }, Some(hint)) if what == THREADS => format!("{hint}; {}", begin_again()),
        (TrainError::OtherRun { .. }, _) => begin_again(),
        (_, Some(hint)) => hint.to_owned(),
        (_, None) => return error,
    };
    refusal(known.to_string(), hint)
}

/// Rank and alpha of an adapter in PEFT's format, which must be those of all its projections.
fn shape_of(path: &Path) -> Result<(u64, f64)> {
    let config = configuration(path)?;
    let is_set = |name: &&str| match &config[*name] {
        Value::Bool(is_on) => *is_on,
        Value::Object(patterns) => !patterns.is_empty(),
        _ => false,
    };
    if let Some(name) = ["use_rslora", "rank_pattern", "alpha_pattern"].into_iter().find(is_set) {
        let cause = format!(
            "{} has `{name}`; training continues an adapter whose scale is lora_alpha / r in all projections",
            path.display()
        );
        return Err(refusal(cause, "begin with another adapter: --adapter reader=PATH, or with none: --adapter none"));
    }
    let shape = config["r"].as_u64().zip(config["lora_alpha"].as_f64());
    shape.context("the adapter's configuration has no r and lora_alpha")
}

/// What is not there needs no change.
fn if_there(changed: std::io::Result<()>) -> Result<()> {
    match changed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use launch::failure::hint_of;
    use serde_json::json;
    use store::Corpora;

    use super::*;

    #[test]
    fn an_interrupted_replacement_loses_no_adapter() {
        let data = tempfile::tempdir().unwrap();
        let corpora = Corpora::new(data.path());
        drop(corpora.create("pell").unwrap());
        let corpus = corpora.open("pell").unwrap();
        let place = reader_of(&corpus);
        let write = |folder: &Path, text: &str| {
            fs::create_dir_all(folder).unwrap();
            for file in ["adapter_config.json", "adapter_model.safetensors"] {
                fs::write(folder.join(file), text).unwrap();
            }
        };
        let installed = || fs::read_to_string(place.join("adapter_config.json")).unwrap();

        write(&place, "first");
        let work = Work::open(&corpus).unwrap();
        write(&work.adapter(), "second");
        work.install(&place).unwrap();
        let [next, replaced] = ["next", REPLACED].map(|name| work.folder.join(name));
        assert_eq!((&*installed(), next.exists(), replaced.exists()), ("second", false, false));

        // Killed before the new adapter is in its place, and after that.
        fs::rename(&place, &replaced).unwrap();
        drop(work);
        drop(Work::open(&corpus).unwrap());
        assert_eq!((&*installed(), replaced.exists()), ("second", false));
        write(&replaced, "first");
        drop(Work::open(&corpus).unwrap());
        assert_eq!((&*installed(), replaced.exists()), ("second", false));
    }

    #[test]
    fn an_adapter_with_other_scales_is_refused_without_flags_that_train_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let shape = |name: &str, value: Value| {
            let mut config = json!({ "r": 8, "lora_alpha": 16, "use_rslora": false, "rank_pattern": {} });
            config[name] = value;
            fs::write(folder.path().join("adapter_config.json"), config.to_string()).unwrap();
            shape_of(folder.path())
        };
        assert_eq!(shape("alpha_pattern", json!({})).unwrap(), (8, 16.0));
        let patterns = json!({ "down_proj": 4 });
        for (name, value) in
            [("use_rslora", json!(true)), ("rank_pattern", patterns.clone()), ("alpha_pattern", patterns)]
        {
            let error = shape(name, value).unwrap_err();
            assert!(error.to_string().contains(&format!(" has `{name}`; training continues")), "{error}");
            assert!(hint_of(&error).unwrap().contains("--adapter none"), "{error}");
        }
    }
}
