//! `--explain-cache`: for every call, which tokens of its prompt were cached and where the prompt diverged from the
//! cache; and the effect of `--keep-prefixes`.

use calls::Divergence;
use launch::eprintln;
use launch::output::{counted, table};
use memory::Event;

/// Prints a line for each call on standard error.
pub fn print(events: &[Event]) {
    let row = |event: &Event| {
        let Event::Call { step, prompt_tokens, cached_tokens, diverged, .. } = event else { return None };
        let [prompt, cached, computed] =
            [*prompt_tokens, *cached_tokens, prompt_tokens - cached_tokens].map(|tokens| tokens.to_string());
        Some(vec![step.clone(), prompt, cached, computed, diverged.map_or_else(|| "-".to_owned(), place)])
    };
    let header = ["step", "prompt", "cached", "computed", "diverged in"];
    eprintln!("\n{}", table(&header, events.iter().filter_map(row)));
}

/// Reports on standard error what was restored from an earlier run, and what was not saved or not used.
pub fn print_prefixes(events: &[Event]) {
    for event in events {
        let Event::Prefixes { step, tokens, refused } = event else { continue };
        let brought = step == "prefixes.bring";
        if brought && *tokens > 0 {
            eprintln!("{} restored from a snapshot", counted(*tokens, "token"));
        }
        let not = if brought { "not used" } else { "not saved" };
        refused.iter().for_each(|reason| eprintln!("{not}: {reason}"));
    }
}

fn place(divergence: Divergence) -> String {
    let Divergence { segment, role, stability } = divergence;
    let stability = serde_json::to_value(stability).ok().and_then(|name| name.as_str().map(str::to_owned));
    format!("part {} ({}, {})", segment + 1, role.as_str(), stability.unwrap_or_default())
}
