//! Training on tiny networks: gradients against PyTorch, a run that learns, a run that is interrupted.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use candle_core::Device;
use candle_core::quantized::gguf_file::{self, Value as Entry};
use models::adapter::{Adapter, Projection};
use models::{ChatTemplate, DecoderSpec, LocalTime, Spec, Tokenizer, Weights};
use portable::{Arithmetic, Lora, LoraSettings, Network};
use safetensors::SafeTensors;
use serde_json::Value;
use train::batch::Pass;
use train::error::TOKENS;
use train::examples::{Example, Examples, Line, Reader};
use train::gradient::{accumulate, score, zeros};
use train::lessons::{Learned, Learner, Lessons, Supervised};
use train::memory::parameters;
use train::optimiser::{AdamW, Decay, Settings};
use train::run::{Options, train};
use train::{TrainError, curve, state};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn network(name: &str) -> (DecoderSpec, Network) {
    let folder = golden("decoder").join(name);
    let Spec::Decoder(spec) = Spec::from_config(&read(&folder.join("config.json"))).unwrap() else { panic!() };
    let weights = Weights::open_folder(&folder).unwrap();
    let network = Network::load(&spec, &weights, 128, &Device::Cpu).unwrap();
    (spec, network)
}

/// The adapter that PEFT wrote, its example, and PyTorch's results for both.
fn by_peft(spec: &DecoderSpec) -> (Lora, Pass, Value) {
    let adapter = Adapter::open(&golden("lora")).unwrap();
    adapter.check(spec).unwrap();
    let settings = LoraSettings { rank: 2, alpha: 4.0, targets: Projection::ALL.to_vec() };
    let lora = Lora::from_adapter(spec, settings, &adapter, &Device::Cpu, || 0.0).unwrap();
    let loss = read(&golden("lora/loss.json"));
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let tokens = loss["ids"].as_array().unwrap().iter().map(|id| number(id) as u32).collect();
    let answer = number(&loss["answer"][0])..number(&loss["answer"][1]);
    let example = Example { tokens, answer, forced: Vec::new(), weight: 1.0 };
    (lora, Pass::new(&[&[example]]), loss)
}

#[test]
fn loss_and_gradients_are_those_of_pytorch_and_peft() {
    let (spec, mut network) = network("llama");
    let (lora, pass, want) = by_peft(&spec);
    let bytes = std::fs::read(golden("lora/gradients.safetensors")).unwrap();
    let theirs = SafeTensors::deserialize(&bytes).unwrap();
    for (arithmetic, kept) in
        [(Arithmetic::Fused, 2), (Arithmetic::Fused, 1), (Arithmetic::Fused, 0), (Arithmetic::Plain, 2)]
    {
        network = network.with_arithmetic(arithmetic).unwrap();
        let mut gradients = zeros(&lora);
        let weight = 1.0 / pass.targets.len() as f32;
        let loss = accumulate(&network, &lora, &pass, weight, kept, &mut gradients).unwrap() * weight;
        assert!((loss - want["loss"].as_f64().unwrap() as f32).abs() < 1e-4, "{loss}");
        // Gradients have the shapes of the variables: they are stored there to find those of each module.
        for (variable, sums) in lora.variables().into_iter().zip(&gradients) {
            let values = candle_core::Tensor::from_slice(sums, variable.shape(), &Device::Cpu).unwrap();
            variable.set(&values).unwrap();
        }
        let mut compared = 0;
        for ((layer, projection), ours) in &lora.adapter().unwrap().modules {
            let part = if Projection::ALL[..4].contains(projection) { "self_attn" } else { "mlp" };
            let name = format!("base_model.model.model.layers.{layer}.{part}.{}", projection.name());
            for (factor, ours) in [("lora_A", &ours.a), ("lora_B", &ours.b)] {
                let theirs = theirs.tensor(&format!("{name}.{factor}.weight")).unwrap();
                let theirs = theirs.data().chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]]));
                for (ours, theirs) in ours.iter().zip(theirs) {
                    assert!((ours - theirs).abs() < 1e-4, "{name}.{factor}: {ours}, want {theirs}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 1000);
        let (fresh, ..) = by_peft(&spec);
        for (variable, fresh) in lora.variables().into_iter().zip(fresh.variables()) {
            variable.set(fresh).unwrap();
        }
    }
}

