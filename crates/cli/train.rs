//! `memlocal train`: makes the reader of a model better at one corpus. Writes questions, starts `memlocal-train`, which is
//! installed beside this program, and keeps the adapter only if held-out questions are answered no worse.

use std::env::{self, consts::EXE_SUFFIX};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, IsTerminal, Write, stderr, stdin};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use calls::{Priority, TenantId, WorkflowId, reading};
use indicatif::HumanDuration;
use launch::corpus_adapter::reader_of;
use launch::failure::refusal;
use launch::flags::{AdapterFlag, EndpointFlags, GlobalFlags, ModelFlags};
use launch::output::{counted, print_line};
use launch::progress::Count;
use launch::{Backend, eprintln, home, loader, typed_model, wait_for};
use memory::study::{Example, Scores, Study, score_reader};
use memory::{Session, Settings, Trace};
use models::adapter::Adapter;
use serde_json::{Value, json};
use store::{Corpus, private};

use crate::args::Train;

/// Fewer questions are too few to learn from.
const MIN_QUESTIONS: usize = 20;

/// Questions that are written side by side.
const SIDE_BY_SIDE: usize = 8;

/// Groups of examples of a step.
const BATCH: usize = 8;

/// Times that every example is seen, without `--steps`.
const EPOCHS: usize = 2;

/// A quarter of the rate of a new adapter: the start is trained already.
const RATE: &str = "1e-4";

/// Rank and scale of an adapter that begins from nothing.
const RANK: (u64, f64) = (8, 16.0);

/// Examples of the step that is timed.
const TIMED: usize = 4;

pub fn run(train: &Train, global: &GlobalFlags) -> Result<ExitCode> {
    let program = program()?;
    let can_ask = stdin().is_terminal() && stderr().is_terminal();
    if !train.yes && !can_ask {
        let hint = format!("to train without a question: memlocal train --corpus {} --yes", train.corpus);
        return Err(refusal("there is no terminal to ask at whether training may begin", hint));
    }
    let corpus = home::corpora(global)?.open(&train.corpus)?;
    let work = Work::open(train, &corpus, program, global)?;
    if work.is_planned()? {
        eprintln!("going on with the questions that were written before");
    }
    let scores = work.before(&corpus)?;
    let trained = work.folder.join("run/adapter");
    work.train(&["--data", "data.jsonl", "--out", "run"], work.steps()?, true)?;
    let after = work.score(Some(&trained))?;
    let said = |scores: Scores| format!("exact {:.1} %, F1 {:.1} %", 100.0 * scores.exact, 100.0 * scores.f1);
    print_line(format_args!("{} held out", counted(after.examples, "example")))?;
    print_line(format_args!("before: {}", said(scores)))?;
    print_line(format_args!("after:  {}", said(after)))?;
    if after.f1 < scores.f1 {
        print_line("the adapter was not installed: it answers the held-out examples worse")?;
    } else {
        install(&trained, &reader_of(&corpus))?;
        print_line(format_args!(
            "installed; memlocal ask \"...\" --corpus {} --adapter corpus answers with it",
            train.corpus
        ))?;
    }
    work.clear()?;
    Ok(ExitCode::SUCCESS)
}

/// The path of `memlocal-train`.
fn program() -> Result<PathBuf> {
    let here = env::current_exe().context("the path of this program is unknown")?;
    let program = here.with_file_name(format!("memlocal-train{EXE_SUFFIX}"));
    if !program.is_file() {
        let hint = "in memlocal's repository, `cargo build --release -p train` builds it and \
                    `cargo install --path crates/train` installs it; put it beside memlocal";
        return Err(refusal(format!("{} is missing, which trains adapters", program.display()), hint));
    }
    Ok(program)
}

/// The files of a run in the folder `train` of the corpus, until it ends.
struct Work<'a> {
    options: &'a Train,
    global: &'a GlobalFlags,
    program: PathBuf,
    folder: PathBuf,
    /// The adapter to start from.
    start: Option<PathBuf>,
    /// What determines the examples.
    plan: Value,
    _lock: File,
}

