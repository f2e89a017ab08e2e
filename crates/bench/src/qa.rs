//! `memlocal-bench qa`, and the commands on its runs: `rescore`, `compare`, `plot`, `replay`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use eval::qa::{self, Item, Plan, Preset, Progress, QaFolder, QaManifest, QaSuite, RulerPlan};
use eval::score::Scorer;
use eval::{Beginning, FileDigest, Manifest, ModelDigest};
use launch::eprintln;
use launch::failure::refusal;
use launch::flags::{DEFAULT_EMBEDDER, DEFAULT_MODEL, GlobalFlags, ModelFlags};
use launch::output::{counted, print, print_line};
use launch::progress::{Count, Steps};
use launch::{Backend, absolute, model_name, wait_for};
use memory::{Layout, Method, methods};

use crate::args::Qa;
use crate::provenance::{command_line, digests, embedder, language_models};
use crate::results::show;

/// Runs the plan with every model, one after the other.
pub fn run(bench: &Qa, global: &GlobalFlags) -> Result<()> {
    let began = Beginning::now(command_line());
    let plan = plan(bench)?;
    let rewarded = match &bench.rollouts {
        Some(file) => Some((file, reward(bench, &plan)?)),
        None => None,
    };
    let path = bench.out.join(format!("qa-{}", plan.suite));
    // Malformed data are an error before any model is loaded. Generated data (ruler) depend on a model's tokenizer.
    let folder = if bench.resume { QaFolder::resume(&path, &plan)? } else { QaFolder::create(&path, &plan)? };
    let choices = choices(&plan, bench);
    let mut notes = Vec::new();
    for (model, choice) in plan.models.iter().zip(&choices) {
        choice.check_adapters_are_used()?;
        let backend = Backend::start(choice, &bench.engine, true, global)?;
        let answering = qa::Backend { model, caller: backend.caller(), embedder: &backend.embedder };
        let (mut steps, mut questions) = (Steps::default(), Count::new("asking", "question"));
        let mut report = |progress| match progress {
            Progress::Preparing(step) => steps.report(step),
            Progress::Asked { done, of } => questions.report(done, of),
        };
        let cases = wait_for(qa::ask(&folder, &plan, model, Some(answering), &mut report))?;
        // Those of generated data differ by model.
        let new: Vec<String> = cases.notes.into_iter().filter(|note| !notes.contains(note)).collect();
        notes.extend(new);
    }
    let models = used(&plan, &choices, bench, global)?;
    let manifest = Manifest::new(began, models, folder.data().to_vec());
    folder.finish(&QaManifest::new(plan, notes, folder.tape(), manifest)?)?;
    let report = qa::write_report(folder.path())?;
    if let Some((file, scorer)) = rewarded {
        write_rollouts(&folder, scorer, file)?;
    }
    eprintln!("kept in {}", folder.path().display());
    show(&report, bench.json)
}

/// The flags with which each model of the plan is loaded.
fn choices(plan: &Plan, bench: &Qa) -> Vec<ModelFlags> {
    let choice = |model: &String| ModelFlags {
        model: model.clone(),
        memorizer: plan.memorizer.clone(),
        researcher: plan.researcher.clone(),
        judge: plan.judge.clone(),
        builder: plan.builder.clone(),
        adapters: bench.adapters.clone(),
        quantise: bench.quantise,
        yarn: plan.yarn,
        embedder: plan.embedder.clone(),
        quantise_embedder: None,
        shared_prompt: None,
    };
    plan.models.iter().map(choice).collect()
}

/// The scorer that rewards calls, which is one of the run's.
fn reward(bench: &Qa, plan: &Plan) -> Result<Scorer> {
    let scorers = plan.scorers()?;
    let Some(scorer) = bench.reward.or_else(|| scorers.first().copied()) else { anyhow::bail!("--reward is missing") };
    if !scorers.contains(&scorer) {
        let hint = format!(
            "add it: --scorers {}",
            plan.scorers.iter().map(String::as_str).chain([&*scorer.to_string()]).collect::<Vec<_>>().join(",")
        );
        return Err(refusal(format!("the run does not score answers by {scorer}"), hint));
    }
    Ok(scorer)
}

