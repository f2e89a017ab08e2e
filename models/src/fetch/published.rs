//! Which files of a published repository make a model: a GGUF file with its shards, a safetensors folder, or an adapter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use super::FetchError;
use crate::manifest::{FileSpec, Role, Sha256Hex};

/// Quantisations that are taken where none is named, best first.
const PREFERRED: [&str; 8] = ["q4_k_m", "q4_k_s", "q5_k_m", "q4_0", "q4_1", "q6_k", "q8_0", "bf16"];

/// Files of a folder in Hugging Face's layout besides weights.
const SETTINGS: [(Role, &str); 11] = [
    (Role::Config, "config.json"),
    (Role::Tokenizer, "tokenizer.json"),
    (Role::TokenizerConfig, "tokenizer_config.json"),
    (Role::SentenceConfig, "sentence_bert_config.json"),
    (Role::Settings, "model.safetensors.index.json"),
    (Role::Settings, "generation_config.json"),
    (Role::Settings, "special_tokens_map.json"),
    (Role::Settings, "chat_template.jinja"),
    (Role::Settings, "modules.json"),
    (Role::Settings, "config_sentence_transformers.json"),
    (Role::Settings, "1_Pooling/config.json"),
];
const HEADS: [(Role, &str); 2] = [(Role::SparseHead, "sparse_linear"), (Role::MultiVectorHead, "colbert_linear")];
const ADAPTER: [(Role, &str); 2] =
    [(Role::Weights, "adapter_model.safetensors"), (Role::Config, "adapter_config.json")];

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Entry {
    /// With folders, separated by `/`.
    pub name: String,
    pub bytes: Option<u64>,
    pub sha256: Option<Sha256Hex>,
}

impl Entry {
    fn as_file(&self, role: Role) -> FileSpec {
        FileSpec { role, name: self.name.clone(), bytes: self.bytes, sha256: self.sha256.clone() }
    }
}

/// How many folders deep a model's files are at most.
const DEPTH: usize = 2;