impl Work<'_> {
    fn open<'a>(options: &'a Train, corpus: &Corpus, program: PathBuf, global: &'a GlobalFlags) -> Result<Work<'a>> {
        let folder = corpus.file("train");
        private::folder(&folder).with_context(|| format!("cannot write {}", folder.display()))?;
        let lock = private::create(&folder.join("lock"))?;
        if lock.try_lock().is_err() {
            let hint = "wait until it ends, or stop it";
            return Err(refusal(format!("{} is being trained on by another process", options.corpus), hint));
        }
        let start = start(options, corpus, &folder)?;
        let digest = start.as_ref().map(|path| Adapter::open(path).map(|adapter| format!("{:x?}", adapter.digest())));
        let digest = digest.transpose().context("cannot read the adapter to start from")?;
        let documents: Vec<String> =
            corpus.documents()?.iter().map(|document| format!("{:?}", document.digest)).collect();
        let Train { questions, seed, steps, .. } = options;
        let model = typed_model::name(&options.models.model);
        let plan = json!({
            "model": model, "start": digest, "documents": documents, "questions": questions, "seed": seed, "steps": steps,
        });
        Ok(Work { options, global, program, folder, start, plan, _lock: lock })
    }

    /// Whether the examples of the same command are here.
    fn is_planned(&self) -> Result<bool> {
        match fs::read(self.folder.join("plan.json")) {
            Ok(bytes) => Ok(serde_json::from_slice::<Value>(&bytes).is_ok_and(|plan| plan == self.plan)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).context("cannot read the plan of the last run"),
        }
    }

    /// Writes the examples unless they are here, and scores the reader that training starts from.
    fn before(&self, corpus: &Corpus) -> Result<Scores> {
        if !self.is_planned()? {
            for old in ["plan.json", "data.jsonl", "held_out.jsonl"] {
                remove(fs::remove_file(self.folder.join(old)))?;
            }
            remove(fs::remove_dir_all(self.folder.join("run")))?;
            self.write(corpus)?;
        }
        if let Some(path) = &self.options.keep_data {
            let data = fs::read(self.folder.join("data.jsonl"))?;
            private::write(path, data).with_context(|| format!("cannot write {}", path.display()))?;
        }
        self.score(self.start.as_deref())
    }

    fn write(&self, corpus: &Corpus) -> Result<()> {
        let Train { questions, seed, .. } = *self.options;
        let (backend, trace) = (self.backend(self.start.as_deref())?, Trace::off());
        let session = session(&backend, &trace, seed);
        let mut study = Study::new(corpus, questions, seed)?;
        if study.proposed() < MIN_QUESTIONS {
            return Err(too_few(study.proposed(), "spans of the documents can be answers"));
        }
        let began = Instant::now();
        while study.tried() < study.proposed() && (study.tried() == 0 || study.kept() < TIMED) {
            wait_for(study.advance(SIDE_BY_SIDE, &session))?;
        }
        let share = study.proposed() as f64 / study.tried() as f64;
        let writing = began.elapsed().mul_f64(share - 1.0);
        if study.kept() > 0 {
            let training = self.estimate(&study, share)?;
            eprintln!(
                "about {}: {} to write {}, {} to train",
                HumanDuration(writing + training),
                HumanDuration(writing),
                counted(study.proposed(), "question"),
                HumanDuration(training)
            );
            self.confirm()?;
        }
        let mut progress = Count::new("writing questions", "question");
        while study.tried() < study.proposed() {
            wait_for(study.advance(SIDE_BY_SIDE, &session))?;
            progress.report(study.tried(), study.proposed());
        }
        drop(progress);
        let reasons = study.dropped.named().into_iter().filter(|(_, count)| *count > 0);
        let reasons: Vec<String> = reasons.map(|(reason, count)| format!("{count} {reason}")).collect();
        eprintln!(
            "kept {} of {}; dropped: {}",
            study.kept(),
            counted(study.proposed(), "question"),
            reasons.join(", ")
        );
        let (training, held_out) = study.examples();
        if study.kept() < MIN_QUESTIONS || held_out.is_empty() || training.is_empty() {
            return Err(too_few(study.kept(), "questions passed the checks"));
        }
        private::write(&self.folder.join("data.jsonl"), lines(&training))?;
        private::write(&self.folder.join("held_out.jsonl"), lines(&held_out))?;
        // Last: with it the examples are whole.
        Ok(private::write(&self.folder.join("plan.json"), self.plan.to_string())?)
    }

    /// The time of training, from one step on the first examples.
    fn estimate(&self, study: &Study, share: f64) -> Result<Duration> {
        let (training, held_out) = study.examples();
        let written = training.len() + held_out.len();
        let timed: Vec<Example> = training.into_iter().chain(held_out).take(TIMED).collect();
        private::write(&self.folder.join("timed.jsonl"), lines(&timed))?;
        let step = self.train(&["--data", "timed.jsonl", "--out", "timed"], 1, false)?;
        fs::remove_file(self.folder.join("timed.jsonl"))?;
        fs::remove_dir_all(self.folder.join("timed"))?;
        let an_example = step.div_f64(timed.len() as f64);
        let seen = self.options.steps.map_or(EPOCHS as f64 * written as f64 * share, |steps| (steps * BATCH) as f64);
        Ok(an_example.mul_f64(seen))
    }

    fn confirm(&self) -> Result<()> {
        if self.options.yes {
            return Ok(());
        }
        write!(stderr(), "train on {}? [y/N] ", self.options.corpus)?;
        let mut answer = String::new();
        stdin().read_line(&mut answer)?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(refusal("nothing was trained", "only the answer `y` begins")),
        }
    }

    fn steps(&self) -> Result<usize> {
        let examples = fs::read_to_string(self.folder.join("data.jsonl"))?.lines().count();
        Ok(self.options.steps.unwrap_or((EPOCHS * examples).div_ceil(BATCH)))
    }

    /// Runs `memlocal-train`, which goes on from its checkpoint, and gives the time of its last step.
    fn train(&self, words: &[&str], steps: usize, shown: bool) -> Result<Duration> {
        let model = loader::fetched(&self.options.models.model, self.global)?;
        let model = model.entry().context("the model has no weights")?.to_owned();
        let (rank, alpha) = self.start.as_ref().map_or(Ok(RANK), |path| shape_of(path))?;
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).arg("run").args(words).args(["--rate", RATE, "--warm-up", "5"]);
        command.arg("--model").arg(fs::canonicalize(&model)?).args(["--base", &self.base()]);
        command.args(["--rank", &rank.to_string(), "--alpha", &alpha.to_string()]);
        command.args(["--steps", &steps.to_string(), "--batch", &BATCH.to_string(), "--checkpoint-every", "30s"]);
        command.args(["--seed", &self.options.seed.to_string()]);
        if let Some(start) = &self.start {
            command.arg("--start").arg(fs::canonicalize(start)?);
        }
        if let Some(threads) = self.global.threads {
            command.env("RAYON_NUM_THREADS", threads.to_string());
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut step = Duration::ZERO;
        for line in BufReader::new(child.stdout.take().context("no output of memlocal-train")?).lines() {
            let line = line?;
            step = seconds_of(&line).map_or(step, Duration::from_secs_f64);
            if shown {
                eprintln!("{line}");
            }
        }
        if !child.wait()?.success() {
            let hint = "its error is above; the same command goes on from the last checkpoint";
            return Err(refusal("memlocal-train failed, and nothing was installed", hint));
        }
        Ok(step)
    }

    /// The name of the base model in the adapter's configuration: that of its manifest.
    fn base(&self) -> String {
        let name = typed_model::name(&self.options.models.model);
        name.split_once(':').map_or(name.clone(), |(manifest, _)| manifest.to_owned())
    }

    /// Scores an adapter, or the model alone, on the held-out examples.
    fn score(&self, adapter: Option<&Path>) -> Result<Scores> {
        let text = fs::read_to_string(self.folder.join("held_out.jsonl"))?;
        let lines = text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        let (backend, trace) = (self.backend(adapter)?, Trace::off());
        wait_for(score_reader(&lines, &session(&backend, &trace, self.options.seed)))
    }

    fn backend(&self, adapter: Option<&Path>) -> Result<Backend> {
        let flag = adapter.map_or(AdapterFlag::None, |path| AdapterFlag::At {
            name: reading::ADAPTER.to_owned(),
            path: path.to_owned(),
        });
        let models = ModelFlags { adapters: vec![flag], ..self.options.models.clone() };
        Backend::start(&models, &EndpointFlags::default(), false, self.global)
    }

    /// Deletes the texts and checkpoints of a finished run.
    fn clear(self) -> Result<()> {
        fs::remove_dir_all(&self.folder).with_context(|| format!("cannot remove {}", self.folder.display()))
    }
}