fn write_rollouts(folder: &QaFolder, scorer: Scorer, file: &Path) -> Result<()> {
    let plan = qa::manifest(folder.path())?.plan;
    let count = qa::write_rollouts(folder.path(), &plan, scorer, file)?;
    eprintln!("wrote {} to {}", counted(count.written, "rollout"), file.display());
    if count.without_reward > 0 {
        eprintln!("left out {}, whose questions {scorer} does not score", counted(count.without_reward, "call"));
    }
    Ok(())
}

/// The plan: flags override the preset, and that overrides the suite's defaults.
fn plan(bench: &Qa) -> Result<Plan> {
    let unknown =
        |error: eval::Error| refusal(format!("--preset: {error}"), "name one of these, or leave --preset out");
    let preset = bench.preset.as_deref().map(Preset::named).transpose().map_err(unknown)?;
    let preset = preset.as_ref();
    let first = preset.and_then(|preset| preset.suites.first()?.parse::<QaSuite>().ok());
    let Some(suite) = bench.suite.or(first) else { anyhow::bail!("--suite is missing") };
    if let Some(preset) = preset {
        preset.check(suite)?;
    }
    let names = |typed: Vec<String>, of_preset: Option<&Vec<String>>, usual: &str| match of_preset {
        _ if !typed.is_empty() => typed,
        Some(names) => names.clone(),
        None => vec![usual.to_owned()],
    };
    let methods = bench.method.iter().map(ToString::to_string).collect();
    let categories = match &bench.categories[..] {
        [] => suite.usual_categories().iter().map(ToString::to_string).collect(),
        [all] if all == "all" => Vec::new(),
        typed => typed.to_vec(),
    };
    let scorers = if bench.scorers.is_empty() { suite.scorers() } else { &bench.scorers };
    let elsewhere = bench.engine.engine.is_some().then(|| vec![model_name("", &bench.engine)]);
    let models = elsewhere.unwrap_or_else(|| bench.model.clone());
    let makes = suite == QaSuite::Ruler && bench.data.is_dir();
    if !makes && (bench.length.is_some() || bench.samples.is_some() || !bench.tasks.is_empty()) {
        let hint = "give them with --suite ruler and --data FOLDER, a folder with its materials";
        return Err(refusal("--length, --tasks and --samples are for samples that are generated", hint));
    }
    let ruler = makes.then(|| RulerPlan {
        length_tokens: bench.length.or_else(|| preset?.ruler_length).unwrap_or(8192),
        tasks: bench.tasks.clone(),
        samples: bench.samples.unwrap_or(10),
    });
    let plan = Plan {
        suite: suite.to_string(),
        data: absolute(&bench.data),
        methods: names(methods, preset.map(|preset| &preset.methods), methods::DEFAULT.name()),
        models: names(models, preset.map(|preset| &preset.models), DEFAULT_MODEL),
        memorizer: bench.memorizer.clone(),
        researcher: bench.researcher.clone(),
        judge: bench.judge.clone(),
        builder: bench.builder.clone(),
        adapters: bench.adapters.iter().map(ToString::to_string).collect(),
        embedder: bench
            .embedder
            .clone()
            .or_else(|| Some(preset?.embedder.clone()))
            .unwrap_or_else(|| DEFAULT_EMBEDDER.to_owned()),
        quantise: bench.quantise.map(|format| format.to_string()),
        // An endpoint's context is its own.
        yarn: bench.yarn.or_else(|| preset?.yarn(suite)).filter(|_| bench.engine.engine.is_none()),
        preset: bench.preset.clone(),
        scorers: scorers.iter().map(ToString::to_string).collect(),
        limit: bench.limit,
        sample: bench.sample.or_else(|| preset?.sample.get(&suite.to_string()).copied()),
        cases: bench.cases.clone(),
        categories,
        seed: bench.seed.or_else(|| Some(preset?.seed)).unwrap_or(0),
        layout: bench
            .layout
            .map(|layout| layout.to_string())
            .or_else(|| Some(preset?.layout.clone()))
            .unwrap_or_else(|| Layout::SharedFirst.to_string()),
        profile: bench.profile.map(|profile| profile.to_string()).or_else(|| Some(preset?.profile.clone())),
        output: bench.output.to_string(),
        temperature: bench.temperature.or_else(|| Some(preset?.temperature)).unwrap_or(0.3),
        page_tokens: bench.page_tokens,
        method_page_tokens: preset.map(|preset| preset.page_tokens.clone()).unwrap_or_default(),
        evidence_tokens: bench.evidence_tokens.or_else(|| preset?.evidence_tokens),
        k: bench.k,
        method_k: preset.map(|preset| preset.k.clone()).unwrap_or_default(),
        search: bench.search.map(|tool| tool.to_string()).or_else(|| preset?.search.clone()),
        memcot_store: bench.memcot_store.map(|store| store.to_string()).or_else(|| preset?.memcot_store.clone()),
        layers: match &bench.layers[..] {
            [] => preset.map(|preset| preset.layers.clone()).unwrap_or_default(),
            typed => typed.iter().map(ToString::to_string).collect(),
        },
        window: bench.window.or_else(|| preset?.window),
        max_iterations: bench.max_iterations.or_else(|| preset?.max_iterations(suite)),
        rollouts: bench.rollouts.is_some(),
        width: bench.width,
        ruler,
    };
    let known = plan.methods()?;
    ensure!(!known.is_empty(), "--method names no method");
    check_flags_are_used(bench, &known)?;
    Ok(plan)
}

