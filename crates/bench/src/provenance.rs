//! Provenance of results: the command line, and digests of the models.

use std::path::Path;

use anyhow::Result;
use eval::{FileDigest, ModelDigest};
use launch::fetching::{adapter_path, fetched};
use launch::flags::{AdapterFlag, EmbedderFormat, GlobalFlags, ModelFlags};
use launch::typed_model::{embedder_quantisation, quantised_name, without_adapter};
use models::Quantisation;

/// A model as typed, without its adapter, and what its dense weights become.
pub type Typed<'a> = (&'a str, Option<Quantisation>);

/// The language models of all agents; one that serves several is repeated.
pub fn language_models(flags: &ModelFlags) -> impl Iterator<Item = Typed<'_>> {
    let ModelFlags { model, memorizer, researcher, judge, builder, adapters, quantise, .. } = flags;
    let named = [memorizer, researcher, judge, builder].into_iter().flatten();
    [model].into_iter().chain(named).map(move |typed| (without_adapter(typed, model, adapters), *quantise))
}

/// An embedding model.
pub fn embedder(typed: &str, format: Option<EmbedderFormat>) -> Typed<'_> {
    (typed, embedder_quantisation(typed, format))
}

/// The digests of models, each once, and of adapters.
pub fn digests<'a>(
    models: impl IntoIterator<Item = Typed<'a>>,
    adapters: &[AdapterFlag],
    global: &GlobalFlags,
) -> Result<Vec<ModelDigest>> {
    let models = each_once(models).into_iter().map(|model| model_digest(model, global));
    let adapters = adapters.iter().filter_map(|flag| match flag {
        AdapterFlag::At { name, path } => Some(adapter_digest(name, path, global)),
        AdapterFlag::None | AdapterFlag::Corpus(_) => None,
    });
    models.chain(adapters).collect()
}

fn each_once<'a>(models: impl IntoIterator<Item = Typed<'a>>) -> Vec<Typed<'a>> {
    let mut each = Vec::new();
    for model in models {
        if !each.contains(&model) {
            each.push(model);
        }
    }
    each
}

/// The digests of a model's files, and its name with its quantisation.
fn model_digest((typed, quantise): Typed<'_>, global: &GlobalFlags) -> Result<ModelDigest> {
    let files = FileDigest::of_all(fetched(typed, global)?.files.into_iter().map(|file| file.path))?;
    Ok(ModelDigest { name: quantised_name(typed, quantise), files })
}

fn adapter_digest(name: &str, path: &Path, global: &GlobalFlags) -> Result<ModelDigest> {
    let path = adapter_path(path, global)?;
    let files = if path.is_dir() {
        ["adapter_config.json", "adapter_model.safetensors"].map(|file| path.join(file)).to_vec()
    } else {
        vec![path]
    };
    Ok(ModelDigest { name: format!("adapter {name}"), files: FileDigest::of_all(files)? })
}

/// The command line.
pub fn command_line() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("memlocal-bench".to_owned()).chain(words).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Args {
        #[command(flatten)]
        models: ModelFlags,
    }

    #[test]
    fn the_models_of_all_agents_have_provenance_each_once() {
        let words = "memlocal --model a.gguf+legal --adapter legal=x --quantise q8_0 \
                     --memorizer b.gguf --researcher base --judge c.gguf --builder b.gguf";
        let Args { models } = Args::try_parse_from(words.split_whitespace()).unwrap();
        let q8_0 = Some(Quantisation::Q8_0);
        let each = each_once(language_models(&models).chain([embedder("e.gguf", None)]));
        assert_eq!(each, [("a.gguf", q8_0), ("b.gguf", q8_0), ("c.gguf", q8_0), ("e.gguf", None)]);
    }
}