fn session<'a>(backend: &'a Backend, trace: &'a Trace, seed: u64) -> Session<'a> {
    Session {
        caller: backend.caller(),
        embedder: &backend.engine,
        settings: Settings { seed, ..Settings::default() },
        trace,
        workflow: WorkflowId(1),
        tenant: TenantId::LOCAL,
        priority: Priority::Bulk,
        on_text: None,
    }
}

/// The adapter of `--adapter`, that of the corpus, or the one that the model comes with.
fn start(options: &Train, corpus: &Corpus, folder: &Path) -> Result<Option<PathBuf>> {
    let other = |flag: &&AdapterFlag| !matches!(flag, AdapterFlag::At { name, .. } if name == reading::ADAPTER);
    if let Some(flag) = options.models.adapters.iter().filter(other).find(|flag| **flag != AdapterFlag::None) {
        let hint = format!("training changes the adapter {}: --adapter {0}=PATH", reading::ADAPTER);
        return Err(refusal(format!("--adapter {flag} cannot be trained"), hint));
    }
    match options.models.adapters.first() {
        Some(AdapterFlag::At { path, .. }) => return Ok(Some(path.clone())),
        Some(_) => return Ok(None),
        None => {}
    }
    let own = reader_of(corpus);
    if own.is_dir() && !options.anew {
        return Ok(Some(own));
    }
    let name = typed_model::name(&options.models.model);
    let manifest = name.split_once(':').map_or(name.as_str(), |(manifest, _)| manifest);
    let start = folder.join("start");
    Ok(Adapter::write_reader_of(manifest, &start).context("cannot write the adapter to start from")?.then_some(start))
}

