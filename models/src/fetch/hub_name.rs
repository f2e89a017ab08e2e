//! Names of repositories of the Hugging Face Hub: `hf:OWNER/REPO[:FILE|QUANT][@REVISION]`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::FetchError;
use crate::manifest::{Choice, Format, Manifest, Source, Variant};

/// What such a name begins with.
pub const PREFIX: &str = "hf:";

/// The branch that a name without a revision means.
const MAIN: &str = "main";

/// A repository, which of its files are wanted, and the revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HubName<'a> {
    repo: &'a str,
    wanted: Option<&'a str>,
    revision: Option<&'a str>,
}

impl<'a> HubName<'a> {
    fn parse(typed: &'a str) -> Option<HubName<'a>> {
        let rest = typed.strip_prefix(PREFIX)?;
        let (rest, revision) = rest.split_once('@').map_or((rest, None), |(rest, revision)| (rest, Some(revision)));
        let (repo, wanted) = rest.split_once(':').map_or((rest, None), |(repo, wanted)| (repo, Some(wanted)));
        let (owner, name) = repo.split_once('/')?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let is_name = |text: &str| !text.is_empty() && !text.starts_with('.') && text.chars().all(is_plain);
        // Both become parts of paths on this disk.
        let is_path = |text: &str| text.split('/').all(is_name);
        let is_valid = is_name(owner) && is_name(name) && wanted.is_none_or(is_path) && revision.is_none_or(is_path);
        is_valid.then_some(HubName { repo, wanted, revision })
    }
}

/// The model of such a name. It has one variant, whose files are not known before the repository has been listed.
///
/// # Errors
/// [`FetchError::BadHubName`] for anything else.
pub(super) fn choose(typed: &str) -> Result<Choice<'static>, FetchError> {
    // One manifest per name for the life of the process: a choice borrows its manifest.
    static NAMED: Mutex<BTreeMap<String, &Manifest>> = Mutex::new(BTreeMap::new());
    let name = HubName::parse(typed).ok_or_else(|| FetchError::BadHubName { typed: typed.to_owned() })?;
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let manifest = *named.entry(typed.to_owned()).or_insert_with(|| Box::leak(Box::new(manifest(name))));
    Ok(Choice { manifest, variant: &manifest.variants[0] })
}

fn manifest(name: HubName<'_>) -> Manifest {
    let revision = name.revision.map_or_else(String::new, |revision| format!("@{revision}"));
    let variant = Variant {
        name: format!("{}{revision}", name.wanted.unwrap_or_default()),
        format: Format::Gguf,
        chat_template: None,
        memory_mib: 0,
        files: Vec::new(),
        sources: vec![Source::Hub { repo: name.repo.to_owned(), revision: name.revision.unwrap_or(MAIN).to_owned() }],
    };
    Manifest {
        name: format!("{PREFIX}{}", name.repo),
        network: None,
        kind: None,
        licence: None,
        context_tokens: None,
        default_variant: variant.name.clone(),
        variants: vec![variant],
    }
}

/// The file or quantisation that a choice of such a name asks for.
pub(super) fn wanted(choice: Choice<'_>) -> Option<&str> {
    let wanted = choice.variant.name.split('@').next().unwrap_or_default();
    (!wanted.is_empty()).then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_repository_and_perhaps_a_file_and_a_revision() {
        let check = |typed: &str, wanted_file: Option<&str>, revision: &str| {
            let choice = choose(typed).unwrap();
            assert_eq!(choice.to_string(), typed);
            assert_eq!(wanted(choice), wanted_file);
            let expected = Source::Hub { repo: "Own-er/re.po_1".to_owned(), revision: revision.to_owned() };
            assert_eq!(choice.variant.sources, [expected]);
        };
        check("hf:Own-er/re.po_1", None, "main");
        check("hf:Own-er/re.po_1:Q4_K_M", Some("Q4_K_M"), "main");
        check("hf:Own-er/re.po_1:sub/a.gguf@refs/pr/7", Some("sub/a.gguf"), "refs/pr/7");
        check("hf:Own-er/re.po_1@v1.0", None, "v1.0");
    }

    #[test]
    fn names_that_could_leave_the_models_folder_are_refused() {
        for typed in [
            "hf:",
            "hf:repo",
            "hf:a/b/c",
            "hf:../b",
            "hf:a/..",
            "hf:a/b:",
            "hf:a/b@",
            "hf:a/b:../c",
            "hf:a/b:/c",
            "hf:a/b@..",
            "hf:a/b:c d",
            "hf:a/b:c:d",
            "hf:a b/c",
        ] {
            assert!(matches!(choose(typed), Err(FetchError::BadHubName { .. })), "{typed}");
        }
    }
}