#[test]
fn gradients_with_rounded_weights_are_near_those_in_f32() {
    let (spec, network) = network("llama");
    let (lora, pass, _) = by_peft(&spec);
    let gradients = |network: &Network| {
        let mut sums = zeros(&lora);
        let loss = accumulate(network, &lora, &pass, 1.0, 1, &mut sums).unwrap();
        (loss, sums.concat())
    };
    let norm = |values: &[f32]| values.iter().map(|value| value * value).sum::<f32>().sqrt();
    let (loss, full) = gradients(&network);
    let network = network.with_arithmetic(Arithmetic::Half).unwrap();
    let (rounded_loss, rounded) = gradients(&network);
    let difference: Vec<f32> = full.iter().zip(&rounded).map(|(full, rounded)| full - rounded).collect();
    assert!((loss - rounded_loss).abs() < 0.01 * loss, "{rounded_loss}, want {loss}");
    let error = norm(&difference) / norm(&full);
    // Where rows are rounded as well as weights, the errors of both add up as independent ones do.
    let bound = if kernels::cpu::active_isa().multiplies_bf16() { 0.02 * std::f32::consts::SQRT_2 } else { 0.02 };
    assert!(error > 0.0 && error < bound, "{error}");
    assert!(network.with_arithmetic(Arithmetic::Plain).is_err());
}

#[test]
fn three_steps_reach_the_loss_that_pytorch_reaches() {
    let (spec, network) = network("llama");
    let (lora, pass, want) = by_peft(&spec);
    let settings =
        Settings { rate: 1e-2, warm_up: 0, steps: usize::MAX, decay: Decay::Linear, weight_decay: 0.01, clip: 1e9 };
    let mut optimiser = AdamW::new(settings, &lora.variables()).unwrap();
    let weight = 1.0 / pass.targets.len() as f32;
    for step in 0..3 {
        let mut gradients = zeros(&lora);
        accumulate(&network, &lora, &pass, weight, 2, &mut gradients).unwrap();
        optimiser.update(step, &gradients);
        optimiser.store(&lora.variables()).unwrap();
    }
    let loss = -score(&network, Some(&lora), &pass).unwrap().iter().map(|s| s.log_prob).sum::<f32>() * weight;
    assert!((loss - want["loss_after_three_steps"].as_f64().unwrap() as f32).abs() < 1e-3, "{loss}");
}

/// SentencePiece puts a space in front of a prompt, also of one without a chat.
#[test]
fn a_prompt_without_a_chat_has_the_tokens_that_the_engine_reads() {
    let golden = read(&golden("sentencepiece.json"));
    let list = |name: &str, entry: fn(&Value) -> Entry| {
        Entry::Array(golden[name].as_array().unwrap().iter().map(entry).collect())
    };
    let metadata = [
        ("tokenizer.ggml.model", Entry::String("llama".into())),
        ("tokenizer.ggml.tokens", list("tokens", |token| Entry::String(token.as_str().unwrap().into()))),
        ("tokenizer.ggml.scores", list("scores", |score| Entry::F32(score.as_f64().unwrap() as f32))),
        ("tokenizer.ggml.token_type", list("kinds", |kind| Entry::I32(kind.as_i64().unwrap() as i32))),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let entries: Vec<(&str, &Entry)> = metadata.iter().map(|(key, entry)| (*key, entry)).collect();
    gguf_file::write(&mut File::create(&path).unwrap(), &entries, &[]).unwrap();
    let (_, metadata) = Weights::open_gguf(&path).unwrap();
    let tokenizer = Tokenizer::from_gguf(&metadata).unwrap();
    let template = ChatTemplate::new("{{ messages[0].content }}").unwrap();
    let end = tokenizer.special("</s>").unwrap();
    let reader = Reader { tokenizer: &tokenizer, template: &template, eos: &[end], longest: 64 };
    let line = Line::Text { prompt: "The watch".into(), completion: " was sold".into() };
    let Example { tokens, answer, .. } = reader.example(&line).unwrap();
    let text = |text: &str| tokenizer.encode(text).unwrap();
    assert_eq!(tokens, [text(" The watch"), text(" was sold"), vec![end]].concat());
    assert_eq!(answer, text(" The watch").len()..tokens.len());
}

/// Eight examples with arbitrary answers.
fn eight() -> Examples {
    let example = |n: u32| {
        let tokens: Vec<u32> = (0..16).map(|i| (n * 31 + i * 7 + n * i) % 250).collect();
        Example { tokens, answer: 12..16, forced: Vec::new(), weight: 1.0 }
    };
    let groups = (0..8).map(|at| at..at + 1).collect();
    Examples { examples: (0..8).map(example).collect(), groups, too_long: 0, digest: "eight".into() }
}

fn lessons(training: &Examples, batch: usize, seed: u64) -> Supervised<'_> {
    Supervised { training, batch, pass_tokens: 64, seed }
}