/// Lists the files below a folder, as deep as a model's files are.
pub(super) fn entries_below(folder: &Path) -> Result<Vec<Entry>, FetchError> {
    fn walk(folder: &Path, prefix: &str, depth: usize, found: &mut Vec<Entry>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            // Follows links: the files of the Hugging Face cache are links.
            match fs::metadata(entry.path()) {
                Ok(metadata) if metadata.is_dir() && depth == 0 => {}
                Ok(metadata) if metadata.is_dir() => walk(&entry.path(), &format!("{name}/"), depth - 1, found)?,
                Ok(metadata) => found.push(Entry { name, bytes: Some(metadata.len()), sha256: None }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
    let mut found = Vec::new();
    walk(folder, "", DEPTH, &mut found).map_err(|error| FetchError::from_disk(folder, error))?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Chooses the files of a model: those of the file or quantisation that is named, or else an adapter, a safetensors folder,
/// or the GGUF file of the first preferred quantisation.
///
/// # Errors
/// [`FetchError::NotPublished`] with what there is instead.
pub(super) fn choose(repo: &str, wanted: Option<&str>, entries: &[Entry]) -> Result<Vec<FileSpec>, FetchError> {
    let fail = |wanted: String, hint: String| FetchError::NotPublished { repo: repo.to_owned(), wanted, hint };
    let models = gguf_models(entries);
    match wanted {
        Some(wanted) => named(wanted, entries, &models).map_err(|hint| fail(wanted.to_owned(), hint)),
        None => folder(entries).or_else(|| adapter(entries)).or_else(|| preferred(&models)).ok_or_else(|| {
            let hint = if models.is_empty() {
                "no .gguf and no folder with config.json and weights".to_owned()
            } else {
                listed(&models)
            };
            fail("model that can be chosen without a name".to_owned(), hint)
        }),
    }
}

/// GGUF files by the name of their first shard; incomplete ones are left out.
fn gguf_models(entries: &[Entry]) -> BTreeMap<&str, Vec<&Entry>> {
    let mut models: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    let known: BTreeMap<&str, &Entry> = entries.iter().map(|entry| (entry.name.as_str(), entry)).collect();
    for entry in entries.iter().filter(|entry| entry.name.to_lowercase().ends_with(".gguf")) {
        let file = entry.name.rsplit('/').next().unwrap_or(&entry.name).to_lowercase();
        // Image encoders and importance matrices are beside models, and are none.
        if file.starts_with("mmproj") || file.contains("imatrix") {
            continue;
        }
        let shards = shard_names(&entry.name);
        if shards[0] == entry.name
            && let Some(shards) =
                shards.iter().map(|name| known.get(name.as_str()).copied()).collect::<Option<Vec<_>>>()
        {
            models.insert(&entry.name, shards);
        }
    }
    models
}

/// The names of all shards of `...-00001-of-00003.gguf`; any other file is its own only shard.
fn shard_names(name: &str) -> Vec<String> {
    let shards = || {
        let (stem, end) = name.rsplit_once('.')?;
        let (stem, total) = stem.rsplit_once("-of-")?;
        let (stem, number) = stem.rsplit_once('-')?;
        let digits = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
        let count: u32 =
            Some(total).filter(|total| digits(total) && digits(number))?.parse().ok().filter(|n| *n > 0)?;
        Some((1..=count).map(|number| format!("{stem}-{number:05}-of-{total}.{end}")).collect())
    };
    shards().unwrap_or_else(|| vec![name.to_owned()])
}

/// The files of what was named: a file by its path, or the one GGUF model with this quantisation in its name.
fn named(wanted: &str, entries: &[Entry], models: &BTreeMap<&str, Vec<&Entry>>) -> Result<Vec<FileSpec>, String> {
    let as_weights = |shards: &[&Entry]| shards.iter().map(|entry| entry.as_file(Role::Weights)).collect();
    if entries.iter().any(|entry| entry.name == wanted) {
        let shards = models.get(shard_names(wanted)[0].as_str());
        return shards.map(|shards| as_weights(shards)).ok_or_else(|| {
            "only .gguf files are taken alone, with all their shards; leave the file out to have the folder".to_owned()
        });
    }
    let found: Vec<_> = models.iter().filter(|(name, _)| has_quantisation(name, wanted)).collect();
    match found[..] {
        [(_, shards)] => Ok(as_weights(shards)),
        [] => Err(listed(models)),
        _ => Err(format!("several files have it; name one: {}", names(found.iter().map(|(name, _)| **name)))),
    }
}

/// True if a file's name has the quantisation as a word of its own: `-q4_k_m.`, `.Q8_0-00001-of-`, `/BF16/`.
fn has_quantisation(name: &str, quantisation: &str) -> bool {
    let (name, quantisation) = (name.to_lowercase(), quantisation.to_lowercase());
    let is_end = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_');
    name.match_indices(&quantisation)
        .any(|(at, _)| is_end(name[..at].chars().next_back()) && is_end(name[at + quantisation.len()..].chars().next()))
}

/// PEFT's adapter at the root of the repository.
fn adapter(entries: &[Entry]) -> Option<Vec<FileSpec>> {
    let find = |name: &str| entries.iter().find(|entry| entry.name == name);
    ADAPTER.iter().map(|(role, name)| Some(find(name)?.as_file(*role))).collect()
}

/// A folder in Hugging Face's layout at the root of the repository.
fn folder(entries: &[Entry]) -> Option<Vec<FileSpec>> {
    let find = |name: &str| entries.iter().find(|entry| entry.name == name);
    find("config.json")?;
    let weights = safetensors(entries)
        .or_else(|| Some(vec![find("model.safetensors").or_else(|| find("pytorch_model.bin"))?]))?;
    let heads = HEADS.iter().flat_map(|(role, stem)| ["safetensors", "pt"].map(|end| (*role, format!("{stem}.{end}"))));
    let others = SETTINGS.iter().map(|(role, name)| (*role, (*name).to_owned())).chain(heads);
    let others = others.filter_map(|(role, name)| Some(find(&name)?.as_file(role)));
    Some(weights.into_iter().map(|entry| entry.as_file(Role::Weights)).chain(others).collect())
}

/// The shards `model-00001-of-00003.safetensors` if all are there.
fn safetensors(entries: &[Entry]) -> Option<Vec<&Entry>> {
    let first = entries.iter().find(|entry| {
        entry.name.starts_with("model-00001-of-") && entry.name.ends_with(".safetensors") && !entry.name.contains('/')
    })?;
    let shards = shard_names(&first.name);
    shards.iter().map(|name| entries.iter().find(|entry| entry.name == *name)).collect()
}

/// The only GGUF model, or the only one of the first quantisation of the list that any has.
fn preferred(models: &BTreeMap<&str, Vec<&Entry>>) -> Option<Vec<FileSpec>> {
    let all: Vec<&Vec<&Entry>> = models.values().collect();
    let of = |quantisation: &str| {
        let found = models.iter().filter(|(name, _)| has_quantisation(name, quantisation));
        found.map(|(_, shards)| shards).collect::<Vec<_>>()
    };
    let found =
        if all.len() == 1 { all } else { PREFERRED.iter().map(|name| of(name)).find(|found| !found.is_empty())? };
    match found[..] {
        [shards] => Some(shards.iter().map(|entry| entry.as_file(Role::Weights)).collect()),
        _ => None,
    }
}

fn listed(models: &BTreeMap<&str, Vec<&Entry>>) -> String {
    match models.is_empty() {
        true => "it has no .gguf files".to_owned(),
        false => format!("there are {}", names(models.keys().copied())),
    }
}

/// At most twelve names.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let all: BTreeSet<&str> = all.collect();
    let shown = all.iter().copied().take(12).collect::<Vec<_>>().join(", ");
    if all.len() > 12 { format!("{shown} and {} more", all.len() - 12) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(wanted: Option<&str>, names: &[&str]) -> String {
        let entries: Vec<Entry> =
            names.iter().map(|name| Entry { name: (*name).to_owned(), ..Entry::default() }).collect();
        match choose("o/r", wanted, &entries) {
            Ok(files) => files.into_iter().map(|file| file.name).collect::<Vec<_>>().join(" "),
            Err(error) => format!("{error}; {}", error.hint().unwrap_or_default()),
        }
    }

    #[test]
    fn a_quantisation_is_a_word_of_a_file_name() {
        let files = [
            "m-Q4_K_M.gguf",
            "m-Q4_K_S.gguf",
            "m-q8_0-00001-of-00002.gguf",
            "m-q8_0-00002-of-00002.gguf",
            "m.IQ4_K_M.gguf",
            "BF16/m.gguf",
            "mmproj-Q8_0.gguf",
            "m-Q6_K-00001-of-00002.gguf",
        ];
        let check = |wanted: &str, expected: &str| assert_eq!(chosen(Some(wanted), &files), expected, "{wanted}");
        check("q4_k_m", "m-Q4_K_M.gguf");
        check("Q8_0", "m-q8_0-00001-of-00002.gguf m-q8_0-00002-of-00002.gguf");
        check("bf16", "BF16/m.gguf");
        check("m-q8_0-00002-of-00002.gguf", "m-q8_0-00001-of-00002.gguf m-q8_0-00002-of-00002.gguf");
        assert!(chosen(Some("q4_k"), &files).starts_with("o/r has no q4_k; there are BF16/m.gguf, "));
        assert!(chosen(Some("Q6_K"), &files).starts_with("o/r has no Q6_K; "), "a shard is missing");
        let twice = chosen(Some("q8_0"), &["a-q8_0.gguf", "b-q8_0.gguf"]);
        assert_eq!(twice, "o/r has no q8_0; several files have it; name one: a-q8_0.gguf, b-q8_0.gguf");
    }

    #[test]
    fn without_a_name_a_folder_is_taken_then_the_preferred_quantisation() {
        let check = |files: &[&str], expected: &str| assert_eq!(chosen(None, files), expected);
        check(&["m-q8_0.gguf", "m-q4_k_m.gguf", "README.md"], "m-q4_k_m.gguf");
        check(&["only.gguf"], "only.gguf");
        check(&["config.json", "m-q8_0.gguf"], "m-q8_0.gguf");
        check(
            &[
                "config.json",
                "m-q4_k_m.gguf",
                "model.safetensors",
                "consolidated.safetensors",
                "tokenizer.json",
                "onnx/model.onnx",
            ],
            "model.safetensors config.json tokenizer.json",
        );
        check(
            &[
                "config.json",
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
            ],
            "model-00001-of-00002.safetensors model-00002-of-00002.safetensors config.json model.safetensors.index.json",
        );
        check(
            &["pytorch_model.bin", "config.json", "sparse_linear.pt", "1_Pooling/config.json"],
            "pytorch_model.bin config.json 1_Pooling/config.json sparse_linear.pt",
        );
        check(
            &["adapter_config.json", "adapter_model.safetensors", "tokenizer.json"],
            "adapter_model.safetensors adapter_config.json",
        );
        assert!(chosen(None, &["README.md"]).ends_with("no .gguf and no folder with config.json and weights"));
        assert!(chosen(None, &["a-q2_k.gguf", "b-q3_k.gguf"]).ends_with("there are a-q2_k.gguf, b-q3_k.gguf"));
    }
}
