//! Which model and adapter serve an agent, from names such as `MODEL+ADAPTER`.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use calls::{Agent, reading};
use engine::{Adapters, NamedAdapter};
use models::adapter::Adapter;
use models::{DecoderSpec, LanguageModel, ModelError};

use crate::failure::refusal;
use crate::fetching::adapter_path;
use crate::flags::{AdapterFlag, GlobalFlags, ModelFlags};
use crate::typed_model::name;

/// The models of the flags, and which of them serves an agent with which adapter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Assigned<'a> {
    /// The different language models as typed, without adapters; the first serves all agents that are not named.
    pub models: Vec<&'a str>,
    pub agents: HashMap<Agent, usize>,
    /// The name of the adapter of an agent.
    pub adapters: HashMap<Agent, &'a str>,
}

impl<'a> Assigned<'a> {
    /// # Errors
    /// If an agent names an adapter that is not declared, or one is declared twice.
    pub fn of(flags: &'a ModelFlags) -> Result<Assigned<'a>> {
        let declared = declared(flags)?;
        let (model, adapter) = split(&flags.model, &declared)?;
        let mut assigned = Assigned { models: vec![model], agents: HashMap::new(), adapters: HashMap::new() };
        if let Some(adapter) = adapter {
            assigned.adapters.extend(Agent::ALL.map(|agent| (agent, adapter)));
        }
        let research = [Agent::Researcher, Agent::Judge, Agent::Builder];
        let named = [
            (&flags.memorizer, &[Agent::Memorizer][..]),
            (&flags.researcher, &research),
            (&flags.judge, &[Agent::Judge]),
            (&flags.builder, &[Agent::Builder]),
        ];
        for (typed, agents) in named {
            let Some(typed) = typed else { continue };
            let (typed, adapter) = split(typed, &declared)?;
            let typed = if typed.is_empty() || typed == "base" { model } else { typed };
            let index = assigned.index_of(typed);
            for agent in agents {
                assigned.agents.insert(*agent, index);
                match adapter {
                    Some(adapter) => assigned.adapters.insert(*agent, adapter),
                    None => assigned.adapters.remove(agent),
                };
            }
        }
        Ok(assigned)
    }

    fn index_of(&mut self, typed: &'a str) -> usize {
        let known = self.models.iter().position(|known| name(known) == name(typed));
        known.unwrap_or_else(|| {
            self.models.push(typed);
            self.models.len() - 1
        })
    }
}

impl ModelFlags {
    /// Checks that some agent runs with each adapter, for commands that take no requests.
    ///
    /// # Errors
    /// Names the first adapter that no agent uses.
    pub fn check_adapters_are_used(&self) -> Result<()> {
        let assigned = Assigned::of(self)?;
        for (adapter, _) in declared(self)? {
            // Short answers are read with the adapter of that name, whatever the agent runs with.
            if adapter != reading::ADAPTER && !assigned.adapters.values().any(|used| *used == adapter) {
                let hint =
                    format!("name it with a model: --model {}+{adapter}, or --researcher base+{adapter}", self.model);
                return Err(refusal(format!("no agent runs with the adapter {adapter}"), hint));
            }
        }
        Ok(())
    }
}

/// Names and paths of the adapters of the flags.
fn declared(flags: &ModelFlags) -> Result<Vec<(&str, &Path)>> {
    let mut declared: Vec<(&str, &Path)> = Vec::new();
    for flag in &flags.adapters {
        let (name, path) = match flag {
            AdapterFlag::At { name, path } => (name, path),
            AdapterFlag::None => continue,
            AdapterFlag::Corpus(_) => {
                let hint = "name it by its path: --adapter reader=DATA/corpora/NAME/trained/reader";
                return Err(refusal(
                    format!("--adapter {flag} is for `ask`, `ingest`, `serve`, `mcp` and `train`"),
                    hint,
                ));
            }
        };
        if declared.iter().any(|(known, _)| known == name) {
            let hint = "give every adapter a name of its own: --adapter NAME=PATH";
            return Err(refusal(format!("there are two adapters {name}"), hint));
        }
        declared.push((name, path));
    }
    Ok(declared)
}

/// A model as typed, and the adapter behind the `+`. A path may have a `+` of its own.
fn split<'a>(typed: &'a str, declared: &[(&str, &Path)]) -> Result<(&'a str, Option<&'a str>)> {
    let Some((model, adapter)) = typed.rsplit_once('+') else { return Ok((typed, None)) };
    if declared.iter().any(|(name, _)| *name == adapter) {
        return Ok((model, Some(adapter)));
    }
    if adapter == "none" {
        return Ok((model, None));
    }
    if Path::new(typed).exists() {
        return Ok((typed, None));
    }
    let names: Vec<&str> = declared.iter().map(|(name, _)| *name).collect();
    let known = if names.is_empty() { "none is declared".to_owned() } else { format!("there is {}", names.join(", ")) };
    Err(refusal(
        format!("`{typed}` names the adapter {adapter}, and {known}"),
        format!("declare it: --adapter {adapter}=PATH"),
    ))
}

