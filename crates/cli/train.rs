//! `memlocal train`: makes the reader of a model better at one corpus. Writes questions, trains an adapter on them, and keeps
//! it only if held-out questions are answered better.

mod limit;
mod work;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use calls::{Priority, TenantId, WorkflowId, reading};
use indicatif::{BinaryBytes, HumanDuration};
use launch::confirmation::{can_ask, is_confirmed};
use launch::corpus_adapter::{check_base, reader_of};
use launch::failure::refusal;
use launch::flags::{AdapterFlag, DEFAULT_EMBEDDER, EndpointFlags, GlobalFlags, ModelFlags};
use launch::output::{counted, print_line};
use launch::progress::Count;
use launch::{Backend, eprintln, home, memory_budget, typed_model, wait_for};
use memory::study::{Example, Scores, Study, score_reader};
use memory::{Session, Settings, Trace};
use models::adapter::Adapter;
use models::fetch::{Resolved, resolve};
use models::manifest::FileSpec;
use serde_json::json;
use store::{Corpora, Corpus};

use crate::args::Train;
use limit::Limit;
use work::{BATCH, Cost, EPOCHS, TrainConfig, Work};

/// Fewer questions are too few to learn from.
const MIN_QUESTIONS: usize = 20;

/// Questions that are written side by side.
const SIDE_BY_SIDE: usize = 8;

/// Questions that are written before the rest is estimated.
const TIMED: usize = 4;

/// Leaves the model that is trained, without the adapter that it runs with: the config file, the environment and a bundle may
/// name one.
///
/// # Errors
/// If the command line names one.
pub fn leave_trained(model: &mut String, is_typed: bool) -> Result<()> {
    let trained = typed_model::without_any_adapter(model).to_owned();
    if is_typed && trained != *model {
        let hint =
            format!("the adapter to begin with is --adapter: memlocal train --model {trained} --adapter reader=PATH");
        return Err(refusal(
            format!("--model {model} names an adapter, and training begins with that of --adapter"),
            hint,
        ));
    }
    *model = trained;
    Ok(())
}

pub fn run(train: &Train, global: &GlobalFlags) -> Result<ExitCode> {
    if !train.yes && !can_ask() {
        let hint = format!("to train without a question: memlocal train --corpus {} --yes", train.corpus);
        return Err(refusal("there is no terminal to ask at whether training may begin", hint));
    }
    let corpora = home::corpora(global)?;
    let corpus = corpora.open(&train.corpus)?;
    let training = Training::new(train, &corpus, global)?;
    if training.work.is_planned()? {
        eprintln!("continuing with the questions that were written before");
    } else {
        training.work.begin()?;
        training.write(&corpus)?;
    }
    if let Some(path) = &train.keep_data {
        training.work.copy_data(path)?;
    }
    let before = training.score(training.start.as_deref())?;
    training.learn()?;
    let after = training.score(Some(&training.work.adapter()))?;
    let said = |scores: Scores| format!("exact {:.1} %, F1 {:.1} %", 100.0 * scores.exact, 100.0 * scores.f1);
    print_line(format_args!("{} held out", counted(after.examples, "example")))?;
    print_line(format_args!("before: {}", said(before)))?;
    print_line(format_args!("after:  {}", said(after)))?;
    if after.f1 <= before.f1 && !train.keep {
        print_line("the adapter was not kept: it answers the held-out examples no better (--keep keeps it)")?;
    } else {
        training.work.install(&reader_of(&corpus))?;
        check_documents(&corpora, &corpus)?;
        let name = &train.corpus;
        print_line(format_args!("memlocal ask \"...\" --corpus {name} --adapter corpus answers with the new adapter"))?;
    }
    training.work.clear()?;
    Ok(ExitCode::SUCCESS)
}

/// Deletes what was trained if a document that it has learned from was replaced or removed meanwhile.
fn check_documents(corpora: &Corpora, trained: &Corpus) -> Result<()> {
    let name = trained.name();
    let now = digests(&corpora.open(&name.to_string())?)?;
    if digests(trained)?.iter().all(|digest| now.contains(digest)) {
        return Ok(());
    }
    std::fs::remove_dir_all(trained.trained())?;
    let hint = format!("train again: memlocal train --corpus {name}");
    Err(refusal(
        format!("documents of {name} were replaced or removed during training, so the adapter was deleted"),
        hint,
    ))
}