fn options(folder: &Path, steps: usize) -> Options {
    Options {
        folder: folder.to_owned(),
        base: "tiny".into(),
        base_digest: "tiny".into(),
        seed: 3,
        rank: 4,
        alpha: 8.0,
        targets: Projection::ALL.to_vec(),
        start: None,
        optimiser: Settings { rate: 1e-2, warm_up: 5, steps, decay: Decay::Cosine, weight_decay: 0.0, clip: 1.0 },
        memory: 1 << 30,
        checkpoint_every: Duration::from_hours(1),
        evaluate_every: 20,
        stop_after: None,
        time: LocalTime::now(),
    }
}

#[test]
fn eight_examples_are_learnt_by_heart() {
    let (spec, network) = network("qwen3");
    let folder = tempfile::tempdir().unwrap();
    let data = eight();
    let mut lines = Vec::new();
    let options = options(folder.path(), 120);
    let outcome =
        train(&network, &mut lessons(&data, 8, 3), Some(&data), &options, &mut |line| lines.push(line.to_owned()));
    let (loss, exact) = outcome.unwrap().held_out.unwrap();
    assert!(loss < 0.1 && exact == 1.0, "loss {loss}, exact {exact}");
    assert!(lines[0].contains("trainable weights") && lines.iter().any(|line| line.contains("tokens/s")), "{lines:?}");
    let rows = curve::read(folder.path(), usize::MAX);
    assert!(rows.len() == 120 && rows[0].loss > 3.0, "{} rows, first loss {}", rows.len(), rows[0].loss);
    // The saved adapter equals the trained one.
    let adapter = Adapter::open(&folder.path().join("adapter")).unwrap();
    let settings = LoraSettings { rank: 4, alpha: 8.0, targets: Projection::ALL.to_vec() };
    let lora = Lora::from_adapter(&spec, settings, &adapter, &Device::Cpu, || 0.0).unwrap();
    let pass = Pass::new(&data.examples.chunks(1).collect::<Vec<_>>());
    assert!(score(&network, Some(&lora), &pass).unwrap().iter().all(|scored| scored.is_first));
    assert!(!score(&network, None, &pass).unwrap().iter().all(|scored| scored.is_first));
}

#[test]
fn an_interrupted_run_ends_as_an_undisturbed_one() {
    let (_, network) = network("llama");
    let [whole, parts] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let data = eight();
    let run =
        |options: &Options| train(&network, &mut lessons(&data, 3, 3), Some(&data), options, &mut |_| {}).unwrap();
    run(&options(whole.path(), 12));
    for stop_after in [Some(5), Some(6), None] {
        run(&Options { stop_after, ..options(parts.path(), 12) });
    }
    let adapter = |folder: &Path| std::fs::read(folder.join("adapter/adapter_model.safetensors")).unwrap();
    assert!(adapter(whole.path()) == adapter(parts.path()), "the adapters differ");
    let losses = |folder: &Path| curve::read(folder, 99).iter().map(|row| row.loss).collect::<Vec<_>>();
    assert_eq!(losses(whole.path()), losses(parts.path()));
    assert_eq!(losses(whole.path()).len(), 12);
}

