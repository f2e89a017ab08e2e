//! What the user meant by the model that they named.

use std::path::{self, Path};

use super::name::{HUB_PREFIX, HubName};
use super::{FetchError, Fetched, local};
use crate::manifest::{Choice, Manifest, built_in};

/// What a model name given by the user refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// A model with a manifest, still to be fetched.
    Known(Choice<'static>),
    /// A model or an adapter of the hub, still to be fetched.
    Named(HubName),
    /// Files of the user's own, without a manifest.
    Local(Fetched),
}

/// Reads what the user typed: a known name (`-instruct` may be left out) with or without `:variant`, a name on the hub
/// (`hf:...`), or a path.
/// A path that could be a name needs a slash in it: `./bge-m3`.
///
/// # Errors
///
/// [`FetchError::UnknownModel`] with the nearest names, [`FetchError::UnknownVariant`] with those that there are, or
/// what is wrong with the name on the hub or the path.
pub fn resolve(typed: &str) -> Result<Resolved, FetchError> {
    if typed.starts_with(HUB_PREFIX) {
        return typed.parse().map(Resolved::Named);
    }
    let as_path = Path::new(typed);
    let looks_like_a_path = typed.contains(path::is_separator) || typed.to_lowercase().ends_with(".gguf");
    if looks_like_a_path {
        return local::open(as_path).map(Resolved::Local);
    }
    match choose(typed) {
        Err(FetchError::UnknownModel { .. }) if as_path.exists() => local::open(as_path).map(Resolved::Local),
        chosen => chosen.map(Resolved::Known),
    }
}

fn choose(typed: &str) -> Result<Choice<'static>, FetchError> {
    let (name, variant) = match typed.split_once(':') {
        Some((name, variant)) => (name.to_lowercase(), Some(variant)),
        None => (typed.to_lowercase(), None),
    };
    let full_name = format!("{name}-instruct");
    let found = built_in().iter().find(|manifest| manifest.name == name || manifest.name == full_name);
    let Some(manifest) = found else {
        return Err(FetchError::UnknownModel { typed: typed.to_owned(), nearest: nearest(&name) });
    };
    let variant = variant.unwrap_or(&manifest.default_variant);
    manifest.choose(variant).ok_or_else(|| FetchError::UnknownVariant {
        model: manifest.name.clone(),
        typed: variant.to_owned(),
        known: manifest.variants.iter().map(|variant| variant.name.clone()).collect(),
    })
}

/// Names the up to three models whose names begin like what was typed, or are a few slips away from it.
fn nearest(typed: &str) -> Vec<String> {
    let slips = |manifest: &Manifest| {
        let short = manifest.name.trim_end_matches("-instruct");
        strsim::damerau_levenshtein(typed, short).min(strsim::damerau_levenshtein(typed, &manifest.name))
    };
    let alike = |manifest: &&Manifest| {
        (!typed.is_empty() && manifest.name.starts_with(typed)) || slips(manifest) <= typed.len() / 3
    };
    let mut found: Vec<&Manifest> = built_in().iter().filter(alike).collect();
    found.sort_by_key(|manifest| slips(manifest));
    found.into_iter().take(3).map(|manifest| manifest.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_variants_and_slips() {
        let check = |typed: &str, expected: &str| {
            let found = match resolve(typed) {
                Ok(Resolved::Known(choice)) => choice.to_string(),
                Ok(Resolved::Named(name)) => name.to_string(),
                Ok(Resolved::Local(fetched)) => fetched.source.to_string(),
                Err(error) => match error.hint() {
                    Some(hint) => format!("{error}; {hint}"),
                    None => error.to_string(),
                },
            };
            assert_eq!(found, expected);
        };
        check("qwen2.5-0.5b", "qwen2.5-0.5b-instruct:q4_k_m");
        check("qwen2.5-0.5b-instruct", "qwen2.5-0.5b-instruct:q4_k_m");
        check("Qwen2.5-7B-Instruct:Q8_0", "qwen2.5-7b-instruct:q8_0");
        check("qwen2.5-7b:bf16", "qwen2.5-7b-instruct:bf16");
        check("smollm2-135m", "smollm2-135m-instruct:q4_1");
        check("bge-m3", "bge-m3:f32");
        check("bge-m3:q4", "bge-m3 has no variant \"q4\"; there are f32");
        check("bgem3", "there is no model named \"bgem3\"; did you mean bge-m3?");
        check(
            "qwen2.5-23b",
            "there is no model named \"qwen2.5-23b\"; did you mean \
             qwen2.5-3b-instruct or qwen2.5-32b-instruct or qwen2.5-7b-instruct?",
        );
        check("all-minilm", "there is no model named \"all-minilm\"; did you mean all-minilm-l6-v2?");
        check("gpt-5", "there is no model named \"gpt-5\"; memlocal models list shows all of them");
        check("", "there is no model named \"\"; memlocal models list shows all of them");
        check("x:b:c", "there is no model named \"x:b:c\"; memlocal models list shows all of them");
        check("hf:o/a:q8_0", "hf:o/a:Q8_0");
        check(
            "hf:a",
            "\"hf:a\" is no name on the hub: a repository is OWNER/NAME; hf:OWNER/REPO[:FILE|QUANT][@REVISION]",
        );
        check("./nowhere", "./nowhere is not a model: neither a .gguf file nor a folder");
        check("nowhere.gguf", "nowhere.gguf is missing");
    }
}
