//! Names of models on the Hugging Face Hub: `hf:OWNER/REPO[:FILE|QUANT][@REVISION]`.

use std::fmt;
use std::str::FromStr;

use super::FetchError;
use super::file_names::is_below_a_folder;

/// What every such name begins with.
pub const HUB_PREFIX: &str = "hf:";

/// A model or an adapter by its place on the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubName {
    /// `owner/name`.
    pub repo: String,
    /// A GGUF file, or the quantisation in the name of one, in upper case.
    pub part: Option<String>,
    /// A branch, a tag or a commit; `main` where none is named.
    pub revision: Option<String>,
}

impl HubName {
    /// Whether the part is a file.
    pub(super) fn is_file(&self) -> bool {
        self.part.as_deref().is_some_and(is_gguf)
    }

    /// The revision, `main` where none is named.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }

    /// The two levels of its folder below that of the models.
    pub(super) fn folders(&self) -> (String, String) {
        let part = self.part.as_deref().unwrap_or("default");
        let flat = |text: &str| text.replace('/', "--");
        (format!("hf--{}", flat(&self.repo)), format!("{}@{}", flat(part), flat(self.revision())))
    }
}

impl FromStr for HubName {
    type Err = FetchError;

    fn from_str(typed: &str) -> Result<HubName, FetchError> {
        let wrong = |problem: &str| FetchError::BadHubName { typed: typed.to_owned(), problem: problem.to_owned() };
        let rest = typed.strip_prefix(HUB_PREFIX).ok_or_else(|| wrong("it does not begin with hf:"))?;
        let (rest, revision) = match rest.rsplit_once('@') {
            Some((rest, revision)) => (rest, Some(revision)),
            None => (rest, None),
        };
        let (repo, part) = match rest.split_once(':') {
            Some((repo, part)) => (repo, Some(part)),
            None => (rest, None),
        };
        let is_plain = |text: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
            text.chars().all(known) && is_below_a_folder(text)
        };
        if !is_plain(repo) || repo.split('/').filter(|name| !name.is_empty()).count() != 2 {
            return Err(wrong("a repository is OWNER/NAME"));
        }
        if revision.is_some_and(|revision| !is_plain(revision)) {
            return Err(wrong("a revision is a branch, a tag or a commit"));
        }
        if part.is_some_and(|part| !is_gguf(part) && !is_quant(part) || !is_below_a_folder(part)) {
            return Err(wrong("the part after the repository is a .gguf file of it, or a quantisation such as Q4_K_M"));
        }
        let part = part.map(|part| if is_gguf(part) { part.to_owned() } else { part.to_uppercase() });
        Ok(HubName { repo: repo.to_owned(), part, revision: revision.map(str::to_owned) })
    }
}

impl fmt::Display for HubName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{HUB_PREFIX}{}", self.repo)?;
        if let Some(part) = &self.part {
            write!(f, ":{part}")?;
        }
        self.revision.as_ref().map_or(Ok(()), |revision| write!(f, "@{revision}"))
    }
}

fn is_gguf(part: &str) -> bool {
    part.to_lowercase().ends_with(".gguf")
}

/// Letters and then a digit, as in `Q4_K_M`, `IQ4_XS`, `BF16` and `UD-Q4_K_XL`.
fn is_quant(part: &str) -> bool {
    let rest = part.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == '-');
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    rest.len() < part.len() && rest.starts_with(|c: char| c.is_ascii_digit()) && rest.chars().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read() {
        let check = |typed: &str, want: Option<(&str, Option<&str>, &str, &str)>| {
            let found = typed.parse::<HubName>();
            let found = found
                .as_ref()
                .ok()
                .map(|name| (name.repo.as_str(), name.part.as_deref(), name.revision(), name.folders().1));
            let want = want.map(|(repo, part, revision, folder)| (repo, part, revision, folder.to_owned()));
            assert_eq!(found, want, "{typed}");
        };
        check("hf:Qwen/Qwen3-0.6B", Some(("Qwen/Qwen3-0.6B", None, "main", "default@main")));
        check("hf:o/a:q4_k_m", Some(("o/a", Some("Q4_K_M"), "main", "Q4_K_M@main")));
        check("hf:o/a:x/b.gguf@refs/pr/1", Some(("o/a", Some("x/b.gguf"), "refs/pr/1", "x--b.gguf@refs--pr--1")));
        check("hf:o/a@v1.0", Some(("o/a", None, "v1.0", "default@v1.0")));
        for wrong in ["o/a", "hf:a", "hf:o/a/b", "hf:o/..", "hf:o/a:", "hf:o/a@", "hf:o/a:XS", "hf:o/a:../b.gguf"] {
            check(wrong, None);
        }
        for wrong in ["hf:o/a:model.safetensors", "hf:o/a@../b", "hf:o a/b", "hf:"] {
            check(wrong, None);
        }
    }

    #[test]
    fn names_are_written_as_they_are_read() {
        for typed in ["hf:o/a", "hf:o/a:IQ4_XS", "hf:o/a:b.gguf@main", "hf:o/a@v1"] {
            assert_eq!(typed.parse::<HubName>().unwrap().to_string(), typed);
        }
    }
}
