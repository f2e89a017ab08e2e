//! `cargo xtask words`: rejects the words that `docs/style.md` replaces by standard terms, and examples that no test runs.

use std::path::Path;
use std::process::{Command, ExitCode};

/// Rejected words and phrases in lower case, with what to write instead.
const REJECTED: &[(&str, &str)] = &[
    ("whoever", "name the actor"),
    ("nobody", "no caller, no reader, none"),
    ("somebody", "a caller, a user"),
    ("anybody", "any caller"),
    ("everybody", "all callers, all users"),
    ("who asks", "the caller, the user"),
    ("is said", "is reported"),
    ("stands", "is"),
    ("lies", "is"),
    ("wears", "has"),
    ("bears", "supports"),
    ("becomes of", "is done with"),
    ("is told", "receives"),
    ("likeliest", "top-k, most likely"),
    ("whatever comes of it", "even if it fails"),
    ("reads along", "is streamed"),
    ("read along", "streamed"),
    ("what it likes", "name what it does"),
    ("goes away", "disconnects, is dropped"),
    ("taken up again", "resumed"),
    ("take up again", "resume"),
    ("goes on", "continues, resumes"),
    ("going on", "continuing"),
    ("the way round", "workaround"),
    ("so many", "this number of, name the parameter"),
    ("in vain", "without a result"),
];

/// Extensions of the files that are checked.
const EXTENSIONS: &[&str] = &["rs", "md", "toml", "html", "js", "css", "py", "sh", "cu", "cuh", "service", "cjs"];

/// Paths that are exempt: the list itself, quoted sources, recorded runs, prompts, and tests that hold stories or data.
const EXEMPT: &[&str] = &[
    "crates/xtask/src/words.rs",
    "docs/style.md",
    "samples/",
    "benches/runs/",
    // Prompts, and a list of English negations.
    "crates/memory/src/core/prompt.rs",
    "crates/memory/src/methods/comorag/prompts.rs",
    "crates/memory/src/methods/gam/prompts.rs",
    "crates/memory/src/methods/memcot/prompts.rs",
    "crates/memory/src/methods/mindgraph/prompts.rs",
    "crates/memory/src/grounding/negation.rs",
    // Sentences of stories, replies and data sets.
    "crates/memory/src/grounding/asserted_tests.rs",
    "crates/eval/src/forms/mod.rs",
    "crates/eval/src/score/scorer.rs",
    "crates/eval/tests/eval/",
    "crates/memory/src/methods/comorag/graph.rs",
    "crates/memory/src/methods/comorag/pagerank.rs",
    "crates/memory/tests/",
    "crates/sources/tests/",
    "crates/test-support/src/postgres.rs",
    "tests/models.rs",
];

/// Checks every tracked file; fails with one line per finding.
///
/// # Errors
/// If git does not list the files.
pub fn run() -> Result<ExitCode, String> {
    if !Path::new(".git").exists() {
        eprintln!("xtask: the wording is not checked: this is not a git checkout");
        return Ok(ExitCode::SUCCESS);
    }
    let findings: Vec<String> = tracked_files()?.iter().flat_map(|path| check_file(path)).collect();
    findings.iter().for_each(|finding| eprintln!("xtask: {finding}"));
    if findings.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("xtask: {} findings; docs/style.md has the terms to use", findings.len());
    Ok(ExitCode::FAILURE)
}

fn tracked_files() -> Result<Vec<String>, String> {
    let output = Command::new("git").args(["ls-files"]).output().map_err(|error| format!("cannot run git: {error}"))?;
    if !output.status.success() {
        return Err("git ls-files failed".into());
    }
    let is_checked = |path: &&str| {
        let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let is_under = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
        EXTENSIONS.contains(&extension) && !is_under(EXEMPT)
    };
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter(is_checked).map(str::to_owned).collect())
}

fn check_file(path: &str) -> Vec<String> {
    // A file that was deleted in the working tree is still listed.
    let Ok(text) = std::fs::read_to_string(path) else { return Vec::new() };
    let of_line = |(index, line): (usize, &str)| {
        let found = rejected_in(line);
        found.map(|(word, instead)| format!("{path}:{}: `{word}` (write: {instead})", index + 1)).collect::<Vec<_>>()
    };
    let untested = examples(&text).filter(|_| !tests_examples(path));
    let untested = untested.map(|line| format!("{path}:{line}: no test runs this example (remove `doctest = false`)"));
    text.lines().enumerate().flat_map(of_line).chain(untested).collect()
}

/// The lines at which examples begin in the documentation of a file: code blocks in no other language than Rust.
fn examples(text: &str) -> impl Iterator<Item = usize> {
    let fences = text.lines().zip(1..).filter_map(|(line, number)| {
        let line = line.trim_start();
        let documentation = line.strip_prefix("//!").or(line.strip_prefix("///"))?;
        Some((number, documentation.trim_start().strip_prefix("```")?))
    });
    // Every second fence ends a block.
    fences.step_by(2).filter(|(_, language)| !["json", "text", "toml"].contains(language)).map(|(number, _)| number)
}

/// True if the crate of a file runs the examples in its documentation as tests: the others take seconds each to find none.
fn tests_examples(path: &str) -> bool {
    let mut manifests = Path::new(path).ancestors().map(|folder| folder.join("Cargo.toml"));
    let manifest = manifests.find_map(|manifest| std::fs::read_to_string(manifest).ok());
    manifest.is_none_or(|manifest| !manifest.contains("doctest = false"))
}

/// The rejected words and phrases of a line; words are compared whole.
fn rejected_in(line: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let words: Vec<String> = line
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let line = format!(" {} ", words.join(" "));
    REJECTED.iter().copied().filter(move |(word, _)| line.contains(&format!(" {word} ")))
}

#[cfg(test)]
mod tests {
    use super::{examples, rejected_in};

    #[test]
    fn whole_words_and_phrases_are_rejected_in_any_case() {
        let found = |line| rejected_in(line).map(|(word, _)| word).collect::<Vec<_>>();
        assert_eq!(found("/// Nobody waits; it is said twice."), ["nobody", "is said"]);
        assert_eq!(found("understands, flies, replies and bears_repeating"), Vec::<&str>::new());
        assert_eq!(found("what becomes\u{20}of it"), ["becomes of"]);
    }

    #[test]
    fn examples_begin_where_a_code_block_has_no_other_language() {
        let text =
            "//! ```text\n//! a | b\n//! ```\n/// ```\n/// let a = b;\n/// ```\n    /// ```no_run\n    /// ```\n";
        assert_eq!(examples(text).collect::<Vec<usize>>(), [4, 7]);
    }
}