fn digests(corpus: &Corpus) -> Result<Vec<String>> {
    Ok(corpus.documents()?.iter().map(|document| format!("{:?}", document.digest)).collect())
}

/// One run of the command.
struct Training<'a> {
    options: &'a Train,
    global: &'a GlobalFlags,
    work: Work,
    /// The adapter to start from.
    start: Option<PathBuf>,
}

impl<'a> Training<'a> {
    fn new(options: &'a Train, corpus: &Corpus, global: &'a GlobalFlags) -> Result<Training<'a>> {
        let work = Work::open(corpus)?;
        let start = start(options, corpus, &work.start())?;
        let digest = start.as_ref().map(|path| Adapter::open(path).map(|adapter| format!("{:x?}", adapter.digest())));
        let digest = digest.transpose().context("cannot read the adapter to start from")?;
        let Train { questions, seed, steps, .. } = options;
        let plan = json!({
            "model": typed_model::name(&options.model), "start": digest, "documents": digests(corpus)?,
            "questions": questions, "seed": seed, "steps": steps,
        });
        Ok(Training { options, global, work: work.with_plan(plan), start })
    }

    /// Writes the examples to files. Says how long all will take once the first questions are written, and asks whether to continue.
    fn write(&self, corpus: &Corpus) -> Result<()> {
        let Train { questions, seed, .. } = *self.options;
        let mut study = Study::new(corpus, questions, seed)?;
        if study.proposed() < MIN_QUESTIONS {
            return Err(too_few(study.proposed(), "spans of the documents can be answers"));
        }
        self.config(None)?.check()?;
        let began = Instant::now();
        self.advance(&mut study, |study| study.kept() < TIMED, |_| ())?;
        if study.kept() > 0 {
            let writing = began.elapsed().div_f64(study.tried() as f64);
            self.estimate(&study, writing)?;
            self.confirm()?;
        }
        let mut progress = Count::new("writing questions", "question");
        self.advance(&mut study, |_| true, |study| progress.report(study.tried(), study.proposed()))?;
        drop(progress);
        let reasons = study.dropped.named().into_iter().filter(|(_, count)| *count > 0);
        let reasons: Vec<String> = reasons.map(|(reason, count)| format!("{count} {reason}")).collect();
        let proposed = counted(study.proposed(), "question");
        eprintln!("kept {} of {proposed}; dropped: {}", study.kept(), reasons.join("; "));
        let (training, held_out) = study.examples();
        if study.kept() < MIN_QUESTIONS || held_out.is_empty() || training.is_empty() {
            return Err(too_few(study.kept(), "questions passed the checks"));
        }
        self.work.put_examples(&lines(&training), &lines(&held_out))
    }

    /// Writes questions while there are proposals and `goes_on`. The model is in memory meanwhile.
    fn advance(
        &self,
        study: &mut Study,
        goes_on: impl Fn(&Study) -> bool,
        mut report: impl FnMut(&Study),
    ) -> Result<()> {
        let (backend, trace) = (self.backend(self.start.as_deref())?, Trace::off());
        let session = session(&backend, &trace, self.options.seed);
        while study.tried() < study.proposed() && goes_on(study) {
            wait_for(study.advance(SIDE_BY_SIDE, &session))?;
            report(study);
        }
        Ok(())
    }

    /// Prints the time and the memory that the rest takes, from `writing`, the time of a question, and one step on the first
    /// examples.
    fn estimate(&self, study: &Study, writing: Duration) -> Result<()> {
        let (training, held_out) = study.examples();
        let mut timed: Vec<Example> = training.into_iter().chain(held_out).collect();
        let proposed = study.proposed() as f64;
        let expected = timed.len() as f64 / study.tried() as f64 * proposed;
        let seen = self.options.steps.map_or(EPOCHS as f64 * expected, |steps| (steps * BATCH) as f64);
        timed.truncate(BATCH);
        let Cost { step, memory_bytes } = self.work.time(&lines(&timed), &self.config(Some(1))?)?;
        let left = writing.mul_f64(proposed - study.tried() as f64);
        let training = step.mul_f64(seen / timed.len() as f64);
        eprintln!(
            "about {}: {} to write {}, {} to train; {} of memory",
            HumanDuration(left + training),
            HumanDuration(left),
            counted(study.proposed(), "question"),
            HumanDuration(training),
            BinaryBytes(memory_bytes as u64),
        );
        Ok(())
    }

    fn confirm(&self) -> Result<()> {
        if self.options.yes || is_confirmed(format_args!("train on {}?", self.options.corpus))? {
            return Ok(());
        }
        Err(refusal("nothing was trained", "only the answer `y` begins"))
    }

    fn learn(&self) -> Result<()> {
        self.work.train(&self.config(self.options.steps)?, &mut |line| eprintln!("{line}"))
    }

    fn config(&self, steps: Option<usize>) -> Result<TrainConfig<'_>> {
        let model = launch::fetching::fetched(&self.options.model, self.global)?;
        Ok(TrainConfig {
            model: model.entry().context("the model has no weights")?.to_owned(),
            base: typed_model::base(&self.options.model),
            start: self.start.as_deref(),
            steps,
            seed: self.options.seed,
            limit: Limit::now(self.options.memory, self.global),
            stated: stated_digests(&self.options.model)?,
        })
    }

    /// Scores an adapter, or the model alone, on the held-out examples.
    fn score(&self, adapter: Option<&Path>) -> Result<Scores> {
        let (backend, trace) = (self.backend(adapter)?, Trace::off());
        wait_for(score_reader(&self.work.held_out()?, &session(&backend, &trace, self.options.seed)))
    }

    fn backend(&self, adapter: Option<&Path>) -> Result<Backend> {
        // What training or another adapter has left.
        memory_budget::release(self.global);
        let flag = adapter.map_or(AdapterFlag::None, |path| AdapterFlag::At {
            name: reading::ADAPTER.to_owned(),
            path: path.to_owned(),
        });
        let models = ModelFlags {
            model: self.options.model.clone(),
            memorizer: None,
            researcher: None,
            judge: None,
            builder: None,
            adapters: vec![flag],
            quantise: self.options.quantise,
            yarn: self.options.yarn,
            embedder: DEFAULT_EMBEDDER.to_owned(),
            quantise_embedder: None,
            shared_prompt: None,
        };
        Backend::start(&models, &EndpointFlags::default(), false, self.global)
    }
}