/// Rank and alpha of an adapter in PEFT's format.
fn shape_of(path: &Path) -> Result<(u64, f64)> {
    let config = fs::read(path.join("adapter_config.json"));
    let config: Value =
        serde_json::from_slice(&config.with_context(|| format!("{} is no PEFT folder", path.display()))?)?;
    config["r"]
        .as_u64()
        .zip(config["lora_alpha"].as_f64())
        .context("the adapter's configuration has no r and lora_alpha")
}

/// The seconds of a step from its line: "…, 1024 tokens, 640 tokens/s, …".
fn seconds_of(line: &str) -> Option<f64> {
    let number = |unit: &str| line.split(", ").find_map(|part| part.strip_suffix(unit)?.parse::<f64>().ok());
    let (tokens, rate) = (number(" tokens")?, number(" tokens/s")?);
    (rate > 0.0).then(|| tokens / rate)
}

fn lines(examples: &[Example]) -> String {
    let lines: Vec<String> = examples.iter().map(|example| example.line().to_string()).collect();
    lines.join(
        "
",
    ) + "
"
}

fn too_few(count: usize, what: &str) -> anyhow::Error {
    let hint = "add documents to the corpus, or write more questions: --questions N; nothing was trained";
    refusal(format!("{count} {what}; training needs {MIN_QUESTIONS}"), hint)
}

/// A file that is not there is removed already.
fn remove(removed: std::io::Result<()>) -> Result<()> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Puts an adapter beside a corpus in place of an older one; only its owner may read it.
fn install(trained: &Path, place: &Path) -> Result<()> {
    let next = place.with_extension("next");
    remove(fs::remove_dir_all(&next))?;
    private::folder(&next)?;
    for file in Adapter::files(trained) {
        let name = file.file_name().context("a file without a name")?;
        private::write(&next.join(name), fs::read(&file)?)?;
    }
    remove(fs::remove_dir_all(place))?;
    fs::rename(&next, place).with_context(|| format!("cannot install {}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_step_is_read_from_its_line() {
        let line = "step 1 of 40: loss 1.2000, norm 0.30, rate 1.00e-4, 1200 tokens, 600 tokens/s, 1m left";
        assert_eq!(seconds_of(line), Some(2.0));
        assert_eq!(seconds_of("4 examples in 2 groups of 300 tokens on average; 0 left out"), None);
    }
}
