//! Names of models: as users type them, and as results show them.

use std::fmt::Display;
use std::path::Path;

use models::fetch::{Resolved, resolve};
use models::{Precision, Quantisation};

use crate::flags::{AdapterFlag, EmbedderFormat};

/// The name of a model with its quantisation, as in results and beside the vectors that it made.
pub fn quantised_name(typed: &str, quantise: Option<impl Display>) -> String {
    quantise.map_or_else(|| name(typed), |quantise| format!("{}+{quantise}", name(typed)))
}

/// What the dense weights of an embedding model become: what `format` says, else its manifest unless a variant is named.
pub fn embedder_quantisation(typed: &str, format: Option<EmbedderFormat>) -> Option<Quantisation> {
    match format {
        Some(EmbedderFormat::Stored) => None,
        Some(EmbedderFormat::Quantised(quantisation)) => Some(quantisation),
        None => match resolve(typed) {
            Ok(Resolved::Known(choice)) if !typed.contains(':') => choice.manifest.quantise,
            Ok(_) | Err(_) => None,
        },
    }
}

/// The same as a precision to load in.
pub fn embedder_precision(typed: &str, format: Option<EmbedderFormat>) -> Precision {
    embedder_quantisation(typed, format).map_or(Precision::Stored, Precision::Quantised)
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

/// A model as typed, without the adapter behind its `+`, wherever that is declared.
pub fn without_any_adapter(typed: &str) -> &str {
    // A path may have a `+` of its own.
    typed.rsplit_once('+').filter(|_| resolve(typed).is_err()).map_or(typed, |(model, _)| model)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_says_what_an_embedder_becomes_unless_the_user_does() {
        let q8_0 = Some(Quantisation::Q8_0);
        assert_eq!(embedder_quantisation("bge-m3", None), q8_0);
        assert_eq!(embedder_quantisation("bge-m3:f32", None), None);
        assert_eq!(embedder_quantisation("bge-m3", Some(EmbedderFormat::Stored)), None);
        assert_eq!(embedder_quantisation("all-minilm-l6-v2", None), None);
        assert_eq!(embedder_quantisation("all-minilm-l6-v2", "q8_0".parse().ok()), q8_0);
        assert!("q5_0".parse::<EmbedderFormat>().is_err());
    }

    #[test]
    fn a_model_is_named_without_its_adapter() {
        for model in ["qwen2.5-7b", "qwen2.5-7b:q4_k_m", "hf:a/b", "hf:a/b:Q4_K_M", "hf:a/b@main", "./none.gguf"] {
            assert_eq!(without_any_adapter(&format!("{model}+legal")), model);
            assert_eq!(without_any_adapter(model), model);
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a+b");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("config.json"), "{}").unwrap();
        std::fs::write(path.join("model.safetensors"), "").unwrap();
        assert_eq!(without_any_adapter(path.to_str().unwrap()), path.to_str().unwrap());
    }
}