/// The digests that the manifest of a model states for its files, if it states all.
fn stated_digests(model: &str) -> Result<Option<String>> {
    let Resolved::Known(choice) = resolve(model)? else { return Ok(None) };
    let digest = |file: &FileSpec| file.sha256.as_ref().map(|digest| format!("{} {digest}", file.name));
    let digests: Option<Vec<String>> = choice.variant.files.iter().map(digest).collect();
    Ok(digests.map(|digests| digests.join("; ")))
}

fn session<'a>(backend: &'a Backend, trace: &'a Trace, seed: u64) -> Session<'a> {
    Session {
        caller: backend.caller(),
        embedder: &backend.embedder,
        settings: Settings { seed, ..Settings::default() },
        trace,
        workflow: WorkflowId(1),
        tenant: TenantId::LOCAL,
        priority: Priority::Bulk,
        on_text: None,
    }
}

/// The adapter of `--adapter`, that of the corpus, or the one that the model comes with, which is written to `own`.
fn start(options: &Train, corpus: &Corpus, own: &Path) -> Result<Option<PathBuf>> {
    match &options.adapter {
        Some(AdapterFlag::At { name, path }) if name == reading::ADAPTER => return Ok(Some(path.clone())),
        Some(AdapterFlag::None) => return Ok(None),
        Some(flag) => {
            let hint = format!("training changes the adapter {}: --adapter {0}=PATH", reading::ADAPTER);
            return Err(refusal(format!("--adapter {flag} cannot be trained"), hint));
        }
        None => {}
    }
    let of_corpus = reader_of(corpus);
    if of_corpus.is_dir() && !options.anew {
        check_base(&of_corpus, &options.model, &options.corpus)?;
        return Ok(Some(of_corpus));
    }
    let written = Adapter::write_reader_of(&typed_model::base(&options.model), own);
    Ok(written.context("cannot write the adapter to start from")?.then(|| own.to_owned()))
}

fn lines(examples: &[Example]) -> String {
    examples.iter().map(|example| example.line().to_string() + "\n").collect()
}

fn too_few(count: usize, what: &str) -> anyhow::Error {
    let hint = "add documents to the corpus, or write more questions: --questions N; nothing was trained";
    refusal(format!("{count} {what}; training needs {MIN_QUESTIONS}"), hint)
}