/// Reads the adapters for the models that they serve or could serve; those of the hub are fetched if need be.
///
/// # Errors
/// If an adapter cannot be read, or does not fit the model of an agent that names it; one that no agent names must fit some model.
pub(crate) fn load(
    flags: &ModelFlags,
    assigned: &Assigned<'_>,
    language: &[(String, LanguageModel)],
    global: &GlobalFlags,
) -> Result<Adapters> {
    let mut adapters = Adapters::default();
    for (adapter, path) in declared(flags)? {
        let path = &adapter_path(path, global)?;
        let mut failure = None;
        let before = adapters.loaded.len();
        for (model, (model_name, base)) in language.iter().enumerate() {
            let model_of = |agent: &Agent| assigned.agents.get(agent).copied().unwrap_or(0);
            let named = |(agent, name): (&Agent, &&str)| *name == adapter && model_of(agent) == model;
            let agents: Vec<Agent> = assigned.adapters.iter().filter(|pair| named(*pair)).map(|pair| *pair.0).collect();
            match read(adapter, path, base.spec(), model_name) {
                Ok(read) => {
                    let index = adapters.loaded.len();
                    adapters.loaded.push(NamedAdapter { name: adapter.to_owned(), model, adapter: read });
                    adapters.agents.extend(agents.into_iter().map(|agent| (agent, index)));
                }
                Err(error) if agents.is_empty() && is_misfit(&error) => drop(failure.get_or_insert(error)),
                Err(error) => return Err(error),
            }
        }
        if let Some(error) = failure.filter(|_| adapters.loaded.len() == before) {
            return Err(error);
        }
    }
    if comes_with_adapters(flags) {
        for (model, (model_name, base)) in language.iter().enumerate() {
            if let Some(adapter) = reader_of(model_name, base)? {
                adapters.loaded.push(NamedAdapter { name: reading::ADAPTER.to_owned(), model, adapter });
            }
        }
    }
    Ok(adapters)
}

/// Reads the adapters of one model that is loaded again: those of [`load`] that fit it, in the same order.
///
/// # Errors
/// If an adapter cannot be read.
pub(crate) fn of_model(
    flags: &ModelFlags,
    model_name: &str,
    base: &LanguageModel,
    global: &GlobalFlags,
) -> Result<Vec<NamedAdapter>> {
    let named = |name: &str, adapter| NamedAdapter { name: name.to_owned(), model: 0, adapter };
    let fitting = fitting(flags, model_name, base.spec(), global)?;
    let mut adapters: Vec<_> = fitting.into_iter().map(|(name, adapter)| named(name, adapter)).collect();
    if comes_with_adapters(flags) {
        adapters.extend(reader_of(model_name, base)?.map(|read| named(reading::ADAPTER, read)));
    }
    Ok(adapters)
}

