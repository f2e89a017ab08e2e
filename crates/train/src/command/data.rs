//! `memlocal-train data`.

use std::path::PathBuf;

use clap::Args;
use train::forms::{self, Making};

use super::say;

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
    /// Percent of contexts that are kept out; no passage of theirs is trained on.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(..100))]
    held_out_percent: u64,
    /// Percent of examples, at most, whose answer is that the documents do not have it; others are left out at random.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u8).range(..=100))]
    unanswerable: u8,
    /// Sources to leave out, by the beginning of their names.
    #[arg(long, value_delimiter = ',', default_value = "multirc,friendsqa")]
    without: Vec<String>,
    /// Take no further contexts of a source after N examples, by the beginning of its name: `NAME=N`.
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
    let DataArgs { from, without, seed, most, held_out_percent, unanswerable, .. } = args.clone();
    let unanswerable_percent = usize::from(unanswerable);
    anyhow::ensure!(
        args.out != args.held_out,
        "--out and --held-out are both {}: the held-out examples would replace the others",
        args.out.display()
    );
    let making = Making { from, seed, without, most, held_out_percent, unanswerable_percent };
    let made = forms::make(&making)?;
    forms::write(&args.out, &made.lines)?;
    forms::write(&args.held_out, &made.held_out)?;
    for (name, items, examples) in &made.files {
        say(&format!("{name}: {examples} examples of {items} items"));
    }
    let (training, held_out) = (made.lines.len(), made.held_out.len());
    say(&format!("{training} to train on, {held_out} held out, {} unanswerable", made.unanswerable));
    say(&format!(
        "left out: {} groups that share a passage with held-out contexts, {} examples as too many unanswerable ones",
        made.shared, made.surplus
    ));
    Ok(())
}
