//! `memlocal-train data`.

use std::path::PathBuf;

use clap::Args;
use train::forms::{self, Making};

#[derive(Debug, Clone, Args)]
pub(crate) struct DataArgs {
    /// Folder of the sources.
    #[arg(long)]
    from: PathBuf,
    /// File of examples to write, one JSON object a line.
    #[arg(long)]
    out: PathBuf,
    /// File for examples of contexts that are kept out of training.
    #[arg(long)]
    held_out: PathBuf,
    /// Percent of contexts that are kept out.
    #[arg(long, default_value_t = 2)]
    held_out_percent: u64,
    /// Sources to leave out, by the beginning of their names.
    #[arg(long, value_delimiter = ',', default_value = "multirc,friendsqa")]
    without: Vec<String>,
    /// Items of one source at most, by the beginning of its name: `NAME=N`.
    #[arg(long, value_delimiter = ',', value_parser = limit)]
    most: Vec<(String, usize)>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn limit(text: &str) -> Result<(String, usize), String> {
    let (name, most) = text.split_once('=').ok_or("write NAME=N")?;
    Ok((name.to_owned(), most.parse().map_err(|error| format!("{most}: {error}"))?))
}

pub(crate) fn data(args: &DataArgs) -> anyhow::Result<()> {
    let DataArgs { from, without, seed, most, held_out_percent, .. } = args.clone();
    let making = Making { from, seed, without, most, held_out_percent };
    let made = forms::make(&making)?;
    forms::write(&args.out, &made.lines)?;
    forms::write(&args.held_out, &made.held_out)?;
    for (name, items, examples) in &made.files {
        println!("{name}: {examples} examples of {items} items");
    }
    println!("{} to train on, {} held out, {} unanswerable", made.lines.len(), made.held_out.len(), made.unanswerable);
    Ok(())
}
