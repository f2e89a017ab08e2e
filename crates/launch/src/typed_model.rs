//! Names of models: as users type them, and as results show them.

use std::fmt::Display;
use std::path::Path;

use models::fetch::{Resolved, resolve};

use crate::flags::AdapterFlag;

/// The name of a model with its quantisation, as in results and beside the vectors that it made.
pub fn quantised_name(typed: &str, quantise: Option<impl Display>) -> String {
    quantise.map_or_else(|| name(typed), |quantise| format!("{}+{quantise}", name(typed)))
}

/// A model as typed, without the adapter behind its `+`; `base` is the model of `--model`.
pub fn without_adapter<'a>(typed: &'a str, base: &'a str, declared: &[AdapterFlag]) -> &'a str {
    let is_declared = |name: &str| {
        name == "none"
            || declared.iter().any(|flag| matches!(flag, AdapterFlag::At { name: known, .. } if known == name))
    };
    let split =
        |typed: &'a str| typed.rsplit_once('+').filter(|(_, name)| is_declared(name)).map_or(typed, |(model, _)| model);
    let model = split(typed);
    if model.is_empty() || model == "base" { split(base) } else { model }
}

/// The name under which an adapter knows its base model, whatever its quantisation: that of the manifest or on the hub, or of
/// the file.
pub fn base(typed: &str) -> String {
    match resolve(typed) {
        Ok(Resolved::Known(choice)) => choice.manifest.name.clone(),
        Ok(Resolved::Named(name)) => name.to_string(),
        Ok(Resolved::Local(_)) | Err(_) => {
            let path = Path::new(typed);
            path.file_name().map_or_else(|| typed.to_owned(), |name| name.to_string_lossy().into_owned())
        }
    }
}

/// The name of a model in results: its manifest's name and variant, its name on the hub, or the path as typed.
pub fn name(typed: &str) -> String {
    match resolve(typed) {
        Ok(Resolved::Known(choice)) => choice.to_string(),
        Ok(Resolved::Named(name)) => name.to_string(),
        Ok(Resolved::Local(_)) | Err(_) => typed.to_owned(),
    }
}
