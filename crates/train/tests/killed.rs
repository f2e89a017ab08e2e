//! `memlocal-train run` killed at random moments: every checkpoint is whole, none is lost, and the end is that of an
//! undisturbed run. `cargo xtask crash` is the long form. A run is not resumed with anything else that its result depends on.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use models::adapter::{Adapter, Projection};
use safetensors::SafeTensors;
use serde_json::{Value, json};
use train::curve;

const KILLS: usize = 10;
const SEED: usize = 27;
const STEPS: usize = 60;

/// Reproducible pseudo-random numbers (the constants of Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

/// A tiny model with random weights, and examples.
fn prepare(folder: &Path) {
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/decoder/llama");
    fs::create_dir(folder.join("model")).unwrap();
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        fs::copy(golden.join(name), folder.join("model").join(name)).unwrap();
    }
    let settings = json!({ "chat_template": "{% for message in messages %}{{ message.content }}\n{% endfor %}" });
    fs::write(folder.join("model/tokenizer_config.json"), settings.to_string()).unwrap();
    let line = |number| json!({ "prompt": format!("say {number} "), "completion": format!("a {}", number % 7) });
    let lines: Vec<String> = (0..40).map(|number| line(number).to_string()).collect();
    fs::write(folder.join("data.jsonl"), lines.join("\n")).unwrap();
}

/// Begins a run, or resumes it; it writes a checkpoint after almost every step.
fn start(folder: &Path, out: &str, more: &[&str]) -> Child {
    command(folder, out, more).spawn().unwrap()
}

