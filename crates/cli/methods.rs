//! `memlocal methods`: lists and describes the methods.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use launch::output::{print_line, print_table};
use memory::methods;

use crate::args::Methods;

pub fn run(command: &Methods) -> Result<ExitCode> {
    match command {
        Methods::List => {
            print_table(&[], methods::ALL.iter().map(|method| vec![method.to_string(), method.about().summary()]))?;
        }
        Methods::Show { name: method } => {
            print_line(in_words(&method.about().documentation()))?;
            if let Some(paper) = method.about().paper {
                print_line(format_args!("\n# Paper\n{paper}"))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The documentation of a module without its references to other parts of the source: those in brackets are left out, of
/// others the name is left.
fn in_words(documentation: &str) -> String {
    let text = without_bracketed_references(documentation);
    let mut parts = text.split("[`");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (path, after) = part.split_once("`]").unwrap_or((part, ""));
        let name = path.rsplit("::").next().unwrap_or(path);
        shown.extend(["`", name, "`", after]);
    }
    shown
}

/// The text without brackets that contain a reference only. A line that ended before them ends behind the punctuation that
/// follows them.
fn without_bracketed_references(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('(') {
        let (before, inside) = (&rest[..at], &rest[at + 1..]);
        let Some(end) = inside.find(')').filter(|end| is_reference(&inside[..*end])) else {
            shown.push_str(&rest[..=at]);
            rest = inside;
            continue;
        };
        let words = before.trim_end();
        let space = &before[words.len()..];
        shown.push_str(words);
        rest = &inside[end + 1..];
        if space.contains('\n') {
            let punctuation = rest.find(char::is_whitespace).unwrap_or(rest.len());
            shown.push_str(&rest[..punctuation]);
            shown.push_str(space);
            rest = rest[punctuation..].trim_start();
        }
    }
    shown + rest
}

/// Whether a text is the name of an item (`` `name` ``, ``[`path::name`]``) or of a file of the source.
fn is_reference(text: &str) -> bool {
    let name = text.trim_matches(['[', '`', ']']);
    let is_item = name.len() < text.len() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    is_item || Path::new(name).extension().is_some_and(|extension| extension == "rs")
}

#[cfg(test)]
mod tests {
    use memory::methods;

    use super::in_words;

    #[test]
    fn references_to_the_source_are_not_shown() {
        let check = |text: &str, want: &str| assert_eq!(in_words(text), want);
        check("Scores are combined ([`store::fuse::by_score`]); a page", "Scores are combined; a page");
        check(
            "* It repeats itself\n  ([`calls::loops`]). Ahead\n  of time",
            "* It repeats itself.\n  Ahead\n  of time",
        );
        check("Ahead of time (`prepare`), without chance (umap.rs).", "Ahead of time, without chance.");
        check("Engines enforce [`calls::schema::quote_of`] (always).", "Engines enforce `quote_of` (always).");
        check(
            "GAM (arXiv:2511.18423) writes `\"\"` (section 2.2)",
            "GAM (arXiv:2511.18423) writes `\"\"` (section 2.2)",
        );
        check("Open (not closed", "Open (not closed");
    }

    #[test]
    fn methods_are_described_without_paths_of_the_source() {
        for method in methods::ALL {
            let shown = in_words(&method.about().documentation());
            assert!(!shown.contains("::") && !shown.contains("[`") && !shown.contains("(`"), "{method}: {shown}");
        }
    }
}