/// Refuses flags of methods that are not among those of the plan.
fn check_flags_are_used(bench: &Qa, of_plan: &[&'static dyn Method]) -> Result<()> {
    let of_methods = [
        ("search", bench.search.is_some()),
        ("layers", !bench.layers.is_empty()),
        ("memcot_store", bench.memcot_store.is_some()),
        ("window", bench.window.is_some()),
    ];
    let given = of_methods.into_iter().filter_map(|(option, is_given)| is_given.then_some(option));
    let Some((option, method)) = methods::without_effect(given, of_plan) else { return Ok(()) };
    let flag = format!("--{}", option.replace('_', "-"));
    let hint = format!("add {method} to --method, or leave {flag} out");
    Err(refusal(format!("{flag} is for {method}, which is not among the methods of the run"), hint))
}

/// Every model of the run, once. Of an endpoint's model only the name is known.
fn used(plan: &Plan, choices: &[ModelFlags], bench: &Qa, global: &GlobalFlags) -> Result<Vec<ModelDigest>> {
    let embedder = embedder(&plan.embedder, None);
    if bench.engine.engine.is_none() {
        return digests(choices.iter().flat_map(language_models).chain([embedder]), &bench.adapters, global);
    }
    let named = plan.models.iter().map(|name| ModelDigest { name: name.clone(), files: Vec::new() });
    Ok(named.chain(digests([embedder], &[], global)?).collect())
}

/// Scores a run again, and writes and prints its report.
pub fn rescore(run: &Path) -> Result<()> {
    print(qa::write_report(run)?)
}

/// Prints whether the columns of two runs differ.
pub fn compare(a: &Path, b: &Path) -> Result<()> {
    let [a, b]: [PathBuf; 2] = [a, b].map(absolute);
    qa::compare(&a, &b)?.into_iter().try_for_each(print_line)
}

/// Plots several runs together.
pub fn plot(runs: &[PathBuf], out: &Path) -> Result<()> {
    let drawn = qa::sweep(runs, out)?;
    drawn.iter().try_for_each(|name| print_line(out.join(format!("{name}.svg")).display()))
}

/// Checks that a run's answers can be computed again from its transcript.
pub fn replay(run: &Path) -> Result<ExitCode> {
    let manifest = qa::manifest(run)?;
    let before = qa::items(run)?.1;
    same_data(&manifest)?;
    let mut questions = Count::new("asking", "question");
    let mut report = |progress| {
        if let Progress::Asked { done, of } = progress {
            questions.report(done, of);
        }
    };
    let again = wait_for(qa::replay(run, &manifest.plan, &mut report))?;
    let is_same = |item: &&Item| again.iter().any(|again| item.is_replayed_by(again));
    let same = before.iter().filter(is_same).count();
    print_line(format_args!("{same} of {} answers are the same", before.len()))?;
    for item in before.iter().filter(|item| !is_same(item)) {
        print_line(format_args!(
            "{} by {}, {}, question {}: another answer",
            item.model, item.method, item.case, item.question.id
        ))?;
    }
    Ok(if same == before.len() && same == again.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Refuses to replay with data that differ from the run's.
fn same_data(manifest: &QaManifest) -> Result<()> {
    let data = &manifest.plan.data;
    if FileDigest::of_all(manifest.plan.files()?)? == manifest.run.data {
        return Ok(());
    }
    Err(refusal(format!("{} has changed since the run", data.display()), "put the files of the run's manifest there"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use launch::failure::hint_of;

    use super::*;
    use crate::args::{Args, Command};

    fn typed(words: &str) -> Result<Box<Qa>, clap::Error> {
        let all = ["memlocal-bench", "qa", "--data", "none"].into_iter().chain(words.split_whitespace());
        Args::try_parse_from(all).map(|args| match args.command {
            Command::Qa(bench) => bench,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn an_unknown_preset_is_refused_with_the_names() {
        let error = plan(&typed("--preset gam/table9").unwrap()).map(drop).unwrap_err();
        assert!(error.to_string().starts_with("--preset: `gam/table9` is not one of gam/table1-"), "{error}");
        assert_eq!(hint_of(&error).as_deref(), Some("name one of these, or leave --preset out"));
    }

    #[test]
    fn flags_that_would_have_no_effect_are_refused() {
        let plan = |words: &str| plan(&typed(words).unwrap()).is_ok();
        assert!(plan("--suite locomo"));
        for words in ["--length 4096", "--tasks vt", "--samples 5"] {
            assert!(!plan(&format!("--suite locomo {words}")), "{words}");
        }
        for (method, words) in
            [("comorag", "--layers veridical"), ("memcot", "--memcot-store hybrid"), ("memcot", "--window 2")]
        {
            assert!(plan(&format!("--suite locomo --method rag,{method} {words}")), "{words}");
            assert!(!plan(&format!("--suite locomo --method rag {words}")), "{words}");
        }
        let searching = |methods: &str| plan(&format!("--suite locomo --search dense --method {methods}"));
        assert_eq!(["rag", "auto", "gam,direct"].map(searching), [true, true, false]);
        assert!(typed("--suite ruler --tasks vt,cwe").is_ok() && typed("--suite ruler --tasks vt,cwx").is_err());
    }

    #[test]
    fn a_reward_that_the_run_does_not_score_by_is_refused_before_its_data_are_read() {
        let words = ["memlocal-bench", "qa", "--suite", "locomo", "--data", "none", "--rollouts", "rollouts.jsonl"];
        let refused = |more: &[&str]| {
            let args = Args::try_parse_from(words.iter().chain(more)).unwrap();
            let Command::Qa(bench) = args.command else { panic!("another command") };
            run(&bench, &args.global).unwrap_err()
        };
        let error = refused(&["--reward", "em:squad"]);
        assert_eq!(error.to_string(), "the run does not score answers by em:squad");
        assert_eq!(hint_of(&error).as_deref(), Some("add it: --scorers f1:locomo,f1:gam,bleu1,em:squad"));
        for more in [&["--reward", "bleu1"][..], &[]] {
            assert!(!refused(more).to_string().contains("does not score"), "the data are missing");
        }
    }

    #[test]
    fn evidence_has_room_for_a_passage_as_in_memlocal() {
        assert!(typed("--suite locomo --evidence-tokens 64").is_ok());
        assert!(typed("--suite locomo --evidence-tokens 1").is_err());
    }
}