#[test]
fn a_run_with_other_settings_and_a_damaged_checkpoint_are_refused() {
    let (_, network) = network("llama");
    let folder = tempfile::tempdir().unwrap();
    let data = eight();
    let run = |options: &Options| train(&network, &mut lessons(&data, 8, options.seed), None, options, &mut |_| {});
    run(&options(folder.path(), 2)).unwrap();
    let error = run(&Options { seed: 4, ..options(folder.path(), 2) }).unwrap_err();
    assert!(matches!(&error, TrainError::OtherRun { what, .. } if what == "seed") && error.hint().is_some(), "{error}");
    let error = run(&Options { base_digest: "other".into(), ..options(folder.path(), 2) }).unwrap_err();
    let said = "belongs to another run: content of the base model differs (tiny before, other now)";
    assert!(error.to_string().ends_with(said), "{error}");
    let path = folder.path().join(state::FILE);
    let whole = std::fs::read(&path).unwrap();
    let step = whole.windows(10).position(|part| part == br#"\"step\":2"#).unwrap() + 9;
    for at in [step, whole.len() / 2, whole.len() - 1] {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        let error = run(&options(folder.path(), 2)).unwrap_err();
        assert!(
            error.to_string().ends_with("is no usable checkpoint: its digest does not match"),
            "byte {at}: {error}"
        );
    }
    std::fs::write(&path, &whole[..whole.len() - 4]).unwrap();
    assert!(matches!(run(&options(folder.path(), 2)), Err(TrainError::Checkpoint { .. })));
    std::fs::write(&path, &whole).unwrap();
    assert_eq!(run(&options(folder.path(), 2)).unwrap().steps, 2);
    std::fs::write(&path, b"nonsense").unwrap();
    assert!(matches!(run(&options(folder.path(), 2)), Err(TrainError::Checkpoint { .. })));
    assert!(matches!(state::time(folder.path()), Err(TrainError::Checkpoint { .. })));
}

#[test]
fn a_run_with_another_rank_or_other_targets_is_not_taken_for_a_damaged_one() {
    let (_, network) = network("llama");
    let folder = tempfile::tempdir().unwrap();
    let data = eight();
    let run = |options: &Options| train(&network, &mut lessons(&data, 8, 3), None, options, &mut |_| {});
    run(&options(folder.path(), 2)).unwrap();
    let fewer = Options { targets: Projection::ALL[..4].to_vec(), ..options(folder.path(), 2) };
    for (name, other) in [("rank", Options { rank: 2, ..options(folder.path(), 2) }), ("targets", fewer)] {
        let error = run(&other).unwrap_err();
        assert!(matches!(&error, TrainError::OtherRun { what, .. } if what == name), "{name}: {error}");
    }
    assert_eq!(run(&options(folder.path(), 2)).unwrap().steps, 2);
}

/// Lessons during which another run begins in the same folder.
struct Disturbed<'a> {
    lessons: Supervised<'a>,
    options: &'a Options,
}

impl Lessons for Disturbed<'_> {
    fn settings(&self) -> Vec<(String, String)> {
        self.lessons.settings()
    }

    fn pass_tokens(&self) -> usize {
        self.lessons.pass_tokens()
    }

    fn step(&mut self, step: usize, learner: Learner<'_>, sums: &mut [Vec<f32>]) -> train::Result<Learned> {
        let error = train(learner.network, &mut self.lessons, None, self.options, &mut |_| {}).unwrap_err();
        assert!(matches!(error, TrainError::Busy { .. }) && error.hint().is_some(), "{error}");
        self.lessons.step(step, learner, sums)
    }
}

#[test]
fn a_second_run_in_the_same_folder_is_refused_until_the_first_has_ended() {
    let (_, network) = network("llama");
    let folder = tempfile::tempdir().unwrap();
    let (data, options) = (eight(), options(folder.path(), 2));
    let mut disturbed = Disturbed { lessons: lessons(&data, 8, 3), options: &options };
    assert_eq!(train(&network, &mut disturbed, None, &options, &mut |_| {}).unwrap().steps, 2);
    assert_eq!(train(&network, &mut lessons(&data, 8, 3), None, &options, &mut |_| {}).unwrap().steps, 2);
}

#[test]
fn a_checkpoint_has_the_time_that_the_run_began_with() {
    let (_, network) = network("llama");
    let folder = tempfile::tempdir().unwrap();
    let data = eight();
    let run = |options: &Options| train(&network, &mut lessons(&data, 8, 3), None, options, &mut |_| {}).unwrap();
    let time: LocalTime = "2024-02-29T23:59:59.123456789-05:00".parse().unwrap();
    run(&Options { stop_after: Some(1), time, ..options(folder.path(), 2) });
    assert_eq!(state::time(folder.path()).unwrap(), time);
    run(&Options { time: state::time(folder.path()).unwrap(), ..options(folder.path(), 2) });
    assert_eq!(state::time(folder.path()).unwrap(), time);
}