fn command(folder: &Path, out: &str, more: &[&str]) -> Command {
    let steps = STEPS.to_string();
    let words = ["run", "--model", "model", "--base", "tiny", "--data", "data.jsonl", "--batch", "2", "--rank", "2"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_memlocal-train"));
    command.current_dir(folder).args(words).args(["--steps", &steps, "--longest", "64", "--checkpoint-every", "1us"]);
    command.args(["--out", out]).args(more).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn finish(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What a run that fails writes.
fn refused(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

/// What the program writes that refuses these words.
fn said(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memlocal-train"));
    command.current_dir(folder).args(words).stdout(Stdio::null()).stderr(Stdio::piped());
    refused(command.spawn().unwrap())
}

/// The completed steps in the checkpoint of a run, which must be whole.
fn checkpoint(run: &Path) -> u64 {
    let Ok(bytes) = fs::read(run.join("state.safetensors")) else { return 0 };
    SafeTensors::deserialize(&bytes).expect("a checkpoint is whole after every kill");
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let position: Value = serde_json::from_str(&metadata.metadata().as_ref().unwrap()["position"]).unwrap();
    position["step"].as_u64().unwrap()
}

fn number(name: &str, usual: usize) -> usize {
    env::var(name).map_or(usual, |value| value.parse().expect("a number"))
}

#[test]
fn a_killed_run_loses_no_checkpoint_and_ends_as_an_undisturbed_one() {
    let (kills, seed) = (number("MEMLOCAL_KILLS", KILLS), number("MEMLOCAL_SEED", SEED));
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    prepare(folder);
    let begun = Instant::now();
    finish(start(folder, "whole", &[]));
    let whole = begun.elapsed();
    let adapter = |name: &str| fs::read(folder.join(name).join("adapter/adapter_model.safetensors")).unwrap();
    let losses =
        |name: &str| -> Vec<f32> { curve::read(&folder.join(name), usize::MAX).iter().map(|row| row.loss).collect() };
    assert_eq!(losses("whole").len(), STEPS);

    let mut random = Random(seed as u64);
    let (mut killed, mut rounds, mut on_the_way) = (0, 0, 0);
    while killed < kills {
        let name = format!("run{rounds}");
        loop {
            let before = checkpoint(&folder.join(&name));
            let mut child = start(folder, &name, &[]);
            sleep(Duration::from_micros(random.below(u64::try_from(whole.as_micros()).unwrap() * 6 / 5)));
            if child.try_wait().unwrap().is_some() {
                finish(child);
                break;
            }
            child.kill().unwrap();
            child.wait().unwrap();
            killed += 1;
            let after = checkpoint(&folder.join(&name));
            assert!(after >= before, "kill {killed} took the run back from step {before} to {after}");
            on_the_way += usize::from(after > before && after < STEPS as u64);
        }
        assert!(adapter(&name) == adapter("whole"), "the adapter of round {rounds} is another one");
        assert_eq!(losses(&name), losses("whole"), "the curve of round {rounds}");
        rounds += 1;
    }
    println!("killed {killed} times in {rounds} runs, {on_the_way} times between two checkpoints, seed {seed}");
}

#[test]
fn a_run_continues_when_its_output_is_no_longer_read() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    prepare(folder);
    let mut child = command(folder, "run", &[]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    finish(child);
    assert_eq!(checkpoint(&folder.join("run")), STEPS as u64);
}

#[test]
fn a_run_is_resumed_only_with_its_number_of_threads_and_its_base() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    prepare(folder);
    finish(start(folder, "run", &["--threads", "1"]));
    let error = refused(start(folder, "run", &["--threads", "2"]));
    assert!(error.contains("another run: number of threads differs (1 before, 2 now)\n"), "{error}");
    assert!(error.ends_with("hint: resume with the number of threads before: --threads\n"), "{error}");
    finish(start(folder, "run", &["--threads", "1"]));
    let config = folder.join("model/config.json");
    fs::write(&config, fs::read_to_string(&config).unwrap() + "\n").unwrap();
    let error = refused(start(folder, "run", &["--threads", "1"]));
    assert!(error.contains("another run: content of the base model differs\n"), "{error}");
}

/// The template writes another prompt every nanosecond: the tokens of a run that did not keep its time would differ between
/// tasks and samples, and between the start of a run and its continuation.
#[test]
fn prompts_have_the_time_at_which_the_run_began() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    prepare(folder);
    let template = "{{ strftime_now('%s%f') }}\n{% for message in messages %}{{ message.content }}\n{% endfor %}";
    let settings = json!({ "chat_template": template });
    fs::write(folder.join("model/tokenizer_config.json"), settings.to_string()).unwrap();
    let turns = [("user", "Where?"), ("assistant", "here")];
    let line = json!({ "messages": turns.map(|(role, content)| json!({ "role": role, "content": content })) });
    fs::write(folder.join("data.jsonl"), format!("{line}\n{line}\n")).unwrap();
    let reinforce = |more: &[&str]| {
        let words = ["reinforce", "--model", "model", "--base", "tiny", "--data", "data.jsonl", "--batch", "2"];
        let sizes = ["--samples", "2", "--reply-tokens", "2", "--rank", "2", "--steps", "2", "--longest", "64"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_memlocal-train"));
        command.current_dir(folder).args(words).args(sizes).args(["--out", "reinforced"]).args(more);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for more in [&["--stop-after", "1"][..], &[]] {
        finish(reinforce(more));
        finish(start(folder, "supervised", more));
    }
    assert_eq!([checkpoint(&folder.join("reinforced")), checkpoint(&folder.join("supervised"))], [2, STEPS as u64]);
}

#[test]
fn rollouts_are_scored_at_the_temperature_at_which_they_were_drawn() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    prepare(folder);
    for (name, reward) in [("a.jsonl", 1), ("b.jsonl", 0)] {
        let line = json!({ "prompt": [], "prompt_text": "Where?", "completion_ids": [65, 66], "completion_end": null,
            "role": "judge", "model": "tiny", "data_source": "talks", "method": "gam", "case": "a", "question": "1", "task": "t",
            "answer_reward": reward });
        fs::write(folder.join(name), line.to_string()).unwrap();
    }
    let reinforce = |out: &str, more: &[&str]| {
        let words =
            ["reinforce", "--model", "model", "--base", "tiny", "--rollouts", "a.jsonl", "b.jsonl", "--batch", "2"];
        let sizes = ["--agent", "researcher,judge", "--rank", "2", "--steps", "1", "--longest", "64", "--out", out];
        let mut command = Command::new(env!("CARGO_BIN_EXE_memlocal-train"));
        command.current_dir(folder).args(words).args(sizes).args(more);
        finish(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
        curve::read(&folder.join(out), 1)[0].loss
    };
    let [usual, agents, plain] = [
        reinforce("usual", &[]),
        reinforce("agents", &["--temperature", "0.3"]),
        reinforce("plain", &["--temperature", "1"]),
    ];
    assert!(usual == agents && (usual - plain).abs() > 0.01, "losses {usual}, {agents}, {plain}");
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    prepare(folder);
    let both = said(folder, &["data", "--from", ".", "--out", "a.jsonl", "--held-out", "a.jsonl"]);
    assert!(both.starts_with("error: --out and --held-out are both a.jsonl:"), "{both}");
    let reinforce = ["reinforce", "--model", "model", "--base", "tiny", "--out", "run"];
    let (by_samples, by_rollouts) = ("--data data.jsonl", "--rollouts a.jsonl --agent researcher");
    for (from, more, reason) in [
        (by_samples, "--kl=-1", "the weight of the divergence is -1; it must be at least 0"),
        (by_rollouts, "--ratio-clip=0", "the clip of ratios is 0; it must be above 0"),
        (by_samples, "--temperature=inf", "the temperature is inf; it must be a number above 0"),
        (by_samples, "--reply-tokens=0", "it must be 1 or more"),
        (by_samples, "--rank=0", "it must be 1 or more"),
        (by_samples, "--steps=0", "it must be 1 or more"),
        (by_rollouts, "--agent=reader", "invalid value"),
        (by_samples, "--ratio-clip=0.1", "cannot be used with"),
        (by_samples, "--agent=researcher", "cannot be used with"),
        (by_rollouts, "--samples=2", "cannot be used with"),
        (by_rollouts, "--reply-tokens=2", "cannot be used with"),
    ] {
        let words: Vec<&str> = reinforce.into_iter().chain(from.split(' ')).chain([more]).collect();
        let error = said(folder, &words);
        assert!(error.starts_with("error: ") && error.contains(reason), "{more}: {error}");
    }
}

#[test]
fn wrong_usage_and_a_wrong_model_have_one_hint() {
    let place = tempfile::tempdir().unwrap();
    let check = |words: &str, want: &str| {
        let error = said(place.path(), &words.split(' ').collect::<Vec<_>>());
        assert!(error.starts_with("error: ") && error.matches("hint: ").count() == 1, "{words}: {error}");
        assert!(
            error.contains(&format!("\nhint: {want}")) && !error.contains("For more information"),
            "{words}: {error}"
        );
    };
    check("rnu", "did you mean `run`?\n");
    check("run --modle m", "did you mean `--model`?\n");
    check("run", "memlocal-train run --help shows its arguments\n");
    check("run --model . --base b --data d.jsonl --out run", "give a .gguf file, or a folder with config.json");
}

#[test]
fn an_adapter_of_another_scale_is_refused_with_both_settings() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    prepare(folder);
    finish(start(folder, "first", &["--alpha", "4", "--stop-after", "1"]));
    let error = refused(start(folder, "second", &["--start", "first/adapter", "--alpha", "8"]));
    let why = "first/adapter has rank 2 and alpha 4, the run rank 2 and alpha 8 (--rank, --alpha)\n";
    assert!(error.contains(why), "{error}");
}

#[test]
fn held_out_examples_that_are_not_scored_are_counted() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    prepare(folder);
    let line = |prompt: &str| json!({ "prompt": prompt, "completion": "a" }).to_string();
    let long = "x".repeat(80);
    fs::write(folder.join("held_out.jsonl"), [line("one"), line("two"), line(&long), line("three")].join("\n"))
        .unwrap();
    let more = ["--held-out", "held_out.jsonl", "--held-out-most", "2", "--stop-after", "1"];
    let output = command(folder, "run", &more).stdout(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("2 of 3 held-out examples are scored; 1 left out as longer than 64\n"), "{said}");
}

#[test]
fn too_little_memory_for_the_weights_is_refused_before_they_are_loaded() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    prepare(folder);
    // More layers than the file has: loading them would fail.
    let config = folder.join("model/config.json");
    let mut larger: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
    larger["num_hidden_layers"] = json!(400);
    fs::write(&config, larger.to_string()).unwrap();
    let error = refused(start(folder, "run", &["--memory", "64"]));
    assert!(error.contains("MiB; 64 MiB are allowed\n") && error.contains("--memory"), "{error}");
}

#[test]
fn projections_that_the_start_lacks_are_trained_and_others_of_the_start_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    prepare(folder);
    finish(start(folder, "first", &["--targets", "q_proj,up_proj"]));
    let error = refused(start(folder, "second", &["--start", "first/adapter", "--targets", "q_proj,v_proj"]));
    assert!(error.contains("first/adapter also changes projections that are not trained: up_proj\n"), "{error}");
    assert!(error.contains("hint: name them in --targets too"), "{error}");
    finish(start(folder, "third", &["--start", "first/adapter"]));
    let adapter = Adapter::open(&folder.join("third/adapter")).unwrap();
    for ((layer, projection), module) in &adapter.modules {
        let moved = [&module.a, &module.b].map(|values| values.iter().any(|value| *value != 0.0));
        assert_eq!(moved, [true; 2], "{} of layer {layer}", projection.name());
    }
    assert_eq!(adapter.modules.len() % Projection::ALL.len(), 0);
}