/// Reads the declared adapters that fit a model; the others belong to another one.
fn fitting<'a>(
    flags: &'a ModelFlags,
    model_name: &str,
    spec: &DecoderSpec,
    global: &GlobalFlags,
) -> Result<Vec<(&'a str, Adapter)>> {
    let mut fitting = Vec::new();
    for (adapter, path) in declared(flags)? {
        match read(adapter, &adapter_path(path, global)?, spec, model_name) {
            Ok(read) => fitting.push((adapter, read)),
            Err(error) if is_misfit(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(fitting)
}

/// The adapter that a model comes with, which reads short answers.
fn reader_of(model_name: &str, base: &LanguageModel) -> Result<Option<Adapter>> {
    let manifest = model_name.split_once(':').map_or(model_name, |(manifest, _)| manifest);
    Adapter::reader_of(manifest, base.spec()).with_context(|| format!("cannot use the adapter of {model_name}"))
}

/// Whether models have the adapters that they come with: not with `--adapter none`, nor if another one has that name.
fn comes_with_adapters(flags: &ModelFlags) -> bool {
    let replaces = |flag: &AdapterFlag| match flag {
        AdapterFlag::None | AdapterFlag::Corpus(_) => true,
        AdapterFlag::At { name, .. } => name == reading::ADAPTER,
    };
    !flags.adapters.iter().any(replaces)
}

/// Whether an adapter is one for another model.
fn is_misfit(error: &anyhow::Error) -> bool {
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<ModelError>());
    matches!(cause, Some(ModelError::AdapterMisfit { .. } | ModelError::AdapterUnsupported { .. }))
}

fn read(adapter: &str, path: &Path, spec: &DecoderSpec, model: &str) -> Result<Adapter> {
    let read = Adapter::open_for(path, spec);
    read.with_context(|| format!("cannot use the adapter {adapter} ({}) with {model}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;
    use models::Spec;
    use serde_json::json;

    use super::*;
    use crate::flags::tests::Flags;

    fn flags(words: &str) -> ModelFlags {
        Flags::try_parse_from(["memlocal"].into_iter().chain(words.split_whitespace())).unwrap().models
    }

    #[test]
    fn roles_run_with_the_adapters_that_they_name() {
        let flags =
            flags("--model m.gguf+a --researcher base+b --judge base --memorizer n.gguf --adapter a=x --adapter b=y");
        let assigned = Assigned::of(&flags).unwrap();
        assert_eq!(assigned.models, ["m.gguf", "n.gguf"]);
        let of = |agent| (assigned.agents.get(&agent).copied(), assigned.adapters.get(&agent).copied());
        assert_eq!(of(Agent::Responder), (None, Some("a")));
        assert_eq!(of(Agent::Researcher), (Some(0), Some("b")));
        assert_eq!(of(Agent::Builder), (Some(0), Some("b")));
        assert_eq!(of(Agent::Judge), (Some(0), None));
        assert_eq!(of(Agent::Memorizer), (Some(1), None));
        flags.check_adapters_are_used().unwrap();
    }

    #[test]
    fn adapters_that_are_missing_twice_there_or_unused_are_refused() {
        let fails = |words: &str| Assigned::of(&flags(words)).unwrap_err().to_string();
        assert!(fails("--model m.gguf+plan --adapter plans=x").contains("names the adapter plan, and there is plans"));
        assert!(fails("--researcher base+plan").contains("none is declared"));
        assert!(fails("--adapter a=x --adapter a=y").contains("two adapters a"));
        let unused = flags("--adapter a=x").check_adapters_are_used().unwrap_err().to_string();
        assert!(unused.contains("no agent runs with the adapter a"), "{unused}");
        flags("--adapter none").check_adapters_are_used().unwrap();
        assert_eq!(Assigned::of(&flags("--model m.gguf+none --adapter none")).unwrap().models, ["m.gguf"]);
    }

    #[test]
    fn a_damaged_adapter_is_not_taken_for_that_of_another_model() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reader");
        assert!(Adapter::write_reader_of("smollm2-135m-instruct", &path).unwrap());
        let named = format!("a={}", path.display());
        let Flags { models, global, .. } = Flags::try_parse_from(["memlocal", "--adapter", &named]).unwrap();
        let fitting_names = |hidden_size: usize| {
            let config = json!({ "model_type": "llama", "num_hidden_layers": 30, "hidden_size": hidden_size,
                "num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64, "intermediate_size": 1536,
                "vocab_size": 49152, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "hidden_act": "silu" });
            let Spec::Decoder(spec) = Spec::from_config(&config).unwrap() else { panic!("it is a decoder") };
            let fitting = fitting(&models, "m", &spec, &global);
            fitting.map(|fitting| fitting.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(fitting_names(576).unwrap(), ["a"]);
        assert!(fitting_names(288).unwrap().is_empty());
        let weights = path.join("adapter_model.safetensors");
        let whole = fs::read(&weights).unwrap();
        fs::write(&weights, &whole[..whole.len() / 2]).unwrap();
        let damaged = format!("{:#}", fitting_names(576).unwrap_err());
        assert!(damaged.contains("no usable model file"), "{damaged}");
        fs::remove_file(&weights).unwrap();
        let missing = format!("{:#}", fitting_names(576).unwrap_err());
        assert!(missing.contains("adapter_model.safetensors is missing"), "{missing}");
    }
}
