//! How results are kept and printed.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use anyhow::Result;
use eval::speed::Items;
use eval::{Manifest, RunFolder};
use launch::eprintln;
use launch::output::{print, print_line};
use launch::typed_model::name;
use serde::Serialize;

/// The name of a run folder, by the kind of measurement and the model.
pub fn folder_name(kind: &str, typed_model: &str) -> String {
    let name = name(typed_model);
    let last = name.rsplit('/').next().unwrap_or(&name).trim_end_matches(".gguf");
    format!("{kind}-{}", last.replace(':', "-"))
}

/// Writes a run folder, and says where it is.
pub fn keep(folder: RunFolder, manifest: &Manifest, results: &str, report: &(impl Display + Serialize)) -> Result<()> {
    let path = folder.write(manifest, results, report)?;
    eprintln!("kept in {}", path.display());
    Ok(())
}

/// Prints a report as one JSON object, or as Markdown.
pub fn show(report: &(impl Display + Serialize), as_json: bool) -> Result<()> {
    if as_json { print_line(serde_json::to_string_pretty(report)?) } else { print(report) }
}

/// Prints measurements as a JSON object a line.
pub fn show_lines(items: &Items) -> Result<()> {
    items.items.iter().try_for_each(|item| print_line(serde_json::to_string(item)?))
}

/// Prints a status line that overwrites itself, on a terminal only.
pub fn show_status(what: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{what}").and_then(|()| err.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::folder_name;

    #[test]
    fn a_run_folder_is_named_by_the_last_part_of_the_model() {
        assert_eq!(folder_name("engine", "smollm2-135m-instruct"), "engine-smollm2-135m-instruct-q4_1");
        assert_eq!(folder_name("serve", "models/none.gguf"), "serve-none");
        assert_eq!(folder_name("load", "Qwen/Qwen2.5-7B-Instruct"), "load-Qwen2.5-7B-Instruct");
    }
}