#[test]
fn a_run_whose_data_have_other_tokens_now_is_refused() {
    let (_, network) = network("llama");
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 2);
    let run = |data: &Examples| train(&network, &mut lessons(data, 8, 3), None, &options, &mut |_| {});
    run(&eight()).unwrap();
    // As by another chat template: the file is the same.
    let mut data = eight();
    data.examples[5].tokens[2] += 1;
    let error = run(&data).unwrap_err();
    assert!(matches!(&error, TrainError::OtherRun { what, .. } if what == TOKENS), "{error}");
    assert!(error.hint().unwrap().contains("chat template"), "{error}");
    assert_eq!(run(&eight()).unwrap().steps, 2);
}

#[test]
fn the_weights_of_an_adapter_are_counted_from_the_spec() {
    for name in ["llama", "qwen3"] {
        let (spec, network) = network(name);
        for targets in [&Projection::ALL[..], &[Projection::Value, Projection::Down]] {
            let settings = LoraSettings { rank: 3, alpha: 6.0, targets: targets.to_vec() };
            let lora = Lora::new(&spec, settings, network.device(), || 0.5).unwrap();
            let counted: usize = lora.variables().iter().map(|variable| variable.elem_count()).sum();
            assert_eq!(parameters(&spec, 3, targets), counted, "{name}");
        }
    }
}

#[test]
fn a_step_whose_weights_an_adapter_cannot_hold_leaves_no_checkpoint() {
    let (_, network) = network("llama");
    let folder = tempfile::tempdir().unwrap();
    let (data, usual) = (eight(), options(folder.path(), 3));
    let optimiser = Settings { rate: 1e9, warm_up: 0, ..usual.optimiser };
    let options = Options { optimiser, checkpoint_every: Duration::ZERO, ..usual };
    let error = train(&network, &mut lessons(&data, 8, 3), None, &options, &mut |_| {}).unwrap_err();
    assert!(matches!(error, TrainError::Diverged { step: 1, weight, .. } if weight > 1e8), "{error}");
    assert!(!folder.path().join(state::FILE).exists());
}

#[test]
fn settings_with_which_no_run_learns_are_refused() {
    let (_, network) = network("llama");
    let folder = tempfile::tempdir().unwrap();
    let data = eight();
    let usual = || options(folder.path(), 2);
    let with = |change: fn(&mut Settings)| {
        let mut options = usual();
        change(&mut options.optimiser);
        options
    };
    for options in [
        with(|settings| settings.rate = f32::NAN),
        with(|settings| settings.rate = -1e-4),
        with(|settings| settings.clip = 0.0),
        with(|settings| settings.weight_decay = -0.1),
        Options { alpha: 0.0, ..usual() },
    ] {
        let error = train(&network, &mut lessons(&data, 8, 3), None, &options, &mut |_| {}).unwrap_err();
        assert!(matches!(error, TrainError::Settings(_)), "{error}");
    }
}

#[test]
fn the_first_examples_are_kept_in_their_groups() {
    let grouped = || Examples { groups: vec![0..3, 3..4, 4..8], ..eight() };
    for (most, ends) in [(0, &[][..]), (2, &[2]), (3, &[3]), (6, &[3, 4, 6]), (9, &[3, 4, 8])] {
        let kept = grouped().truncated(most);
        assert_eq!(kept.examples.len(), most.min(8));
        assert_eq!(kept.groups.iter().map(|group| group.end).collect::<Vec<_>>(), ends);
    }
}

#[test]
fn too_little_memory_is_said_before_anything_is_computed() {
    let (_, network) = network("llama");
    let folder = tempfile::tempdir().unwrap();
    let (data, options) = (eight(), Options { memory: 1 << 10, ..options(folder.path(), 2) });
    let error = train(&network, &mut lessons(&data, 8, 3), None, &options, &mut |_| {}).unwrap_err();
    assert!(error.hint().unwrap().contains("--memory"), "{error}");
    let error = error.to_string();
    assert!(error.contains("need at least") && error.contains("MiB"), "{error}");
}
